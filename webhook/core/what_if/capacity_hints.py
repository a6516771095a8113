"""What would make room for pods that may not all fit: nodes that are added, or pods of lower priority that go."""

from msgspec import Struct

from webhook.core.changes.candidates import at_most
from webhook.core.context import Context
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.placement.making_room import Added, nodes_to_add, preempted
from webhook.core.placement.simulation import Effort, Outcome
from webhook.core.text import one_line, plural, segment_of, together
from webhook.core.what_if.play import Outcomes, all_fit, batches_of, trials_in
from webhook.core.what_if.workloads import rebuilt

_EFFORT = Effort(states=2_000)  # for each number of nodes that is tried
_TRIALS = 200
_NAME = 40


class Room(Struct, frozen=True):
    """The nodes to add so that all pods fit, and the number of pods of lower priority to evict; None if not known."""

    added: tuple[Added, ...] = ()
    preempts: int | None = None


def room(of: Outcomes, within: Context) -> Room:
    """What makes room for all workloads together."""
    if of.alone or of.simulation is None or of.whole.outcome not in (Outcome.NO_FIT, Outcome.STUCK):
        return Room()

    def fits(other: ReadOnlyIndex) -> bool:
        return all_fit([rebuilt(each, within.beside(other)) for each in of.workloads], other, _EFFORT)

    batches = batches_of(of.workloads)
    rolling = any(each.rollout is not None for each in of.workloads)
    return Room(
        added=nodes_to_add(
            batches, within.cluster, at_most(trials_in(_TRIALS, within.cluster), fits), within.policy.domains
        ),
        preempts=None if rolling else preempted(batches, within.cluster, of.simulation, _EFFORT),
    )


def told(of: Room, *, grows: bool) -> list[str]:
    """A sentence for each: ``add 2 empty nodes like worker-a1 in zone a``. ``grows``: nodes can be added."""
    found = [f"add {together(map(_told, of.added))}"] if of.added else []
    if found and grows:
        found[0] += "; nodes can be added here, so that the cause is capacity"
    if of.preempts is not None:
        found.append(f"preempt {plural(of.preempts, 'pod')} of lower priority, which the scheduler does by itself")
    return found


def _told(of: Added) -> str:
    where = [f"{segment_of(key)} {one_line(value, _NAME)}" for key, value in of.labels.items()]
    return (
        f"{plural(of.nodes, 'empty node')} like {one_line(of.like, _NAME)}{f' in {together(where)}' if where else ''}"
    )
