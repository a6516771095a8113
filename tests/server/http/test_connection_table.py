"""Who gives way to whom, without sockets."""

import asyncio

import pytest
from build import Clock

from webhook.server.http import connection_table
from webhook.server.http.connection_table import ConnectionTable, source_of


class Connection:
    def __init__(self, source, *, busy=False):
        self.source = source
        self.held_bytes = 0
        self.busy = busy
        self.ended = False

    def end(self):
        self.ended = True

    give_way = end


def admitted(table, *sources, busy=False):
    """One connection of each source, in that order."""
    made = [Connection(source, busy=busy) for source in sources]
    assert [table.admit(each) for each in made] == [True] * len(made)
    return made


def served(table, *sources):
    made = []
    for source in sources:
        made += admitted(table, source)
        table.served(made[-1])
    return made


def ended(connections):
    return [number for number, each in enumerate(connections) if each.ended]


def test_while_there_is_room_everybody_stays():
    table = ConnectionTable("admission", 8)
    assert ended(admitted(table, *"aaaabbbb")) == []
    assert table.count == 8


def test_nobody_has_more_than_half_of_the_room():
    table = ConnectionTable("admission", 8)
    assert ended(admitted(table, *"aaaaaa")) == [0, 1]
    assert table.count == 4


def test_a_newcomer_takes_the_place_of_the_largest_sources_oldest():
    table = ConnectionTable("admission", 8)
    crowd = admitted(table, *"bbbaaaab")
    [newcomer] = admitted(table, "c")
    assert ended(crowd) == [0]
    table.leave(newcomer)
    table.leave(newcomer)
    assert table.count == 7


def test_what_was_used_longest_ago_goes_first_but_what_never_was_before_it():
    table = ConnectionTable("admission", 8)
    known = served(table, *"aaa")
    table.served(known[0])
    [silent, begun] = [*admitted(table, "a"), *admitted(table, "a", busy=True)]
    assert silent.ended
    assert ended(known) == []
    admitted(table, "a")
    assert ended(known) == [1]
    assert not begun.ended


def test_who_is_being_answered_stays_and_a_newcomer_is_refused_if_all_are():
    table = ConnectionTable("admission", 4)
    busy = [*admitted(table, *"aab", busy=True), *admitted(table, "b")]
    admitted(table, "c")
    assert ended(busy) == [3]
    for each in table:
        each.busy = True
    assert not table.admit(Connection("d"))
    assert table.count == 4


def test_strangers_give_way_to_strangers_and_never_to_them_who_have_asked():
    table = ConnectionTable("admission", 16)
    known = served(table, *"aaaaaaaa")
    crowd = admitted(table, *"bbbbbbbb", *(f"stranger {number}" for number in range(500)))
    assert ended(known) == []
    assert sum(not each.ended for each in crowd) == 8
    assert table.count == 16


def test_a_known_source_takes_the_places_of_strangers_until_an_eighth_is_left_to_them():
    table = ConnectionTable("admission", 16)
    strangers = admitted(table, *"bbbbbbbbcccccccc")
    known = served(table, *"aaaaaaaa", *"dddddddd")
    assert sum(not each.ended for each in strangers) == 2
    assert sum(not each.ended for each in known) == 14
    assert table.count == 16


def test_a_stranger_gets_in_where_all_others_are_known():
    table = ConnectionTable("admission", 16)
    known = served(table, *"aabbccddeeffgghh")
    strangers = admitted(table, "new")
    assert sum(each.ended for each in known) == 1
    table.served(strangers[0])
    assert served(table, "new")[0].ended is False
    assert strangers[0].ended is False


def test_a_source_is_remembered_when_its_connections_are_gone():
    table = ConnectionTable("admission", 16)
    [gone] = served(table, "a")
    table.leave(gone)
    table.served(gone)
    admitted(table, *"bbbbbbbbcccccccc")
    [back] = admitted(table, "a")
    admitted(table, *(f"stranger {number}" for number in range(100)))
    assert not back.ended


def test_only_so_many_sources_are_remembered():
    table = ConnectionTable("admission", 16)
    for number in range(5000):
        table.leave(served(table, f"source {number}")[0])
    assert len(table._remembered) == 1024
    assert table.count == 0
    assert not table._sources


MIB = 2**20


def bodies(**settings):
    return ConnectionTable("admission", 100, budget=64 * MIB, **settings)


def test_many_connections_leave_memory_to_give_back():
    table = bodies()
    for connection in admitted(table, *"abcdefgh"):
        assert not table.drained(8 * 24 * 1024)
        table.leave(connection)
    assert [table.drained(8 * 24 * 1024 + 1), table.drained(8 * 24 * 1024), table.drained(1)] == [False, True, False]


def test_bytes_are_held_until_they_are_released_or_the_connection_leaves():
    table = bodies()
    one, other = admitted(table, "a", "b")
    assert table.hold(one, 7 * MIB)
    assert table.hold(other, 7 * MIB)
    table.release(one)
    table.release(one)
    assert (one.held_bytes, table.held_bytes) == (0, 7 * MIB)
    assert not table.drained(14 * MIB)
    table.leave(other)
    assert table.held_bytes == 0
    assert not table.drained(15 * MIB)
    assert [table.drained(14 * MIB), table.drained(14 * MIB)] == [True, False]
    table.release(other)
    assert not table.hold(other, 1)


