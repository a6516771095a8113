"""Compile the defaults of a policy into a MutatingAdmissionPolicy with its binding.

kube-apiserver then patches new pods itself, as the webhook does (`webhook.core.defaulting.injection`). The policy reads
no owner, so it deduces the selector from the pod's labels. All pods of a revision have the labels of one template, and
these include the labels in the selectors of the ReplicaSet and of the Services. So all labels together count the same
pods as these selectors. Other pods are left alone.

Source: k8s.io/apiserver pkg/admission/plugin/policy/mutating dispatcher.go, patch/json_patch.go.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from webhook.core.admission_policies.cel import literal, literals
from webhook.core.admission_policies.default_sets import DefaultSet, default_sets
from webhook.core.admission_policies.expressions import Variables
from webhook.core.admission_policies.policy_objects import (
    NAMESPACE_LABELS,
    api_object,
    first_true,
    is_controlled,
    match_constraints,
    named,
    resource_rule,
    selects,
)
from webhook.core.api import gates
from webhook.core.api.types import SpreadConstraint
from webhook.core.api.version import KubernetesVersion
from webhook.core.api.well_known import INJECTED_ANNOTATION, MIRROR_ANNOTATION, SKIP_ANNOTATION
from webhook.core.defaulting.injection import revision
from webhook.core.defaulting.record import MAX_ANNOTATION_BYTES, InjectionRecord
from webhook.core.policy.options import RevisionKeys
from webhook.core.policy.policy import Policy
from webhook.core.workloads.kinds import REPLICA_SET, REVISIONED, native_version

_NAME = "evenspread-defaults"
_MOST_LABELS = 64  # Every constraint and the annotation repeat the labels.
_MOST_ANNOTATIONS = 256  # The sum of their sizes takes seconds for ten thousands.
_LABELS, _REVISION = "variables.labels", "variables.revision"
_META, _SPEC = "object.metadata", "object.spec"
_REVISION_KEYS = [*REVISIONED.values()]


def mutating_policies(
    policy: Policy, version: KubernetesVersion, *, suffix: str = ""
) -> Iterator[Mapping[str, object]]:
    """Yield the MutatingAdmissionPolicy and its binding, as objects of the API.

    Without compiled defaults, the object does nothing. `kubectl apply` then replaces an older policy by it.

    Args:
        policy: The policy.
        version: The release of the API server, with `gates.HAS_MUTATING_POLICIES`.
        suffix: The end of all names. Files of the API server need `STATIC_SUFFIX`.
    """
    name, api = _NAME + suffix, "v1" if gates.MUTATING_POLICIES_ARE_STABLE.holds(version) else "v1beta1"
    conditions: Iterable[tuple[str, str]] = [("no-default-is-compiled", "false")]
    variables: Mapping[str, object] = {}
    patch = _NO_PATCH
    sets = default_sets(policy)
    if any(each.constraints for each in sets):
        conditions, patch = _conditions(policy), _PATCH
        variables = {"variables": named(_variables(policy, sets))}
    spec = {
        # A pod without defaults is better than no pod.
        "failurePolicy": "Ignore",
        # Labels added later by webhooks could differ between the pods of a revision.
        "reinvocationPolicy": "Never",
        "matchConstraints": match_constraints(resource_rule("", ["pods"], "CREATE")),
        "matchConditions": named(conditions),
        **variables,
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
    }
    yield api_object("MutatingAdmissionPolicy", name, spec, api)
    yield api_object("MutatingAdmissionPolicyBinding", name, {"policyName": name}, api)


def compiles_defaults(policy: Policy) -> bool:
    """Whether any default constraint can be compiled."""
    return any(each.constraints for each in default_sets(policy))


def _conditions(policy: Policy) -> Iterator[tuple[str, str]]:
    """Yield names and expressions of the conditions for a patch."""
    own, annotations = f"{_SPEC}.topologySpreadConstraints", f"{_META}.annotations"
    skip, mirror = (
        f"has({annotations}) && {literal(key)} in {annotations}" for key in (SKIP_ANNOTATION, MIRROR_ANNOTATION)
    )
    schedulers = literals(["", *policy.scheduler_names])
    # The Deployment's controller ends the name of a ReplicaSet with the revision, and adds it to the selector.
    ends = f'o.name.endsWith("-" + {_META}.labels[k])'
    key = f"{literals(_REVISION_KEYS)}.exists(k, k in {_META}.labels && {ends})"
    owner = f"o.apiVersion == {literal(native_version(REPLICA_SET))} && o.kind == {literal(REPLICA_SET[1])}"
    yield "declares-no-constraint", f"!has({own}) || {own}.size() == 0"
    yield "not-skipped", f'!({skip}) || {annotations}[{literal(SKIP_ANNOTATION)}] == "false"'
    yield "no-mirror-pod", f"!({mirror})"
    yield "has-no-node", f'!has({_SPEC}.nodeName) || {_SPEC}.nodeName == ""'
    yield "has-a-configured-scheduler", f"!has({_SPEC}.schedulerName) || {_SPEC}.schedulerName in {schedulers}"
    yield "has-few-labels", f"has({_META}.labels) && {_META}.labels.size() <= {_MOST_LABELS}"
    yield "has-few-annotations", f"!has({annotations}) || {annotations}.size() <= {_MOST_ANNOTATIONS}"
    yield "is-of-a-revision", is_controlled(f"{owner} && {key}")


def _variables(policy: Policy, sets: Sequence[DefaultSet]) -> Iterator[tuple[str, str]]:
    """Yield the variables. Their evaluation is lazy: only those of the pod's set cost anything."""
    nodes, affinity = f"{_SPEC}.nodeSelector", f"{_SPEC}.affinity"
    # Many overrides have the same constraints.
    different: dict[tuple[Sequence[SpreadConstraint], bool], int] = {}
    numbers = [different.setdefault((each.constraints, each.any_node), len(different)) for each in sets]
    record = InjectionRecord(revision=revision(policy.defaults))
    starts = [msgspec.json.encode(replace(record, override=each.override)).decode().removesuffix("}") for each in sets]
    yield NAMESPACE_LABELS
    yield "labels", f"{_META}.labels"
    yield "revision", f"{literals(_REVISION_KEYS)}.filter(k, k in {_LABELS})[0]"
    yield "anyNode", f"(!has({nodes}) || {nodes}.size() == 0) && !(has({affinity}) && has({affinity}.nodeAffinity))"
    yield "chosen", first_true(map(_matches, sets))
    yield "number", f"{numbers}[variables.chosen]"
    yield "start", f"{literals(starts)}[variables.chosen]"
    keys = {tuple(each.match_label_keys or ()): None for given in sets for each in given.constraints}
    for at, own in enumerate(keys):
        yield from _selector(str(at), own, policy)
    constraints, records = [], []
    for at, (given, any_node) in enumerate(different):
        if not given:
            constraints.append("dyn([])")
            records.append('""')
            continue
        parts = [(each, str([*keys].index(tuple(each.match_label_keys or ())))) for each in given]
        yield f"constraints{at}", f"[{', '.join(_value(*part) for part in parts)}]"
        yield f"record{at}", _record(parts)
        applies = f"variables.number == {at}{' && variables.anyNode' if any_node else ''}"
        constraints.append(f"{applies} ? dyn(variables.constraints{at}) : dyn([])")
        records.append(f'{applies} ? variables.record{at} : ""')
    # A list, because the parser of the API server allows no 250 conditions in each other.
    yield "constraints", f"[{', '.join(constraints)}][variables.number]"
    yield "record", f"[{', '.join(records)}][variables.number]"
    yield "room", _ROOM


