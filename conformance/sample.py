"""Take of vectors of an older release the few that show how it differs from the newest, and some that do not.

usage: python sample.py NEWEST_ORACLE VERSION OUT.jsonl.gz FILE...

What differs is asked of the newest oracle. Of each kind of difference the smallest cases are taken, up to two.
"""

import gzip
import json
import re
import subprocess
import sys
from collections import Counter

from webhook.conformance.validate_cases import members

EACH, ALIKE = 2, 12
# What names things of one case alone: it says nothing of the kind of a difference.
_OWN = re.compile(r"\[[^]]*\]|\{[^}]*\}|[0-9]+")
_TEXT = re.compile(r'"[^"]*"')
_SAID = ("reasons[]", "reasons", "code", "plugin", "detail", "decodeError", "error")


def kind_of(scenario):
    names = {"object": "validate", "create": "admit", "pod": "verdict"}
    return next((kind for name, kind in names.items() if name in scenario), "args")


def answers(oracle, kind, scenarios):
    done = subprocess.run([oracle, kind], input=b"\n".join(scenarios) + b"\n", stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def differences(one, other, path=""):
    """Where two answers differ, each with both values."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted({*one} | {*other}):
            # Names of nodes, plugins and resources are no place of their own.
            inside = "*" if path.rpartition(".")[2] in {"nodes", "spread", "scores", "nodeScores", "counts"} else name
            yield from differences(one.get(name), other.get(name), f"{path}.{inside}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for a, b in zip(one, other, strict=True):
            yield from differences(a, b, f"{path}[]")
    elif one != other:
        yield path, one, other


def kinds(one, other):
    """What is said otherwise, without what it is said of."""
    return {(path, *(_shape(path, each) for each in (a, b))) for path, a, b in differences(one, other)}


def _shape(path, value):
    text = json.dumps(value)
    return _OWN.sub("~", text if path.endswith(_SAID) else _TEXT.sub("~", text))[:120]


def main(oracle, version, out, *files):
    taken, seen, alike = [], Counter(), Counter()
    for file in files:
        with gzip.open(file) if file.endswith(".gz") else open(file, "rb") as lines:
            cases = sorted(lines, key=len)
        # Scenarios stay the bytes that they are: some have what no JSON writer would write.
        scenarios = [members(each)["scenario"] for each in cases]
        said = answers(oracle, kind_of(members(scenarios[0])), scenarios)
        for line, newest in zip(cases, said, strict=True):
            expected = json.loads(members(line)["expected"])
            partial = {name: newest.get(name) for name in expected} if "mutated" in file else newest
            different = kinds(expected, partial)
            fresh = {each for each in different if seen[each] < EACH}
            if fresh or (not different and alike[file] < ALIKE and len(line) % 2):
                seen.update(different)
                alike[file] += not different
                taken.append(line)
    with gzip.GzipFile(out, "wb", mtime=0) as file:
        file.write(json.dumps({"kubernetesVersion": version}).encode() + b"\n")
        file.writelines(taken)
    print(f"{len(taken)} cases, {sum(alike.values())} of them as the newest release answers", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
