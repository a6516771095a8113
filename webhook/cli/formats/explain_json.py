"""``-o json`` and ``-o yaml`` of ``evenspread explain``: the shape that is promised."""

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec
import yaml

from webhook.cli.formats.explain_page import Answer, not_evaluated
from webhook.core import bits
from webhook.core.explain import Balance
from webhook.core.status import OK
from webhook.core.verdict import Verdict

Json = dict[str, object]


def shape(answer: Answer) -> Json:
    """One answer."""
    found = answer.explanation
    refused = answer.question.refused
    return {
        **({"refused": msgspec.to_builtins(refused)} if refused else {}),
        "message": found.verdict.sentence,
        "cause": None if found.cause is None else str(found.cause),
        "nodes": _nodes(found.verdict),
        "constraints": [_constraint(each) for each in found.balances],
        "notEvaluated": not_evaluated(answer),
    }


def render(value: object, output: Literal["json", "yaml"]) -> Iterator[str]:
    """The value as text."""
    if output == "json":
        yield msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"
    else:
        yield yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=2**31)


def one_or_all(answers: Sequence[Answer]) -> object:
    """One answer as it is, several as a list."""
    shapes = [shape(each) for each in answers]
    return shapes[0] if len(shapes) == 1 else shapes


def _nodes(verdict: Verdict) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for status, members in ((OK, verdict.feasible), *verdict.failed):
        for slot in bits.to_slots(members):
            told: Json = {"code": status.code, "plugin": status.plugin, "reasons": list(status.reasons)}
            found[verdict.nodes.names[slot]] = told
    return dict(sorted(found.items()))


def _constraint(balance: Balance) -> Json:
    written, domains = balance.written, balance.domains
    return {
        "topologyKey": domains.constraint.topology_key,
        "whenUnsatisfiable": written.when_unsatisfiable,
        "maxSkew": domains.constraint.max_skew,
        "minDomains": written.min_domains,
        "domains": dict(sorted(domains.counts.items())),
        "globalMinimum": domains.global_minimum,
    }
