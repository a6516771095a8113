"""Events: when something begins to be wrong, once, whoever leads."""

from datetime import UTC, datetime, timedelta

import pytest
from cluster.api import FakeApi, refuse
from cluster.following import server

from webhook.controller import events
from webhook.controller.bounds import Allowance, Rate
from webhook.controller.events import EventWriter
from webhook.report.scanned import Notice

PLENTY = Rate(a_minute=6000, burst=1000)
DEPLOYMENTS, DAEMON_SETS = ("apps", "Deployment"), ("apps", "DaemonSet")
WEB = DEPLOYMENTS, "shop", "web"
NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


@pytest.fixture(name="api")
def _api():
    with FakeApi(tls=False) as api:
        yield api


class Replica:
    def __init__(self, api, folder, namespace=PLENTY):
        self.leads = True
        self.now = NOON
        self.events = EventWriter(
            server(api, folder), Allowance(PLENTY, namespace, lambda: 0.0), "one", may_write=lambda: self.leads
        )

    def scans(self, *due, unread=()):
        self.begins(*due)
        self.events.end(unread)

    def begins(self, *due):
        """A scan that has not ended."""
        self.events.begin()
        for each in due:
            name = each.regarding["name"]
            kind = DAEMON_SETS if name.startswith("daily") else DEPLOYMENTS
            self.events.take((kind, each.regarding["namespace"], name), [each], self.now)
        self.now += timedelta(minutes=5)


@pytest.fixture(name="replica")
def _replica(api, tmp_path):
    return Replica(api, tmp_path)


def notice(*keys, name="web", namespace="shop", reason="SpreadDrift", note=""):
    regarding = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "namespace": namespace,
        "name": name,
        "uid": f"u-{name}",
    }
    return Notice(reason=reason, keys=frozenset(keys), note=note or f"{len(keys)} wrong", regarding=regarding)


def told(api):
    return [each["note"] for each in api.objects["events"].values()]


def test_what_stays_wrong_is_told_once(api, replica):
    for _ in range(3):
        replica.scans(notice("zone"))
    assert told(api) == ["1 wrong"]
    assert replica.events.outcomes == {("SpreadDrift", "told"): 1}


def test_more_that_is_wrong_is_told_and_less_is_not(api, replica):
    for keys in (("zone",), ("zone", "host"), ("host",)):
        replica.scans(notice(*keys))
    assert told(api) == ["1 wrong", "2 wrong"]


def test_what_comes_again_with_other_numbers_is_told_again(api, replica):
    for due in ([notice("zone")], [], [notice("zone", note="worse")], [], [notice("zone")]):
        replica.scans(*due)
    assert told(api) == ["1 wrong"]
    (made,) = api.objects["events"].values()
    assert made["series"] == {"count": 3, "lastObservedTime": "2026-11-23T12:20:00.000000Z"}
    assert replica.events.outcomes == {("SpreadDrift", "told"): 3}


def test_what_was_told_late_is_told_once_by_whoever_follows(api, replica, tmp_path):
    replica.scans()
    replica.scans(notice("zone"))
    Replica(api, tmp_path).scans(notice("zone"))
    assert told(api) == ["1 wrong"]
    (made,) = api.objects["events"].values()
    assert "series" not in made


def test_reasons_and_objects_are_told_apart(api, replica):
    replica.scans(notice("zone"), notice("zone", reason="SpreadViolation"), notice("zone", name="other"))
    assert len(told(api)) == 3


def test_whoever_leads_next_tells_nothing_twice(api, replica, tmp_path):
    replica.scans(notice("zone"))
    following = Replica(api, tmp_path)
    following.scans(notice("zone"))
    following.scans(notice("zone"))
    assert told(api) == ["1 wrong"]
    assert following.events.outcomes == {("SpreadDrift", "known"): 1}


def test_who_led_before_and_leads_again_tells_nothing_twice(api, replica):
    replica.scans(notice("zone"))
    replica.events.forget()
    replica.scans(notice("zone"))
    assert told(api) == ["1 wrong"]


def test_who_does_not_lead_tells_nothing(api, replica):
    replica.leads = False
    replica.scans(notice("zone"))
    assert told(api) == []
    replica.leads = True
    replica.scans(notice("zone"))
    assert told(api) == ["1 wrong"]


def test_an_incomplete_scan_forgets_nothing(api, replica):
    replica.scans(notice("zone"))
    replica.scans(unread={DEPLOYMENTS})
    replica.scans(notice("zone"))
    assert told(api) == ["1 wrong"]


