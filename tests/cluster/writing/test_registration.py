"""What is registered from a terminal, and that nothing of another owner is touched; by a fake API server."""

import base64

import pytest
from cluster.stored import StoredApi

from webhook.cluster.errors import ClusterError
from webhook.cluster.writing.registration import (
    REGISTRATION_NAME,
    configurations,
    has_groups,
    register,
    unregister,
)
from webhook.core.policy.defaults import Defaults

MADE = configurations("https://127.0.0.1:8443", b"the CA", Defaults(mode="inject"))


GROUP = "/apis/admissionregistration.k8s.io/v1"
LABELS = {"app.kubernetes.io/managed-by": "Helm"}
FOREIGN = {"metadata": {"name": REGISTRATION_NAME, "labels": LABELS, "resourceVersion": "1"}}


def test_both_configurations_fail_open_in_two_seconds_and_leave_the_system_out():
    for made in MADE:
        (webhook,) = made["webhooks"]
        assert webhook["failurePolicy"] == "Ignore"
        assert webhook["timeoutSeconds"] == 2
        assert webhook["sideEffects"] == "None"
        assert webhook["admissionReviewVersions"] == ["v1"]
        assert base64.b64decode(webhook["clientConfig"]["caBundle"]) == b"the CA"
        (expression,) = webhook["namespaceSelector"]["matchExpressions"]
        assert (expression["key"], expression["operator"]) == ("kubernetes.io/metadata.name", "NotIn")
        assert expression["values"] == ["kube-system", "kube-public", "kube-node-lease"]
    validating, mutating = (made["webhooks"][0] for made in MADE)
    assert validating["clientConfig"]["url"] == "https://127.0.0.1:8443/validate"
    assert mutating["clientConfig"]["url"] == "https://127.0.0.1:8443/mutate"
    assert mutating["reinvocationPolicy"] == "IfNeeded"
    assert [rule["resources"] for rule in mutating["rules"]] == [["pods"]]
    rules = [rule for webhook in (validating, mutating) for rule in webhook["rules"]]
    assert not [rule for rule in rules if {"*"} & {*rule["apiGroups"], *rule["resources"], *rule["operations"]}]


@pytest.mark.parametrize("mode", ["off", "observe"])
def test_nothing_mutates_where_nothing_would_be_injected(mode):
    (only,) = configurations("https://127.0.0.1:8443", b"", Defaults(mode=mode))
    assert only["kind"] == "ValidatingWebhookConfiguration"


def test_templates_of_groups_are_sent_where_the_cluster_has_groups():
    """As by the chart with `crds.install`; whatever the defaults are."""
    off, inject = (
        configurations("https://127.0.0.1:8443", b"", Defaults(mode=mode), groups=True)[1] for mode in ("off", "inject")
    )
    assert [each["name"] for each in off["webhooks"]] == ["groups.evenspread.io"]
    assert [each["name"] for each in inject["webhooks"]] == ["mutate.evenspread.io", "groups.evenspread.io"]
    webhook = inject["webhooks"][1]
    assert webhook == off["webhooks"][0]
    assert webhook["clientConfig"]["url"] == "https://127.0.0.1:8443/mutate"
    assert (webhook["failurePolicy"], webhook["timeoutSeconds"], webhook["reinvocationPolicy"]) == (
        "Ignore",
        2,
        "Never",
    )
    assert webhook["namespaceSelector"] == inject["webhooks"][0]["namespaceSelector"]
    assert webhook["rules"][0]["resources"] == ["deployments", "statefulsets"]


@pytest.mark.parametrize(
    ("answer", "has"),
    [
        pytest.param({"resources": [{"name": "spreadgroups"}, {"name": "spreadgroups/status"}]}, True, id="groups"),
        pytest.param({"resources": [{"name": "others"}]}, False, id="others of our group"),
        pytest.param({"resources": None}, False, id="nothing"),
        pytest.param(None, False, id="not our group"),
    ],
)
def test_whether_a_cluster_has_groups(answer, has):
    server = StoredApi()
    if answer is not None:
        server.objects["/apis/evenspread.io/v1alpha1"] = answer
    assert has_groups(server) is has


@pytest.mark.parametrize(
    ("defaults", "first"),
    [
        pytest.param({"fallback": "off"}, "declares-no-constraint", id="never"),
        pytest.param({}, "declares-no-constraint-or-asks-for-fallback", id="if they ask for a fallback"),
        pytest.param({"fallback": "always"}, "not-of-a-daemon-set", id="for a fallback"),
        pytest.param({"fill_null_selector": True}, "not-of-a-daemon-set", id="for their selectors"),
    ],
)
def test_pods_with_constraints_are_sent_only_where_these_may_change(defaults, first):
    _, made = configurations("https://127.0.0.1:8443", b"", Defaults(mode="inject", **defaults))
    names = [each["name"] for each in made["webhooks"][0]["matchConditions"]]
    assert names[0] == first
    assert len([name for name in names if name.startswith("declares")]) <= 1


def test_what_is_registered_is_taken_out_again():
    server = StoredApi()
    register(server, MADE)
    register(server, MADE)
    assert len(server.objects) == 2
    unregister(server, MADE)
    assert server.objects == {}
    unregister(server, MADE)


def test_a_rehearsal_leaves_nothing():
    server = StoredApi()
    register(server, MADE, rehearsed=True)
    assert server.objects == {}


@pytest.mark.parametrize("kind", [made["kind"] for made in MADE])
def test_nothing_of_another_owner_is_touched(kind):
    path = f"{GROUP}/{kind.lower()}s/{REGISTRATION_NAME}"
    server = StoredApi(**{path: FOREIGN})
    with pytest.raises(
        ClusterError, match=rf"^{kind} {REGISTRATION_NAME} exists, but evenspread did not create it; delete it first$"
    ):
        register(server, MADE, rehearsed=True)
    unregister(server, MADE)
    assert list(server.objects.values()) == [FOREIGN]
    assert ("DELETE", path) not in server.asked
