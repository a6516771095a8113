"""Find constraints without effect, lost scheduler defaults, and missing constraints."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from webhook.core.api.types import HONOR, IGNORE, SpreadConstraint
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.api.written_selector import selected_keys
from webhook.core.index.key_suggestions import ON_EVERY_NODE, intended, meant_by_bare, namesake
from webhook.core.json_edits import Edit
from webhook.core.policy.capacity import can_add_nodes
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.fixes import Fix, removal
from webhook.core.rules.frame.own_pods import counts_itself, counts_own_pods_only
from webhook.core.rules.frame.pins import are_held, is_in_one_domain, nothing_to_balance
from webhook.core.rules.frame.rule import Finding, Need, Rule, RuleAnswer, Severity, guarded
from webhook.core.rules.frame.subject import Placed, Subject, placed_constraints
from webhook.core.rules.frame.usable_nodes import UsableNodes, usable_nodes_of
from webhook.core.scheduler.plugins.default_selector import pod_services
from webhook.core.scheduler.profile import DEFAULT_SCHEDULER, SYSTEM_CONSTRAINTS, DefaultingType
from webhook.core.text import constraint_name, plural, quoted
from webhook.core.workloads.controller_labels import may_be_added
from webhook.core.workloads.rollouts import surge_of
from webhook.core.workloads.workload import Template
from webhook.core.yaml_text import flow, plain

_SPREAD_KEYS = {HOSTNAME: "hostname", ZONE: "zone"}
_PLACES = {HOSTNAME: "nodes", ZONE: "zones"}
_SYSTEM = {each.topology_key: each for each in SYSTEM_CONSTRAINTS}
_SYSTEM_SKEWS = " and ".join(f"{name} with maxSkew {_SYSTEM[key].max_skew}" for key, name in _SPREAD_KEYS.items())
# With fewer replicas, any loss is a total loss.
_REPLICATED = 2

_REMOVED = "remove the constraint"
# Also the texts of admission policies.
REQUIRED_SUMMARY = "{replicas} declare neither spread constraints nor anti-affinity"
REQUIRED_REMEDY = "add topologySpreadConstraints for zone and hostname"


class _Why(NamedTuple):
    """The reason why a constraint has no effect, as texts of a finding.

    Attributes:
        summary: The reason in short.
        detail: The details.
        fix: The suggested change, by default to remove the constraint. Another change is needed if the removal would
            change the placement of pods.
    """

    summary: str
    detail: str
    fix: str = _REMOVED


def evaluate(subject: Subject) -> Iterator[RuleAnswer]:
    """Evaluate system-defaults-lost, spread-without-effect and spread-required."""
    workload = subject.workload
    for template in workload.templates:
        declared = template.pod.pod_spec.constraints
        if not declared and _is_required(subject):
            yield from guarded((SPREAD_REQUIRED,), _required, template, subject)
        elif declared and not _names_both(declared) and _is_spread_by_default(template, subject):
            yield from guarded((DEFAULTS_LOST,), _defaults_lost, template, subject)
    if subject.placed:
        yield from guarded((NO_EFFECT,), _without_effect, subject)


_note = partial(Rule, severity=Severity.LOW, mode=Mode.AUDIT, only_audits=True, evaluate=evaluate)
DEFAULTS_LOST = _note(
    id="system-defaults-lost",
    title="declaring a constraint turns off the scheduler's default spreading",
    why=(
        "By default, kube-scheduler prefers to spread pods without constraints over nodes and zones. If you declare "
        "only a zone constraint, all your pods of a zone can be on one node."
    ),
)
NO_EFFECT = _note(
    id="spread-without-effect",
    title="the constraint has no effect",
    why=(
        "The constraint never changes the placement of your pods. It suggests a safety you do not have, and it turns "
        "off the scheduler's default spreading."
    ),
    uses=(Need.NODES, Need.PODS),
)
SPREAD_REQUIRED = Rule(
    id="spread-required",
    title="the workload declares neither spread constraints nor anti-affinity",
    severity=Severity.MEDIUM,
    mode=Mode.OFF,
    why=(
        "Use this rule if your platform requires every replicated service to declare spreading. It is off by default."
    ),
    evaluate=evaluate,
    without_constraints=True,
)


def _is_required(subject: Subject) -> bool:
    return subject.workload.traits.serves and subject.policy.rules.get(SPREAD_REQUIRED.id, Mode.OFF) is not Mode.OFF


def _required(template: Template, subject: Subject) -> Iterator[Finding]:
    defaults = subject.policy.defaults
    injected = defaults.injects and bool(defaults.default_constraints or defaults.overrides)
    apart = template.pod.pod_spec.pod_anti_affinity
    if (template.replicas or 1) < _REPLICATED or injected or apart.required or apart.preferred:
        return
    yield Finding(
        rule=SPREAD_REQUIRED.id,
        path=f"{template.path}spec.topologySpreadConstraints",
        summary=REQUIRED_SUMMARY.format(replicas=plural(template.replicas or 1, "replica")),
        remedy=REQUIRED_REMEDY,
        detail="only the scheduler's default spreading, a preference, may put the replicas on several nodes",
        fix="add topologySpreadConstraints for topology.kubernetes.io/zone and kubernetes.io/hostname",
        key=template.path,
    )


def _is_spread_by_default(template: Template, subject: Subject) -> bool:
    name = template.pod.pod_spec.scheduler_name or DEFAULT_SCHEDULER
    for profile in subject.policy.scheduler_profiles:
        if profile.name == name and profile.defaulting_type == DefaultingType.LIST:
            return False
    kind = subject.workload.traits
    if kind.selecting or kind.in_replica_sets:
        return True
    namespace = subject.workload.meta.namespace
    return subject.index is not None and bool(pod_services(template.pod.labels, namespace, subject.index))


def _may_be_uneven(key: str, template: Template, subject: Subject) -> bool:
    """Whether the pods can use several domains of the key.

    Without known nodes, this is true unless the template pins the pods to one domain.
    """
    if (view := subject.nodes) is None:
        return not is_in_one_domain(template, key)
    column, usable = view.column(key), UsableNodes(subject, template).usable
    empty = sum(not column.with_value(name) & usable for name in subject.policy.domains.get(key, ()))
    return column.domain_count(usable) + empty > 1 or (key == HOSTNAME and can_add_nodes(subject.policy, view))


def _defaults_lost(template: Template, subject: Subject) -> Iterator[Finding]:
    missing = _lost_keys(template, subject)
    if not missing:
        return
    said = " and ".join(_SPREAD_KEYS[key] for key in missing)
    places = " and ".join(_PLACES[key] for key in missing)
    add = f"add a {said} constraint" if len(missing) == 1 else f"add {said} constraints"
    lost = f"default spreading across {places}" if len(missing) == 1 else "all default spreading"
    fix = _given_back(template, missing, subject)
    yield Finding(
        rule=DEFAULTS_LOST.id,
        path=f"{template.path}spec.topologySpreadConstraints",
        summary=f"declaring a constraint turns off the scheduler's default spreading across {places}",
        remedy=f"{add} with ScheduleAnyway",
        warning=f"pods lose {lost}; {add} with ScheduleAnyway",
        detail=f"no constraint uses {said}, and the scheduler applies its defaults (ScheduleAnyway, {_SYSTEM_SKEWS})"
        " only to pods without constraints",
        **fix.fields,
        key=template.path,
    )


def _names_both(constraints: Sequence[SpreadConstraint]) -> bool:
    return _SPREAD_KEYS.keys() <= {each.topology_key for each in constraints}


def _lost_keys(template: Template, subject: Subject) -> list[str]:
    # Without replicas Kubernetes runs a single pod, unless an autoscaler sets it.
    spec = template.pod.pod_spec
    if ((template.replicas or 1) < _REPLICATED and subject.scaler is None) or _names_both(spec.constraints):
        return []
    declared = (each.topology_key or "" for each in spec.constraints)
    apart = (each.topology_key or "" for each in spec.pod_anti_affinity.terms)
    keys = {*(_suggested_key(key, subject) for key in declared), *map(intended, apart)}
    return [key for key in _SPREAD_KEYS if key not in keys and _may_be_uneven(key, template, subject)]


def _suggested_key(key: str, subject: Subject) -> str:
    """Return the key that the topologyKey rules suggest instead of this key.

    Return this key if the rules suggest none. After the suggested correction, another constraint over the suggested key
    would be a duplicate.
    """
    if (meant := intended(key)) != key or key in subject.policy.domains:
        return meant
    if (view := subject.nodes) is None:
        return meant_by_bare(key) or key
    place = namesake(key)
    return place if key not in view.keys and place in view.keys else key


def _given_back(template: Template, missing: list[str], subject: Subject) -> Fix:
    """Return the fix that adds the scheduler's default constraints. It has no edits if a node lacks a topology key."""
    declared, labels = template.pod.pod_spec.constraints, template.pod.labels
    first, own = declared[0], subject.workload.selector
    selector = own if counts_itself(SpreadConstraint(label_selector=own), labels) else first.selector
    # kube-apiserver refuses a key in both places.
    asked = selected_keys(selector)
    keys = tuple(
        each
        for each in dict.fromkeys(first.match_label_keys or ())
        if each not in asked and (each in labels or may_be_added(subject.workload, each, in_template=False))
    )
    added = [replace(_SYSTEM[key], label_selector=selector, match_label_keys=keys or None) for key in missing]
    if not counts_itself(added[0], labels):
        over = " and ".join(missing)
        return Fix(f"add a ScheduleAnyway constraint over {over} with a labelSelector that matches these pods")
    text = " and ".join(f"add {flow(each)}" for each in added)
    if lacking := [key for key in missing if not _is_everywhere(key, subject)]:
        unknown = "; evenspread does not know your nodes" if subject.index is None else ""
        absent = " and ".join(lacking)
        return Fix(text, by_hand=f"the scheduler would then prefer nodes with the label {absent}{unknown}")
    path = f"{template.path}spec.topologySpreadConstraints"
    return Fix(text, tuple(Edit(f"{path}[{place}]", plain(each)) for place, each in enumerate(added, len(declared))))


