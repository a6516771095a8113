"""The short texts of an explanation: cause, waiting constraint, helpful changes."""

from collections.abc import Iterable, Mapping

import msgspec

from webhook.core.api.resources import CPU, EPHEMERAL_STORAGE, HUGE_PAGES_PREFIX, MEMORY
from webhook.core.api.well_known import NODE_STATES
from webhook.core.explain.explanation import Balance, Explanation, why_minimum_stays
from webhook.core.explain.filter_words import PART_WORDS, PARTS
from webhook.core.explain.reliefs import BlockingParts, Relief, Shortage, shortages, too_small
from webhook.core.scheduler.not_evaluated import NOT_ADMITTED, NOT_EVALUATED
from webhook.core.scheduler.plugins.node_resources_fit import NODE_RESOURCES_FIT
from webhook.core.scheduler.plugins.taint_toleration import TAINT_TOLERATION
from webhook.core.scheduler.problem import CAPACITY_FILTERS
from webhook.core.scheduler.verdict import Cause
from webhook.core.text import listed, one_line, plural, segment_of, together
from webhook.core.yaml_text import flow

_CAUSES: Mapping[Cause | None, str] = {
    Cause.SPREAD: "without its DoNotSchedule constraints {} would admit it",
    Cause.CAPACITY: "with free capacity {} would admit it",
    Cause.OTHER: "no change of the pod's requirements would help",
}
_BYTES = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_MAX_WAYS = 3  # The most alternatives in a line. Each is enough alone, and the smallest come first.
_MAX_NAME = 64  # The most characters of a name.
_MAX_LINE = 300  # The most characters of a line, for terminals and logs.
_MAX_NAMES = 3  # The most nodes or workloads named in a line.


def not_evaluated_lines(keys: Iterable[str], admission: Iterable[str] = ()) -> list[str]:
    """Return a line for each part of scheduling and admission not evaluated.

    Args:
        keys: Keys of ``NOT_EVALUATED``, for example ``PodGroup``.
        admission: Keys of ``NOT_ADMITTED``, for example ``LimitRange``.
    """
    return [*(f"{key}: {NOT_EVALUATED[key]}" for key in keys), *(f"{key}: {NOT_ADMITTED[key]}" for key in admission)]


def cause_summary(explanation: Explanation) -> str:
    """Return a line with the cause, for a pod without an admitting node."""
    cause, nodes = explanation.cause, explanation.otherwise.bit_count()
    if explanation.ways:
        return f"cause: {cause} ({'; '.join(_way(way, explanation) for way in explanation.ways[:_MAX_WAYS])})"
    if cause is Cause.CAPACITY and not explanation.otherwise & ~too_small(explanation.verdict):
        return f"cause: {cause} (no node the pod may use is large enough, even when empty)"
    return f"cause: {cause} ({_CAUSES[cause].format(plural(nodes, 'node') if nodes else 'no node')})"


def _way(way: BlockingParts, explanation: Explanation) -> str:
    """Return the effect of dropped requirements: ``without taints and with free capacity 2 nodes would admit it``."""
    states = _states(way.nodes, explanation)
    left_out = [PART_WORDS[part] for part in way.parts if part != "room" and not (part == "taints" and states)]
    parts = [f"without {together(left_out)}"] if left_out else []
    parts += [f"with {states} nodes back"] * ("taints" in way.parts and bool(states))
    parts += ["with free capacity"] * ("room" in way.parts)
    return f"{' and '.join(parts)} {plural(way.nodes.bit_count(), 'node')} would admit it"


def _states(nodes: int, explanation: Explanation) -> str:
    """Return the node conditions that the nodes' taints represent: ``not ready``.

    Empty if a taint does not represent a node condition.
    """
    names = {*NODE_STATES.values()}
    tainted = (obstacle for obstacle in explanation.obstacles if obstacle.plugin == TAINT_TOLERATION)
    texts = [obstacle.text for obstacle in tainted if obstacle.nodes & nodes]
    return " or ".join(texts) if texts and all(part in names for text in texts for part in text.split(", ")) else ""


def obstacle_text(explanation: Explanation) -> str:
    """Return a line with the obstacle to scheduling: the blocking constraint, or the missing resources or labels."""
    if explanation.blocking is not None:
        return _waits(explanation.blocking, explanation)
    texts: list[str] = []
    if explanation.cause is Cause.CAPACITY:
        texts = [shortage_text(shortage) for shortage in shortages(explanation.problem, explanation.otherwise)]
        plugins = CAPACITY_FILTERS - {NODE_RESOURCES_FIT}
    else:
        plugins = frozenset().union(*(PARTS[part] for way in explanation.ways[:1] for part in way.parts))
    nodes = explanation.ways[0].nodes if explanation.ways else explanation.otherwise
    texts += [
        obstacle.text for obstacle in explanation.obstacles if obstacle.plugin in plugins and obstacle.nodes & nodes
    ]
    return one_line(f"in the way: {listed(texts, _MAX_NAMES)}", _MAX_LINE) if texts else ""


