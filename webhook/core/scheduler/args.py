"""Decode and validate PodTopologySpreadArgs, the default constraints.

Source: k8s.io/kube-scheduler config/v1 types.go; k8s.io/kubernetes pkg/scheduler/apis/config v1/defaults.go,
validation/validation_pluginargs.go, scheme/scheme.go (strict decoding).
"""

from collections.abc import Iterator

from msgspec import Struct, field
from msgspec.structs import replace

from webhook.core.api import gates
from webhook.core.api.go_text import quote
from webhook.core.api.label_syntax import key_faults
from webhook.core.api.types import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY, SpreadConstraint
from webhook.core.api.version import RECORDED, KubernetesVersion
from webhook.core.apiserver import go_json
from webhook.core.apiserver.field_errors import (
    FieldError,
    distinct,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from webhook.core.decoders import converted
from webhook.core.scheduler.profile import DefaultingType

_GROUP = "kubescheduler.config.k8s.io"
_KIND = "PodTopologySpreadArgs"
_PLUGIN = "decoding args for plugin PodTopologySpread"
# The other kinds of the API group.
_OTHER_KINDS = frozenset(
    {
        *("KubeSchedulerConfiguration", "DefaultPreemptionArgs", "InterPodAffinityArgs", "NodeAffinityArgs"),
        *("NodeResourcesBalancedAllocationArgs", "NodeResourcesFitArgs", "VolumeBindingArgs"),
    }
)
_DYNAMIC = "DynamicResourcesArgs"


class ArgsError(ValueError):
    """Args rejected by kube-scheduler at its start, with kube-scheduler's text."""


class PodTopologySpreadArgs(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The args of the plugin. Absent constraints are None.

    With defaulting type ``List``, absent and empty constraints both turn defaults off.

    Source: config/v1/types_pluginargs.go ``PodTopologySpreadArgs``.
    """

    default_constraints: tuple[SpreadConstraint, ...] | None = field(default=None, name="defaultConstraints")
    defaulting_type: str = field(default="", name="defaultingType")

    @property
    def constraints(self) -> tuple[SpreadConstraint, ...]:
        """The default constraints. Empty if absent."""
        return self.default_constraints or ()


def decode_args(
    raw: bytes, at: str = ".profiles[0].pluginConfig[0]", version: KubernetesVersion = RECORDED
) -> PodTopologySpreadArgs:
    """Decode args strictly from JSON, and fill in defaults.

    ``at`` is the plugin's path in the configuration file, for messages. ArgsError has kube-scheduler's text.

    Source: config/v1/types.go ``decodeNestedObjects``.
    """
    try:
        node = go_json.read(raw)
    except ValueError as error:
        raise ArgsError(
            f"decoding {at}: {_PLUGIN}: the args are not valid JSON: {str(error)[: go_json.ERROR_CHARACTERS]}"
        ) from None
    # ``args: null`` means no args.
    if node is None:
        node = go_json.Members()
    _check_type(node, at, raw, version)
    try:
        value, warnings = go_json.decode_go(node, f"v1.{_KIND}", version=version)
    except go_json.GoJsonError as error:
        raise ArgsError(f"decoding {at}: {_PLUGIN}: {error}") from None
    if warnings:
        faults = ", ".join(warnings)
        # Upstream wraps the error on each of three levels, so the prefix repeats.
        strict = "strict decoding error"
        raise ArgsError(f"{strict}: decoding {at}: {strict}: {_PLUGIN}: {strict}: {faults}")
    return _defaulted(converted(value, PodTopologySpreadArgs))


def _check_type(node: object, at: str, raw: bytes, as_version: KubernetesVersion) -> None:
    """Raise ArgsError if the args have an apiVersion or kind of another type.

    Args without apiVersion and kind pass.

    Source: runtime/serializer/json/json.go ``Decode``; config/v1/types.go ``decodeNestedObjects``.
    """
    try:
        stated = go_json.interpreted_type(node)
    except go_json.GoJsonError as error:
        raise ArgsError(f"decoding {at}: {_PLUGIN}: {error}") from None
    api_version, kind = stated["apiVersion"], stated["kind"] or _KIND
    group, slash, version = api_version.partition("/")
    if "/" in version:
        raise ArgsError(f"decoding {at}: {_PLUGIN}: unexpected GroupVersion string: {api_version}")
    if not slash:
        group, version = "", api_version
    if not group and not version:
        group = _GROUP
    if not version and group == _GROUP:
        version = "v1"
    if not version:
        text = raw.decode("utf-8", "replace")
        raise ArgsError(f"decoding {at}: {_PLUGIN}: Object 'apiVersion' is missing in '{text}'")
    known = (group, version) == (_GROUP, "v1")
    if known and (kind in _OTHER_KINDS or (kind == _DYNAMIC and gates.DYNAMIC_ARGS.holds(as_version))):
        got = f"were not of type {_KIND}.{_GROUP}, got {kind}.{_GROUP}"
        raise ArgsError(f"decoding {at}: args for plugin PodTopologySpread {got}")
    if not known or kind != _KIND:
        shown = f"{group}/{version}" if group else version
        text = f'no kind {quote(kind)} is registered for version {quote(shown)} in scheme "{_scheme(as_version)}"'
        raise ArgsError(f"decoding {at}: {_PLUGIN}: {text}")


def _scheme(version: KubernetesVersion) -> str:
    """Return upstream's name of the runtime scheme: a file and line, varying by release."""
    changes = (gates.SCHEME_LINE_110, 110), (gates.SCHEME_LINE_111, 111), (gates.SCHEME_LINE_110_AGAIN, 110)
    line = [100, *(line for gate, line in changes if gate.holds(version))][-1]
    return f"pkg/runtime/scheme.go:{line}"


def _defaulted(args: PodTopologySpreadArgs) -> PodTopologySpreadArgs:
    """Fill in kube-scheduler's defaults. Source: v1/defaults.go ``SetDefaults_PodTopologySpreadArgs``."""
    return args if args.defaulting_type else replace(args, defaulting_type=DefaultingType.SYSTEM)


def validate_args(args: PodTopologySpreadArgs, version: KubernetesVersion = RECORDED) -> tuple[FieldError, ...]:
    """List the errors of defaulted args in upstream's order, with relative paths.

    Source: validation_pluginargs.go ``ValidatePodTopologySpreadArgs``; policies, minDomains and matchLabelKeys pass.
    """
    return distinct(_errors(args, version))


def _errors(args: PodTopologySpreadArgs, version: KubernetesVersion) -> Iterator[FieldError]:
    """Source: validation_pluginargs.go ``ValidatePodTopologySpreadArgs``, ``validateConstraintNotRepeat``."""
    if args.defaulting_type not in {DefaultingType.SYSTEM, DefaultingType.LIST}:
        yield not_supported(
            "defaultingType", args.defaulting_type, (DefaultingType.SYSTEM, DefaultingType.LIST), version
        )
    elif args.defaulting_type == DefaultingType.SYSTEM and args.constraints:
        yield invalid(
            "defaultingType", DefaultingType.SYSTEM, "when .defaultConstraints are not empty", named_in=version
        )
    earlier: set[tuple[str, str]] = set()
    for index, constraint in enumerate(args.constraints):
        at = f"defaultConstraints[{index}]"
        pair = constraint.topology_key or "", constraint.when_unsatisfiable or ""
        yield from _constraint_errors(constraint, at, version)
        if pair in earlier:
            yield duplicate(at, f"{{{pair[0]}, {pair[1]}}}")
        earlier.add(pair)


def _constraint_errors(constraint: SpreadConstraint, at: str, version: KubernetesVersion) -> Iterator[FieldError]:
    """Source: validation_pluginargs.go ``ValidatePodTopologySpreadArgs``, ``validateTopologyKey``."""
    max_skew, key, action = constraint.max_skew or 0, constraint.topology_key, constraint.when_unsatisfiable
    if max_skew <= 0:
        yield invalid(f"{at}.maxSkew", max_skew, "not in valid range (0, inf)")
    if not key:
        yield required(f"{at}.topologyKey", "can not be empty")
    else:
        for fault in key_faults(key, version):
            yield invalid(f"{at}.topologyKey", key, fault)
    if not action:
        yield required(f"{at}.whenUnsatisfiable", "can not be empty")
    elif action not in {DO_NOT_SCHEDULE, SCHEDULE_ANYWAY}:
        yield not_supported(f"{at}.whenUnsatisfiable", action, (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY), version)
    if constraint.selector is not None:
        yield forbidden(f"{at}.labelSelector", "constraint must not define a selector, as they deduced for each pod")
