"""Which changes of constraints are tried, in which order, and which of them are given."""

import pytest
from build import constraint, selector
from msgspec.structs import replace

from webhook.core.api.types import LabelSelector
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.changes.candidates import Candidates
from webhook.core.changes.change import Change, with_changes

HARD, HOST = constraint(ZONE, select="app=web"), constraint(HOSTNAME, select="app=web")
SOFT = constraint(ZONE, when="ScheduleAnyway", select="app=web")


def told(changes):
    return " and ".join(f"{each.index} {each.field or 'removed'}: {each.value}" for each in changes)


def tried(*constraints, helping=(), **known):
    """What is tried, and what of it is given; a change helps if any of these is in its words."""
    asked = []

    def fits(changes):
        asked.append(told(changes))
        return any(each in asked[-1] for each in helping)

    found = [told(each) for each in Candidates(constraints=constraints, **known).helpful(fits)]
    return asked, found


@pytest.mark.parametrize(
    ("constraints", "known", "expected"),
    [
        pytest.param(
            [HARD],
            {},
            [
                "0 nodeTaintsPolicy: Honor",
                "0 maxSkew: 2",
                "0 maxSkew: 3",
                "0 nodeTaintsPolicy: Honor and 0 maxSkew: 2",
                "0 nodeTaintsPolicy: Honor and 0 maxSkew: 3",
                "0 whenUnsatisfiable: ScheduleAnyway",
            ],
            id="one constraint",
        ),
        pytest.param(
            [constraint(ZONE, select="app=web", min_domains=3, node_affinity_policy="Ignore")],
            {"domains": {0: 2}, "skews": {0: 5}, "further": 1, "pairs": False},
            [
                "0 nodeTaintsPolicy: Honor",
                "0 nodeAffinityPolicy: Honor",
                "0 minDomains: 2",
                "0 maxSkew: 5",
                "0 whenUnsatisfiable: ScheduleAnyway and 0 minDomains: None",
            ],
            id="with more fields",
        ),
        pytest.param(
            [constraint(ZONE, select="app=web", min_domains=3, node_taints_policy="Honor")],
            {"domains": {0: 1}, "further": 0, "pairs": False, "revision": "rev"},
            [
                "0 minDomains: None",
                "0 matchLabelKeys: ('rev',)",
                "0 whenUnsatisfiable: ScheduleAnyway and 0 minDomains: None",
            ],
            id="in a rollout",
        ),
        pytest.param(
            [HARD, SOFT],
            {"further": 0},
            ["0 nodeTaintsPolicy: Honor", "0 removed: None"],
            id="with a soft twin",
        ),
        pytest.param(
            [HARD, HOST],
            {"further": 1, "first": [(Change(0, "topologyKey", "zone"),)]},
            [
                "0 topologyKey: zone",
                "0 nodeTaintsPolicy: Honor",
                "1 nodeTaintsPolicy: Honor",
                "0 maxSkew: 2",
                "1 maxSkew: 2",
                "0 nodeTaintsPolicy: Honor and 1 nodeTaintsPolicy: Honor",
                "0 nodeTaintsPolicy: Honor and 0 maxSkew: 2",
                "0 nodeTaintsPolicy: Honor and 1 maxSkew: 2",
                "1 nodeTaintsPolicy: Honor and 0 maxSkew: 2",
                "1 nodeTaintsPolicy: Honor and 1 maxSkew: 2",
                "0 maxSkew: 2 and 1 maxSkew: 2",
                "0 whenUnsatisfiable: ScheduleAnyway",
                "1 whenUnsatisfiable: ScheduleAnyway",
                "0 whenUnsatisfiable: ScheduleAnyway and 1 whenUnsatisfiable: ScheduleAnyway",
            ],
            id="two constraints",
        ),
    ],
)
def test_all_are_tried_if_none_helps_smallest_first(constraints, known, expected):
    assert tried(*constraints, **known) == (expected, [])


def test_of_a_field_the_first_value_that_helps_is_enough():
    asked, found = tried(HARD, HOST, helping=["0 maxSkew", "ScheduleAnyway"], further=3)
    assert found == [
        "0 maxSkew: 2",
        "0 whenUnsatisfiable: ScheduleAnyway",
        "1 whenUnsatisfiable: ScheduleAnyway",
    ]
    assert "0 maxSkew: 3" not in asked
    assert "1 maxSkew: 4" in asked


def test_of_pairs_the_first_that_helps_is_given():
    _, found = tried(HARD, HOST, helping=["0 maxSkew: 2 and 1 maxSkew: 2"], further=2)
    assert found == ["0 maxSkew: 2 and 1 maxSkew: 2"]


def test_match_label_keys_need_a_selector():
    asked, _ = tried(replace(HARD, label_selector=None), revision="rev", further=0)
    assert not any("matchLabelKeys" in each for each in asked)
    known = constraint(ZONE, select="app=web", keys="rev")
    assert not any("matchLabelKeys" in each for each in tried(known, revision="rev", further=0)[0])


def test_what_is_changed():
    wider = with_changes([HARD, SOFT], [Change(0, "maxSkew", 4), Change(0, "minDomains")])
    assert (wider[0].max_skew, wider[0].min_domains, wider[1]) == (4, None, SOFT)
    narrow = LabelSelector(match_labels={"app": "web"})
    assert with_changes([HARD, SOFT], [Change(0), Change(0, "maxSkew", 1)]) == (SOFT,)
    assert with_changes([HARD], [Change(0, "labelSelector", narrow)])[0].selector == narrow
    assert selector("app=web") == narrow