def _matches(given: DefaultSet) -> str:
    conditions = (selects(given.namespaces, "variables.namespaceLabels"), selects(given.pods, _LABELS))
    return " && ".join(filter(None, conditions)) or "true"


def _selector(at: str, own: tuple[str, ...], policy: Policy) -> Variables:
    """The variables for a constraint with these matchLabelKeys: both parts of its selector, and both as JSON.

    kube-apiserver refuses a key in both parts. If no label were left, keys stay in the selector.
    """
    keys, left, labels = (f"variables.{name}{at}" for name in ("keys", "matchLabelKeys", "matchLabels"))
    added = f"{literals(own)} + [{_REVISION}].filter(k, !(k in {literals(own)}))"
    pairs = f"""{labels}.map(k, '"' + k + '":"' + {labels}[k] + '"').join(",")"""
    listed = f"""',"matchLabelKeys":[' + {left}.map(k, '"' + k + '"').join(",") + ']'"""
    selector = f"""'"labelSelector":{{"matchLabels":{{' + {pairs} + '}}}}' + ({left}.size() > 0 ? {listed} : "")"""
    return (
        (f"keys{at}", added if policy.defaults.match_label_keys == RevisionKeys.AUTO else "[]"),
        (f"matchLabelKeys{at}", f"{_LABELS}.all(k, k in {keys}) ? {keys}.filter(k, !(k in {_LABELS})) : {keys}"),
        (f"matchLabels{at}", f"{_LABELS}.transformMap(k, v, !(k in {left}), v)"),
        (f"selector{at}", selector),
    )


