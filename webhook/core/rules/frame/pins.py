"""The effect of a pod template's node selector and affinity on a constraint.

These rules read only the template, not the cluster.

    n values of the topology key are allowed        n < minDomains: global minimum 0, at most n * maxSkew pods
                                                    n = 1: there is nothing to balance
    all pods must share a domain                    the only domain: as for n = 1. Otherwise the other domains stay
                                                    empty, so at most maxSkew pods
    no two pods may share a domain                  no domain ever has more than one of these pods

If the nodes are known, the placement rules check the nodes instead.
"""

from collections.abc import Iterator

from webhook.core.api.node_selectors import values_in
from webhook.core.api.selectors import valid_selector
from webhook.core.api.types import IGNORE, LabelSelector, NodeSelectorTerm, PodAffinityTerm, SpreadConstraint
from webhook.core.api.well_known import HOSTNAME
from webhook.core.index.key_suggestions import intended, meant_by_bare
from webhook.core.rules.frame.own_pods import counts_itself, counts_own_pods_only
from webhook.core.rules.frame.rule import Finding, short_enough
from webhook.core.rules.frame.subject import Placed, Subject
from webhook.core.spelling import with_article
from webhook.core.text import plural, quoted
from webhook.core.workloads.workload import Template, Workload


def nothing_to_balance(placed: Placed, subject: Subject) -> tuple[str, str] | None:
    """Return why a constraint has no effect, as a short and a full text. None if it may have an effect."""
    template, constraint = placed.template, placed.constraint
    if not _is_held(template) or (constraint.max_skew or 0) < 1 or not _is_asked(subject):
        return None
    noun, few = placed.noun, (constraint.min_domains or 1) <= 1
    values = _pinned_values(template, constraint.topology_key or "")
    if few and values is not None and len(values) == 1 and constraint.node_affinity_policy != IGNORE:
        value = quoted(next(iter(values)), 40)
        return (
            f"has no effect: all pods go to one {noun}",
            f"{_who_pins(template)} allows only {noun} {value}, so there is nothing to spread over",
        )
    own = subject.workload.selector
    if few and not constraint.hard and _shares_a_domain(placed, own) and counts_own_pods_only(constraint.selector, own):
        return (
            f"has no effect: pod affinity keeps the pods in one {noun}",
            f"pods that must share {with_article(noun)} cannot spread, and ScheduleAnyway is only a preference",
        )
    if _is_apart(placed):
        beyond = "" if constraint.topology_key == HOSTNAME else "; it only keeps pods off nodes without the label"
        return (
            f"adds nothing: anti-affinity already allows only one pod per {noun}",
            f"no {noun} ever has more than one of these pods, so the skew never exceeds 1{beyond}",
        )
    return None


def pinned_by_template(subject: Subject, rule: str) -> Iterator[Finding]:
    """Yield a finding for each hard constraint that leaves replicas Pending.

    The template's node selector or affinity allows too few domains. The finding holds for every cluster with at least
    two domains.
    """
    workload = subject.workload
    held = [placed for placed in subject.placed if _is_held(placed.template)]
    if not held or not _is_asked(subject) or not workload.traits.replicated or workload.suspended:
        return
    for placed in held:
        counted = placed.constraint.hard and counts_itself(placed.constraint, placed.template.pod.labels)
        if counted and (finding := _too_many(rule, placed, subject)):
            yield finding


