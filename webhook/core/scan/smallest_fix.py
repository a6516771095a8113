"""Choose one fix for a workload.

The fix is for its Pending pods, else its worst finding, else its default constraints. Only tested changes get YAML. The
scheduler's filters test changes for Pending pods. The rules test changes for findings. Every other fix is only text.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from webhook.core.defaulting.injection import Injection
from webhook.core.explain.edit_target import edit_target
from webhook.core.explain.explanation import Explanation
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.json_edits import Edit, applied, value_at
from webhook.core.policy.policy import Mode
from webhook.core.review.judging import JudgedFinding
from webhook.core.scan.scan_context import ObjectKey, key_of
from webhook.core.scan.scan_results import SmallestFix
from webhook.core.text import one_line
from webhook.core.workloads.workload import Workload
from webhook.core.yaml_text import block_lines, plain

# Paths with steps that need no quotes. A change inside a list shows the whole list.
_PLAIN_PATH = re.compile(r"[A-Za-z]\w*(?:\.[A-Za-z]\w*)*", re.ASCII)
_MOST_CHARS = 500  # The most characters of a fix in words, because it may contain text from the object.


def fix_for_pending(explanation: Explanation, key: ObjectKey, raw: object, index: ReadOnlyIndex) -> SmallestFix | None:
    """Return the smallest change of constraints after which a node admits the Pending pod. None without one."""
    fix = next(iter(explanation.fixes), None)
    if fix is None:
        return None
    edited = edit_target(explanation.problem.pod, index)
    mine = key == key_of(edited.namespace, edited.api_version, edited.kind, edited.name)
    placed = (edited.placed(fix.changes) if mine else None) or ()
    root = f"{edited.path}spec.topologySpreadConstraints"
    yaml = _yaml(raw, [Edit(f"{root}{each.at}", plain(each.value)) for each in placed])
    return SmallestFix(of="pending", text=one_line(explanation.in_words(fix), _MOST_CHARS), yaml=yaml)


def fix_for_findings(judged: Sequence[JudgedFinding], raw: object) -> SmallestFix | None:
    """Return the fix of the worst finding: denials first, then by severity, then findings with edits."""
    fixable = [each for each in judged if not each.waived and (each.finding.remedy or each.finding.fix)]
    if not fixable:
        return None
    first = min(fixable, key=_weight)
    finding = first.finding
    text = one_line(finding.remedy or finding.fix, _MOST_CHARS)
    return SmallestFix(of=finding.rule, text=text, yaml=_yaml(raw, finding.edits))


def fix_by_defaults(injection: Injection, workload: Workload) -> SmallestFix | None:
    """Return the fix that writes the injected default constraints into the workload.

    None for several pod templates, or if injection only filled missing selectors of the template's own constraints.
    """
    if len(workload.templates) != 1 or injection.record.filled:
        return None
    path = workload.templates[0].constraints_path
    return SmallestFix(
        of="defaults", text="declare the configured defaults", yaml=_page({path: plain(injection.constraints)})
    )


def _weight(judged: JudgedFinding) -> tuple[int, int, int]:
    finding = judged.finding
    return -(judged.configured is Mode.DENY), judged.severity.rank, -bool(finding.edits)


def _yaml(raw: object, edits: Iterable[Edit]) -> str:
    """Return the changed parts of the object as YAML.

    Empty if an edit removes a part, or a part's path has characters other than names and dots.
    """
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
    whole: dict[str, object] = {}
    for path, value in values.items():
        *above, last = path.split(".")
        inner = whole
        for step in above:
            below = inner.setdefault(step, {})
            inner = below if isinstance(below, dict) else {}
        inner[last] = value
    return "".join(f"{line}\n" for line in block_lines(whole))
