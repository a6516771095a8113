"""Whatever is posted: an AdmissionReview with its uid, or a 4xx; in bounded time, and the process stays healthy."""

import contextlib
import json
import time

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from server.conftest import replies, server  # noqa: F401 a fixture

from webhook.admission import Engine, ReviewError, answer, decode
from webhook.core.policy import Mode, Policy
from webhook.core.version import RECORDED

ENGINE = Engine(policy=Policy(ceiling=Mode.DENY), version=RECORDED)

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
specs = st.fixed_dictionaries(
    {}, optional={"topologySpreadConstraints": st.lists(fields | values, max_size=4) | values}
)
templates = st.fixed_dictionaries({"spec": specs | values}, optional={"metadata": values}) | values
objects = (
    st.fixed_dictionaries(
        {"spec": st.fixed_dictionaries({"template": templates}, optional={"replicas": values, "selector": values})},
        optional={"metadata": values},
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
    optional={"object": objects, "oldObject": objects, "name": values, "namespace": values, "dryRun": values},
)
envelopes = st.fixed_dictionaries(
    {"apiVersion": st.just("admission.k8s.io/v1"), "kind": st.just("AdmissionReview"), "request": requests | values}
)


@settings(max_examples=300, deadline=None)
@given(
    body=(envelopes | values).map(lambda value: json.dumps(value).encode()),
    route=st.sampled_from(["validate", "mutate"]),
)
def test_any_json_is_answered_with_its_uid_or_refused(body, route):
    began = time.process_time()
    try:
        request = decode(body)
    except ReviewError as error:
        assert error.status == 400  # noqa: PT017 either outcome is right, each in its way
        return
    made = answer(route, request, ENGINE, today="2026-11-21", remaining=lambda: 1.0)
    assert time.process_time() - began < 1.0
    assert not made.failed, made
    document = json.loads(made.body)
    assert (document["apiVersion"], document["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response = document["response"]
    assert response["uid"] == json.loads(body)["request"]["uid"]
    assert response["allowed"] or route == "validate"
    assert ("patch" in response) == ("patchType" in response)


heads = st.sampled_from(
    [b"", b"POST /validate HTTP/1.1\r\n", b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"]
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(head=heads, rest=st.binary(max_size=400))
def test_any_bytes_leave_the_process_healthy(server, head, rest):  # noqa: F811 the fixture
    worker = server.worker
    with contextlib.suppress(OSError), server.connect(timeout=0.1) as connection:
        connection.sendall(head + rest)
        replies(connection)
    assert server.worker == worker
    assert server.get("/healthz") == (200, "ok\n")
