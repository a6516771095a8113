"""How the pods of a constraint stand, on one line."""

from webhook.core.scan.scanned import ActualSkew
from webhook.core.text import one_line, plural

_NAME_CHARS = 60
# More are summed up: hosts mostly.
_MOST_DOMAINS = 6


def domain_text(of: ActualSkew) -> str:
    """``a 3, b 1, c 0``, then the owners of these pods and the uncounted pods. Many domains are cut to the extremes."""
    outside = sum(of.outside.values())
    beside = f"{plural(outside, 'pod')} on nodes that do not count" if outside else ""
    return "; ".join(filter(None, (_counts(of), whose_text(of), beside)))


def whose_text(of: ActualSkew) -> str:
    """How many counted pods belong to other workloads, and how many of the workload's own the selector does not match.

    Returns: "" where the constraint counts the workload's own pods and no others.
    """
    others, own = sum(of.others.values()), sum((of.own or {}).values())
    verb = "belongs" if others == 1 else "belong"
    told = (
        [f"{others:,} of {plural(sum(of.domains.values()), 'counted pod')} {verb} to other workloads"] if others else []
    )
    if of.uncounted and of.uncounted == own:
        told.append(f"none of its own {plural(own, 'pod')} is counted")
    elif of.uncounted:
        told.append(
            f"{of.uncounted:,} of its own {plural(own, 'pod')} {'is' if of.uncounted == 1 else 'are'} not counted"
        )
    return "; ".join(told)


def _counts(of: ActualSkew) -> str:
    counts, total = of.domains, of.eligible
    if not total:
        return f"no node with {one_line(of.topology_key, _NAME_CHARS)} counts"
    if total <= _MOST_DOMAINS:
        return ", ".join(f"{one_line(name, _NAME_CHARS)} {number}" for name, number in counts.items())
    empty = of.empty + sum(not number for number in counts.values())
    rest = f", {empty:,} of them empty" if empty and of.most else ""
    return f"{f'{of.fewest} to {of.most}' if of.most else 'none'} in {total:,} domains{rest}"
