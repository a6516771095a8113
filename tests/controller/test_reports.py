"""The reports of a scan: what is written, what is taken away, and what is said when that cannot be done."""

import pytest
from cluster.api import FakeApi, refuse
from cluster.following import server

from webhook.controller.bounds import Allowance, Rate
from webhook.controller.reports import NO_API, ReportWriter
from webhook.core.rules.frame.rule import Severity
from webhook.report.documents import ReportApi, ReportContent, ReportResult

PLENTY = Rate(a_minute=6000, burst=1000)


@pytest.fixture(name="api")
def _api():
    with FakeApi(tls=False) as api:
        api.absent -= {"reports", "policyreports"}
        yield api


class Replica:
    """One that leads until it is told otherwise, on a clock of our own."""

    def __init__(self, api, folder, everywhere=PLENTY, namespace=PLENTY):
        self.leads = True
        self.now = 1000.0
        self.waited = []
        self.reports = ReportWriter(
            server(api, folder),
            Allowance(everywhere, namespace, lambda: self.now),
            may_write=lambda: self.leads,
            pause=self.waited.append,
            clock=lambda: self.now,
        )

    def scans(self, *wanted, unread=()):
        self.reports.begin()
        for each in wanted:
            self.reports.take(each)
        self.reports.end(unread)
        self.now += 1


@pytest.fixture(name="replica")
def _replica(api, tmp_path):
    return Replica(api, tmp_path)


def wanted(name="web", namespace="shop", message="uneven", kind="Deployment"):
    stated = ReportResult(policy="spread-drift", key="zone", severity=Severity.LOW, result="warn", message=message)
    return ReportContent(
        api_version="apps/v1",
        kind=kind,
        namespace=namespace,
        name=name,
        uid=f"{name}-uid",
        findings=(),
        stated=(stated,),
    )


def held(api, resource="reports"):
    return {name: each["results"][0]["message"] for (_, name), each in api.objects[resource].items()}


def test_a_report_is_written_once_and_again_when_it_says_something_else(api, replica):
    for message in ("uneven", "uneven", "worse"):
        replica.scans(wanted(message=message))
    assert [*held(api).values()] == ["worse"]
    assert replica.reports.writes == {"written": 2, "removed": 0, "postponed": 0, "refused": 0, "failed": 0}
    (made,) = api.objects["reports"].values()
    assert made["metadata"]["ownerReferences"][0]["uid"] == "web-uid"
    assert made["results"][0]["timestamp"] == {"seconds": 1002, "nanos": 0}


def test_a_report_goes_when_nothing_is_to_be_said(api, replica):
    replica.scans(wanted(), wanted("other"))
    replica.scans(None, wanted("other"))
    assert [*held(api)] == [name for name in held(api) if name.startswith("deployment-other")]
    assert replica.reports.writes["removed"] == 1


def test_kinds_that_could_not_be_read_keep_theirs(api, replica):
    replica.scans(wanted(), wanted(kind="StatefulSet"))
    replica.scans(unread={("apps", "StatefulSet")})
    assert [name[:11] for name in held(api)] == ["statefulset"]


def test_what_somebody_else_changed_or_deleted_is_mended(api, replica):
    replica.scans(wanted(), wanted("other"))
    (first, second) = api.objects["reports"]
    api.objects["reports"][first]["results"] = []
    api.delete("reports", second[1], second[0])
    replica.scans(wanted(), wanted("other"))
    assert [*held(api).values()] == ["uneven"] * 2


def test_whoever_leads_next_writes_nothing_anew(api, replica, tmp_path):
    replica.scans(wanted())
    replica.leads = False
    replica.scans(wanted(message="worse"))
    assert [*held(api).values()] == ["uneven"]
    following = Replica(api, tmp_path)
    following.scans(wanted())
    assert following.reports.writes["written"] == 0


def test_the_newer_api_is_taken_and_the_other_one_cleaned(api, replica):
    api.absent.add("reports")
    replica.scans(wanted())
    assert replica.reports.api is ReportApi.POLICY_REPORTS
    assert len(held(api, "policyreports")) == 1
    api.absent.discard("reports")
    replica.scans(wanted())
    assert replica.reports.api is ReportApi.OPEN_REPORTS
    assert (len(held(api)), held(api, "policyreports")) == (1, {})


