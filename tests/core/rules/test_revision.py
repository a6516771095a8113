"""Which revision of the pods a constraint counts."""

import pytest
from build import index, node
from manifest import findings, said, workload

from webhook.core.kinds import Strategy
from webhook.core.rules.revision import surge_of, worst_final_skew


def rolling(**fields):
    return {"strategy": {"type": "RollingUpdate", "rollingUpdate": fields}}


NEVER = "zone[0] matches on {}, which pods of a {} never have"


@pytest.mark.parametrize(
    ("kind", "keys", "expected"),
    [
        pytest.param(
            "Deployment",
            "nope",
            [("match-label-key-absent", "zone[0] matches on nope, which no pod here has: it is ignored")],
            id="a label of nobody",
        ),
        pytest.param(
            "StatefulSet",
            "pod-template-hash",
            [("match-label-key-wrong-kind", NEVER.format("pod-template-hash", "StatefulSet"))],
            id="a Deployment's revision on a StatefulSet",
        ),
        pytest.param(
            "Rollout",
            "pod-template-hash",
            [("match-label-key-wrong-kind", NEVER.format("pod-template-hash", "Rollout"))],
            id="a Deployment's revision on a Rollout",
        ),
        pytest.param(
            "Job",
            "controller-revision-hash",
            [("match-label-key-wrong-kind", NEVER.format("controller-revision-hash", "Job"))],
            id="a revision on a Job",
        ),
        pytest.param("Deployment", "pod-template-hash", [], id="a Deployment's own"),
        pytest.param("StatefulSet", "controller-revision-hash", [], id="a StatefulSet's own"),
        pytest.param("Rollout", "rollouts-pod-template-hash", [], id="a Rollout's own"),
        pytest.param("Deployment", "tier", [], id="a label of the template"),
        pytest.param("StatefulSet", "apps.kubernetes.io/pod-index", [], id="a label that comes later"),
        pytest.param("Job", "batch.kubernetes.io/job-name", [], id="a Job's name"),
    ],
)  # fmt: skip
def test_keys_that_the_pods_never_have(kind, keys, expected):
    found = findings(workload(kind, "app=web tier=front", f"zone hard 1 app=web keys:{keys}"))
    assert [(rule, text) for rule, _, text, _ in found if rule.startswith("match-label-key-")] == expected


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        ("Deployment", "use pod-template-hash"),
        ("Rollout", "use rollouts-pod-template-hash"),
        ("DaemonSet", "remove it"),
    ],
)
def test_the_fix_of_a_wrong_revision_label(kind, remedy):
    wrong = "controller-revision-hash" if kind != "DaemonSet" else "pod-template-hash"
    found = findings(workload(kind, "app=web", f"zone hard 1 app=web keys:{wrong}"))
    assert [fix for rule, _, _, fix in found if rule == "match-label-key-wrong-kind"] == [remedy]


@pytest.mark.parametrize(
    ("zones", "replicas", "surge", "expected"),
    [
        pytest.param(2, 12, "25%", 4, id="2 zones, 12 replicas, surge 25 %"),
        pytest.param(2, 12, 1, 2, id="2 zones, 12 replicas, surge 1"),
        pytest.param(2, 12, "100%", 6, id="2 zones, 12 replicas, surge 100 %"),
        pytest.param(3, 9, "25%", 3, id="3 zones, 9 replicas, surge 25 %"),
        pytest.param(3, 9, 1, 2, id="3 zones, 9 replicas, surge 1"),
        pytest.param(3, 9, "100%", 4, id="3 zones, 9 replicas, surge 100 %"),
    ],
)
def test_a_rollout_can_end_uneven(zones, replicas, surge, expected):
    cluster = index(*(node(f"n{number}", f"z{number}") for number in range(zones)))
    manifest = workload("Deployment", "app=web", "zone hard 1 app=web", replicas=replicas, spec=rolling(maxSurge=surge))
    assert said("revision-mixed", manifest, index=cluster) == [
        f"a rollout of {replicas} can end {expected} apart (maxSkew 1)"
    ]


