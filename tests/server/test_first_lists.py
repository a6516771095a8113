"""Reviews that come before the cluster was listed wait for that."""

import asyncio

from webhook.metrics import Metrics
from webhook.server.waiting import FirstLists


class Feed:
    synced = False


def outcomes(metrics):
    lines = [line for line in metrics.text().decode().splitlines() if "wait_seconds_count{" in line]
    return {line.partition('"')[2].partition('"')[0]: float(line.rpartition(" ")[2]) for line in lines}


def test_all_wait():
    metrics, feed = Metrics(), Feed()

    async def run():
        waits = FirstLists(feed, metrics)
        waits.start()
        reviews = [asyncio.create_task(waits.wait(60.0)) for _ in range(1000)]
        await asyncio.sleep(0.01)
        assert not any(each.done() for each in reviews)
        feed.synced = True
        await asyncio.gather(*reviews)
        assert not waits.awaited
        waits.close()

    asyncio.run(run())
    assert outcomes(metrics) == {"listed": 1000.0}


def test_without_a_feed_nothing_is_awaited():
    waits = FirstLists(None, Metrics())
    waits.start()
    assert not waits.awaited
    waits.close()
