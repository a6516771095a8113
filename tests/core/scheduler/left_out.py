"""Write the facts a verdict leaves out into docs/left-out.md: ``PYTHONPATH=tests python`` with this file."""

import re
from pathlib import Path

from webhook.core.scheduler.not_evaluated import NOT_ADMITTED, NOT_EVALUATED

FILE = Path(__file__).resolve().parents[3] / "docs" / "left-out.md"
_BLOCK = re.compile(r"<!-- left out -->\n.*?<!-- end -->", re.DOTALL)
_CLAIMS = "pods with volumes, if RBAC forbids reading these objects"
# Which pods each entry matters for, as `not_evaluated` finds them.
MATTERS_FOR = {
    "SchedulerConfiguration": "every pod, unless the policy's `schedulerConfiguration` names the scheduler's file",
    "SchedulingGates": "pods with scheduling gates",
    "PodGroup": "pods with a `schedulingGroup`",
    "DynamicResources": "pods with resource claims or extended resources",
    "NodeDeclaredFeatures": "pods with `hostNetwork: true` and `hostUsers: false`",
    "CSIStorageCapacity": _CLAIMS,
    "VolumeAttachment": _CLAIMS,
    "CSIDriver": _CLAIMS,
    "EphemeralVolumes": "new pods with ephemeral volumes, if their StorageClass is `Immediate` or missing",
    "SchedulerExtenders": "every pod, if `schedulerConfiguration` names the scheduler's file",
    "LimitRange": "new pods, if LimitRanges cannot be read, or two of a namespace give different amounts",
    "PriorityClass": "new pods, if classes cannot be read, or the pod's class is missing",
    "RuntimeClass": "new pods with a `runtimeClassName`, if classes cannot be read, or the pod's class is missing",
    "AdmissionPlugins": "new pods (`explain FILE`, templates)",
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
