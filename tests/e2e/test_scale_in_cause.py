"""`evenspread skew` and `explain` name the scale-in that left a Deployment uneven, by the events of a real cluster.

The events are those of the real controllers and scheduler. Deletion costs force the scale-ins.
"""

import collections
import contextlib
import json

import pytest
from e2e.objects import constraint
from e2e.served import PROGRAM
from e2e.test_scale_in import zones_of
from e2e.test_skew_fix import MOST, scale_in, shell
from e2e.waiting import eventually

LEFT = f"left by scale-in from {MOST} to 3"
PAUSE = 1.5  # Events have whole seconds. In the second of a placed pod, a scale-in is no proven cause.
SOFT = constraint(whenUnsatisfiable="ScheduleAnyway")


def answers(plane, namespace):
    """The line of `skew`, the page of `explain`, and `leftByScaleIn` in JSON."""
    commands = ("skew deployment/web", "explain deployment/web", "skew deployment/web -o json")
    where = f"-n {namespace} --no-config --kubeconfig {plane.admin}"
    table, page, found = (shell(plane, f"{PROGRAM} {command} {where}").stdout for command in commands)
    return table.splitlines()[1], page, json.loads(found)[0].get("leftByScaleIn")


def reasons(plane, namespace):
    events = plane.api.request("GET", f"/api/v1/namespaces/{namespace}/events")["items"]
    return collections.Counter(event["reason"] for event in events)


@contextlib.contextmanager
def cordoned(plane, zone):
    def cordon(value):
        for name in (name for name, where in zones_of(plane.api).items() if where == zone):
            patch = {"spec": {"unschedulable": value}}
            plane.api.request("PATCH", f"/api/v1/nodes/{name}", patch, "application/merge-patch+json")

    cordon(True)
    try:
        yield
    finally:
        cordon(None)


@pytest.mark.parametrize("written", [pytest.param(constraint(), id="hard"), pytest.param(SOFT, id="soft")])
def test_a_scale_in_is_the_cause(plane, namespace, written):
    scale_in(plane, namespace, {"a": 3}, written, pause=PAUSE)
    # Controllers and scheduler write their events a moment later.
    line, page, found = eventually(lambda: (now := answers(plane, namespace))[2] and now, 20, 1)
    assert line.endswith(f"a 3, b 0, c 0; {LEFT}")
    assert f"\n  above maxSkew: {LEFT}\n" in page
    assert found == {"from": MOST, "to": 3}


def test_a_zone_without_room_at_the_creation_is_not(plane, namespace):
    with cordoned(plane, "c"):
        scale_in(plane, namespace, {"a": 2, "b": 1}, SOFT, pause=PAUSE)
    # The evidence is complete: the answer follows from the nodes of the removed pods.
    eventually(
        lambda: (reasons(plane, namespace)["Scheduled"], reasons(plane, namespace)["SuccessfulDelete"]) == (MOST, 9)
    )
    line, page, found = answers(plane, namespace)
    assert line.endswith("a 2, b 1, c 0")
    assert ("above maxSkew" in page, found) == (False, None)
