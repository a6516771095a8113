"""Rules about topologyKey, as far as they need no node."""

from collections.abc import Iterator
from functools import partial

from webhook.core.api.well_known import HOSTNAME, SUCCESSORS, ZONE
from webhook.core.index.key_suggestions import meant_by, meant_by_bare
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.fixes import Fix, over_another_key
from webhook.core.rules.frame.rule import AskedAgain, Finding, Rule, RuleAnswer, Severity, guarded
from webhook.core.rules.frame.subject import Placed, Subject
from webhook.core.text import quoted


def evaluate(subject: Subject) -> Iterator[RuleAnswer]:
    """What the two rules say of each constraint."""
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


_rule = partial(Rule, mode=Mode.WARN, ask=evaluate, asked_again=AskedAgain.AFTER_FIXES, of_a_part=True)
TYPO = _rule(
    id="topology-key-typo",
    title="the topology key looks like a well-known one, misspelt",
    severity=Severity.HIGH,
    why=(
        "Kubernetes accepts any text as a topology key. If no node has the label, a hard constraint leaves every pod "
        "Pending and a soft one does nothing."
    ),
)
DEPRECATED = _rule(
    id="topology-key-deprecated",
    title="the topology key is deprecated",
    severity=Severity.LOW,
    why=(
        "The beta names of node labels are kept on nodes by some providers only. Where they are gone, a hard "
        "constraint leaves every pod Pending."
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
        detail=f"{key} is deprecated, and missing from nodes of current clusters",
    )


def _typo(placed: Placed, meant: str, subject: Subject, *, has_nodes: bool) -> Iterator[Finding]:
    said = quoted(placed.constraint.topology_key or "", 256)
    yield TYPO.finding(
        placed,
        "topologyKey",
        _over(placed, meant, subject),
        summary=f"no node has {said}" if has_nodes else f"Kubernetes has no label {said}",
        remedy=f"use {meant}",
        headline=f"{placed.name}: no node has {said}; use {meant}" if has_nodes else "",
        detail=f"Kubernetes sets {meant} on nodes, not {said}: {_outcome(placed)}",
    )


def _bare(placed: Placed, meant: str) -> Iterator[Finding]:
    said = placed.constraint.topology_key or ""
    by_hand = f"you may label the nodes with {said} yourself"
    yield TYPO.finding(
        placed,
        "topologyKey",
        Fix(f"use {meant}, unless you label the nodes with {said}", by_hand=by_hand),
        summary=f"Kubernetes sets {meant} on nodes, not {said}",
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
    """Whether a node has the key, or the configuration names domains of it; None where no nodes are known."""
    if key in subject.policy.domains:
        return True
    return None if subject.index is None or subject.lacks("nodes") else key in subject.index.nodes.view().keys
