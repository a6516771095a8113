"""Fewest replicas that leave zones empty."""

from functools import partial

import pytest
from build import autoscaler, cluster
from manifest import DENY, RECENT, examined, findings_of, said, told, web

from webhook.core.context import Context
from webhook.core.policy.policy import Mode
from webhook.core.review.examination import examine
from webhook.core.rules.rule_set import BY_ID

MINIMUM = "minimum-below-domains"
THREE = "a: n1 n2 | b: n3 | c: n4"
SEVEN = " | ".join(f"z{number}: n{number}" for number in range(7))
ZONE = "zone hard 1 app=web"


def scaled(nodes, least=None, most=None, target="Deployment/web", **more):
    """The cluster, with an autoscaler of the workload if it has a maximum."""
    index = cluster(nodes, **more)
    if most is not None:
        index.apply("ADDED", autoscaler(target, most, least))
    return index


def found(rule, manifest, *args, **more):
    return told(rule, manifest, scaled(*args, **more))


below = partial(found, MINIMUM)


@pytest.mark.parametrize(
    ("least", "most", "expected"),
    [
        pytest.param(2, 9, ["the autoscaler's minimum of 2 replicas leaves 1 of 3 zones empty"], id="two for three"),
        pytest.param(3, 9, [], id="one for each"),
        pytest.param(None, 9, ["the autoscaler's minimum of 1 replica leaves 2 of 3 zones empty"], id="the default"),
        pytest.param(0, 9, [], id="to zero, on purpose"),
        pytest.param(1, 1, [], id="never more than one"),
    ],
)
def test_the_minimum_of_an_autoscaler(least, most, expected):
    for constraint in (ZONE, "zone soft 1 app=web"):
        summaries = said(MINIMUM, web(constraint), index=scaled(THREE, least, most))
        assert summaries == [f"zone[0]: {each}" for each in expected]


@pytest.mark.parametrize(
    ("replicas", "nodes", "expected"),
    [
        pytest.param(2, THREE, ["audit zone[0]: 2 replicas leave 1 of 3 zones empty; use replicas: 3"], id="two"),
        pytest.param(3, THREE, [], id="three"),
        pytest.param(1, THREE, [], id="one"),
        pytest.param(0, THREE, [], id="none"),
        pytest.param(None, THREE, [], id="unknown"),
        pytest.param(2, "a: n1 | b: n2", [], id="there are two zones"),
        pytest.param(2, "a: n1 | b: n2 | ~c: ~n3", [], id="the third is closed to the pods"),
        pytest.param(2, SEVEN, [], id="more zones than a region has"),
        pytest.param(
            2,
            SEVEN[: SEVEN.rindex(" |")],
            ["audit zone[0]: 2 replicas leave 4 of 6 zones empty; use replicas: 6"],
            id="six",
        ),
    ],
)
def test_stated_replicas(replicas, nodes, expected):
    assert below(web(ZONE, replicas=replicas), nodes) == expected


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        pytest.param(
            f"{ZONE} minDomains:4", "zone[0]: 2 replicas are below minDomains 4; use replicas: 4", id="above the zones"
        ),
        pytest.param(
            f"{ZONE} minDomains:2",
            "zone[0]: 2 replicas leave 1 of 3 zones empty; use replicas: 3",
            id="below the zones",
        ),
        pytest.param(
            "rack hard 1 app=web minDomains:3",
            "rack[0]: 2 replicas are below minDomains 3; use replicas: 3",
            id="racks",
        ),
        pytest.param("rack hard 1 app=web", None, id="racks without minDomains"),
        pytest.param("rack soft 1 app=web minDomains:3", None, id="a minDomains that is refused"),
        pytest.param("rack hard 1 app=web minDomains:100000", None, id="minDomains that make maxSkew a cap"),
        pytest.param("hostname hard 1 app=web minDomains:3", None, id="nodes come and go"),
        pytest.param("zone hard 0 app=web", None, id="a maxSkew that is refused"),
        pytest.param("zone hard 1 {}", None, id="it counts no pod"),
        pytest.param("zone hard 1 tier=front", None, id="it counts other pods"),
    ],
)
def test_what_the_minimum_is_compared_with(constraint, expected):
    assert below(web(constraint, replicas=2), THREE) == ([] if expected is None else [f"audit {expected}"])


def test_other_workloads_fill_the_zones():
    shared = web(ZONE, pods="app=web part=shop", selector="part=shop", replicas=2)
    own = web("zone hard 1 part=shop", pods="app=web part=shop", selector="part=shop", replicas=2)
    assert (len(below(shared, THREE)), len(below(own, THREE))) == (0, 1)


