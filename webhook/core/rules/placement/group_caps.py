"""Report domains with more pods of a SpreadGroup than its cap allows.

Domains are also reported if missing pods (Pending, or not yet created) can break the cap there.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.selectors import Selector, compile_selector
from webhook.core.api.spread_group import RESOURCE
from webhook.core.budget import Missing, Reason
from webhook.core.groups.caps import Cap
from webhook.core.groups.delivery import has_stored_plan
from webhook.core.groups.reading import Membership, memberships
from webhook.core.index.label_column import Column
from webhook.core.index.objects import Owner
from webhook.core.index.owners import owner_workload
from webhook.core.index.pods import Counts
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.placement.game_from_cluster import ClusterGame, PodBatch, game_of
from webhook.core.placement.simulation import one_order
from webhook.core.pods_to_create.missing_pods import MissingPods, missing_pods
from webhook.core.pods_to_create.next_pod import PodSource
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.rule import NO_REPLICAS, Finding, Need, NotEvaluated, Rule, RuleAnswer, Severity
from webhook.core.rules.frame.subject import Subject, noun_of
from webhook.core.scheduler.profile import DEFAULT_SCHEDULER
from webhook.core.text import listed, plural, quoted
from webhook.core.workloads.kinds import group_kind
from webhook.core.workloads.workload import Template, Workload, compiled

# Each pod is placed in several domains while others wait. A shard has at most 20 pods.
_MOST_PLACED, _MOST_DOMAINS = 64, 8
# The author of a group chooses the number of caps. Unit: placed pods, 60 µs each with 5,000 nodes. A domain costs as
# much as seven pods. Caps over nodes and three zones of a workload of 22 pods reach the limit.
_MOST_IN_LINE, _A_DOMAIN = 320, 7
_OWNER_KINDS = ("statefulsets", "deployments", "replicasets")
_MAX_OWNERS = 400  # The most workloads to read. A group has fewer shards.
_MAX_INCOMPLETE = 16  # The most workloads with missing pods. The next pod of each has to be built.
_ANY_NUMBER = 2**31 - 1  # Stands for an unknown number of pods: the largest value of spec.replicas.
_UNLABELLED = "(no label)"  # no label has this value: the nodes without the key, whose pods no constraint counts


class _Fullest(NamedTuple):
    """The most pods possible in a domain under a cap.

    Attributes:
        there: The group's pods in the domain today.
        pods: The most pods of the group in the domain, including ``of_others``.
        of_others: How many of ``pods`` are missing pods of the group's other workloads. They are placed before the
            workload's own.
        unplanned: The workloads whose template lacks the fields of the stored plan.
    """

    domain: str
    there: int
    pods: int
    of_others: int = 0
    unplanned: tuple[str, ...] = ()


class _MissingOfOther(Struct, frozen=True):
    """The missing pods of another workload.

    Attributes:
        pods: The largest possible number of missing pods.
        batches: The missing pods in batches of equal pods.
        unplanned: The workload's name if its template lacks the fields of the stored plan. Else empty.
        unknown: Why the nodes of the missing pods are unknown. None if they are known.
    """

    pods: int
    batches: tuple[PodBatch, ...] = ()
    unplanned: str = ""
    unknown: Reason | None = None


class _Limit(NamedTuple):
    """A cap of a group, and the number of pods for a cap written as a fraction."""

    cap: Cap
    of_pods: int

    @property
    def most(self) -> int:
        return self.cap.most(self.of_pods)


def evaluate(subject: Subject) -> Iterable[RuleAnswer]:
    """Evaluate the rule GROUP_CAP for each pod template selected by a SpreadGroup."""
    workload = subject.workload
    missing = subject.lacks("nodes", "pods", RESOURCE)
    if missing is not None:
        # No group applies to the workload, so nothing is missing.
        could_speak = workload.traits.replicated and workload.replicas not in NO_REPLICAS
        return (NotEvaluated(GROUP_CAP.id, missing),) if could_speak else ()
    return _of_templates(subject, subject.context.cluster)


def _of_templates(subject: Subject, index: ReadOnlyIndex) -> Iterator[RuleAnswer]:
    namespace = subject.workload.namespace
    for template in subject.workload.templates:
        found = tuple(memberships(namespace, template.pod.labels, index))
        for each in subject.while_time_is_left(found):
            yield from _of_group(each, template, subject, index)
        if found and subject.out_of_time:
            yield NotEvaluated(GROUP_CAP.id, Missing.NO_TIME.reason)
            return


def has_many_caps(workload: Workload, groups: Iterable[Iterable[Membership]], index: ReadOnlyIndex) -> bool:
    """Whether the evaluation of the groups' caps would delay other reviews.

    The estimate depends on the workload's pods and on the domains of each cap.

    Args:
        workload: The reviewed workload.
        groups: For each pod template of the workload, its memberships in SpreadGroups.
        index: The cluster.
    """
    taken = 0
    for template, selecting in zip(workload.templates, groups, strict=False):
        pods = _A_DOMAIN + min(_MOST_PLACED, 1 if template.replicas is None else template.replicas)
        taken += pods * _domains_to_try(selecting, index)
    return taken > _MOST_IN_LINE


def _domains_to_try(groups: Iterable[Membership], index: ReadOnlyIndex) -> int:
    columns = (index.nodes.view().column(cap.topology_key) for each in groups for cap in each.group.caps)
    return sum(min(_MOST_DOMAINS, max(1, len(column.values))) for column in columns)


GROUP_CAP = Rule(
    id="group-cap",
    title="a domain holds, or can get, more pods than a SpreadGroup's cap allows",
    severity=Severity.HIGH,
    mode=Mode.WARN,
    why=(
        "A [SpreadGroup](../groups.md) caps the pods of several workloads in one zone or on one node. Its plan is "
        "a set of fields with which the scheduler keeps the caps. Pods can break a cap in these cases: they are "
        "older than the plan, they lack its fields, or you scaled in.\n\n"
        "evenspread computes the most pods that a domain can get. It tries two orders: the unplaced pods of your "
        "workload alone, and after those of the other workloads. Nodes without the label count as one domain."
    ),
    evaluate=evaluate,
    needs=(Need.NODES, Need.PODS, Need.DRY_RUN),
    uses=(Need.VOLUMES, Need.WORKLOADS),
    without_constraints=True,
    highest_on_pods=Mode.WARN,
)


def _of_group(of: Membership, template: Template, subject: Subject, index: ReadOnlyIndex) -> Iterator[RuleAnswer]:
    missing = _own_missing_pods(template, subject, index) if any(each.enforced for each in of.group.caps) else None
    if isinstance(missing, Reason):
        yield NotEvaluated(GROUP_CAP.id, missing)
        missing = None
    # If it has its part of the plan, later pods of others are their own fault.
    placed_after = missing is not None and not _is_planned(of, template, subject)
    others = tuple(subject.while_time_is_left(_missing_of_others(of, subject, index))) if placed_after else ()
    for cap in of.group.caps:
        column, selector = index.nodes.view().column(cap.topology_key), _counted_by(of, cap)
        counts = index.pods.count(of.group.namespace, selector)
        # Pods without a node count too. Without its own selector, a cap is a share of the expected pods.
        counted = (
            sum(counts.values()) + index.pods.count_waiting(of.group.namespace, selector)
            if cap.selector is not None
            else 0
        )
        limit = _Limit(cap, of.group.shared_by(cap, counted))
        there = _by_domain(counts, column, index)
        broken = _fullest(there, there)
        if broken is not None and broken.pods > limit.most:
            if _has_own(broken.domain, column, subject, index):
                yield _finding(of, limit, broken, template, subject)
        elif cap.enforced and missing is not None:
            beside = others if cap.selector is None else ()  # nobody knows which of those a narrower cap will count
            domains = _CappedDomains(
                most=limit.most,
                column=column,
                there=there,
                missing=missing,
                others=beside,
                may_search=subject.context.budget.may_search,
            )
            for worst in subject.while_time_is_left(domains.filled()):
                if isinstance(worst, Reason):
                    yield NotEvaluated(GROUP_CAP.id, worst)
                elif worst.pods > limit.most:
                    yield _finding(of, limit, worst, template, subject)
                else:
                    continue
                break


def _is_planned(of: Membership, template: Template, subject: Subject) -> bool:
    return has_stored_plan(of, template.pod, (subject.workload.kind, subject.workload.meta.name))


def _counted_by(of: Membership, cap: Cap) -> Selector:
    if cap.selector is None:
        return of.selector
    return of.selector.joined(compile_selector(cap.selector).requirements)


def _by_domain(counts: Counts, column: Column, index: ReadOnlyIndex) -> Mapping[str, int]:
    """Count the pods by domain. Nodes without the key form a domain of their own. Deleted nodes do not count."""
    found, live = Counter[str](), index.nodes.view().live
    for slot, pods in counts.items():
        if slot < len(column.domain_of) and live >> slot & 1:
            number = column.domain_of[slot]
            found[column.values[number] if number >= 0 else _UNLABELLED] += pods
    return found


def _fullest(pods: Mapping[str, int], there: Mapping[str, int]) -> _Fullest | None:
    if not pods:
        return None
    domain = min(pods, key=lambda name: (-pods[name], name))
    return _Fullest(domain, there.get(domain, 0), pods[domain])


class _CappedDomains(Struct, frozen=True, kw_only=True):
    """The domains of a cap, and the counted missing pods.

    Attributes:
        most: The most pods of the group in a domain.
        column: The domain of each node.
        there: The group's pods in each domain.
        missing: The workload's missing pods.
        others: The missing pods of the group's other workloads.
        may_search: Whether a slow simulation is allowed. It would delay other reviews.
    """

    most: int
    column: Column
    there: Mapping[str, int]
    missing: MissingPods
    others: Sequence[_MissingOfOther]
    may_search: bool

    def filled(self) -> Iterator[_Fullest | Reason]:
        """Yield the most pods possible in each of the fullest domains.

        First, place only the workload's own missing pods in each domain. Then, if the missing pods of all workloads can
        exceed the cap, place the missing pods of ``others`` first. Yield a reason for an unknown number.
        """
        names = sorted(self.column.values, key=lambda each: (-self.there.get(each, 0), each))[:_MOST_DOMAINS]
        unlabelled = self.missing.index.nodes.view().live & ~self.column.present
        names += [_UNLABELLED] if unlabelled else []
        nodes = {name: unlabelled if name == _UNLABELLED else self.column.with_value(name) for name in names}
        for name in names:
            game, held = self._game_in(nodes[name]), self.there.get(name, 0)
            yield Missing.NEEDS_SEARCH.reason if game is None else _Fullest(name, held, held + len(one_order(game)))
        together = sum(each.pods for each in self.missing.batches) + sum(each.pods for each in self.others)
        doubts = list[Reason]()
        for name in names if self.others else ():
            if self.there.get(name, 0) + together > self.most:
                for each in self._after_others(name, nodes[name]):
                    if isinstance(each, Reason):
                        doubts.append(each)
                    else:
                        yield each
        yield from doubts[:1]  # what is known goes before

    def _after_others(self, name: str, nodes: int) -> Iterator[_Fullest | Reason]:
        """Yield the most pods of a domain if other workloads' missing pods come first.

        The other workloads' pods are placed until the domain has ``most`` pods. Then the workload's own missing pods
        are placed. Yield a reason if the number is unknown.
        """
        held = self.there.get(name, 0)
        room, own_batches = self.most - held, self.missing.batches
        before = min(room, sum(one.pods for each in self.others for one in each.batches))
        if before > _MOST_PLACED:
            yield Reason(f"unknown: {before} unplaced pods of other workloads are too many to place one by one")
        elif game := self._game_in(nodes, _following(own_batches, self.others)):
            before, own = _place_others_first(game, len(own_batches), room)
            unplanned = tuple(sorted(each.unplanned for each in self.others if each.unplanned))
            yield _Fullest(name, held, held + before + own if own else held, before, unplanned)
            unknown = next((each.unknown for each in self.others if each.unknown), None)
            if own and unknown and held + before + own <= self.most:
                yield unknown
        else:
            yield Missing.NEEDS_SEARCH.reason

    def _game_in(self, nodes: int, others: Sequence[PodBatch] = ()) -> ClusterGame | None:
        """Return the simulation of the missing pods, and of ``others``, on only the given nodes.

        None if building it would delay other reviews.
        """
        batches = (*self.missing.batches, *others)
        inside = [replace(each, nodes=nodes if each.nodes is None else each.nodes & nodes) for each in batches]
        game = game_of(inside, self.missing.index)
        return game if self.may_search or not game.is_slow else None


def _place_others_first(of: ClusterGame, own: int, room: int) -> tuple[int, int]:
    """Place up to ``room`` pods of the other workloads, then this workload's pods.

    Pod classes below ``own`` belong to this workload. Return the numbers of placed pods, the other workloads' first.
    """
    game, state, placed = of.game, of.game.start, [0, 0]
    for number, most in ((0, room), (1, _MOST_PLACED)):
        while placed[number] < most:
            move = next((each for each in game.moves(state) if (each.pod_class < own) == bool(number)), None)
            if move is None:
                break
            state = game.after(state, move)
            placed[number] += 1
    return placed[0], placed[1]


def _following(own: Sequence[PodBatch], others: Sequence[_MissingOfOther]) -> list[PodBatch]:
    found = list[PodBatch]()
    for each in others:
        first = len(own) + len(found)
        found += [replace(one, behind=None if one.behind is None else one.behind + first) for one in each.batches]
    return found


def _has_own(domain: str, column: Column, subject: Subject, index: ReadOnlyIndex) -> bool:
    """Whether the domain has pods of the workload. True if this is unknown."""
    own = subject.own_selector
    if own is None:
        return True
    return domain in _by_domain(index.pods.count(subject.workload.namespace, own), column, index)


def _own_missing_pods(template: Template, subject: Subject, index: ReadOnlyIndex) -> MissingPods | Reason | None:
    """Return the workload's missing pods. None if no pod is missing, a reason if unknown."""
    workload = subject.workload
    spec = template.pod.pod_spec
    foreign = (spec.scheduler_name or DEFAULT_SCHEDULER) not in subject.policy.scheduler_names
    if workload.traits.on_every_node or foreign or spec.node_name or not subject.workload.whole:
        return None
    own, namespace = None if workload.is_pod else subject.own_selector, workload.namespace
    source = PodSource(workload=workload, template=template, namespace=namespace, own=own, applied=True)
    replicas = 1 if template.replicas is None else template.replicas
    found = missing_pods(source, replicas, subject.context.with_index(index))
    if found.unknown or not found.batches:
        return Reason(f"unknown: {found.unknown}") if found.unknown else None
    pods = sum(each.pods for each in found.batches)
    if pods > _MOST_PLACED:
        return Reason(f"unknown: {plural(pods, 'unplaced pod')} are too many to place one by one")
    return found


