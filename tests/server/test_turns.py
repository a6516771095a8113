"""Who is next."""

import asyncio

import pytest
from build import Clock

from webhook.core.review.decision import AdmissionRequest
from webhook.server.turns import Turns, caller_of


def asker(text):
    """As "api shop ann": a source, a namespace, a user; "stranger" is an unknown source."""
    source, namespace, *user = text.split()
    groups = () if user else ("system:serviceaccounts:kube-system",)
    fields = {"namespace": namespace, "user": "".join(user), "groups": groups}
    request = AdmissionRequest(uid="u", operation="CREATE", group="", version="v1", kind="Pod", **fields)
    return caller_of(request, source, known=source != "stranger")


def order(items, *texts, used=(), clock=None):
    """The order in which those get their turn who come in this one; ``used`` are seconds of earlier turns."""

    async def play():
        turns = Turns(clock or Clock())
        for text, seconds in used:
            turns.put(None)
            await turns.get(asker(text))
            turns.done(asker(text), seconds)
            if clock is not None:
                clock.now += 11
        had = []

        async def turn(text):
            await turns.get(asker(text))
            had.append(text)

        tasks = [asyncio.create_task(turn(text)) for text in texts]
        await asyncio.sleep(0)
        for _ in range(items):
            turns.put(None)
            await asyncio.sleep(0)
            while len(had) < items and not turns._items:
                turns.done(asker(had[-1]), 0.0)
                turns.put(None)
                await asyncio.sleep(0)
                if not turns._waiting:
                    break
        for task in tasks:
            task.cancel()
        return had

    return asyncio.run(play())


def firsts(text, *waiting, used=()):
    return order(1, *waiting, used=used)[0] == text


@pytest.mark.parametrize(
    ("first", "waiting", "used"),
    [
        pytest.param("api a x", ["api a x", "api b y"], [], id="who came first"),
        pytest.param("api b y", ["api a x", "api b y"], [("api a x", 1.0)], id="the namespace that has used less"),
        pytest.param("api b y", ["api c x", "api b y"], [("api a x", 1.0)], id="the user that has used less"),
        pytest.param("api a x", ["eve a x", "api a x"], [("eve z z", 1.0)], id="the source that has used less"),
        pytest.param("api a x", ["eve b y", "api a x"], [("eve b y", 2.0), ("api a x", 1.0)], id="whatever it names"),
        pytest.param("api a x", ["stranger b y", "api a x"], [("api a x", 9.0)], id="a known source"),
    ],
)
def test_who_is_first(first, waiting, used):
    assert firsts(first, *waiting, used=used)


def test_a_neighbour_that_names_others_takes_only_its_own_turns():
    """The API server waits for one turn at most, however many a neighbour's connections are, and whatever they name."""
    waiting = [f"eve shop{number} user{number}" for number in range(50)] + ["api shop ann"]
    assert order(2, *waiting, used=[("eve shop ann", 0.5)])[0] == "api shop ann"


def test_what_was_used_is_forgotten():
    clock = Clock()
    used = [("api a x", 8.0), *[("api b y", 1.0)] * 4]
    assert order(1, "api a x", "api b y", used=used, clock=clock)[0] == "api a x"


def played(act):
    async def play():
        turns = Turns(Clock())
        return await act(turns)

    return asyncio.run(play())


def test_one_turn_at_a_time_of_a_namespace_and_of_a_user():
    async def act(turns):
        for _ in range(4):
            turns.put(None)
        await turns.get(asker("api a x"))
        same = [asyncio.create_task(turns.get(asker(text))) for text in ("api a y", "api b x")]
        other = asyncio.create_task(turns.get(asker("eve a x")))
        await asyncio.sleep(0)
        before = [each.done() for each in (*same, other)]
        turns.done(asker("api a x"), 0.1)
        await asyncio.sleep(0)
        return before, [each.done() for each in same]

    assert played(act) == ([False, False, True], [True, True])


def test_controllers_are_no_user():
    async def act(turns):
        for _ in range(2):
            turns.put(None)
        waiting = [asyncio.create_task(turns.get(asker(text))) for text in ("api a", "api b")]
        await asyncio.sleep(0)
        return [each.done() for each in waiting]

    assert played(act) == [True, True]


def test_who_goes_leaves_the_item():
    async def act(turns):
        gone = asyncio.create_task(turns.get(asker("api a x")))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait([gone])
        late = asyncio.create_task(turns.get(asker("api a x")))
        await asyncio.sleep(0)
        turns.put("item")
        late.cancel()  # at the moment at which it gets one
        await asyncio.wait([late])
        return await turns.get(asker("api a x"))

    assert played(act) == "item"


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        pytest.param([], False, id="nobody else"),
        pytest.param(["api a y"], True, id="one of the namespace"),
        pytest.param(["api b x", "api c x"], False, id="its user in other namespaces"),
        pytest.param(["api b y"], False, id="others"),
        pytest.param(["eve a x", "eve a x", "eve a x"], False, id="a neighbour that says to be one of them"),
    ],
)
@pytest.mark.parametrize("items", [0, 1])
def test_who_crowds_itself(others, expected, items):
    async def act(turns):
        for _ in range(items):
            turns.put(None)
        waiting = [asyncio.create_task(turns.get(asker(text))) for text in others]
        await asyncio.sleep(0)
        crowded = turns.crowds_itself(asker("api a x"))
        for each in waiting:
            each.cancel()
        return crowded

    assert played(act) is expected


def test_a_namespace_that_had_much_of_the_turns_crowds_itself():
    turns = Turns(Clock())
    turns.done(asker("api a x"), 1.0)
    assert [turns.crowds_itself(asker(text)) for text in ("api a y", "api b x", "eve a x")] == [True, False, False]


def test_what_was_used_before_a_quiet_day_is_forgotten():
    clock = Clock()
    turns = Turns(clock)
    turns.done(asker("api a x"), 60.0)
    clock.now += 86_400
    assert not turns.crowds_itself(asker("api a y"))


def test_long_names_are_not_remembered():
    turns = Turns(Clock())
    turns.done(asker(f"api {'n' * 60_000} {'u' * 60_000}"), 1.0)
    assert {type(key) for key in turns._used} == {int}
