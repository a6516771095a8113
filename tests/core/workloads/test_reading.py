"""Where each kind keeps its pod templates."""

import gzip
import json
import re
from pathlib import Path

import msgspec
import pytest

from webhook.core.api.types import LabelSelector, TypeMeta
from webhook.core.apiserver.decoding import DecodeError
from webhook.core.workloads.custom_kinds import EmbeddedKind
from webhook.core.workloads.kind_fields import has_template
from webhook.core.workloads.reading import read_exactly, read_meta, read_workload, stated_type
from webhook.core.workloads.workload import Strategy

POD = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c"}]}}
REVIEWS = Path(__file__).parents[2] / "testdata" / "reviews" / "reviews.jsonl.gz"


def read(api_version, kind, **body):
    return read_workload({"apiVersion": api_version, "kind": kind, "metadata": {"name": "web"}, **body})


def paths(workload):
    return [(template.path, template.replicas) for template in workload.templates]


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "expected"),
    [
        ("v1", "ReplicationController", {"replicas": 2, "template": POD}, [("spec.template.", 2)]),
        ("apps/v1", "Deployment", {"replicas": 2, "template": POD}, [("spec.template.", 2)]),
        ("apps/v1", "ReplicaSet", {"template": POD}, [("spec.template.", None)]),
        ("apps/v1", "StatefulSet", {"replicas": 3, "template": POD}, [("spec.template.", 3)]),
        ("apps/v1", "DaemonSet", {"template": POD}, [("spec.template.", None)]),
        ("batch/v1", "Job", {"parallelism": 4, "template": POD}, [("spec.template.", 4)]),
        (
            "batch/v1",
            "CronJob",
            {"jobTemplate": {"spec": {"parallelism": 5, "template": POD}}},
            [("spec.jobTemplate.spec.template.", 5)],
        ),
        ("argoproj.io/v1alpha1", "Rollout", {"replicas": 2, "template": POD}, [("spec.template.", 2)]),
        ("apps.kruise.io/v1alpha1", "CloneSet", {"replicas": 2, "template": POD}, [("spec.template.", 2)]),
        ("apps.kruise.io/v1beta1", "StatefulSet", {"replicas": 2, "template": POD}, [("spec.template.", 2)]),
        ("apps.kruise.io/v1alpha1", "DaemonSet", {"template": POD}, [("spec.template.", None)]),
        (
            "leaderworkerset.x-k8s.io/v1",
            "LeaderWorkerSet",
            {"replicas": 2, "leaderWorkerTemplate": {"size": 4, "leaderTemplate": POD, "workerTemplate": POD}},
            [("spec.leaderWorkerTemplate.leaderTemplate.", 2), ("spec.leaderWorkerTemplate.workerTemplate.", None)],
        ),
        (
            "jobset.x-k8s.io/v1alpha2",
            "JobSet",
            {"replicatedJobs": [{}, {"template": {"spec": {"parallelism": 2, "template": POD}}}]},
            [("spec.replicatedJobs[1].template.spec.template.", 2)],
        ),
        (
            "ray.io/v1",
            "RayCluster",
            {"headGroupSpec": {"template": POD}, "workerGroupSpecs": [{"replicas": 3, "template": POD}]},
            [("spec.headGroupSpec.template.", None), ("spec.workerGroupSpecs[0].template.", 3)],
        ),
        (
            "ray.io/v1",
            "RayJob",
            {"rayClusterSpec": {"headGroupSpec": {"template": POD}}, "submitterPodTemplate": POD},
            [("spec.rayClusterSpec.headGroupSpec.template.", None), ("spec.submitterPodTemplate.", None)],
        ),
        (
            "ray.io/v1",
            "RayService",
            {"rayClusterConfig": {"workerGroupSpecs": [{"replicas": 1, "template": POD}]}},
            [("spec.rayClusterConfig.workerGroupSpecs[0].template.", 1)],
        ),
        (
            "kubeflow.org/v1",
            "PyTorchJob",
            {"pytorchReplicaSpecs": {"Master": {"replicas": 1, "template": POD}, "Worker": {"template": POD}}},
            [("spec.pytorchReplicaSpecs.Master.template.", 1), ("spec.pytorchReplicaSpecs.Worker.template.", None)],
        ),
        (
            "kubeflow.org/v2beta1",
            "MPIJob",
            {"mpiReplicaSpecs": {"Launcher": {"template": POD}}},
            [("spec.mpiReplicaSpecs.Launcher.template.", None)],
        ),
        (
            "kubeflow.org/v1",
            "TFJob",
            {"tfReplicaSpecs": {"a.b": {"template": POD}}},
            [("spec.tfReplicaSpecs[a.b].template.", None)],
        ),
        (
            "batch.volcano.sh/v1alpha1",
            "Job",
            {"tasks": [{"replicas": 6, "template": POD}]},
            [("spec.tasks[0].template.", 6)],
        ),
        ("serving.knative.dev/v1", "Service", {"template": POD}, [("spec.template.", None)]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_templates_of_each_kind(api_version, kind, spec, expected):
    workload = read(api_version, kind, spec=spec)
    assert paths(workload) == expected
    assert all(template.pod.labels == {"app": "web"} for template in workload.templates)
    assert has_template(api_version, kind)


def test_a_rollout_may_borrow_the_template_of_a_deployment():
    found = read("argoproj.io/v1alpha1", "Rollout", spec={"workloadRef": {"kind": "Deployment", "name": "web"}})
    assert found.templates == ()


def test_a_pod_is_its_own_template():
    pod = read("v1", "Pod", metadata={"name": "web", "labels": {"app": "web"}}, spec=POD["spec"])
    assert paths(pod) == [("", 1)]
    assert (pod.meta.name, pod.built_in, pod.templates[0].pod.labels) == ("web", True, {"app": "web"})


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [("v1", "Service"), ("v1", "ConfigMap"), ("autoscaling/v1", "Scale"), ("example.com/v1", "Deployment"), ("", "")],
)
def test_other_kinds_are_none(api_version, kind):
    assert read(api_version, kind) is None
    assert not has_template(api_version, kind)


def test_what_is_around_the_template():
    found = read(
        "apps/v1",
        "Deployment",
        spec={
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "50%", "maxUnavailable": 0}},
            "template": POD,
        },
    )
    assert (found.replicas, found.selector) == (3, LabelSelector(match_labels={"app": "web"}))
    assert found.strategy == Strategy(type="RollingUpdate", max_surge="50%", max_unavailable=0)
    assert read("v1", "ReplicationController", spec={"selector": {"a": "b"}}).selector == LabelSelector(
        match_labels={"a": "b"}
    )
    assert read("batch/v1", "Job", spec={"suspend": True, "template": POD}).suspended


