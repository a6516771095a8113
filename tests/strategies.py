"""Random pods, clusters and defaults for the properties of defaulting."""

import json
import os
import subprocess

import msgspec
import pytest
from build import API_VERSIONS, index, namespace, node, owner, service
from hypothesis import strategies as st

from webhook.core.api.types import SpreadConstraint
from webhook.core.policy.defaults import DefaultConstraint, Defaults, DefaultsOverride

ORACLE = os.environ.get("EVENSPREAD_ORACLE")
needs_oracle = pytest.mark.skipif(
    ORACLE is None, reason="EVENSPREAD_ORACLE names no oracle program (make conformance builds it)"
)
KEYS = ["app", "tier", "pod-template-hash", "controller-revision-hash"]
TOPOLOGY = ["topology.kubernetes.io/zone", "kubernetes.io/hostname", "example.com/rack"]
KNOWN_KINDS = ["ReplicaSet", "StatefulSet", "ReplicationController", "Job"]

label_maps = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(["a", "b"]), max_size=4)
label_texts = label_maps.map(lambda found: " ".join(f"{key}={value}" for key, value in found.items()))
nullable = st.none() | st.builds(dict)


@st.composite
def constraints(draw):
    """A constraint as a default or a pod may have it, without selector."""
    hard = draw(st.booleans())
    return SpreadConstraint(
        max_skew=draw(st.integers(1, 3)),
        topology_key=draw(st.sampled_from(TOPOLOGY)),
        when_unsatisfiable="DoNotSchedule" if hard else "ScheduleAnyway",
        min_domains=draw(st.none() | st.integers(1, 3)) if hard else None,
        match_label_keys=draw(st.none() | st.lists(st.sampled_from(KEYS), max_size=3).map(tuple)),
    )


def once(entries):
    """The last of each key and action, which Kubernetes wants unique."""
    return tuple({(entry.topology_key, entry.when_unsatisfiable): entry for entry in entries}.values())


@st.composite
def default_constraints(draw):
    return tuple(
        DefaultConstraint(constraint=entry, hard_when_domains=draw(st.none() | st.integers(1, 3)))
        for entry in once(draw(st.lists(constraints(), max_size=3)))
    )


@st.composite
def overrides(draw):
    least = draw(st.none() | st.integers(1, 4))
    return DefaultsOverride(name="o", min_replicas=least, default_constraints=draw(default_constraints()))


@st.composite
def defaults(draw):
    return Defaults(
        mode="inject",
        default_constraints=draw(default_constraints()),
        overrides=tuple(draw(st.lists(overrides(), max_size=2))),
        defaulting_type=draw(st.sampled_from(["List", "System"])),
        match_label_keys=draw(st.sampled_from(["auto", "off"])),
        fill_null_selector=draw(st.booleans()),
        owners=draw(st.sampled_from([(), (("example.com/v1", "Database"),)])),
        accept_node_growth=draw(st.booleans()),
    )


@st.composite
def clusters(draw):
    services = [service(f"s{i}", draw(label_texts)) for i in range(draw(st.integers(0, 2)))]
    kinds = [kind for kind in KNOWN_KINDS if draw(st.integers(0, 5))]
    owners = [owner(f"{kind}/o", draw(label_texts), replicas=draw(st.sampled_from([1, 2, 3, 3, 3]))) for kind in kinds]
    extra = draw(st.sampled_from([{}, {"karpenter__sh__nodepool": "x"}]))
    nodes = [node(f"n{i}", draw(st.sampled_from("abc")), **extra) for i in range(draw(st.integers(0, 3)))]
    return index(namespace(), *services, *owners, *nodes)


@st.composite
def metadatas(draw):
    metadata = {
        "name": "p",
        "namespace": "shop",
        "labels": draw(nullable | label_maps),
        "annotations": draw(nullable | st.builds(lambda: {"a/b-c": "d", "x": "ü"})),
    }
    kind = draw(st.sampled_from([None, *KNOWN_KINDS, *KNOWN_KINDS, "DaemonSet", "Database"]))
    if kind is not None:
        reference = {"apiVersion": API_VERSIONS[kind], "kind": kind, "name": "o", "uid": "u"}
        metadata["ownerReferences"] = [reference | {"controller": True}]
    return metadata


@st.composite
def raw_pods(draw):
    """A pod as JSON that kube-apiserver mostly accepts; its own constraints have a null selector or none."""
    spec = {"containers": [{"name": "c", "image": "i", "env": [{"name": "E", "value": "v"}]}]}
    own = draw(st.sampled_from(["absent", "absent", "null", "empty", "some"]))
    if own != "absent":
        some = [
            msgspec.structs.replace(entry, match_label_keys=None) for entry in draw(st.lists(constraints(), max_size=2))
        ]
        encoded = {"null": None, "empty": [], "some": json.loads(msgspec.json.encode(once(some)))}
        spec["topologySpreadConstraints"] = encoded[own]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": draw(metadatas()), "spec": spec}


def validated(objects):
    """What kube-apiserver answers to each object, and whether it refuses it; by the oracle."""
    lines = "\n".join(json.dumps({"id": str(place), "object": entry}) for place, entry in enumerate(objects))
    done = subprocess.run(  # noqa: S603 a program that whoever runs the tests has named
        [ORACLE, "validate"], input=lines, capture_output=True, text=True, check=True
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return answers, [bool(answer.get("errors") or answer.get("decodeError")) for answer in answers]
