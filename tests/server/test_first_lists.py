"""Reviews that come before the cluster was listed: how many wait, and for how long."""

import asyncio

from webhook.metrics import Metrics
from webhook.server import first_lists
from webhook.server.first_lists import FirstLists


class Feed:
    synced = False


def outcomes(metrics):
    lines = [line for line in metrics.text().decode().splitlines() if "wait_seconds_count{" in line]
    return {line.partition('"')[2].partition('"')[0]: float(line.rpartition(" ")[2]) for line in lines}


def test_no_more_than_so_many_wait(monkeypatch):
    monkeypatch.setattr(first_lists, "MAX_WAITING_REVIEWS", 2)
    metrics, feed = Metrics(), Feed()

    async def run():
        waits = FirstLists(feed, metrics)
        waits.start()
        reviews = [asyncio.create_task(waits.wait(60.0, "127.0.0.1")) for _ in range(3)]
        await asyncio.sleep(0.01)
        assert [each.done() for each in reviews] == [False, False, True]
        feed.synced = True
        await asyncio.gather(*reviews)
        assert not waits.awaited
        waits.close()

    asyncio.run(run())
    assert outcomes(metrics) == {"crowded": 1.0, "listed": 2.0}


def test_without_a_feed_nothing_is_awaited():
    waits = FirstLists(None, Metrics())
    waits.start()
    assert not waits.awaited
    waits.close()
