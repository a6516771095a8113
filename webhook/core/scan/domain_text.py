"""How the pods of a constraint stand, on one line."""

from webhook.core.scan.scanned import ActualSkew
from webhook.core.text import one_line, plural

_NAME_CHARS = 60
# More are summed up: hosts mostly.
_MOST_DOMAINS = 6


def domain_text(of: ActualSkew) -> str:
    """``a 3, b 1, c 0``; of many domains the fewest and the most; then pods on nodes that do not count."""
    outside = sum(of.outside.values())
    return _counts(of) + (f"; {plural(outside, 'pod')} on nodes that do not count" if outside else "")


def _counts(of: ActualSkew) -> str:
    counts, total = of.domains, of.eligible
    if not total:
        return f"no node with {of.topology_key.rpartition('/')[2]} counts"
    if total <= _MOST_DOMAINS:
        return ", ".join(f"{one_line(name, _NAME_CHARS)} {number}" for name, number in counts.items())
    empty = of.empty + sum(not number for number in counts.values())
    rest = f", {empty:,} of them empty" if empty and of.most else ""
    return f"{f'{of.fewest} to {of.most}' if of.most else 'none'} in {total:,} domains{rest}"
