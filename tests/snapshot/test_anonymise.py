"""A cluster without names says what the cluster said."""

import gzip
import itertools
import json
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from snapshot.test_projection import full, marks

from webhook.cli.checking.whole_cluster import examine_cluster
from webhook.cli.formats.json import as_values
from webhook.cli.frame import Frame
from webhook.conformance.validate_cases import members
from webhook.conformance.verdict_cases import decide_verdict
from webhook.core.api.types import TypeMeta
from webhook.core.policy.policy import Policy
from webhook.manifests.reading.files import File
from webhook.snapshot.anonymise import Names
from webhook.snapshot.projection import project

CLUSTER = Path(__file__).parents[2] / "webhook" / "example" / "cluster.jsonl"
VECTORS = Path(__file__).parents[2] / "conformance" / "vectors"
LISTS = {
    "nodes": "Node",
    "namespaces": "Namespace",
    "services": "Service",
    "replicaSets": "ReplicaSet",
    "statefulSets": "StatefulSet",
    "replicationControllers": "ReplicationController",
    "persistentVolumes": "PersistentVolume",
    "persistentVolumeClaims": "PersistentVolumeClaim",
    "storageClasses": "StorageClass",
    "csiNodes": "CSINode",
    "csiDrivers": "CSIDriver",
    "csiStorageCapacities": "CSIStorageCapacity",
    "volumeAttachments": "VolumeAttachment",
    "pods": "Pod",
}


def without_names(scenario):
    """The scenario with other names, and the names."""
    listed = {name: [each for each in scenario.get(name) or () if each is not None] for name in LISTS}
    objects = [{**each, "kind": LISTS[name]} for name, entries in listed.items() for each in entries]
    args = scenario.get("podTopologySpreadArgs") or {}
    names = Names([*objects, scenario["pod"], args])
    changed = {name: [names.replaced(each) for each in entries] for name, entries in listed.items() if entries}
    changed["pod"] = names.replaced(scenario["pod"])
    if args:
        changed["podTopologySpreadArgs"] = names.replaced(args) | {"defaultingType": args.get("defaultingType")}
    if scenario.get("feasible"):
        changed["feasible"] = [names.replaced({"name": each})["name"] for each in scenario["feasible"]]
    return {**scenario, **changed}, names


def restored(text, names):
    """The text with the words that it had."""
    words = {new: old for old, new in names.words.items()}
    return re.sub(r"[A-Za-z0-9]+", lambda found: words.get(found[0], found[0]), text)


def decided(scenario):
    return json.dumps(decide_verdict(members(json.dumps(scenario).encode())))


def unordered(value):
    """The value with the words of each text in one order: names are listed by name, next to words that stay."""
    if isinstance(value, dict):
        return {key: unordered(each) for key, each in value.items()}
    if isinstance(value, list):
        return sorted(map(unordered, value), key=str)
    return sorted(re.findall(r"[^\s,().]+", value)) if isinstance(value, str) else value


def scenarios(file):
    with gzip.open(VECTORS / file, "rt") as lines:
        yield from (json.loads(line)["scenario"] for line in lines)


@pytest.mark.parametrize("file", sorted(file.name for file in VECTORS.glob("verdict-*.gz")))
@pytest.mark.sampled
def test_recorded_verdicts_stay_without_names(file):
    """Every twentieth here; all of them agreed when this was written."""
    for scenario in itertools.islice(scenarios(file), 7, None, 20):
        changed, names = without_names(scenario)
        before, after = decided(scenario), restored(decided(changed), names)
        assert unordered(json.loads(after)) == unordered(json.loads(before)), scenario["id"]


def example_cluster():
    """The objects of the example cluster, as a snapshot has them."""
    for line in CLUSTER.read_text().splitlines()[1:]:
        made = json.loads(line)
        of = TypeMeta(api_version=made["apiVersion"], kind=made["kind"])
        yield json.loads(project(line.encode(), of))


def found(objects):
    """What audit says of them, without the places."""
    lines = "\n".join(json.dumps(each) for each in ({"kind": "Snapshot"}, *objects))
    frame = Frame(policy=Policy(), today="2026-01-01")
    entries = as_values(examine_cluster([File("x", lines.encode())], frame))
    return [{name: value for name, value in entry.items() if name not in {"line", "column"}} for entry in entries]


@pytest.mark.slow
def test_findings_stay_without_names():
    objects = [*example_cluster()]
    names = Names(objects)
    before, after = found(objects), found(map(names.replaced, objects))
    assert len(before) > 30
    assert json.loads(restored(json.dumps(after), names)) == before