def _finding(of: Membership, limit: _Limit, full: _Fullest, template: Template, subject: Subject) -> Finding:
    group, cap, most = of.group, limit.cap, limit.most
    named = subject.policy.messages.name_domains(cap.topology_key)
    noun = noun_of(cap.topology_key)
    broken = full.there == full.pods
    domain, limit_text = f"{noun} {quoted(full.domain, 40)}" if named else f"one {noun}", f"but the cap is {most}"
    if full.domain == _UNLABELLED:
        domain, limit_text = f"nodes without the label {noun}", f"and the cap of {most} counts none of them"
    has = "have" if full.domain == _UNLABELLED else "has"
    held = f"{domain} {has if broken else 'can get'} {plural(full.pods, 'pod')}"
    excess = full.pods - most
    remedy = "apply the plan to the other workloads" if _is_planned(of, template, subject) else "apply its plan"
    too = f", also to {listed([quoted(each, 40) for each in full.unplanned], 3)}" if full.unplanned else ""
    take = f"{remedy}{too}: kubectl evenspread plan -n {group.namespace} --group {group.name} -o patch"
    again = f"then delete {excess} of the pods there, because Kubernetes never moves a running pod"
    counted = "" if cap.selector is None else " that the cap selects"
    of_others = f" and {plural(full.of_others, 'unplaced pod')} of other workloads" if full.of_others else ""
    return Finding(
        rule=GROUP_CAP.id,
        path=f"{template.path}spec.topologySpreadConstraints",
        summary=f"SpreadGroup {quoted(group.name, 32)}: {held}, {limit_text}",
        remedy=f"move {excess} of them" if broken else remedy,
        detail=(
            f"the cap of SpreadGroup {group.name} is {cap.text} of {plural(limit.of_pods, 'pod')} per {noun}, so {most}"
            f"; {held}{counted}, including pods of other workloads in the group{of_others}"
        ),
        fix=f"{take}, {again}" if broken else take,
        key=f"{template.path} {group.name} {cap.topology_key} {cap.text}",
        warns=None if cap.enforced else False,
    )


