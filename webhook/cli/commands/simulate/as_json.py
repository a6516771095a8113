"""``-o json`` and ``-o yaml`` of ``evenspread simulate``; its shape is a promise."""

from collections.abc import Sequence

import msgspec

from webhook.cli.commands.simulate.words import doubt, not_evaluated, verdict
from webhook.cli.terminal import Json
from webhook.core.explain.explanation import out_text
from webhook.core.explain.obstacles import grouped
from webhook.core.index import node_sets
from webhook.core.placement.simulation import Outcome
from webhook.core.what_if.forecast import Likely
from webhook.core.what_if.play import WORST_FIRST, Ending, Moved, Outcomes, Verdict
from webhook.core.what_if.run import Answer
from webhook.core.what_if.suggestions import SuggestedChange


def shape(answers: Sequence[Answer]) -> Json:
    """The answer; of several the worst, with all of them as ``events``."""
    shapes = [_shape(each) for each in answers]
    worst = min(range(len(answers)), key=lambda number: WORST_FIRST.index(answers[number].outcomes.whole.outcome))
    return shapes[worst] if len(shapes) == 1 else {**shapes[worst], "events": shapes}


def _shape(answer: Answer) -> Json:
    of, end, found = answer.outcomes, answer.end, answer.outcomes.simulation
    waits = end is not None and bool(end.waiting)
    rolling = any(each.rollout is not None for each in of.workloads)
    stuck = None if found is None or found.sampled or found.outcome is Outcome.UNKNOWN else found.stuck
    return {
        "verdict": str(of.whole.outcome),
        "cause": None if answer.cause is None else str(answer.cause),
        "wanted": of.whole.wanted,
        "fits": _fits(of.whole),
        "witness": [_move(each) for each in end.moves] if end is not None and waits else [],
        "blocking": _blocking(end) if end is not None and waits else None,
        "fixes": [_fix(each) for _, found in answer.ends for each in found],
        "workloads": {workload.title: _verdict(each) for workload, each in zip(of.workloads, of.each, strict=True)},
        "rollout": _rollout(of) if rolling else None,
        "addNodes": [msgspec.to_builtins(each) for each in answer.room.added] or None,
        "preempts": answer.room.preempts,
        "stuckProbability": {"uniform": stuck, "scored": _scored(answer)},
        "atMaximum": None if answer.scaled is None else _verdict(answer.scaled),
        "mostLikely": [_likely(each, of) for each in answer.likely.placed] if answer.likely is not None else None,
        "notEvaluated": not_evaluated(answer),
        "message": verdict(of),
        "doubt": doubt(of),
        "event": answer.event,
        "notes": list(answer.notes),
        "waiting": end.waiting if end is not None and waits else None,
        "states": 0 if found is None else found.states,
        "sampled": 0 if found is None else found.sampled,
        "constraints": [] if end is None else _constraints(end),
    }


def _scored(answer: Answer) -> float | None:
    """The share of forecasts that leave a pod without a node; of a verdict that says so, all or none."""
    likely = answer.likely
    if likely is None or answer.outcomes.whole.outcome is Outcome.UNKNOWN:
        return None
    return likely.stuck / likely.runs if likely.runs else float(bool(likely.waiting))


def _likely(each: Likely, of: Outcomes) -> Json:
    owners = [workload for workload in of.workloads for _ in workload.batches]
    return {"workload": owners[each.batch].title, "node": each.node, "best": each.best}


def _verdict(found: Verdict) -> Json:
    return {"verdict": str(found.outcome), "wanted": found.wanted, "fits": _fits(found)}


def _fits(found: Verdict) -> Json:
    return {"min": found.fewest, "max": found.most}


def _move(move: Moved) -> Json:
    return {"pod": move.pod, "node": move.node, **({"gone": True} if move.gone else {})}


def _rollout(of: Outcomes) -> Json:
    return {
        "worstFinalSkew": None if of.simulation is None else of.simulation.skew,
        "newRunning": _fits(of.whole),
    }


def _blocking(end: Ending) -> Json:
    """What is in the way of the first pod that waits: the domain that holds the minimum, or all nodes."""
    after, view = end.after, end.after.verdict.nodes
    balance = after.blocking
    nodes, key, domain = view.live & ~after.verdict.feasible, None, None
    count = None
    if balance is not None:
        key = balance.domains.constraint.topology_key
        domain = next(iter(balance.lowest), None)
        count = None if domain is None else balance.domains.counts[domain]
        nodes &= 0 if domain is None else balance.domains.column.with_value(domain)
    reasons = {
        slot: out_text(texts) for texts, part in grouped(after.obstacles, nodes) for slot in node_sets.to_slots(part)
    }
    return {
        "topologyKey": key,
        "domain": domain,
        "count": count,
        "nodes": [{"name": view.names[slot], "reason": reason} for slot, reason in sorted(reasons.items())],
    }


def _fix(each: SuggestedChange) -> Json:
    return {
        "text": each.text,
        "target": each.target,
        "path": each.path,
        "from": msgspec.to_builtins(each.before),
        "to": msgspec.to_builtins(each.after),
        "fits": {"min": each.wanted, "max": each.wanted},
        "harms": list(each.harms),
    }


def _constraints(end: Ending) -> list[Json]:
    before = {each.index: each.domains.counts for each in end.before.balances}
    return [
        {
            "topologyKey": each.domains.constraint.topology_key,
            "name": each.name,
            "maxSkew": each.domains.constraint.max_skew,
            "before": dict(sorted(before.get(each.index, {}).items())),
            "after": dict(sorted(each.domains.counts.items())),
        }
        for each in end.after.balances
        if each.hard
    ]
