"""What the other tests rely on: the API server's own words, and webhooks that are called when they should be."""

import json

import pytest
from e2e.double import answering, review, uid
from e2e.objects import constraint, path, pod, workload
from e2e.registration import registered
from e2e.waiting import eventually


def test_a_deployment_runs_on_the_fake_nodes(plane, namespace):
    plane.api.request("POST", path("Deployment", namespace), workload("Deployment", "web", constraint(), replicas=3))

    def zones():
        pods = plane.api.request("GET", path("Pod", namespace))["items"]
        return sorted(p["spec"]["nodeName"].split("-")[1] for p in pods if p["status"].get("phase") == "Running")

    eventually(lambda: zones() == ["a", "b", "c"])


@pytest.mark.parametrize(
    ("faulty", "calls"),
    [
        pytest.param(pod("web", constraint()), ["mutate", "validate"], id="a good pod: both routes"),
        pytest.param(pod("web", constraint(maxSkew=0)), ["mutate"], id="maxSkew 0: refused before the second route"),
    ],
)
def test_the_api_server_calls_the_registered_routes(plane, namespace, tmp_path, faulty, calls):
    seen = []

    def allow(body):
        seen.append(json.loads(body)["request"])
        return review({"uid": uid(body), "allowed": True})

    with answering(tmp_path, allow) as server, registered(plane, namespace, server):
        answer = plane.api.send("POST", path("Pod", namespace), faulty)

    pods = [request for request in seen if request["resource"]["resource"] == "pods" and "subResource" not in request]
    assert (len(pods), answer.status) == (len(calls), 201 if len(calls) == 2 else 422)
    assert "managedFields" in pods[0]["object"]["metadata"]


def test_no_webhook_is_called_after_its_configuration_is_gone(plane, namespace, tmp_path):
    seen = []

    def deny(body):
        seen.append(body)
        return review({"uid": uid(body), "allowed": False})

    with answering(tmp_path, deny) as server:
        with registered(plane, namespace, server):
            refused = plane.api.send("POST", path("Pod", namespace), pod("web"))
        seen.clear()
        accepted = plane.api.send("POST", path("Pod", namespace), pod("web"))

    assert (refused.status, accepted.status, seen) == (400, 201, [])
    assert refused.message == 'admission webhook "mutate.evenspread.io" denied the request without explanation'
