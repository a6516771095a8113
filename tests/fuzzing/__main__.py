"""The kept inputs, and changed ones for some seconds: ``PYTHONPATH=tests:. python -m fuzzing SEED SECONDS``.

Exits with 1 where something was raised; the input is printed as a line that a corpus would keep.
"""

import json
import random
import sys
import time
import traceback

from fuzzing.corpus import kept, mutated
from fuzzing.targets import TARGETS


def tried(name, data):
    """Whether nothing was raised."""
    try:
        TARGETS[name](data)
    except Exception:  # noqa: BLE001 it is what is looked for
        print(f"{name}: {json.dumps(data.decode('latin-1'))}\n{traceback.format_exc()}")  # noqa: T201 its output
        return False
    return True


def main():
    seed, seconds = int(sys.argv[1]), float(sys.argv[2])
    rng, bad = random.Random(seed), 0  # noqa: S311 no secret
    for name in TARGETS:
        inputs, until, done = kept(name), time.monotonic() + seconds / len(TARGETS), 0
        bad += sum(not tried(name, each) for each in inputs)
        while time.monotonic() < until and bad < 10:
            bad += not tried(name, mutated(inputs, rng))
            done += 1
        print(f"{name}: {len(inputs)} kept inputs and {done:,} changed ones, seed {seed}")  # noqa: T201 its output
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
