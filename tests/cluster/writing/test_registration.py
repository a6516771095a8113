"""What is registered from a terminal, and that nothing of another owner is touched; by a fake API server."""

import base64

import pytest

from webhook.cluster.connection import ClusterError
from webhook.cluster.writing.registration import (
    REGISTRATION_NAME,
    configurations,
    has_groups,
    register,
    unregister,
)
from webhook.core.policy.policy import Defaults

MADE = configurations("https://127.0.0.1:8443", b"the CA", Defaults(mode="inject"))


class FakeServer:
    """Objects by path, and every request that changed one."""

    def __init__(self, **found):
        self.objects = {
            f"/apis/admissionregistration.k8s.io/v1/{kind.lower()}s/{REGISTRATION_NAME}": value
            for kind, value in found.items()
        }
        self.changes = []

    def request(self, method, path, body=None, *, media="application/json"):
        address, _, query = path.partition("?")
        if method == "GET":
            return (200, self.objects[address]) if address in self.objects else (404, {})
        self.changes.append((method, address.rpartition("/v1/")[2], media))
        if method == "DELETE":
            return (200, {}) if self.objects.pop(address, None) else (404, {})
        if "dryRun" not in query:
            self.objects[address] = body
        return 200, body


FOREIGN = {"metadata": {"name": REGISTRATION_NAME, "labels": {"app.kubernetes.io/managed-by": "Helm"}}}


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
    server = FakeServer()
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
    server = FakeServer()
    register(server, MADE)
    register(server, MADE)
    assert len(server.objects) == 2
    unregister(server, MADE)
    assert server.objects == {}
    unregister(server, MADE)


def test_a_rehearsal_leaves_nothing():
    server = FakeServer()
    register(server, MADE, rehearsed=True)
    assert server.objects == {}


@pytest.mark.parametrize("kind", [made["kind"] for made in MADE])
def test_nothing_of_another_owner_is_touched(kind):
    server = FakeServer(**{kind: FOREIGN})
    with pytest.raises(
        ClusterError, match=rf"^{kind} {REGISTRATION_NAME} exists and is not ours; delete it, or let it be$"
    ):
        register(server, MADE, rehearsed=True)
    unregister(server, MADE)
    assert list(server.objects.values()) == [FOREIGN]
    assert ("DELETE", f"{kind.lower()}s/{REGISTRATION_NAME}", "application/json") not in server.changes
