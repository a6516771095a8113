"""Replicas that leave zones empty or uneven: at the minimum, and after a scale-in."""

from functools import partial
from itertools import combinations

import pytest
from build import autoscaler, cluster, namespace, selector
from manifest import DENY, RECENT, examined, findings_of, said, told, web
from msgspec.structs import replace

from webhook.core.api.selectors import valid_selector
from webhook.core.context import Context
from webhook.core.policy.options import ScaleIn
from webhook.core.policy.policy import Mode, NamespaceMatch, NamespaceSettings
from webhook.core.review.examination import examine
from webhook.core.rules.cluster.replica_range import worst_scale_in
from webhook.core.rules.rule_set import BY_ID

MINIMUM, SCALE_IN = "minimum-below-domains", "scale-in-skew"
THREE = "a: n1 n2 | b: n3 | c: n4"
SEVEN = " | ".join(f"z{number}: n{number}" for number in range(7))
ZONE = "zone hard 1 app=web"
RED = NamespaceMatch(namespace_selector=valid_selector(selector("team=red")))
TEAM = NamespaceSettings(match=RED, scale_in=ScaleIn.GUARD)


def scaled(nodes, least=None, most=None, target="Deployment/web", **more):
    """The cluster, with an autoscaler of the workload if it has a maximum."""
    index = cluster(nodes, **more)
    if most is not None:
        index.apply("ADDED", autoscaler(target, most, least))
    return index


def found(rule, manifest, *args, **more):
    return told(rule, manifest, scaled(*args, **more))


below, uneven = partial(found, MINIMUM), partial(found, SCALE_IN)


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
    ("constraint", "least", "most", "expected"),
    [
        pytest.param(ZONE, 3, 9, "from 9 to 3 replicas, scale-in can leave 3/0/0", id="all of one zone stay"),
        pytest.param("zone soft 1 app=web", 3, 9, "from 9 to 3 replicas, scale-in can leave 3/0/0", id="soft"),
        pytest.param(ZONE, 1, 9, "from 9 to 3 replicas, scale-in can leave 3/0/0", id="fewer would be more even"),
        pytest.param(ZONE, 0, 9, "from 9 to 3 replicas, scale-in can leave 3/0/0", id="to zero"),
        pytest.param(ZONE, 5, 10, "from 10 to 5 replicas, scale-in can leave 4/1/0", id="one zone has more at first"),
        pytest.param(ZONE, 7, 9, "from 9 to 7 replicas, scale-in can leave 3/3/1", id="two pods from the same zone"),
        pytest.param(ZONE, 8, 9, None, id="one pod less"),
        pytest.param(ZONE, 9, 9, None, id="no range"),
        pytest.param(ZONE, 1, 3, None, id="at most one in each zone"),
        pytest.param("zone hard 3 app=web", 2, 9, None, id="maxSkew allows all of it"),
        pytest.param(
            "zone hard 3 app=web", 3, 9, "from 9 to 3 replicas, scale-in can leave 3/0/0", id="a zone without a pod"
        ),
        pytest.param("hostname hard 1 app=web", 3, 9, None, id="nodes come and go"),
        pytest.param(f"{ZONE} minDomains:3", 3, 9, "from 9 to 3 replicas, scale-in can leave 3/0/0", id="minDomains"),
        pytest.param(f"{ZONE} minDomains:4", 3, 9, None, id="fewer zones than minDomains"),
        pytest.param("rack hard 1 app=web", 3, 9, None, id="no node has a rack"),
    ],
)
def test_the_range_of_an_autoscaler(constraint, least, most, expected):
    summaries = [] if expected is None else [f"audit zone[0]: {expected}; guard the scale-in"]
    assert uneven(web(constraint), THREE, least, most) == summaries


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param("a: n1 | b: n2", "from 9 to 5 replicas, scale-in can leave 5/0", id="two zones"),
        pytest.param(
            SEVEN, "from 9 to 3 replicas, scale-in can leave 2 pods in one zone and 0 in another", id="seven zones"
        ),
        pytest.param("a: n1 n2", None, id="one zone"),
        pytest.param("a: n1 | b: n2 | ~c: ~n3", None, id="a zone is closed to the pods, so they are uneven anyway"),
        pytest.param("n1 n2", None, id="no zones"),
    ],
)
def test_the_zones_of_a_scale_in(nodes, expected):
    found = uneven(web(ZONE), nodes, 3, 9)
    assert [each.removeprefix("audit zone[0]: ").partition(";")[0] for each in found] == (
        [expected] if expected else []
    )


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        pytest.param(web(ZONE, kind="ReplicaSet"), True, id="a ReplicaSet"),
        pytest.param(web(ZONE, kind="Rollout"), True, id="a Rollout, whose pods ReplicaSets remove"),
        pytest.param(web(ZONE, kind="StatefulSet"), False, id="a StatefulSet removes the highest ordinal"),
        pytest.param(
            web(ZONE, kind="ReplicationController", spec={"selector": {"app": "web"}}),
            False,
            id="a ReplicationController cannot be guarded",
        ),
        pytest.param(web(ZONE, kind="CloneSet"), False, id="a CloneSet has rules of its own"),
        pytest.param(web(ZONE, kind="App"), False, id="a kind that nobody knows"),
        pytest.param(web(ZONE, replicas=0), False, id="switched off"),
        pytest.param(web(ZONE, ZONE.replace("hard", "soft")), True, id="two constraints, one finding"),
    ],
)
def test_the_kinds_that_scale_in(manifest, expected):
    index = scaled(THREE, 3, 9, f"{manifest['kind']}/web")
    assert len(findings_of(SCALE_IN, manifest, index=index)) == expected