def _without_effect(subject: Subject) -> Iterator[Finding]:
    idle = _idle_constraints(subject)
    for placed, why in idle:
        fix = removal(placed) if _is_free_to_go(placed, subject, len(idle)) else Fix(why.fix)
        remedy = "remove it" if fix.text == _REMOVED else fix.text.partition(",")[0]
        yield NO_EFFECT.finding(
            placed, "", fix, summary=f"{placed.name} {why.summary}", remedy=remedy, detail=why.detail
        )


def _idle_constraints(subject: Subject) -> list[tuple[Placed, _Why]]:
    reasons: list[tuple[Placed, _Why | None]]
    if subject.workload.traits.on_every_node:
        reasons = [(placed, _on_its_node(placed, subject)) for placed in subject.placed]
    else:
        single, held = _single_domains(subject), are_held(subject.workload)
        reasons = []
        for number, placed in enumerate(subject.placed):
            pinned = nothing_to_balance(placed, subject) if held and number not in single else None
            why = single.get(number) or (pinned and _Why(*pinned)) or _too_few(placed, subject)
            reasons.append((placed, why or _implied(placed, subject)))
    return [(placed, why) for placed, why in reasons if why is not None]


def _implied(placed: Placed, subject: Subject) -> _Why | None:
    """Return why a soft constraint has no effect next to a hard constraint. None if it may have an effect.

    With maxSkew 1, the hard constraint admits only domains with the fewest pods, so their soft scores are equal. Both
    constraints must count the same pods on the same nodes. Over other keys than hostname, every node must therefore
    have the keys of all constraints.
    Source: podtopologyspread filtering.go ``Filter``, scoring.go ``Score``, common.go ``matchNodeInclusionPolicies``.
    """
    key, every = placed.constraint.topology_key or "", placed.template.pod.pod_spec.constraints
    others = {each.topology_key or "" for each in every} - {key, HOSTNAME}
    if placed.constraint.hard or (key != HOSTNAME and not all(_is_everywhere(each, subject) for each in others)):
        return None
    labels, counted = placed.template.pod.labels, _counted(placed.constraint)
    for number, each in enumerate(every):
        alike = each.hard and each.max_skew == 1 and each.topology_key == key and _counted(each) == counted
        if alike and counts_itself(each, labels):
            name, more = constraint_name(key, number), sum(not each.hard for each in every) > 1
            beside = "; it only lowers the weight of the other ScheduleAnyway constraints" if more else ""
            return _Why(
                f"adds nothing: {name} already allows only {placed.noun}s with the fewest pods",
                f"{name} (DoNotSchedule, maxSkew 1) counts the same pods and admits only {placed.noun}s with the fewest"
                f" pods; their counts are equal, so ScheduleAnyway prefers none of them{beside}",
            )
    return None


