"""``evenspread skew --fix``: the evictions that repair each workload, as a page of commands and as JSON."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from shlex import quote

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import asdict

from webhook.answers.repaired import REASONS, RepairedWorkload, repair_document
from webhook.answers.scanned import NamedWorkload
from webhook.cli.cluster_source import ClusterSource
from webhook.cli.commands.skew.workloads import ScannedCluster
from webhook.cli.live_cluster import reading
from webhook.cli.output.page import BOLD, GREEN, YELLOW, paint, table_lines
from webhook.cli.output.terminal import print_message
from webhook.cluster.listing import list_objects
from webhook.cluster.live import undecodable_line
from webhook.cluster.resources import BUDGETS
from webhook.core.decoders import decoder_of
from webhook.core.pods_to_remove.disruption_budget import DisruptionBudget
from webhook.core.pods_to_remove.eviction_search import Eviction, RepairPlan
from webhook.core.pods_to_remove.rebalancing import repair_plan
from webhook.core.scan.actual_skew import skews_of_templates
from webhook.core.text import agree, listed, object_title, one_line, plural, segment_of
from webhook.snapshot.load import Item

_BUDGET = decoder_of(DisruptionBudget)
_LONGEST_WAIT = "10m"  # longer than the grace period of most pods, and the pull of an image
_MOST_DOMAINS = 3  # named of a step in the table
_NAME = 60  # characters


class Repair(Struct, frozen=True, kw_only=True):
    """A workload with constraints above maxSkew.

    Attributes:
        hard: The names of its hard constraints above maxSkew.
        soft: The names of its soft constraints above maxSkew.
        pods: The number of its pods.
        plan: The evictions. None without hard constraints above maxSkew.
    """

    named: NamedWorkload
    hard: tuple[str, ...]
    soft: tuple[str, ...]
    pods: int
    plan: RepairPlan | None


def is_budget(item: Item) -> bool:
    """Whether the object is a PodDisruptionBudget."""
    return item.of.kind == BUDGETS.kind and item.of.api_version in BUDGETS.api_versions


def repairs(cluster: ScannedCluster) -> list[Repair]:
    """Plan the repair of each workload with a constraint above maxSkew.

    Prints a note if there are evictions and the PodDisruptionBudgets are unknown. The API server still respects them.
    """
    known = cluster.known
    (budgets, unknown), found = _budgets(known), list[Repair]()
    for scanned in cluster.objects:
        templates = skews_of_templates(scanned.workload, cluster.within, stand_in=scanned.stand_in)
        for next_pod, own, skews in templates:
            hard = tuple(skew.name for skew in skews if skew.above and skew.hard)
            soft = tuple(skew.name for skew in skews if skew.above and not skew.hard)
            if not (hard or soft):
                continue
            running = next_pod.context.cluster.pods.count(next_pod.source.namespace, own) if own is not None else {}
            plan = repair_plan(next_pod, own, budgets) if hard else None
            found.append(Repair(named=scanned.named, hard=hard, soft=soft, pods=sum(running.values()), plan=plan))
    if unknown and any(repair.plan is not None and repair.plan.evictions for repair in found):
        print_message(f"{known.source}: note: {unknown}: the API server may refuse an eviction")
    return found


def _budgets(known: ClusterSource) -> tuple[Sequence[DisruptionBudget], str]:
    """Read the PodDisruptionBudgets, and why they are unknown."""
    unknown = known.index.lacks(BUDGETS.name)
    budgets = [_read_budget(item.raw, known.source) for item in known.kept if is_budget(item)]
    if known.server is not None:
        with reading():
            listing = list_objects(known.server, BUDGETS, lambda raw, _: _read_budget(raw, known.source))
        unknown, budgets = listing.refused and f"{BUDGETS.name}: {listing.refused}", [*listing.values]
    return [budget for budget in budgets if budget is not None], unknown


def _read_budget(raw: Raw, source: str) -> DisruptionBudget | None:
    try:
        return _BUDGET.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        print_message(f"{source}: note: {undecodable_line(BUDGETS.kind, raw, str(error))}")
        return None


def documents(repairs: Sequence[Repair], options: str) -> list[RepairedWorkload]:
    """Return the repairs as JSON documents. ``options`` are kubectl's options for the cluster."""
    answers = list[RepairedWorkload]()
    for repair in repairs:
        fix = None if repair.plan is None else repair_document(repair.plan, partial(_commands, repair, options))
        answers.append(RepairedWorkload(**asdict(repair.named), hard=repair.hard, soft=repair.soft, fix=fix))
    return answers


