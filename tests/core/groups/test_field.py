"""How often the field's own fields get stuck, and how full domains get: published fractions, all orders tried."""

from fractions import Fraction

import pytest
from core.groups.every_order import Orders, fewest_first, hosts_of, ordinal_by_ordinal, shard_by_shard
from core.groups.grouped import cap, derived, redis, shards_of, zones
from msgspec.structs import replace

from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.groups.caps import fullest
from webhook.core.groups.fields import shard_fields as fields_of
from webhook.core.groups.group_constraints import exact_cap, group_constraint
from webhook.core.groups.plan import CapMethod

SIX = zones(2, 2, 2)


def with_skews(group, hosts, in_zones, *, exact=False):
    """The pods with these caps as maxSkew, as the field has them, or as exact caps."""
    made = exact_cap if exact else group_constraint
    constraints = (made(group, HOSTNAME, hosts), made(group, ZONE, in_zones))
    return [fields_of(group, each, constraints) for each in shards_of(group)]


def three(hosts):
    group = redis(3)
    return Orders(hosts_of(SIX), 2, with_skews(group, hosts, 2))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("turn", "even", "stuck"),
    [
        pytest.param(ordinal_by_ordinal, False, Fraction(1, 6), id="the note's order"),
        pytest.param(ordinal_by_ordinal, True, Fraction(1, 4), id="the note's order, evenly"),
        pytest.param(None, False, Fraction(133, 810), id="any order"),
        pytest.param(None, True, Fraction(13, 108), id="any order, evenly"),
        pytest.param(shard_by_shard, False, Fraction(1, 6), id="shard after shard"),
        pytest.param(shard_by_shard, True, 0, id="shard after shard, evenly"),
    ],
)
def test_how_often_three_shards_get_stuck(turn, even, stuck):
    assert three(1).stuck(turn, even=even) == stuck
    # The note's remedy: two pods on a node. It never gets stuck, and breaks both caps.
    assert three(2).stuck(turn, even=even) == 0


@pytest.mark.slow
def test_what_the_remedy_costs():
    ends = three(2).ends()
    assert max(three(2).most(state, HOSTNAME) for state in ends) == 2
    assert max(three(2).most(state, ZONE) for state in ends) == 3 == fullest(6, 3, 2)


@pytest.mark.parametrize("turn", [None, ordinal_by_ordinal, shard_by_shard])
@pytest.mark.parametrize("even", [False, True])
def test_pins_never_get_stuck_and_keep_the_strict_caps(turn, even):
    plan = derived(redis(3), SIX).plan
    assert plan.keeping[ZONE].way is CapMethod.PINS
    pinned = Orders(hosts_of(SIX), 2, [*plan.fields.values()])
    assert pinned.stuck(turn, even=even) == 0
    assert {(pinned.most(end, HOSTNAME), pinned.most(end, ZONE)) for end in pinned.ends(turn, even=even)} == {(1, 2)}


@pytest.mark.parametrize(
    ("turn", "even", "least", "most"),
    [
        pytest.param(None, False, 0.14, 0.25, id="any order"),
        pytest.param(ordinal_by_ordinal, False, 0.14, 0.25, id="the note's order"),
        pytest.param(shard_by_shard, True, 0, 0, id="shard after shard, evenly"),
    ],
)
def test_exact_caps_of_six_pods_never_break_and_may_get_stuck(turn, even, least, most):
    group = redis(3)
    orders = Orders(hosts_of(SIX), 2, with_skews(group, 1, 2, exact=True))
    assert least <= orders.stuck(turn, even=even) <= most
    assert all(orders.most(end, ZONE) <= 2 and orders.most(end, HOSTNAME) <= 1 for end in orders.ends(turn, even=even))


RULE = {3: (1, 2), 4: (2, 3), 6: (3, 5), 9: (5, 8)}  # fewer than a third of the pods on a node, than half in a zone


class Rule:
    """The field's design for so many shards, whose names do not matter, and how all orders of it end."""

    def __init__(self, shards, nodes=SIX, turn=fewest_first, *, exact=False, even=False):
        fields = with_skews(redis(shards), *RULE[shards], exact=exact)
        self.orders = Orders(hosts_of(nodes), 2, fields, alike=True)
        self.most = dict(zip((HOSTNAME, ZONE), RULE[shards], strict=True))
        self.pods = 2 * shards
        self.ends = self.orders.ends(turn, even=even)

    @property
    def stuck(self):
        return sum(chance for state, chance in self.ends.items() if sum(map(len, state)) < self.pods)

    def broken(self, key):
        """How probable an end with a fuller domain is."""
        held = ((self.orders.most(state, key), chance) for state, chance in self.ends.items())
        return sum(chance for most, chance in held if most > self.most[key])