THING = EmbeddedKind(
    api_version="example.com/v1",
    kind="Thing",
    template_path="spec.pools[*].pod",
    replicas_path="count",
    selector_path="spec.select",
)


@pytest.mark.parametrize(
    ("kind", "spec", "expected"),
    [
        pytest.param(
            "StatefulSet", {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}, (("data",), 0), id="one"
        ),
        pytest.param(
            "StatefulSet",
            {"volumeClaimTemplates": [{"metadata": {"name": "data"}}, {}], "ordinals": {"start": 3}},
            (("data", ""), 3),
            id="two, one without a name, and later ordinals",
        ),
        pytest.param("StatefulSet", {"volumeClaimTemplates": []}, None, id="none"),
        pytest.param("Deployment", {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}, None, id="another kind"),
        pytest.param("Deployment", {"volumeClaimTemplates": 5, "ordinals": 5}, None, id="which has no such fields"),
    ],
)
def test_claims_of_a_stateful_set(kind, spec, expected):
    found = read_workload({"apiVersion": "apps/v1", "kind": kind, "spec": spec})
    assert (found.claims and (found.claims.names, found.first_ordinal)) == expected


@pytest.mark.parametrize(("policy", "parallel"), [(None, False), ("OrderedReady", False), ("Parallel", True)])
def test_whether_ordinals_wait_for_one_another(policy, parallel):
    spec = {"podManagementPolicy": policy}
    found = read_workload({"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": spec})
    assert found.parallel is parallel


