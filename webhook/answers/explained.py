"""The answer of ``evenspread explain``, and its document: why a pod has no node."""

from collections.abc import Mapping, Sequence
from itertools import starmap, zip_longest

from msgspec import UNSET, Struct, UnsetType

from webhook.answers.document import Document, Range, with_fields_of
from webhook.core.api.types import Toleration
from webhook.core.changes.candidates import PodFix
from webhook.core.explain.cause_text import not_evaluated_lines, relief_text
from webhook.core.explain.edit_target import EditTarget, json_patch, patch_command
from webhook.core.explain.explanation import Balance, Explanation
from webhook.core.index import node_sets
from webhook.core.pods_to_remove.past_scale_ins import PastScaleIn
from webhook.core.scheduler.plugins.status import OK
from webhook.core.scheduler.verdict import Cause, Verdict
from webhook.core.text import one_line
from webhook.core.what_if.pods_to_explain import PodToExplain
from webhook.core.what_if.refused import Refused
from webhook.core.what_if.suggestions import PlacedReplicas


class AnsweredQuestion(Struct, frozen=True):
    """A pod to explain, and its explanation.

    Attributes:
        missing: A line for each cluster resource that could not be read.
        options: The kubectl options that select the live cluster. Printed commands contain them.
        replicas: For each fix, how many pods of the workload then fit. An entry is None if unknown. Empty if not
            computed.
        causes: For each constraint, the cause of a skew above maxSkew. None if unknown, or within maxSkew.
    """

    question: PodToExplain
    explanation: Explanation
    missing: tuple[str, ...] = ()
    options: str = ""
    replicas: tuple[PlacedReplicas | None, ...] = ()
    causes: Sequence[PastScaleIn | None] = ()

    @property
    def not_evaluated(self) -> tuple[str, ...]:
        """A line for each fact that could change the explanation, but is not evaluated."""
        to_come = () if self.question.exists else (*self.question.unknown, "AdmissionPlugins")
        lines = not_evaluated_lines(self.explanation.not_evaluated, to_come)
        return (*lines, *map(one_line, self.missing))

    def patch(self, fix: PodFix) -> tuple[Mapping[str, object], ...] | None:
        """Return the fix as a JSON patch of the object to edit. None without such an object."""
        target = self.question.target
        operations = None if target is None else json_patch(fix, target, self.question.pod)
        return None if operations is None else tuple(operations)

    def command(self, fix: PodFix) -> str | None:
        """Return the patch as a kubectl command to copy."""
        target, operations = self.question.target, self.patch(fix)
        return None if target is None or operations is None else patch_command(operations, target, self.options)


class _RejectingNode(Document, frozen=True):
    """kube-scheduler's status of one node."""

    code: str
    plugin: str
    reasons: tuple[str, ...]


class _ConstraintState(Document, frozen=True):
    """A spread constraint with its counted pods by domain.

    Attributes:
        meant: The label key probably meant, if no node has the topologyKey.
        foreign: The number of counted pods of other workloads.
        left_by_scale_in: Why it is above maxSkew. Absent if no event proves it.
    """

    topology_key: str
    when_unsatisfiable: str | None
    max_skew: int
    min_domains: int | None
    domains: Mapping[str, int]
    global_minimum: int
    name: str
    meant: str | None
    counted: int
    foreign: int | None
    left_by_scale_in: PastScaleIn | UnsetType = UNSET


class _PodName(Document, frozen=True):
    """The pod: an existing pod, or the next pod of its workload."""

    namespace: str
    name: str
    exists: bool


class _Detail(Document, frozen=True):
    """An obstacle, and the nodes it rules out."""

    plugin: str
    text: str
    nodes: tuple[str, ...]


class _OpenWay(Document, frozen=True):
    """Requirements of a pod (``without``), and the nodes that admit the pod if all of them are dropped (``nodes``)."""

    without: tuple[str, ...]
    nodes: tuple[str, ...]


class _FieldChange(Document, frozen=True):
    """A field and its new value. None removes the field."""

    path: str
    value: object


class _ReplicaRange(Range, frozen=True):
    """How many of the wanted replicas get a node with the fix."""

    wanted: int


class _ConstraintFix(Document, frozen=True):
    """A change of the pod's constraints, after which at least one node admits the pod."""

    text: str
    nodes: tuple[str, ...]
    changes: tuple[_FieldChange, ...]
    fits: _ReplicaRange | None
    patch: tuple[Mapping[str, object], ...] | None
    command: str | None


