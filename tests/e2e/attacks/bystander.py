"""Somebody who means no harm: pods and Deployments through the API server, and what becomes of them."""

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

from e2e.controlplane.up import ControlPlane
from e2e.objects import clean, constraint, costly, path, pod, workload

PAUSE = 0.05  # seconds between two rounds: not a load of its own
OTHERS = constraint(labelSelector={"matchLabels": {"app": "other"}})


class Call(NamedTuple):
    what: str  # beside | right | wrong; costly right | costly wrong, of somebody who writes large objects
    status: int  # 0 without an answer
    milliseconds: float
    message: str


@contextlib.contextmanager
def working(plane: ControlPlane, namespace: str, beside: str, *, large: bool = False) -> Iterator[list[Call]]:
    """Rounds of creations for as long as the block takes; what is created is deleted again.

    A round has a right pod and Deployment, their wrong twins, which a rule on deny refuses, and as many beside them, in
    a namespace that the webhook is not asked about: they show what the API server and the machine take by themselves.
    With ``large`` somebody else creates costly Deployments and long ones in the namespace, right and wrong.
    Shape: the calls so far; after the block, all of them.
    """
    calls: list[Call] = []
    ended = threading.Event()
    each = []
    for right, wrong in (
        (pod("web-", constraint()), pod("web-", OTHERS)),
        (_named(clean("Deployment")), _named(workload("Deployment", "web", OTHERS))),
    ):
        each += [("right", namespace, right), ("beside", beside, right)]
        each += [("wrong", namespace, wrong), ("beside", beside, wrong)]

    larger = []
    for right, wrong in ((costly("Deployment"), costly("Deployment", OTHERS)), (_long(), _long(OTHERS))):
        larger += [("costly right", namespace, _named(right)), ("costly wrong", namespace, _named(wrong))]

    def work(rounds: list) -> None:
        with contextlib.closing(plane.connect()) as api:
            while not ended.wait(PAUSE):
                for what, where, made in rounds:
                    kind = made["kind"]
                    began = time.perf_counter()
                    try:
                        answer = api.send("POST", path(kind, where), made)
                    except OSError as error:
                        calls.append(Call(what, 0, (time.perf_counter() - began) * 1e3, repr(error)))
                        continue
                    took = (time.perf_counter() - began) * 1e3
                    calls.append(Call(what, answer.status, took, answer.message))
                    if answer.status == 201:
                        name = answer.body["metadata"]["name"]
                        api.send("DELETE", path(kind, where, name), {"gracePeriodSeconds": 0})

    threads = [threading.Thread(target=work, args=(rounds,)) for rounds in ((each, larger) if large else (each,))]
    for thread in threads:
        thread.start()
    try:
        yield calls
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def _named(made: dict) -> dict:
    made["metadata"] = {"generateName": "web-"}
    return made


def _long(*constraints: dict) -> dict:
    """A Deployment of 105 KiB."""
    made = workload("Deployment", "web", *constraints) if constraints else clean("Deployment")
    made["spec"]["template"]["spec"]["containers"][0]["args"] = ["x" * 105 * 1024]
    return made


def slowest(calls: list[Call], *what: str) -> float:
    return max(each.milliseconds for each in calls if each.what in what)


def median(calls: list[Call], *what: str) -> float:
    took = sorted(each.milliseconds for each in calls if each.what in what)
    return took[len(took) // 2]


def failed(calls: list[Call]) -> list[Call]:
    return [each for each in calls if "wrong" not in each.what and each.status != 201]


def let_in(calls: list[Call]) -> list[Call]:
    return [each for each in calls if "wrong" in each.what and each.status == 201]