def _waits(balance: Balance, explanation: Explanation) -> str:
    """Return why a hard constraint blocks the pod: ``zone[0]: zone c (1 node) stays at 0 pods``."""
    waits = why_minimum_stays(balance, explanation.verdict, every=explanation.obstacles)
    if waits.endswith(f" at {balance.domains.global_minimum}"):  # The reason is a count, and not a lack of domains.
        waits += f" pod{'' if balance.domains.global_minimum == 1 else 's'}{_ceiling(balance)}"
    others = f"; {foreign}" if (foreign := counted_pods_text(balance, names=False)) else ""
    return one_line(f"{balance.name}: {waits}{meant_key_text(balance)}{others}", _MAX_LINE)


def _ceiling(balance: Balance) -> str:
    each = balance.domains
    if not each.self_match or each.limit < 0 or len(balance.lowest) == len(each.counts):
        return ""
    segment, most = segment_of(each.constraint.topology_key), each.global_minimum + each.constraint.max_skew
    return f", and maxSkew {each.constraint.max_skew} lets no other {segment} have more than {most}"


def meant_key_text(balance: Balance) -> str:
    """Return a hint at the probably intended label key. Empty if some node has the constraint's key."""
    return f"; nodes have {one_line(balance.meant, _MAX_NAME)}" if balance.meant else ""


def counted_pods_text(balance: Balance, *, names: bool = True) -> str:
    """Return how many of the counted pods belong to other workloads. Empty for none, and if unknown."""
    who = balance.counted
    if who is None or not who.foreign:
        return ""
    counted = f"{who.foreign:,} of {who.counted:,} counted pods" if who.counted > 1 else "the 1 counted pod"
    text = f"{counted} {'are' if who.counted > 1 else 'is'} not from this workload"
    named = [one_line(name, _MAX_NAME) for name in who.names] if names else []
    return f"{text}: {listed(named, _MAX_NAMES)}" if named else text


def relief_text(relief: Relief, explanation: Explanation) -> str:
    """Return a helpful change in words: ``free capacity on b (needs 2 cpu: 1 cpu free on b)``."""
    names = [one_line(name, _MAX_NAME) for name in explanation.verdict.nodes.names_of(relief.nodes)]
    if relief.what == "toleration":
        tolerations = ", ".join(flow(msgspec.to_builtins(toleration)) for toleration in relief.tolerations)
        return f"add toleration{'' if len(relief.tolerations) == 1 else 's'} {tolerations}"
    if relief.what == "uncordon":
        return f"kubectl uncordon {names[0]}" if len(names) == 1 else f"uncordon one of {listed(names, _MAX_NAMES)}"
    missing = [*map(shortage_text, shortages(explanation.problem, relief.nodes))]
    why = f" ({'; '.join(missing)})" if missing else ""
    what = "free capacity on" if relief.what == "room" else "a larger node than"
    return f"{what} {listed(names, _MAX_NAMES)}{why}"


def shortage_text(shortage: Shortage) -> str:
    """Return a shortage in words: ``needs 2 cpu: 1 cpu free on b``."""
    needs = f"needs {_amount_text(shortage.resource, shortage.needed, up=True)}"
    if shortage.has is not None:
        return f"{needs}, but no node has more than {_amount_text(shortage.resource, shortage.has)}"
    most = "at most " if shortage.nodes > 1 else ""
    free = _amount_text(shortage.resource, shortage.free)
    return f"{needs}: {most}{free} free on {one_line(shortage.node, _MAX_NAME)}"


def _amount_text(resource: str, amount: int, *, up: bool = False) -> str:
    """Return an amount as text: ``500m cpu``, ``1.5Gi memory``. It is rounded down, or up with ``up``."""
    if resource == CPU:
        return f"{amount // 1000 if amount % 1000 == 0 else f'{amount}m'} cpu"
    if resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith(HUGE_PAGES_PREFIX):
        power = min(max(amount.bit_length() - 1, 0) // 10, len(_BYTES) - 1)
        unit = 1 << 10 * power
        hundredths = -(-amount * 100 // unit) if up else amount * 100 // unit
        return f"{hundredths / 100:g}{_BYTES[power]} {resource}"
    return f"{amount:,} {resource}"
