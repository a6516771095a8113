"""Read groups from SpreadGroups and ConfigMaps, and find the groups of a pod."""

import re
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import TypeVar

import msgspec
from msgspec import Struct

from webhook.core.api.requirements import SelectorError
from webhook.core.api.selectors import Selector, compile_selector
from webhook.core.api.spread_group import INJECT, GroupSpec, SpreadGroup, WrittenCap
from webhook.core.api.types import LabelSelector, ObjectMeta
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.decoders import converted, decoder_of
from webhook.core.groups.caps import Cap
from webhook.core.groups.group import Group
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.text import one_line

_BOTH = "both"
_MOST_SHARDS = 200  # A plan covers at most 400 pods, and a shard has a master and a replica.
_MOST_PODS = 20  # The most pods of a shard. A shard has a master and a few replicas.
_SHARE = re.compile(r"([0-9]{1,6})/([0-9]{1,6})", re.ASCII)
_WORDS = re.compile(r"[^\s,\[\]\"']+")
# The ConfigMap's keys.
_SIZE, _ON_NODE, _IN_ZONE, _ZONES = "cluster-size", "max-pod-on-node", "max-pod-in-zone", "available-zones"
_PLAN_FOR = "plan-for-size"  # our own key: the size up to which the plan should stay the same
_PAIR = 2  # pods of a shard: a master and its replica
_MANY_DIGITS = 20  # far above the limit of pods, and far below the longest number that Python reads
_Form = TypeVar("_Form", bound=Struct)


class GroupError(Exception):
    """A group without a possible plan. ``faults`` lists the errors, each with its field."""

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(self.faults))