def test_a_configured_kind():
    thing = {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {"name": "t"},
        "spec": {"pools": [{"count": 2, "pod": POD}, {"pod": POD}, "x"], "select": {"matchLabels": {"a": "b"}}},
    }
    found = read_workload(thing, (THING,))
    assert paths(found) == [("spec.pools[0].pod.", 2), ("spec.pools[1].pod.", None)]
    assert (found.selector, found.built_in) == (LabelSelector(match_labels={"a": "b"}), False)
    assert read_workload(thing) is None
    thing["spec"]["select"] = {"a": "b"}
    assert read_workload(thing, (THING,)).selector == LabelSelector(match_labels={"a": "b"})
    assert has_template("example.com/v1", "Thing", (THING,))


@pytest.mark.parametrize(
    "spec",
    [None, [], "x", {"template": None}, {"replicatedJobs": {}}, {"replicatedJobs": [None, 1, {"template": []}]}],
    ids=str,
)
def test_what_is_not_where_it_should_be_is_absent(spec):
    assert read("jobset.x-k8s.io/v1alpha2", "JobSet", spec=spec).templates == ()


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"{", "the object is not valid JSON"),
        (b'{"metadata": ' + b"[" * 4_000, "the object is not valid JSON"),
    ],
    ids=["cut off", "too deep"],
)
@pytest.mark.parametrize(("api_version", "kind"), [("v1", "Pod"), ("argoproj.io/v1alpha1", "Rollout")])
def test_what_is_no_json(raw, text, api_version, kind):
    with pytest.raises(DecodeError, match=text):
        read_workload(raw, api_version=api_version, kind=kind)


def test_metadata_are_read_whatever_else_is_wrong():
    assert read_meta({"metadata": {"name": "x"}, "spec": 5}).name == "x"
    assert read_meta(b'{"metadata": 5}').name == ""
    assert read_meta(b"{").name == ""


def test_a_type_of_a_wrong_type_is_refused_as_text_would_be():
    with pytest.raises(DecodeError) as of_text:
        stated_type(b'{"apiVersion": 5, "kind": "Pod"}')
    with pytest.raises(DecodeError, match=re.escape(str(of_text.value))):
        stated_type({"apiVersion": 5, "kind": "Pod", "metadata": {}})


def test_both_ways_of_reading_agree_on_real_objects():
    with gzip.open(REVIEWS, "rt") as lines:
        objects = [json.loads(line)["review"]["request"]["object"] for line in lines]
    read_both = [(read_workload(each), read_workload(json.dumps(each).encode())) for each in objects if each]
    assert len(read_both) > 100
    assert all(one == other for one, other in read_both)
    assert msgspec.json.encode(read_both[0][0])


def test_values_that_do_not_fit_are_refused_as_bytes_would_be():
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"topologySpreadConstraints": [{"maxSkew": "1"}]}}
    text = (
        "json: cannot unmarshal string into Go struct field"
        " TopologySpreadConstraint.spec.topologySpreadConstraints.maxSkew of type int32"
    )
    for raw in (pod, json.dumps(pod).encode()):
        with pytest.raises(DecodeError) as caught:
            read_workload(raw)
        assert caught.value.text == text


def test_read_exactly_text_becomes_what_the_api_server_keeps():
    text = b'{"apiVersion": "v1", "kind": "Pod", "spec": {"hostNetwork": true, "hostnetwork": false}}'
    value, warnings = read_exactly(text, TypeMeta(api_version="v1", kind="Pod"))
    assert (value["spec"]["hostNetwork"], warnings) == (True, ('unknown field "spec.hostnetwork"',))
