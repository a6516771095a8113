"""Read the profiles of a KubeSchedulerConfiguration.

Only parts with an effect on verdicts are read and checked. kube-scheduler may still reject the file.

Source: k8s.io/kube-scheduler config/v1; kubernetes pkg/scheduler/framework/runtime expandMultiPointPlugins.
"""

from collections.abc import Mapping
from typing import TypeVar

import msgspec
from msgspec import Struct

from webhook.config.document import ConfigDocument, read_config_document
from webhook.config.faults import ConfigError, ConfigFault, Path, parse_path, render_path, shown
from webhook.config.meaning import upstream_fault
from webhook.core.api.types import NodeAffinity
from webhook.core.decoders import converted
from webhook.core.scheduler.args import ArgsError, PodTopologySpreadArgs, decode_args, validate_args
from webhook.core.scheduler.not_evaluated import OTHER_FILTERS
from webhook.core.scheduler.problem import FILTERS
from webhook.core.scheduler.profile import DEFAULT_SCHEDULER, DefaultingType, SchedulerProfile

_SCHEDULER_API_VERSION = "kubescheduler.config.k8s.io/v1"
# The filters of the default profile: those that verdicts evaluate, and the others.
CONFIGURABLE_FILTERS = (*FILTERS, *OTHER_FILTERS)
_T = TypeVar("_T", bound="_SchedulerPart")


class _SchedulerPart(Struct, frozen=True, rename="camel"):
    """A section of the scheduler configuration file. Unknown fields are ignored, and null means absent."""


class _Plugin(_SchedulerPart, frozen=True):
    name: str = ""


class _PluginSet(_SchedulerPart, frozen=True):
    enabled: tuple[_Plugin, ...] | None = None
    disabled: tuple[_Plugin, ...] | None = None

    def names(self) -> tuple[set[str], set[str]]:
        """Return the names of enabled and of disabled plugins."""
        return {plugin.name for plugin in self.enabled or ()}, {plugin.name for plugin in self.disabled or ()}


class _Plugins(_SchedulerPart, frozen=True):
    filter: _PluginSet | None = None
    multi_point: _PluginSet | None = None


class _PluginConfig(_SchedulerPart, frozen=True):
    name: str = ""
    args: Mapping[str, object] | None = None


class _Profile(_SchedulerPart, frozen=True):
    scheduler_name: str | None = None
    plugins: _Plugins | None = None
    plugin_config: tuple[_PluginConfig, ...] | None = None


class _SchedulerFile(_SchedulerPart, frozen=True):
    api_version: str | None = None
    kind: str | None = None
    profiles: tuple[_Profile, ...] | None = None


class _AffinityArgs(_SchedulerPart, frozen=True):
    added_affinity: NodeAffinity | None = None


class _FitArgs(_SchedulerPart, frozen=True):
    ignored_resources: tuple[str, ...] | None = None
    ignored_resource_groups: tuple[str, ...] | None = None


def read_profiles(text: str, *, file: str) -> tuple[SchedulerProfile, ...]:
    """Read the profiles of a KubeSchedulerConfiguration.

    Raises:
        ConfigError: With all faults of this file.
    """
    reading = _ProfileReader(read_config_document(text, file=file))
    read = reading.part((), reading.document.value, _SchedulerFile)
    if not reading.faults:
        reading.is_word("apiVersion", read.api_version, _SCHEDULER_API_VERSION)
        reading.is_word("kind", read.kind, "KubeSchedulerConfiguration")
    profiles = tuple(_profile(reading, index, profile) for index, profile in enumerate(read.profiles or ()))
    if reading.faults:
        raise ConfigError(reading.faults, file=file)
    return profiles


class _ProfileReader:
    def __init__(self, document: ConfigDocument) -> None:
        self.document = document
        self.faults: list[ConfigFault] = []

    def part(self, path: Path, value: object, kind: type[_T]) -> _T:
        """Convert a value to this type. If it does not fit, record a fault and return an empty value."""
        try:
            return converted(value, kind)
        except msgspec.ValidationError as error:
            text, _, below = str(error).partition(" - at `$")
            words = text[0].lower() + text[1:].replace("`", "").replace(" | null", "")
            self.faults.append(self.document.fault((*path, *parse_path(below.rstrip("`"))), words))
            return kind()

    def is_word(self, name: str, value: str | None, wanted: str) -> None:
        if value != wanted:
            self.faults.append(self.document.fault((name,), f"must be {wanted}, is {shown(value)}"))


def _profile(reading: _ProfileReader, index: int, profile: _Profile) -> SchedulerProfile:
    spread, affinity, fit = PodTopologySpreadArgs(defaulting_type=DefaultingType.SYSTEM), _AffinityArgs(), _FitArgs()
    for number, config in enumerate(profile.plugin_config or ()):
        path: Path = ("profiles", index, "pluginConfig", number, "args")
        match config.name:
            case "PodTopologySpread":
                spread = _spread_args(reading, config.args, path)
            case "NodeAffinity":
                affinity = reading.part(path, config.args or {}, _AffinityArgs)
            case "NodeResourcesFit":
                fit = reading.part(path, config.args or {}, _FitArgs)
    return SchedulerProfile(
        name=profile.scheduler_name or DEFAULT_SCHEDULER,
        disabled_filters=_disabled_filters(profile.plugins or _Plugins()),
        defaulting_type=DefaultingType.LIST if spread.defaulting_type == DefaultingType.LIST else DefaultingType.SYSTEM,
        default_constraints=spread.constraints,
        added_affinity=affinity.added_affinity,
        ignored_resources=fit.ignored_resources or (),
        ignored_resource_groups=fit.ignored_resource_groups or (),
    )


def _spread_args(reading: _ProfileReader, args: Mapping[str, object] | None, path: Path) -> PodTopologySpreadArgs:
    try:
        spread = decode_args(msgspec.json.encode(args), f".{render_path(path[:-1])}")
    except ArgsError as error:
        reading.faults.append(reading.document.fault(path, str(error)))
        return PodTopologySpreadArgs(defaulting_type=DefaultingType.SYSTEM)
    reading.faults += [upstream_fault(reading.document, error, path) for error in validate_args(spread)]
    return spread


def _disabled_filters(plugins: _Plugins) -> tuple[str, ...]:
    """Return the default profile's filters that do not run. ``*`` disables all filters not enabled by name."""
    everywhere, nowhere = (plugins.multi_point or _PluginSet()).names()
    running = everywhere | {name for name in CONFIGURABLE_FILTERS if not nowhere & {name, "*"}}
    enabled, disabled = (plugins.filter or _PluginSet()).names()
    running = enabled | {name for name in running if not disabled & {name, "*"}}
    return tuple(name for name in CONFIGURABLE_FILTERS if name not in running)
