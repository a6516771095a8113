"""Objects that the API server keeps and that nobody writes by accident: they hold up nobody else's."""

import json

import pytest
from e2e.injected import injecting
from e2e.objects import constraint, path, pod, workload
from e2e.registration import registered
from e2e.waiting import eventually

_DEEP = "deep"  # stands for what no JSON library of ours writes
_LEVELS = '{"f:a":' * 3000 + "{}" + "}" * 3000
_FIELDS = {
    "manager": "me",
    "operation": "Apply",
    "apiVersion": "v1",
    "time": "2026-11-21T00:00:00Z",
    "fieldsType": "FieldsV1",
    "fieldsV1": _DEEP,
}


@pytest.fixture(name="watching")
def _watching(plane, tmp_path):
    with injecting(plane, tmp_path) as webhook:
        yield webhook


def create(plane, namespace, made):
    """Send what is nested deeply where the object says so."""
    text = json.dumps(made).replace(f'"{_DEEP}"', _LEVELS)
    return plane.api.send("POST", path(made["kind"], namespace), text.encode())


def managed(made):
    made["metadata"]["managedFields"] = [_FIELDS]
    return made


def events(webhook):
    return webhook.metric("evenspread_cluster_events_total", 'resource="pods"')


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param(managed, id="managedFields"),
        pytest.param(lambda made: {**made, "spec": {**made["spec"], "other": _DEEP}}, id="a field of a Rollout"),
    ],
)
def test_a_fault_under_what_is_nested_deeply_is_denied(plane, namespace, strict, odd):
    with registered(plane, namespace, strict.server, policy="Ignore"):
        refused = create(plane, namespace, odd(workload("Rollout", "web", constraint(maxSkew=0))))
    assert (refused.status, "must be greater than zero" in refused.message) == (403, True)


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param(managed(pod("odd")), id="nested deeply"),
        pytest.param(
            pod("odd", containers=[{"name": "c", "image": "i", "env": [{"name": "X", "value": "<" * 1_450_000}]}]),
            id="six times as long in JSON",
        ),
    ],
)
def test_a_watch_goes_on_after_a_pod_that_is(plane, namespace, watching, odd):
    before = events(watching)
    assert create(plane, namespace, odd).status == 201
    assert plane.api.send("POST", path("Pod", namespace), pod("after")).status == 201

    eventually(lambda: events(watching) >= before + 2)
    assert "the watch failed" not in watching.log


def test_a_webhook_starts_beside_8_pods_of_9_mib(plane, namespace, tmp_path):
    for number in range(8):
        env = [{"name": "X", "value": "<" * 1_450_000}]
        made = pod(f"odd-{number}", containers=[{"name": "c", "image": "i", "env": env}])
        assert create(plane, namespace, made).status == 201
    with injecting(plane, tmp_path) as webhook:
        assert webhook.metric("evenspread_cluster_objects", 'resource="pods"') >= 8
