"""What a template declares is what its pods would have been given."""

import msgspec
import pytest
from build import defaulted, index, meta, namespace, node, owner, pod, service
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from strategies import defaults, needs_oracle, validated

from webhook.core.api.types import LabelSelector, PodTemplate
from webhook.core.api.version import RECORDED
from webhook.core.context import Context
from webhook.core.defaulting.injection import Injection, Skip, SkipReason
from webhook.core.pods_to_create.declared import declarable_constraints
from webhook.core.policy.policy import Policy
from webhook.core.workloads.kinds import traits
from webhook.core.workloads.workload import Template, Workload

SPEC = {"containers": [{"name": "c", "image": "i"}]}
SELECTED = {"own": "web"}  # kube-apiserver wants a selector, and the template's labels to match it
PAIRS = st.dictionaries(st.sampled_from(["app", "tier", "team"]), st.sampled_from("ab"), max_size=3)
REVISIONS = {"Deployment": "pod-template-hash", "Rollout": "rollouts-pod-template-hash", "StatefulSet": None}
VERSIONS = {"Deployment": "apps/v1", "Rollout": "argoproj.io/v1alpha1", "StatefulSet": "apps/v1"}


def text(pairs):
    return " ".join(f"{key}={value}" for key, value in pairs.items())


@st.composite
def workloads(draw):
    labels = draw(PAIRS)
    selected = {key: labels[key] for key in labels if draw(st.booleans())}
    kind = draw(st.sampled_from([*REVISIONS]))
    template = PodTemplate(metadata=meta("", labelled=text(labels)), spec=pod(draw(st.just(""))).spec)
    replicas = draw(st.integers(1, 4))
    return Workload(
        api_version=VERSIONS[kind],
        group=VERSIONS[kind].rpartition("/")[0],
        kind=kind,
        meta=meta("web"),
        traits=traits((VERSIONS[kind].rpartition("/")[0], kind)),
        templates=(Template(path="spec.template.", pod=template, replicas=replicas),),
        replicas=replicas,
        selector=LabelSelector(match_labels=selected or None),
        built_in=kind != "Rollout",
    )


def running(workload):
    """A pod as the real controllers make it, and its owners."""
    [template] = workload.templates
    revision = REVISIONS[workload.kind]
    select = text(workload.selector.match_labels or {})
    labels = text(template.pod.labels)
    top = owner(f"{workload.kind}/web", select, replicas=workload.replicas)
    if revision is None:
        return pod(labels, owner="StatefulSet/web"), (top,)
    below = owner("ReplicaSet/web-7d4", f"{select} {revision}=7d4", replicas=1, above=f"{workload.kind}/web")
    return pod(f"{labels} {revision}=7d4", owner="ReplicaSet/web-7d4"), (top, below)


@st.composite
def surroundings(draw):
    services = [service(f"s{i}", text(draw(PAIRS))) for i in range(draw(st.integers(0, 2)))]
    extra = draw(st.sampled_from([{}, {"karpenter__sh__nodepool": "x"}]))
    nodes = [node(f"n{i}", draw(st.sampled_from("abc")), **extra) for i in range(draw(st.integers(1, 3)))]
    return (namespace(), *services, *nodes)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(workloads(), defaults(), surroundings())
def test_declared_is_what_would_be_injected(workload, configured, around):
    policy = Policy(defaults=msgspec.structs.replace(configured, mode="observe"))
    declared = declarable_constraints(workload, "shop", Context(policy=policy, version=RECORDED, index=index(*around)))
    made, owners = running(workload)
    injected = defaulted(made, policy, index(*around, *owners))
    if declared == Skip(SkipReason.NOT_DECLARABLE):
        assert any("7d4" in repr(constraint) for constraint in injected.constraints)
    elif isinstance(declared, Skip):
        assert injected == declared
    else:
        assert isinstance(injected, Injection)
        assert injected.constraints == declared


@needs_oracle
@settings(max_examples=60, deadline=None, phases=[Phase.generate], suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(workloads(), defaults(), surroundings()), min_size=4, max_size=8))
def test_kube_apiserver_accepts_what_declares_it(cases):
    objects = []
    for workload, configured, around in cases:
        policy = Policy(defaults=msgspec.structs.replace(configured, mode="observe"))
        declared = declarable_constraints(
            workload, "shop", Context(policy=policy, version=RECORDED, index=index(*around))
        )
        for constraints in ([], [] if isinstance(declared, Skip) else msgspec.to_builtins(declared)):
            objects += [as_deployment(workload, constraints), as_pod(workload, constraints)]
    answers, refused = validated(objects)
    assert not any(refused), [(objects[place], answers[place]) for place, was in enumerate(refused) if was]


def as_deployment(workload, constraints):
    kind = "StatefulSet" if workload.kind == "StatefulSet" else "Deployment"
    labels = {**workload.templates[0].pod.labels, **SELECTED}
    spec = {**SPEC, "topologySpreadConstraints": constraints}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": SELECTED}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    }


def as_pod(workload, constraints):
    """What the controller makes of the template."""
    revision = REVISIONS[workload.kind]
    labels = {**workload.templates[0].pod.labels, **({revision: "7d4"} if revision else {})}
    spec = {**SPEC, "topologySpreadConstraints": constraints}
    metadata = {"name": "web-0", "namespace": "shop", "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
