"""What node selector and affinity make of a constraint, as far as the object alone shows it: no cluster is asked.

Part of `spread-conflicts-affinity`.

    values of the key that the pods may use, n      n < minDomains: global minimum 0, at most n * maxSkew pods
                                                    n = 1: there is nothing to balance
    pods that must share a domain                   as n = 1, if this is the only domain; else at most maxSkew pods
    pods that must not share a domain               no domain ever has more than one of them

Where nodes are known, `affinity_conflicts` and `effect` look at them instead.
"""

from collections.abc import Iterator

from webhook.core.api.types import IGNORE
from webhook.core.rules.frame.own_pods import counts_itself
from webhook.core.rules.frame.pins import is_asked, pinned_values, shares_a_domain, who_pins
from webhook.core.rules.frame.rule import Finding, short_enough
from webhook.core.rules.frame.subject import Placed, Subject
from webhook.core.text import plural


def pinned_by_template(subject: Subject, rule: str) -> Iterator[Finding]:
    """The constraints that leave replicas without a place on every cluster, or on each that has two domains."""
    workload = subject.workload
    if not is_asked(subject) or not workload.traits.replicated or workload.suspended:
        return
    for placed in subject.placed:
        counted = placed.constraint.hard and counts_itself(placed.constraint, placed.template.template.labels)
        if counted and (finding := _too_many(rule, placed, subject)):
            yield finding


def _too_many(rule: str, placed: Placed, subject: Subject) -> Finding | None:
    constraint, template = placed.constraint, placed.template
    max_skew, noun = constraint.max_skew or 0, placed.noun
    stated, scaler = template.replicas, subject.scaler
    wanted = max(stated or 0, scaler.spec.max_replicas if scaler else 0)
    min_domains = constraint.min_domains or 1
    values = pinned_values(template, constraint.topology_key or "")
    is_bound = values is not None and 0 < len(values) < min_domains and constraint.node_affinity_policy != IGNORE
    is_shared = not is_bound and shares_a_domain(placed, subject.workload.selector)
    most = (len(values) if values and is_bound else 1) * max_skew
    if not (is_bound or is_shared) or max_skew < 1 or most >= wanted:
        return None
    given = "" if is_bound or min_domains > 1 else f"if there are two {noun}s, "
    if is_bound:
        domains = plural(most // max_skew, noun)
        short = f"{who_pins(template)} leaves {domains}"
        why = f"{short}, and minDomains is {min_domains}"
        remedy = "remove minDomains"
        cap = plural(max_skew, "pod")
        detail = f"with fewer eligible {noun}s than minDomains no {noun} may have more than {cap} (maxSkew)"
    else:
        short, why = "", f"pod affinity keeps all pods in one {noun}"
        remedy = "remove the constraint or the affinity"
        detail = f"the pods must share one {noun}, and it may have at most {plural(max_skew, 'pod')} above an empty one"
    return Finding(
        rule=rule,
        path=placed.path,
        summary=f"{given}at most {most} of {wanted} fit: {why}",
        remedy=remedy,
        warning=short_enough(rule, f"at most {most} of {wanted} fit: {short}; {remedy}") if short else "",
        detail=detail,
        fix=remedy,
        key=placed.key,
        # Of what an autoscaler may ask for one day nobody is bothered.
        warns=None if most < (stated or 0) else False,
    )
