"""Rules about topologyKey, as far as they need no node."""

from collections.abc import Iterator

from webhook.core.model import HOSTNAME, REGION, ZONE
from webhook.core.policy import Mode
from webhook.core.rules.finding import Answer, Finding, Placed, Rule, Severity, Subject, guarded, one_line

TYPO = Rule(
    id="topology-key-typo",
    title="the topology key looks like a well-known one, misspelt",
    severity=Severity.HIGH,
    mode=Mode.WARN,
    why=(
        "Kubernetes accepts any text as a topology key. If no node has the label, a hard constraint leaves every pod "
        "Pending and a soft one does nothing."
    ),
    silent=(
        "for keys outside the label prefixes that Kubernetes reserves for itself (`zone` and `example.com/zone` may "
        "well be yours), where a node has the label, and for keys that `domains` of the configuration names."
    ),
)
DEPRECATED = Rule(
    id="topology-key-deprecated",
    title="the topology key is deprecated",
    severity=Severity.LOW,
    mode=Mode.WARN,
    why=(
        "The beta names of node labels are kept on nodes by some providers only. Where they are gone, a hard "
        "constraint leaves every pod Pending."
    ),
    silent=(
        "for built-in kinds in admission, where kube-apiserver itself warns of them; and where nodes are known and "
        "none has the key: then `topology-key-unknown` says so."
    ),
)

SUCCESSORS = {
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "failure-domain.beta.kubernetes.io/region": REGION,
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
}
_WELL_KNOWN = frozenset(
    {HOSTNAME, ZONE, REGION, "kubernetes.io/arch", "kubernetes.io/os", "node.kubernetes.io/instance-type", *SUCCESSORS}
)
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


def evaluate(subject: Subject) -> Iterator[Answer]:
    """What the two rules say of each constraint."""
    for placed in subject.placed:
        key = placed.constraint.topology_key
        if not key or key in {ZONE, HOSTNAME}:
            continue
        if key in SUCCESSORS:
            if (subject.offline or not subject.workload.built_in) and _exists(key, subject) is not False:
                yield from guarded((DEPRECATED,), _deprecated, placed, key)
        elif (meant := meant_by(key)) is not None and not (exists := _exists(key, subject)):
            yield from guarded((TYPO,), _typo, placed, key, meant, has_nodes=exists is False)


def _deprecated(placed: Placed, key: str) -> Iterator[Finding]:
    successor = SUCCESSORS[key]
    yield Finding(
        rule=DEPRECATED.id,
        path=f"{placed.path}.topologyKey",
        summary=f"{placed.name}: {key} is deprecated",
        remedy=f"use {successor}",
        detail=f"{key} is deprecated, and missing from nodes of current clusters",
        fix=f"topologyKey: {successor}",
        key=placed.key,
    )


def _typo(placed: Placed, key: str, meant: str, *, has_nodes: bool) -> Iterator[Finding]:
    said = one_line(key)
    yield Finding(
        rule=TYPO.id,
        path=f"{placed.path}.topologyKey",
        summary=f"no node has {said}" if has_nodes else f"{said} is no label of Kubernetes",
        remedy=f"use {meant}",
        headline=f"{placed.name}: no node has {said}; use {meant}" if has_nodes else "",
        detail=f"Kubernetes sets {meant} on nodes, not {said}: "
        + ("every pod stays Pending" if placed.constraint.hard else "the constraint does nothing"),
        fix=f"topologyKey: {meant}",
        key=placed.key,
    )


def _exists(key: str, subject: Subject) -> bool | None:
    """Whether a node has the key, or the configuration names domains of it; None where no nodes are known."""
    if key in subject.policy.domains:
        return True
    return None if subject.index is None or subject.lacks("nodes") else key in subject.index.view().keys


def meant_by(key: str) -> str | None:
    """The well-known key that this one was probably meant to be; None for one that may be right.

    Shape: a name of a domain under a wrong prefix of Kubernetes' own, or one or two letters off a well-known key.
    """
    if key in _WELL_KNOWN:
        return None
    prefix, _, name = key.rpartition("/")
    if prefix in _PREFIXES and name.lower() in _NAMES:
        return _NAMES[name.lower()]
    for known in (ZONE, HOSTNAME, REGION):
        if abs(len(key) - len(known)) <= 2 and edits(key, known) <= 2:
            return known
    return None


def intended(key: str) -> str:
    """The key that its author wants: the one meant where it is misspelt, the one of today where it is deprecated."""
    return SUCCESSORS.get(key) or meant_by(key) or key


def edits(one: str, other: str) -> int:
    """Letters to insert, remove, replace or swap with their neighbour to get from one text to the other."""
    above: list[int] = []
    row = list(range(len(other) + 1))
    for i, left in enumerate(one, start=1):
        above, row, before = row, [i], above
        for j, right in enumerate(other, start=1):
            cost = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (left != right))
            if i > 1 and j > 1 and left == other[j - 2] and one[i - 2] == right:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
    return row[-1]
