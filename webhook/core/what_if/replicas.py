"""What a fix of one pod does to all pods of its workload, in any order.

All must fit beside those that run, and made anew, since a change of the template replaces them.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.types import Pod
from webhook.core.changes.candidates import PodFix
from webhook.core.changes.change import template_with
from webhook.core.coming_pods.missing_pods import all_anew, to_come
from webhook.core.coming_pods.next_pod import PodSource
from webhook.core.context import Context
from webhook.core.placement.simulation import Effort, Outcome
from webhook.core.text import plural
from webhook.core.workloads.own_selector import selector_of
from webhook.core.workloads.workload import Workload

_EFFORT = Effort(states=5_000)  # for each fix: some tenths of a second


class Replicas(Struct, frozen=True):
    """How many pods of a workload have a node in the end: the fewest and the most over all orders."""

    wanted: int
    fewest: int
    most: int

    @property
    def text(self) -> str:
        """``all 6 replicas then fit in every order``."""
        if self.fewest == self.wanted:
            return f"all {plural(self.wanted, 'replica')} then fit in every order"
        if self.most == self.wanted:
            return f"some orders then place {self.fewest:,} of {plural(self.wanted, 'replica')}"
        fit = f"{self.fewest:,}" if self.fewest == self.most else f"{self.fewest:,} to {self.most:,}"
        return f"{fit} of {plural(self.wanted, 'replica')} then fit"


def after(fixes: Sequence[PodFix], pod: Pod, maker: Workload | None, within: Context) -> tuple[Replicas | None, ...]:
    """What each fix of a pod does to its workload; None where that is not known, and for a single pod."""
    own = None if maker is None else selector_of(maker)
    if maker is None or own is None or len(maker.templates) != 1 or (maker.replicas or 0) < 2:
        return (None,) * len(fixes)
    source = PodSource(workload=maker, template=maker.templates[0], namespace=pod.meta.namespace, own=own)
    if len(source.template.template.pod_spec.constraints) != len(pod.pod_spec.constraints):
        return (None,) * len(fixes)  # those of the pod were injected
    return tuple(_after(replace(source, template=template_with(source.template, fix.changes)), within) for fix in fixes)


def _after(source: PodSource, within: Context) -> Replicas | None:
    """The worse of two cases: pods that are missing, and all of them made anew where some run."""
    wanted, found = source.workload.replicas or 0, list[Replicas]()
    for pods in (to_come, all_anew):
        coming = pods(source, wanted, within)
        if coming.batches or coming.unknown:
            end = None if coming.unknown else coming.outcome(_EFFORT)
            if end is None or end.outcome is Outcome.UNKNOWN or end.fewest is None or end.most is None:
                return None
            found.append(Replicas(wanted, coming.staying + end.fewest, coming.staying + end.most))
    return min(found, key=lambda each: (each.most, each.fewest), default=None)
