"""Find zones whose loss leaves replacement pods Pending."""

from collections.abc import Iterator, Sequence

from webhook.core.api.types import IGNORE, NODE_TAINTS_POLICY
from webhook.core.api.well_known import ZONE
from webhook.core.policy.lookup import mode_for
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.rule import Finding, Severity
from webhook.core.rules.frame.subject import Placed, Subject
from webhook.core.rules.placement.frame.case import PlacementRule, TemplateUnderRule, counts_tainted_nodes
from webhook.core.rules.placement.frame.lost_zones import Loss, costs_pods, worst_loss
from webhook.core.rules.placement.frame.remedies import Remedy, honoring
from webhook.core.text import plural, quoted

_TOLD = frozenset({Mode.WARN, Mode.DENY})


def _concerns(subject: Subject, hard: Sequence[Placed]) -> bool:
    """Whether a controller replaces the pods, and a hard constraint counts tainted nodes."""
    return subject.workload.traits.replaces and counts_tainted_nodes(subject, hard)


def evaluate(case: TemplateUnderRule) -> Iterator[Finding]:
    loss = worst_loss(case)
    if loss is not None:
        yield _finding(case, loss)


ZONE_LOSS = PlacementRule(
    id="zone-loss-strands-pods",
    title="if a zone fails, replacement pods stay Pending",
    severity=Severity.MEDIUM,
    mode=Mode.AUDIT,
    only_audits=True,
    why=(
        "The nodes of a failed zone stay in the cluster, tainted and NotReady. With `nodeTaintsPolicy: Ignore`, the "
        "default, their zone counts with 0 pods, so the other zones cannot take the replacements. The message has the "
        "number for your worst zone. At least this many pods stay Pending in every order."
    ),
    of_template=evaluate,
    concerns=_concerns,
    # If pods do not fit today, a loss does not matter.
    unless_warned=True,
    highest_on_pods=Mode.WARN,
)


def _finding(case: TemplateUnderRule, loss: Loss) -> Finding:
    placed = loss.placed
    # At admission audit notes have no reader, and finding a remedy takes as long as finding the loss.
    read = case.subject.offline or mode_for(case.subject.policy, ZONE_LOSS.id, ZONE_LOSS.mode, ZONE_LOSS.since) in _TOLD
    remedy = _remedy(case, loss) if read else Remedy()
    name = f"zone {quoted(loss.zone, 40)}" if case.subject.policy.messages.name_domains(ZONE) else "a zone"
    said = f"if {name} goes NotReady, at least {loss.pending} of {case.wanted} stay Pending"
    return ZONE_LOSS.finding(
        placed,
        NODE_TAINTS_POLICY,
        remedy.fix,
        summary=said,
        remedy=remedy.words,
        detail=f"{said}: its tainted nodes still count for {placed.name} with 0 pods,"
        f" so maxSkew limits every other {placed.noun} to {plural(placed.constraint.max_skew or 0, 'pod')}",
    )


def _remedy(case: TemplateUnderRule, loss: Loss) -> Remedy:
    """Return the change with which all replicas run before and after the loss of any zone."""
    for each in honoring(case, loss.placed, NODE_TAINTS_POLICY):
        after = case.fits(each.hard, case.wanted, lost=loss.nodes)
        if after and case.fits(each.hard, case.wanted) and not _another_loss_costs_pods(case, each):
            return each
    return Remedy()


def _another_loss_costs_pods(case: TemplateUnderRule, remedy: Remedy) -> bool:
    ignoring = any(each.constraint.node_taints_policy == IGNORE for each in remedy.hard)
    return ignoring and costs_pods(case.with_hard(remedy.hard))
