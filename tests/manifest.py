"""Manifests for tests, in a notation that shows at a glance what a rule sees.

A constraint is written ``zone hard 1 app=web``: key, action, maxSkew, selector. ``null`` and ``{}`` are selectors too;
``keys:a,b`` are matchLabelKeys, ``minDomains:3`` and the other fields as they are called.
"""

import json

from build import API_VERSIONS, labels
from msgspec.structs import replace

from webhook.core.api.version import KubernetesVersion
from webhook.core.budget import Budget
from webhook.core.context import Context
from webhook.core.policy.defaults import Defaults
from webhook.core.policy.policy import Annotations, Messages, Mode, Policy
from webhook.core.review.decision import AdmissionRequest
from webhook.core.review.examination import examine
from webhook.core.review.review import review

KEYS = {"zone": "topology.kubernetes.io/zone", "hostname": "kubernetes.io/hostname"}
ACTIONS = {"hard": "DoNotSchedule", "soft": "ScheduleAnyway"}
RECENT = KubernetesVersion(1, 37)
TODAY = "2026-11-21"
# What tests take for granted is said, so that another default of the policy fails the tests of that default alone.
PLAIN = Policy(
    ceiling=Mode.WARN,
    rules_version="1.0",
    capacity="auto",
    defaults=Defaults(mode="observe", default_constraints=(), match_label_keys="auto"),
    scheduler_names=("default-scheduler",),
    annotations=Annotations(exempt="warnings"),
    messages=Messages(detail="own-namespace"),
    max_staleness_seconds=60.0,
)
DENY = replace(PLAIN, ceiling=Mode.DENY)
FIXED, GROWING = replace(DENY, capacity="fixed"), replace(DENY, capacity="growing")


def constraint(text):
    key, action, max_skew, *rest = text.split()
    found = {"maxSkew": int(max_skew), "topologyKey": KEYS.get(key, key), "whenUnsatisfiable": ACTIONS[action]}
    pairs = labels(" ".join(part for part in rest if "=" in part))
    if pairs:
        found["labelSelector"] = {"matchLabels": pairs}
    for part in rest:
        name, _, value = part.partition(":")
        if part == "{}":
            found["labelSelector"] = {}
        elif name == "keys":
            found["matchLabelKeys"] = value.split(",")
        elif value and "=" not in part:
            found[name] = int(value) if value.isdigit() else value
    return found


def template(pod_labels, *constraints, **spec):
    written = [constraint(each) if isinstance(each, str) else each for each in constraints]
    return {
        "metadata": {"labels": labels(pod_labels)},
        "spec": {**({"topologySpreadConstraints": written} if written else {}), **spec},
    }


def pods_term(which, key, select="web"):
    """The spec of a pod with one required term: ``podAffinity`` or ``podAntiAffinity``, zone or hostname, an app."""
    term = {"topologyKey": KEYS[key], "labelSelector": {"matchLabels": {"app": select}}}
    return {"affinity": {which: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def workload(kind, pod_labels, *constraints, replicas=3, selector="app=web", meta=None, spec=None, **pod_spec):
    """An object of that kind; ``selector`` is its own spec.selector, ``pod_spec`` further fields of the pod spec."""
    pod = template(pod_labels, *constraints, **pod_spec)
    found = {"apiVersion": API_VERSIONS[kind], "kind": kind}
    named = {"name": "web", "namespace": "shop", **(meta or {})}
    if kind == "Pod":
        return {**found, "metadata": {**pod["metadata"], **named}, "spec": pod["spec"]}
    if kind == "CronJob":
        return {**found, "metadata": named, "spec": {"jobTemplate": {"spec": {"template": pod}}, **(spec or {})}}
    body = {"template": pod}
    if kind == "Job":
        body["parallelism"] = replicas
    elif kind != "DaemonSet":
        body["replicas"] = replicas
    if selector and kind not in {"Job", "ReplicationController"}:
        body["selector"] = {"matchLabels": labels(selector)}
    return {**found, "metadata": named, "spec": {**body, **(spec or {})}}


def web(*constraints, kind="Deployment", pods="app=web", **fields):
    """`workload` of pods with these labels."""
    return workload(kind, pods, *constraints, **fields)


def expression(**fields):
    """The fields of a constraint whose selector has this expression about the label tier."""
    return {"labelSelector": {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", **fields}]}}


def examined(manifest, policy=DENY, *, index=None, version=RECENT, now=TODAY):
    return examine(manifest, Context(policy=policy, index=index, version=version, now=now))


def judged_by(rule, manifest, policy=DENY, **kwargs):
    """The findings of one rule, each with its mode."""
    return [each for each in examined(manifest, policy, **kwargs).findings if each.finding.rule == rule]


def findings_of(rule, manifest, policy=DENY, **kwargs):
    """The findings of one rule."""
    return [each.finding for each in judged_by(rule, manifest, policy, **kwargs)]


def told(rule, manifest, index, policy=DENY, **kwargs):
    """The mode and the message of each finding of one rule: ``warn zone[0] …; remedy``."""
    return [
        f"{each.mode} {each.finding.summary}; {each.finding.remedy}".removesuffix("; ")
        for each in judged_by(rule, manifest, policy, index=index, **kwargs)
    ]


def findings(manifest, **kwargs):
    """What the rules say of a manifest, as ``(rule, mode, summary, remedy)``."""
    return [
        (each.finding.rule, str(each.mode), each.finding.summary, each.finding.remedy)
        for each in examined(manifest, **kwargs).findings
    ]


def said(rule, manifest, **kwargs):
    """What one rule says of a manifest: its summaries, or ``["not evaluated: …"]``."""
    found = examined(manifest, **kwargs)
    missing = [f"not evaluated: {each.missing}" for each in found.not_evaluated if each.rule == rule]
    return [each.finding.summary for each in found.findings if each.finding.rule == rule] + missing


def headline(decision):
    """The first line of what a denial says; None for what is allowed."""
    return None if decision.allowed else decision.message.partition("\n")[0]


def request(new, old=None, **fields):
    group, _, version = (new or old)["apiVersion"].rpartition("/")
    asked = {
        "uid": "u",
        "operation": "UPDATE" if old else "CREATE",
        "group": group,
        "version": version,
        "kind": (new or old)["kind"],
        "namespace": "shop",
        "name": "web",
        "object": json.dumps(new).encode() if new else None,
        "old_object": json.dumps(old).encode() if old else None,
    }
    return AdmissionRequest(**{**asked, **fields})


def ending_after(looks):
    """A clock that shows 0 until somebody has looked at it so many times, and then 1."""
    shown = iter([0.0] * looks)
    return lambda: next(shown, 1.0)


def decide(new, old=None, policy=DENY, *, index=None, version=RECENT, until=2.0, age=0.0, waited=True, **fields):
    context = Context(
        policy=policy,
        index=index,
        version=version,
        now=TODAY,
        budget=Budget(until=until),
        age=lambda: age,
    )
    return review(request(new, old, **fields), context, waited=waited)