def _commands(repair: Repair, options: str, step: Eviction) -> tuple[str, ...]:
    """Return the commands of a step: evict the pod, and wait until its replacement is ready.

    kubectl has no command for a single eviction. ``kubectl delete`` ignores PodDisruptionBudgets. ``kubectl drain``
    cordons the node first, and the scheduler would then choose another node.
    """
    named = repair.named
    meta = {"name": step.pod, "namespace": named.namespace}
    body = json.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta}, separators=(",", ":"))
    path = f"/api/v1/namespaces/{named.namespace}/pods/{step.pod}/eviction"
    wait = f"kubectl wait{options} -n {quote(named.namespace)} --timeout={_LONGEST_WAIT}"
    workload = quote(f"{named.kind.lower()}/{named.name}")
    return (
        f"echo {quote(body)} | kubectl create{options} --raw {quote(path)} -f -",
        f"{wait} --for=delete {quote(f'pod/{step.pod}')}",
        f"{wait} --for=jsonpath='{{.status.readyReplicas}}'={repair.pods} {workload}",
    )


def page(repairs: Sequence[Repair], where: str, options: str) -> Iterator[str]:
    """Yield the lines of the page. ``where`` is a namespace, or empty for all namespaces."""
    planned = [(repair, repair.plan) for repair in repairs if repair.plan is not None]
    soft = sum(len(repair.soft) for repair in repairs)
    if not planned:
        yield paint(f"no hard constraint above maxSkew in {where or 'any namespace'}", GREEN) + "\n"
    yield from _workloads(planned, options)
    if soft:
        above = f"{plural(soft, 'soft constraint')} {agree(soft, 'are')} above maxSkew"
        yield "\n" * bool(planned)
        yield (
            paint(f"{above}: --fix repairs hard constraints only, because the scheduler may ignore others", YELLOW)
            + "\n"
        )


def _workloads(planned: Sequence[tuple[Repair, RepairPlan]], options: str) -> Iterator[str]:
    for number, (repair, plan) in enumerate(planned):
        yield "\n" * bool(number)
        title = one_line(object_title(repair.named.kind, repair.named.namespace, repair.named.name), _NAME)
        constraints = ", ".join(repair.hard)
        if plan.reason is not None:
            yield paint(f"{title}: no evictions repair {constraints}: {REASONS[plan.reason]}", YELLOW) + "\n"
            continue
        fewest = ", the fewest possible" if plan.proven else ""
        yield (
            paint(f"{title}: evict {plural(len(plan.evictions), 'pod')} to repair {constraints}{fewest}", BOLD) + "\n\n"
        )
        rows = [("POD", "FROM", "TO"), *(_row(step) for step in plan.evictions)]
        yield from (f"  {line}\n" for line in table_lines(rows))
        yield "\nrun the commands in this order; evenspread runs none of them:\n\n"
        commands = (command for step in plan.evictions for command in _commands(repair, options, step))
        yield " &&\n".join(commands) + "\n"  # A refused eviction stops the rest.


def _row(step: Eviction) -> tuple[str, ...]:
    entered: Mapping[str, str] = {key: listed(names, _MOST_DOMAINS) for key, names in step.enters.items()}
    texts = [
        "; ".join(one_line(f"{segment_of(key)} {value}", _NAME) for key, value in domains.items())
        for domains in (step.leaves, entered)
    ]
    return one_line(step.pod, _NAME), *texts
