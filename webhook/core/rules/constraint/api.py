"""What kube-apiserver says of the field, as rules: each of its errors gets the id of the rule that it belongs to.

Source: `validation` words the errors, `decoding` the refusal of a wrong type.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from webhook.core.apiserver.decoding import DecodeError
from webhook.core.apiserver.validation import are_plainly_right, validate_constraints
from webhook.core.policy.policy import Mode
from webhook.core.rules.constraint.frame.api_errors import (
    UNREAD_TEMPLATE,
    Broken,
    broken_at,
    fitting,
    fix_of,
)
from webhook.core.rules.frame.fixes import Fix
from webhook.core.rules.frame.rule import AskedAgain, Finding, NotEvaluated, Rule, RuleAnswer, Severity
from webhook.core.rules.frame.subject import Subject
from webhook.core.workloads.reading import reaches_template, takes_any_template

_UNMARSHAL = re.compile(r"json: cannot unmarshal (.+) into Go .+ of type (.+)", re.DOTALL)


def evaluate(subject: Subject) -> Iterable[RuleAnswer]:
    """Every error of every template, in upstream's order; what only the pods will be told is `refused`'s."""
    plain = subject.plainly_right or takes_any_template(subject.workload, subject.version)
    return () if plain else _errors(subject)


def _errors(subject: Subject) -> Iterator[RuleAnswer]:
    for template in subject.workload.templates:
        constraints = template.template.pod_spec.constraints
        if are_plainly_right(constraints):
            continue
        labels = template.template.labels if _is_to_be_merged(subject) else None
        path = template.constraints_path
        placed = [each for each in subject.placed if each.template is template]
        for error in validate_constraints(constraints, labels, path, subject.version):
            finding = _finding(broken_at(error, path, placed, subject))
            # What follows once the selector is right is no approval now, and nothing that Kubernetes says.
            yield finding if reaches_template(subject.workload) else NotEvaluated(finding.rule, UNREAD_TEMPLATE)


def _rule(id_: str, title: str, why: str) -> Rule:
    return Rule(
        id=id_,
        title=title,
        severity=Severity.HIGH,
        mode=Mode.DENY,
        why=why,
        ask=evaluate,
        of_api=True,
        of_a_part=True,
        asked_again=AskedAgain.AFTER_FIXES,
    )


_UNUSABLE = (
    "Inside a custom resource nobody checks the field before the controller makes pods: each of them is refused, and "
    "the only trace is an event."
)

_MAX_SKEW = _rule("max-skew", "maxSkew is missing or not positive", _UNUSABLE)
_TOPOLOGY_KEY = _rule("topology-key", "topologyKey is missing", _UNUSABLE)
_WHEN_UNSATISFIABLE = _rule(
    "when-unsatisfiable",
    "whenUnsatisfiable is missing or neither DoNotSchedule nor ScheduleAnyway",
    f"There is no default, whatever the API's comment says. {_UNUSABLE}",
)
_MIN_DOMAINS = _rule("min-domains", "minDomains is not positive, or stands beside ScheduleAnyway", _UNUSABLE)
_AFFINITY_POLICY = _rule("node-affinity-policy", "nodeAffinityPolicy is neither Honor nor Ignore", _UNUSABLE)
_TAINTS_POLICY = _rule("node-taints-policy", "nodeTaintsPolicy is neither Honor nor Ignore", _UNUSABLE)
_MATCH_LABEL_KEYS = _rule(
    "match-label-keys", "matchLabelKeys has no selector, repeats one of its keys, or names no label", _UNUSABLE
)
_LABEL_SELECTOR = _rule("label-selector", "labelSelector is not a valid selector", _UNUSABLE)
_DUPLICATE = _rule("duplicate-constraint", "two constraints have the same key and the same action", _UNUSABLE)
WRONG_TYPE = _rule("wrong-type", "a field has a value of the wrong type", _UNUSABLE)

VALIDATION_RULES = (
    *(_MAX_SKEW, _TOPOLOGY_KEY, _WHEN_UNSATISFIABLE, _MIN_DOMAINS, _AFFINITY_POLICY, _TAINTS_POLICY),
    *(_MATCH_LABEL_KEYS, _LABEL_SELECTOR, _DUPLICATE, WRONG_TYPE),
)
_BY_FIELD: Mapping[str, Rule] = {
    "maxSkew": _MAX_SKEW,
    "topologyKey": _TOPOLOGY_KEY,
    "whenUnsatisfiable": _WHEN_UNSATISFIABLE,
    "minDomains": _MIN_DOMAINS,
    "nodeAffinityPolicy": _AFFINITY_POLICY,
    "nodeTaintsPolicy": _TAINTS_POLICY,
    "matchLabelKeys": _MATCH_LABEL_KEYS,
    "labelSelector": _LABEL_SELECTOR,
    "{topologyKey, whenUnsatisfiable}": _DUPLICATE,
    # Upstream gives a key that stands in both at [i][j], without naming the field.
    "": _MATCH_LABEL_KEYS,
}


def _is_to_be_merged(subject: Subject) -> bool:
    """Whether kube-apiserver will merge matchLabelKeys into the selectors; of what is stored or admitted it has."""
    meta = subject.workload.meta
    return subject.offline and subject.workload.is_pod and not (meta.uid or meta.creation_timestamp)


def _finding(broken: Broken) -> Finding:
    fix = fix_of(broken)
    return Finding(
        rule=_BY_FIELD[broken.field].id,
        path=broken.error.field,
        summary=broken.error.text,
        warning=broken.warning,
        detail=broken.said,
        **fix.fields,
        key=broken.key,
    )


def wrong_type(
    error: DecodeError, value: Callable[[], object], as_written: Callable[[str], str] = lambda _path: ""
) -> Finding:
    """An object that does not fit the API's types, in kube-apiserver's words.

    Shape: ``value`` and ``as_written`` are those of `api_errors.fitting`.
    """
    try:
        fix = fitting(error.path, error.text, value, as_written)
    except DecodeError:
        fix = Fix()  # elsewhere it holds bytes that are no UTF-8, and cannot be parsed whole
    return Finding(
        rule=WRONG_TYPE.id,
        path=error.path,
        summary=error.message,
        warning=_type_in_short(error),
        detail=error.text,
        **fix.fields,
        key=error.text,
    )


def _type_in_short(error: DecodeError) -> str:
    """The field first, which stands last in the decoder's words, where a warning has no room left."""
    match = _UNMARSHAL.fullmatch(error.text)
    if match is None or not error.path:
        return error.text
    where = error.path[max(error.path.rfind("topologySpreadConstraints"), 0) :]
    return f"{where}: cannot unmarshal {match[1]} into {match[2]}"
