"""Pods that say more than any pod that people run."""

import json
import time

import pytest

from webhook.core.api.selectors import compile_selector
from webhook.core.api.types import LabelSelector, TypeMeta
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.immense_pods import MOST_PARTS
from webhook.core.index.readers import decode_object
from webhook.core.index.tables.pod_table import MOST_TERMS_COMPARED

POD = TypeMeta(api_version="v1", kind="Pod")
APP = compile_selector(LabelSelector(match_labels={"app": "web"}))


def pod(name="web", namespace="shop", labels=None, **spec):
    meta = {"name": name, "namespace": namespace, "labels": labels or {"app": "web"}, "uid": name}
    spec = {"nodeName": "n1", "containers": [{"name": "c"}], **spec}
    return decode_object(json.dumps({"metadata": meta, "spec": spec, "status": {"phase": "Running"}}).encode(), POD)


def anti(*expressions, **more):
    terms = [{"topologyKey": "zone", "labelSelector": {"matchExpressions": [each]}, **more} for each in expressions]
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def exists(count, start=0):
    return [{"key": f"k{number}", "operator": "DoesNotExist"} for number in range(start, start + count)]


def sidecar(number):
    port = {"containerPort": 1, "hostPort": number + 1}
    return {"name": f"c{number}", "restartPolicy": "Always", "ports": [port]}


def many(count):
    """Each field of which the index takes something for each part that it has."""
    requests = {f"example.com/{number}": f"0.{number}123456789E-5" for number in range(count)}
    values = [{"key": "k", "operator": "In", "values": [f"v{number}" for number in range(count)]}]
    return [
        pytest.param({"labels": {f"k{number}": "v" for number in range(count)}}, id="labels"),
        pytest.param({"containers": [{"name": "c", "resources": {"requests": requests}}]}, id="requests"),
        pytest.param({"containers": [{"name": "c", "resources": {"limits": requests}}]}, id="limits"),
        pytest.param({"resources": {"requests": requests}}, id="requests of the pod"),
        pytest.param({"overhead": requests}, id="overhead"),
        pytest.param({"containers": [{"name": f"c{number}"} for number in range(count)]}, id="containers"),
        pytest.param({"initContainers": [sidecar(number) for number in range(count)]}, id="sidecars with ports"),
        pytest.param(
            {"volumes": [{"name": f"v{n}", "persistentVolumeClaim": {"claimName": f"c{n}"}} for n in range(count)]},
            id="volumes",
        ),
        pytest.param({"affinity": anti(*exists(count))}, id="terms"),
        pytest.param({"affinity": anti(*values)}, id="values of a term"),
        pytest.param({"affinity": anti(*exists(1), namespaces=[f"n{n}" for n in range(count)])}, id="namespaces"),
        pytest.param(
            {"affinity": anti(*exists(1), namespaceSelector={"matchExpressions": values})}, id="namespaces by labels"
        ),
    ]


@pytest.mark.parametrize("said", many(20_000))
def test_an_event_of_one_holds_up_nobody(said):
    index, immense = ClusterIndex(), pod(**said)
    took = []
    for _ in range(3):
        began = time.process_time()  # what others do on the machine does not count
        for event in ("ADDED", "MODIFIED", "DELETED"):
            index.apply(event, immense)
        took.append(time.process_time() - began)
    assert min(took) < 0.01


@pytest.mark.parametrize("said", many(MOST_PARTS + 1))
def test_it_counts_for_nobody_and_runs(said):
    index = ClusterIndex()
    index.apply("ADDED", pod(**said))
    assert index.pods.on_node("shop", "web") is not None
    assert index.pods.count("shop", APP) == {}
    assert index.pods.terms_matching("shop", {"k": "v1", "app": "web"}) == []
    assert (index.pods.host_ports(), index.pods.mounts()) == ({}, {})


def test_what_people_run_is_known_whole():
    containers = [
        {"name": f"c{n}", "resources": {"requests": {"cpu": "1", "memory": "1"}, "limits": {"cpu": "1"}}}
        for n in range(40)
    ]
    index = ClusterIndex()
    index.apply("ADDED", pod(containers=containers, affinity=anti(*exists(20))))
    assert index.pods.count("shop", APP) == {0: 1}
    assert len(index.pods.terms_matching("shop", {"app": "web"})) == 20


def test_terms_of_many_pods_of_a_namespace_hold_up_nobody():
    """They would be compared with every pod that anybody creates: 10,000 terms took 30 ms."""
    index, each = ClusterIndex(), 20
    index.apply(
        "ADDED", pod("fair", "other", affinity=anti({"key": "app", "operator": "Exists"}, namespaceSelector={}))
    )

    def hostile(number):
        odd = {"key": "app", "operator": "NotIn", "values": ["x"]}
        affinity = anti(*exists(each, number * each), odd, namespaceSelector={})
        return pod(f"p{number}", "evil", affinity=affinity)

    few = MOST_TERMS_COMPARED // each - 1
    for number in range(few):
        index.apply("ADDED", hostile(number))
    assert len(index.pods.terms_matching("shop", {"app": "web"})) == few * each + 2
    for number in range(few, 100):
        index.apply("ADDED", hostile(number))
    assert len(index.pods.terms_matching("shop", {"app": "web"})) == 1
    for number in range(1, 100):
        index.apply("DELETED", hostile(number))
    assert len(index.pods.terms_matching("shop", {"app": "web"})) == each + 2


def test_terms_about_all_namespaces_are_found_by_their_label():
    index = ClusterIndex()
    for number in range(300):
        only = {"key": "app", "operator": "In", "values": [f"web-{number}"]}
        index.apply("ADDED", pod(f"p{number}", "other", affinity=anti(only, namespaceSelector={})))
    assert [len(index.pods.terms_matching("shop", {"app": f"web-{number}"})) for number in (7, 299, 300)] == [1, 1, 0]
