"""A review whose pod came before its owner: what it waits for, how long, and what that costs others."""

import asyncio
import functools
import json
import threading

import pytest
from build import index, namespace, owner, policy, selector
from msgspec.structs import replace

from webhook import admission
from webhook.admission import Engine
from webhook.cluster.feed import LoopWriter, Waiters
from webhook.core.api.selectors import compile_selector
from webhook.core.api.version import RECORDED
from webhook.core.policy.defaults import DefaultsOverride
from webhook.core.policy.policy import Mode, Policy
from webhook.core.review.decision import AdmissionRequest
from webhook.metrics import Metrics
from webhook.server import waiting
from webhook.server.waiting import MAX_OF_NAMESPACE, MAX_WAITING_REVIEWS, OwnerWait

REFERENCE = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7d4", "uid": "new", "controller": True}
POD = {
    "metadata": {"labels": {"app": "web"}, "ownerReferences": [REFERENCE]},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
REQUEST = AdmissionRequest(
    uid="1", operation="CREATE", group="", version="v1", kind="Pod", namespace="shop", object=json.dumps(POD).encode()
)
OLD, NEW = (owner("ReplicaSet/web-7d4", f"app={uid}", replicas=3, uid=uid) for uid in ("old", "new"))


class Skipping(asyncio.SelectorEventLoop):
    """A loop in which waiting takes no time, but for what another thread does."""

    def __init__(self):
        super().__init__()
        self.now = 0.0
        select = self._selector.select

        def skip(timeout):
            self.now += timeout or 0.0
            return select(None if timeout is None else 0)

        self._selector.select = skip

    def time(self):
        return self.now


class Cluster:
    """A feed without a watch: what comes is applied, then told."""

    def __init__(self, *values, configured=None):
        self.index = index(*values)
        self.arrivals = Waiters()
        self.metrics = Metrics()
        self.patience = OwnerWait(self.arrivals, self.metrics)
        self.engine = Engine(policy=configured or policy(), version=RECORDED, index=self.index)
        self.judged = []

    def comes(self, value, event="ADDED"):
        self.index.apply(event, value)
        self.arrivals.wake([(event, value)])

    async def judge(self, *, waited, namespace="shop"):
        self.judged.append(waited)
        return admission.answer(
            "mutate",
            replace(REQUEST, namespace=namespace),
            self.engine,
            now="2026-01-01",
            waited=waited,
        )

    async def review(self, left=1.75, namespace="shop", source="127.0.0.1"):
        """What the pod gets: the selectors of its constraints, or the reason why it gets none."""
        answer = await self.patience.answer(functools.partial(self.judge, namespace=namespace), lambda: left, source)
        made = answer.decision.injection
        assert answer.decision.awaits is None
        return answer.decision.reason if made is None else made.constraints[0].label_selector.match_labels["app"]

    def waits(self, outcome):
        text = self.metrics.text().decode()
        name = f'evenspread_arrival_wait_seconds_count{{outcome="{outcome}"}} '
        return sum(float(line.removeprefix(name)) for line in text.splitlines() if line.startswith(name))


def run(coroutine):
    with asyncio.Runner(loop_factory=Skipping) as runner:
        return runner.run(coroutine)


def during(cluster, *changes, left=1.75):
    """The answer to a review during whose wait this happens, and how long it took."""

    async def play():
        loop = asyncio.get_running_loop()
        for seconds, value, *event in changes:
            loop.call_later(seconds, cluster.comes, value, *event)
        return await cluster.review(left), round(loop.time(), 4)

    return run(play())


@pytest.mark.parametrize(
    ("known", "changes", "answer"),
    [
        pytest.param([NEW], [], ("new", 0.0), id="it is there"),
        pytest.param([], [(0.01, NEW)], ("new", 0.01), id="it comes"),
        pytest.param([OLD], [(0.01, NEW, "MODIFIED")], ("new", 0.01), id="another of that name is known before"),
        pytest.param(
            [OLD], [(0.01, OLD, "DELETED"), (0.02, NEW)], ("new", 0.02), id="the other one goes, and it comes"
        ),
        pytest.param([OLD], [(0.01, OLD, "MODIFIED")], ("old", 0.25), id="only the other one: as the scheduler"),
        pytest.param([], [(0.01, owner("ReplicaSet/x"))], ("owner-unknown", 0.25), id="only one of another name"),
        pytest.param([], [(0.3, NEW)], ("owner-unknown", 0.25), id="it comes too late"),
    ],
)
def test_a_review_waits_for_the_owner(known, changes, answer):
    assert during(Cluster(*known), *changes) == answer


@pytest.mark.parametrize(
    ("left", "seconds"),
    [
        pytest.param(9.75, 0.25, id="never long"),
        pytest.param(0.75, 0.1875, id="a quarter of what the caller still waits"),
        pytest.param(0.0, 0.0, id="no time"),
        pytest.param(-1.0, 0.0, id="too late already"),
    ],
)
def test_how_long_it_waits_at_most(left, seconds):
    assert during(Cluster(), left=left) == ("owner-unknown", seconds)


def test_it_waits_for_the_owner_and_then_for_the_namespace():
    gold = DefaultsOverride(name="gold", namespace_selector=compile_selector(selector("tier=gold")))
    cluster = Cluster(configured=policy(overrides=(gold,)))
    answer = during(cluster, (0.01, NEW), (0.03, namespace("shop", "tier=gold")))
    assert answer == ("no-defaults", 0.03)
    assert cluster.waits("arrived") == 1


STRICT = namespace("shop", "evenspread.io/ceiling=deny")


@pytest.mark.parametrize(
    ("known", "changes", "expected"),
    [
        pytest.param([STRICT], [], (False, 0.0), id="it is there"),
        pytest.param([], [(0.01, STRICT)], (False, 0.01), id="it comes"),
        pytest.param([], [(0.01, namespace("shop"))], (True, 0.01), id="it comes, and says nothing"),
        pytest.param([], [(0.3, STRICT)], (True, 0.25), id="it comes too late: by the policy"),
    ],
)
def test_a_finding_waits_for_the_label_of_a_namespace_made_in_the_same_instant(known, changes, expected):
    cluster = Cluster(*known, configured=Policy(rules={"selector-not-self": Mode.DENY}))
    spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
    spread["labelSelector"] = {"matchLabels": {"app": "other"}}
    broken = {**POD, "spec": {**POD["spec"], "topologySpreadConstraints": [spread]}}
    request = replace(REQUEST, object=json.dumps(broken).encode())

    async def judge(*, waited):
        return admission.answer("validate", request, cluster.engine, now="2026-01-01", waited=waited)

    async def play():
        loop = asyncio.get_running_loop()
        for seconds, value in changes:
            loop.call_later(seconds, cluster.comes, value)
        answer = await cluster.patience.answer(judge, lambda: 1.75, "127.0.0.1")
        return answer.decision.allowed, round(loop.time(), 4)

    assert run(play()) == expected


def test_waits_are_counted_by_how_they_ended():
    arrived, gave_up = Cluster(), Cluster()
    during(arrived, (0.01, NEW))
    during(gave_up)
    assert (arrived.waits("arrived"), arrived.waits("gave-up")) == (1, 0)
    assert (gave_up.waits("arrived"), gave_up.waits("gave-up")) == (0, 1)


def test_without_a_watch_nobody_waits():
    cluster = Cluster()
    cluster.patience = OwnerWait(None, cluster.metrics)
    assert during(cluster) == ("owner-unknown", 0.0)
    assert cluster.judged == [True]


def test_an_owner_that_comes_before_the_wait_begins_is_not_missed():
    """It is asked for once more after the waiter is known."""
    cluster = Cluster()
    kept = cluster.judge

    async def judge(*, waited, **_of):
        answer = await kept(waited=waited)
        if len(cluster.judged) == 1:
            cluster.comes(NEW)
        return answer

    cluster.judge = judge
    assert during(cluster) == ("new", 0.0)


def test_it_is_woken_from_the_thread_of_a_watch():
    cluster = Cluster()

    async def play():
        review = asyncio.create_task(cluster.review())
        await asyncio.sleep(0)
        write = LoopWriter(asyncio.get_running_loop())
        thread = threading.Thread(target=write, args=([functools.partial(cluster.comes, NEW)],))
        thread.start()
        return await review, thread.join()

    assert asyncio.run(play())[0] == "new"


def test_others_are_answered_meanwhile():
    cluster, other = Cluster(), Cluster(NEW)

    async def play():
        waiting = asyncio.create_task(cluster.review())
        await asyncio.sleep(0)
        answers = [await other.review() for _ in range(3)]
        return answers, waiting.done(), await waiting

    assert run(play()) == (["new"] * 3, False, "owner-unknown")


def test_no_more_reviews_wait_than_the_limit():
    cluster = Cluster()

    async def play():
        others = [f"other-{number // MAX_OF_NAMESPACE}" for number in range(MAX_WAITING_REVIEWS - 1)]
        waiting = [asyncio.create_task(cluster.review(namespace=each)) for each in others]
        waiting.append(asyncio.create_task(cluster.review()))
        await asyncio.sleep(0)
        crowded = await cluster.review(), asyncio.get_running_loop().time()
        cluster.comes(NEW)
        answers = await asyncio.gather(*waiting)
        return crowded, set(answers[:-1]), answers[-1], await cluster.review()

    assert run(play()) == (("owner-unknown", 0.0), {"owner-unknown"}, "new", "new")
    assert (cluster.waits("crowded"), cluster.waits("arrived")) == (1, 1)


def test_a_namespace_has_its_own_limit_of_waiting_reviews():
    """Whoever may create pods in one namespace can name owners there that never come."""
    cluster = Cluster()

    async def play():
        waiting = [asyncio.create_task(cluster.review(namespace="evil")) for _ in range(MAX_OF_NAMESPACE)]
        await asyncio.sleep(0)
        crowded = await cluster.review(namespace="evil"), asyncio.get_running_loop().time()
        other = asyncio.create_task(cluster.review())
        await asyncio.sleep(0)
        cluster.comes(NEW)
        answers = set(await asyncio.gather(*waiting))
        return crowded, answers, await other

    assert run(play()) == (("owner-unknown", 0.0), {"owner-unknown"}, "new")
    assert cluster.waits("crowded") == 1


def test_what_a_neighbour_writes_takes_no_place_of_the_api_servers():
    cluster = Cluster()

    async def play():
        named = ["shop"] * MAX_OF_NAMESPACE + [
            f"other-{number // MAX_OF_NAMESPACE}" for number in range(MAX_WAITING_REVIEWS - MAX_OF_NAMESPACE)
        ]
        waiting = [asyncio.create_task(cluster.review(namespace=each, source="127.0.0.2")) for each in named]
        await asyncio.sleep(0)
        other = asyncio.create_task(cluster.review())
        await asyncio.sleep(0)
        cluster.comes(NEW)
        await asyncio.gather(*waiting)
        return await other

    assert run(play()) == "new"
    assert cluster.waits("crowded") == 0


def test_a_caller_who_goes_away_leaves_room(monkeypatch):
    monkeypatch.setattr(waiting, "MAX_WAITING_REVIEWS", 1)
    cluster = Cluster()

    async def play():
        gone = asyncio.create_task(cluster.review())
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait([gone])
        asyncio.get_running_loop().call_later(0.01, cluster.comes, NEW)
        return await cluster.review()

    assert run(play()) == "new"


def test_an_event_after_the_end_of_the_loop_is_nobodys_fault():
    """A stop while a review waits: the watch may still bring its owner."""
    cluster, wakes = Cluster(), []
    expecting = cluster.arrivals.expecting
    cluster.arrivals.expecting = lambda awaited, wake: wakes.append(wake) or expecting(awaited, wake)
    assert during(cluster)[0] == "owner-unknown"
    wakes[0]()