def _value(constraint: SpreadConstraint, at: str) -> str:
    """The constraint as a map, with both parts of the selector with this number."""
    selector = f'dyn({{"matchLabels": variables.matchLabels{at}}})'
    fields = [
        f"{literal(key)}: dyn({msgspec.json.encode(value).decode()})" for key, value in _fields(constraint).items()
    ]
    return f'{{{", ".join(fields)}, "labelSelector": {selector}, "matchLabelKeys": dyn(variables.matchLabelKeys{at})}}'


def _record(parts: Sequence[tuple[SpreadConstraint, str]]) -> str:
    """The annotation as text. CEL has no function for JSON. Keys and values of labels need no escapes."""
    pieces, before = ["variables.start"], ',"constraints":['
    for constraint, at in parts:
        written = msgspec.json.encode(_fields(constraint)).decode().removesuffix("}")
        pieces += [literal(f"{before}{written},"), f"variables.selector{at}"]
        before = "},"
    # The cost of `+` counts each intermediate result. With 16 constraints, it exceeds half of the API server's limit.
    return f'[{", ".join((*pieces, literal("}]}")))}].join("")'


def _fields(constraint: SpreadConstraint) -> Mapping[str, object]:
    """The written fields without matchLabelKeys."""
    fields: Mapping[str, object] = msgspec.to_builtins(replace(constraint, match_label_keys=None))
    return fields


_ANNOTATIONS = f"{_META}.annotations"
_KEY = literal(INJECTED_ANNOTATION)
_BYTES = f"k == {_KEY} ? 0 : bytes(k).size() + bytes({_ANNOTATIONS}[k]).size()"
_ROOM = (
    f"{MAX_ANNOTATION_BYTES - len(INJECTED_ANNOTATION)} - bytes(variables.record).size()"
    f" - (has({_ANNOTATIONS}) ? {_ANNOTATIONS}.map(k, {_BYTES}).sum() : 0)"
)
_STEP = INJECTED_ANNOTATION.replace("/", "~1")  # of a JSON Pointer
_PATCH = (
    "variables.constraints.size() == 0 || variables.room < 0 ? [] : ["
    'JSONPatch{op: "add", path: "/spec/topologySpreadConstraints", value: variables.constraints}, '
    f'has({_ANNOTATIONS}) ? JSONPatch{{op: "add", path: "/metadata/annotations/{_STEP}", value: variables.record}} : '
    f'JSONPatch{{op: "add", path: "/metadata/annotations", value: {{{_KEY}: variables.record}}}}]'
)
# The API server requires a mutation, and takes `[]` for a list of any type.
_NO_PATCH = "false ? [JSONPatch{}] : []"