class _ConfigMap(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    data: Mapping[str, object] = {}


def read_group(value: Mapping[str, object] | bytes, namespace: str) -> Group:
    """Read a SpreadGroup.

    Args:
        value: The SpreadGroup as decoded values or JSON bytes.
        namespace: The group's namespace if ``value`` has none.

    Raises:
        GroupError: The group cannot be planned.

    Example:
        ``read_group(yaml.safe_load(text), "shop").pods`` is the expected number of pods.
    """
    return group_from_spec(_decoded(value, SpreadGroup), namespace)


def group_from_spec(written: SpreadGroup, namespace: str = "") -> Group:
    """Read a decoded SpreadGroup.

    Raises:
        GroupError: The group cannot be planned.
    """
    spec, meta = written.spec, written.meta
    faults = ["Object missing required field `spec`"] if spec is None else [*_faults(spec)]
    if spec is None or faults:
        raise GroupError(faults)
    key = spec.required_domains.topology_key if spec.required_domains is not None else ZONE
    shared = spec.shard.never_share
    return Group(
        name=meta.name,
        namespace=meta.namespace or namespace,
        selector=spec.selector,
        shard_label=spec.shard.label,
        never_share=() if shared is None else (ZONE, HOSTNAME) if shared == _BOTH else (shared,),
        shards=spec.expected.shards,
        pods_per_shard=spec.expected.pods_per_shard,
        plan_for=max(spec.expected.shards, spec.plan_for.shards if spec.plan_for is not None else 0),
        caps=tuple(_cap(cap) for cap in spec.caps),
        domains_key=key,
        domains=spec.required_domains.values if spec.required_domains is not None else None,
        inject=spec.delivery == INJECT,
    )


def describes_cluster(value: Mapping[str, object]) -> bool:
    """Whether a ConfigMap describes a group: it has the key ``cluster-size``."""
    data = value.get("data")
    return isinstance(data, Mapping) and _SIZE in data


def unread_keys(value: Mapping[str, object]) -> tuple[str, ...]:
    """Return the unknown, perhaps misspelt, keys of a ConfigMap for a group."""
    data, known = value.get("data"), {_SIZE, _ON_NODE, _IN_ZONE, _ZONES, _PLAN_FOR}
    return tuple(key for key in data if key not in known) if isinstance(data, Mapping) else ()


def _small_number(text: str) -> int:
    """Parse a number. Return 0 for other text, and for numbers with too many digits."""
    digits = text.strip()
    return int(digits) if digits.isdecimal() and len(digits) < _MANY_DIGITS else 0


def read_config_map(value: Mapping[str, object], namespace: str, zones: Iterable[str], zone_key: str = ZONE) -> Group:
    """Read a group from a ConfigMap.

    Each shard has two pods, a master and a replica. They never share a zone. With a single zone, they never share a
    node. The plan also spreads the group's pods evenly over nodes and zones (``even``). A ConfigMap states no selector,
    so the group gets a placeholder.

    Args:
        value: The ConfigMap.
        namespace: The default namespace for a ConfigMap without a namespace.
        zones: The cluster's zones, for a ConfigMap without zones.
        zone_key: The topology key of the zones.

    Raises:
        GroupError: The group cannot be planned.
    """
    written = _decoded(value, _ConfigMap)
    data, numbers, faults = _strings(written.data), dict[str, int](), list[str]()
    for key in (_SIZE, _ON_NODE, _IN_ZONE, _PLAN_FOR):
        text = data.get(key)
        if text is not None and (number := _small_number(text)) and number <= _MOST_SHARDS * _PAIR:
            numbers[key] = number
        elif text is not None:
            faults.append(f"data[{key}]: {one_line(text, 40)} is not a number from 1 to {_MOST_SHARDS * _PAIR}")
    if not faults and numbers[_SIZE] % _PAIR:
        faults.append(f"data[{_SIZE}]: {numbers[_SIZE]} is odd, but a shard has a master and a replica")
    if not faults and _PLAN_FOR in numbers and (numbers[_PLAN_FOR] < numbers[_SIZE] or numbers[_PLAN_FOR] % _PAIR):
        faults.append(f"data[{_PLAN_FOR}]: {numbers[_PLAN_FOR]} must be even, and at least data[{_SIZE}]")
    if faults:
        raise GroupError(faults)
    named = tuple(_WORDS.findall(data.get(_ZONES, "")))
    keys = ((HOSTNAME, _ON_NODE), (zone_key, _IN_ZONE))
    shards = numbers[_SIZE] // _PAIR
    return Group(
        name=written.metadata.name,
        namespace=written.metadata.namespace or namespace,
        selector=LabelSelector(match_labels={"app": written.metadata.name}),
        shard_label="shard",
        never_share=(zone_key,) if len(set(named or zones)) > 1 else (HOSTNAME,),
        shards=shards,
        pods_per_shard=_PAIR,
        plan_for=max(shards, numbers.get(_PLAN_FOR, 0) // _PAIR),
        caps=tuple(Cap(topology_key=key, amount=Fraction(numbers[name])) for key, name in keys if name in numbers),
        domains_key=zone_key,
        domains=named or None,
        even=True,
    )


def _strings(data: Mapping[str, object]) -> dict[str, str]:
    """Check that all data are strings, as kube-apiserver requires. Raises GroupError."""
    if others := [(key, one_line(str(value), 40)) for key, value in data.items() if not isinstance(value, str)]:
        raise GroupError(f'data[{one_line(key, 40)}]: {text} is not a string; write "{text}"' for key, text in others)
    return {key: str(value) for key, value in data.items()}


def _decoded(value: Mapping[str, object] | bytes, form: type[_Form]) -> _Form:
    try:
        return decoder_of(form).decode(value) if isinstance(value, bytes) else converted(value, form)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at ")
        path = where.strip("`").removeprefix("$.")
        raise GroupError([f"{path}: {what}" if path else what]) from error
    except msgspec.DecodeError as error:
        raise GroupError([str(error)]) from error


def _faults(spec: GroupSpec) -> Iterator[str]:
    if (error := _selector_error(spec.selector)) or not (spec.selector.match_labels or spec.selector.match_expressions):
        yield f"spec.selector: {error or 'selects every pod of the namespace; name the labels of the group'}"
    if not spec.shard.label:
        yield "spec.shard.label: must not be empty"
    if not 1 <= spec.expected.shards <= _MOST_SHARDS:
        yield f"spec.expected.shards: {spec.expected.shards} is not between 1 and {_MOST_SHARDS}"
    if not 1 <= spec.expected.pods_per_shard <= _MOST_PODS:
        yield f"spec.expected.podsPerShard: {spec.expected.pods_per_shard} is not between 1 and {_MOST_PODS}"
    if spec.plan_for is not None and not spec.expected.shards <= spec.plan_for.shards <= _MOST_SHARDS:
        yield f"spec.planFor.shards: {spec.plan_for.shards} is not between expected.shards and {_MOST_SHARDS}"
    if spec.required_domains is not None and not spec.required_domains.values:
        yield "spec.requiredDomains.values: must not be empty"
    for number, cap in enumerate(spec.caps):
        yield from _cap_faults(cap, f"spec.caps[{number}]")
    shared = [] if spec.shard.never_share in {None, _BOTH} else [spec.shard.never_share]
    domains = [] if spec.required_domains is None else [spec.required_domains.topology_key]
    keys = {*shared, *domains, *(cap.topology_key for cap in spec.caps)} - {HOSTNAME, None}
    if len(keys) > 1:
        yield f"spec: {' and '.join(sorted(map(str, keys)))}: a plan supports only one key besides {HOSTNAME}"


def _selector_error(selector: LabelSelector) -> str:
    try:
        compile_selector(selector)
    except SelectorError as error:
        return str(error)
    return ""


def _cap_faults(cap: WrittenCap, path: str) -> Iterator[str]:
    if not cap.topology_key:
        yield f"{path}.topologyKey: must not be empty"
    if (cap.less_than is None) == (cap.at_most is None):
        yield f"{path}: needs one of lessThan and atMost"
        return
    name, amount = ("lessThan", cap.less_than) if cap.less_than is not None else ("atMost", cap.at_most)
    if isinstance(amount, str):
        share = _SHARE.fullmatch(amount)
        if share is None or not int(share[2]) or not 0 < Fraction(amount) <= 1:
            yield f"{path}.{name}: {one_line(amount, 40)} is not a fraction of the pods such as 1/2"
    elif amount is not None and amount < 1:
        yield f"{path}.{name}: {amount} must be at least 1"
    if cap.enforce not in {None, "enforce", "observe"}:
        yield f"{path}.enforce: {one_line(str(cap.enforce), 40)} is neither enforce nor observe"
    if cap.selector is not None and cap.enforce != "observe":
        yield f"{path}.selector: a cap with its own selector can only be observed; set enforce: observe"
    if cap.selector is not None and (error := _selector_error(cap.selector)):
        yield f"{path}.selector: {error}"


def _cap(written: WrittenCap) -> Cap:
    strict = written.less_than is not None
    amount = written.less_than if strict else written.at_most
    return Cap(
        topology_key=written.topology_key,
        amount=Fraction(amount or 0),
        of_pods=isinstance(amount, str),
        strict=strict,
        selector=written.selector,
        enforced=written.enforce != "observe",
    )


class Membership(Struct, frozen=True):
    """A SpreadGroup as ``written``, the ``group`` read from it, and the compiled ``selector`` of its pods."""

    written: SpreadGroup
    group: Group
    selector: Selector


def memberships(namespace: str, labels: Mapping[str, str], index: ReadOnlyIndex) -> Iterator[Membership]:
    """Find the groups of pods with these labels. Skip groups that cannot be planned."""
    for written in index.namespaces.groups(namespace):
        try:
            if written.spec is not None and (selector := compile_selector(written.spec.selector)).matches(labels):
                yield Membership(written, group_from_spec(written), selector)
        except (SelectorError, GroupError):
            continue
