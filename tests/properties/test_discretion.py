"""Whatever is asked: messages name nothing of the cluster that `messages.detail` keeps back."""

import json
from collections import Counter

import pytest
from build import ROOMY, constraint, declared, index, meta, namespace, node, owner, running
from core.rules.pages import NEED_CLUSTER
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from properties.test_any_body import nearly, odd

from webhook.admission import Engine, answer
from webhook.admission_request import decode_review
from webhook.core.api.storage import Claim, ClaimReference, PersistentVolume, PersistentVolumeSpec, Phase
from webhook.core.api.types import ClaimSpec, NodeSpec, NodeStatus, ObjectMeta, Taint
from webhook.core.api.version import RECORDED
from webhook.core.policy.policy import Messages, Mode, Policy
from webhook.core.rules.rule_set import RULES

TAINTED = NodeSpec(taints=(Taint(key="dedicated", value="x", effect="NoSchedule"),))
KEYS = {"key-hush.io/rack": "1", "example.com/room": "1"}
OF_OTHERS = declared("app=web", constraint(select="app=web", max_skew=2))
CLUSTER = index(
    *(
        replace(node(f"host-hush-{number}", f"zone-hush-{number % 2}", **KEYS), status=NodeStatus(allocatable=ROOMY))
        for number in range(3)
    ),
    replace(node("host-hush-9", "zone-hush-c"), spec=TAINTED),
    node("host-hush-bare"),
    *(running(f"pod-hush-{number}", "host-hush-0", "app=web tier=x") for number in range(3)),
    *(running(f"own-hush-{number}", "host-hush-2", "app=web own=1") for number in range(2)),
    running("pod-hush-elsewhere", "host-hush-1", "app=web", namespace="namespace-hush"),
    owner("Deployment/other-hush", "tier=x", OF_OTHERS, replicas=3),
    *(namespace(), namespace("namespace-hush")),
    Claim(metadata=meta("data"), spec=ClaimSpec(volume_name="volume-hush"), status=Phase(phase="Bound")),
    PersistentVolume(
        metadata=ObjectMeta(name="volume-hush", labels={"topology.kubernetes.io/zone": "zone-hush-0"}),
        spec=PersistentVolumeSpec(claim_ref=ClaimReference(namespace="shop", name="data")),
    ),
)
KEPT_BACK = {
    "full": (),
    "own-namespace": ("host-hush", "namespace-hush", "pod-hush", "other-hush", "key-hush", "example.com/room"),
    "minimal": ("hush", "example.com/room"),
}
ALL = {rule.id: Mode.DENY for rule in RULES}

right = st.fixed_dictionaries(
    {
        "maxSkew": st.integers(1, 2),
        # Two more that no node has: nodes have one with the same last part, and one a letter away.
        "topologyKey": st.sampled_from(
            [*["topology.kubernetes.io/zone", "kubernetes.io/hostname"] * 3, "mine.io/rack", "example.com/roow"]
        ),
        "whenUnsatisfiable": st.sampled_from(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"]),
        "labelSelector": st.just({"matchLabels": {"app": "web"}}),
    },
    optional={"minDomains": st.integers(2, 9)},
)
manifests = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["Pod", "Deployment", "StatefulSet"]),
        "spread": st.lists(right, min_size=1, max_size=2) | st.lists(right | nearly, min_size=1, max_size=3),
        "rest": st.just({}) | odd,
        "replicas": st.integers(2, 12),
    }
)


def body(written):
    """A review of the object that these parts make."""
    template = {"metadata": {"labels": {"app": "web"}}}
    template["spec"] = {**written["rest"], "topologySpreadConstraints": written["spread"]}
    group = "" if written["kind"] == "Pod" else "apps"
    made = {"metadata": {"name": "web", "namespace": "shop"}}
    if group:
        made["spec"] = {"replicas": written["replicas"], "template": template}
        made["spec"]["selector"] = {"matchLabels": {"app": "web", "own": "1"}}
        template["metadata"]["labels"]["own"] = "1"
    else:
        made = {**template, "metadata": {**template["metadata"], **made["metadata"]}}
    kind = {"group": group, "version": "v1", "kind": written["kind"]}
    asked = {"uid": "u", "kind": kind, "operation": "CREATE", "namespace": "shop", "object": made}
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}).encode()


def said(raw, detail, ceiling):
    """What a user hears, as one text, and the rules that spoke."""
    policy = Policy(ceiling=ceiling, rules=ALL, capacity="fixed", messages=Messages(detail=detail))
    engine = Engine(policy=policy, version=RECORDED, index=CLUSTER)
    made = answer("validate", decode_review(raw), engine, now="2026-11-21")
    response = json.loads(made.body)["response"]
    assert not made.failed
    notes = response.get("auditAnnotations", {}).values()
    words = [*response.get("warnings", ()), response.get("status", {}).get("message", ""), *notes]
    return "\n".join(words), {each.finding.rule for each in made.decision.findings}


@pytest.mark.parametrize("detail", KEPT_BACK)
@pytest.mark.slow
def test_messages_name_no_more_than_they_may(detail):
    spoke, named = Counter(), Counter()

    @settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(manifests, st.sampled_from([Mode.WARN, Mode.DENY]))
    def holds(written, ceiling):
        text, rules = said(body(written), detail, ceiling)
        spoke.update(rules & NEED_CLUSTER)
        named["hush" in text] += 1
        for word in KEPT_BACK[detail]:
            assert word not in text

    holds()
    assert len(spoke) > 5, "rules that look at the cluster are asked"
    assert bool(named[True]) is (detail != "minimal"), "names there are to be kept back"
