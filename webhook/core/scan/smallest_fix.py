"""The smallest change of a workload that helps it most: first its pods that wait, then what would be refused.

Only what was tried is offered: fixes of a pod by its filters, of findings by the rules. What is left is words.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from webhook.core.defaulting.injection import Injection
from webhook.core.explain.edit_target import target
from webhook.core.explain.explanation import Explanation
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.json_edits import Edit, applied, value_at
from webhook.core.policy.policy import Mode
from webhook.core.review.judging import JudgedFinding
from webhook.core.scan.scan_context import ObjectKey, key_of
from webhook.core.scan.scanned import SmallestFix
from webhook.core.text import one_line
from webhook.core.workloads.workload import Workload
from webhook.core.yaml_text import block_lines, plain

# Paths whose steps need no quotes; below a list the whole list is shown.
_PLAIN_PATH = re.compile(r"[A-Za-z]\w*(?:\.[A-Za-z]\w*)*", re.ASCII)
_MOST_CHARS = 500


def fix_for_pending(explanation: Explanation, of: ObjectKey, raw: object, index: ReadOnlyIndex) -> SmallestFix | None:
    """The smallest change after which a node admits the pod that waits; None if no change of its constraints helps."""
    fix = next(iter(explanation.fixes), None)
    if fix is None:
        return None
    edited = target(explanation.problem.pod, index)
    mine = of == key_of(edited.namespace, edited.api_version, edited.kind, edited.name)
    placed = (edited.placed(fix.changes) if mine else None) or ()
    root = f"{edited.path}spec.topologySpreadConstraints"
    yaml = _yaml(raw, [Edit(f"{root}{each.at}", plain(each.value)) for each in placed])
    return SmallestFix(of="pending", text=one_line(explanation.in_words(fix), _MOST_CHARS), yaml=yaml)


def fix_for_findings(judged: Sequence[JudgedFinding], raw: object) -> SmallestFix | None:
    """The fix of the finding that matters most: what would be refused, then by severity; one with edits comes first."""
    told = [each for each in judged if not each.waived and (each.finding.remedy or each.finding.fix)]
    if not told:
        return None
    first = min(told, key=_weight)
    finding = first.finding
    text = one_line(finding.remedy or finding.fix, _MOST_CHARS)
    return SmallestFix(of=finding.rule, text=text, yaml=_yaml(raw, finding.edits))


def fix_by_defaults(injection: Injection, workload: Workload) -> SmallestFix | None:
    """Declaring what injection adds; None for an object with several templates, and for selectors alone."""
    if len(workload.templates) != 1 or injection.record.filled:
        return None
    path = workload.templates[0].constraints_path
    return SmallestFix(
        of="defaults", text="declare the configured defaults", yaml=_page({path: plain(injection.constraints)})
    )


def _weight(judged: JudgedFinding) -> tuple[int, int, int]:
    """What puts the finding that matters most first."""
    finding = judged.finding
    return -(judged.configured is Mode.DENY), judged.severity.rank, -bool(finding.edits)


def _yaml(raw: object, edits: Iterable[Edit]) -> str:
    """The changed parts of the object; empty if there are none, or one is gone or has no plain path."""
    edits = tuple(edits)
    try:
        changed = applied(raw, edits)
    except LookupError:
        return ""
    parts = dict.fromkeys(each.path.partition("[")[0] for each in edits)
    values = {path: value_at(changed, path) for path in parts}
    if not values or any(value is None or not _PLAIN_PATH.fullmatch(path) for path, value in values.items()):
        return ""
    return _page(values)


def _page(values: Mapping[str, object]) -> str:
    """YAML with these values at their paths."""
    whole: dict[str, object] = {}
    for path, value in values.items():
        *above, last = path.split(".")
        inner = whole
        for step in above:
            below = inner.setdefault(step, {})
            inner = below if isinstance(below, dict) else {}
        inner[last] = value
    return "".join(f"{line}\n" for line in block_lines(whole))
