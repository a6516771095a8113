"""What a snapshot keeps of an object: named fields, and of all others nothing, whatever they are called."""

import json
import re

import msgspec
import pytest

from webhook.core.api.types import TypeMeta
from webhook.core.api.version import RECORDED
from webhook.core.apiserver.go_json import go_type
from webhook.core.workloads.custom_kinds import EmbeddedKind
from webhook.snapshot.projection import is_read, project

BUILT_IN = {
    "Pod": "v1",
    "ReplicationController": "v1",
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
}
MARK = "SECRET-"


def full(name, path=""):
    """A value of a Go type with a marker in every text, and in every name of a map; it says where it stands."""
    kind = go_type(name, RECORDED)
    match kind.kind:
        case "struct":
            value = {field: full(type_, f"{path}.{field}".lstrip(".")) for field, (_, type_) in kind.fields.items()}
        case "pointer":
            value = full(kind.elem, path)
        case "list":
            value = [full(kind.elem, f"{path}[]")]
        case "map":
            value = {f"{MARK}{path}{{key}}": full(kind.elem, f"{path}{{}}")}
        case "bool":
            value = True
        case kind if kind.startswith(("int", "float", "uint")):
            value = 7
        case _:
            value = f"{MARK}{path}"
    return value


def marks(text):
    """The places of the markers in a text."""
    return {found.removeprefix(MARK) for found in re.findall(rf"{MARK}[^\"]*", text)}


SELECTOR = r"matchExpressions\[\]\.(key|operator|values\[\])|matchLabels\{(key)?\}"
META = r"name|generateName|namespace|uid|creationTimestamp|deletionTimestamp|labels\{(key)?\}"
OWNERS = r"ownerReferences\[\]\.(apiVersion|kind|name|uid)"
NODES = r"match(Expressions|Fields)\[\]\.(key|operator|values\[\])"
PODS = rf"topologyKey|namespaces\[\]|(mis)?matchLabelKeys\[\]|(label|namespace)Selector\.({SELECTOR})"
RESOURCES = r"(resources\.(limits|requests))\{(key)?\}"
CLAIM = rf"accessModes\[\]|selector\.({SELECTOR})|{RESOURCES}|storageClassName|volume(AttributesClassName|Mode|Name)"
VOLUMES = (
    r"name|persistentVolumeClaim\.claimName|gcePersistentDisk\.pdName|awsElasticBlockStore\.volumeID|iscsi\.iqn"
    r"|rbd\.(monitors\[\]|image|pool)|azureDisk\.(diskURI|kind)|cinder\.volumeID|portworxVolume\.volumeID"
    rf"|ephemeral\.volumeClaimTemplate\.spec\.({CLAIM})"
)
CONSTRAINT = r"topologyKey|whenUnsatisfiable|node(Affinity|Taints)Policy|matchLabelKeys\[\]"
SPEC = "|".join(
    (
        rf"topologySpreadConstraints\[\]\.({CONSTRAINT}|labelSelector\.({SELECTOR}))",
        rf"affinity\.nodeAffinity\.required\w+\.nodeSelectorTerms\[\]\.({NODES})",
        rf"affinity\.nodeAffinity\.preferred\w+\[\]\.preference\.({NODES})",
        rf"affinity\.pod(Anti)?Affinity\.required\w+\[\]\.({PODS})",
        rf"affinity\.pod(Anti)?Affinity\.preferred\w+\[\]\.podAffinityTerm\.({PODS})",
        r"nodeSelector\{(key)?\}|tolerations\[\]\.(key|operator|value|effect)|nodeName|schedulerName",
        r"priorityClassName|preemptionPolicy|runtimeClassName",
        rf"(initC|c)ontainers\[\]\.(name|restartPolicy|ports\[\]\.(hostIP|protocol)|{RESOURCES})",
        rf"overhead\{{(key)?\}}|{RESOURCES}|volumes\[\]\.({VOLUMES})",
        r"schedulingGates\[\]\.name|resourceClaims\[\]\.name|schedulingGroup\.podGroupName",
    )
)
STATUS = (
    rf"phase|nominatedNodeName|conditions\[\]\.(type|status|reason|lastTransitionTime)|allocatedResources\{{(key)?\}}|{RESOURCES}"
    rf"|(initC|c)ontainerStatuses\[\]\.(name|allocatedResources\{{(key)?\}}|{RESOURCES})"
)
POD = rf"(metadata\.({META}|{OWNERS}))|(spec\.({SPEC}))"
WORKLOAD = (
    rf"metadata\.({META}|{OWNERS})|spec\.(jobTemplate\.spec\.)?selector(\.({SELECTOR})|\{{(key)?\}})"
    rf"|spec\.(update)?[sS]trategy\.(type|rollingUpdate\.max(Surge|Unavailable))|spec\.(jobTemplate\.spec\.)?template\.({POD})"
    rf"|spec\.volumeClaimTemplates\[\]\.(metadata\.name|spec\.(storageClassName|{RESOURCES}))"
    r"|spec\.(jobTemplate\.spec\.)?completionMode|spec\.podManagementPolicy"
)


