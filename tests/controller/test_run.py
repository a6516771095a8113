"""The controller's process: what it does when it leads, and what its pages say."""

import contextlib
import socket
import threading
import urllib.error
import urllib.request

import pytest
from cluster.stored import StoredApi, silent
from cluster.writing.test_admission_policies import stored_bindings

from certs.rotation import Lifetimes
from webhook.cluster.writing.ca_secret import CaSecret
from webhook.cluster.writing.lease import Elector
from webhook.controller.admission_policies import PolicyUpkeep
from webhook.controller.authority import AuthorityUpkeep
from webhook.controller.run import Controller, HealthServer
from webhook.core.policy.policy import Policy

SECRET = "/api/v1/namespaces/platform/secrets/evenspread-ca"  # noqa: S105 a path
LEASE = "/apis/coordination.k8s.io/v1/namespaces/platform/leases/evenspread-controller"


class Process:
    """One replica of the controller, on a clock of our own."""

    def __init__(self, api=None, identity="one"):
        self.api = api or StoredApi(**{SECRET: {"metadata": {}}, LEASE: {"metadata": {}}})
        self.now = 0.0
        self.elector = Elector(self.api, ("platform", "evenspread-controller"), identity, clock=lambda: self.now)
        secret = CaSecret(self.api, "platform", "evenspread-ca")
        upkeep = AuthorityUpkeep(self.api, "evenspread", (secret, Lifetimes()))
        self.controller = Controller(self.elector, upkeep, clock=lambda: self.now)

    def passes(self, seconds):
        self.now += seconds
        self.elector.turn()
        self.controller.turn()

    @property
    def looks(self):
        return self.api.asked.count(("GET", SECRET))

    def metric(self, name):
        _, _, text = self.controller.pages()["/metrics"]()
        return [float(line.rpartition(" ")[2]) for line in text.decode().splitlines() if line.startswith(f"{name} ")]


@pytest.fixture(name="process")
def _process():
    return Process()


def test_it_does_not_wait_for_a_leader_with_the_configurations(process):
    """A controller that is replaced leads until its successor is ready."""
    process.controller.turn()
    assert process.looks > 0
    assert process.controller.readiness() == (
        False,
        "leading: no; the leader is not elected yet\nwebhook configurations: ok\n",
    )


def test_it_looks_every_ten_seconds(process):
    process.passes(0)
    assert process.controller.readiness() == (True, "leading: yes\nwebhook configurations: ok\n")
    first = process.looks
    for _ in range(10):
        process.passes(2)
    assert process.looks == first + 2


def test_it_looks_at_once_when_something_changes(process):
    process.passes(0)
    process.controller.follow()
    assert sorted(each.rpartition("/")[2] for each in process.api.watches) == [
        "evenspread",
        "evenspread",
        "evenspread-ca",
    ]
    process.controller.changed.clear()
    first = process.looks
    process.passes(1)
    assert process.looks == first
    process.api.put(SECRET, process.api.objects[SECRET])
    assert process.controller.changed.wait(10)
    process.passes(0)
    assert process.looks == first + 1


def test_who_stands_by_is_ready_when_the_api_server_trusts_the_webhook(process):
    process.passes(0)
    other = Process(process.api, "two")
    for _ in range(10):
        other.passes(1)
    assert other.controller.readiness() == (True, "leading: no; the leader is one\nwebhook configurations: ok\n")


def test_it_is_not_ready_before_the_api_server_trusts_the_ca(process):
    process.api.before = lambda _, path: 403 if path == SECRET else None
    process.passes(0)
    ready, text = process.controller.readiness()
    assert not ready
    assert text == "leading: yes\nwebhook configurations: 403 Secret platform/evenspread-ca: says 403\n"
    assert process.metric("evenspread_ca_bundle_valid") == [0.0]
    process.api.before = lambda *_: None
    process.passes(10)
    assert process.controller.readiness()[0]
    assert process.metric("evenspread_ca_bundle_valid") == [1.0]


def test_a_lost_api_server_ends_leading_and_it_begins_anew(process):
    process.passes(0)
    process.api.before = silent
    for _ in range(6):
        process.passes(2)
    ready, text = process.controller.readiness()
    assert (ready, text.splitlines()[0]) == (False, "leading: https://api: no answer in time")
    assert process.metric("evenspread_leader") == [0.0]
    process.api.before = lambda *_: None
    process.passes(2)
    assert process.controller.readiness()[0]


def test_a_fault_of_ours_is_told_and_tried_again(process):
    process.api.before = lambda _, path: 1 / 0 if path == SECRET else None
    process.passes(0)
    assert "webhook configurations: division by zero\n" in process.controller.readiness()[1]
    process.api.before = lambda *_: None
    process.passes(10)
    assert process.controller.readiness()[0]


def test_its_metrics_tell_who_leads_and_when_the_ca_ends(process):
    assert process.metric("evenspread_leader") == [0.0]
    assert process.metric("evenspread_ca_expiry_timestamp_seconds") == []
    process.passes(0)
    assert process.metric("evenspread_leader") == [1.0]
    assert process.metric("evenspread_ca_expiry_timestamp_seconds") == [(process.api.now.timestamp() + 365 * 24 * 3600)]
    assert process.metric("evenspread_ca_bundle_writes_total") == [0.0]


def test_only_the_leader_writes_admission_policies(process):
    bindings = stored_bindings()
    for path, each in bindings.objects.items():
        process.api.put(path, each)
    process.api.put("/version", {"gitVersion": "v1.37.1"})
    policies = PolicyUpkeep(process.api, "even", Policy)
    process.controller = Controller(process.elector, policies=policies, clock=lambda: process.now)
    process.controller.turn()
    assert [each for each in process.api.objects if "policies/even" in each] == []
    assert process.metric("evenspread_admission_policies_valid") == []
    process.passes(0)
    assert len([each for each in process.api.objects if "policies/even" in each]) == 3
    assert process.controller.readiness() == (True, "leading: yes\nadmission policies: ok\n")
    assert process.metric("evenspread_admission_policies_valid") == [1.0]


def test_missing_admission_policies_are_told(process):
    policies = PolicyUpkeep(process.api, "even", Policy)
    process.controller = Controller(process.elector, policies=policies, clock=lambda: process.now)
    process.passes(0)
    missing = "404 ValidatingAdmissionPolicyBinding even-deny: says 404"
    assert process.controller.readiness() == (True, f"leading: yes\nadmission policies: {missing}\n")
    assert process.metric("evenspread_admission_policies_valid") == [0.0]


# -- the health port


@contextlib.contextmanager
def answering(controller):
    with HealthServer("127.0.0.1", 0, controller.pages()) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def get(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 http to loopback
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_its_pages(process):
    with answering(process.controller) as url:
        assert get(f"{url}/healthz") == (200, "ok\n")
        assert get(f"{url}/readyz") == (503, process.controller.readiness()[1])
        process.passes(0)
        assert get(f"{url}/readyz?verbose") == (200, process.controller.readiness()[1])
        assert "evenspread_leader 1.0" in get(f"{url}/metrics")[1]
        assert get(f"{url}/else") == (404, "404 Not Found\n")


def test_silent_neighbours_have_so_many_places(process):
    with answering(process.controller) as url, contextlib.ExitStack() as silent_ones:
        port = int(url.rpartition(":")[2])
        silents = [silent_ones.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(40)]
        assert silents[-1].recv(1) == b"", "hung up on"
