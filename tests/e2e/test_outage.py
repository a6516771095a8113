"""The API server is killed and comes back while pods come and go: what is known afterwards is what is there."""

import contextlib
import http.client
import itertools
import subprocess
import threading
import time

import pytest
from build import pod_names
from cluster.following import contents
from e2e.controlplane.up import ControlPlane
from e2e.objects import path, pod, workload
from e2e.served import PROGRAM
from e2e.waiting import eventually

from webhook.cluster.connection import ApiServer
from webhook.cluster.credentials import Account
from webhook.cluster.feed import Feed
from webhook.cluster.resources import BUILT_IN_RESOURCES

DOWN = 2.0  # seconds


@pytest.fixture(name="own_plane", scope="module")
def _own_plane(binaries, tmp_path_factory):
    """Not the one of the other tests: they would fall with it."""
    with ControlPlane(tmp_path_factory.mktemp("outage"), binaries) as plane:
        plane.add_nodes({"a": 2, "b": 1})
        plane.await_nodes()
        yield plane


@contextlib.contextmanager
def knowing(plane):
    feed = Feed(ApiServer(Account(kubeconfig=str(plane.admin))), BUILT_IN_RESOURCES)
    feed.start()
    try:
        eventually(lambda: feed.synced, 30)
        yield feed
    finally:
        feed.stop()


@contextlib.contextmanager
def load(plane):
    """Three threads that create, relabel and delete pods, and go on as soon as they can."""
    ended, done = threading.Event(), []

    def churn(number):
        for turn in itertools.count():
            with contextlib.suppress(OSError, http.client.HTTPException), contextlib.closing(plane.connect()) as api:
                while not ended.is_set():
                    name = f"churn-{number}-{turn}-{len(done)}"
                    made = pod(name, nodeName=f"node-a-{number % 2}", terminationGracePeriodSeconds=0)
                    if api.send("POST", path("Pod", "default"), made).status == 201:
                        done.append(name)
                    if len(done) % 3 == 0:
                        api.send("DELETE", f"{path('Pod', 'default')}/{done[-1]}?gracePeriodSeconds=0")
            if ended.wait(0.1):
                return

    threads = [threading.Thread(target=churn, args=(number,), daemon=True) for number in range(3)]
    for thread in threads:
        thread.start()
    try:
        yield done
    finally:
        ended.set()
        for thread in threads:
            thread.join(30)


def from_scratch(plane):
    with knowing(plane) as feed:
        return contents(feed.index)


def test_after_a_restart_it_knows_what_a_fresh_one_does(own_plane):
    plane = own_plane
    plane.api.request("POST", path("Deployment", "default"), workload("Deployment", "web", replicas=6))
    with knowing(plane) as feed:
        with load(plane) as done:
            for _ in range(2):
                before = len(done)
                eventually(lambda least=before + 30: len(done) > least, 60)
                plane.kill("kube-apiserver")
                time.sleep(DOWN)
                assert feed.synced
                assert feed.index.nodes.all()
                assert max(each.age for each in feed.watch_states()) >= DOWN / 2
                plane.revive("kube-apiserver")
            before = len(done)
            eventually(lambda: len(done) > before + 30, 60)

        def same():
            time.sleep(0.5)  # the controllers come to rest
            return contents(feed.index) == from_scratch(plane)

        eventually(same, 90)
        eventually(lambda: {(each.age, each.fault) for each in feed.watch_states()} == {(0.0, "")}, 60)
        names = set(pod_names(feed.index, "default"))

    assert len(names & set(done)) > 30
    assert str(feed.version) == "1.37"


def test_a_command_says_that_the_api_server_is_gone(own_plane):
    own_plane.kill("kube-apiserver")
    try:
        arguments = [PROGRAM, "audit", "--kubeconfig", str(own_plane.admin)]
        ran = subprocess.run(arguments, capture_output=True, text=True, timeout=30, check=False)
    finally:
        own_plane.revive("kube-apiserver")
    assert (ran.returncode, ran.stdout) == (4, "")
    said = (
        f"evenspread: cluster local cannot be read: {own_plane.url}: Connection refused; use --context or --kubeconfig"
    )
    assert ran.stderr.startswith(said)
    assert len(ran.stderr.splitlines()) == 1
