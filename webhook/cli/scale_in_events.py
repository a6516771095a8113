"""Read the events of past scale-ins. They only add a cause to an answer, so a failure to read them is no error."""

from collections.abc import Sequence

import msgspec

from webhook.cli.cluster_source import ClusterSource
from webhook.cluster.errors import ClusterError
from webhook.cluster.listing import list_events
from webhook.core.decoders import decoder_of
from webhook.core.explain.explanation import Balance
from webhook.core.pods_to_remove.past_scale_ins import (
    DELETED,
    PLACED,
    SCALED,
    STOPPED,
    Event,
    PastScaleIn,
    is_above_max_skew,
    scale_downs,
    scale_in_causes,
)
from webhook.core.workloads.kinds import DEPLOYMENT
from webhook.core.workloads.workload import Workload

_MOST_EVENTS = 2000  # of a reason in a namespace: a megabyte or two. With more, the cause is unknown.
_EVENT = decoder_of(Event)


class ScaleInEvents:
    """The events of a live cluster, read once per namespace and reason, and only if a constraint is above maxSkew."""

    def __init__(self, known: ClusterSource) -> None:
        self._known = known
        self._events: dict[tuple[str, str], Sequence[Event]] = {}

    def causes(
        self, workload: Workload | None, namespace: str, balances: Sequence[Balance]
    ) -> Sequence[PastScaleIn | None]:
        """Return the cause of each skew above maxSkew. None if unknown, or within maxSkew."""
        constraints = [balance.domains for balance in balances]
        if workload is not None and workload.group_kind == DEPLOYMENT and any(map(is_above_max_skew, constraints)):
            try:
                events = self._of(namespace, SCALED)
                if scale_downs(events, workload.meta.name):
                    for reason in (DELETED, STOPPED, PLACED):
                        events = [*events, *self._of(namespace, reason)]
                    return scale_in_causes(constraints, workload, namespace, events, self._known.index)
            except (ClusterError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                pass  # for example without the permission to list events
        return [None] * len(constraints)

    def _of(self, namespace: str, reason: str) -> Sequence[Event]:
        if self._known.server is None:
            return ()
        if (namespace, reason) not in self._events:
            raw = list_events(self._known.server, namespace, reason, _MOST_EVENTS)
            self._events[namespace, reason] = [_EVENT.decode(event) for event in raw]
        return self._events[namespace, reason]
