import gzip
import json
from pathlib import Path

import msgspec
import pytest
from build import index, meta, namespace, owner, selector, service

from webhook.core.api.selectors import EVERYTHING, compile_selector, selector_from_labels
from webhook.core.api.types import Pod, TypeMeta
from webhook.core.index.readers import decode_object
from webhook.core.scheduler.plugins.default_selector import default_selector, label_selector, pod_services

# Source: pkg/scheduler/framework/plugins/helper/spread_test.go TestGetPodServices, TestDefaultSelector.
THREE = tuple(service(f"service-{i}", f"app=test-{i}") for i in range(3))
LABEL = "pod=yes"


@pytest.mark.parametrize(
    ("services", "labelled", "found"),
    [
        pytest.param(THREE, "app=test-0 label=label-0", ["service-0"], id="upstream's pod-0"),
        pytest.param(THREE, "app=test-1 label=label-1", ["service-1"], id="upstream's pod-1"),
        pytest.param(THREE, "app=test-2 label=label-2", ["service-2"], id="upstream's pod-2"),
        pytest.param(THREE, "app=test-3 label=label-3", [], id="upstream's pod-3"),
        pytest.param(THREE, "app=test-4 label=label-4", [], id="upstream's pod-4"),
        pytest.param([service("s", None)], "app=web", [], id="no selector selects nothing"),
        pytest.param([service("s", "{}")], "app=web", ["s"], id="an empty selector selects everything"),
        pytest.param([service("s", "app=web tier=front")], "app=web", [], id="all pairs must match"),
        pytest.param([service("s", "app=web", namespace="other")], "app=web", [], id="of another namespace"),
        pytest.param([service("b", "app=web"), service("a", "{}")], "app=web", ["a", "b"], id="by name"),
    ],
)
def test_services_of_a_pod(services, labelled, found):
    made = index(*services)
    assert [s.metadata.name for s in pod_services(meta("p", labelled=labelled).labels or {}, "shop", made)] == found


@pytest.mark.parametrize(
    ("cluster", "owned", "deduced"),
    [
        pytest.param([], None, "", id="upstream: nothing known"),
        pytest.param([service("s", LABEL)], None, "pod=yes", id="upstream: a service"),
        pytest.param(
            [service("s", LABEL), owner("ReplicaSet/o", "rs=yes")],
            "ReplicaSet/o",
            "pod=yes,rs=yes",
            id="upstream: a ReplicaSet",
        ),
        pytest.param(
            [service("s", LABEL), owner("ReplicationController/o", "rc=yes")],
            "ReplicationController/o",
            "pod=yes,rc=yes",
            id="upstream: a ReplicationController",
        ),
        pytest.param(
            [service("s", LABEL), owner("StatefulSet/o", "ss=yes")],
            "StatefulSet/o",
            "pod=yes,ss=yes",
            id="upstream: a StatefulSet",
        ),
        pytest.param([owner("ReplicaSet/o", "rs=yes")], "ReplicaSet/other", "", id="the owner is not known"),
        pytest.param([owner("Job/o", "job=yes")], "Job/o", "", id="a Job contributes nothing"),
        pytest.param([owner("DaemonSet/o", "ds=yes")], "DaemonSet/o", "", id="a DaemonSet contributes nothing"),
        pytest.param([owner("ReplicaSet/o")], "ReplicaSet/o", "", id="an owner without selector"),
        pytest.param([owner("ReplicaSet/o", "a/b/c=d")], "ReplicaSet/o", "", id="an owner with an unreadable selector"),
        pytest.param([owner("StatefulSet/o", "{}")], "StatefulSet/o", "", id="an owner with an empty selector"),
        pytest.param(
            [owner("StatefulSet/o", "app=web tier!=data track")],
            "StatefulSet/o",
            "app=web,tier notin (data),track",
            id="expressions of the owner",
        ),
        pytest.param(
            [service("a", "pod=yes"), service("b", "pod=yes"), owner("ReplicaSet/o", "pod=yes")],
            "ReplicaSet/o",
            "pod=yes,pod=yes",
            id="services merge, an owner adds its own pair again",
        ),
        pytest.param(
            [service("s", LABEL), owner("ReplicationController/o", "pod=no")],
            "ReplicationController/o",
            "pod=no",
            id="a ReplicationController's pair replaces the service's",
        ),
        pytest.param(
            [service("s", LABEL), owner("ReplicaSet/o", "pod=no")],
            "ReplicaSet/o",
            "pod=yes,pod=no",
            id="a ReplicaSet's pair contradicts the service's",
        ),
    ],
)
def test_default_selector(cluster, owned, deduced):
    made = default_selector(meta("p", labelled=LABEL, owner=owned), "shop", index(namespace(), *cluster))
    assert made.text == deduced
    assert made.empty is (deduced == "")


@pytest.mark.parametrize(
    ("parts", "written"),
    [
        pytest.param(["a=1 b!=2 c"], "a=1 b!=2 c", id="expressions stay"),
        pytest.param(["a=1", "a=1"], "a=1", id="a pair twice is said once"),
        pytest.param(["b!=2", "b!=2"], "b!=2", id="an expression too"),
    ],
)
def test_a_selector_as_a_constraint_says_it(parts, written):
    compiled = EVERYTHING
    for part in parts:
        compiled = compiled.joined(compile_selector(selector(part)).requirements)
    assert label_selector(compiled) == selector(written)


def test_two_values_of_one_key_still_select_nothing():
    both = selector_from_labels({"a": "1"}).joined(selector_from_labels({"a": "2"}).requirements)
    made = label_selector(both)
    assert made.match_labels == {"a": "1"}
    (second,) = made.match_expressions
    assert (second.key, second.operator, second.values) == ("a", "In", ("2",))
    assert not compile_selector(made).matches({"a": "1"})


def test_default_selector_agrees_with_kube_scheduler():
    """192 scenarios recorded with Kubernetes 1.37.1; the conformance program's README says how."""
    path = Path(__file__).parents[3] / "testdata" / "default-selector.jsonl.gz"
    with gzip.open(path) as lines:
        cases = [json.loads(line) for line in lines]
    assert len(cases) == 192
    for scenario, expected in ((case["scenario"], case["expected"]) for case in cases):
        kinds = ("services", "replicaSets", "statefulSets", "replicationControllers")
        found = [entry for kind in kinds for entry in scenario.get(kind, ())]
        values = [decode_object(json.dumps(each).encode(), msgspec.convert(each, TypeMeta)) for each in found]
        incoming = msgspec.convert(scenario["pod"], Pod)
        made = default_selector(incoming.meta, incoming.meta.namespace, index(*values))
        assert made.text == expected["defaultSelector"], scenario["id"]
