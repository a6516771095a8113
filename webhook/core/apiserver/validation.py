"""kube-apiserver's validation of topologySpreadConstraints.

On creation of a Pod, kube-apiserver first merges matchLabelKeys into the selectors, then validates. Templates are never
merged. kube-apiserver sends warnings only without errors. Texts and order are upstream's. `api.gates` lists differences
between releases.

Source: k8s.io/kubernetes pkg/apis/core/validation validation.go validateTopologySpreadConstraints; pkg/api/pod
warnings.go; pkg/registry/core/pod strategy.go; k8s.io/apimachinery pkg/apis/meta/v1/validation.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from webhook.core.api import gates
from webhook.core.api.label_syntax import key_faults, value_faults
from webhook.core.api.types import (
    DO_NOT_SCHEDULE,
    HONOR,
    IGNORE,
    SCHEDULE_ANYWAY,
    LabelSelector,
    LabelSelectorRequirement,
    SpreadConstraint,
)
from webhook.core.api.version import KubernetesVersion
from webhook.core.api.well_known import (
    APP_CREATED_BY,
    BETA_ARCH,
    BETA_OS,
    CONTROL_PLANE,
    MASTER,
    PREFER_AVOID_PODS_ANNOTATION,
    SUCCESSORS,
)
from webhook.core.api.written_selector import selected_keys
from webhook.core.apiserver.field_errors import (
    FieldError,
    distinct,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)

_ACTIONS = (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)
_POLICIES = (HONOR, IGNORE)
_NO_OR_POLICY = (None, HONOR, IGNORE)
_POSITIVE = "must be greater than zero"
_IN_BOTH = "exists in both matchLabelKeys and labelSelector"
_NO_SELECTOR = "must not be specified when labelSelector is not set"

_DEPRECATED_KEYS: Mapping[str, str] = {
    **{
        key: f'deprecated since {"v1.14" if key in (BETA_ARCH, BETA_OS) else "v1.17"}; use "{successor}" instead'
        for key, successor in SUCCESSORS.items()
    },
    APP_CREATED_BY: "deprecated since v1.9",
    PREFER_AVOID_PODS_ANNOTATION: "deprecated since v1.22; use Taints and Tolerations instead",
    MASTER: f'use "{CONTROL_PLANE}" instead',
}


def are_clearly_valid(constraints: Sequence[SpreadConstraint]) -> bool:
    """Whether a quick check shows that the constraints are valid in all releases."""
    seen: set[tuple[str | None, str | None]] = set()
    for constraint in constraints:
        selector, pair = constraint.selector, (constraint.topology_key, constraint.when_unsatisfiable)
        if (
            (constraint.max_skew or 0) < 1
            or not pair[0]
            or pair[1] not in _ACTIONS
            or pair in seen
            or constraint.min_domains is not None
            or constraint.node_affinity_policy not in _NO_OR_POLICY
            or constraint.node_taints_policy not in _NO_OR_POLICY
            or (constraint.match_label_keys and not _are_plain_keys(constraint.match_label_keys, selector))
            or (selector is not None and (selector.match_expressions or not _are_right(selector.match_labels or {})))
        ):
            return False
        seen.add(pair)
    return True


def _are_right(labels: Mapping[str, str]) -> bool:
    return not any(key_faults(key) or value_faults(value) for key, value in labels.items())


def _are_plain_keys(keys: Sequence[str], selector: LabelSelector | None) -> bool:
    if selector is None or len(keys) != 1:
        return False
    return keys[0] not in (selector.match_labels or ()) and not key_faults(keys[0])


def validate_constraints(
    constraints: Sequence[SpreadConstraint],
    labels: Mapping[str, str] | None,
    path: str,
    version: KubernetesVersion,
) -> tuple[FieldError, ...]:
    """Return the errors of the field in upstream's order, without duplicates.

        >>> zone = SpreadConstraint(max_skew=0, topology_key="zone", when_unsatisfiable="DoNotSchedule")
        >>> validate_constraints([zone], None, "constraints", RECORDED)[0].text
        'constraints[0].maxSkew: Invalid value: 0: must be greater than zero'

    ``labels`` are a Pod's labels, to merge its matchLabelKeys. For a template they are None, and nothing is merged.
    ``path`` is the list's path, as in ``spec.template.spec.topologySpreadConstraints``.

    Source: validation/validation.go ``validateTopologySpreadConstraints``.
    """
    return distinct(constraint_causes(constraints, labels, path, version))


def constraint_causes(
    constraints: Sequence[SpreadConstraint],
    labels: Mapping[str, str] | None,
    path: str,
    version: KubernetesVersion,
) -> tuple[FieldError, ...]:
    """Return the errors as in ``details.causes`` of kube-apiserver's response.

    Older Kubernetes releases repeat some errors. The arguments are those of `validate_constraints`.

    Source: validation/validation.go ``validateTopologySpreadConstraints``.
    """
    # The merge adds a condition for each key and can invalidate a constraint, so the quick check is not enough.
    merges = labels is not None and any(constraint.match_label_keys for constraint in constraints)
    if are_clearly_valid(constraints) and not merges:
        return ()
    if labels is not None:
        constraints = merge_match_label_keys(constraints, labels, version)
    errors = _errors(constraints, path, version)
    return distinct(errors) if gates.DISTINCT_CAUSES.holds(version) else tuple(errors)


def _errors(constraints: Sequence[SpreadConstraint], path: str, version: KubernetesVersion) -> Iterator[FieldError]:
    """Source: validation/validation.go ``validateTopologySpreadConstraints``, ``ValidateSpreadConstraintNotRepeat``."""
    # Later occurrences of each pair. Upstream reports every duplicate except the last, at the earlier index.
    later = Counter((other.topology_key or "", other.when_unsatisfiable or "") for other in constraints)
    for index, constraint in enumerate(constraints):
        at = f"{path}[{index}]"
        pair = constraint.topology_key or "", constraint.when_unsatisfiable or ""
        later[pair] -= 1
        yield from _required_field_errors(constraint, at, version)
        if later[pair]:
            yield duplicate(f"{at}.{{topologyKey, whenUnsatisfiable}}", f"{{{pair[0]}, {pair[1]}}}")
        if constraint.min_domains is not None:
            yield from _min_domains(constraint.min_domains, pair[1], f"{at}.minDomains")
        for name, policy in (
            ("nodeAffinityPolicy", constraint.node_affinity_policy),
            ("nodeTaintsPolicy", constraint.node_taints_policy),
        ):
            if policy is not None and policy not in _POLICIES:
                yield not_supported(f"{at}.{name}", policy, _POLICIES, version)
        yield from _selection_errors(constraint, at, version)


def _required_field_errors(constraint: SpreadConstraint, at: str, version: KubernetesVersion) -> Iterator[FieldError]:
    """Source: validation/validation.go ``ValidateTopologyKey``, ``ValidateWhenUnsatisfiable``."""
    max_skew, action = constraint.max_skew or 0, constraint.when_unsatisfiable or ""
    if max_skew <= 0:
        yield invalid(f"{at}.maxSkew", max_skew, _POSITIVE)
    if not constraint.topology_key:
        yield required(f"{at}.topologyKey", "can not be empty")
    if action not in _ACTIONS:
        yield not_supported(f"{at}.whenUnsatisfiable", action, _ACTIONS, version)


def _selection_errors(constraint: SpreadConstraint, at: str, version: KubernetesVersion) -> Iterator[FieldError]:
    """Yield errors of matchLabelKeys and selector.

    Source: validation/validation.go ``validateTopologySpreadConstraints``.
    """
    if constraint.match_label_keys:
        check = _match_label_keys if gates.MERGES_SPREAD_KEYS.holds(version) else _match_label_keys_before_merge
        yield from check(constraint.match_label_keys, constraint.selector, at, version)
    if constraint.selector is not None:
        yield from selector_errors(constraint.selector, f"{at}.labelSelector", version)


def _min_domains(min_domains: int, action: str, path: str) -> Iterator[FieldError]:
    """Source: validation/validation.go ``validateMinDomains``."""
    if min_domains <= 0:
        yield invalid(path, min_domains, _POSITIVE)
    if action != DO_NOT_SCHEDULE:
        detail = f"can only use minDomains if whenUnsatisfiable={DO_NOT_SCHEDULE}, not {action}"
        yield invalid(path, min_domains, detail)


def _match_label_keys(
    keys: Sequence[str], selector: LabelSelector | None, path: str, version: KubernetesVersion
) -> Iterator[FieldError]:
    """Yield errors of matchLabelKeys.

    Args:
        keys: The matchLabelKeys of a constraint.
        selector: The constraint's label selector after kube-apiserver has merged matchLabelKeys into it. A key that was
            in the selector before is an error.
        path: The path of the constraint.
        version: The Kubernetes version.

    Source: validation/validation.go ``ValidateMatchLabelKeysAndMismatchLabelKeys``. For a key in both fields, its error
        path lacks ``matchLabelKeys``.
    """
    if selector is None:
        yield forbidden(f"{path}.matchLabelKeys", _NO_SELECTOR)
        return
    for index, key in enumerate(keys):
        for fault in key_faults(key, version):
            yield invalid(f"{path}.matchLabelKeys[{index}]", key, fault)
    yield from keys_in_both(keys, selector, path)


def keys_in_both(keys: Sequence[str], selector: LabelSelector, path: str) -> Iterator[FieldError]:
    """Yield an error for each key in both matchLabelKeys and the selector. Affinity terms have the same check.

    Source: validation/validation.go ``ValidateMatchLabelKeysAndMismatchLabelKeys``.
    """
    # Upstream reports the last index of a repeated key.
    last = {key: index for index, key in enumerate(keys)}
    seen = set(selector.match_labels or ())
    for requirement in selector.match_expressions or ():
        key = requirement.key
        if key in last and key in seen:
            yield invalid(f"{path}[{last[key]}]", key, _IN_BOTH)
        seen.add(key)


def _match_label_keys_before_merge(
    keys: Sequence[str], selector: LabelSelector | None, path: str, version: KubernetesVersion
) -> Iterator[FieldError]:
    """Yield errors of matchLabelKeys. The selector is not merged.

    Source: validation/validation.go ``ValidateMatchLabelKeysInTopologySpread``.
    """
    taken = selected_keys(selector)
    if selector is None:
        yield forbidden(f"{path}.matchLabelKeys", _NO_SELECTOR)
    for index, key in enumerate(keys):
        at = f"{path}.matchLabelKeys[{index}]"
        for fault in key_faults(key, version):
            yield invalid(at, key, fault)
        if key in taken:
            yield invalid(at, key, _IN_BOTH)


def selector_errors(selector: LabelSelector, path: str, version: KubernetesVersion) -> Iterator[FieldError]:
    """List the errors of a label selector.

    Errors of ``matchLabels`` are sorted by text. Upstream's order is the random order of a Go map.

    Source: meta/v1/validation/validation.go ``ValidateLabelSelector``.
    """
    if selector.match_labels:
        yield from _pair_errors(selector.match_labels, f"{path}.matchLabels", version)
    for index, requirement in enumerate(selector.match_expressions or ()):
        yield from _requirement_errors(requirement, f"{path}.matchExpressions[{index}]", version)


def label_errors(labels: Mapping[str, str], version: KubernetesVersion) -> tuple[FieldError, ...]:
    """List errors of an object's labels by text. Source: meta/v1/validation/validation.go ``ValidateLabels``."""
    return distinct(_pair_errors(labels, "metadata.labels", version))