def test_what_a_scan_gives_up_stays_told_and_no_other(api, replica):
    replica.scans(notice("zone"), notice("zone", name="other"))
    replica.scans(unread={WEB})
    replica.scans(notice("zone"), notice("zone", name="other"))
    counted = {
        each["regarding"]["name"]: each.get("series", {}).get("count") for each in api.objects["events"].values()
    }
    assert counted == {"web": None, "other": 2}


def test_what_an_incomplete_first_scan_did_not_see_may_have_been_told(api, replica, tmp_path):
    replica.scans(notice("zone"))
    following = Replica(api, tmp_path)
    following.scans(unread={DEPLOYMENTS})
    following.scans(notice("zone"))
    assert told(api) == ["1 wrong"]


@pytest.mark.parametrize("seen", [[DEPLOYMENTS, WEB], [WEB, DEPLOYMENTS], [WEB, WEB]], ids=["less", "more", "the same"])
def test_what_no_scan_has_seen_so_far_may_have_been_told(api, replica, tmp_path, seen):
    replica.scans(notice("zone"), notice("zone", name="other"))
    following = Replica(api, tmp_path)
    for each in seen:
        following.scans(unread={each})
    following.scans(notice("zone"))
    made = {each["regarding"]["name"]: each for each in api.objects["events"].values()}
    assert "series" not in made["web"]


def test_what_a_scan_told_that_did_not_end_is_told(api, replica):
    replica.scans()
    replica.begins(notice("zone"))
    replica.scans(notice("zone"))
    (made,) = api.objects["events"].values()
    assert "series" not in made
    assert replica.events.outcomes == {("SpreadDrift", "told"): 1}


def test_a_kind_that_is_never_read_keeps_only_its_own(api, replica):
    replica.scans(notice("zone"), notice("zone", name="daily"), unread={DAEMON_SETS})
    for due in ([], [notice("zone")], [], [notice("zone")], [notice("zone", name="daily")]):
        replica.scans(*due, unread={DAEMON_SETS})
    (made,) = [each for each in api.objects["events"].values() if each["regarding"]["name"] == "web"]
    assert made["series"]["count"] == 3
    (made,) = [each for each in api.objects["events"].values() if each["regarding"]["name"] == "daily"]
    assert "series" not in made


def test_no_more_recurrences_are_counted_than_a_number(api, replica, monkeypatch):
    monkeypatch.setattr(events, "_MOST_COUNTED", 1)
    both = notice("zone"), notice("zone", name="other")
    for due in (both, [], both, [], both):
        replica.scans(*due)
    assert sorted(each["series"]["count"] for each in api.objects["events"].values()) == [2, 2]


def test_a_failure_is_tried_again_and_may_have_arrived(api, replica):
    replica.scans()

    def arrives_unanswered(handler, write):
        api.writes.append(write)
        api.put("events", write.name, write.namespace, note="1 wrong")
        handler.cut()
        return True

    api.strike("write", arrives_unanswered)
    replica.scans(notice("zone"))
    replica.scans(notice("zone"))
    assert told(api) == ["1 wrong"]
    assert replica.events.outcomes == {("SpreadDrift", "failed"): 1, ("SpreadDrift", "known"): 1}


def test_failures_end_the_telling_until_the_next_scan(api, replica, caplog):
    api.forbidden.add("events")
    many = [notice("zone", name=f"w{number}") for number in range(9)]
    for _ in range(2):
        replica.scans(*many)
    assert 'cannot create resource "events"' in replica.events.fault
    assert (len(caplog.records), replica.events.outcomes["SpreadDrift", "failed"]) == (1, 8)
    api.forbidden.clear()
    replica.scans(*many)
    assert (len(told(api)), replica.events.fault) == (9, "")


def test_a_namespace_that_ends_is_no_reason_to_stop(api, replica):
    api.strike("write", refuse(403, "because it is being terminated"), times=6)
    replica.scans(*(notice("zone", name=f"w{number}") for number in range(9)))
    assert (len(told(api)), replica.events.fault) == (3, "")
    assert replica.events.outcomes == {("SpreadDrift", "refused"): 6, ("SpreadDrift", "told"): 3}


def test_a_loud_namespace_leaves_the_others_their_events(api, tmp_path):
    replica = Replica(api, tmp_path, namespace=Rate(a_minute=1, burst=2))
    replica.scans(*(notice("zone", name=f"w{number}", namespace="loud") for number in range(9)), notice("zone"))
    assert len(told(api)) == 3
    assert replica.events.outcomes["SpreadDrift", "postponed"] == 7
