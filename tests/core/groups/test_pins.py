"""Zones of shards: what every zone gets, in which order, and when there is no way."""

import random
import time
from collections import Counter
from itertools import combinations, product

import pytest

from webhook.core.groups.pins import pin_zones

ANY = ((),)


@pytest.mark.parametrize(
    ("shards", "pods", "rooms", "expected"),
    [
        pytest.param(3, 2, {"a": 9, "b": 9, "c": 9}, "ab ac bc", id="each pair of three zones"),
        pytest.param(3, 1, {"a": 9, "b": 9, "c": 9}, "a b c", id="single pods go round"),
        pytest.param(2, 2, {"a": 9, "b": 9}, "ab ab", id="as many zones as pods"),
        pytest.param(4, 2, {"a": 2, "b": 2, "c": 9}, "ac bc ac bc", id="a zone with the room of two others"),
    ],
)
def test_zones_of_shards(shards, pods, rooms, expected):
    found = pin_zones(ANY * shards, pods, rooms)
    assert ["".join(each) for each in found.of_shards] == expected.split()


def test_what_is_settled_stays_and_the_rest_evens_it_out():
    found = pin_zones([(), ("a", "b"), ("a", "b"), ()], 2, {"a": 9, "b": 9, "c": 9})
    assert found.of_shards == (("a", "c"), ("a", "b"), ("a", "b"), ("b", "c"))
    assert found.of_zones == {"a": 3, "b": 3, "c": 2}


def test_a_settled_zone_that_is_not_known_is_given_anew():
    assert pin_zones([("gone", "a")], 2, {"a": 1, "b": 1}).of_shards == (("a", "b"),)


@pytest.mark.parametrize(
    ("settled", "pods", "rooms"),
    [
        pytest.param(ANY, 3, {"a": 9, "b": 9}, id="more pods than zones"),
        pytest.param(ANY * 4, 2, {"a": 2, "b": 2, "c": 2}, id="too little room"),
        pytest.param([("a",)] * 3, 1, {"a": 2, "b": 2}, id="more settled than a zone takes"),
        pytest.param([("a", "b")] * 2 + [()], 2, {"a": 1, "b": 2, "c": 3}, id="settled beyond the room of one zone"),
        pytest.param([("b", "c"), ()], 2, {"a": 2, "b": 1, "c": 1}, id="settled so that one zone is left for two pods"),
    ],
)
def test_no_way(settled, pods, rooms):
    assert pin_zones(settled, pods, rooms) is None


def test_that_there_is_too_little_room_is_seen_in_time():
    """Before pods that run are looked at: a group is asked about for many numbers of shards, and for many caps."""
    zones = [f"z{number:02}" for number in range(16)]
    running = [(zones[number % 16],) for number in range(200)]
    assert pin_zones(ANY * 200, 2, dict.fromkeys(zones, 25), running) is not None
    began = time.process_time()
    assert not any(pin_zones(ANY * 200, 2, dict.fromkeys(zones, 24), running) for _ in range(100))
    assert time.process_time() - began < 1


@pytest.mark.parametrize("zones", [2, 3, 4])
def test_there_is_a_way_wherever_there_can_be_one(zones):
    """Zones of all small sizes: a way is found exactly where rooms, no zone twice to a shard, hold all pods."""
    for rooms in product(range(1, 6), repeat=zones):
        for shards, pods in product(range(1, 6), range(1, zones + 1)):
            found = pin_zones(ANY * shards, pods, dict(zip("abcd", rooms, strict=False)))
            assert (found is not None) == (sum(min(room, shards) for room in rooms) >= shards * pods)
            if found is not None:
                assert all(len(set(each)) == pods for each in found.of_shards)
                counts = Counter(zone for each in found.of_shards for zone in each)
                assert {zone: many for zone, many in found.of_zones.items() if many} == counts
                assert all(counts[zone] <= room for zone, room in zip("abcd", rooms, strict=False))


@pytest.mark.parametrize("pods", [1, 2, 3])
def test_every_beginning_is_even_too(pods):
    found = pin_zones(ANY * 20, pods, dict.fromkeys("abcd", 99))
    for many in range(1, 21):
        counts = Counter(zone for each in found.of_shards[:many] for zone in each)
        assert max(counts.values()) - min(counts[zone] for zone in "abcd") <= 1


def every_way(shards, pods, rooms):
    """All ways to give each shard as many zones as it has pods, within the rooms."""
    for given in product(combinations(rooms, pods), repeat=shards):
        counts = Counter(zone for each in given for zone in each)
        if all(counts[zone] <= room for zone, room in rooms.items()):
            yield given


def moved(given, running):
    """The pods that have to leave, one a zone."""
    return sum(len({*runs} - {*zones}) for zones, runs in zip(given, running, strict=True))


@pytest.mark.parametrize("seed", range(20))
def test_as_few_pods_move_as_can_be(seed):
    """Against all ways there are: with pods that break caps, stand in zones that are gone, and with zones settled."""
    chance = random.Random(seed)  # noqa: S311 a test
    for _ in range(60):
        shards, pods = chance.randint(1, 4), chance.randint(1, 3)
        rooms = {zone: chance.randint(1, 4) for zone in "abcd"[: chance.randint(2, 4)]}
        running = [chance.sample("abcde", chance.randint(0, pods)) for _ in range(shards)]
        settled = [chance.sample(sorted(rooms), chance.randint(0, 1)) for _ in range(shards)]
        ways = [
            each
            for each in every_way(shards, pods, rooms)
            if all({*known} <= {*zones} for known, zones in zip(settled, each, strict=True))
        ]
        found = pin_zones(settled, pods, rooms, running)
        assert (found is None) == (not ways)
        if found is not None:
            assert found.of_shards in ways
            counts = Counter(zone for each in found.of_shards for zone in each)
            assert found.of_zones == {zone: counts[zone] for zone in rooms}
            assert moved(found.of_shards, running) == min(moved(each, running) for each in ways)


def test_a_shard_that_may_stay_in_either_zone_leaves_the_one_that_another_is_in():
    assert pin_zones(ANY * 2, 1, {"a": 1, "b": 1}, [("a", "b"), ("a",)]).of_shards == (("b",), ("a",))


def test_what_stays_leaves_the_rest_even():
    found = pin_zones(ANY * 4, 2, {"a": 9, "b": 9, "c": 9}, [("a", "b"), ("a", "b"), (), ()])
    assert found.of_shards == (("a", "b"), ("a", "b"), ("a", "c"), ("b", "c"))
    assert found.of_zones == {"a": 3, "b": 3, "c": 2}


def test_of_many_zones_none_is_kept_for_pods_that_run():
    rooms = {f"z{number:02}": 1 for number in range(17)}
    assert pin_zones([()], 1, rooms, [("z16",)]).of_shards == (("z00",),)
    del rooms["z00"]
    assert pin_zones([()], 1, rooms, [("z16",)]).of_shards == (("z16",),)
