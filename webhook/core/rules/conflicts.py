"""The rule about constraints and what else decides where a pod may go: node selectors, affinity, volumes."""

from collections.abc import Collection, Iterator, Sequence

from msgspec.structs import replace

from webhook.core.kinds import Template, Workload
from webhook.core.model import HONOR, IGNORE
from webhook.core.places import AFFINITY, APART, NEAR, RESTRICTIONS, VOLUMES, Hard, Tally, Terrain, tallies, terrain
from webhook.core.policy import Mode
from webhook.core.rules.cases import Case, noun, softened, staying
from webhook.core.rules.claims import pinned_replicas
from webhook.core.rules.finding import Answer, Finding, NotEvaluated, Placed, Rule, Severity, one_line
from webhook.core.rules.nodes import A_CAP

CONFLICTS = Rule(
    id="spread-conflicts-affinity",
    title="affinity or volumes leave fewer places than replicas",
    severity=Severity.HIGH,
    mode=Mode.WARN,
    why=(
        "Domains count for a constraint although a volume, pod affinity or (with nodeAffinityPolicy Ignore) a node "
        "selector keeps the pods out of them. Such a domain stays empty, and no other may have more than maxSkew pods."
    ),
    silent=(
        "if as few would fit without the constraint, which is then not to blame; of a StatefulSet's volumes, about "
        "pods that run already; about nodes that a taint keeps the pods from as well; for Jobs, DaemonSets and single "
        "pods. It never warns where capacity grows."
    ),
)
_CLAIMS = ("persistentvolumeclaims", "persistentvolumes")


def is_about(workload: Workload) -> bool:
    """Whether something of the object besides constraints decides where its pods may go."""
    return workload.claims is not None or any(map(is_pinned, workload.templates))


def is_pinned(template: Template) -> bool:
    """Whether something in the template besides constraints restricts where its pods may go."""
    return any(True for _ in _restrictions(template))


def _restrictions(template: Template) -> Iterator[tuple[str, str]]:
    """What restricts the pods, and how messages call it."""
    spec = template.template.pod_spec
    affinity = spec.affinity
    node_affinity = affinity.node_affinity if affinity else None
    near = affinity.pod_affinity if affinity else None
    apart = affinity.pod_anti_affinity if affinity else None
    if spec.node_selector or (node_affinity and node_affinity.required):
        yield AFFINITY, "node selector" if spec.node_selector else "node affinity"
    for name in _claims(template):
        yield VOLUMES, f"claim {one_line(name, 40)}"
        break
    if near and near.required:
        yield NEAR, "pod affinity"
    if apart and apart.required:
        yield APART, "anti-affinity"


def _claims(template: Template) -> Iterator[str]:
    for volume in template.template.pod_spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name


def evaluate(case: Case) -> Iterator[Answer]:
    """What the rule says of one template."""
    template, workload = case.placed[0].template, case.subject.workload
    if not is_pinned(template) and workload.claims is None:
        return
    found = _pinned(case) if is_pinned(template) else None
    found = found or next(pinned_replicas(case), None)
    if found is not None:
        yield replace(found, rule=CONFLICTS.id)
        return
    missing = case.subject.lacks(*_CLAIMS)
    claims = tuple(_claims(template))
    unknown = not set(claims) <= case.places.problem.storage.claims.keys()
    if unknown or (missing and (claims or workload.claims)):
        yield NotEvaluated(CONFLICTS.id, missing or "a claim that is not known")


def _pinned(case: Case) -> Finding | None:
    worst = _worst(case.tallies, case.terrain)
    return None if worst is None or worst[0] >= case.most or not worst[1].open else _blamed(case, *worst)


def _worst(found: Sequence[Tally], of: Terrain) -> tuple[int, Tally] | None:
    """The constraint that admits the fewest, and how many; None where none sets a bound."""
    together = None if of.together is None else of.eligible.nodes.column(of.together)
    bounds = [(tally.most if together is None else tally.most_in_one(together), tally) for tally in found]
    return min(((most, tally) for most, tally in bounds if most is not None), key=lambda each: each[0], default=None)


