"""kube-apiserver's errors about the pods of an accepted workload.

kube-apiserver validates templates less strictly than pods. It merges matchLabelKeys into the selectors of a Pod at
creation (constraints since 1.34, pod affinity since 1.31). It does not merge them in a template. So kube-apiserver
accepts a template and refuses each of its pods in two cases: a key is repeated in matchLabelKeys, or is in both
matchLabelKeys and labelSelector.

kube-apiserver also skips labels added by controllers, labels in templates of custom resources and, before 1.34, most of
a StatefulSet's template.

    Workload -> labels_at_creation -> the pod's labels -> validation, as of a created Pod

The webhook never injects a field refused by kube-apiserver: `inject` validates the result.

Source: pkg/apis/core/validation validation.go ``ValidatePodCreate`` and ``ValidatePodTemplateSpec``.
"""

import re
from collections.abc import Iterator

from msgspec import Struct

from webhook.core.api.types import LabelSelector, PodAffinityTerm, PodSpec
from webhook.core.api.version import KubernetesVersion
from webhook.core.apiserver.field_errors import FieldError
from webhook.core.apiserver.pod_defaults import merged_term
from webhook.core.apiserver.validation import keys_in_both, label_errors, validate_constraints
from webhook.core.workloads.labels_at_creation import labels_at_creation
from webhook.core.workloads.reading import takes_any_template
from webhook.core.workloads.workload import Template, Workload

_POD_FIELD = "spec.topologySpreadConstraints"
_POD_LABELS = "metadata.labels"
_LATER = "DuringSchedulingIgnoredDuringExecution"
# A merged key has no field name in upstream's path, and its index does not exist in the template.
_IN_BOTH = re.compile(r"\[(\d+)\]\[(\d+)\]")
_PLACE = re.compile(r"\[(\d+)\]")
_VALUE = re.compile(r"\[\d+\]\.labelSelector\.matchExpressions\[(\d+)\]")


class Refusal(Struct, frozen=True, kw_only=True):
    """An error of kube-apiserver about a future pod of a workload.

    Attributes:
        error: The error. Its field paths are those of the pod.
        path: The path of the faulty field in the workload.
        index: The index of the faulty constraint. None if the error is not about a constraint.
        term: The faulty pod affinity term. None if the error is not about pod affinity.
        late: Whether kube-apiserver accepts the workload and refuses only its pods, and no other rule reports the
            cause.
    """

    error: FieldError
    path: str
    index: int | None = None
    term: PodAffinityTerm | None = None
    late: bool = True


def refusals(workload: Workload, template: Template, version: KubernetesVersion) -> tuple[Refusal, ...]:
    """Return kube-apiserver's errors about every pod of this template, in upstream's order.

    Only labels, constraints and the matchLabelKeys of pod affinity are validated. For a Pod the template is the Pod
    itself.

    Source: core/validation/validation.go ``ValidatePodCreate``.
    """
    labels = labels_at_creation(workload, template.pod)
    return (
        *_label_refusals(workload, template, labels, version),
        *_affinity_refusals(workload, template, labels, version),
        *_constraint_refusals(workload, template, labels, version),
    )


def _label_refusals(
    workload: Workload, template: Template, labels: dict[str, str], version: KubernetesVersion
) -> Iterator[Refusal]:
    """Yield errors about the labels of the template, and about labels made from the workload's name.

    Source: meta/v1/validation/validation.go ``ValidateLabels``.
    """
    if not workload.whole:
        return  # operators have their own label names
    written = template.pod.labels
    seen = {error.text for error in label_errors(written, version)}
    for error in label_errors(labels, version):
        if error.text in seen:
            yield Refusal(error=error, path=f"{template.path}{_POD_LABELS}", late=not workload.built_in)
        else:
            yield Refusal(error=error, path="metadata.name")  # the controller copies it into labels


def terms_with_label_keys(spec: PodSpec) -> Iterator[tuple[str, PodAffinityTerm, LabelSelector]]:
    """Yield each pod affinity term with matchLabelKeys: its path, the term, its selector.

    Source: core/pod/strategy.go ``mutatePodAffinity``.
    """
    for name, affinity in (("podAffinity", spec.pod_affinity), ("podAntiAffinity", spec.pod_anti_affinity)):
        required = ((f"required{_LATER}[{number}]", term) for number, term in enumerate(affinity.required or ()))
        preferred = (
            (f"preferred{_LATER}[{number}].podAffinityTerm", weighted.pod_affinity_term)
            for number, weighted in enumerate(affinity.preferred or ())
        )
        for path, term in (*required, *preferred):
            if term is not None and term.label_selector is not None and term.match_label_keys:
                yield f"affinity.{name}.{path}", term, term.label_selector


def _affinity_refusals(
    workload: Workload, template: Template, labels: dict[str, str], version: KubernetesVersion
) -> Iterator[Refusal]:
    """Yield errors about matchLabelKeys repeated in a term's selector. No other field of a term is validated.

    Source: core/validation/validation.go ``ValidateMatchLabelKeysAndMismatchLabelKeys``.
    """
    terms = tuple(terms_with_label_keys(template.pod.pod_spec))
    # An error of the template itself is not only an error of its pods.
    late = takes_any_template(workload, version) or not any(
        any(keys_in_both(term.match_label_keys or (), selector, path))
        or not {*(term.match_label_keys or ())}.isdisjoint(term.mismatch_label_keys or ())
        for path, term, selector in terms
    )
    for path, term, selector in terms:
        merged, at = merged_term(term, labels).label_selector or selector, f"spec.{path}"
        for error in dict.fromkeys(keys_in_both(term.match_label_keys or (), merged, at)):
            place = error.field.removeprefix(at)
            yield Refusal(error=error, path=f"{template.path}{at}.matchLabelKeys{place}", term=term, late=late)


def _constraint_refusals(
    workload: Workload, template: Template, labels: dict[str, str], version: KubernetesVersion
) -> Iterator[Refusal]:
    """List errors about constraints, each with the path in the workload.

    Source: core/validation/validation.go ``validateTopologySpreadConstraints``.
    """
    constraints, is_pod = template.pod.pod_spec.constraints, workload.is_pod
    errors = validate_constraints(constraints, labels, _POD_FIELD, version)
    if not errors:
        return
    before: set[FieldError] = set()
    if not takes_any_template(workload, version):
        before = {*validate_constraints(constraints, labels if is_pod else None, _POD_FIELD, version)}
    for error in errors:
        rest, late = error.field.removeprefix(_POD_FIELD), error not in before
        place = _PLACE.match(rest)
        index = int(place[1]) if place else 0
        path = f"{template.constraints_path}{rest}"
        if late and (both := _IN_BOTH.fullmatch(rest)):
            path = f"{template.constraints_path}[{index}].matchLabelKeys[{both[2]}]"
        if late and _is_merged(rest, constraints[index].selector):
            path, late = f"{template.path}{_POD_LABELS}", False
        yield Refusal(error=error, path=path, index=index, late=late)


def _is_merged(rest: str, selector: LabelSelector | None) -> bool:
    """Whether the error is about a requirement that kube-apiserver merged into the selector."""
    value = _VALUE.match(rest)
    written = (selector.match_expressions if selector else None) or ()
    return value is not None and int(value[1]) >= len(written)
