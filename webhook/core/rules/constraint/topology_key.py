"""Rules about topologyKey, as far as they need no node."""

from collections.abc import Iterator

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


TYPO = Rule(
    id="topology-key-typo",
    title="the topology key looks like a well-known one, misspelt",
    severity=Severity.HIGH,
    mode=Mode.WARN,
    why=(
        "Kubernetes accepts any text as a topology key. If no node has the label, a hard constraint leaves every pod "
        "Pending and a soft one does nothing."
    ),
    ask=evaluate,
    asked_again=AskedAgain.AFTER_FIXES,
    of_a_part=True,
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
    ask=evaluate,
    asked_again=AskedAgain.AFTER_FIXES,
    of_a_part=True,
)


def _deprecated(placed: Placed, key: str, subject: Subject) -> Iterator[Finding]:
    successor = SUCCESSORS[key]
    fix = _over(placed, successor, subject)
    yield Finding(
        rule=DEPRECATED.id,
        path=f"{placed.path}.topologyKey",
        summary=f"{placed.name}: {key} is deprecated",
        remedy=f"use {successor}",
        detail=f"{key} is deprecated, and missing from nodes of current clusters",
        **fix.fields,
        key=placed.key,
    )


def _typo(placed: Placed, meant: str, subject: Subject, *, has_nodes: bool) -> Iterator[Finding]:
    said = quoted(placed.constraint.topology_key or "", 256)
    fix = _over(placed, meant, subject)
    yield Finding(
        rule=TYPO.id,
        path=f"{placed.path}.topologyKey",
        summary=f"no node has {said}" if has_nodes else f"Kubernetes has no label {said}",
        remedy=f"use {meant}",
        headline=f"{placed.name}: no node has {said}; use {meant}" if has_nodes else "",
        detail=f"Kubernetes sets {meant} on nodes, not {said}: "
        + ("every pod stays Pending" if placed.constraint.hard else "the constraint does nothing"),
        **fix.fields,
        key=placed.key,
    )


def _bare(placed: Placed, meant: str) -> Iterator[Finding]:
    said = placed.constraint.topology_key or ""
    yield Finding(
        rule=TYPO.id,
        path=f"{placed.path}.topologyKey",
        summary=f"Kubernetes sets {meant} on nodes, not {said}",
        remedy=f"use {meant}",
        detail=f"unless you label the nodes with {said} yourself, "
        + ("every pod stays Pending" if placed.constraint.hard else "the constraint does nothing"),
        fix=f"use {meant}, unless you label the nodes with {said}",
        by_hand=f"you may label the nodes with {said} yourself",
        key=placed.key,
        warns=False,
        severity=Severity.MEDIUM,
    )


def _over(placed: Placed, key: str, subject: Subject) -> Fix:
    if _exists(key, subject) is False:
        return Fix(f"use {key}, and label the nodes with it")
    return over_another_key(placed, key)


def _exists(key: str, subject: Subject) -> bool | None:
    """Whether a node has the key, or the configuration names domains of it; None where no nodes are known."""
    if key in subject.policy.domains:
        return True
    return None if subject.index is None or subject.lacks("nodes") else key in subject.index.view().keys
