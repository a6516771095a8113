"""Who is woken by what a watch brings."""

import pytest
from build import namespace, node, owner, pod

from webhook.cluster.feed import Waiters
from webhook.core.index.owners import Awaited

SET = Awaited(api_version="apps/v1", kind="ReplicaSet", namespace="shop", name="web-7d4")
SHOP = Awaited(api_version="v1", kind="Namespace", namespace="", name="shop")


@pytest.mark.parametrize(
    ("awaited", "changes", "woken"),
    [
        pytest.param(SET, [("ADDED", owner("ReplicaSet/web-7d4"))], 1, id="the owner"),
        pytest.param(SET, [("MODIFIED", owner("ReplicaSet/web-7d4"))], 1, id="it changed: it may be another one"),
        pytest.param(SET, [("DELETED", owner("ReplicaSet/web-7d4"))], 0, id="an earlier one went"),
        pytest.param(SET, [("ADDED", owner("ReplicaSet/web-8e5"))], 0, id="another name"),
        pytest.param(SET, [("ADDED", owner("StatefulSet/web-7d4"))], 0, id="another kind"),
        pytest.param(SET, [("ADDED", namespace()), ("ADDED", pod()), ("ADDED", node("n"))], 0, id="other objects"),
        pytest.param(SET, [("ADDED", owner("ReplicaSet/web-7d4"))] * 3, 1, id="once for a batch"),
        pytest.param(SHOP, [("ADDED", namespace())], 1, id="the namespace"),
        pytest.param(SHOP, [("ADDED", namespace("other"))], 0, id="another namespace"),
    ],
)
def test_who_is_woken(awaited, changes, woken):
    arrivals, calls = Waiters(), []
    with arrivals.expecting(awaited, lambda: calls.append(1)):
        arrivals.wake(changes)
    arrivals.wake(changes)  # nobody waits any more
    assert len(calls) == woken


def test_the_group_counts_and_not_its_version():
    arrivals, calls = Waiters(), []
    with arrivals.expecting(SET, lambda: calls.append(1)):
        arrivals.wake([("ADDED", owner("ReplicaSet/web-7d4"))])
        elsewhere = Awaited(api_version="other/v1", kind="ReplicaSet", namespace="shop", name="web-7d4")
        with arrivals.expecting(elsewhere, lambda: calls.append(2)):
            arrivals.wake([("ADDED", owner("ReplicaSet/web-7d4"))])
    assert calls == [1, 1]


def test_many_wait_for_one_and_end_in_any_order():
    arrivals, calls = Waiters(), []
    first, second = (arrivals.expecting(SET, lambda each=each: calls.append(each)) for each in "ab")
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    arrivals.wake([("ADDED", owner("ReplicaSet/web-7d4"))])
    second.__exit__(None, None, None)
    arrivals.wake([("ADDED", owner("ReplicaSet/web-7d4"))])
    assert calls == ["b"]
