"""The one-line texts of an explanation: the cause, what a constraint waits for, what would help."""

from collections.abc import Iterable, Mapping

import msgspec

from webhook.core.api.resources import CPU, EPHEMERAL_STORAGE, HUGE_PAGES_PREFIX, MEMORY
from webhook.core.api.well_known import NODE_STATES
from webhook.core.explain.explanation import Balance, Explanation, standstill
from webhook.core.explain.obstacles import CAPACITY_FILTERS, PART_WORDS, PARTS
from webhook.core.explain.reliefs import (
    Relief,
    Shortage,
    Way,
    shortages,
    too_small,
)
from webhook.core.scheduler.plugins.node_resources_fit import NODE_RESOURCES_FIT
from webhook.core.scheduler.plugins.taint_toleration import TAINT_TOLERATION
from webhook.core.scheduler.problem import NOT_ADMITTED, NOT_EVALUATED
from webhook.core.scheduler.verdict import Cause
from webhook.core.text import listed, one_line, plural, segment_of, together
from webhook.core.yaml_text import flow

_CAUSES: Mapping[Cause | None, str] = {
    Cause.SPREAD: "without its DoNotSchedule constraints {} would admit it",
    Cause.CAPACITY: "with room {} would admit it",
    Cause.OTHER: "no node would admit it, whatever is left out",
}
_BYTES = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_MAX_WAYS = 3  # told of those that would lift the cause: each is enough, and the smallest come first
_MAX_NAMES = 3  # of nodes in a line, and of workloads


def not_evaluated_lines(keys: Iterable[str], admission: Iterable[str] = ()) -> list[str]:
    """A line for each key of ``NOT_EVALUATED``, and for each of ``NOT_ADMITTED`` (``admission``)."""
    return [*(f"{key}: {NOT_EVALUATED[key]}" for key in keys), *(f"{key}: {NOT_ADMITTED[key]}" for key in admission)]


def cause_summary(explanation: Explanation) -> str:
    """The cause in one line, for a pod that no node admits: ``cause: spread (…)``."""
    cause, nodes = explanation.cause, explanation.otherwise.bit_count()
    if explanation.ways:
        return f"cause: {cause} ({'; '.join(_way(way, explanation) for way in explanation.ways[:_MAX_WAYS])})"
    if cause is Cause.CAPACITY and not explanation.otherwise & ~too_small(explanation.verdict):
        return f"cause: {cause} (no node that it may use has so much, even empty)"
    return f"cause: {cause} ({_CAUSES[cause].format(plural(nodes, 'node') if nodes else 'no node')})"


def _way(way: Way, explanation: Explanation) -> str:
    """``without taints and with room 2 nodes would admit it``."""
    states = _states(way.nodes, explanation)
    left_out = [PART_WORDS[part] for part in way.parts if part != "room" and not (part == "taints" and states)]
    parts = [f"without {together(left_out)}"] if left_out else []
    parts += [f"with {states} nodes back"] * ("taints" in way.parts and bool(states))
    parts += ["with room"] * ("room" in way.parts)
    return f"{' and '.join(parts)} {plural(way.nodes.bit_count(), 'node')} would admit it"


def _states(nodes: int, explanation: Explanation) -> str:
    """The states that the taints of these nodes stand for; empty if one of them is an ordinary taint."""
    names, tainted = (
        {*NODE_STATES.values()},
        [each for each in explanation.obstacles if each.plugin == TAINT_TOLERATION],
    )
    told = [each.text for each in tainted if each.nodes & nodes]
    return " or ".join(told) if told and all(part in names for text in told for part in text.split(", ")) else ""


def in_the_way(explanation: Explanation) -> str:
    """What has to change, in one line: the constraint that waits, the missing resource or label."""
    if explanation.blocking is not None:
        return _waits(explanation.blocking, explanation)
    texts: list[str] = []
    if explanation.cause is Cause.CAPACITY:
        texts = [shortage_text(each) for each in shortages(explanation.problem, explanation.otherwise)]
        plugins = CAPACITY_FILTERS - {NODE_RESOURCES_FIT}
    else:
        plugins = frozenset().union(*(PARTS[part] for way in explanation.ways[:1] for part in way.parts))
    nodes = explanation.ways[0].nodes if explanation.ways else explanation.otherwise
    texts += [each.text for each in explanation.obstacles if each.plugin in plugins and each.nodes & nodes]
    return one_line(f"in the way: {listed(texts, _MAX_NAMES)}", 300) if texts else ""