def test_without_an_api_nothing_is_written_and_that_is_said(api, replica, caplog):
    api.absent |= {"reports", "policyreports"}
    for _ in range(2):
        replica.scans(wanted())
    assert replica.reports.api is None
    assert replica.reports.fault == NO_API
    assert [each.getMessage() for each in caplog.records] == [NO_API]
    api.absent.discard("reports")
    replica.scans(wanted())
    assert (replica.reports.fault, len(held(api))) == ("", 1)


def test_a_list_that_fails_leaves_all_as_it_is(api, replica):
    replica.scans(wanted())
    api.strike("list", refuse(500, "no"), resource="reports")
    replica.scans(wanted(message="worse"))
    assert replica.reports.fault == "reports cannot be read: 500 no"
    assert [*held(api).values()] == ["uneven"]


def test_a_missing_permission_is_named_at_once(api, replica):
    api.forbidden.add("reports")
    api.strike("list", lambda handler, request: handler.list(request) or True, resource="reports", times=9)
    replica.scans(*(wanted(f"w{number}") for number in range(5)))
    assert "grant patch and delete of reports" in replica.reports.fault
    assert replica.reports.writes["failed"] == 1


def test_failures_are_waited_for_and_end_the_writing_until_the_next_scan(api, replica):
    api.strike("write", refuse(429, "later", Retry_After="7"), times=4)
    many = [wanted(f"w{number}") for number in range(9)]
    replica.scans(*many)
    assert replica.waited == [7.0, 7.0, 7.0]
    assert replica.reports.fault == "reports cannot be written: 429 later"
    assert held(api) == {}
    replica.scans(*many)
    assert (len(held(api)), replica.reports.fault) == (9, "")


def test_a_conflict_is_about_that_report_alone(api, replica):
    api.strike("write", refuse(409, "modified"), times=6)
    many = [wanted(f"w{number}") for number in range(9)]
    replica.scans(*many)
    assert (len(held(api)), replica.waited, replica.reports.fault) == (3, [], "")
    replica.scans(*many)
    assert len(held(api)) == 9


def test_a_full_namespace_leaves_the_others_their_reports(api, replica):
    api.strike("write", refuse(403, "exceeded quota: objects"), times=5)
    replica.scans(*(wanted(f"w{number}", "full") for number in range(5)), wanted("web", "quiet"))
    assert [namespace for namespace, _ in api.objects["reports"]] == ["quiet"]
    assert replica.reports.fault == ""
    assert (replica.reports.writes["refused"], replica.reports.writes["failed"]) == (5, 0)


def test_a_loud_namespace_leaves_the_others_their_reports(api, tmp_path):
    replica = Replica(api, tmp_path, namespace=Rate(a_minute=60, burst=5))
    loud = [wanted(f"w{number}", "loud") for number in range(20)]
    replica.scans(*loud, wanted("web", "quiet"))
    assert sorted({namespace for namespace, _ in api.objects["reports"]}) == ["loud", "quiet"]
    assert replica.reports.writes == {"written": 6, "removed": 0, "postponed": 15, "refused": 0, "failed": 0}


def test_reports_that_others_made_too_large_stop_nobodys(api, replica):
    """Their authors left no room in etcd for what we write."""
    api.strike("write", refuse(500, "etcdserver: request is too large"), times=5)
    replica.scans(*(wanted(f"web-{number}") for number in range(6)))
    assert (len(held(api)), replica.reports.writes["refused"], replica.reports.fault) == (1, 5, "")


@pytest.mark.slow
def test_reports_that_fill_a_page_hide_nobodys(api, replica):
    """30 of a tenant's, each as large as etcd takes, with our label."""
    text = "x" * 1_400_000
    for number in range(30):
        meta = {"name": f"r{number}", "namespace": "spam", "labels": {"app.kubernetes.io/managed-by": "evenspread"}}
        api.objects["reports"]["spam", f"r{number}"] = {"metadata": meta, "results": [{"message": text}]}
    replica.scans(wanted())
    assert replica.reports.fault == ""
    assert [name for name in held(api) if name.startswith("deployment-web")]