def test_the_one_source_that_holds_all_is_refused_more_and_gives_way_to_others():
    table = bodies()
    greedy = admitted(table, *"aaaaaaaaaa")
    assert [table.hold(each, 7 * MIB) for each in greedy] == [True] * 9 + [False]
    [other] = admitted(table, "b")
    assert table.hold(other, 7 * MIB)
    assert ended(greedy) == [0]
    assert table.held_bytes == 63 * MIB


def test_who_is_known_is_heard_before_strangers():
    table = bodies()
    crowd = admitted(table, *(f"stranger {number}" for number in range(9)))
    assert all(table.hold(each, 7 * MIB) for each in crowd)
    [late] = admitted(table, "late")
    assert not table.hold(late, 7 * MIB)
    known = served(table, *"aaaaaaaa")
    assert all(table.hold(each, 7 * MIB) for each in known)
    assert len(ended(crowd)) == 8
    assert not table.hold(late, 7 * MIB)


def test_a_stranger_may_hold_one_long_body_where_the_known_hold_the_rest():
    table = bodies()
    known = served(table, *"aaaaabbbb")
    assert all(table.hold(each, 7 * MIB) for each in known)
    [stranger] = admitted(table, "c")
    assert table.hold(stranger, 7 * MIB)
    assert ended(known) == [0]


def test_what_is_being_judged_is_not_taken_away():
    table = bodies()
    judged = admitted(table, *"aaaaaaaaa", busy=True)
    assert all(table.hold(each, 7 * MIB) for each in judged)
    [other] = admitted(table, "b")
    assert not table.hold(other, 7 * MIB)
    assert table.hold(other, 6000), "short ones have room of their own"


def test_a_body_that_fits_does_not_wait_behind_one_that_does_not():
    async def waiting():
        table = bodies()
        judged = [*admitted(table, *"aaaaaaaaa", busy=True), *admitted(table, "b", busy=True)]
        assert [table.hold(each, 7 * MIB) for each in judged[:-1]] == [True] * 9
        assert table.hold(judged[-1], MIB)
        large, small = *served(table, "c"), *admitted(table, "d")
        until = asyncio.get_running_loop().time() + 10
        first = asyncio.create_task(table.hold_by(large, 7 * MIB, until))
        second = asyncio.create_task(table.hold_by(small, MIB, until))
        await asyncio.sleep(0)
        table.release(judged[-1])
        assert await asyncio.wait_for(second, 1)
        table.release(judged[0])
        assert await asyncio.wait_for(first, 1)

    asyncio.run(waiting())


def grown(table, *connections):
    for each in connections:
        table.grown(each)


@pytest.fixture
def _few(monkeypatch):
    monkeypatch.setattr(connection_table, "MAX_BULKY", 8)


@pytest.mark.usefixtures("_few")
def test_of_too_many_large_buffers_the_largest_source_loses_its_oldest_that_is_not_busy():
    table = ConnectionTable("admission", 100)
    known = served(table, *"aaabbbbb")
    known[3].busy = True
    grown(table, *known)
    assert ended(known) == []
    another = served(table, "a")
    grown(table, *another)
    assert ended(known) == [4]
    assert table.count == 8


@pytest.mark.usefixtures("_few")
def test_strangers_with_large_buffers_go_before_the_known_until_an_eighth_is_left():
    table = ConnectionTable("admission", 100)
    known, strangers = served(table, *"aaaaaa"), admitted(table, *"xxx")
    grown(table, *known, *strangers)
    assert ended(strangers) == [0]
    assert ended(known) == []
    more = served(table, "b")
    grown(table, *more)
    assert ended(strangers) == [0, 1]
    grown(table, *served(table, "c"))
    assert ended(strangers) == [0, 1]
    assert ended(known) == [0]


@pytest.mark.usefixtures("_few")
def test_a_connection_that_leaves_takes_its_large_buffers_with_it():
    table = ConnectionTable("admission", 100)
    for _ in range(20):
        (one,) = admitted(table, "a")
        grown(table, one)
        table.leave(one)
        assert not one.ended


def test_the_log_has_one_line_in_ten_seconds_and_the_metric_counts_each(caplog):
    clock = Clock()
    counted = []
    table = ConnectionTable("health", 4, ended=lambda *told: counted.append(told), clock=clock)
    admitted(table, *"aabb", *"cdefgh")
    assert counted == [("health", "made-room")] * 6
    assert len(caplog.records) == 1
    clock.now = 11.0
    for each in table:
        each.busy = True
    assert not table.admit(Connection("z"))
    assert counted[-1] == ("health", "refused")
    first, last = (each.fields for each in caplog.records)
    assert (first["connections"], first["largestSource"], first["itsConnections"], first["ended"]) == (4, "a", 2, 1)
    assert (last["port"], last["connections"], last["ended"]) == ("health", 4, 6)


@pytest.mark.parametrize(
    ("host", "source"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("fd00::1:2:3", "fd00::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("fd00:0:0:1::2", "fd00:0:0:1::/64"),
    ],
)
def test_sources(host, source):
    assert source_of(host) == source