def _missing_of_others(of: Membership, subject: Subject, index: ReadOnlyIndex) -> Iterator[_MissingOfOther]:
    """Yield the missing pods of the group's other workloads.

    Yield nothing for a pod, because its own controller is one of the group's workloads.
    """
    workload, found = subject.workload, 0
    if workload.is_pod:
        return
    if missing := index.lacks(*_OWNER_KINDS):
        yield _MissingOfOther(_ANY_NUMBER, unknown=Reason(missing))
    mine, namespace = (*workload.group_kind, workload.meta.name), workload.namespace
    for owner in index.owners.matching(namespace, of.selector, _MAX_OWNERS):
        # The operator of a custom resource creates workloads for its pods, and these are here too.
        if owner.spec and (*group_kind(owner.api_version, owner.kind), owner.meta.name) != mine:
            pods = _missing_count(owner, namespace, index)
            found += pods > 0
            if found > _MAX_INCOMPLETE:
                yield _MissingOfOther(
                    _ANY_NUMBER,
                    unknown=Reason(f"unknown: more than {_MAX_INCOMPLETE} workloads of the group lack pods"),
                )
                return
            if pods:
                yield from _missing_of(owner, pods, of, subject, index)


def _missing_count(owner: Owner, namespace: str, index: ReadOnlyIndex) -> int:
    own = compiled(owner.selector)
    return owner.wanted if own is None else max(0, owner.wanted - sum(index.pods.count(namespace, own).values()))


def _missing_of(
    owner: Owner, pods: int, of: Membership, subject: Subject, index: ReadOnlyIndex
) -> Iterator[_MissingOfOther]:
    read = owner_workload(owner)
    for workload, template in [(read, each) for each in read.templates] if read is not None else []:
        if (template.pod.pod_spec.scheduler_name or DEFAULT_SCHEDULER) not in subject.policy.scheduler_names:
            yield _MissingOfOther(pods, unknown=Reason("unknown: another scheduler places pods of the group"))
            continue
        own, namespace = compiled(owner.selector), workload.namespace
        source = PodSource(workload=workload, template=template, namespace=namespace, own=own, applied=True)
        found = missing_pods(source, template.replicas or 0, subject.context.with_index(index))
        why = Reason(f"unknown: for another workload of the group, {found.unknown}") if found.unknown else None
        planned = has_stored_plan(of, template.pod, (owner.kind, owner.meta.name))
        yield _MissingOfOther(pods, found.batches, "" if planned else owner.meta.name, why)
