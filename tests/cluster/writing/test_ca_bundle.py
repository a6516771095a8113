"""The caBundle of our configurations: right, and nothing else touched."""

import base64

import pytest
from cluster.stored import NOW, StoredApi, silent

from certs.authority import CertificateError, issue_authority
from webhook.cluster.connection import ClusterError, RefusedError
from webhook.cluster.writing.ca_bundle import publish

GROUP = "/apis/admissionregistration.k8s.io/v1"
VALIDATING = f"{GROUP}/validatingwebhookconfigurations/evenspread"
MUTATING = f"{GROUP}/mutatingwebhookconfigurations/evenspread"
OLD, NEW = (issue_authority(NOW).certificate for _ in range(2))


def configuration(*bundles):
    """One webhook for each bundle; none for None."""
    webhooks = []
    for number, bundle in enumerate(bundles):
        config = {"service": {"name": "evenspread-webhook"}}
        if bundle is not None:
            config["caBundle"] = base64.b64encode(bundle).decode()
        webhooks.append({"name": f"{number}.evenspread.io", "clientConfig": config, "failurePolicy": "Ignore"})
    return {"metadata": {"name": "evenspread"}, "webhooks": webhooks}


def bundles(api, path):
    return [base64.b64decode(each["clientConfig"].get("caBundle", "")) for each in api.objects[path]["webhooks"]]


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(None, id="none"),
        pytest.param(b"", id="empty"),
        pytest.param(b"garbage", id="garbage, which the API server takes"),
        pytest.param(OLD, id="another CA"),
        pytest.param(OLD + NEW, id="one that is not trusted any more"),
    ],
)
def test_a_wrong_bundle_is_replaced_and_nothing_else_is(before):
    api = StoredApi(**{VALIDATING: configuration(before, NEW), MUTATING: configuration(NEW)})
    untouched = api.objects[MUTATING]
    assert publish(api, "evenspread", NEW) == 1
    assert bundles(api, VALIDATING) == [NEW, NEW]
    assert [each["failurePolicy"] for each in api.objects[VALIDATING]["webhooks"]] == ["Ignore", "Ignore"]
    assert api.objects[MUTATING] is untouched
    assert publish(api, "evenspread", NEW) == 0


def test_a_bundle_is_compared_as_certificates():
    api = StoredApi(**{VALIDATING: configuration(b"# ours\n" + NEW + b"\n" + OLD)})
    assert publish(api, "evenspread", OLD + NEW) == 0


def test_configurations_that_are_not_there_need_none():
    assert publish(StoredApi(), "evenspread", NEW) == 0


def test_a_webhook_that_is_reached_by_url_is_somebody_elses():
    made = configuration(None)
    made["webhooks"][0]["clientConfig"] = {"url": "https://x"}
    assert publish(StoredApi(**{VALIDATING: made}), "evenspread", NEW) == 0


@pytest.mark.parametrize("bundle", [b"", b"garbage"])
def test_garbage_is_never_written(bundle):
    api = StoredApi(**{VALIDATING: configuration(NEW)})
    with pytest.raises(CertificateError, match=r"^the CA bundle is not PEM$"):
        publish(api, "evenspread", bundle)
    assert api.asked == []


def test_a_change_in_between_is_not_written_over():
    api = StoredApi(**{VALIDATING: configuration(OLD, None)})

    def somebody_removes_the_first(method, _path):
        if method == "PATCH":
            api.put(VALIDATING, configuration(None))
            api.before = lambda *_: None

    api.before = somebody_removes_the_first
    assert publish(api, "evenspread", NEW) == 1, "it was wrong; the next look sees whether it is right"
    assert bundles(api, VALIDATING) == [b""]
    assert publish(api, "evenspread", NEW) == 1
    assert bundles(api, VALIDATING) == [NEW]


@pytest.mark.parametrize("method", ["GET", "PATCH"])
def test_a_refusal_of_one_does_not_keep_the_other_from_being_right(method):
    api = StoredApi(**{VALIDATING: configuration(None), MUTATING: configuration(None)})
    api.before = lambda asked, path: 403 if (asked, path) == (method, VALIDATING) else None
    with pytest.raises(RefusedError, match=r"^403 ValidatingWebhookConfiguration evenspread: says 403$"):
        publish(api, "evenspread", NEW)
    assert bundles(api, MUTATING) == [NEW]


def test_a_lost_api_server_is_an_error():
    api = StoredApi()
    api.before = silent
    with pytest.raises(ClusterError, match="no word in time"):
        publish(api, "evenspread", NEW)