def _counted(constraint: SpreadConstraint) -> tuple[object, ...]:
    policies = constraint.node_affinity_policy or HONOR, constraint.node_taints_policy or IGNORE
    return (constraint.selector, frozenset(constraint.match_label_keys or ()), *policies)


def _is_free_to_go(placed: Placed, subject: Subject, idle: int) -> bool:
    """Whether the constraint can be removed without side effects.

    The removal must cause no new finding of the rules in this module. Removing a hard constraint must not admit nodes
    without its topology key. ``idle`` is the number of constraints without effect before the removal.
    """
    if placed.constraint.hard and not _is_everywhere(placed.constraint.topology_key or "", subject):
        return False
    template = placed.template
    spec = template.pod.pod_spec
    rest = tuple(each for number, each in enumerate(spec.constraints) if number != placed.index)
    without = replace(template, pod=replace(template.pod, spec=replace(spec, topology_spread_constraints=rest or None)))
    # Without constraints the scheduler's defaults apply again, so nothing is lost unless the platform requires a
    # constraint.
    if not rest:
        return not (_is_required(subject) and any(_required(without, subject)))
    if _is_spread_by_default(without, subject) and {*_lost_keys(without, subject)} - {*_lost_keys(template, subject)}:
        return False
    templates = tuple(without if each is template else each for each in subject.workload.templates)
    workload = replace(subject.workload, templates=templates)
    return len(_idle_constraints(replace(subject, workload=workload, placed=placed_constraints(workload)))) < idle