def _too_many(rule: str, placed: Placed, subject: Subject) -> Finding | None:
    constraint, template = placed.constraint, placed.template
    max_skew, noun = constraint.max_skew or 0, placed.noun
    stated, scaler = template.replicas, subject.scaler
    wanted = max(stated or 0, scaler.spec.max_replicas if scaler else 0)
    min_domains = constraint.min_domains or 1
    values = _pinned_values(template, constraint.topology_key or "")
    is_bound = values is not None and 0 < len(values) < min_domains and constraint.node_affinity_policy != IGNORE
    is_shared = not is_bound and _shares_a_domain(placed, subject.workload.selector)
    most = (len(values) if values and is_bound else 1) * max_skew
    if not (is_bound or is_shared) or max_skew < 1 or most >= wanted:
        return None
    given, short, cap = "", "", plural(max_skew, "pod")
    if is_bound:
        short = f"{_who_pins(template)} allows {plural(most // max_skew, noun)}"
        why, remedy = f"{short}, and minDomains is {min_domains}", "remove minDomains"
        detail = f"with fewer eligible {noun}s than minDomains, maxSkew limits each {noun} to {cap}"
    else:
        given = "" if min_domains > 1 else f"if there are two {noun}s, "
        why, remedy = f"pod affinity keeps all pods in one {noun}", "remove the constraint or the affinity"
        detail = f"the pods must share one {noun}, and maxSkew allows at most {cap} more than in an empty {noun}"
    return Finding(
        rule=rule,
        path=placed.path,
        summary=f"{given}at most {most} of {wanted} fit: {why}",
        remedy=remedy,
        warning=short_enough(rule, f"at most {most} of {wanted} fit: {short}; {remedy}") if short else "",
        detail=detail,
        fix=remedy,
        key=placed.key,
        # Possible replicas of an autoscaler are no reason to warn.
        warns=None if most < (stated or 0) else False,
    )


def _is_asked(subject: Subject) -> bool:
    """Whether the nodes are unknown. With known nodes, placement rules report how many pods fit."""
    return subject.index is None or bool(subject.index.lacks("nodes"))


def are_held(workload: Workload) -> bool:
    """Whether node selector or affinity restricts the workload's pods. Most workloads have neither."""
    return any(map(_is_held, workload.templates))


def _is_held(template: Template) -> bool:
    spec = template.pod.pod_spec
    return bool(spec.node_selector) or spec.affinity is not None


def _who_pins(template: Template) -> str:
    return "node selector" if template.pod.pod_spec.node_selector else "node affinity"


def _pinned_values(template: Template, key: str) -> frozenset[str] | None:
    """Return the values of a node label allowed by the pod's node selection.

    Node selection is the node selector and the required node affinity. None if they do not restrict the label.
    """
    spec = template.pod.pod_spec
    value = (spec.node_selector or {}).get(key)
    values = None if value is None else frozenset({value})
    if spec.node_terms is not None:
        # A term without requirements matches no node.
        allowed = [values_in(each.match_expressions, key) for each in spec.node_terms if each != NodeSelectorTerm()]
        if all(each is not None for each in allowed):
            union = frozenset(each for some in allowed for each in some or ())
            values = union if values is None else values & union
    return values


def is_in_one_domain(template: Template, key: str) -> bool:
    """Whether the node selection allows only one value of the label key.

    The node selection is the node selector and the required node affinity. Misspelt, deprecated and unprefixed names of
    the key count too.
    """
    spec = template.pod.pod_spec
    named = {*(spec.node_selector or ())}
    named.update(each.key for term in spec.node_terms or () for each in term.match_expressions or ())
    names = (each for each in named if key in {each, intended(each), meant_by_bare(each)})
    return any(len(values) == 1 for name in names if (values := _pinned_values(template, name)) is not None)


def _shares_a_domain(placed: Placed, own: LabelSelector | None) -> bool:
    """Whether required pod affinity puts all the workload's pods into one domain.

    The term and the constraint must have the same topologyKey. Only a term that matches the workload's own pods, and no
    other workload's pods, counts.
    """
    labels = placed.template.pod.labels
    return any(
        _is_here(term, placed.constraint)
        and counts_own_pods_only(term.label_selector, own)
        and (selector := valid_selector(term.label_selector)) is not None
        and selector.matches(labels)
        for term in placed.template.pod.pod_spec.pod_affinity.required or ()
    )


def _is_apart(placed: Placed) -> bool:
    selector = placed.constraint.selector
    return any(
        _is_here(term, placed.constraint) and counts_own_pods_only(selector, term.label_selector)
        for term in placed.template.pod.pod_spec.pod_anti_affinity.required or ()
    )


def _is_here(term: PodAffinityTerm, constraint: SpreadConstraint) -> bool:
    """Whether the term has the constraint's key, and covers only the pod's namespace.

    The term must also match pods of all revisions: it has no matchLabelKeys or mismatchLabelKeys.
    """
    elsewhere = term.namespaces or term.namespace_selector is not None
    return (
        term.topology_key == constraint.topology_key
        and not elsewhere
        and not (term.match_label_keys or term.mismatch_label_keys)
    )
