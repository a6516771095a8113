"""The server beside a live cluster: it answers from it, and from what was known when it is lost."""

import base64
import json
import threading

import pytest
from cluster.api import FakeApi, refuse
from cluster.following import eventually
from server.conftest import posted, read_reply, serving

POLICY = """
apiVersion: config.evenspread.io/v1alpha1
kind: SpreadPolicy
defaults:
  mode: inject
  defaultConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}]
"""
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": {"app": "web"}}, "spec": {}}


@pytest.fixture(name="api")
def _api():
    with FakeApi() as api:
        for zone in "ab":
            api.put("nodes", f"node-{zone}", metadata={"labels": {"topology.kubernetes.io/zone": zone}})
        api.put("services", "web", "shop", spec={"selector": {"app": "web"}})
        yield api


@pytest.fixture(name="flags")
def _flags(api, tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    return "--kubeconfig", api.kubeconfig(tmp_path), "--no-register", "--config", str(policy)


def patch(server):
    """What a fresh pod of the namespace gets."""
    request = {"uid": "u", "kind": {"version": "v1", "kind": "Pod"}, "operation": "CREATE", "namespace": "shop"}
    document = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {**request, "object": POD}}
    with server.connect() as connection, connection.makefile("rb") as stream:
        connection.sendall(posted(json.dumps(document).encode(), "/mutate?timeout=2s"))
        response = json.loads(read_reply(stream).body)["response"]
    return json.loads(base64.b64decode(response["patch"])) if "patch" in response else None


def injected(server):
    """The selectors that the pod's constraints get."""
    operations = patch(server) or ()
    values = [each["value"] for each in operations if each["path"].endswith("topologySpreadConstraints")]
    return [each["labelSelector"] for value in values for each in value]


def test_it_is_ready_once_the_cluster_is_known_and_answers_from_it(api, flags):
    held = threading.Event()

    def hold(*_):
        held.wait(20)
        return False

    api.strike("list", hold, resource="services")
    with serving(*flags) as server:
        eventually(lambda: "cluster: waiting for services\n" in server.get("/readyz")[1])
        status, _ = server.get("/readyz")
        held.set()
        eventually(lambda: server.get("/readyz")[0] == 200)

        assert status == 503
        assert server.get("/readyz")[1].endswith("cluster: ok\n")
        assert server.metric('evenspread_cluster_objects{resource="nodes"}') == 2.0
        assert server.metric('evenspread_cluster_synced{resource="pods"}') == 1.0
        assert server.metric('evenspread_cluster_age_seconds{resource="pods"}') == 0.0
        assert injected(server) == [{"matchLabels": {"app": "web"}}]
        api.delete("services", "web", "shop")
        eventually(lambda: patch(server) is None)


def test_a_lost_api_server_is_told_and_the_answers_stay(api, flags):
    with serving(*flags) as server:
        eventually(lambda: server.get("/readyz")[0] == 200)
        eventually(lambda: api.count("watch") >= 9)
        api.strike("any", refuse(503, "down"), times=10**6)
        api.drop_connections()
        eventually(lambda: server.metric('evenspread_cluster_age_seconds{resource="nodes"}') > 0.5)

        assert injected(server) == [{"matchLabels": {"app": "web"}}]
        status, text = server.get("/readyz")
        assert status == 200
        assert "cluster nodes: " in text


def test_a_kind_that_may_not_be_read_is_told(api, flags):
    api.forbidden.add("horizontalpodautoscalers")
    with serving(*flags) as server:
        eventually(lambda: server.get("/readyz")[0] == 200)
        text = server.get("/readyz")[1]

    line = 'cluster horizontalpodautoscalers: off: 403 horizontalpodautoscalers is forbidden: User "u" cannot list '
    assert f'{line}resource "horizontalpodautoscalers"; grant list and watch of horizontalpodautoscalers\n' in text
