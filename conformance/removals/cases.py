"""Random pods of a controller that scales in, each case determined by its seed and number."""

import random
from datetime import UTC, datetime, timedelta

from webhook.core.api.well_known import DELETION_COST_ANNOTATION

NOW = datetime(2026, 11, 28, tzinfo=UTC)
SMALL = 4  # pods of which every UID and order is tried
COSTS = ("1", "-1", "0", "-0", "100", "-007", "007", "+1", "", "1.5", "x", "2147483647", "2147483648", "-2147483648")
# Seconds. Those of a row share a bucket, or lie on both sides of a power of two: 2**40 ns are 1,099.5 s.
ROWS = ((60, 61, 68, 69), (549, 550, 900, 1099), (1000, 1099, 1100, 1101), (1100, 1500, 2198, 2200), (86400, 90000, 140000), (-1, -3600, 1))
AGES = (1, 2, 60, 549, 1000, 1100, 2198, 86400, 10**7, -5)
# Once around zero and after 292 years: what a controller with a clock of its own does not see twice alike is compared in pairs.
ODD_AGES = (0, 400 * 31536000, 500 * 31536000)
ZERO_TIME = "0001-01-01T00:00:00Z"


def case(seed, number):
    """A case in the words of `removals/main.go`."""
    draw = random.Random(f"removals-{seed}-{number}")
    timeless = draw.random() < 0.1
    near = draw.choice((*ROWS, AGES))
    ages = draw.sample(near + ODD_AGES if timeless else near, draw.randint(1, 3))
    count = draw.choices((draw.randint(1, SMALL), draw.randint(5, 12), draw.randint(13, 30)), (6, 3, 1))[0]
    varied = {field for field in FIELDS if draw.random() < 0.4}
    pods = [pod(draw, f"{draw.choice(('web', 'db'))}-{index}", ages, varied) for index in range(count)]
    others = [pod(draw, f"other-{index}", ages, varied) for index in range(draw.randint(0, 4))]
    uids = draw.sample(range(10**6), count)
    for each, uid in zip(pods, uids, strict=True):
        each["metadata"]["uid"] = f"{uid:06}"
    tries = -1 if timeless else 0 if count <= SMALL else 0 if count == SMALL + 1 and draw.random() < 0.05 else 30
    related = [] if draw.random() < 0.2 else [*pods, *others]
    return {"id": f"{seed}-{number}", "now": written(NOW), "pods": pods, "related": related, "tries": tries, "seed": number}


FIELDS = ("node", "state", "ready", "cost", "readyTime", "restarts", "created", "ended")


def pod(draw, name, ages, varied):
    """A pod that differs from the others in the varied fields only."""

    def drawn(field, usual, other):
        return other() if field in varied else usual

    def restarts():
        return drawn("restarts", 0, lambda: draw.choice((0, 0, 1, 7)))

    metadata = {"name": name, "creationTimestamp": drawn("created", time_of(ages[0]), lambda: any_time(draw, ages))}
    if cost := drawn("cost", None, lambda: draw.choice((None, *COSTS))):
        metadata["annotations"] = {DELETION_COST_ANNOTATION: cost}
    phase = drawn("state", "Running", lambda: draw.choice(("Running", "Running", "Pending", "Unknown", "")))
    if "ended" in varied and draw.random() < 0.2:
        phase = draw.choice(("Succeeded", "Failed", phase))
        if draw.random() < 0.5:
            metadata["deletionTimestamp"] = time_of(1)
    ready = drawn("ready", "True", lambda: draw.choice(("True", "True", "False", "Unknown", None)))
    since = drawn("readyTime", time_of(ages[-1]), lambda: any_time(draw, ages))
    conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": time_of(1)}]
    if ready:
        conditions.append({"type": "Ready", "status": ready, "lastTransitionTime": since})
    if "ready" in varied and draw.random() < 0.1:  # as no kubelet writes them: only the first counts
        conditions.append({"type": "Ready", "status": draw.choice(("True", "False")), "lastTransitionTime": time_of(2)})
    return {
        "metadata": metadata,
        "spec": {
            "nodeName": drawn("node", "n1", lambda: draw.choice(("n1", "n1", "n2", "n3", ""))),
            "initContainers": [{"name": "proxy", "restartPolicy": "Always"}, {"name": "setup"}],
        },
        "status": {
            "phase": phase,
            "conditions": conditions,
            "containerStatuses": [{"name": "a", "restartCount": restarts()}, {"name": "b", "restartCount": restarts()}],
            "initContainerStatuses": [
                {"name": "setup", "restartCount": restarts()},
                {"name": "proxy", "restartCount": restarts()},
            ],
        },
    }


def any_time(draw, ages):
    return draw.choice((None, ZERO_TIME)) if draw.random() < 0.1 else time_of(draw.choice(ages))


def time_of(age):
    return written(NOW - timedelta(seconds=age))


def written(time):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")