def _is_everywhere(key: str, subject: Subject) -> bool:
    """Whether every node has the key. Without a cluster, only the hostname is certain."""
    if (view := subject.nodes) is None:
        return key == HOSTNAME
    return view.column(key).present == view.live and (key in ON_EVERY_NODE or not can_add_nodes(subject.policy, view))


def _on_its_node(placed: Placed, subject: Subject) -> _Why | None:
    """Return why a DaemonSet's constraint has no effect. None if it may have an effect.

    Only the pod's own node counts, unless nodeAffinityPolicy is Ignore.
    Source: daemon/util/daemonset_util.go ``ReplaceDaemonSetPodNodeNameNodeAffinity``; scoring is skipped for one node.
    """
    constraint = placed.constraint
    # Then only the pod's own node counts, so no other domain can be emptier.
    alone = constraint.node_affinity_policy != IGNORE and (constraint.min_domains or 1) == 1
    if constraint.hard and (not alone or (constraint.max_skew or 0) < 1 or not _has_the_key(placed, subject)):
        return None
    return _Why(
        "has no effect: a DaemonSet puts one pod on each node",
        "node affinity ties each pod of a DaemonSet to its node, so the scheduler considers and counts no other node",
    )


def _has_the_key(placed: Placed, subject: Subject) -> bool:
    key, view = placed.constraint.topology_key or "", subject.nodes
    if _is_everywhere(key, subject):
        return True
    if view is None:
        return False
    ground = UsableNodes(subject, placed.template)
    used = ground.usable & ground.tolerated_later
    grown = key not in ON_EVERY_NODE and can_add_nodes(subject.policy, view)
    return not grown and bool(used) and not used & ~view.column(key).present


