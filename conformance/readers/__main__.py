"""What Karpenter and the descheduler make of constraints, beside kube-scheduler; each of the three is its own code.

usage: python -m conformance.readers ORACLE KARPENTER DESCHEDULER SEED COUNT [FILE]

COUNT random clusters of each family (`questions.py`). Of Karpenter: which nodes of today take the Deployment's next pod. Of the
descheduler: whom a run evicts, and whether that comes to an end (`rounds.py`), beside our own repairs (`repairs.py`). Prints the
tables of docs/exactness.md; with FILE, writes the answers for `make test`.
"""

import gzip
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from conformance.readers.questions import FAMILIES, SHOWN, next_pod, question
from conformance.readers.repairs import table_of_repairs
from conformance.readers.rounds import EVICTED, ROUNDS, VERDICT, course, together
from conformance.readers.said import of_karpenter

_COLUMNS = ("clusters", "alike", "said of alike", "fewer", "more", "said")
RECORDED = Path(__file__).parent / "recorded.jsonl.gz"


def ask(command, questions):
    """The answers of a program that reads and writes JSON Lines."""
    text = "".join(json.dumps(each) + "\n" for each in questions)
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert not [each for each in answers if each.get("error")], [each["error"] for each in answers if each.get("error")][:3]
    return answers


def cases(oracle, karpenter, descheduler, seed, count):
    """The questions, each with the nodes that take the next pod, of kube-scheduler and of Karpenter, and the descheduler's runs."""
    asked = [question(seed, family, number) for family in FAMILIES for number in range(count)]
    posted = [next_pod(each) for each in asked]
    scenarios = ({"id": each["id"], "nodes": each["nodes"], "pods": each["pods"], "pod": pod, "podTopologySpreadArgs": None}
                 for each, pod in zip(asked, posted))  # fmt: skip
    verdicts = ask([oracle, "verdict"], scenarios)
    admitted = ask([oracle, "validate"], ({"id": each["id"], "object": pod} for each, pod in zip(asked, posted)))
    found = ask([karpenter], (of_karpenter_alone(*each) for each in zip(asked, posted, admitted)))
    programs = {VERDICT: lambda questions: ask([oracle, "verdict"], questions), EVICTED: lambda questions: ask([descheduler], questions)}
    runs = together([course(each) for each in asked], programs)
    for each, verdict, said, evicting in zip(asked, verdicts, found, runs):
        kube = sorted(name for name, status in verdict["nodes"].items() if status["code"] == "Success")
        placing = {"kube": kube, "first": said["first"], "relaxed": said["relaxed"], "solved": said["solved"]}
        yield {"asked": each, **placing, "evicting": evicting}


def of_karpenter_alone(asked, pod, admitted):
    """The question with the pod as kube-apiserver stores it: matchLabelKeys stand in the selectors."""
    stored = {**pod, "spec": {**pod["spec"], "topologySpreadConstraints": admitted["topologySpreadConstraints"]}}
    zones = sorted({each["metadata"]["labels"]["topology.kubernetes.io/zone"] for each in asked["nodes"]})
    replicas = asked["deployment"]["spec"]["replicas"]
    return {"id": asked["id"], "nodes": asked["nodes"], "pods": asked["pods"], "pod": stored, "replicas": replicas, "zones": zones}


def table(found):
    """By family, how many clusters; in how many both take the same nodes; in how many of either the rule speaks."""
    counts = Counter()
    for case in found:
        family, kube, first = case["asked"]["family"], set(case["kube"]), set(case["first"])
        counts[family, "clusters"] += 1
        counts[family, "alike"] += kube == first
        counts[family, "fewer"] += bool(kube - first)
        counts[family, "more"] += bool(first - kube)
        counts[family, "said" if kube != first else "said of alike"] += bool(of_karpenter(case["asked"]))
    yield "| constraints | clusters | the same nodes accepted | of these, reported by the rule | Karpenter accepts fewer | Karpenter accepts more | of the last two, reported by the rule |"
    yield "|---|---|---|---|---|---|---|"
    for family in FAMILIES:
        yield f"| {SHOWN.get(family, family)} | " + " | ".join(f"{counts[family, each]:,}" for each in _COLUMNS) + " |"


def table_of_evictions(found):
    """By family, whether a first run evicts where a pod is out of place, and whether runs come to an end."""
    counts = Counter()
    for case in found:
        family, evicting = case["asked"]["family"], case["evicting"]
        out, evicts = bool(evicting["outOfPlace"]), bool(evicting["first"])
        counts[family, "clusters"] += 1
        counts[family, "right"] += out and evicts
        counts[family, "needless"] += evicts and not out
        counts[family, "left"] += out and not evicts
        counts[family, "endless"] += bool(evicting["evicted"][-1])
        counts[family, "pending"] += bool(evicting["pending"])
    names = f"evicts, and a pod was out of place | evicts, and no pod was out of place | leaves pods out of place | still evicts in run {ROUNDS} | pods stay Pending"
    yield f"| constraints | clusters | {names} |"
    yield "|---|---|---|---|---|---|---|"
    for family in FAMILIES:
        numbers = (counts[family, each] for each in ("clusters", "right", "needless", "left", "endless", "pending"))
        yield f"| {SHOWN.get(family, family)} | " + " | ".join(f"{each:,}" for each in numbers) + " |"


def write(path, found):
    """Equal content gives an equal file."""
    text = "".join(json.dumps(each, sort_keys=True) + "\n" for each in found)
    with open(path, "wb") as out, gzip.GzipFile(fileobj=out, mode="wb", mtime=0, filename="") as packed:
        packed.write(text.encode())


def read(path=RECORDED):
    with gzip.open(path, "rt") as lines:
        return [json.loads(line) for line in lines]


def main(oracle, karpenter, descheduler, seed, count, path=""):
    found = list(cases(oracle, karpenter, descheduler, seed, int(count)))
    print("\n".join([*table(found), "", *table_of_evictions(found), "", *table_of_repairs(found)]))
    if path:
        write(path, found)


if __name__ == "__main__":
    main(*sys.argv[1:])
