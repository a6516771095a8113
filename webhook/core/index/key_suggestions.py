"""Guess the intended key of a misspelt topology key: a well-known key, or a label key of the nodes."""

from webhook.core.api.well_known import ARCH, HOSTNAME, INSTANCE_TYPE, OS, REGION, SUCCESSORS, ZONE
from webhook.core.index.nodes import NodeView
from webhook.core.spelling import nearest

_SLIPS = 2  # wrong letters; ``host`` and ``zone`` differ by three, so with three a correct key would look misspelt
# Clusters in one location lack these labels, but also run manifests written for larger clusters.
PLACES = frozenset({ZONE, REGION})
ON_EVERY_NODE = PLACES | {HOSTNAME}
WELL_KNOWN = frozenset({HOSTNAME, ZONE, REGION, ARCH, OS, INSTANCE_TYPE, *SUCCESSORS})
# Common wrong prefixes and names of the three labels. No combination is a label of Kubernetes.
WRONG_PREFIXES = frozenset(
    {
        *("kubernetes.io", "topology.kubernetes.io", "node.kubernetes.io", "beta.kubernetes.io"),
        *("failure-domain.kubernetes.io", "failure-domain.beta.kubernetes.io", "topology.beta.kubernetes.io"),
        *("k8s.io", "topology.k8s.io", "node.k8s.io", "hostname.kubernetes.io", "zone.kubernetes.io"),
    }
)
MEANT_BY_NAME = {
    **dict.fromkeys(("hostname", "host-name", "host", "hostnames", "node", "node-name", "nodename"), HOSTNAME),
    **dict.fromkeys(("zone", "zones", "availability-zone", "az"), ZONE),
    **dict.fromkeys(("region", "regions"), REGION),
}
_BY_LAST_PART = {key.rpartition("/")[2]: key for key in ON_EVERY_NODE}


def meant_by(key: str) -> str | None:
    """Guess the intended well-known key, if the prefix or up to two letters are wrong. Otherwise None."""
    if key in WELL_KNOWN:
        return None
    prefix, _, name = key.rpartition("/")
    if prefix in WRONG_PREFIXES and name.lower() in MEANT_BY_NAME:
        return MEANT_BY_NAME[name.lower()]
    return nearest(key, (ZONE, HOSTNAME, REGION), _SLIPS)


def meant_by_bare(key: str) -> str | None:
    """Return the well-known label key for a bare name, such as ``zone`` or ``az``.

    None if the name is unknown. Nodes of the cluster can still have a label with such a name.
    """
    return MEANT_BY_NAME.get(key.lower())


def intended(key: str) -> str:
    """The intended key: the current name of a deprecated key, the correct spelling of a misspelt key."""
    return SUCCESSORS.get(key) or meant_by(key) or key


def namesake(key: str) -> str | None:
    """The zone, region or hostname key with the same last part, as for ``example.com/zone``."""
    return _BY_LAST_PART.get(key.rpartition("/")[2].lower())


def closest_node_key(key: str, view: NodeView, *, well_known: bool = False) -> str | None:
    """Find the node label key closest to this one.

    First the current name of a deprecated key, then a key with the same last part. Then a key with the same prefix and
    up to two different letters in the last part.

    Args:
        key: The unknown key.
        view: The nodes.
        well_known: Whether to suggest only Kubernetes' own keys.
    """
    if SUCCESSORS.get(key) in view.keys:
        return SUCCESSORS[key]
    if (place := namesake(key)) in view.keys:
        return place
    prefix, _, name = key.rpartition("/")
    same: list[str] = []
    beside: dict[str, str] = {}
    for known in view.keys & WELL_KNOWN if well_known else view.keys:
        its_prefix, _, its_name = known.rpartition("/")
        if its_name.lower() == name.lower():
            same.append(known)
        elif its_prefix == prefix and min(len(name), len(its_name)) >= 4:
            beside[its_name] = known
    if same:
        return min(same)
    meant = nearest(name, beside, _SLIPS)
    return None if meant is None else beside[meant]
