"""Check topologyKey by its name, and against the labels of nodes."""

from collections.abc import Iterable, Iterator
from functools import partial

from webhook.core.api.well_known import HOSTNAME, SUCCESSORS, ZONE
from webhook.core.index.key_suggestions import ON_EVERY_NODE, PLACES, closest_node_key, meant_by, meant_by_bare
from webhook.core.policy.capacity import can_add_nodes
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.fixes import Fix, over_another_key
from webhook.core.rules.frame.rule import Finding, Need, NotEvaluated, Reevaluated, Rule, RuleAnswer, Severity, guarded
from webhook.core.rules.frame.subject import Placed, Subject
from webhook.core.rules.frame.usable_nodes import UsableNodes, usable_nodes_of
from webhook.core.text import one_line, plural, quoted

# Missing one node in 20 matters to the workload. Fewer matter only to the owners of the nodes.
_NOTICED = 20
# Also the texts of admission policies, which know no nodes.
NO_SUCH_LABEL = "Kubernetes has no label {key}"
NOT_SET = "Kubernetes sets {meant} on nodes, not {key}"


def evaluate(subject: Subject) -> Iterator[RuleAnswer]:
    """Evaluate the rules topology-key-typo and topology-key-deprecated.

    Both rules use only the name of the topologyKey, and whether a node has this label.
    """
    for placed in subject.placed:
        key = placed.constraint.topology_key
        if not key or key in {ZONE, HOSTNAME}:
            continue
        if key in SUCCESSORS:
            if (subject.offline or not subject.workload.built_in) and _exists(key, subject) is not False:
                yield from guarded((DEPRECATED,), _deprecated, placed, key, subject)
        elif (meant := meant_by(key)) is not None and not (exists := _exists(key, subject)):
            yield from guarded((TYPO,), _typo, placed, meant, subject, has_nodes=exists is False)
        elif (meant := meant_by_bare(key)) is not None and _exists(key, subject) is None:
            yield from guarded((TYPO,), _bare, placed, meant)


_rule = partial(Rule, mode=Mode.WARN, evaluate=evaluate, reevaluated=Reevaluated.AFTER_FIXES, of_a_part=True)
TYPO = _rule(
    id="topology-key-typo",
    title="the topologyKey looks like a misspelt well-known label",
    severity=Severity.HIGH,
    why=(
        "Kubernetes accepts any label key as a topologyKey. If no node has your label, a hard constraint leaves every "
        "pod Pending, and a soft constraint does nothing."
    ),
)
DEPRECATED = _rule(
    id="topology-key-deprecated",
    title="the topologyKey is deprecated",
    severity=Severity.LOW,
    why=(
        "Only some providers still label nodes with the beta keys. If your nodes lack the label, a hard constraint "
        "leaves every pod Pending."
    ),
)


def _deprecated(placed: Placed, key: str, subject: Subject) -> Iterator[Finding]:
    successor = SUCCESSORS[key]
    yield DEPRECATED.finding(
        placed,
        "topologyKey",
        _over(placed, successor, subject),
        summary=f"{placed.name}: {key} is deprecated",
        remedy=f"use {successor}",
        detail=f"{key} is deprecated, and nodes of current clusters lack it",
    )


def _typo(placed: Placed, meant: str, subject: Subject, *, has_nodes: bool) -> Iterator[Finding]:
    said = quoted(placed.constraint.topology_key or "", 256)
    yield TYPO.finding(
        placed,
        "topologyKey",
        _over(placed, meant, subject),
        summary=f"no node has {said}" if has_nodes else NO_SUCH_LABEL.format(key=said),
        remedy=f"use {meant}",
        headline=f"{placed.name}: no node has {said}; use {meant}" if has_nodes else "",
        detail=f"{NOT_SET.format(meant=meant, key=said)}, so {_outcome(placed)}",
    )


def _bare(placed: Placed, meant: str) -> Iterator[Finding]:
    said = placed.constraint.topology_key or ""
    by_hand = f"you may label the nodes with {said} yourself"
    yield TYPO.finding(
        placed,
        "topologyKey",
        Fix(f"use {meant}, unless you label the nodes with {said}", by_hand=by_hand),
        summary=NOT_SET.format(meant=meant, key=said),
        remedy=f"use {meant}",
        detail=f"unless you label the nodes with {said} yourself, {_outcome(placed)}",
        warns=False,
        severity=Severity.MEDIUM,
    )


def _outcome(placed: Placed) -> str:
    return "every pod stays Pending" if placed.constraint.hard else "the constraint does nothing"


def _over(placed: Placed, key: str, subject: Subject) -> Fix:
    if _exists(key, subject) is False:
        return Fix(f"use {key}, and label the nodes with it")
    return over_another_key(placed, key)


def _exists(key: str, subject: Subject) -> bool | None:
    """Whether a node has the key or the configuration lists domains for it. None if the nodes are unknown."""
    if key in subject.policy.domains:
        return True
    nodes = subject.nodes
    return None if nodes is None else key in nodes.keys


def evaluate_nodes(subject: Subject) -> Iterable[RuleAnswer]:
    """Evaluate topology-key-unknown and topology-key-partial. Skip bound pods."""
    if not subject.placed or (subject.workload.is_pod and subject.placed[0].template.pod.pod_spec.node_name):
        return ()
    if missing := subject.lacks("nodes"):
        return (NotEvaluated(KEY_UNKNOWN.id, missing), NotEvaluated(KEY_PARTIAL.id, missing))
    return _of_nodes(subject)


