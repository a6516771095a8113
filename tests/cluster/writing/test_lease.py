"""Who leads: never two, soon another one, and nobody by a clock on a wall."""

import threading
from datetime import UTC, datetime

import pytest
from cluster.stored import StoredApi, silent
from hypothesis import given
from hypothesis import strategies as st

from webhook.cluster.writing.lease import Elector

PATH = "/apis/coordination.k8s.io/v1/namespaces/platform/leases/evenspread-controller"
EMPTY = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "evenspread-controller"}}


class Cluster:
    """A Lease as the chart renders it, and one clock for everybody."""

    def __init__(self):
        self.api = StoredApi(**{PATH: EMPTY})
        self.now = 100.0

    def elector(self, identity):
        lease = ("platform", "evenspread-controller")
        return Elector(self.api, lease, identity, clock=lambda: self.now)

    @property
    def spec(self):
        return self.api.objects[PATH].get("spec", {})


@pytest.fixture(name="cluster")
def _cluster():
    return Cluster()


def test_the_first_takes_an_empty_lease(cluster):
    one = cluster.elector("one")
    assert not one.leading
    one.turn()
    assert (one.leading, one.holder) == (True, "one")
    assert cluster.spec["holderIdentity"] == "one"
    assert (cluster.spec["leaseDurationSeconds"], cluster.spec["leaseTransitions"]) == (15, 1)
    written = datetime.strptime(cluster.spec["renewTime"], "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
    assert abs((written - datetime.now(UTC)).total_seconds()) < 60


def test_who_holds_it_renews_it_and_the_other_stands_by(cluster):
    one, two = cluster.elector("one"), cluster.elector("two")
    acquired = None
    for _ in range(30):
        one.turn()
        two.turn()
        acquired = acquired or cluster.spec["acquireTime"]
        assert (one.leading, two.leading, two.holder) == (True, False, "one")
        cluster.now += 2
    assert (cluster.spec["leaseTransitions"], cluster.spec["acquireTime"]) == (1, acquired)


def test_a_lease_that_nobody_renews_is_taken_after_15_seconds_of_ones_own(cluster):
    one, two = cluster.elector("one"), cluster.elector("two")
    one.turn()
    two.turn()
    cluster.now += 14.9
    two.turn()
    assert not two.leading
    cluster.now += 0.2
    two.turn()
    assert (two.leading, cluster.spec["leaseTransitions"]) == (True, 2)
    one.turn()
    assert (one.leading, one.holder) == (False, "two")


def test_who_cannot_renew_stops_before_another_may_begin(cluster):
    one = cluster.elector("one")
    one.turn()
    cluster.api.before = silent
    cluster.now += 9.9
    one.turn()
    assert (one.leading, one.fault) == (True, "https://api: no answer in time")
    cluster.now += 0.2
    assert not one.leading


def test_the_times_in_the_lease_count_for_nothing(cluster):
    """A holder whose clock is ten years ahead, or behind."""
    for year in (2016, 2036):
        spec = {"holderIdentity": "other", "leaseDurationSeconds": 15, "renewTime": f"{year}-01-01T00:00:00.000000Z"}
        cluster.api.put(PATH, {**EMPTY, "spec": spec})
        one = cluster.elector("one")
        one.turn()
        assert not one.leading
        cluster.now += 15
        one.turn()
        assert one.leading


def test_a_lease_that_is_given_back_is_taken_at_once(cluster):
    one, two = cluster.elector("one"), cluster.elector("two")
    one.turn()
    two.turn()
    one.release()
    assert ("holderIdentity" in cluster.spec, one.leading) == (False, False)
    two.turn()
    assert two.leading


def test_giving_back_what_another_has_by_now_changes_nothing(cluster):
    one, two = cluster.elector("one"), cluster.elector("two")
    one.turn()
    two.turn()
    cluster.now += 16
    two.turn()
    one.release()
    assert cluster.spec["holderIdentity"] == "two"


def test_giving_back_is_tried_again_after_a_conflict(cluster):
    one = cluster.elector("one")
    one.turn()
    conflicts = [409]
    cluster.api.before = lambda method, _: conflicts.pop() if method == "PUT" and conflicts else None
    one.release()
    assert "holderIdentity" not in cluster.spec


def test_giving_back_to_nobody_is_no_error(cluster):
    one = cluster.elector("one")
    one.release()  # it never had it
    assert cluster.api.asked == []
    one.turn()
    cluster.api.before = silent
    one.release()
    assert not one.leading


@pytest.mark.parametrize(
    ("method", "status", "said"),
    [
        pytest.param("GET", 404, "Lease platform/evenspread-controller: 404 says 404", id="no lease"),
        pytest.param("GET", 403, "Lease platform/evenspread-controller: 403 says 403", id="may not read"),
        pytest.param("PUT", 403, "Lease platform/evenspread-controller cannot be written: 403", id="may not write"),
        pytest.param("PUT", 409, "", id="another was quicker"),
    ],
)
def test_without_a_lease_nobody_leads_and_it_says_why(cluster, method, status, said):
    one = cluster.elector("one")
    cluster.api.before = lambda asked, _: status if asked == method else None
    one.turn()
    assert (one.leading, one.fault) == (False, said)
    cluster.api.before = lambda *_: None
    one.turn()
    assert (one.leading, one.fault) == (True, "")


def test_it_runs_until_it_is_stopped_and_gives_the_lease_back(cluster):
    one = cluster.elector("one")
    stop = threading.Event()
    thread = threading.Thread(target=one.run, args=(stop,))
    thread.start()
    while not one.leading:
        pass
    stop.set()
    thread.join(5)
    assert "holderIdentity" not in cluster.spec


@given(
    acts=st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from(["turn", "turn", "turn", "lost", "release"])), max_size=60
    ),
    steps=st.lists(st.sampled_from([0.5, 2.0, 5.0, 16.0]), min_size=1, max_size=9),
)
def test_never_do_two_lead(acts, steps):
    cluster = Cluster()
    electors = {name: cluster.elector(name) for name in "abc"}
    for number, (name, act) in enumerate(acts):
        if act == "release":
            electors[name].release()
        else:
            cluster.api.before = silent if act == "lost" else lambda *_: None
            electors[name].turn()
            cluster.api.before = lambda *_: None
        assert sum(each.leading for each in electors.values()) <= 1
        cluster.now += steps[number % len(steps)]
        assert sum(each.leading for each in electors.values()) <= 1