def _pair_errors(pairs: Mapping[str, str], path: str, version: KubernetesVersion) -> list[FieldError]:
    """Source: meta/v1/validation/validation.go ``ValidateLabels``."""
    errors = []
    for key, value in pairs.items():
        for faults, bad in ((key_faults(key, version), key), (value_faults(value, version), value)):
            errors += [invalid(path, bad, fault) for fault in faults]
    # Go's map order is random. Sorting makes answers repeatable.
    return sorted(errors, key=lambda error: error.text)


def _requirement_errors(
    requirement: LabelSelectorRequirement, path: str, version: KubernetesVersion
) -> Iterator[FieldError]:
    """Source: meta/v1/validation/validation.go ``ValidateLabelSelectorRequirement``."""
    values = requirement.values or ()
    if requirement.operator in {"In", "NotIn"}:
        if not values:
            yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif requirement.operator in {"Exists", "DoesNotExist"}:
        if values:
            yield forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    else:
        yield invalid(f"{path}.operator", requirement.operator, "not a valid selector operator", named_in=version)
    for fault in key_faults(requirement.key, version):
        yield invalid(f"{path}.key", requirement.key, fault)
    for index, value in enumerate(values):
        for fault in value_faults(value, version):
            yield invalid(f"{path}.values[{index}]", value, fault)


