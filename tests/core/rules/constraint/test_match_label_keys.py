"""Which revision of the pods a constraint counts."""

import re
from pathlib import Path

import pytest
from build import cluster, index, node
from manifest import examined, findings, findings_of, said, workload

from webhook.core.api.well_known import ZONE
from webhook.core.json_edits import applied
from webhook.core.review.messages import warnings_of
from webhook.core.rules.constraint.match_label_keys import MIXED, ROLLOUTS_TRIED, SEEN
from webhook.core.workloads.rollouts import surge_of, unavailable_of, worst_final_skew
from webhook.core.workloads.workload import Strategy

HARD = "zone hard 1 app=web"


def rolling(**fields):
    return {"strategy": {"type": "RollingUpdate", "rollingUpdate": fields}}


NEVER = "zone[0].matchLabelKeys: pods of a {1} never have the label {0}"


@pytest.mark.parametrize(
    ("kind", "keys", "expected"),
    [
        pytest.param(
            "Deployment",
            "nope",
            [
                (
                    "match-label-key-absent",
                    "zone[0].matchLabelKeys: the pods have no label nope, so Kubernetes ignores this key",
                )
            ],
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
    ("kind", "keys", "remedy", "fix", "left"),
    [
        pytest.param(
            "Deployment",
            ["controller-revision-hash"],
            "use pod-template-hash",
            "pod-template-hash",
            ["pod-template-hash"],
            id="a Deployment",
        ),
        pytest.param(
            "Rollout",
            ["tier", "controller-revision-hash"],
            "use rollouts-pod-template-hash",
            "rollouts-pod-template-hash",
            ["tier", "rollouts-pod-template-hash"],
            id="a Rollout",
        ),
        pytest.param(
            "Deployment",
            ["pod-template-hash", "controller-revision-hash"],
            "remove it",
            "remove controller-revision-hash from matchLabelKeys",
            ["pod-template-hash"],
            id="the right one is there already",
        ),
        pytest.param(
            "DaemonSet",
            ["pod-template-hash"],
            "remove it",
            "remove pod-template-hash from matchLabelKeys",
            None,
            id="a DaemonSet is replaced in place",
        ),
        pytest.param(
            "Job",
            ["nope"],
            "remove it or label the pods",
            "remove nope from matchLabelKeys, or label the pods with it",
            None,
            id="a label that no pod has",
        ),
    ],
)
def test_the_fix_of_a_key_that_is_on_no_pod(kind, keys, remedy, fix, left):
    manifest = workload(kind, "app=web tier=front", f"zone hard 1 app=web keys:{','.join(keys)}")
    [wrong] = [each.finding for each in examined(manifest).findings if each.finding.rule.startswith("match-label-key-")]
    assert (wrong.remedy, wrong.fix) == (remedy, fix)
    mended = applied(manifest, wrong.edits)
    assert mended["spec"]["template"]["spec"]["topologySpreadConstraints"][0].get("matchLabelKeys") == left
    assert not [rule for rule, *_ in findings(mended) if rule.startswith("match-label-key-")]


def test_the_right_key_is_not_offered_where_the_selector_names_it():
    """Since 1.34 pods with a key in both are refused."""
    manifest = workload(
        "Deployment", "app=web", "zone hard 1 app=web pod-template-hash=5d4 keys:controller-revision-hash"
    )
    [wrong] = [each.finding for each in examined(manifest).findings if each.finding.rule.startswith("match-label-key-")]
    assert wrong.fix == "remove controller-revision-hash from matchLabelKeys"


def zoned(zones):
    return index(*(node(f"n{number}", f"z{number}") for number in range(zones)))


def ends(summary):
    return summary.removeprefix("after a rollout of ").removesuffix(", because old and new pods are counted together")


@pytest.mark.parametrize(
    ("zones", "replicas", "constraint", "spec", "expected"),
    [
        pytest.param(2, 12, HARD, {}, "warn 12 replicas the zones can differ by 4", id="counted, and often"),
        pytest.param(3, 4, HARD, {}, "warn 4 replicas the zones can differ by 2", id="of 4 over 3 zones"),
        pytest.param(2, 5, HARD, {}, "warn 5 replicas the zones can differ by 3", id="one in ten"),
        pytest.param(
            3, 9, HARD, rolling(maxSurge="25%"), "warn 9 replicas the zones can differ by 4", id="written out"
        ),
        pytest.param(2, 12, HARD, rolling(maxSurge=1), "audit 12 replicas the zones may differ by 2", id="surge 1"),
        pytest.param(
            3, 9, HARD, rolling(maxSurge="100%"), "audit 9 replicas the zones may differ by 4", id="surge 100 %"
        ),
        pytest.param(
            2, 12, HARD, rolling(maxUnavailable=0), "audit 12 replicas the zones may differ by 4", id="none away"
        ),
        pytest.param(2, 40, HARD, {}, "audit 40 replicas the zones may differ by 10", id="more than were counted"),
        pytest.param(
            2, 12, "zone hard 2 app=web", {}, "audit 12 replicas the zones may differ by 4", id="another maxSkew"
        ),
        pytest.param(
            2, 12, "hostname hard 1 app=web", {}, "audit 12 replicas the nodes may differ by 4", id="another key"
        ),
        pytest.param(
            2,
            12,
            "zone hard 1 tier=front",
            {},
            "audit 12 replicas the zones may differ by more than 1",
            id="others too",
        ),
    ],
)
def test_a_rollout_can_end_uneven(zones, replicas, constraint, spec, expected):
    manifest = workload("Deployment", "app=web tier=front", constraint, replicas=replicas, spec=spec)
    found = [(mode, text) for rule, mode, text, _ in findings(manifest, index=zoned(zones)) if rule == "revision-mixed"]
    assert [f"{mode} {ends(text)}" for mode, text in found] == [expected]


@pytest.mark.parametrize("zones", [2, 4])
def test_what_took_a_late_scheduler_once_or_never_is_not_told(zones):
    manifest = workload("Deployment", "app=web", HARD, replicas=3)
    assert SEEN[3][zones][0] * 10 < ROLLOUTS_TRIED
    assert said("revision-mixed", manifest, index=zoned(zones)) == []


def test_another_hard_constraint_may_keep_them_together():
    manifest = workload("Deployment", "app=web", HARD, "rack hard 1 app=web", replicas=12)
    racks = index(node("n1", "a", rack="r"), node("n2", "b", rack="s"))
    assert [ends(text) for text in said("revision-mixed", manifest, index=racks)] == [
        "12 replicas the zones may differ by more than 1",
        "12 replicas the racks may differ by more than 1",
    ]


@pytest.mark.parametrize(
    ("nodes", "constraint", "fields", "speaks"),
    [
        pytest.param("a: n1 | b: n2", HARD, {}, True, id="two zones"),
        pytest.param("a: n1 | b: ~n2", HARD, {}, False, id="one of them lets no pod in, and holds the other down"),
        pytest.param("a: n1 | b: ~n2 | c: n3", f"{HARD} nodeTaintsPolicy:Honor", {}, True, id="it does not count"),
        pytest.param("a: n1 | b: n2", HARD, {"nodeSelector": {ZONE: "a"}}, False, id="the pods use one of them"),
        pytest.param("a: n1", HARD, {}, False, id="one zone"),
        pytest.param("n1 n2", HARD, {}, False, id="no node has a zone"),
    ],
)
def test_the_domains_that_the_pods_may_use_count(nodes, constraint, fields, speaks):
    manifest = workload("Deployment", "app=web", constraint, replicas=12, **fields)
    assert bool(said("revision-mixed", manifest, index=cluster(nodes))) is speaks


def test_what_was_seen_is_what_the_page_says():
    page = (Path(__file__).parents[4] / "docs" / "rules" / "rollouts.md").read_text()
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", page[: page.index("In total")], re.MULTILINE)
    cells = {int(number): re.findall(r"(\d+) of 20(?:, skew (\d))?", row) for number, row in rows}
    told = {
        number: {zones: (int(ended), int(most or 1)) for zones, (ended, most) in zip((2, 3, 4), row, strict=True)}
        for number, row in cells.items()
    }
    assert told == SEEN
    beyond = sum(ended for row in SEEN.values() for ended, _ in row.values())
    assert f"{beyond} of {len(SEEN) * 3 * ROLLOUTS_TRIED}" in MIXED.why
    assert f"{beyond} of {len(SEEN) * 3 * ROLLOUTS_TRIED}" in page


@pytest.mark.parametrize(
    ("constraint", "spec"),
    [
        pytest.param("zone hard 1 app=web", rolling(maxSurge=0), id="surge 0"),
        pytest.param("zone hard 1 app=web", {"strategy": {"type": "Recreate"}}, id="Recreate"),
        pytest.param("zone soft 1 app=web", {}, id="a soft constraint"),
        pytest.param("zone hard 1 app=web keys:pod-template-hash", {}, id="each revision for itself"),
        pytest.param("zone hard 1 app=web pod-template-hash=5d4", {}, id="only one revision is counted"),
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
    assert said("revision-mixed", manifest) == ["not evaluated: no cluster"]
    assert said("revision-mixed", manifest, index=index()) == ["not evaluated: no nodes known"]


def test_it_says_how_often_and_how_to_mend_it():
    manifest = workload("Deployment", "app=web", HARD, replicas=12)
    [mixed] = findings_of("revision-mixed", manifest)
    assert mixed.summary == (
        "after a rollout of 12 replicas the zones can differ by 4, because old and new pods are counted together"
    )
    assert mixed.detail == (
        "maxSkew 1 covers old and new pods together, and nothing moves the new pods after the old ones are gone;"
        " measured rollouts that ended beyond maxSkew: 13 of 20 over 2 zones, 13 of 20 over 3 zones"
    )
    assert (mixed.remedy, mixed.fix) == (
        "add matchLabelKeys: [pod-template-hash]",
        "add matchLabelKeys: [pod-template-hash]",
    )
    assert said("revision-mixed", applied(manifest, mixed.edits)) == []
    rest = "after a rollout of 12, zones can differ by 4; add matchLabelKeys: [pod-template-hash]"
    assert warnings_of([mixed]) == (f"evenspread/revision-mixed: {rest}",)


@pytest.mark.parametrize(
    ("written", "pods"),
    [(None, 3), (2, 2), ("25%", 3), ("0%", 0), ("100%", 10), ("x", 0), ("9999999%", 0), (-1, 0)],
    ids=str,
)
def test_surge_as_written(written, pods):
    assert surge_of(Strategy(type="RollingUpdate", max_surge=written), 10) == pods


@pytest.mark.parametrize(
    ("surge", "unavailable", "pods"),
    [
        (None, None, 2),
        (None, 3, 3),
        (None, "39%", 3),
        (1, 0, 0),
        (0, 0, 1),
        ("0%", "0%", 1),
        (1, "x", 0),
    ],
    ids=str,
)
def test_unavailable_as_written(surge, unavailable, pods):
    written = Strategy(type="RollingUpdate", max_surge=surge, max_unavailable=unavailable)
    assert unavailable_of(written, 10) == pods


def test_all_at_once():
    assert (surge_of(Strategy(type="Recreate"), 10), unavailable_of(Strategy(type="Recreate"), 10)) == (0, 10)
    assert (surge_of(None, 10), unavailable_of(None, 10)) == (3, 2)


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