@pytest.mark.parametrize("kind", ["Pod", "Deployment", "CronJob"])
def test_no_text_of_a_full_object_is_left(kind):
    whole = json.loads(project(json.dumps(full(f"v1.{kind}")).encode(), TypeMeta(api_version="v1", kind=kind)))
    told = json.dumps(Names([whole]).replaced(whole))
    enumerated = (
        r"apiVersion|kind|operator|effect|whenUnsatisfiable|node(Affinity|Taints)Policy|phase|status|restartPolicy|protocol"
        r"|preemptionPolicy|max(Surge|Unavailable)|(creation|deletion)Timestamp|lastTransitionTime|matchFields\[\]\.key|(overhead|\w+Resources|requests|limits)\{\}"
    )
    enumerated += r"|accessModes\[\]|volumeMode"
    assert [mark for mark in marks(told) if not re.search(rf"\.({enumerated})$", f".{mark}")] == []


def test_what_admission_reads_of_an_anonymised_cluster():
    item = {"type": "Container", "max": {"cpu": "2", "example.com/gpu": "1"}, "defaultRequest": {"memory": "1Gi"}}
    overhead, scheduling = {"podFixed": {"cpu": "1"}}, {"nodeSelector": {"pool": "spot"}}
    spec = {"priorityClassName": "high", "runtimeClassName": "boxed", "nodeSelector": {"pool": "spot"}}
    limits, high, boxed, asks = renamed(
        {"kind": "LimitRange", "metadata": {"name": "small"}, "spec": {"limits": [item]}},
        {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 7, "preemptionPolicy": "Never"},
        {"kind": "RuntimeClass", "metadata": {"name": "boxed"}, "overhead": overhead, "scheduling": scheduling},
        {"kind": "Pod", "metadata": {"name": "web"}, "spec": spec},
    )
    told = limits["spec"]["limits"][0]
    assert {**told, "max": {**told["max"]}} == {**item, "max": {"cpu": "2", [*told["max"]][1]: "1"}}
    assert high == {**high, "value": 7, "preemptionPolicy": "Never"}
    assert boxed["overhead"] == overhead
    assert (asks["spec"]["priorityClassName"], asks["spec"]["runtimeClassName"]) == (
        high["metadata"]["name"],
        boxed["metadata"]["name"],
    )
    assert asks["spec"]["nodeSelector"] == boxed["scheduling"]["nodeSelector"] != scheduling["nodeSelector"]


def test_what_storage_drivers_say_of_an_anonymised_cluster():
    source = {"persistentVolumeName": "pv-1"}
    own, public, space, attached, of = renamed(
        {"kind": "CSIDriver", "metadata": {"name": "disks.acme.corp"}, "spec": {"storageCapacity": True}},
        {"kind": "CSIDriver", "metadata": {"name": "ebs.csi.aws.com"}},
        {"kind": "CSIStorageCapacity", "metadata": {"name": "x"}, "storageClassName": "fast", "capacity": "5Gi"},
        {"kind": "VolumeAttachment", "spec": {"attacher": "disks.acme.corp", "nodeName": "n1", "source": source}},
        {"kind": "StorageClass", "metadata": {"name": "fast"}, "provisioner": "disks.acme.corp"},
    )
    assert own["metadata"]["name"] == attached["spec"]["attacher"] == of["provisioner"] != "disks.acme.corp"
    assert public["metadata"]["name"] == "ebs.csi.aws.com"
    assert (space["storageClassName"], space["capacity"]) == (of["metadata"]["name"], "5Gi")
    assert renamed({"kind": "CSIDriver", "metadata": {}}) == [{"kind": "CSIDriver", "metadata": {}}]


def pod(name="web-0", **spec):
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "shop"}, "spec": spec}


SET = {"kind": "StatefulSet", "metadata": {"name": "redis-shard-1", "namespace": "shop"}}


def renamed(*objects):
    names = Names(objects)
    return [names.replaced(each) for each in objects]


