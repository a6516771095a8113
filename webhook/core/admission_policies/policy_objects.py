"""The parts that all kinds of admission policies share: API objects, and expressions that select the request."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from webhook.core.admission_policies.cel import literal, literals
from webhook.core.api.requirements import Requirement
from webhook.core.api.selectors import Selector
from webhook.core.api.types import DOES_NOT_EXIST, EXISTS, NOT_IN
from webhook.core.api.well_known import APP_COMPONENT, APP_NAME, NAMESPACE_NAME

GROUP = "admissionregistration.k8s.io"
BINDING = "ValidatingAdmissionPolicyBinding"
STATIC_SUFFIX = ".static.k8s.io"
"""The end of names in a directory of static manifests. Source: k8s.io/apiserver pkg/admission/plugin/manifest."""
NAMESPACE_LABELS = ("namespaceLabels", "has(namespaceObject.metadata.labels) ? namespaceObject.metadata.labels : {}")
"""The variable with the labels of the object's namespace."""
_SYSTEM_NAMESPACES = ("kube-system", "kube-public", "kube-node-lease")
OBJECT_LABELS = {APP_NAME: "evenspread", APP_COMPONENT: "admission-policies"}
"""The labels of all compiled objects."""


class InstalledParts(Struct, frozen=True, kw_only=True):
    """The differences between a policy of the chart and the output of `evenspread compile`.

    Attributes:
        without: Ids of rules to leave out.
        conditions: Further conditions: names and expressions.
        failure_policy: What the API server does if a condition fails for an object.
        owners: The ownerReferences.
    """

    without: frozenset[str] = frozenset()
    conditions: tuple[tuple[str, str], ...] = ()
    # No server can be down here. An expression of ours fails only for an object beyond the limits of the API server.
    failure_policy: str = "Fail"
    owners: tuple[Mapping[str, str], ...] = ()


NOTHING_ADDED = InstalledParts()


def api_object(
    kind: str, name: str, spec: Mapping[str, object], api: str = "v1", owners: Iterable[Mapping[str, str]] = ()
) -> Mapping[str, object]:
    """Return an object of the API group of admission policies, in this version."""
    metadata: dict[str, object] = {"name": name, "labels": OBJECT_LABELS}
    if owners:
        metadata["ownerReferences"] = [*owners]
    return {"apiVersion": f"{GROUP}/{api}", "kind": kind, "metadata": metadata, "spec": spec}


def named(expressions: Iterable[tuple[str, str]]) -> list[Mapping[str, str]]:
    return [{"name": name, "expression": expression} for name, expression in expressions]


def match_constraints(*rules: Mapping[str, object]) -> Mapping[str, object]:
    """Match these rules outside of Kubernetes' own namespaces."""
    outside = {"key": NAMESPACE_NAME, "operator": NOT_IN, "values": [*_SYSTEM_NAMESPACES]}
    return {
        "matchPolicy": "Equivalent",
        "namespaceSelector": {"matchExpressions": [outside]},
        "objectSelector": {},
        "resourceRules": [*rules],
    }


def resource_rule(group: str, resources: list[str], *operations: str) -> Mapping[str, object]:
    return {
        "apiGroups": [group],
        # With a named version, kube-controller-manager checks the types of all expressions for each kind. It takes
        # seconds of its processor time, and finds nothing, because all fields are dynamic.
        "apiVersions": ["*"],
        "operations": list(operations),
        "resources": resources,
        "scope": "Namespaced",
    }


def is_controlled(condition: str) -> str:
    """Whether the object has a controller, the owner ``o``, that meets the condition."""
    owners = "object.metadata.ownerReferences"
    return f"has({owners}) && {owners}.exists(o, has(o.controller) && o.controller && {condition})"


def first_true(conditions: Iterable[str]) -> str:
    """The index of the first condition that holds. The API server compiles `?` in long lists slowly."""
    return f"[{', '.join(conditions)}].indexOf(true)"


def selects(selector: Selector, labels: str) -> str:
    """Whether a selector matches labels. Empty for the selector of everything."""
    if selector.nothing:
        return "false"
    return " && ".join(_holds(each, labels) for each in selector.requirements)


def _holds(requirement: Requirement, labels: str) -> str:
    present = f"{literal(requirement.key)} in {labels}"
    among = f"{present} && {labels}[{literal(requirement.key)}] in {literals(requirement.values)}"
    by_operator = {EXISTS: f"({present})", DOES_NOT_EXIST: f"!({present})", NOT_IN: f"!({among})"}
    return by_operator.get(requirement.operator, f"({among})")