@pytest.mark.slow
@pytest.mark.parametrize("even", [False, True])
@pytest.mark.parametrize("turn", [None, fewest_first])
def test_states_that_differ_by_names_only_are_one(turn, even):
    """The same as without that, where all can be told apart in time."""
    assert Rule(3, turn=turn, even=even).stuck == three(1).stuck(turn, even=even)
    fields, found = with_skews(redis(3), 2, 2), []
    for alike in (False, True):
        orders = Orders(hosts_of(SIX), 2, fields, alike=alike)
        ends = orders.ends(turn, even=even).items()
        found.append(
            [sum(chance for state, chance in ends if orders.most(state, key) == 2) for key in (HOSTNAME, ZONE)]
        )
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("shards", "nodes", "uniform", "even"),
    [
        pytest.param(3, zones(3, 3, 3), {ZONE: 0.497}, {ZONE: 0.248}, id="3 x 2 on nine nodes"),
        pytest.param(4, SIX, {ZONE: 0.34}, {ZONE: 0}, id="4 x 2 on six nodes"),
        pytest.param(6, SIX, {HOSTNAME: 0.138, ZONE: 0.165}, {HOSTNAME: 0, ZONE: 0}, id="6 x 2 on six nodes"),
    ],
)
def test_where_nothing_gets_stuck_the_cap_breaks(shards, nodes, uniform, even):
    """The field's own figures are of 20,000 runs each."""
    for scored, shares in ((False, uniform), (True, even)):
        found = Rule(shards, nodes, even=scored)
        assert found.stuck == 0
        assert {key: float(found.broken(key)) for key in shares} == pytest.approx(shares, abs=0.005)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shards", "turn", "stuck"),
    [
        pytest.param(3, fewest_first, Fraction(1, 6), id="6 pods"),
        pytest.param(3, None, Fraction(133, 810), id="6 pods in any order"),
        pytest.param(4, fewest_first, Fraction(79, 2_880), id="8 pods"),
        pytest.param(4, None, Fraction(906_263, 18_662_400), id="8 pods in any order"),
        pytest.param(6, fewest_first, Fraction(2_889_401, 1_259_712_000), id="12 pods"),
        pytest.param(6, None, pytest.approx(0.004, abs=0.00002), id="12 pods in any order"),
    ],
)
def test_how_often_exact_caps_get_stuck(shards, turn, stuck):
    """Published: 2.6 % of eight pods, 0.2 to 0.4 % of twelve. No cap is ever broken."""
    found = Rule(shards, turn=turn, exact=True)
    assert found.stuck == stuck
    assert (found.broken(HOSTNAME), found.broken(ZONE)) == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("shards", [4, 6, 9])
def test_exact_caps_never_get_stuck_where_the_emptiest_nodes_are_taken(shards):
    assert Rule(shards, exact=True, even=True).stuck == 0


def test_the_story_of_the_note():
    """One choice of a node, of two that are as good for the pod: one leaves the last pod without a node."""
    orders = three(1)
    one, two, _, four, five, six = orders.zones
    begun = ((one, "b0"), (four,), (six,))
    assert {two, five} <= {*orders.open(begun, 1)}
    assert orders.open((begun[0], (two, four), begun[2]), 2) == []
    assert orders.open((begun[0], (four, five), begun[2]), 2) == [two]


def placed(shards, nodes):
    """The plan of so many shards, and every end of it, in zones of so many nodes each."""
    group = redis(shards, caps=(cap(HOSTNAME, "<1/3"), cap(ZONE, "<1/2")), plan_for=10)
    found = derived(group, nodes)
    return group, found.plan


def test_six_shards_to_ten_and_back_to_five():
    """The zones of a shard stay through all of it; the caps of each size hold, and every order places what is added."""
    nodes, pins = zones(4, 4, 4), {}
    for many in (6, 10, 5):
        group, plan = placed(many, nodes)
        assert plan.verdict.value == "fits"
        for shard, each in zip(plan.shards, plan.zone_pins.of_shards, strict=True):
            assert pins.setdefault(shard.name, each) == each
        for key in (HOSTNAME, ZONE):
            assert plan.keeping[key].worst <= group.most(key)
        assert max(plan.zone_pins.of_zones.values()) <= group.most(ZONE)


def test_five_shards_that_are_left_of_ten_stand_within_their_caps_by_zone():
    """What runs is older than the plan of five: on nodes there may be more pods than five shards may have."""
    nodes = zones(4, 4, 4)
    ten, five = placed(10, nodes), placed(5, nodes)
    left = ten[1].zone_pins.of_shards[:5]
    held = {zone: sum(zone in each for each in left) for zone in "abc"}
    assert max(held.values()) <= five[0].most(ZONE)
    assert five[1].zone_pins.of_shards == left
    assert (ten[0].most(HOSTNAME), five[0].most(HOSTNAME)) == (6, 3)
    assert replace(five[0], shards=10).most(HOSTNAME) == 6
