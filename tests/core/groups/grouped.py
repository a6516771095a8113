"""Groups for tests: ``redis(3)`` are three shards of two pods that never share a zone, with the caps of the field."""

import json
from fractions import Fraction

from build import NAMESPACE, cluster, pod, selector

from webhook.core.api.spread_group import API_VERSION, KIND
from webhook.core.api.types import TypeMeta
from webhook.core.api.version import RECORDED
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.context import Context
from webhook.core.groups import derive as deriving
from webhook.core.groups.caps import Cap
from webhook.core.groups.group import Group, PlanInput, Shard
from webhook.core.index.readers import decode_object
from webhook.core.policy.policy import Policy


def cap(key, text, **more):
    """``<1/2``, ``<=5``: a share of the pods, or a number of them."""
    strict = not text.startswith("<=")
    amount = text.lstrip("<=")
    return Cap(topology_key=key, amount=Fraction(amount), of_pods="/" in amount, strict=strict, **more)


FIELD = (cap(HOSTNAME, "<1/3"), cap(ZONE, "<1/2"))


def redis(shards, pods=2, *, caps=FIELD, apart=(ZONE,), plan_for=0, **more):
    return Group(
        name="cache",
        namespace=NAMESPACE,
        selector=selector("app=redis"),
        shard_label="shard",
        never_share=apart,
        shards=shards,
        pods_per_shard=pods,
        plan_for=plan_for or shards,
        caps=caps,
        **more,
    )


def shards_of(group, **more):
    return [
        Shard(name=f"redis-{number}", value=str(number), pod=pod(f"app=redis shard={number}"), **more)
        for number in range(group.plan_for)
    ]


def zones(*nodes):
    """``zones(2, 2, 2)``: zones a, b and c with two nodes each."""
    named = zip("abcdefgh", nodes, strict=False)
    return " | ".join(f"{zone}: {' '.join(f'{zone}{each}=0' for each in range(many))}" for zone, many in named)


def planned_for(group, shards, index, policy=None, *, searches=True):
    within = Context(policy=policy or Policy(), version=RECORDED, index=index)
    return PlanInput(group=group, shards=tuple(shards), context=within, searches=searches)


def derive(group, shards, index, policy=None, **more):
    return deriving.derive_plan(planned_for(group, shards, index, policy, **more))


def derived(group, text, shards=None, policy=None, **more):
    return derive(group, shards or shards_of(group), cluster(text, **more), policy or Policy())


def written(name="cache", *, caps=({"topologyKey": ZONE, "lessThan": "1/2"},), generation=1, status=None, **spec):
    """A SpreadGroup as the index keeps it: three shards of two pods ``app=redis``, with what is stored of its plan."""
    asked = {
        "selector": {"matchLabels": {"app": "redis"}},
        "shard": {"label": "shard", "neverShare": ZONE},
        "expected": {"shards": 3, "podsPerShard": 2},
        "caps": list(caps),
    }
    made = {"metadata": {"name": name, "namespace": NAMESPACE, "generation": generation}, "spec": asked | spec}
    value = json.dumps(made | ({"status": status} if status else {}))
    return decode_object(value.encode(), TypeMeta(api_version=API_VERSION, kind=KIND))
