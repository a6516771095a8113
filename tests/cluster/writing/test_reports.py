"""Our reports in the cluster, beside the fake API server."""

import pytest
from cluster.api import FakeApi, refuse
from cluster.following import server

from webhook.cluster.errors import ClusterError, RefusedError
from webhook.cluster.writing.reports import is_of_one_object, report_store

API, KIND = "openreports.io/v1alpha1", "Report"
OURS = {"app.kubernetes.io/managed-by": "evenspread"}


@pytest.fixture(name="api")
def _api():
    with FakeApi(tls=False) as api:
        api.absent.discard("reports")
        yield api


@pytest.fixture(name="store")
def _store(api, tmp_path):
    return report_store(server(api, tmp_path), API, KIND)


def document(name, namespace="shop", **fields):
    return {"metadata": {"name": name, "namespace": namespace, "labels": OURS}, **fields}


def names(store):
    return [each["metadata"]["name"] for each in store.ours()]


def test_there_is_none_where_the_api_is_not(api, tmp_path):
    assert report_store(server(api, tmp_path), "wgpolicyk8s.io/v1alpha2", "PolicyReport") is None
    assert report_store(server(api, tmp_path), API, "Other") is None


def test_whether_there_is_one_may_be_unknown(api, tmp_path):
    api.strike("any", refuse(500))
    with pytest.raises(RefusedError):
        report_store(server(api, tmp_path), API, KIND)


def test_reports_are_put_and_taken_away(api, store):
    store.put(document("a", source="x"))
    store.put(document("a", source="y"))
    store.put(document("b"))
    assert [each["source"] for each in store.ours() if each["metadata"]["name"] == "a"] == ["y"]
    store.remove("shop", "a")
    store.remove("shop", "a")
    assert names(store) == ["b"]
    assert {write.query.get("fieldManager") for write in api.writes if write.method == "PATCH"} == {"evenspread"}


def test_those_of_others_are_not_ours(api, store):
    api.put("reports", "theirs", "shop", metadata={"labels": {"app.kubernetes.io/managed-by": "kyverno"}})
    store.put(document("mine"))
    assert names(store) == ["mine"]


def test_they_are_listed_page_by_page(api, store):
    for number in range(205):
        api.put("reports", f"r{number:03}", "shop", metadata={"labels": OURS})
    assert names(store) == [f"r{number:03}" for number in range(205)]
    assert api.count("page", "reports") == 2


def test_a_list_whose_token_is_too_old_begins_again_once(api, store):
    for number in range(105):
        api.put("reports", f"r{number:03}", "shop", metadata={"labels": OURS})
    api.strike("page", refuse(410))
    assert {*names(store)} == {f"r{number:03}" for number in range(105)}
    api.strike("page", refuse(410), times=2)
    with pytest.raises(RefusedError, match="410"):
        names(store)


def test_what_is_no_report_is_left_out(api, store, monkeypatch):
    api.objects["reports"]["shop", "odd"] = [1]
    monkeypatch.setattr("cluster.api.selected", lambda *_: True)
    with pytest.raises(ClusterError):
        names(store)


@pytest.mark.parametrize("code", [403, 500])
def test_refusals_are_told(api, store, code):
    api.strike("write", refuse(code, "no", Retry_After="3"), times=2)
    for act in (lambda: store.put(document("a")), lambda: store.remove("shop", "a")):
        with pytest.raises(RefusedError, match=f"{code} no") as raised:
            act()
        assert (raised.value.status, raised.value.retry_after) == (code, 3.0)


@pytest.mark.parametrize(
    ("status", "message", "expected"),
    [
        (409, "the object has been modified", True),
        (422, "is invalid", True),
        (403, "unable to create new content in namespace shop because it is being terminated", True),
        (404, 'namespaces "shop" not found', True),
        (403, "exceeded quota: objects, requested: count/reports=1, used: 9, limited: 9", True),
        (403, 'admission webhook "policy.example.com" denied the request', True),
        (400, 'admission webhook "policy.example.com" denied the request', True),
        (404, "the server could not find the requested resource", False),
        (403, 'cannot patch resource "reports" in API group "openreports.io" in the namespace "shop"', False),
        (403, 'events is forbidden: User "u" cannot create resource "events" in API group "events.k8s.io"', False),
        (403, 'User "u" cannot delete resource "reports" in API group "openreports.io"', False),
        (401, "Unauthorized", False),
        (503, "", False),
    ],
)
def test_refusals_about_one_object_are_told_from_others(status, message, expected):
    assert is_of_one_object(RefusedError(status, message)) is expected
