"""Whose pods a constraint counts, the selector that counts the workload's own, and the key that was meant."""

import pytest
from build import cluster, constraint, declared, owner, pod, running, selector
from msgspec.structs import replace

from webhook.core.api.types import LabelSelector
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.changes.change import Change
from webhook.core.explain.explanation import explain_pod
from webhook.core.scheduler.problem import take
from webhook.core.text import listed, together

WIDE = constraint(select="app=web")
MINE = "app=web tier=front"


def asked(state="z1: a=3 | z2: ~b", *known, constraints=(WIDE,), by="ReplicaSet/web-1", labelled=MINE, uid=""):
    """The pod of ``by`` explained beside pods ``app=web`` that are not its workload's."""
    index = cluster(state)
    for each in known:
        index.apply("ADDED", each)
    return explain_pod(take(index, pod(labelled, constraints=constraints, owner=by, uid=uid)), index)


SET = owner("ReplicaSet/web-1", f"{MINE} pod-template-hash=1", above="Deployment/web")
OWN = owner("Deployment/web", MINE, declared(MINE, WIDE))
API = owner("Deployment/api", "app=web tier=api", declared("app=web tier=api"))
ALIKE = owner("Deployment/api", "app=web tier=api", declared("app=web tier=api", WIDE))
NARROW = LabelSelector(match_labels={"app": "web", "tier": "front"})


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        pytest.param([SET, OWN, API], (3, 3, ("Deployment api",), NARROW, False), id="of another workload"),
        pytest.param([SET, OWN, ALIKE], (3, 3, ("Deployment api",), NARROW, True), id="spread over the same key"),
        pytest.param([SET, OWN], (3, 3, (), NARROW, False), id="of nobody who is known"),
        pytest.param([SET], (3, 3, (), NARROW, False), id="a Deployment that is not known"),
        pytest.param([OWN, SET, running("x", "a", MINE)], (4, 3, (), NARROW, False), id="its own beside them"),
    ],
)
def test_whose_pods_are_counted(known, expected):
    who = asked("z1: a=3 | z2: ~b", *known).balances[0].counted
    assert (who.counted, who.foreign, who.names, who.narrower, who.agreed) == expected


def test_a_workload_that_counts_its_own_only():
    found = asked("z1: a | z2: ~b", SET, OWN, running("x", "a", MINE))
    assert (found.balances[0].counted.counted, found.balances[0].counted.foreign) == (1, 0)
    assert found.fixes[0].changes == (Change(0, "nodeTaintsPolicy", "Honor"),)


@pytest.mark.parametrize(
    ("by", "constraints"),
    [
        pytest.param(None, (WIDE,), id="a pod that nobody controls"),
        pytest.param("Redis/web", (WIDE,), id="a controller without a selector"),
        pytest.param("StatefulSet/web", (constraint(),), id="a constraint without a selector"),
    ],
)
def test_nobody_knows_whose(by, constraints):
    assert (
        asked("z1: a=3 | z2: ~b", owner("StatefulSet/web", MINE), by=by, constraints=constraints).balances[0].counted
        is None
    )


def test_selectors_that_cannot_be_read_or_say_nothing_are_none():
    for select in ("app=a/b/c", "{}"):
        known = owner("StatefulSet/web", select)
        assert asked("z1: a=1 | z2: ~b", known, by="StatefulSet/web").balances[0].counted is None


def test_a_job_is_told_by_its_uid_which_no_template_can_say():
    found = asked(by="Job/web", uid="j", labelled="app=web controller-uid=j")
    who = found.balances[0].counted
    assert (who.counted, who.foreign, who.narrower) == (3, 3, None)
    assert all(change.field != "labelSelector" for fix in found.fixes for change in fix.changes)


def test_what_was_merged_of_match_label_keys_is_left_out():
    written = constraint(select="app=web", keys=("pod-template-hash",))
    merged = replace(
        written,
        label_selector=LabelSelector(
            match_labels={"app": "web"},
            match_expressions=(
                *selector("pod-template-hash tier!=old").match_expressions[1:],
                selector("x").match_expressions[0].__class__(key="pod-template-hash", operator="In", values=("1",)),
            ),
        ),
    )
    found = asked(
        "z1: a | z2: ~b",
        SET,
        owner("Deployment/web", f"{MINE} !x"),
        running("y", "a", "app=web pod-template-hash=1"),
        constraints=(merged,),
        labelled=f"{MINE} pod-template-hash=1",
    )
    assert found.balances[0].counted.narrower == LabelSelector(
        match_labels={"app": "web", "tier": "front"},
        match_expressions=(
            *selector("tier!=old").match_expressions,
            *selector("!x").match_expressions,
        ),
    )


