"""Names and amounts of resources, in kube-scheduler's units.

CPU is in milli-CPU, every other resource in whole units. Sums are exact, and are rounded up at the end.

Source: k8s.io/apimachinery pkg/api/resource quantity.go; scheduler framework/types.go Resource.
"""

from collections.abc import Mapping
from functools import lru_cache

from webhook.core.api.label_syntax import key_faults
from webhook.core.api.quantity import parse_quantity, quantity_from_nanos
from webhook.core.api.types import MAX_INT64, Node, WrittenQuantity

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"
OF_EVERY_NODE = (PODS, CPU, MEMORY, EPHEMERAL_STORAGE)

HUGE_PAGES_PREFIX = "hugepages-"
_ATTACHABLE_VOLUMES_PREFIX = "attachable-volumes-"
_NATIVE_DOMAIN = "kubernetes.io/"
_QUOTA_PREFIX = "requests."
# Resource name -> amount in 10**-9 of the resource's unit, so sums are exact and rounding comes last.
Amounts = dict[str, int]
ResourceList = Mapping[str, WrittenQuantity] | None
# Divisors from `Amounts` to whole units and to milli-CPU. Upstream's amounts are int64.
_NANO = 10**9
_NANO_PER_MILLI = 10**6
# Limits of the caches in characters, for all names of a node and for one quantity. A cache counts entries and not their
# size, and any user can write a long one.
_CACHED_OFFERS = 2048
_CACHED_QUANTITY = 32


def allocatable_of(node: Node) -> Mapping[str, int]:
    """Return a node's allocatable amounts of compared resources. Source: framework/types.go ``NewResource``."""
    amounts = node.status.allocatable if node.status else None
    if not amounts:
        return {}
    written = tuple(sorted((name, str(amount)) for name, amount in amounts.items()))
    return (_allocatable if len("".join(amounts)) <= _CACHED_OFFERS else _allocatable.__wrapped__)(written)


@lru_cache(maxsize=256)  # the machine types of a large cluster
def _allocatable(amounts: tuple[tuple[str, str], ...]) -> Mapping[str, int]:
    return {
        name: rounded(name, to_nanos(amount)) for name, amount in amounts if name in OF_EVERY_NODE or is_scalar(name)
    }


def is_extended(name: str) -> bool:
    """Whether the name is an extended resource, such as ``example.com/gpu``.

    Source: pkg/apis/core/v1/helper/helpers.go ``IsExtendedResourceName``.
    """
    return "/" in name and _NATIVE_DOMAIN not in name and not name.startswith(_QUOTA_PREFIX)


def is_scalar(name: str) -> bool:
    """Whether the scheduler compares the resource as a scalar, unlike cpu and memory.

    Source: pkg/scheduler/util/utils.go ``IsScalarResourceName``.
    """
    if _NATIVE_DOMAIN in name or name.startswith((HUGE_PAGES_PREFIX, _ATTACHABLE_VOLUMES_PREFIX)):
        return True
    if "/" not in name or name.startswith(_QUOTA_PREFIX):
        return False
    return not key_faults(_QUOTA_PREFIX + name)


def pod_level_resource(name: str) -> bool:
    """Whether a pod's spec.resources may name the resource. Source: helpers.go ``IsSupportedPodLevelResource``."""
    return name in (CPU, MEMORY) or name.startswith(HUGE_PAGES_PREFIX)


def amounts_of(resources: ResourceList) -> Amounts:
    """Convert a list of quantities to exact amounts. Source: api/resource quantity.go ``Add``."""
    return {name: to_nanos(amount) for name, amount in resources.items()} if resources else {}


def to_nanos(written: WrittenQuantity) -> int:
    """Convert a quantity to 10**-9 units. Source: api/resource quantity.go ``ParseQuantity``."""
    return _parsed_nanos(written) if len(str(written)) <= _CACHED_QUANTITY else _parsed_nanos.__wrapped__(written)


@lru_cache(maxsize=1024)  # Entries take up to 500 bytes, for a quantity like 1e9999.
def _parsed_nanos(written: WrittenQuantity) -> int:
    """Convert to nanos. Invalid text, which kube-apiserver never stores, is 0."""
    try:
        quantity = parse_quantity(written)
    except ValueError:
        return 0
    return quantity.nanos


def rounded(name: str, nanos: int) -> int:
    """Round up to milli-CPU or whole units. Source: api/resource quantity.go ``Value``, ``MilliValue``."""
    amount = -(-nanos // (_NANO_PER_MILLI if name == CPU else _NANO))
    if abs(amount) <= MAX_INT64:
        return amount
    # Beyond 64 bits, quantities overflow like upstream.
    quantity = quantity_from_nanos(nanos)
    return quantity.milli if name == CPU else quantity.value


def compare_amounts(one: ResourceList, other: ResourceList, name: str) -> int:
    """Compare a resource's amounts in two lists: negative if the first has less, positive if it has more.

    An absent resource counts as 0.

    Source: api/resource quantity.go ``Cmp``.
    """
    return to_nanos((one or {}).get(name, 0)) - to_nanos((other or {}).get(name, 0))


def whole_units(written: WrittenQuantity) -> int:
    """Round the quantity up to whole units. Source: api/resource quantity.go ``Value``."""
    return rounded("", to_nanos(written))


def to_milli(written: WrittenQuantity) -> WrittenQuantity:
    """Round up to thousandths, like stored quantities. Source: core/v1/defaults.go ``SetDefaults_ResourceList``."""
    return _milli(written) if len(str(written)) <= _CACHED_QUANTITY else _milli.__wrapped__(written)


@lru_cache(maxsize=1024, typed=True)  # the different quantities of a large cluster
def _milli(written: WrittenQuantity) -> WrittenQuantity:
    nanos = to_nanos(written)
    return written if nanos % _NANO_PER_MILLI == 0 else f"{-(-nanos // _NANO_PER_MILLI)}m"