def _single_domains(subject: Subject) -> Mapping[int, _Why]:
    """Return why constraints have no effect if all usable nodes are in one domain.

    The keys are the constraints' indices. A constraint is left out if a usable node lacks its topology key, because it
    then has an effect. If the pod has several constraints, it is also left out if any node of the cluster lacks the
    key.
    """
    if (view := subject.nodes) is None or can_add_nodes(subject.policy, view):
        return {}
    found = {}
    for number, (placed, ground) in enumerate(subject.while_time_is_left(usable_nodes_of(subject))):
        if (placed.constraint.min_domains or 1) > 1 or ground.domains(placed) != 1 or not ground.open:
            continue
        column = view.column(placed.constraint.topology_key or "")
        alone = len(placed.template.pod.pod_spec.constraints) == 1
        used = ground.usable & ground.tolerated_later
        if not (used if alone else view.live) & ~column.present:
            found[number] = _one_domain(placed, usable="" if len(column.values) == 1 else "usable ")
    return found


def _one_domain(placed: Placed, *, usable: str) -> _Why:
    which, noun = "every node with the label" if not usable else "every usable node", placed.noun
    where = "there is only one usable node" if noun == "node" else f"all {usable}nodes are in one {noun}"
    return _Why(
        f"has no effect: {where}", f"{which} has the same value of {quoted(placed.constraint.topology_key or '')}"
    )


def _too_few(placed: Placed, subject: Subject) -> _Why | None:
    """Return why a constraint has no effect: its pods are too few to exceed maxSkew.

    Returns None if the constraint also counts other workloads' pods, or the pods may be enough.
    """
    workload = subject.workload
    replicas, max_skew = placed.template.replicas or 0, placed.constraint.max_skew or 0
    # The usual answers first: without a rolling update's further pods there are too many already.
    enough = max_skew < replicas if placed.constraint.hard else replicas > 1
    if (
        enough
        or min(replicas, max_skew) < 1
        or not workload.traits.serves
        or subject.scaler is not None
        or not counts_own_pods_only(placed.constraint.selector, workload.selector)
    ):
        return None
    # Old and new pods count together during a rollout. Kinds with unknown strategies may double their pods.
    surges = workload.traits.surges
    most = replicas + (surge_of(workload.strategy, replicas) if surges else replicas if surges is None else 0)
    # A soft constraint prefers another domain as soon as a pod exists, even a pod being replaced.
    if (max_skew < most) if placed.constraint.hard else most > 1:
        return None
    everywhere = _is_everywhere(placed.constraint.topology_key or "", subject)
    if replicas == 1:
        # A chart with a single replica is made for more.
        if not everywhere or subject.lacks("horizontalpodautoscalers"):
            return None
        return _Why("has no effect on a single replica", "a single pod cannot spread, and no autoscaler adds replicas")
    if (placed.constraint.min_domains or 1) > 1 or _running_pods(subject) > most:
        return None
    what, rest = (
        ("has no effect", "")
        if everywhere
        else ("does not spread the pods", "; the constraint only keeps pods off nodes without the key")
    )
    return _Why(
        f"{what}: {plural(replicas, 'replica')} cannot exceed maxSkew {max_skew}",
        f"at most {plural(most, 'pod')} exist at a time, so the skew between two {placed.noun}s never exceeds"
        f" {max_skew}{rest}",
        "lower its maxSkew, or remove the constraint",
    )


def _running_pods(subject: Subject) -> int:
    own, index = subject.own_selector, subject.index
    if own is None or index is None or subject.lacks("pods"):
        return 0
    return sum(index.pods.count(subject.workload.meta.namespace, own).values())