def _of_nodes(subject: Subject) -> Iterator[RuleAnswer]:
    for placed, ground in subject.while_time_is_left(usable_nodes_of(subject)):
        key = placed.constraint.topology_key
        if not key or placed.template.pod.pod_spec.node_name:
            continue  # a bound pod is not scheduled any more
        if key not in ground.view.keys:
            if key not in subject.policy.domains and meant_by(key) is None:
                yield from guarded((KEY_UNKNOWN,), _unknown, placed, key, ground, subject)
        elif ground.view.column(key).present != ground.view.live:
            yield from guarded((KEY_PARTIAL,), _partial, placed, key, ground, subject)


KEY_UNKNOWN = Rule(
    id="topology-key-unknown",
    title="no node has the topologyKey",
    severity=Severity.HIGH,
    mode=Mode.WARN,
    why=(
        "A hard constraint over a missing label leaves every pod Pending. A soft constraint has no effect, and turns "
        "off your other soft constraints. The scheduler scores only nodes with the labels of all soft constraints."
    ),
    evaluate=evaluate_nodes,
    needs=(Need.NODES,),
    of_a_part=True,
)
KEY_PARTIAL = Rule(
    id="topology-key-partial",
    title="some nodes lack the topologyKey",
    severity=Severity.MEDIUM,
    mode=Mode.AUDIT,
    why=(
        "If the constraint is hard, your pods never use a node without the label. If it is soft, such a node is "
        "the last choice. The scheduler does not count pods on it."
    ),
    evaluate=evaluate_nodes,
    needs=(Need.NODES,),
)


def _unknown(placed: Placed, key: str, ground: UsableNodes, subject: Subject) -> Iterator[Finding]:
    label = quoted(key, 256)
    softs = sum(not constraint.hard for constraint in placed.template.pod.pod_spec.constraints)
    if placed.constraint.hard:
        outcome = "pods stay Pending"
        detail = f"DoNotSchedule allows only nodes with the label {label}, and no node has it"
    elif softs > 1:
        outcome = "no ScheduleAnyway constraint has an effect"
        detail = (
            f"the scheduler scores only nodes with all labels of ScheduleAnyway constraints, and no node has {label}"
        )
    else:
        outcome = f"{placed.name} has no effect"
        detail = f"the scheduler scores only nodes with the label {label}, and no node has it"
    # A soft zone constraint is harmless in a cluster without zones.
    portable = key in PLACES and not placed.constraint.hard and softs == 1
    instead = closest_node_key(
        key, ground.view, well_known=not subject.policy.messages.name_keys(offline=subject.offline)
    )
    fix = Fix(f"label the nodes with {label}, or use a label they have")
    if instead and ground.open & ~ground.view.column(instead).present:
        fix = Fix(f"use {one_line(instead)}, and label the nodes that lack it")
    elif instead:
        fix = over_another_key(placed, instead)
    growing = can_add_nodes(subject.policy, ground.view) and key not in SUCCESSORS
    yield KEY_UNKNOWN.finding(
        placed,
        "topologyKey",
        fix,
        summary=f"{outcome}: no node has {label}",
        remedy=f"use {quoted(instead, 40)}" if instead else "label the nodes",
        detail=detail,
        warns=False if portable or growing else None,
    )


def _partial(placed: Placed, key: str, ground: UsableNodes, subject: Subject) -> Iterator[Finding]:
    open_, hard, present = ground.open, placed.constraint.hard, ground.view.column(key).present
    lacking, total = (open_ & ~present).bit_count(), open_.bit_count()
    if not lacking:
        return
    said = one_line(key)
    # Pods of a DaemonSet tolerate the taints of node conditions.
    passing = ground.tolerated_later if subject.workload.traits.on_every_node else ground.tolerated
    if lacking < total:
        lack, them = ("lacks", "it") if lacking == 1 else ("lack", "them")
        outcome = f"excludes {them}" if hard else f"puts {them} last"
        summary = f"{lacking} of {plural(total, 'usable node')} {lack} the label, so {placed.name} {outcome}"
        detail = f"{lacking} of {plural(total, 'usable node')} {lack} {said}; the scheduler does not count pods there"
        # A few nodes may be new. If most nodes lack a custom key, it may select nodes on purpose.
        warns = hard and lacking * _NOTICED >= total and (key in ON_EVERY_NODE or 2 * lacking <= total)
    elif present & ground.usable & passing:
        return  # those that have it are only on their way out, or in
    else:
        summary = f"{'pods stay Pending' if hard else f'{placed.name} has no effect'}: no usable node has {said}"
        detail = f"the only usable node lacks {said}"
        if total > 1:
            detail = f"none of the {plural(total, 'usable node')} has {said}"
        warns = hard and not can_add_nodes(subject.policy, ground.view)
    fix = Fix(f"label the nodes listed by kubectl get nodes -l '!{said}'")
    yield KEY_PARTIAL.finding(
        placed, "topologyKey", fix, summary=summary, remedy="add the label", detail=detail, warns=warns
    )
