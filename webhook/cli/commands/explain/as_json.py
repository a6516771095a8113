"""``-o json`` and ``-o yaml`` of ``evenspread explain``; its shape is a promise."""

from itertools import zip_longest

import msgspec

from webhook.cli.commands.explain.answer import AnsweredQuestion
from webhook.cli.terminal import Json
from webhook.core.changes.candidates import PodFix
from webhook.core.explain.cause_text import relief_text
from webhook.core.explain.edit_target import EditTarget
from webhook.core.explain.explanation import Balance
from webhook.core.index import node_sets
from webhook.core.scheduler.plugins.status import OK
from webhook.core.scheduler.verdict import Verdict
from webhook.core.what_if.replicas import Replicas


def shape(answer: AnsweredQuestion) -> Json:
    """One answer."""
    explanation, question = answer.explanation, answer.question
    meta = question.pod.meta
    refused = question.refused
    return {
        **({"refused": msgspec.to_builtins(refused)} if refused else {}),
        "message": question.settled or explanation.verdict.sentence,
        "cause": None if explanation.cause is None or question.settled else str(explanation.cause),
        "nodes": _nodes(explanation.verdict),
        "constraints": [_constraint(each) for each in explanation.balances],
        "notEvaluated": answer.not_evaluated,
        "title": question.title,
        "pod": {"namespace": meta.namespace, "name": meta.name, "exists": question.exists},
        "notes": list(question.notes),
        "details": [
            {"plugin": each.plugin, "text": each.text, "nodes": [*explanation.verdict.nodes.names_of(each.nodes)]}
            for each in explanation.obstacles
        ],
        "ways": [
            {"without": list(way.parts), "nodes": [*explanation.verdict.nodes.names_of(way.nodes)]}
            for way in explanation.ways
        ],
        "fixes": [_fix(each, told, answer) for each, told in zip_longest(explanation.fixes, answer.replicas)],
        "reliefs": [
            {
                "what": each.what,
                "text": relief_text(each, explanation),
                "nodes": [*explanation.verdict.nodes.names_of(each.nodes)],
                "tolerations": msgspec.to_builtins(each.tolerations),
            }
            for each in explanation.reliefs
        ],
        "edit": None if question.target is None else _edit(question.target),
    }


def _fix(fix: PodFix, replicas: Replicas | None, answer: AnsweredQuestion) -> Json:
    explanation, path = answer.explanation, answer.question.path
    changes = [
        {
            "path": f"{path}spec.topologySpreadConstraints{each.at}",
            "value": msgspec.to_builtins(each.value),
        }
        for each in fix.changes
    ]
    return {
        "text": explanation.in_words(fix),
        "nodes": [*explanation.verdict.nodes.names_of(fix.open)],
        "changes": changes,
        "fits": None if replicas is None else {"min": replicas.fewest, "max": replicas.most, "wanted": replicas.wanted},
        "patch": answer.patch(fix),
        "command": answer.command(fix),
    }


def _edit(target: EditTarget) -> Json:
    return {
        "apiVersion": target.api_version,
        "kind": target.kind,
        "namespace": target.namespace,
        "name": target.name,
        "path": None if target.path is None else f"{target.path}spec.topologySpreadConstraints",
        "note": target.note,
    }


def _nodes(verdict: Verdict) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for status, members in ((OK, verdict.feasible), *verdict.failed):
        for slot in node_sets.to_slots(members):
            told: Json = {"code": status.code, "plugin": status.plugin, "reasons": list(status.reasons)}
            found[verdict.nodes.names[slot]] = told
    return dict(sorted(found.items()))


def _constraint(balance: Balance) -> Json:
    written, domains, who = balance.written, balance.domains, balance.company
    return {
        "topologyKey": domains.constraint.topology_key,
        "whenUnsatisfiable": written.when_unsatisfiable,
        "maxSkew": domains.constraint.max_skew,
        "minDomains": written.min_domains,
        "domains": dict(sorted(domains.counts.items())),
        "globalMinimum": domains.global_minimum,
        "name": balance.name,
        "meant": balance.meant,
        "counted": sum(domains.match_num.values()),
        "foreign": None if who is None else who.foreign,
    }