def texts(found):
    return [found.in_words(each) for each in found.fixes]


NARROWER = "set labelSelector: {matchLabels: {app: web, tier: front}}"
LOOSER = ["add nodeTaintsPolicy: Honor", "set maxSkew: 4", "set whenUnsatisfiable: ScheduleAnyway"]


def test_the_narrower_selector_is_a_fix():
    assert texts(asked("z1: a=3 | z2: ~b", SET, OWN, API)) == [NARROWER, *LOOSER]
    assert texts(asked("z1: a=3 | z2: ~b", SET, OWN, ALIKE)) == [*LOOSER, NARROWER]


def test_a_narrower_selector_that_does_not_help_is_none():
    own = [running(f"x{number}", "a", MINE) for number in range(3)]
    assert texts(asked("z1: a=1 | z2: ~b", SET, OWN, API, *own)) == [
        "add nodeTaintsPolicy: Honor",
        "set maxSkew: 5",
        LOOSER[2],
    ]


def test_selectors_of_several_constraints_at_once():
    hosts = constraint(HOSTNAME, select="app=web")
    found = asked("z1: a=3 | z2: ~b", SET, OWN, API, constraints=(WIDE, hosts))
    assert texts(found)[0] == f"{NARROWER} in zone[0] and hostname[1]"
    assert found.fixes[0].nodes == 1


class TestTheKeyThatWasMeant:
    TYPO = "topology.kubernetes.io/zoen"

    def found(self, state, *constraints):
        return explain_pod(take(cluster(state), pod("app=web", constraints=constraints)))

    def test_is_the_first_fix(self):
        found = self.found("z1: a=1 | z2: b", constraint(self.TYPO, select="app=web"))
        assert found.balances[0].meant == ZONE
        assert texts(found) == [f"set topologyKey: {ZONE}", LOOSER[2]]
        assert found.fixes[0].nodes == 1

    def test_alone_or_with_what_is_needed_besides(self):
        found = self.found("z1: a=1 | z2: ~b", constraint(self.TYPO, select="app=web"))
        assert texts(found) == [
            f"set topologyKey: {ZONE} and add nodeTaintsPolicy: Honor",
            f"set topologyKey: {ZONE} and set maxSkew: 2",
            f"set topologyKey: {ZONE} and set whenUnsatisfiable: ScheduleAnyway",
            LOOSER[2],
        ]

    def test_of_all_constraints_at_once(self):
        found = self.found(
            "z1: a", constraint(self.TYPO, select="app=web"), constraint("kubernetes.io/host", select="app=web")
        )
        assert texts(found)[0] == f"set topologyKey: {ZONE} in zoen[0] and set topologyKey: {HOSTNAME} in host[1]"

    @pytest.mark.parametrize(
        "constraints",
        [
            pytest.param((constraint("rack", select="app=web"),), id="a key of somebody's own"),
            pytest.param(
                (constraint(TYPO, select="app=web"), constraint(select="app=web")), id="another has it already"
            ),
            pytest.param(
                (constraint(TYPO, select="app=web"), constraint("topology.kubernetes.io/zonee", select="app=web")),
                id="two that mean the same",
            ),
        ],
    )
    def test_is_offered_where_it_can_stand(self, constraints):
        found = self.found("z1: a | z2: b", *constraints)
        assert found.fixes
        assert not [each for each in texts(found) if "topologyKey" in each]

    def test_is_none_where_nodes_have_neither(self):
        assert self.found("a b", constraint(self.TYPO, select="app=web")).balances[0].meant is None


def test_words():
    assert (listed(["a", "b", "c"], 2), listed(["a"], 2)) == ("a, b and 1 more", "a")
    assert (together(["a"]), together(["a", "b"]), together("abc")) == ("a", "a and b", "a, b and c")