class _ClusterRelief(Document, frozen=True):
    """A change of the cluster, or a toleration, that lets a node admit the pod."""

    what: str
    text: str
    nodes: tuple[str, ...]
    tolerations: tuple[Toleration, ...]


class _EditedObject(Document, frozen=True):
    """The object to edit. ``path`` is None if its constraints cannot be changed."""

    api_version: str
    kind: str
    namespace: str
    name: str
    path: str | None
    note: str


class Explained(Document, frozen=True, kw_only=True):
    """Why a pod has no node. With ``--pending``, ``pods`` are all pods with the same cause."""

    pods: tuple[str, ...] | UnsetType = UNSET
    refused: tuple[Refused, ...] | UnsetType = UNSET
    message: str
    cause: Cause | None
    nodes: Mapping[str, _RejectingNode]
    constraints: tuple[_ConstraintState, ...]
    not_evaluated: tuple[str, ...]
    title: str
    pod: _PodName
    notes: tuple[str, ...]
    details: tuple[_Detail, ...]
    ways: tuple[_OpenWay, ...]
    fixes: tuple[_ConstraintFix, ...]
    reliefs: tuple[_ClusterRelief, ...]
    edit: _EditedObject | None


def explained(answer: AnsweredQuestion, pods: tuple[str, ...] | UnsetType = UNSET) -> Explained:
    """Convert an explanation of a pod to its JSON document. ``pods`` are all pods with the same cause."""
    explanation, question = answer.explanation, answer.question
    names, meta = explanation.verdict.nodes.names_of, question.pod.meta
    return Explained(
        pods=pods,
        refused=question.refused or UNSET,
        message=question.settled or explanation.verdict.sentence,
        cause=None if question.settled else explanation.cause,
        nodes=_nodes(explanation.verdict),
        constraints=tuple(starmap(_constraint, zip_longest(explanation.balances, answer.causes))),
        not_evaluated=answer.not_evaluated,
        title=question.title,
        pod=_PodName(namespace=meta.namespace, name=meta.name, exists=question.exists),
        notes=question.notes,
        details=tuple(
            with_fields_of(obstacle, _Detail, nodes=(*names(obstacle.nodes),)) for obstacle in explanation.obstacles
        ),
        ways=tuple(_OpenWay(without=way.parts, nodes=(*names(way.nodes),)) for way in explanation.ways),
        fixes=tuple(_fix(*fix_and_range, answer) for fix_and_range in zip_longest(explanation.fixes, answer.replicas)),
        reliefs=tuple(
            with_fields_of(relief, _ClusterRelief, text=relief_text(relief, explanation), nodes=(*names(relief.nodes),))
            for relief in explanation.reliefs
        ),
        edit=None if question.target is None else _edit(question.target),
    )


def _fix(fix: PodFix, replicas: PlacedReplicas | None, answer: AnsweredQuestion) -> _ConstraintFix:
    explanation = answer.explanation
    fits = _ReplicaRange(min=replicas.fewest, max=replicas.most, wanted=replicas.wanted) if replicas else None
    at = f"{answer.question.path}spec.topologySpreadConstraints"
    return _ConstraintFix(
        text=explanation.in_words(fix),
        nodes=(*explanation.verdict.nodes.names_of(fix.open),),
        changes=tuple(_FieldChange(path=f"{at}{change.at}", value=change.value) for change in fix.changes),
        fits=fits,
        patch=answer.patch(fix),
        command=answer.command(fix),
    )


def _edit(target: EditTarget) -> _EditedObject:
    path = None if target.path is None else f"{target.path}spec.topologySpreadConstraints"
    return with_fields_of(target, _EditedObject, path=path)


def _nodes(verdict: Verdict) -> dict[str, _RejectingNode]:
    statuses = {
        verdict.nodes.names[slot]: with_fields_of(status, _RejectingNode)
        for status, members in ((OK, verdict.feasible), *verdict.failed)
        for slot in node_sets.to_slots(members)
    }
    return dict(sorted(statuses.items()))


def _constraint(balance: Balance, cause: PastScaleIn | None) -> _ConstraintState:
    domains, counted = balance.domains, balance.counted
    return _ConstraintState(
        topology_key=domains.constraint.topology_key,
        when_unsatisfiable=balance.written.when_unsatisfiable,
        max_skew=domains.constraint.max_skew,
        min_domains=balance.written.min_domains,
        domains=dict(sorted(domains.counts.items())),
        global_minimum=domains.global_minimum,
        name=balance.name,
        meant=balance.meant,
        counted=sum(domains.match_num.values()),
        foreign=None if counted is None else counted.foreign,
        left_by_scale_in=cause or UNSET,
    )
