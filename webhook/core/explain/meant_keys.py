"""Keys of node labels: which well-known one, or which that nodes have, another was probably meant to be."""

from webhook.core.api.well_known import ARCH, HOSTNAME, INSTANCE_TYPE, OS, REGION, SUCCESSORS, ZONE
from webhook.core.index.node_table import NodeView
from webhook.core.text import nearest

_SLIPS = 2
# Every cluster of one place lacks these, and what is written for larger ones runs there too.
PLACES = frozenset({ZONE, REGION})
ON_EVERY_NODE = PLACES | {HOSTNAME}
_WELL_KNOWN = frozenset({HOSTNAME, ZONE, REGION, ARCH, OS, INSTANCE_TYPE, *SUCCESSORS})
# Where people look for the three labels, and how they call them; together never a label of Kubernetes itself.
_PREFIXES = frozenset(
    {
        *("kubernetes.io", "topology.kubernetes.io", "node.kubernetes.io", "beta.kubernetes.io"),
        *("failure-domain.kubernetes.io", "failure-domain.beta.kubernetes.io", "topology.beta.kubernetes.io"),
        *("k8s.io", "topology.k8s.io", "node.k8s.io", "hostname.kubernetes.io", "zone.kubernetes.io"),
    }
)
_NAMES = {
    **dict.fromkeys(("hostname", "host-name", "host", "hostnames", "node", "node-name", "nodename"), HOSTNAME),
    **dict.fromkeys(("zone", "zones", "availability-zone", "az"), ZONE),
    **dict.fromkeys(("region", "regions"), REGION),
}


def meant_by(key: str) -> str | None:
    """The well-known key that this one was probably meant to be; None for one that may be right.

    Shape: a name of a domain under a wrong prefix of Kubernetes' own, or one or two letters off a well-known key.
    """
    if key in _WELL_KNOWN:
        return None
    prefix, _, name = key.rpartition("/")
    if prefix in _PREFIXES and name.lower() in _NAMES:
        return _NAMES[name.lower()]
    return nearest(key, (ZONE, HOSTNAME, REGION), _SLIPS)


def intended(key: str) -> str:
    """The key that its author wants: the one meant where it is misspelt, the one of today where it is deprecated."""
    return SUCCESSORS.get(key) or meant_by(key) or key


def near(key: str, view: NodeView) -> str | None:
    """A key of nodes that this one was probably meant to be.

    Shape: today's name of a deprecated key; one with the same last part; one a letter or two off in the last part.
    """
    if SUCCESSORS.get(key) in view.keys:
        return SUCCESSORS[key]
    prefix, _, name = key.rpartition("/")
    same: list[str] = []
    beside: dict[str, str] = {}
    for known in view.keys:
        its_prefix, _, its_name = known.rpartition("/")
        if its_name.lower() == name.lower():
            same.append(known)
        elif its_prefix == prefix and min(len(name), len(its_name)) >= 4:
            beside[its_name] = known
    if same:
        return min(same, key=lambda known: (known not in ON_EVERY_NODE, known))
    meant = nearest(name, beside, _SLIPS)
    return None if meant is None else beside[meant]
