"""Whatever comes from outside is read or refused, in one of the ways that are promised, and soon.

Each target takes bytes. It raises for what must never be: another exception, an answer that is none, a second's work.
"""

import contextlib
import io
import json
import time

import msgspec
from build import ROOMY, autoscaler, constraint, declared, index, meta, namespace, node, owner, pod, running, service
from manifest import DENY, FIXED
from msgspec.structs import replace

from webhook.admission import Engine, answer
from webhook.admission_request import ReviewError, decode_review
from webhook.config import ConfigError, Loaded, parse_policy
from webhook.core.api.node_selectors import compile_required_nodes
from webhook.core.api.requirements import SelectorError
from webhook.core.api.selectors import compile_selector, valid_selector
from webhook.core.api.storage import Claim, PersistentVolume, Phase, StorageClass
from webhook.core.api.tolerations import first_untolerated
from webhook.core.api.types import (
    Affinity,
    ClaimSpec,
    LabelSelector,
    NodeSpec,
    NodeStatus,
    ObjectMeta,
    Taint,
    Toleration,
)
from webhook.core.api.version import RECORDED
from webhook.snapshot.load import SnapshotError, read_snapshot

TODAY = "2026-11-21"
MOST_SECONDS = 1.0  # of processor time
TAINTED = NodeSpec(taints=(Taint(key="dedicated", value="x", effect="NoSchedule"),))
CLUSTER = index(
    *(replace(node(f"n{number}", "ab"[number % 2]), status=NodeStatus(allocatable=ROOMY)) for number in range(4)),
    replace(node("n9", "c"), spec=TAINTED),
    node("bare"),
    *(running(f"p{number}", f"n{number}") for number in range(3)),
    running("alone", "n9", "app=web tier=x"),
    pod("app=web"),
    owner("Deployment/a", "app=web", declared("app=web", constraint(select="app=web")), replicas=3),
    owner("Deployment/b", "tier=x", declared("app=web tier=x", constraint(select="app=web", max_skew=2)), replicas=3),
    owner("ReplicaSet/a-1", "app=web", above="Deployment/a", replicas=3),
    *(service("web", "app=web"), service("none", None), service("all", "{}"), namespace()),
    autoscaler("Deployment/a", 9),
    Claim(metadata=meta("data"), spec=ClaimSpec(volume_name="disk"), status=Phase(phase="Bound")),
    Claim(metadata=meta("lost"), spec=ClaimSpec(volume_name="gone")),
    PersistentVolume(metadata=ObjectMeta(name="disk")),
    StorageClass(metadata=ObjectMeta(name="fast")),
)
ENGINES = [
    Engine(policy=DENY, version=RECORDED),
    Engine(policy=DENY, version=RECORDED, index=CLUSTER),
    Engine(policy=FIXED, version=RECORDED, index=CLUSTER),
]


def answered_or_refused(body, route, engine):
    """A review gets an answer with its uid, or a 400."""
    began = time.process_time()
    try:
        request = decode_review(body)
    except ReviewError as error:
        assert error.status == 400  # noqa: PT017 either outcome is right, each in its way
        return
    made = answer(route, request, engine, now=TODAY)
    assert time.process_time() - began < MOST_SECONDS
    assert not made.failed, made
    document = json.loads(made.body)
    assert (document["apiVersion"], document["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response = document["response"]
    assert response["uid"] == json.loads(body.decode(errors="replace"))["request"]["uid"]
    assert response["allowed"] or route == "validate"
    assert ("patch" in response) == ("patchType" in response)


def reviews(data):
    """An AdmissionReview, by both routes, without and with a cluster."""
    for engine in ENGINES:
        for route in ("validate", "mutate"):
            answered_or_refused(data, route, engine)


class Selecting(msgspec.Struct, rename="camel"):
    """What selects, and what it is tried on."""

    labels: dict[str, str] = {}
    label_selector: LabelSelector | None = None
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    taints: tuple[Taint, ...] = ()


def selectors(data):
    """Selectors of every kind: compiled and asked, or refused with a text."""
    try:
        asked = msgspec.json.decode(data, type=Selecting)
    except (ValueError, RecursionError):
        return
    valid = valid_selector(asked.label_selector)
    try:
        compiled = compile_selector(asked.label_selector)
    except SelectorError as error:
        assert (valid, str(error) != "") == (None, True)  # noqa: PT017 either outcome is right
    else:
        assert valid == compiled
        assert compiled.matches(asked.labels) in {True, False}
        assert bool(compiled.text) == bool(compiled.requirements)
    with contextlib.suppress(SelectorError):
        compile_required_nodes(asked.node_selector, asked.affinity)
    first_untolerated(asked.taints, asked.tolerations, ("NoSchedule", "NoExecute"))


def configuration(data):
    """A policy, or faults that say something."""
    try:
        made = parse_policy(data.decode("utf-8", "replace"), file="p", today=TODAY)
    except ConfigError as error:
        assert error.render()  # noqa: PT017 as above
    else:
        assert isinstance(made, Loaded)


_REVIEW = json.dumps(
    {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u",
            "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
            "operation": "CREATE",
            "namespace": "shop",
            "object": {
                "metadata": {"name": "web", "namespace": "shop"},
                "spec": {
                    "replicas": 3,
                    "selector": {"matchLabels": {"app": "web"}},
                    "template": {
                        "metadata": {"labels": {"app": "web"}},
                        "spec": {
                            "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
                            "topologySpreadConstraints": [
                                {
                                    "maxSkew": 1,
                                    "topologyKey": "topology.kubernetes.io/zone",
                                    "whenUnsatisfiable": "DoNotSchedule",
                                    "labelSelector": {"matchLabels": {"app": "web"}},
                                }
                            ],
                        },
                    },
                },
            },
        },
    }
).encode()


def snapshots(data):
    """A snapshot: refused with the place, or a cluster beside which a Deployment is judged."""
    began = time.process_time()
    try:
        loaded = read_snapshot(io.BufferedReader(io.BytesIO(data)), "s")
    except SnapshotError as error:
        assert str(error).startswith("s:")  # noqa: PT017 as above
        return
    assert time.process_time() - began < MOST_SECONDS
    answered_or_refused(_REVIEW, "validate", Engine(policy=DENY, version=RECORDED, index=loaded.index))


TARGETS = {each.__name__: each for each in (reviews, selectors, configuration, snapshots)}