def test_a_finding_about_a_scale_in():
    (finding,) = findings_of(SCALE_IN, web(ZONE), index=scaled(THREE, 3, 9))
    assert finding.path == "spec.template.spec.topologySpreadConstraints[0].maxSkew"
    guard = "add the annotation evenspread.io/scale-in: guard to the workload"
    assert finding.fix == f"{guard}, with controller.scaleIn.guard in the chart"
    assert finding.detail == (
        "the autoscaler allows 3 to 9 replicas; a scale-in removes pods without regard to zones, so even from an even"
        " distribution it can leave a skew of 3, beyond maxSkew 1"
    )
    (finding,) = findings_of(SCALE_IN, web("zone hard 3 app=web"), index=scaled(THREE, 3, 9))
    assert finding.detail.endswith("it can leave an empty zone")


@pytest.mark.parametrize(
    ("annotation", "policy", "count"),
    [
        pytest.param(None, {}, 1, id="off, the default"),
        pytest.param(None, {"scale_in": ScaleIn.REPORT}, 1, id="reported"),
        pytest.param(None, {"scale_in": ScaleIn.GUARD}, 0, id="guarded everywhere"),
        pytest.param("guard", {}, 0, id="guarded by its annotation"),
        pytest.param("off", {"scale_in": ScaleIn.GUARD}, 1, id="out by its annotation"),
        pytest.param("on", {}, 1, id="an annotation without meaning"),
        pytest.param(None, {"namespaces": (TEAM,)}, 0, id="guarded in its namespace"),
    ],
)
def test_the_guard(annotation, policy, count):
    meta = {"annotations": {"evenspread.io/scale-in": annotation}} if annotation else None
    index = scaled(THREE, 3, 9)
    index.apply("ADDED", namespace(labelled="team=red"))
    assert len(findings_of(SCALE_IN, web(ZONE, meta=meta), replace(DENY, **policy), index=index)) == count
    # The guard adds no pod.
    assert len(findings_of(MINIMUM, web(ZONE, meta=meta), replace(DENY, **policy), index=scaled(THREE, 2, 9))) == 1


@pytest.mark.parametrize(
    ("manifest", "scaler", "expected"),
    [
        pytest.param(web(ZONE), None, {MINIMUM, SCALE_IN}, id="replicas, and perhaps an autoscaler"),
        pytest.param(web(ZONE, kind="StatefulSet"), None, {MINIMUM}, id="a StatefulSet"),
        pytest.param(web(ZONE), autoscaler("Deployment/web", 9, 3), {MINIMUM, SCALE_IN}, id="its autoscaler"),
        pytest.param(
            web(f"{ZONE} minDomains:4"), autoscaler("Deployment/web", 9, 3), {SCALE_IN}, id="minDomains need no cluster"
        ),
        pytest.param(web(ZONE, replicas=1), None, set(), id="a single replica"),
        pytest.param(web(ZONE, kind="Pod"), None, set(), id="a Pod"),
        pytest.param(web("hostname hard 1 app=web"), autoscaler("Deployment/web", 9, 3), set(), id="hostname"),
    ],
)
def test_without_a_cluster(manifest, scaler, expected):
    missing = examine(manifest, Context(policy=DENY, version=RECENT, scalers=(scaler,) if scaler else ())).not_evaluated
    assert {each.rule for each in missing} & {MINIMUM, SCALE_IN} == expected


def test_both_only_audit_and_never_deny_pods():
    modes = {each.finding.rule: each.mode for each in examined(web(ZONE), index=scaled(THREE, 2, 9)).findings}
    assert modes.items() >= {(MINIMUM, Mode.AUDIT), (SCALE_IN, Mode.AUDIT)}
    assert {BY_ID[rule].highest_on_pods for rule in (MINIMUM, SCALE_IN)} == {Mode.WARN}


def compositions(total, caps):
    """All ways to keep so many pods, at most ``caps`` of them in each domain."""
    if not caps:
        return [()] if total == 0 else []
    return [(kept, *rest) for kept in range(min(total, caps[0]) + 1) for rest in compositions(total - kept, caps[1:])]


def after_any_scale_in(domains, most, fewest):
    """All distributions after a scale-in, from every even placement of the most pods, by removing any pods."""
    low, fuller = divmod(most, domains)
    even = {tuple(low + (domain in full) for domain in range(domains)) for full in combinations(range(domains), fuller)}
    return [kept for caps in even for left in range(fewest, most + 1) for kept in compositions(left, caps)]


SIZES = [(domains, most, fewest) for domains in (2, 3, 4) for most in range(1, 10) for fewest in range(most)]


def test_the_worst_scale_in_is_the_worst_of_all():
    """The claim, against every even placement and every removal: reached, and never exceeded."""
    for size in SIZES:
        worst, every = worst_scale_in(*size), after_any_scale_in(*size)
        assert max(worst) - min(worst) == max(max(kept) - min(kept) for kept in every), size
        assert worst in every, size
        assert worst == tuple(sorted(worst, reverse=True))


@pytest.mark.slow
@pytest.mark.parametrize("max_skew", [1, 2, 3])
def test_the_rule_speaks_if_and_only_if_some_removal_breaks_the_constraint(max_skew):
    spoke = 0
    for domains, most, fewest in SIZES:
        every = after_any_scale_in(domains, most, fewest)
        uneven_ = any(max(kept) - min(kept) > max_skew for kept in every)
        empty = fewest >= domains and any(min(kept) == 0 for kept in every)
        index = scaled(" | ".join(f"z{number}: n{number}" for number in range(domains)), fewest, most)
        findings = findings_of(SCALE_IN, web(f"zone soft {max_skew} app=web"), index=index)
        assert bool(findings) == (uneven_ or empty), (domains, most, fewest)
        spoke += len(findings)
    assert 0 < spoke < len(SIZES)


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
