"""Whatever is posted: an AdmissionReview with its uid, or a 4xx; in bounded time, and the process stays healthy."""

import contextlib
import json

import pytest
from fuzzing.targets import ENGINES, answered_or_refused
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from server.conftest import replies, server  # noqa: F401 a fixture

scalars = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=20)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4)
)
# Values where a template has them, so that what is generated gets past the envelope and into the rules.
fields = st.fixed_dictionaries(
    {},
    optional={
        "maxSkew": values,
        "topologyKey": values,
        "whenUnsatisfiable": st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]) | values,
        "labelSelector": st.dictionaries(st.sampled_from(["matchLabels", "matchExpressions"]), values) | values,
        "minDomains": values,
        "matchLabelKeys": values,
        "nodeTaintsPolicy": values,
    },
)
SELECTED = [{"matchLabels": {"app": "web"}}, {"matchExpressions": [{"key": "app", "operator": "Exists"}]}, {}, None]
selectors = st.sampled_from(SELECTED)
keys = st.sampled_from(["topology.kubernetes.io/zone", "kubernetes.io/hostname", "rack", ""])
# As it is written, but for a field or two.
nearly = st.fixed_dictionaries(
    {
        "maxSkew": st.integers(-1, 3),
        "topologyKey": keys,
        "whenUnsatisfiable": st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
    },
    optional={
        "labelSelector": selectors,
        "minDomains": st.integers(-1, 200_000),
        "matchLabelKeys": st.lists(st.sampled_from(["app", "pod-template-hash", "other"]), max_size=2),
        "nodeTaintsPolicy": st.sampled_from(["Honor", "Ignore", "other"]),
        "nodeAffinityPolicy": st.sampled_from(["Honor", "Ignore", "other"]),
    },
)
terms = st.lists(
    st.fixed_dictionaries(
        {}, optional={"topologyKey": keys, "labelSelector": selectors, "namespaceSelector": selectors}
    ),
    max_size=2,
)
near = st.fixed_dictionaries({}, optional={"requiredDuringSchedulingIgnoredDuringExecution": terms})
expressions = st.fixed_dictionaries(
    {"key": keys, "operator": st.sampled_from(["In", "NotIn", "Exists", "Gt", "other"])},
    optional={"values": st.lists(st.sampled_from(["a", "n1", "7"]), max_size=2)},
)
chosen = st.fixed_dictionaries(
    {},
    optional={
        "matchExpressions": st.lists(expressions, max_size=2),
        "matchFields": st.lists(expressions | st.just({"key": "metadata.name", "operator": "In", "values": ["n1"]})),
    },
)
required = st.fixed_dictionaries({"nodeSelectorTerms": st.lists(chosen, max_size=2)})
affinities = st.fixed_dictionaries(
    {},
    optional={
        "nodeAffinity": st.fixed_dictionaries({"requiredDuringSchedulingIgnoredDuringExecution": required}),
        "podAffinity": near,
        "podAntiAffinity": near,
    },
)
volumes = st.lists(
    st.fixed_dictionaries(
        {"name": st.just("v")},
        optional={
            "persistentVolumeClaim": st.fixed_dictionaries(
                {"claimName": st.sampled_from(["data", "lost", "none", ""])}
            ),
            "ephemeral": st.just({}),
            "awsElasticBlockStore": st.just({"volumeID": "x"}),
        },
    ),
    max_size=2,
)
containers = st.lists(
    st.fixed_dictionaries(
        {"name": st.just("c")},
        optional={
            "ports": st.just([{"containerPort": 80, "hostPort": 80}]),
            "resources": st.fixed_dictionaries(
                {"requests": st.dictionaries(st.sampled_from(["cpu", "gpu/x"]), st.sampled_from(["1", "-1", "9e9", 2]))}
            ),
        },
    ),
    max_size=2,
)
typed = {
    "affinity": affinities,
    "volumes": volumes,
    "containers": containers,
    "nodeSelector": st.dictionaries(keys, st.sampled_from(["a", "n1"]), max_size=1),
    "tolerations": st.sampled_from([[{"operator": "Exists"}], [{}], [{"key": "dedicated", "operator": "Exists"}]]),
    "schedulerName": st.sampled_from(["default-scheduler", "other", ""]),
    "nodeName": st.sampled_from(["", "n1", "gone"]),
}
# Beside constraints: of the right types, and odd all the same.
odd = st.fixed_dictionaries({}, optional=typed)
specs = st.fixed_dictionaries(
    {"topologySpreadConstraints": st.lists(nearly, min_size=1, max_size=3) | st.lists(fields | values, max_size=4)},
    optional={name: right | values for name, right in typed.items()},
)
metadata = st.fixed_dictionaries(
    {"labels": st.just({"app": "web"}) | values},
    optional={"annotations": st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=1) | values},
)
templates = st.fixed_dictionaries({"spec": specs | values}, optional={"metadata": metadata | values}) | values
objects = (
    st.fixed_dictionaries(
        {
            "spec": st.fixed_dictionaries(
                {"template": templates},
                optional={"replicas": st.integers(0, 9) | values, "selector": selectors | values},
            )
        },
        optional={"metadata": metadata | values},
    )
    | templates
    | values
)
KINDS = [
    ("", "v1", "Pod"),
    ("apps", "v1", "Deployment"),
    ("apps", "v1", "StatefulSet"),
    ("batch", "v1", "CronJob"),
    ("argoproj.io", "v1alpha1", "Rollout"),
    ("ray.io", "v1", "RayCluster"),
]
kinds = st.sampled_from(KINDS).map(lambda parts: dict(zip(("group", "version", "kind"), parts, strict=True)))
requests = st.fixed_dictionaries(
    {
        "uid": st.text(min_size=1, max_size=40),
        "kind": kinds,
        "operation": st.sampled_from(["CREATE", "UPDATE", "DELETE"]),
    },
    optional={
        "object": objects,
        "oldObject": objects,
        "name": values,
        "namespace": st.just("shop") | values,
        "dryRun": values,
    },
)
envelopes = st.fixed_dictionaries(
    {"apiVersion": st.just("admission.k8s.io/v1"), "kind": st.just("AdmissionReview"), "request": requests | values}
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    body=(envelopes | values).map(lambda value: json.dumps(value).encode()),
    route=st.sampled_from(["validate", "validate", "mutate"]),
    engine=st.sampled_from(ENGINES),
)
def test_any_json_is_answered_with_its_uid_or_refused(body, route, engine):
    answered_or_refused(body, route, engine)


heads = st.sampled_from(
    [b"", b"POST /validate HTTP/1.1\r\n", b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"]
)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(head=heads, rest=st.binary(max_size=400))
def test_any_bytes_leave_the_process_healthy(server, head, rest):  # noqa: F811 the fixture
    worker = server.worker
    with contextlib.suppress(OSError), server.connect(timeout=0.1) as connection:
        connection.sendall(head + rest)
        replies(connection)
    assert server.worker == worker
    assert server.get("/healthz") == (200, "ok\n")
