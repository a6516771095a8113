"""The server beside a live cluster: it answers from it, and from what was known when it is lost."""

import base64
import json
import signal
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


def creation(pod):
    """A whole request of the mutating route."""
    request = {"uid": "u", "kind": {"version": "v1", "kind": "Pod"}, "operation": "CREATE", "namespace": "shop"}
    document = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {**request, "object": pod}}
    return posted(json.dumps(document).encode(), "/mutate?timeout=2s")


def owned(name):
    """The first pod of a ReplicaSet."""
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": "u", "controller": True}
    return POD | {"metadata": {"labels": {"app": "web"}, "ownerReferences": [reference]}}


def operations(reply):
    """The patch of an answer."""
    response = json.loads(reply.body)["response"]
    return json.loads(base64.b64decode(response["patch"])) if "patch" in response else None


def patch(server):
    """What a fresh pod of the namespace gets."""
    with server.connect() as connection, connection.makefile("rb") as stream:
        connection.sendall(creation(POD))
        return operations(read_reply(stream))


def injected(server):
    """The selectors that the pod's constraints get."""
    values = [each["value"] for each in patch(server) or () if each["path"].endswith("topologySpreadConstraints")]
    return [each["labelSelector"] for value in values for each in value]


@pytest.mark.slow
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
        assert server.metric('evenspread_cluster_events_total{resource="services"}') == 0.0
        assert server.metric('evenspread_cluster_age_seconds{resource="pods"}') == 0.0
        assert injected(server) == [{"matchLabels": {"app": "web"}}]
        api.delete("services", "web", "shop")
        eventually(lambda: patch(server) is None)
        assert server.metric('evenspread_cluster_events_total{resource="services"}') == 1.0


@pytest.mark.slow
def test_a_review_that_comes_before_the_lists_is_answered_from_them(api, flags):
    """One replica that starts again beside a live cluster: the pods that come first get what all others get."""
    listed = 'evenspread_arrival_wait_seconds_count{outcome="listed"}'
    held = threading.Event()

    def hold(*_):
        held.wait(20)
        return False

    api.strike("list", hold, resource="services")
    with serving(*flags) as server, server.connect() as connection, connection.makefile("rb") as stream:
        connection.sendall(creation(POD))
        eventually(lambda: "cluster: waiting for services\n" in server.get("/readyz")[1])
        held.set()
        assert operations(read_reply(stream)) is not None
        assert server.metric(listed) == 1.0


@pytest.mark.slow
def test_a_review_does_not_wait_for_the_lists_past_its_time(api, flags):
    gave_up = 'evenspread_arrival_wait_seconds_count{outcome="not-listed"}'
    held = threading.Event()
    api.strike("list", lambda *_: held.wait(20) and False, resource="services", times=99)
    with serving(*flags) as server, server.connect() as connection, connection.makefile("rb") as stream:
        connection.sendall(creation(POD))
        assert operations(read_reply(stream)) is None
        assert server.metric(gave_up) == 1.0
        held.set()


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_kind_that_may_not_be_read_is_told(api, flags):
    api.forbidden.add("horizontalpodautoscalers")
    with serving(*flags) as server:
        eventually(lambda: server.get("/readyz")[0] == 200)
        text = server.get("/readyz")[1]

    line = 'cluster horizontalpodautoscalers: off: 403 horizontalpodautoscalers is forbidden: User "u" cannot list '
    assert f'{line}resource "horizontalpodautoscalers"; grant list and watch of horizontalpodautoscalers\n' in text


@pytest.mark.slow
def test_a_pod_that_comes_before_its_owner_is_answered_when_that_has_come(api, flags):
    arrived = 'evenspread_arrival_wait_seconds_count{outcome="arrived"}'
    with serving(*flags) as server:
        eventually(lambda: server.get("/readyz")[0] == 200)
        answers = []
        for number in range(20):  # a machine that is busy for 250 ms may miss some
            name = f"web-{number}"
            with server.connect() as connection, connection.makefile("rb") as stream:
                connection.sendall(creation(owned(name)))
                assert injected(server) == [{"matchLabels": {"app": "web"}}], "others are answered meanwhile"
                spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web", "set": name}}}
                api.put("replicasets", name, "shop", metadata={"uid": "u"}, spec=spec)
                answers.append(operations(read_reply(stream)))
            if server.metric(arrived):
                break

        assert server.metric(arrived) == 1.0
        selector = answers[-1][0]["value"][0]["labelSelector"]
        assert selector == {"matchLabels": {"app": "web", "set": name}}


@pytest.mark.slow
def test_a_pod_whose_owner_never_comes_passes_also_in_a_drain(flags):
    with serving(*flags, "--drain-seconds", "0") as server:
        eventually(lambda: server.get("/readyz")[0] == 200)
        with server.connect() as connection, connection.makefile("rb") as stream:
            connection.sendall(creation(owned("web-0")))
            assert operations(read_reply(stream)) is None
            assert server.metric('evenspread_injections_skipped_total{reason="owner-unknown"}') == 1.0
            connection.sendall(creation(owned("web-1")))
            server.process.send_signal(signal.SIGTERM)
            assert read_reply(stream).headers["connection"] == "close"
            assert server.process.wait(10) == 0
