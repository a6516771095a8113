"""The caBundle of our configurations: right, and nothing else touched."""

import base64
import json

import pytest
from cluster.stored import NOW, StoredApi, silent

from certs.authority import CertificateError, issue_authority
from webhook.cluster.errors import ClusterError, RefusedError
from webhook.cluster.writing.ca_bundle import complete
from webhook.core.api.well_known import RULES_ANNOTATION

GROUP = "/apis/admissionregistration.k8s.io/v1"
VALIDATING = f"{GROUP}/validatingwebhookconfigurations/evenspread"
MUTATING = f"{GROUP}/mutatingwebhookconfigurations/evenspread"
OLD, NEW = (issue_authority(NOW).certificate for _ in range(2))


RULES = [{"apiGroups": [""], "resources": ["pods"], "operations": ["CREATE"], "apiVersions": ["*"]}]


def publish(api, name, bundle):
    return len(complete(api, name, [bundle], serving=lambda: True).written)


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
    with pytest.raises(ClusterError, match="no answer in time"):
        publish(api, "evenspread", NEW)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(None, NEW, id="none"),
        pytest.param(b"garbage", NEW, id="garbage"),
        pytest.param(OLD, NEW + OLD, id="another CA"),
        pytest.param(OLD + NEW, OLD + NEW, id="both"),
    ],
)
def test_what_is_trusted_can_be_kept(before, after):
    api = StoredApi(**{VALIDATING: configuration(before)})
    complete(api, "evenspread", [NEW], keeping=True, serving=lambda: True)
    assert bundles(api, VALIDATING) == [after]


def annotated(bundle, rules=None, text=None):
    """A configuration that may refuse writes, as the chart renders it."""
    made = configuration(bundle)
    made["metadata"]["annotations"] = {RULES_ANNOTATION: json.dumps(RULES) if text is None else text}
    if rules is not None:
        made["webhooks"][0]["rules"] = rules
    return made


@pytest.mark.parametrize(
    ("made", "trusted", "serves", "inert", "rules"),
    [
        pytest.param(annotated(NEW), [NEW], True, False, RULES, id="trusted, and replicas answer"),
        pytest.param(annotated(None), [NEW], True, False, RULES, id="at once with the CA"),
        pytest.param(annotated(NEW), None, True, False, RULES, id="somebody else's CA"),
        pytest.param(annotated(None), None, True, True, None, id="somebody else's CA is not there yet"),
        pytest.param(annotated(b"garbage"), None, True, True, None, id="a CA that is none"),
        pytest.param(annotated(NEW), [NEW], False, True, None, id="nobody answers"),
        pytest.param(annotated(NEW, [{"apiGroups": ["apps"]}]), [NEW], False, False, RULES, id="others than before"),
        pytest.param(annotated(NEW, RULES), [NEW], False, False, RULES, id="all is well"),
        pytest.param(configuration(NEW), [NEW], True, False, None, id="the chart renders them"),
    ],
)
def test_rules_that_may_refuse_wait_for_replicas_that_can_be_verified(made, trusted, serves, inert, rules):
    api = StoredApi(**{VALIDATING: made})
    done = complete(api, "evenspread", trusted, serving=lambda: serves)
    assert (bool(done.inert), api.objects[VALIDATING]["webhooks"][0].get("rules")) == (inert, rules)


def test_the_rules_never_come_before_the_ca():
    api = StoredApi(**{VALIDATING: annotated(None)})
    complete(api, "evenspread", [NEW], serving=lambda: True)
    assert api.writes() == [VALIDATING], "in one write"


@pytest.mark.parametrize("text", ["", "{", "{}", '"a"'])
def test_rules_that_are_none_are_said(text):
    api = StoredApi(**{VALIDATING: annotated(NEW, text=text)})
    with pytest.raises(RefusedError, match=f"the annotation {RULES_ANNOTATION} must be a JSON list"):
        complete(api, "evenspread", [NEW], serving=lambda: True)


def test_what_is_written_has_no_owner():
    """Who renders the field meets no conflict; who does not leaves it alone."""
    helm, others = {"manager": "helm", "operation": "Apply"}, {"manager": "kubectl-edit", "operation": "Update"}
    made = configuration(NEW)
    made["metadata"]["managedFields"] = [helm, {"manager": "evenspread", "operation": "Update"}, others]
    api = StoredApi(**{VALIDATING: made})
    assert publish(api, "evenspread", NEW) == 0
    assert api.objects[VALIDATING]["metadata"]["managedFields"] == [helm, others]
    writes = len(api.writes())
    publish(api, "evenspread", NEW)
    assert len(api.writes()) == writes
