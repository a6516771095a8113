"""The chart's policies, as they are created, left alone and repaired."""

import copy
import json

import pytest
from cluster.stored import StoredApi

from webhook.cluster.errors import RefusedError
from webhook.cluster.writing.admission_policies import chart_binding, put_policy

GROUP = "/apis/admissionregistration.k8s.io/v1"
PATH = f"{GROUP}/validatingadmissionpolicies/even-deny"
OWNER = {"kind": "ValidatingAdmissionPolicyBinding", "name": "even-deny", "uid": "u-1"}
WANTED = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicy",
    "metadata": {"name": "even-deny", "labels": {"app": "even"}, "ownerReferences": [OWNER]},
    "spec": {"failurePolicy": "Fail", "matchConditions": [{"name": "a", "expression": "true"}]},
}


def changed(**fields):
    made = copy.deepcopy(WANTED)
    for path, value in fields.items():
        *parents, last = path.split("__")
        at = made
        for each in parents:
            at = at[each]
        at[last] = value
    return made


def api(stored):
    return StoredApi(**({} if stored is None else {PATH: stored}))


MORE = [{"name": "a", "expression": "true"}, {"name": "b", "expression": "false"}]


@pytest.mark.parametrize(
    ("stored", "writes"),
    [
        pytest.param(None, ["PATCH"], id="absent: created by server-side apply"),
        pytest.param(WANTED, [], id="equal"),
        pytest.param(changed(metadata__labels={"app": "even", "team": "x"}), [], id="a further label"),
        pytest.param(changed(metadata__labels={}), ["PUT"], id="without our label"),
        pytest.param(changed(metadata__labels=None), ["PUT"], id="without labels"),
        pytest.param(changed(spec__failurePolicy="Ignore"), ["PUT"], id="a changed field"),
        pytest.param(changed(spec__matchConditions=MORE), ["PUT"], id="a further condition, which turns it off"),
        pytest.param(changed(metadata__ownerReferences=[OWNER | {"uid": "u-0"}]), ["PUT"], id="an earlier binding"),
        pytest.param(changed(metadata__ownerReferences=[]), ["PUT"], id="no owner"),
    ],
)
def test_a_policy_is_written_if_it_differs(stored, writes):
    server = api(stored)
    assert put_policy(server, WANTED) is bool(writes)
    assert [method for method, _ in server.asked if method != "GET"] == writes
    now = server.objects[PATH]
    assert (now["spec"], now["metadata"]["ownerReferences"]) == (WANTED["spec"], [OWNER])
    assert now["metadata"]["labels"]["app"] == "even"
    assert put_policy(server, WANTED) is False


def test_others_keep_their_labels():
    server = api(changed(metadata__labels={"team": "x"}))
    put_policy(server, WANTED)
    assert server.objects[PATH]["metadata"]["labels"] == {"team": "x", "app": "even"}


@pytest.mark.parametrize("stored", [None, changed(spec__failurePolicy="Ignore")], ids=["create", "update"])
def test_a_refusal(stored):
    server = api(stored)
    server.before = lambda method, _path: None if method == "GET" else 403
    with pytest.raises(RefusedError, match="403 ValidatingAdmissionPolicy even-deny: says 403"):
        put_policy(server, WANTED)


def binding(mode, action, annotation="evenspread.io/admission-policies"):
    meta = {"name": f"even-{mode}", "uid": f"u-{mode}", "annotations": {annotation: json.dumps({"static": "both"})}}
    return {"metadata": meta, "spec": {"policyName": f"even-{mode}", "validationActions": [action]}}


def stored_bindings(**replaced):
    made = {mode: binding(mode, mode.capitalize()) for mode in ("deny", "warn", "audit")} | replaced
    return StoredApi(
        **{f"{GROUP}/validatingadmissionpolicybindings/even-{mode}": each for mode, each in made.items() if each}
    )


def test_the_bindings_of_a_release():
    found = [chart_binding(stored_bindings(), f"even-{mode}") for mode in ("deny", "warn", "audit")]
    assert [(each.name, each.mode.value, each.uid) for each in found] == [
        ("even-deny", "deny", "u-deny"),
        ("even-warn", "warn", "u-warn"),
        ("even-audit", "audit", "u-audit"),
    ]


@pytest.mark.parametrize(
    ("replaced", "error", "text"),
    [
        pytest.param(
            {"deny": None}, RefusedError, "404 ValidatingAdmissionPolicyBinding even-deny: says 404", id="gone"
        ),
        pytest.param(
            {"deny": binding("deny", "Deny", "mine")},
            ValueError,
            "ValidatingAdmissionPolicyBinding even-deny is not of the chart",
            id="of somebody else",
        ),
    ],
)
def test_other_bindings(replaced, error, text):
    with pytest.raises(error) as raised:
        chart_binding(stored_bindings(**replaced), "even-deny")
    assert str(raised.value) == text
