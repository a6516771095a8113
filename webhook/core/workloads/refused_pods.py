"""What kube-apiserver would say of the pods of a workload that it accepts: of their labels, constraints and affinity.

A template is not validated as its pods are. Since 1.34 matchLabelKeys of constraints, and since 1.31 those of pod
affinity, are merged into the selectors of a created Pod, never of a template: a key that stands in both, or twice,
passes there and is refused in every pod. Before 1.34 the
template of a StatefulSet is hardly validated. What controllers add to the labels of a template nobody has looked at,
nor at labels in the template of a custom resource.

    Workload -> labels_at_creation -> the pod's labels -> validation, as of a created Pod

What this webhook injects never makes a pod refused: `inject` looks at the whole before it answers.

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
from webhook.core.workloads.controller_labels import labels_at_creation
from webhook.core.workloads.reading import takes_any_template
from webhook.core.workloads.workload import Template, Workload

_POD_FIELD = "spec.topologySpreadConstraints"
_POD_LABELS = "metadata.labels"
_LATER = "DuringSchedulingIgnoredDuringExecution"
# A key that is in both has no field's name in upstream's path, and the place of a merged key is none in the template.
_IN_BOTH = re.compile(r"\[(\d+)\]\[(\d+)\]")
_PLACE = re.compile(r"\[(\d+)\]")
_VALUE = re.compile(r"\[\d+\]\.labelSelector\.matchExpressions\[(\d+)\]")


class Refusal(Struct, frozen=True, kw_only=True):
    """One error of a pod that is about to be created.

    Shape: ``error`` has the paths of the pod; ``path`` is where the cause was written, in the workload. ``index`` is
    the constraint's, ``term`` the pod affinity term that it is about; both are None where it is about labels.
    ``late`` says that kube-apiserver, or the rules about its words, have nothing against the workload for it, and
    that no other refusal says the same.
    """

    error: FieldError
    path: str
    index: int | None = None
    term: PodAffinityTerm | None = None
    late: bool = True


def refusals(workload: Workload, template: Template, version: KubernetesVersion) -> tuple[Refusal, ...]:
    """Why kube-apiserver refuses every pod of this template, in its order; empty where it does not.

    Shape: only labels, constraints and the matchLabelKeys of pod affinity are looked at. For a Pod that is not
    created yet its template is itself.
    Source: core/validation/validation.go ``ValidatePodCreate``.
    """
    labels = labels_at_creation(workload, template.template)
    return (
        *_of_labels(workload, template, labels, version),
        *_of_affinity(workload, template, labels, version),
        *_of_constraints(workload, template, labels, version),
    )


def _of_labels(
    workload: Workload, template: Template, labels: dict[str, str], version: KubernetesVersion
) -> Iterator[Refusal]:
    """The errors about labels: of the template, or of a name of which a controller makes one.

    Source: meta/v1/validation/validation.go ``ValidateLabels``.
    """
    if not workload.whole:
        return  # an operator makes labels of names in its own way
    written = template.template.labels
    seen = {error.text for error in label_errors(written, _POD_LABELS, version)}
    for error in label_errors(labels, _POD_LABELS, version):
        if error.text in seen:
            yield Refusal(error=error, path=f"{template.path}{_POD_LABELS}", late=not workload.built_in)
        else:
            yield Refusal(error=error, path="metadata.name")  # of which the controller makes labels


def terms_with_label_keys(spec: PodSpec) -> Iterator[tuple[str, PodAffinityTerm, LabelSelector]]:
    """The pod affinity terms into whose selectors keys are merged: path in the pod's spec, term, selector.

    Source: core/pod/strategy.go ``mutatePodAffinity``.
    """
    if spec.affinity is None:
        return
    for name, affinity in (
        ("podAffinity", spec.affinity.pod_affinity),
        ("podAntiAffinity", spec.affinity.pod_anti_affinity),
    ):
        if affinity is None:
            continue
        required = ((f"required{_LATER}[{number}]", term) for number, term in enumerate(affinity.required or ()))
        preferred = (
            (f"preferred{_LATER}[{number}].podAffinityTerm", each.pod_affinity_term)
            for number, each in enumerate(affinity.preferred or ())
        )
        for path, term in (*required, *preferred):
            if term is not None and term.label_selector is not None and term.match_label_keys:
                yield f"affinity.{name}.{path}", term, term.label_selector


def _of_affinity(
    workload: Workload, template: Template, labels: dict[str, str], version: KubernetesVersion
) -> Iterator[Refusal]:
    """A key that stands twice in the selector of a term; nothing else of a term is looked at.

    Source: core/validation/validation.go ``ValidateMatchLabelKeysAndMismatchLabelKeys``.
    """
    terms = tuple(terms_with_label_keys(template.template.pod_spec))
    # What is refused in the template itself is no fault of the pods alone.
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


def _of_constraints(
    workload: Workload, template: Template, labels: dict[str, str], version: KubernetesVersion
) -> Iterator[Refusal]:
    """The errors about constraints, each at what was written in the workload.

    Source: core/validation/validation.go ``validateTopologySpreadConstraints``.
    """
    constraints, is_pod = template.template.pod_spec.constraints, workload.is_pod
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
    """Whether an error is about a requirement that the API server made of a label."""
    value = _VALUE.match(rest)
    written = (selector.match_expressions if selector else None) or ()
    return value is not None and int(value[1]) >= len(written)