class TestWhatVerdictsDependOn:
    def test_names_that_are_made_of_others_still_are(self):
        claim = {"kind": "PersistentVolumeClaim", "metadata": {"name": "data-redis-shard-1-0", "namespace": "shop"}}
        volume = {"kind": "PersistentVolume", "spec": {"claimRef": {"name": "data-redis-shard-1-0"}}}
        template = pod(volumes=[{"name": "data"}])
        owner, first, claimed, bound, mount = renamed(SET, pod("redis-shard-1-0"), claim, volume, template)
        name, data = owner["metadata"]["name"], mount["spec"]["volumes"][0]["name"]
        assert first["metadata"]["name"] == f"{name}-0"
        assert claimed["metadata"]["name"] == bound["spec"]["claimRef"]["name"] == f"{data}-{name}-0"

    def test_what_was_first_by_name_still_is(self):
        written = sorted(["a", "a-b", "ab", "b.c", "b-1", "b-10", "b-2", "zone-a", "zone-b", "1a", "10", "web-0"])
        assert len({each["metadata"]["name"] for each in renamed(*map(pod, written))}) == len(written)
        told = [each["metadata"]["name"] for each in renamed(*map(pod, written))]
        assert told == sorted(told)

    def test_numbers_that_a_selector_compares_stay(self):
        node = {"kind": "Node", "metadata": {"name": "n", "labels": {"cores": "8", "rack": "8", "disk": "8"}}}
        wanted = {"key": "cores", "operator": "Gt", "values": ["4"]}
        asking = pod(affinity={"nodeAffinity": {"x": [{"matchExpressions": [wanted]}]}})
        labelled, asked = renamed(node, asking)
        [[key, value], *others] = labelled["metadata"]["labels"].items()
        assert asked["spec"]["affinity"]["nodeAffinity"]["x"][0]["matchExpressions"] == [
            {"operator": "Gt", "key": key, "values": ["4"]}
        ]
        assert value == "8"
        assert [told for _, told in others] == ["1n", "1n"]

    def test_a_group_selects_the_same_pods_and_caps_them_as_before(self):
        spec = {
            "selector": {"matchLabels": {"redis.example/cluster": "cache"}},
            "shard": {"label": "redis.example/shard", "neverShare": "both"},
            "requiredDomains": {"topologyKey": "topology.kubernetes.io/zone", "values": ["east"]},
            "caps": [{"topologyKey": "example.org/rack", "lessThan": "1/2", "enforce": "observe"}],
            "delivery": "inject",
        }
        status = {"revision": "7f3a", "conditions": [{"type": "Fits", "status": "True"}]} | {
            "workloads": [{"kind": "StatefulSet", "name": "redis-shard-1", "shard": "one", "zones": ["east"]}]
        }
        labels = {"redis.example/cluster": "cache", "redis.example/shard": "one", "example.org/rack": "r"}
        group, labelled = renamed(
            {"kind": "SpreadGroup", "metadata": {"name": "cache"}, "spec": spec, "status": status},
            SET | {"metadata": {"name": "redis-shard-1", "labels": labels}},
        )
        cluster, shard, rack = labelled["metadata"]["labels"].items()
        told, stored = group["spec"], group["status"]
        assert told["selector"]["matchLabels"] == dict([cluster])
        assert told["shard"] == {"label": shard[0], "neverShare": "both"}
        assert told["caps"] == [{"topologyKey": rack[0], "lessThan": "1/2", "enforce": "observe"}]
        assert (told["delivery"], stored["revision"]) == ("inject", "7f3a")
        assert stored["conditions"] == status["conditions"]
        assert stored["workloads"] == [
            {
                "kind": "StatefulSet",
                "name": labelled["metadata"]["name"],
                "shard": shard[1],
                "zones": told["requiredDomains"]["values"],
            }
        ]

    @pytest.mark.parametrize(
        "key",
        [
            "topology.kubernetes.io/zone",
            "topology.kubernetes.io/zones",
            "kubernetes.io/hostnames",
            "karpenter.sh/nodepool",
            "pod-template-hash",
            "agentpool",
        ],
    )
    def test_keys_that_mean_something_stay(self, key):
        [told] = renamed(pod(topologySpreadConstraints=[{"topologyKey": key}], nodeSelector={key: "blue"}))
        assert told["spec"]["topologySpreadConstraints"] == [{"topologyKey": key}]
        assert told["spec"]["nodeSelector"].keys() == {key}

    def test_other_keys_are_replaced_alike(self):
        taint = {
            "kind": "Node",
            "spec": {"taints": [{"key": "acme.com/team", "value": "blue", "effect": "NoSchedule"}]},
        }
        tolerating = pod(tolerations=[{"key": "acme.com/team", "operator": "Equal", "value": "blue"}])
        node, told = renamed(taint, tolerating)
        [one], [other] = node["spec"]["taints"], told["spec"]["tolerations"]
        assert (one["key"], one["value"]) == (other["key"], other["value"])
        assert "acme" not in json.dumps([node, told])

    def test_an_extended_resource_is_one_still(self):
        node = {"kind": "Node", "status": {"allocatable": {"cpu": "2", "acme.com/dongle": "1", "nvidia.com/gpu": "1"}}}
        asking = pod(containers=[{"resources": {"requests": {"acme.com/dongle": "1"}}}])
        offered, asked = renamed(node, asking)
        [dongle] = asked["spec"]["containers"][0]["resources"]["requests"]
        assert re.fullmatch(r"n\d\.n\d/n\d", dongle)
        assert offered["status"]["allocatable"] == {"cpu": "2", dongle: "1", "nvidia.com/gpu": "1"}

    def test_what_decides_when_a_controller_removes_a_pod_stays(self):
        made = pod("web-1")
        made["metadata"]["annotations"] = {"controller.kubernetes.io/pod-deletion-cost": "-1", "team": "-blue"}
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-01T00:00:01Z"}
        [told] = renamed({**made, "status": {"conditions": [ready]}})
        assert told["metadata"]["annotations"] == {"controller.kubernetes.io/pod-deletion-cost": "-1", "team": "-n0"}
        assert told["status"]["conditions"] == [ready]

    def test_a_uid_is_one_word_wherever_it_stands(self):
        uid = "cea70db1-3db5-5140-abb0-4f7829ab6615"
        volume = {"kind": "PersistentVolume", "metadata": {"name": f"pvc-{uid}", "uid": uid}}
        [told] = renamed(volume)
        assert told["metadata"]["uid"] == "u0"
        assert re.fullmatch(r"n\d-u0", told["metadata"]["name"])

    def test_a_label_stays_as_short_as_labels_may_be(self):
        long = ".".join("abcdefghijklmnopqrstuvwxyz")
        one, other = (
            each["metadata"]["labels"] for each in renamed(*({"metadata": {"labels": {"app": x}}} for x in (long, "b")))
        )
        assert one == {"app": "long-0"}
        assert other == {"app": "n01"}

    def test_what_was_injected_is_known_still(self):
        record = {"revision": "7f3a", "constraints": [{"topologyKey": "acme.com/rack"}]}
        annotations = {
            "evenspread.io/injected": json.dumps(record),
            "evenspread.io/exempt": "revision-mixed,mine",
            "deployment.kubernetes.io/desired-replicas": "3",
            "storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs,kubernetes.io/cinder",
            "volume.kubernetes.io/selected-node": "node-1",
        }
        made = pod(topologySpreadConstraints=[{"topologyKey": "acme.com/rack"}])
        made["metadata"]["annotations"] = annotations
        [told] = renamed(made)
        injected = json.loads(told["metadata"]["annotations"]["evenspread.io/injected"])
        assert injected == {"revision": "7f3a", "constraints": told["spec"]["topologySpreadConstraints"]}
        kept = told["metadata"]["annotations"]
        assert kept["evenspread.io/exempt"].startswith("revision-mixed,n")
        assert kept["deployment.kubernetes.io/desired-replicas"] == "3"
        assert kept["storage.alpha.kubernetes.io/migrated-plugins"] == "kubernetes.io/aws-ebs,kubernetes.io/cinder"
        assert re.fullmatch(r"n\d+-\d+n", kept["volume.kubernetes.io/selected-node"])


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.sampled_from(["app", "acme.com/x", "a-0", "1", "Gt"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                [
                    *(
                        "metadata",
                        "name",
                        "ownerReferences",
                        "labels",
                        "selector",
                        "annotations",
                        "drivers",
                        "allocatable",
                    ),
                    *(
                        "matchFields",
                        "matchExpressions",
                        "tolerations",
                        "key",
                        "values",
                        "operator",
                        "requests",
                        "kind",
                    ),
                ]
            ),
            inner,
            max_size=5,
        ),
    ),
    max_leaves=20,
)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(["metadata", "spec", "kind"]), JSON))
@example({"metadata": {"matchFields": [{"key": []}]}})
def test_whatever_stands_in_an_object_it_keeps_its_shape(value):
    told = Names([value]).replaced(value)
    assert json.dumps(told).count("[") == json.dumps(value).count("[")
    assert told.keys() == value.keys()


@given(st.lists(st.text("ab1.- ", max_size=8), max_size=12))
def test_names_differ_as_before(written):
    told = [each["metadata"]["name"] for each in renamed(*map(pod, written))]
    assert [one == other for one in told for other in told] == [one == other for one in written for other in written]
    assert [re.sub(r"\w+", "x", one) for one in told] == [re.sub(r"\w+", "x", one) for one in written]