def constraint_warnings(constraints: Sequence[SpreadConstraint], path: str) -> tuple[str, ...]:
    """Return kube-apiserver's warnings about valid topologySpreadConstraints.

    The API server sends them only for an object without errors. ``path`` is the list's path.

    Source: pkg/api/pod/warnings.go ``warningsForPodSpecAndMeta``.
    """
    warnings = []
    for index, constraint in enumerate(constraints):
        message = _DEPRECATED_KEYS.get(constraint.topology_key or "")
        if message is not None:
            warnings.append(f"{path}[{index}].topologyKey: {constraint.topology_key} is {message}")
        if constraint.selector is None:
            warnings.append(f"{path}[{index}].labelSelector: a null labelSelector results in matching no pod")
    return tuple(warnings)


def merge_match_label_keys(
    constraints: Sequence[SpreadConstraint], labels: Mapping[str, str], version: KubernetesVersion
) -> Sequence[SpreadConstraint]:
    """Merge matchLabelKeys into selectors. Source: core/pod/strategy.go ``mutateTopologySpreadConstraints``."""
    if not gates.MERGES_SPREAD_KEYS.holds(version) or not any(written.match_label_keys for written in constraints):
        return constraints
    return tuple(_merged(constraint, labels) for constraint in constraints)


def _merged(constraint: SpreadConstraint, labels: Mapping[str, str]) -> SpreadConstraint:
    """Source: core/pod/strategy.go ``applyMatchLabelKeys``."""
    selector = constraint.selector
    added = tuple(
        LabelSelectorRequirement(key=key, operator="In", values=(labels[key],))
        for key in constraint.match_label_keys or ()
        if key in labels
    )
    # A null selector matches nothing and gets no condition. kube-apiserver then refuses the keys.
    if selector is None or not added:
        return constraint
    expressions = (*(selector.match_expressions or ()), *added)
    return replace(constraint, label_selector=replace(selector, match_expressions=expressions))
