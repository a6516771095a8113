"""``-o json``, ``-o yaml`` and ``-o patch`` of ``evenspread plan``; the shape of the first two is a promise."""

import json
from collections.abc import Iterator

import msgspec

from webhook.cli.commands.plan.run import Answer
from webhook.cli.terminal import Json
from webhook.core.groups.caps import Cap
from webhook.core.groups.group import Fields
from webhook.core.placement.simulation import Outcome


def shape(of: Answer) -> Json:
    """One group."""
    group, plan, seen = of.group, of.derived.plan, of.seen
    return {
        "group": group.name,
        "namespace": group.namespace,
        "pods": group.pods,
        "shards": group.shards,
        "podsPerShard": group.pods_per_shard,
        "caps": [_cap(each, group.pods) for each in group.caps],
        "naive": {
            "constraints": msgspec.to_builtins(of.naive.constraints),
            "verdict": None if seen is None else str(seen.outcome),
            "worst": []
            if seen is None
            else [
                {
                    "topologyKey": key,
                    "domain": worst.domain,
                    "pods": worst.pods,
                    "most": group.most(key),
                    "sequence": _sequence(of.named(worst.steps)),
                }
                for key, worst in seen.worst.items()
            ],
            "witness": [] if seen is None else _sequence(of.named(seen.witness)),
            "stuckProbability": None if seen is None else seen.stuck,
            "everyOrder": seen is not None and seen.exact,
        },
        "derived": {
            "workloads": {} if plan is None else {name: fields_as_json(each) for name, each in plan.fields.items()},
            "verdict": str(Outcome.NO_FIT if plan is None else plan.verdict),
            "worst": []
            if plan is None
            else [
                {"topologyKey": key, "pods": each.worst, "most": group.most(key), "way": str(each.way)}
                for key, each in plan.keeping.items()
            ],
            "proof": None if plan is None else str(plan.proof),
            "zones": {}
            if plan is None or plan.loads is None
            else dict(zip(plan.fields, plan.loads.of_shards, strict=True)),
            "sameUpTo": None if plan is None else plan.same_up_to or None,
            "reasons": of.derived.reasons,
            "nearest": of.derived.nearest,
        },
    }


def _sequence(steps: list[tuple[str, str]]) -> list[Json]:
    return [{"pod": pod, "node": node} for pod, node in steps]


def _cap(cap: Cap, pods: int) -> Json:
    amount = str(cap.amount) if cap.of_pods else cap.amount.numerator
    return {
        "topologyKey": cap.topology_key,
        "lessThan" if cap.strict else "atMost": amount,
        "most": cap.most(pods),
        "enforced": cap.enforced,
        **({} if cap.selector is None else {"selector": msgspec.to_builtins(cap.selector)}),
    }


def fields_as_json(fields: Fields) -> Json:
    """What a pod template gets."""
    return {
        "constraints": msgspec.to_builtins(fields.constraints),
        "affinity": None if fields.affinity is None else msgspec.to_builtins(fields.affinity),
    }


def patches(of: Answer) -> Iterator[str]:
    """One command of kubectl for each workload that there is; merge patches, which replace whole lists."""
    plan = of.derived.plan
    for name, fields in plan.fields.items() if plan is not None else ():
        if (written := of.asked.written.get(name)) is None:
            continue
        given = fields_as_json(fields)
        spec = {"topologySpreadConstraints": given["constraints"], "affinity": given["affinity"]}
        patch = json.dumps({"spec": {"template": {"spec": spec}}}, separators=(",", ":"))
        quoted = patch.replace("'", "'\\''")
        kind = written.maker.workload.kind.lower()
        yield f"kubectl patch {kind} {name} -n {of.group.namespace} --type merge -p '{quoted}'\n"
