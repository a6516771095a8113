"""Writes what verdicts leave out into docs/exactness.md: ``PYTHONPATH=tests python`` with this file."""

import re
from pathlib import Path

from webhook.core.scheduler.problem import NOT_ADMITTED, NOT_EVALUATED

FILE = Path(__file__).resolve().parents[3] / "docs" / "exactness.md"
_BLOCK = re.compile(r"<!-- left out -->\n.*?<!-- end -->", re.DOTALL)
_CLAIMS = "pods with volumes, where these objects may not be read"
# Which pods each entry matters for, as `problem.not_evaluated` finds them.
MATTERS_FOR = {
    "SchedulerConfiguration": "every pod, unless `schedulerConfiguration` of the policy names the scheduler's file",
    "SchedulingGates": "pods with scheduling gates",
    "PodGroup": "pods with a schedulingGroup",
    "DynamicResources": "pods with either",
    "NodeDeclaredFeatures": "pods in the host network with users of their own",
    "CSIStorageCapacity": _CLAIMS,
    "VolumeAttachment": _CLAIMS,
    "CSIDriver": _CLAIMS,
    "SchedulerExtenders": "every pod, where `schedulerConfiguration` names the scheduler's file",
    "LimitRange": "the same, where LimitRanges may not be read, or two of a namespace give different amounts",
    "PriorityClass": "the same, where classes may not be read, or the pod's is not there",
    "RuntimeClass": "pods with a runtimeClassName, likewise",
    "AdmissionPlugins": "pods that are yet to be created (`explain FILE`, templates)",
}


def table():
    rows = [
        f"| {name}: {what} | {MATTERS_FOR.get(name, '')} |" for name, what in (NOT_EVALUATED | NOT_ADMITTED).items()
    ]
    return "\n".join(["| not evaluated | matters for |", "|---|---|", *rows])


def with_what_is_left_out(text):
    """The page with the table written anew."""
    return _BLOCK.sub(lambda _: f"<!-- left out -->\n{table()}\n<!-- end -->", text)


if __name__ == "__main__":
    FILE.write_text(with_what_is_left_out(FILE.read_text()))