def _waits(balance: Balance, explanation: Explanation) -> str:
    """What a hard constraint waits for: ``zone[0]: zone c (1 node, cordoned) stays at 0 pods, and …``."""
    waits = standstill(balance, explanation.verdict, every=explanation.obstacles)
    if waits.endswith(f" at {balance.domains.global_minimum}"):  # and not what keeps the minimum at 0
        waits += f" pod{'' if balance.domains.global_minimum == 1 else 's'}{_ceiling(balance)}"
    others = f"; {foreign}" if (foreign := counted_pods_text(balance, names=False)) else ""
    return one_line(f"{balance.name}: {waits}{instead(balance)}{others}", 300)


def _ceiling(balance: Balance) -> str:
    each = balance.domains
    if not each.self_match or each.limit < 0 or len(balance.lowest) == len(each.counts):
        return ""
    segment, most = segment_of(each.constraint.topology_key), each.global_minimum + each.constraint.max_skew
    return f", and maxSkew {each.constraint.max_skew} lets no other {segment} have more than {most}"


def instead(balance: Balance) -> str:
    """The key that was probably meant, if no node has the constraint's key."""
    return f"; nodes have {one_line(balance.meant, 64)}" if balance.meant else ""


def counted_pods_text(balance: Balance, *, names: bool = True) -> str:
    """Whose pods a constraint counts; empty if only the workload's own, or if unknown."""
    who = balance.counted
    if who is None or not who.foreign:
        return ""
    counted = f"{who.foreign:,} of {who.counted:,} counted pods" if who.counted > 1 else "the 1 counted pod"
    text = f"{counted} {'are' if who.counted > 1 else 'is'} not this workload's"
    return f"{text}: {listed([one_line(name, 64) for name in who.names], _MAX_NAMES)}" if names and who.names else text


def relief_text(relief: Relief, explanation: Explanation) -> str:
    """One relief: ``room on b (needs 2 cpu, 1 cpu is free)``."""
    names = [one_line(name, 64) for name in explanation.verdict.nodes.names_of(relief.nodes)]
    if relief.what == "toleration":
        tolerations = ", ".join(flow(msgspec.to_builtins(each)) for each in relief.tolerations)
        return f"add toleration{'' if len(relief.tolerations) == 1 else 's'} {tolerations}"
    if relief.what == "uncordon":
        return f"kubectl uncordon {names[0]}" if len(names) == 1 else f"uncordon one of {listed(names, _MAX_NAMES)}"
    missing = [*map(shortage_text, shortages(explanation.problem, relief.nodes))]
    why = f" ({'; '.join(missing)})" if missing else ""
    what = "room on" if relief.what == "room" else "a larger node than"
    return f"{what} {listed(names, _MAX_NAMES)}{why}"


def shortage_text(shortage: Shortage) -> str:
    """``needs 2 cpu: 1 cpu is free on b``, with the most of all; or what the largest node has."""
    needs = f"needs {_amount_text(shortage.resource, shortage.needed, up=True)}"
    if shortage.has is not None:
        return f"{needs}, and none has more than {_amount_text(shortage.resource, shortage.has)}"
    free, most = _amount_text(shortage.resource, shortage.free), ", the most of them" if shortage.nodes > 1 else ""
    return f"{needs}: {free} free on {one_line(shortage.node, 64)}{most}"


def _amount_text(resource: str, amount: int, *, up: bool = False) -> str:
    """An amount of a resource as text: ``500m cpu``, ``1.5Gi memory``; rounded down to two decimals, or ``up``."""
    if resource == CPU:
        return f"{amount // 1000 if amount % 1000 == 0 else f'{amount}m'} cpu"
    if resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith(HUGE_PAGES_PREFIX):
        power = min(max(amount.bit_length() - 1, 0) // 10, len(_BYTES) - 1)
        unit = 1 << 10 * power
        hundredths = -(-amount * 100 // unit) if up else amount * 100 // unit
        return f"{hundredths / 100:g}{_BYTES[power]} {resource}"
    return f"{amount:,} {resource}"