@pytest.mark.parametrize("kind", BUILT_IN)
def test_of_a_full_object_only_the_named_texts_are_kept(kind):
    whole = json.dumps(full(f"v1.{kind}"))
    kept = project(whole.encode(), TypeMeta(api_version=BUILT_IN[kind], kind=kind)).decode()

    allowed = rf"{POD}|status\.({STATUS})" if kind == "Pod" else WORKLOAD
    if kind == "Job":
        allowed += r"|status\.conditions\[\]\.(type|status)"
    assert marks(kept) <= marks(whole)
    assert [mark for mark in sorted(marks(kept)) if not re.fullmatch(allowed, mark)] == []
    dropped = r"env|args|command|\]\.image|secret|managedFields|annotations|configMap"
    assert not re.search(rf"{MARK}[^\"]*({dropped})", kept, re.IGNORECASE)
    assert any(re.search(dropped, mark, re.IGNORECASE) for mark in marks(whole))


def test_every_allowed_text_of_a_pod_is_there():
    kept = marks(project(json.dumps(full("v1.Pod")).encode(), TypeMeta(api_version="v1", kind="Pod")).decode())
    expected = {mark for mark in marks(json.dumps(full("v1.Pod"))) if re.fullmatch(rf"{POD}|status\.({STATUS})", mark)}
    assert expected - kept == set()


def projected(value, **more):
    of = TypeMeta(api_version=value["apiVersion"], kind=value["kind"])
    return json.loads(project(json.dumps(value).encode(), of, **more))


