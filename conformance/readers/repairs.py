"""The evictions of `evenspread skew --fix` on the clusters of `questions.py`, beside the descheduler's runs (`rounds.py`)."""

from collections import Counter

from conformance.placing.ours import index_of, problem_of
from conformance.readers.questions import FAMILIES, LABELS, SHOWN, next_pod
from webhook.core.api.selectors import selector_from_labels
from webhook.core.api.version import RECORDED
from webhook.core.context import Context
from webhook.core.placement.placement_verdict import Effort
from webhook.core.pods_to_remove.eviction_search import plan_evictions
from webhook.core.policy.policy import Policy

# Soft constraints force no pod, and matchLabelKeys separate the two revisions of these pods.
LEFT_OUT = ("ScheduleAnyway", "matchLabelKeys")
_NUMBERS = ("above", "plan", "ours", "theirs", "pending", "unrepaired")


def plan_of(asked):
    """Our plan for the Deployment's pods, which all have the same constraints."""
    index = index_of(asked)
    within = Context(policy=Policy(), version=RECORDED, index=index, now="", namespace="")
    own = selector_from_labels(LABELS)
    pod = next_pod(asked)
    pod["metadata"]["namespace"] = asked["deployment"]["metadata"]["namespace"]
    names = {each["metadata"]["name"] for each in asked["pods"]}
    return plan_evictions(problem_of(pod, index).pod, within, own, names, Effort())


def numbers(found):
    """By family: clusters above maxSkew, those with a plan, and the evictions on these of ours and of the descheduler.

    ``pending`` and ``unrepaired`` count the clusters with a plan where the descheduler leaves pods Pending or out of place,
    or still evicts.
    """
    counts = Counter()
    for case in found:
        family, plan, evicting = case["asked"]["family"], plan_of(case["asked"]), case["evicting"]
        if family in LEFT_OUT or not (plan.evictions or plan.reason):
            continue
        counts[family, "above"] += 1
        if plan.reason is None:
            counts[family, "plan"] += 1
            counts[family, "ours"] += len(plan.evictions)
            counts[family, "theirs"] += sum(evicting["evicted"])
            counts[family, "pending"] += bool(evicting["pending"])
            counts[family, "unrepaired"] += bool(evicting["still"] or evicting["evicted"][-1])
    return counts


def table_of_repairs(found):
    counts = numbers(found)
    yield "| constraints | clusters above maxSkew | a plan exists | evictions of the plans | evictions by the descheduler | pods stay Pending | pods out of place, or endless |"
    yield "|---|---|---|---|---|---|---|"
    for family in FAMILIES:
        if family not in LEFT_OUT:
            yield f"| {SHOWN.get(family, family)} | " + " | ".join(f"{counts[family, each]:,}" for each in _NUMBERS) + " |"