def _blamed(case: Case, admitted: int, tally: Tally) -> Finding | None:
    """The finding, if the constraint and something else together are to blame."""
    free = _without_spread(case)
    if free is not None and free <= admitted:
        return None
    named = dict(_restrictions(case.placed[0].template))
    for part in (*((each,) for each in RESTRICTIONS if each in named), RESTRICTIONS):
        what_if = terrain(case.places, without=part)
        then = _worst(tallies(case.places.hard, what_if, case.places.problem), what_if)
        if then is None or then[0] > admitted:
            who = named.get(part[0]) or next(iter(named.values()))
            return _finding(case, tally, who, admitted, together=part[0] == NEAR and case.terrain.together is not None)
    return None


def _held(tally: Tally) -> list[int]:
    """The domains without an open node that hold the others down."""
    minimum = tally.minimum if tally.limit.enough else None
    if minimum is None or not any(cell.room == 0 and cell.pods == minimum for cell in tally.cells):
        return []
    return [number for number in tally.closed if tally.count(number) == minimum]


def _without_spread(case: Case) -> int | None:
    """How many pods have a place if no constraint is hard; None for any number."""
    nodes, running = case.terrain.eligible.nodes, sum(case.places.running.values())
    columns = [nodes.column(key) for key in case.terrain.apart]
    limits = [column.domain_count(case.terrain.open) for column in columns if not case.terrain.open & ~column.present]
    return running + min(limits) if limits else None


def _finding(case: Case, tally: Tally, who: str, admitted: int, *, together: bool) -> Finding:
    placed = case.placed[tally.hard.place]
    said = _said(tally, who, together=together)
    field, remedy, fix = _fix(case, tally, placed, case.target(admitted))
    held = _held(tally)
    more = f", and {staying(case, tally, held)}" if held else ""
    return Finding(
        rule=CONFLICTS.id,
        path=f"{placed.path}.{field}",
        summary=f"{case.fit(admitted)}: {said}",
        remedy=remedy,
        detail=f"{case.fit(admitted)} with {placed.name} (maxSkew {tally.limit.max_skew}): {said}{more}",
        fix=fix,
        key=placed.key,
        warns=admitted < case.wanted,
        at_most=case.at_most,
    )


def _said(tally: Tally, who: str, *, together: bool) -> str:
    total = len(tally.open_domains | tally.closed)
    if together:
        return f"{who} keeps all pods together"
    if tally.limit.enough and not tally.closed:
        return f"{who} lets a {noun(tally)} hold {tally.minimum}"
    minimum = "" if tally.limit.enough else f" of minDomains {tally.domains.constraint.min_domains}"
    of = f" of {total}" if tally.closed and not minimum else ""
    opened = len(tally.open_domains)
    return f"{who} leaves {opened}{of} {noun(tally, total)}{minimum}"


def _fix(case: Case, tally: Tally, placed: Placed, target: int) -> tuple[str, str, str]:
    """The field of the smallest change that makes all pods fit, in a few words, and as what to write."""
    constraint, place = tally.domains.constraint, tally.hard.place
    changes: list[tuple[str, str, str, Hard]] = []
    if constraint.node_affinity_policy == IGNORE:
        honoring = replace(tally.hard, constraint=replace(constraint, node_affinity_policy=HONOR))
        changes.append(("nodeAffinityPolicy", "nodeAffinityPolicy: Honor", "nodeAffinityPolicy: Honor", honoring))
    if not tally.limit.enough and constraint.min_domains < A_CAP:
        domains = tally.column.domain_count(tally.domains.counting)
        fewer = replace(tally.hard, constraint=replace(constraint, min_domains=domains))
        remedy = f"use minDomains: {domains}" if domains > 1 else "remove minDomains"
        changes.append(("minDomains", remedy, f"minDomains: {domains}", fewer))
    for field, remedy, fix, hard in changes:
        if case.fits(_with(case.places.hard, place, (hard,)), target):
            return field, remedy, fix
    if case.fits(_with(case.places.hard, place, ()), target):
        return ("whenUnsatisfiable", *softened(case, placed))
    return "whenUnsatisfiable", "", ""


def _with(hard: Sequence[Hard], place: int, instead: Collection[Hard]) -> tuple[Hard, ...]:
    return (*hard[:place], *instead, *hard[place + 1 :])