def pod(**spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        pytest.param(
            pod(
                volumes=[{"name": "db-password", "secret": {"secretName": "db"}}, {"name": "x", "ephemeral": {"a": 1}}]
            ),
            pod(volumes=[{"name": "x", "ephemeral": {}}]),
            id="volumes of Secrets go as a whole, those that a verdict depends on stay",
        ),
        pytest.param(
            pod(topologySpreadConstraints=[{"maxSkew": "KEY", "labelSelector": None, "topologyKey": ["KEY"]}]),
            pod(topologySpreadConstraints=[{"maxSkew": "KEY", "labelSelector": None, "topologyKey": []}]),
            id="what has the wrong type has it still",
        ),
        pytest.param(
            pod(topologySpreadConstraints="KEY", affinity=["KEY"], tolerations=[7]),
            pod(topologySpreadConstraints="", affinity=[], tolerations=[7]),
            id="a text where none belongs says nothing",
        ),
        pytest.param(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": "n1", "annotations": {"evenspread.io/skip": "true", "token": "KEY"}},
                "status": {"addresses": ["10.0.0.1"], "allocatable": {"cpu": "2"}},
            },
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": "n1", "annotations": {"evenspread.io/skip": "true"}},
                "status": {"allocatable": {"cpu": "2"}},
            },
            id="annotations that are read, and no addresses",
        ),
        pytest.param(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-1", "token": "KEY"}},
                "status": {"containerStatuses": [{"name": "c", "restartCount": 3, "image": "KEY"}]},
            },
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-1"}},
                "status": {"containerStatuses": [{"name": "c", "restartCount": 3}]},
            },
            id="what decides when a controller removes a pod",
        ),
        pytest.param(
            {
                "apiVersion": "batch.volcano.sh/v1alpha1",
                "kind": "Job",
                "metadata": {"name": "train", "managedFields": ["KEY"]},
                "spec": {
                    "plugins": {"env": ["KEY"]},
                    "tasks": [
                        {"replicas": 3, "name": "KEY", "template": {"spec": {"containers": [{"args": ["KEY"]}]}}}
                    ],
                },
            },
            {
                "apiVersion": "batch.volcano.sh/v1alpha1",
                "kind": "Job",
                "metadata": {"name": "train"},
                "spec": {"tasks": [{"replicas": 3, "template": {"spec": {"containers": [{}]}}}]},
            },
            id="a custom resource, along the paths of its kind",
        ),
        pytest.param(
            {
                "apiVersion": "apps/v1",
                "kind": "StatefulSet",
                "metadata": {"resourceVersion": "7", "finalizers": ["KEY"]},
                "spec": {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"dataSource": "KEY"}}]},
            },
            {
                "apiVersion": "apps/v1",
                "kind": "StatefulSet",
                "metadata": {},
                "spec": {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {}}]},
            },
            id="the names of a set's claims",
        ),
        pytest.param(
            {
                "apiVersion": "monitoring.coreos.com/v1",
                "kind": "Prometheus",
                "spec": {
                    "replicas": 2,
                    "secrets": ["KEY"],
                    "topologySpreadConstraints": [{"maxSkew": 1, "additionalLabelSelectors": "OnShard", "x": "KEY"}],
                },
            },
            {
                "apiVersion": "monitoring.coreos.com/v1",
                "kind": "Prometheus",
                "spec": {
                    "replicas": 2,
                    "topologySpreadConstraints": [{"maxSkew": 1, "additionalLabelSelectors": "OnShard"}],
                },
            },
            id="constraints alone, with what the operator reads of them",
        ),
        pytest.param(
            {
                "apiVersion": "elasticsearch.k8s.elastic.co/v1",
                "kind": "Elasticsearch",
                "spec": {
                    "nodeSets": [{"count": 3, "podTemplate": {}, "zoneAwareness": {"topologyKey": "KEY"}, "x": "KEY"}]
                },
            },
            {
                "apiVersion": "elasticsearch.k8s.elastic.co/v1",
                "kind": "Elasticsearch",
                "spec": {"nodeSets": [{"count": 3, "podTemplate": {}, "zoneAwareness": {}}]},
            },
            id="a template, and that zoneAwareness stands beside it",
        ),
        pytest.param(
            {
                "apiVersion": "kubeflow.org/v1",
                "kind": "TFJob",
                "spec": {"tfReplicaSpecs": {"Worker": {"replicas": 2, "template": {}, "more": "KEY"}}},
            },
            {
                "apiVersion": "kubeflow.org/v1",
                "kind": "TFJob",
                "spec": {"tfReplicaSpecs": {"Worker": {"replicas": 2, "template": {}}}},
            },
            id="a map of templates",
        ),
    ],
)
def test_what_is_kept(given, kept):
    assert projected(given) == kept


def test_a_configured_kind_is_read_along_its_paths():
    thing = EmbeddedKind(
        api_version="example.com/v1", kind="Thing", template_path="spec.pod", replicas_path="spec.size"
    )
    given = {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "spec": {"size": 3, "pod": {"spec": {"x": 1}}, "key": "KEY"},
    }
    assert projected(given, embedded=(thing,))["spec"] == {"size": 3, "pod": {"spec": {}}}
    assert not is_read(TypeMeta(api_version="example.com/v1", kind="Thing"))
    assert projected(given) == {"apiVersion": "example.com/v1", "kind": "Thing"}


def test_a_snapshot_of_what_was_projected_is_the_same():
    whole = json.dumps(full("v1.Deployment")).encode()
    of = TypeMeta(api_version="apps/v1", kind="Deployment")
    once = project(whole, of)
    assert project(once, of) == once


def test_what_is_no_object_is_refused():
    with pytest.raises(msgspec.DecodeError):
        project(b"[]", TypeMeta(api_version="v1", kind="Pod"))
