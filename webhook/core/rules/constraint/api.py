"""Report kube-apiserver's validation errors as findings of rules.

Source: `validation` has the texts of the errors, `decoding` the error about a wrong type.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from webhook.core.apiserver.decoding import DecodeError
from webhook.core.apiserver.validation import are_clearly_valid, validate_constraints
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.api_errors import (
    UNREAD_TEMPLATE,
    broken_at,
    fitting,
    fix_of,
)
from webhook.core.rules.frame.fixes import Fix
from webhook.core.rules.frame.rule import Finding, NotEvaluated, Reevaluated, Rule, RuleAnswer, Severity
from webhook.core.rules.frame.subject import Subject
from webhook.core.workloads.reading import reaches_template, takes_any_template

_UNMARSHAL = re.compile(r"json: cannot unmarshal (.+) into Go .+ of type (.+)", re.DOTALL)


def evaluate(subject: Subject) -> Iterable[RuleAnswer]:
    """Yield kube-apiserver's errors about each template, in upstream's order.

    The module `pods_refused` reports errors that concern only pods.
    """
    plain = subject.plainly_right or takes_any_template(subject.workload, subject.version)
    return () if plain else _errors(subject)


def _errors(subject: Subject) -> Iterator[RuleAnswer]:
    meta = subject.workload.meta
    # kube-apiserver has merged matchLabelKeys into the selectors of stored and admitted pods.
    merges = subject.offline and subject.workload.is_pod and not (meta.uid or meta.creation_timestamp)
    for template in subject.workload.templates:
        constraints = template.pod.pod_spec.constraints
        if are_clearly_valid(constraints):
            continue
        labels = template.pod.labels if merges else None
        path = template.constraints_path
        placed = [each for each in subject.placed if each.template is template]
        for error in validate_constraints(constraints, labels, path, subject.version):
            broken = broken_at(error, path, placed, subject)
            # Upstream reports a duplicate key at [i][j], without the field.
            rule = _BY_FIELD[broken.field or "matchLabelKeys"].id
            # Kubernetes reports this error only once the selector is valid, so the rule is not evaluated yet.
            if not reaches_template(subject.workload):
                yield NotEvaluated(rule, UNREAD_TEMPLATE)
                continue
            yield Finding(
                rule=rule,
                path=error.field,
                summary=error.text,
                warning=broken.warning,
                detail=broken.said,
                **fix_of(broken).fields,
                key=broken.key,
            )


_UNUSABLE = (
    "kube-apiserver refuses a Deployment with this mistake. It accepts your Rollout, a custom resource, and then "
    "refuses all its pods. You only see an event."
)


def _rule(id_: str, title: str, why: str = _UNUSABLE) -> Rule:
    return Rule(
        id=id_,
        title=title,
        severity=Severity.HIGH,
        mode=Mode.DENY,
        why=why,
        evaluate=evaluate,
        of_api=True,
        of_a_part=True,
        reevaluated=Reevaluated.AFTER_FIXES,
    )


# By the field of the error.
_BY_FIELD: Mapping[str, Rule] = {
    "maxSkew": _rule("max-skew", "maxSkew must be set and positive"),
    "topologyKey": _rule("topology-key", "topologyKey is missing"),
    "whenUnsatisfiable": _rule(
        "when-unsatisfiable",
        "whenUnsatisfiable must be DoNotSchedule or ScheduleAnyway",
        f"The field has no default. {_UNUSABLE}",
    ),
    "minDomains": _rule("min-domains", "minDomains must be positive and needs whenUnsatisfiable: DoNotSchedule"),
    "nodeAffinityPolicy": _rule("node-affinity-policy", "nodeAffinityPolicy must be Honor or Ignore"),
    "nodeTaintsPolicy": _rule("node-taints-policy", "nodeTaintsPolicy must be Honor or Ignore"),
    "matchLabelKeys": _rule(
        "match-label-keys",
        "matchLabelKeys needs a labelSelector, and valid label keys that the labelSelector does not use",
    ),
    "labelSelector": _rule("label-selector", "labelSelector is not a valid selector"),
    "{topologyKey, whenUnsatisfiable}": _rule(
        "duplicate-constraint",
        "two constraints have the same topologyKey and whenUnsatisfiable",
        f"{_UNUSABLE} A hard and a soft constraint over the same key are fine.",
    ),
}
WRONG_TYPE = _rule("wrong-type", "a field has a value of the wrong type")
VALIDATION_RULES = (*_BY_FIELD.values(), WRONG_TYPE)


def wrong_type(
    error: DecodeError, value: Callable[[], object], as_written: Callable[[str], str] = lambda _path: ""
) -> Finding:
    """Return the finding about a refused value, with kube-apiserver's text.

    Args:
        error: The decoder's error.
        value: Returns the object as parsed JSON.
        as_written: Returns a scalar as in the file, by its path. Empty if unknown.
    """
    try:
        fix = fitting(error.path, error.text, value, as_written)
    except DecodeError:
        fix = Fix()  # elsewhere it holds bytes that are no UTF-8, and cannot be parsed whole
    warning, match = error.text, _UNMARSHAL.fullmatch(error.text)
    if match is not None and error.path:
        # The decoder names the field last, where a warning has no room left.
        where = error.path[max(error.path.rfind("topologySpreadConstraints"), 0) :]
        warning = f"{where}: cannot unmarshal {match[1]} into {match[2]}"
    return Finding(
        rule=WRONG_TYPE.id,
        path=error.path,
        summary=error.message,
        warning=warning,
        detail=error.text,
        **fix.fields,
        key=error.text,
    )
