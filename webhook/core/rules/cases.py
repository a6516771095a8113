"""One pod template with its hard constraints and its places in the cluster, and how messages speak of domains.

What rules about places have in common: whom they ask about, how many pods there are to be, and that where capacity
grows nothing is more than a note.
"""

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property

from msgspec import Struct

from webhook.core.capacity import grows
from webhook.core.claims import Missing, missing_pods
from webhook.core.created import as_created
from webhook.core.fitting import fits, present
from webhook.core.index import ClusterIndex
from webhook.core.kinds import Template, Workload
from webhook.core.model import HOSTNAME, ObjectMeta, Pod, SpreadConstraint
from webhook.core.places import Hard, Places, Tally, Terrain, survey, tallies, terrain
from webhook.core.policy import Mode
from webhook.core.rules.added import REVISION_LABELS, may_be_added
from webhook.core.rules.distribution import NO_REPLICAS, NOT_REPLICATED
from webhook.core.rules.finding import Placed, Subject, one_line
from webhook.core.rules.neighbours import own_selector
from webhook.core.workload import namespace_of


class Case(Struct, frozen=True, kw_only=True, dict=True):
    """One template to ask about.

    Shape: ``placed`` are its hard constraints, in the order of ``places.hard``. ``most`` is the autoscaler's maximum,
    ``wanted`` where there is none. ``grows`` is whether nodes may be added. ``missing`` are the pods of a StatefulSet
    with volumes that do not run yet.
    Unit: ``wanted`` and ``most`` are pods.
    """

    subject: Subject
    placed: tuple[Placed, ...]
    places: Places
    terrain: Terrain
    tallies: tuple[Tally, ...]
    wanted: int
    most: int
    grows: bool
    missing: Missing | None = None

    @cached_property
    def _present(self) -> Terrain | None:
        return present(self.places)

    def fits(self, hard: Sequence[Hard], replicas: int, *, lost: int = 0) -> bool:
        """Whether so many pods are placed in every order under these constraints; see `core.fitting`."""
        return fits(self.places, self._present, hard, replicas, lost=lost)

    @property
    def at_most(self) -> Mode:
        """Where nodes are added, what does not fit today may fit tomorrow."""
        return Mode.AUDIT if self.grows else Mode.DENY

    def fit(self, admitted: int) -> str:
        """How many fit, as messages begin."""
        if admitted < self.wanted:
            return f"at most {admitted} of {self.wanted} fit"
        return f"at most {admitted} pods fit"

    def target(self, admitted: int) -> int:
        """How many pods a fix has to make room for."""
        return self.wanted if admitted < self.wanted else max(self.most, admitted + 1)


def is_replicated(workload: Workload) -> bool:
    """Whether the object asks for several pods at a time."""
    return workload.kind not in NOT_REPLICATED and workload.replicas not in NO_REPLICAS and not workload.suspended


def cases(subject: Subject, index: ClusterIndex) -> Iterator[Case]:
    """The templates of a workload that declare a hard constraint."""
    for template in subject.workload.templates:
        placed = tuple(each for each in subject.placed if each.template is template and each.constraint.hard)
        wanted = _wanted(template, subject.workload, index)
        if not placed or wanted is None or not all(map(_is_valid, placed)):
            continue
        places = _places(template, placed, subject, index)
        if places is None:
            continue
        here = terrain(places)
        yield Case(
            subject=subject,
            placed=placed,
            places=places,
            terrain=here,
            tallies=tallies(places.hard, here, places.problem),
            wanted=wanted,
            most=max(wanted, _scaled_to(subject.workload, index)),
            grows=grows(subject.policy, places.problem.nodes),
            missing=_missing(subject.workload, wanted, index),
        )


def _is_valid(placed: Placed) -> bool:
    constraint = placed.constraint
    return (constraint.max_skew or 0) > 0 and bool(constraint.topology_key)


def _wanted(template: Template, workload: Workload, index: ClusterIndex) -> int | None:
    if template.replicas is not None:
        return template.replicas
    known = index.owner(workload.api_version, workload.kind, namespace_of(workload), workload.meta.name)
    return known.replicas if known is not None and len(workload.templates) == 1 else None


def _missing(workload: Workload, wanted: int, index: ClusterIndex) -> Missing | None:
    if workload.claims is None:
        return None
    return missing_pods(index, namespace_of(workload), workload.meta.name, workload.claims, wanted)


def _scaled_to(workload: Workload, index: ClusterIndex) -> int:
    scaler = index.autoscaler(workload.api_version, workload.kind, namespace_of(workload), workload.meta.name)
    return 0 if scaler is None else scaler.spec.max_replicas


def _places(template: Template, placed: tuple[Placed, ...], subject: Subject, index: ClusterIndex) -> Places | None:
    """Everything that the cluster says of this template; None where a selector cannot be read."""
    workload, labels = subject.workload, template.template.labels
    meta = ObjectMeta(name=workload.meta.name, namespace=namespace_of(workload), labels=labels)
    keys = {key for each in placed for key in _keys(each.constraint)}
    late = {key: key in REVISION_LABELS for key in keys if may_be_added(workload, key, in_template=key in labels)}
    pod = as_created(Pod(metadata=meta, spec=template.template.spec), subject.version)
    places = survey(index, pod, own_selector(workload), now=index.taken_at or subject.now, late=late)
    return None if places.problem.hard.error else places


def _keys(constraint: SpreadConstraint) -> Iterator[str]:
    """The labels on which the constraint's count depends."""
    selector = constraint.selector
    yield from constraint.match_label_keys or ()
    if selector is not None:
        yield from selector.match_labels or ()
        yield from (each.key for each in selector.match_expressions or ())


def noun(tally: Tally, many: int = 1) -> str:
    """What messages call domains of the key: zone, hosts, racks."""
    name = one_line(tally.column.key.rpartition("/")[2], 40)
    return f"{'host' if name == 'hostname' else name}{'' if many == 1 else 's'}"


def staying(case: Case, tally: Tally, domains: Collection[int], kind: str = "") -> str:
    """``tainted zone c stays at 0``: domains that hold the others down.

    Shape: names of hosts are told only with ``messages.detail: full``, names of other domains not with ``minimal``.
    """
    detail, many = case.subject.policy.messages.detail, len(domains)
    word = f"{kind} {noun(tally, many)}".strip()
    level = min((tally.count(number) for number in domains), default=0)
    if many == 1 and (detail == "full" or (detail != "minimal" and tally.column.key != HOSTNAME)):
        (number,) = domains
        return f"{word} {one_line(tally.column.values[number], 40)} stays at {level}"
    return f"{many} {word} {'stays' if many == 1 else 'stay'} at {level}"


def softened(case: Case, placed: Placed) -> tuple[str, str]:
    """How to make a constraint soft: in a few words, and as what to write. A soft twin of it is there: out with it."""
    constraint, short = placed.constraint, placed.name.partition("[")[0]
    keys = [each.constraint.topology_key for each in case.subject.placed if each.template is placed.template]
    if keys.count(constraint.topology_key) > 1:
        return f"remove {placed.name}", "remove the constraint"
    without = "" if constraint.min_domains is None else ", without minDomains"
    return f"make {short} ScheduleAnyway", f"whenUnsatisfiable: ScheduleAnyway{without}"
