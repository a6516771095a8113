"""The largest skew that a scale-in can leave, from the counts of today."""

import json

import pytest
from cli.snapshots import snapshot
from manifest import workload
from report.test_scanned import skew
from scans import context, snapshot_of

from webhook.core.policy.options import ScaleIn
from webhook.core.policy.policy import Policy
from webhook.core.scan.actual_skew import unguarded_scale_in, worst_after_scale_in
from webhook.core.scan.scan_context import scan_context
from webhook.core.scan.scan_results import GuardState, ScaleInState
from webhook.core.scan.workload_scan import scan_workload

REPORT, GUARD = Policy(scale_in=ScaleIn.REPORT), Policy(scale_in=ScaleIn.GUARD)


@pytest.mark.parametrize(
    ("fields", "worst"),
    [
        pytest.param({"domains": {"a": 3, "b": 3, "c": 3}}, 3, id="one zone keeps its pods, another loses all"),
        pytest.param({"domains": {"a": 3, "b": 3}, "others": {"a": 1, "b": 1}}, 2, id="other workloads' pods stay"),
        pytest.param({"domains": {"a": 3, "b": 2}, "others": {"b": 2}}, 2, id="other pods are the minimum"),
        pytest.param({"domains": {"a": 3}}, 0, id="a single domain has no skew"),
        pytest.param({"domains": {"a": 3}, "min_domains": 2}, 3, id="fewer domains than minDomains"),
        pytest.param({"domains": {"a": 3}, "empty": 7}, 3, id="empty domains that are not listed"),
        pytest.param({"domains": {}}, 0, id="no domain"),
    ],
)
def test_the_worst_skew(fields, worst):
    assert worst_after_scale_in(skew(**fields)) == worst


@pytest.mark.parametrize(
    ("skews", "worst", "above"),
    [
        pytest.param([], 0, False, id="no constraint"),
        pytest.param([{"domains": {"a": 1, "b": 1}}], 1, False, id="within maxSkew"),
        pytest.param([{"domains": {"a": 2, "b": 2}}], 2, True, id="above maxSkew"),
        pytest.param(
            [{"domains": {"a": 4, "b": 4}, "max_skew": 5}, {"domains": {"a": 2, "b": 2}}], 4, True, id="a smaller one"
        ),
        pytest.param(
            [{"domains": {"a": 4, "b": 4}, "max_skew": 5}, {"domains": {"a": 1, "b": 1}}], 4, False, id="none above"
        ),
    ],
)
def test_of_several_constraints_each_has_its_own_limit(skews, worst, above):
    expected = ScaleInState(worst_skew=worst, above=above, guard=GuardState.REPORT)
    assert unguarded_scale_in([skew(**fields) for fields in skews], GuardState.REPORT) == expected


@pytest.mark.parametrize(
    ("kind", "policy", "annotation", "guard"),
    [
        pytest.param("Deployment", Policy(), None, None, id="off"),
        pytest.param("Deployment", REPORT, None, GuardState.REPORT, id="report"),
        pytest.param("Deployment", GUARD, None, GuardState.REQUESTED, id="guard"),
        pytest.param("Deployment", Policy(), "guard", GuardState.REQUESTED, id="the workload opts in"),
        pytest.param("Deployment", GUARD, "off", None, id="the workload opts out"),
        pytest.param("StatefulSet", GUARD, None, None, id="no ReplicaSet removes its pods"),
    ],
)
def test_the_policy_decides_what_is_measured(kind, policy, annotation, guard):
    meta = {} if annotation is None else {"annotations": {"evenspread.io/scale-in": annotation}}
    web = workload(kind, "app=web", "zone hard 1 app=web", meta=meta)
    found = scan_workload(
        json.dumps(web).encode(), scan_context(context(snapshot_of(snapshot("a: a0=2 | b: b0=2")), policy))
    )
    assert found.scale_in == (guard and ScaleInState(worst_skew=2, above=True, guard=guard))
