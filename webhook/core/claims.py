"""Where the pods of a StatefulSet that do not run yet have to go: their volumes may be there already."""

from collections.abc import Mapping

from msgspec import Struct

from webhook.core.index import ClusterIndex
from webhook.core.kinds import ClaimTemplates
from webhook.core.volumes import reachable_from

# Of more pods nothing is said: each is looked for.
_MOST = 256


class Missing(Struct, frozen=True):
    """Pods that do not run yet.

    Shape: ``pinned`` maps a set of nodes to how many pods have all their volumes there; ``free`` have none.
    """

    pinned: Mapping[int, int]
    free: int


def missing_pods(
    index: ClusterIndex, namespace: str, name: str, claims: ClaimTemplates, replicas: int
) -> Missing | None:
    """The pods of a StatefulSet that have no node; None for more than are worth looking for.

    Shape: a claim that is not there, or not bound, lets its pod go anywhere.
    """
    if replicas > _MOST:
        return None
    view = index.view()
    reached: dict[str, int] = {}
    pinned: dict[int, int] = {}
    free = 0
    for ordinal in range(claims.first, claims.first + replicas):
        pod = f"{name}-{ordinal}"
        if index.pod_table.record(namespace, pod) is not None:
            continue
        nodes = view.live
        for each in claims.names:
            claim = index.claim(namespace, f"{each}-{pod}")
            volume = index.volume(claim.spec.volume_name or "") if claim is not None and claim.bound else None
            if volume is not None:
                key = volume.meta.name
                nodes &= reached.setdefault(key, reachable_from(volume, view))
        if nodes == view.live:
            free += 1
        else:
            pinned[nodes] = pinned.get(nodes, 0) + 1
    return Missing(pinned, free)