def test_the_minimum_is_a_finding_of_each_workload_once():
    twice = web("rack soft 1 app=web", ZONE, "zone soft 1 app=web", replicas=2)
    assert below(twice, THREE) == ["audit zone[1]: 2 replicas leave 1 of 3 zones empty; use replicas: 3"]


@pytest.mark.parametrize(
    ("manifest", "count"),
    [
        pytest.param(web(ZONE, kind="StatefulSet", replicas=2), 1, id="a StatefulSet"),
        pytest.param(web(ZONE, kind="Rollout", replicas=2), 1, id="a Rollout"),
        pytest.param(web(ZONE, kind="Job", replicas=2), 0, id="a Job"),
        pytest.param(web(ZONE, kind="CronJob"), 0, id="a CronJob"),
        pytest.param(web(ZONE, kind="DaemonSet"), 0, id="a DaemonSet"),
        pytest.param(web(ZONE, kind="Pod"), 0, id="a Pod"),
        pytest.param(web(ZONE, kind="App", replicas=2), 0, id="a kind that nobody knows"),
        pytest.param(web(replicas=2), 0, id="no constraint"),
    ],
)
def test_the_kinds_with_a_minimum(manifest, count):
    assert len(below(manifest, THREE)) == count


def test_a_finding_about_the_minimum():
    index = scaled(THREE, 1, 2)
    (finding,) = findings_of(MINIMUM, web(ZONE), index=index)
    assert (finding.path, finding.fix, finding.edits) == (
        "spec.template.spec.topologySpreadConstraints[0].topologyKey",
        "set minReplicas and maxReplicas: 3 in the autoscaler",
        (),
    )
    assert finding.detail == "1 pod cannot be in 3 zones, so losing one zone can take down the only pod"
    (finding,) = findings_of(MINIMUM, web(f"{ZONE} minDomains:5", replicas=4), index=scaled(THREE))
    assert (finding.path.rpartition(".")[2], finding.fix) == ("minDomains", "set replicas: 5")
    assert finding.detail == "4 pods cannot be in 5 zones, so losing one zone can take down at least 1 of 4 pods"


@pytest.mark.parametrize(
    ("manifest", "scaler", "expected"),
    [
        pytest.param(web(ZONE), None, {MINIMUM}, id="replicas, and perhaps an autoscaler"),
        pytest.param(web(ZONE, kind="StatefulSet"), None, {MINIMUM}, id="a StatefulSet"),
        pytest.param(web(ZONE), autoscaler("Deployment/web", 9, 3), {MINIMUM}, id="its autoscaler"),
        pytest.param(
            web(f"{ZONE} minDomains:4"), autoscaler("Deployment/web", 9, 3), set(), id="minDomains need no cluster"
        ),
        pytest.param(web(ZONE, replicas=1), None, set(), id="a single replica"),
        pytest.param(web(ZONE, kind="Pod"), None, set(), id="a Pod"),
        pytest.param(web("hostname hard 1 app=web"), None, set(), id="hostname"),
    ],
)
def test_without_a_cluster(manifest, scaler, expected):
    missing = examine(manifest, Context(policy=DENY, version=RECENT, scalers=(scaler,) if scaler else ())).not_evaluated
    assert {each.rule for each in missing} & {MINIMUM} == expected


def test_it_only_audits_and_never_deny_pods():
    modes = {each.finding.rule: each.mode for each in examined(web(ZONE), index=scaled(THREE, 2, 9)).findings}
    assert modes[MINIMUM] is Mode.AUDIT
    assert BY_ID[MINIMUM].highest_on_pods is Mode.WARN


def compositions(total, caps):
    """All ways to keep so many pods, at most ``caps`` of them in each domain."""
    if not caps:
        return [()] if total == 0 else []
    return [(kept, *rest) for kept in range(min(total, caps[0]) + 1) for rest in compositions(total - kept, caps[1:])]


SIZES = [(domains, most, fewest) for domains in (2, 3, 4) for most in range(1, 10) for fewest in range(most)]


@pytest.mark.slow
def test_the_minimum_is_a_finding_if_and_only_if_zones_must_be_empty():
    """Against every placement of the fewest pods: with a finding, none has a pod in each zone."""
    for domains, most, fewest in SIZES:
        index = scaled(" | ".join(f"z{number}: n{number}" for number in range(domains)), fewest, most)
        reachable = any(min(kept) > 0 for kept in compositions(fewest, (fewest,) * domains))
        findings = findings_of(MINIMUM, web(ZONE), index=index)
        assert bool(findings) == (not reachable and fewest > 0), (domains, most, fewest)
        for each in findings:
            least_empty = min(kept.count(0) for kept in compositions(fewest, (fewest,) * domains))
            assert f"leaves {least_empty} of {domains} zones empty" in each.summary
