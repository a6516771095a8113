"""Look for inputs that reach new code, and keep the fewest that reach all of it.

    PYTHONPATH=tests:. python -m fuzzing.grow TARGET SECONDS [FILE…]     # files are further inputs to begin with

Needs atheris (libFuzzer for Python), which nothing else here does: ``pip install atheris``. An input that raises ends
it, and stands in the folder of the corpus.
"""

import os
import sys
import tempfile
from pathlib import Path

import atheris
import coverage
from fuzzing.corpus import FOLDER, keep, kept

_LONGEST = 2048  # bytes of an input that is tried

with atheris.instrument_imports(include=["webhook"]):
    from fuzzing.targets import TARGETS


def main():
    name, seconds, *files = sys.argv[1:]
    known = kept(name) + [Path(file).read_bytes() for file in files]
    with tempfile.TemporaryDirectory() as folder:
        for number, data in enumerate(known):
            (Path(folder) / str(number)).write_bytes(data)
        child = os.fork()  # libFuzzer ends the process that it runs in
        if child == 0:
            look(name, seconds, folder)
        _, status = os.waitpid(child, 0)
        found = [each.read_bytes() for each in Path(folder).iterdir()]
    keep(name, fewest(name, found))
    sys.exit(bool(status))


def look(name, seconds, folder):
    flags = [f"-max_len={_LONGEST}", "-timeout=10", f"-max_total_time={seconds}", f"-artifact_prefix={FOLDER}/"]
    atheris.Setup([sys.argv[0], *flags, folder], TARGETS[name])
    try:
        atheris.Fuzz()
    finally:
        sys.stdout.flush()
        os._exit(1)


def fewest(name, inputs):
    """The shortest ones, each of which takes a step between two lines that no shorter one takes."""
    seen, least = set(), []
    for data in sorted(inputs, key=lambda each: (len(each), each)):
        steps = taken(TARGETS[name], data)
        if steps - seen:
            seen |= steps
            least.append(data)
    print(f"{name}: {len(inputs)} inputs, {len(least)} kept, {len(seen):,} steps")  # noqa: T201 its output
    return least


def taken(target, data):
    traced = coverage.Coverage(data_file=None, branch=True, source_pkgs=["webhook"])
    traced.start()
    try:
        target(data)
    finally:
        traced.stop()
    found = traced.get_data()
    return {(file, arc) for file in found.measured_files() for arc in found.arcs(file) or ()}


if __name__ == "__main__":
    main()
