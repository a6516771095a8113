"""What Karpenter makes of constraints, beside kube-scheduler; both are their own code.

usage: python -m conformance.readers ORACLE KARPENTER SEED COUNT [FILE]

COUNT random clusters of each family (`questions.py`): which nodes of today take the Deployment's next pod. Prints the table of
docs/exactness.md; with FILE, writes the answers for `make test`.
"""

import gzip
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from conformance.readers.questions import FAMILIES, next_pod, question
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


def cases(oracle, karpenter, seed, count):
    """The questions, each with the nodes that take the next pod: of kube-scheduler, and of Karpenter."""
    asked = [question(seed, family, number) for family in FAMILIES for number in range(count)]
    posted = [next_pod(each) for each in asked]
    scenarios = ({"id": each["id"], "nodes": each["nodes"], "pods": each["pods"], "pod": pod, "podTopologySpreadArgs": None}
                 for each, pod in zip(asked, posted))  # fmt: skip
    verdicts = ask([oracle, "verdict"], scenarios)
    admitted = ask([oracle, "validate"], ({"id": each["id"], "object": pod} for each, pod in zip(asked, posted)))
    found = ask([karpenter], (of_karpenter_alone(*each) for each in zip(asked, posted, admitted)))
    for each, verdict, said in zip(asked, verdicts, found):
        kube = sorted(name for name, status in verdict["nodes"].items() if status["code"] == "Success")
        yield {"asked": each, "kube": kube, "first": said["first"], "relaxed": said["relaxed"], "solved": said["solved"]}


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
    yield "| constraints | clusters | the same nodes | of these, the rule speaks | Karpenter takes fewer | takes more | of these, the rule speaks |"
    yield "|---|---|---|---|---|---|---|"
    for family in FAMILIES:
        yield f"| {family} | " + " | ".join(f"{counts[family, each]:,}" for each in _COLUMNS) + " |"


def write(path, found):
    """Equal content gives an equal file."""
    text = "".join(json.dumps(each, sort_keys=True) + "\n" for each in found)
    with open(path, "wb") as out, gzip.GzipFile(fileobj=out, mode="wb", mtime=0, filename="") as packed:
        packed.write(text.encode())


def read(path=RECORDED):
    with gzip.open(path, "rt") as lines:
        return [json.loads(line) for line in lines]


def main(oracle, karpenter, seed, count, path=""):
    found = list(cases(oracle, karpenter, seed, int(count)))
    print("\n".join(table(found)))
    if path:
        write(path, found)


if __name__ == "__main__":
    main(*sys.argv[1:])
