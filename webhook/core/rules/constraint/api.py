"""What kube-apiserver says of the field, as rules: each of its errors gets the id of the rule that it belongs to.

Source: `validation` words the errors, `decoding` the refusal of a wrong type.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from webhook.core.api.label_syntax import key_faults, value_faults
from webhook.core.api.types import DO_NOT_SCHEDULE, HONOR, IGNORE, SCHEDULE_ANYWAY, LabelSelector, SpreadConstraint
from webhook.core.apiserver.decoding import DecodeError
from webhook.core.apiserver.validation import FieldError, validate_constraints
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.api_errors import Broken, fitting, fix_of
from webhook.core.rules.frame.rule import Answer, Finding, NotEvaluated, Rule, Severity
from webhook.core.rules.frame.subject import Placed, Subject
from webhook.core.workloads.reading import reaches_template, takes_any_template


def _rule(id_: str, title: str, why: str) -> Rule:
    silent = "in admission of built-in kinds: there kube-apiserver has refused the object before any webhook is asked."
    return Rule(id=id_, title=title, severity=Severity.HIGH, mode=Mode.DENY, why=why, silent=silent)


_UNUSABLE = (
    "Inside a custom resource nobody checks the field before the controller makes pods: each of them is refused, and "
    "the only trace is an event."
)

MAX_SKEW = _rule("max-skew", "maxSkew is missing or not positive", _UNUSABLE)
TOPOLOGY_KEY = _rule("topology-key", "topologyKey is missing", _UNUSABLE)
WHEN_UNSATISFIABLE = _rule(
    "when-unsatisfiable",
    "whenUnsatisfiable is missing or neither DoNotSchedule nor ScheduleAnyway",
    f"There is no default, whatever the API's comment says. {_UNUSABLE}",
)
MIN_DOMAINS = _rule("min-domains", "minDomains is not positive, or stands beside ScheduleAnyway", _UNUSABLE)
AFFINITY_POLICY = _rule("node-affinity-policy", "nodeAffinityPolicy is neither Honor nor Ignore", _UNUSABLE)
TAINTS_POLICY = _rule("node-taints-policy", "nodeTaintsPolicy is neither Honor nor Ignore", _UNUSABLE)
MATCH_LABEL_KEYS = _rule(
    "match-label-keys", "matchLabelKeys has no selector, repeats one of its keys, or names no label", _UNUSABLE
)
LABEL_SELECTOR = _rule("label-selector", "labelSelector is not a valid selector", _UNUSABLE)
DUPLICATE = _rule("duplicate-constraint", "two constraints have the same key and the same action", _UNUSABLE)
WRONG_TYPE = _rule("wrong-type", "a field has a value of the wrong type", _UNUSABLE)

RULES = (
    *(MAX_SKEW, TOPOLOGY_KEY, WHEN_UNSATISFIABLE, MIN_DOMAINS, AFFINITY_POLICY, TAINTS_POLICY),
    *(MATCH_LABEL_KEYS, LABEL_SELECTOR, DUPLICATE, WRONG_TYPE),
)

_BY_FIELD: Mapping[str, Rule] = {
    "maxSkew": MAX_SKEW,
    "topologyKey": TOPOLOGY_KEY,
    "whenUnsatisfiable": WHEN_UNSATISFIABLE,
    "minDomains": MIN_DOMAINS,
    "nodeAffinityPolicy": AFFINITY_POLICY,
    "nodeTaintsPolicy": TAINTS_POLICY,
    "matchLabelKeys": MATCH_LABEL_KEYS,
    "{topologyKey, whenUnsatisfiable}": DUPLICATE,
    # Upstream gives a key that stands in both at [i][j], without naming the field.
    "": MATCH_LABEL_KEYS,
}
_ACTIONS = frozenset({DO_NOT_SCHEDULE, SCHEDULE_ANYWAY})
_POLICIES = frozenset({None, HONOR, IGNORE})
_UNMARSHAL = re.compile(r"json: cannot unmarshal (.+) into Go .+ of type (.+)", re.DOTALL)
_FIELD = re.compile(r"\[(\d+)\](?:\.(\{[^}]*\}|\w+))?(.*)", re.DOTALL)


UNREAD_TEMPLATE = "template, which kube-apiserver does not read while spec.selector has a fault"


def evaluate(subject: Subject) -> Iterator[Answer]:
    """Every error of every template, in upstream's order; what only the pods will be told is `refused`'s."""
    if takes_any_template(subject.workload, subject.version):
        return
    for template in subject.workload.templates:
        constraints = template.template.pod_spec.constraints
        if are_plainly_right(constraints):
            continue
        labels = template.template.labels if _is_to_be_merged(subject) else None
        path = template.constraints_path
        placed = [each for each in subject.placed if each.template is template]
        for error in validate_constraints(constraints, labels, path, subject.version):
            finding = as_finding(error, path, placed, subject)
            # What follows once the selector is right is no approval now, and nothing that Kubernetes says.
            yield finding if reaches_template(subject.workload) else NotEvaluated(finding.rule, UNREAD_TEMPLATE)


def are_plainly_right(constraints: Sequence[SpreadConstraint]) -> bool:
    """Whether a first look already shows that there is no error in any release; most constraints are so."""
    seen: set[tuple[str | None, str | None]] = set()
    for constraint in constraints:
        selector, pair = constraint.selector, (constraint.topology_key, constraint.when_unsatisfiable)
        if (
            (constraint.max_skew or 0) < 1
            or not pair[0]
            or pair[1] not in _ACTIONS
            or pair in seen
            or constraint.min_domains is not None
            or constraint.node_affinity_policy not in _POLICIES
            or constraint.node_taints_policy not in _POLICIES
            or (constraint.match_label_keys and not _are_plain_keys(constraint.match_label_keys, selector))
            or (selector is not None and not _is_plain_selector(selector))
        ):
            return False
        seen.add(pair)
    return True


def _is_plain_selector(selector: LabelSelector) -> bool:
    if selector.match_expressions:
        return False
    return not any(key_faults(key) or value_faults(value) for key, value in (selector.match_labels or {}).items())


def _are_plain_keys(keys: Sequence[str], selector: LabelSelector | None) -> bool:
    if selector is None or len(keys) != 1:
        return False
    return keys[0] not in (selector.match_labels or ()) and not key_faults(keys[0])


def _is_to_be_merged(subject: Subject) -> bool:
    """Whether kube-apiserver will merge matchLabelKeys into the selectors; of what is stored or admitted it has."""
    meta = subject.workload.meta
    return subject.offline and subject.workload.kind == "Pod" and not (meta.uid or meta.creation_timestamp)


def as_finding(error: FieldError, path: str, constraints: Sequence[Placed], subject: Subject) -> Finding:
    """An error under its rule.

    Shape: ``path`` is that of the list of constraints, as the error has it.
    """
    match = _FIELD.match(error.field, len(path))
    index, field, rest = (int(match[1]), match[2] or "", match[3]) if match else (0, "", "")
    placed = constraints[index]
    said = error.text.removeprefix(f"{error.field}: ")
    short = f"{placed.name}.{field}" if field.isalnum() else placed.name
    fix = fix_of(Broken(error, field, rest, placed, constraints, subject))
    return Finding(
        rule=_BY_FIELD.get(field, LABEL_SELECTOR).id,
        path=error.field,
        summary=error.text,
        warning=f"{short}: {said}",
        detail=said,
        fix=fix.text,
        edits=fix.edits,
        key=f"{placed.key} {field}{rest} {said}",
    )


def wrong_type(
    error: DecodeError, value: Callable[[], object], as_written: Callable[[str], str] = lambda _path: ""
) -> Finding:
    """An object that does not fit the API's types, in kube-apiserver's words.

    Shape: ``value`` and ``as_written`` are those of `api_fixes.fitting`.
    """
    fix = fitting(error.path, error.text, value, as_written)
    return Finding(
        rule=WRONG_TYPE.id,
        path=error.path,
        summary=error.message,
        warning=_type_in_short(error),
        detail=error.text,
        fix=fix.text,
        edits=fix.edits,
        key=error.text,
    )


def _type_in_short(error: DecodeError) -> str:
    """The field first, which stands last in the decoder's words, where a warning has no room left."""
    match = _UNMARSHAL.fullmatch(error.text)
    if match is None or not error.path:
        return error.text
    where = error.path[max(error.path.rfind("topologySpreadConstraints"), 0) :]
    return f"{where}: cannot unmarshal {match[1]} into {match[2]}"