@pytest.mark.parametrize(
    ("constraint", "spec"),
    [
        pytest.param("zone hard 1 app=web", rolling(maxSurge=0), id="surge 0"),
        pytest.param("zone hard 1 app=web", {"strategy": {"type": "Recreate"}}, id="Recreate"),
        pytest.param("zone soft 1 app=web", {}, id="a soft constraint"),
        pytest.param("zone hard 1 app=web keys:pod-template-hash", {}, id="each revision for itself"),
        pytest.param("zone hard 1 app=web keys:tier", {}, id="a label that may be another in each revision"),
        pytest.param("zone hard 12 app=web", {}, id="as many replicas as maxSkew"),
        pytest.param("zone hard 1 app=web minDomains:4", {}, id="maxSkew is a cap while domains are missing"),
        pytest.param("zone hard 1 {}", {}, id="what counts nothing"),
    ],
)
def test_a_rollout_that_cannot_end_uneven(constraint, spec):
    manifest = workload("Deployment", "app=web tier=front", constraint, replicas=12, spec=spec)
    assert said("revision-mixed", manifest) == []


def test_without_nodes_only_zones_are_judged():
    manifest = workload("Deployment", "app=web", "hostname hard 1 app=web", replicas=12)
    assert said("revision-mixed", manifest) == ["not evaluated: no nodes known"]


def test_it_warns_by_itself_and_says_how_to_mend_it():
    found = findings(workload("Deployment", "app=web", "zone hard 1 app=web", replicas=12))
    assert (
        "revision-mixed",
        "warn",
        "a rollout of 12 can end 4 apart (maxSkew 1)",
        "add matchLabelKeys: [pod-template-hash]",
    ) in found


@pytest.mark.parametrize(
    ("written", "pods"),
    [(None, 3), (2, 2), ("25%", 3), ("0%", 0), ("100%", 10), ("x", 0), ("9999999%", 0), (-1, 0)],
    ids=str,
)
def test_surge_as_written(written, pods):
    assert surge_of(Strategy(type="RollingUpdate", max_surge=written), 10) == pods


def arrangements(pods, domains):
    if domains == 1:
        yield (pods,)
        return
    for first in range(pods + 1):
        yield from ((first, *rest) for rest in arrangements(pods - first, domains - 1))


def moves(state, replicas, surge, unavailable, max_skew):
    """What may happen next; a state has (old, new) pods for each domain."""
    old, new = (sum(pods) for pods in zip(*state, strict=True))
    least = min(map(sum, state))
    for place, (before, after) in enumerate(state):
        rest = (*state[:place], *state[place + 1 :])
        if new < replicas and old + new < replicas + surge and before + after + 1 - least <= max_skew:
            yield tuple(sorted((*rest, (before, after + 1))))
        if before and old + new > replicas - unavailable:
            yield tuple(sorted((*rest, (before - 1, after))))


def exhaustive(domains, replicas, surge, unavailable, max_skew):
    """Every order of a rolling update, from every arrangement of the old pods that maxSkew allows."""
    even = [counts for counts in arrangements(replicas, domains) if max(counts) - min(counts) <= max_skew]
    seen = {tuple(sorted((old, 0) for old in counts)) for counts in even}
    stack = list(seen)
    while stack:
        reached = set(moves(stack.pop(), replicas, surge, unavailable, max_skew)) - seen
        seen |= reached
        stack += reached
    final = [[new for _, new in state] for state in seen if not any(old for old, _ in state)]
    return max(max(counts) - min(counts) for counts in final if sum(counts) == replicas)


@pytest.mark.parametrize("domains", [2, 3])
@pytest.mark.parametrize("max_skew", [1, 2])
def test_the_closed_form_agrees_with_an_exhaustive_search(domains, max_skew):
    for replicas in range(1, 6):
        for surge in range(1, replicas + 1):
            for unavailable in (0, 1):
                closed = worst_final_skew(domains, replicas, surge, max_skew)
                assert closed == exhaustive(domains, replicas, surge, unavailable, max_skew), (replicas, surge)
