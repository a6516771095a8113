"""When rules about places are asked at all, by the example of `tainted-nodes-counted`."""

import pytest
from build import cluster
from core.rules.placement.places import TAINTED, ZONE
from manifest import FIXED, PLAIN, decide, said, told, web, workload
from msgspec.structs import replace

from webhook.core.budget import Missing
from webhook.core.scheduler.profile import SchedulerProfile


@pytest.mark.parametrize(
    ("manifest", "policy", "expected"),
    [
        pytest.param(
            web(ZONE, replicas=7, schedulerName="volcano"), FIXED, "another scheduler", id="another scheduler"
        ),
        pytest.param(
            web(ZONE, replicas=7),
            replace(PLAIN, scheduler_profiles=(SchedulerProfile(disabled_filters=("TaintToleration",)),)),
            "the scheduler's profile disables TaintToleration",
            id="a profile without a filter",
        ),
        pytest.param(
            web(ZONE, replicas=7),
            replace(PLAIN, scheduler_profiles=(SchedulerProfile(name="other", disabled_filters=("TaintToleration",)),)),
            None,
            id="a profile of others",
        ),
    ],
)
def test_what_makes_another_scheduler_of_it(manifest, policy, expected):
    answers = said(TAINTED, manifest, policy=policy, index=cluster("a: n1 | b: n2 | c: ~n3"))
    assert answers == [
        "at most 2 of 7 fit: tainted zone c stays at 0" if expected is None else f"not evaluated: {expected}"
    ]


def test_what_is_missing():
    manifest = web(ZONE, replicas=7)
    index = cluster("a: n1 | b: n2 | c: ~n3")
    assert said(TAINTED, manifest) == ["not evaluated: no cluster"]
    index.mark_missing("pods", "403 Forbidden")
    assert said(TAINTED, manifest, index=index) == ["not evaluated: pods: 403 Forbidden"]


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        pytest.param({"age": 60.0}, set(), id="heard of a minute ago"),
        pytest.param({"age": 61.0}, {Missing.STALE.value}, id="heard of too long ago"),
        pytest.param({"until": 0.001}, {Missing.NO_TIME.value}, id="no time"),
    ],
)
def test_a_cluster_that_nobody_knows_for_sure(moment, expected):
    answer = decide(web(ZONE, replicas=7), policy=FIXED, index=cluster("a: n1 | b: n2 | c: ~n3"), **moment)
    assert {each.missing for each in answer.not_evaluated if each.rule == TAINTED} == expected
    assert [TAINTED in each for each in answer.warnings].count(True) == (0 if expected else 1)


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(web(ZONE, replicas=1), id="a single replica"),
        pytest.param(web(ZONE, kind="DaemonSet"), id="a DaemonSet"),
        pytest.param(web(ZONE, kind="Job", replicas=7), id="a Job"),
        pytest.param(web(ZONE, kind="Pod"), id="a pod"),
        pytest.param(web("zone hard 0 app=web", replicas=7), id="a constraint that is refused"),
        pytest.param(web("zone hard 1 app=web rack=r", replicas=7), id="a selector of others"),
        pytest.param(web("zone hard 1 {}", replicas=7), id="an empty selector"),
        pytest.param(web("zone hard 1 null", replicas=7), id="a null selector"),
        pytest.param(
            web("zone hard 1 app=web keys:team", kind="CloneSet", replicas=7, selector="app=web"),
            id="a key that is on no pod",
        ),
    ],
)
def test_objects_without_a_placement_finding(manifest):
    if "team" in str(manifest):  # ignored by Kubernetes, so that the constraint holds as it is
        expected = ["warn at most 2 of 7 fit: tainted zone c stays at 0; set nodeTaintsPolicy: Honor"]
    else:
        expected = []
    assert told(TAINTED, manifest, cluster("a: n1 | b: n2 | c: ~n3"), FIXED) == expected


def test_a_label_that_comes_later_proves_nothing():
    index = cluster("a: n1 | b: n2 | c: ~n3")
    by_name = web("zone hard 1 app=web keys:statefulset.kubernetes.io/pod-name", kind="StatefulSet", replicas=7)
    assert told(TAINTED, by_name, index, FIXED) == []
    selected = web("zone hard 1 app=web pod-template-hash=1", replicas=7)
    assert told(TAINTED, selected, index, FIXED) == []


def test_a_selector_that_cannot_be_read():
    manifest = web(ZONE, replicas=7)
    constraint = manifest["spec"]["template"]["spec"]["topologySpreadConstraints"][0]
    constraint["labelSelector"] = {"matchExpressions": [{"key": "app", "operator": "Is"}]}
    assert told(TAINTED, manifest, cluster("a: n1 | b: n2 | c: ~n3"), FIXED) == []


def test_a_kind_without_a_selector():
    manifest = workload("RayCluster", "app=web")
    group = {"replicas": 7, "template": web(ZONE)["spec"]["template"]}
    manifest["spec"] = {"headGroupSpec": {"template": web()["spec"]["template"]}, "workerGroupSpecs": [group]}
    # Any of the two pods that run may be its own.
    assert told(TAINTED, manifest, cluster("a: n1=1 | b: n2=1 | c: ~n3"), FIXED) == [
        "warn at most 2 of 7 fit: tainted zone c stays at 0; set nodeTaintsPolicy: Honor"
    ]


def test_admission_warns():
    answer = decide(web(ZONE, replicas=7), policy=FIXED, index=cluster("a: n1 | b: n2 | c: ~n3"))
    assert answer.allowed
    assert [each for each in answer.warnings if TAINTED in each] == [
        "evenspread/tainted-nodes-counted: at most 2 of 7 fit: tainted zone c stays at 0; set nodeTaintsPolicy: Honor"
    ]
