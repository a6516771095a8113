"""The admission policies of an installed chart: the chart's bindings, and the policies that belong to them.

The chart writes a ValidatingAdmissionPolicyBinding for each mode, with the selectors of its webhook and the settings in
an annotation. The controller writes the policy of each binding. The binding owns the policy, so Kubernetes deletes the
policy when Helm deletes the binding.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

import msgspec
from msgspec import Struct, field

from webhook.core.admission_policies.coverage import Share, coverage
from webhook.core.admission_policies.policies import ACTIONS, compiled_policy
from webhook.core.admission_policies.policy_objects import BINDING, GROUP, InstalledParts
from webhook.core.api.version import KubernetesVersion
from webhook.core.api.well_known import POLICIES_ANNOTATION
from webhook.core.decoders import converted, decoder_of
from webhook.core.policy.policy import Mode, Policy
from webhook.core.rules.cluster import effect

_MODES = {action: mode for mode, action in ACTIONS.items()}


class Static(StrEnum):
    """The chart value ``admission.static``: who warns of findings about the object alone. Both always deny."""

    POLICIES = "policies"
    BOTH = "both"


class _Condition(Struct, frozen=True):
    name: str
    expression: str


class BindingSettings(Struct, frozen=True, rename="camel", kw_only=True):
    """The chart's settings in the annotation of a binding.

    Attributes:
        static: Who warns.
        failure_policy: The failurePolicy of the webhook. It applies to the conditions, which can fail for some objects.
        match_conditions: The chart value ``webhook.matchConditions``.
    """

    static: Static
    failure_policy: str = "Fail"
    match_conditions: tuple[_Condition, ...] = ()


class _Meta(Struct, frozen=True):
    name: str
    uid: str
    annotations: Mapping[str, str] = field(default_factory=dict)


class _Spec(Struct, frozen=True, rename="camel"):
    policy_name: str
    validation_actions: tuple[str, ...]


class _Stored(Struct, frozen=True):
    metadata: _Meta
    spec: _Spec


class ChartBinding(Struct, frozen=True, kw_only=True):
    """A ValidatingAdmissionPolicyBinding of the chart."""

    name: str
    uid: str
    policy: str
    mode: Mode
    settings: BindingSettings


def binding_names(release: str) -> tuple[str, ...]:
    """Return the names of the chart's bindings. ``release`` is the name of its webhook configuration."""
    return tuple(f"{release}-{mode}" for mode in ACTIONS)


def read_binding(stored: object) -> ChartBinding | None:
    """Read a stored binding. None if it is not of the chart. Raises ValueError if its settings are invalid."""
    try:
        raw = converted(stored, _Stored)
        text = raw.metadata.annotations.get(POLICIES_ANNOTATION)
        if text is None:
            return None
        settings = decoder_of(BindingSettings).decode(text)
        mode = _MODES[raw.spec.validation_actions[0]]
    except (msgspec.DecodeError, LookupError) as error:
        raise ValueError(f"a {BINDING} of the chart is invalid: {error}") from error
    name, uid = raw.metadata.name, raw.metadata.uid
    return ChartBinding(name=name, uid=uid, policy=raw.spec.policy_name, mode=mode, settings=settings)


def installed_policies(
    policy: Policy, version: KubernetesVersion, today: str, bindings: Iterable[ChartBinding]
) -> Iterator[Mapping[str, object]]:
    """Yield the expected ValidatingAdmissionPolicy of each binding of the chart.

    The API server adds nothing to the labels, the ownerReferences and the spec of these objects, so compare them for
    equality.
    """
    for binding in bindings:
        given = binding.settings.match_conditions
        owner = {"apiVersion": f"{GROUP}/v1", "kind": BINDING, "name": binding.name, "uid": binding.uid}
        added = InstalledParts(
            without=_left_to_the_webhook(policy, version, binding),
            conditions=tuple((each.name, each.expression) for each in given),
            failure_policy=binding.settings.failure_policy if given else "Fail",
            owners=(owner,),
        )
        yield compiled_policy(binding.mode, policy, version, today, name=binding.policy, added=added)


def warned_by_policies(policy: Policy, version: KubernetesVersion) -> frozenset[str]:
    """Return the ids of rules whose warnings and audits the webhook leaves to the policies, with ``policies``."""
    return _of_share(Share.ALL, policy, version) - _changed_by_injection(policy)


def _left_to_the_webhook(policy: Policy, version: KubernetesVersion, binding: ChartBinding) -> frozenset[str]:
    """Return the ids of rules that a policy leaves out.

    With ``policies``, the webhook warns of rules compiled in part, so a policy would repeat the warning.
    """
    without = _changed_by_injection(policy)
    if binding.settings.static is Static.POLICIES and binding.mode is not Mode.DENY:
        without |= _of_share(Share.PART, policy, version)
    return without


def _of_share(share: Share, policy: Policy, version: KubernetesVersion) -> frozenset[str]:
    return frozenset(each.name for each in coverage(policy, version) if each.share is share)


def _changed_by_injection(policy: Policy) -> frozenset[str]:
    """Rules with other findings if the webhook injects constraints: a policy sees templates without them."""
    return frozenset({effect.SPREAD_REQUIRED.id} if policy.defaults.injects else ())
