"""Drift of the compiled admission policies: what changes of the installed objects doctor reports."""

import copy

import pytest
from cli.commands.doctor import world as w
from cli.commands.doctor.test_doctor import HELM, POLICY_HEAD, policy

from webhook.config import parse_policy
from webhook.core.admission_policies.installed import installed_policies, read_binding
from webhook.core.admission_policies.policies import admission_policies
from webhook.core.api.version import parse_version

CONFIGURED = "rules: {spread-required: warn}\nceiling: deny\n"
APPLY = "evenspread compile --cluster --config configmap:spread/evenspread-webhook | kubectl apply -f -"
REPLACE = APPLY.replace("apply", "replace")
DENY, BINDING = "ValidatingAdmissionPolicy evenspread-deny", "ValidatingAdmissionPolicyBinding evenspread-deny"


def applied(text=CONFIGURED, version="1.37"):
    """The objects of `evenspread compile`, as the API server stores them."""
    loaded = parse_policy(POLICY_HEAD + text, file="p", today="2026-11-28").policy
    objects = {}
    for each in copy.deepcopy([*admission_policies(loaded, parse_version(version), "2026-11-28")]):
        objects[f"{each['kind']} {each['metadata']['name']}"] = each
        each["metadata"] |= {"uid": "u", "managedFields": [], "resourceVersion": "7"}
        each["status"] = {"observedGeneration": 1, "typeChecking": {}}
    return objects


def listed(objects):
    """Lists of the API server have no kinds in their items."""
    by_kind = {w.COMPILED: "ValidatingAdmissionPolicy", w.COMPILED_BINDINGS: "ValidatingAdmissionPolicyBinding"}
    return {
        path: w.items(*({**each, "kind": None} for each in objects.values() if each["kind"] == kind))
        for path, kind in by_kind.items()
    }


def world(objects, text=CONFIGURED):
    made = w.right() | listed(objects)
    policy(text)(made)
    return made


@pytest.mark.parametrize("text", [CONFIGURED, "", "ceiling: 'off'\n"])
def test_objects_as_applied(doctor, text):
    assert doctor(world(applied(text), text)) == []


def change(title, *path, to):
    def changed(objects):
        at = objects[title]["spec"]
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = to

    return changed


def removed(title):
    return lambda objects: objects.pop(title)


@pytest.mark.parametrize(
    ("changed", "where", "what"),
    [
        pytest.param(removed(DENY), DENY, "does not exist", id="a deleted policy"),
        pytest.param(removed(BINDING), BINDING, "does not exist", id="a deleted binding"),
        pytest.param(
            change(BINDING, "validationActions", to=["Audit"]),
            BINDING,
            "spec.validationActions[0] differs from the compiled object",
            id="another action",
        ),
        pytest.param(
            change(BINDING, "matchResources", to={"objectSelector": {"matchLabels": {"a": "b"}}}),
            BINDING,
            "spec.matchResources differs from the compiled object",
            id="a binding of fewer objects",
        ),
        pytest.param(
            change(DENY, "failurePolicy", to="Ignore"),
            DENY,
            "spec.failurePolicy differs from the compiled object",
            id="another failurePolicy",
        ),
        pytest.param(
            change(DENY, "matchConstraints", "matchPolicy", to="Exact"),
            DENY,
            "spec.matchConstraints.matchPolicy differs from the compiled object",
            id="another value in place of a default",
        ),
        pytest.param(
            change(DENY, "matchConstraints", "objectSelector", to={"matchLabels": {"a": "b"}}),
            DENY,
            "spec.matchConstraints.objectSelector.matchLabels differs from the compiled object",
            id="fewer objects",
        ),
        pytest.param(
            change(DENY, "validations", 1, "expression", to="true"),
            DENY,
            "spec.validations[1].expression differs from the compiled object",
            id="a rule that finds nothing",
        ),
        pytest.param(
            change(DENY, "validations", to=[]),
            DENY,
            "spec.validations differs from the compiled object",
            id="no rules",
        ),
    ],
)
def test_a_change_of_one_object(doctor, changed, where, what):
    objects = applied()
    changed(objects)
    (line,) = doctor(world(objects))
    assert (line["check"], line["state"], line["where"]) == ("admission policies", "problem", where)
    assert (line["what"], line["fix"]) == (what, APPLY if what == "does not exist" else REPLACE)


def test_a_leftover_object(doctor):
    objects = applied()
    left = copy.deepcopy(objects[BINDING])
    left["metadata"]["name"] = "evenspread-old"
    objects["left"] = left
    (line,) = doctor(world(objects))
    assert line["what"] == "is not a compiled object"
    assert line["fix"] == "kubectl delete validatingadmissionpolicybinding evenspread-old"


def test_a_change_of_the_policy(doctor):
    lines = doctor(world(applied(), "ceiling: warn\n"))
    assert [each["where"] for each in lines] == [DENY.replace("deny", mode) for mode in ("deny", "warn", "audit")]


def test_another_release_of_the_api_server(doctor):
    objects = applied(version="1.33")
    assert doctor(world(objects), version="v1.33.4") == []
    assert {each["check"] for each in doctor(world(objects), version="v1.37.1")} == {"admission policies"}


def test_policies_without_a_webhook(doctor, tmp_path):
    bare = {path: w.items() for path in (w.VALIDATING, w.MUTATING, "/apis/apps/v1/deployments")}
    bare |= {w.OPEN_REPORTS: w.report_api()} | listed(applied())
    (line,) = doctor(bare)
    assert (line["check"], line["state"]) == ("admission policies", "unknown")
    assert line["fix"] == "evenspread doctor --config evenspread.yaml"
    config = tmp_path / "p.yaml"
    config.write_text(POLICY_HEAD + CONFIGURED)
    assert doctor(bare, "--config", str(config)) == []
    config.write_text(POLICY_HEAD + "ceiling: warn\n")
    assert {each["fix"] for each in doctor(bare, "--config", str(config))} == {
        f"evenspread compile --cluster --config {config} | kubectl replace -f -"
    }


def test_policies_and_an_invalid_policy(doctor):
    lines = doctor(world(applied(), "ceilng: warn\n"))
    assert [(each["check"], each["state"]) for each in lines] == [
        ("policy", "problem"),
        ("admission policies", "unknown"),
    ]


def test_the_file_of_the_policy_is_invalid(run, tmp_path):
    config = tmp_path / "p.yaml"
    config.write_text(POLICY_HEAD + "ceilng: warn\n")
    code, _, err = run("doctor", "--config", str(config))
    assert (code, "ceilng: unknown field" in err) == (2, True)


LOGS = "kubectl -n spread logs deployment/evenspread-controller --tail=20"
BOUND = f"{BINDING.partition(' ')[0]} even-warn"
OWNED = f"{DENY.partition(' ')[0]} even-warn"


def of_the_chart(text=CONFIGURED, annotation='{"static": "policies"}'):
    """The bindings of the chart, and their policies as the controller writes them."""
    loaded, objects = parse_policy(POLICY_HEAD + text, file="p", today="2026-11-28").policy, {}
    for mode in ("deny", "warn", "audit"):
        name, settings = f"even-{mode}", {"evenspread.io/admission-policies": '{"static": "policies"}'}
        metadata = {"name": name, "uid": f"u-{mode}", "annotations": settings}
        spec = {"policyName": name, "validationActions": [mode.title()], "matchResources": {"objectSelector": {}}}
        bound = {"kind": BOUND.partition(" ")[0], "metadata": metadata, "spec": spec}
        (owned,) = installed_policies(loaded, parse_version("1.37"), "2026-11-28", [read_binding(bound)])
        objects |= {BOUND.replace("warn", mode): bound, OWNED.replace("warn", mode): copy.deepcopy(owned)}
    objects[BOUND]["metadata"]["annotations"] = {"evenspread.io/admission-policies": annotation}
    return objects


def test_policies_of_the_chart(doctor):
    assert doctor(world(of_the_chart())) == []


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        pytest.param(removed(OWNED), "does not exist", id="no policy"),
        pytest.param(
            change(OWNED, "failurePolicy", to="Ignore"),
            "spec.failurePolicy differs from the compiled object",
            id="another failurePolicy",
        ),
        pytest.param(
            lambda objects: objects[OWNED]["metadata"].pop("ownerReferences"),
            "metadata.ownerReferences differs from the compiled object",
            id="a policy that Helm would leave behind",
        ),
    ],
)
def test_a_change_of_a_policy_of_the_chart(doctor, changed, what):
    objects = of_the_chart()
    changed(objects)
    (line,) = doctor(world(objects))
    assert (line["where"], line["what"], line["fix"]) == (OWNED, what, LOGS)
    (line,) = doctor(world(objects) | {w.DEPLOYMENTS: w.items()})[-1:]
    assert line["fix"] == HELM


def test_a_deleted_binding_of_the_chart(doctor):
    objects = of_the_chart()
    del objects[BOUND], objects[OWNED]  # Kubernetes deletes the policy of a deleted binding
    (line,) = doctor(world(objects))
    assert (line["where"], line["what"], line["fix"]) == (BOUND, "does not exist", HELM)


def test_objects_of_others_with_the_same_component(doctor):
    objects = applied()
    mine = copy.deepcopy(objects[DENY])
    mine["metadata"] |= {"name": "mine", "labels": {"app.kubernetes.io/component": "admission-policies"}}
    assert doctor(world(objects | {"mine": mine})) == []


def test_policies_of_the_chart_beside_applied_objects(doctor):
    lines = doctor(world(of_the_chart() | applied()))
    assert {(each["what"], each["fix"].partition(" evenspread-")[0]) for each in lines} == {
        ("is not a compiled object", "kubectl delete validatingadmissionpolicy"),
        ("is not a compiled object", "kubectl delete validatingadmissionpolicybinding"),
    }


def test_a_binding_of_the_chart_is_invalid(doctor):
    (line,) = doctor(world(of_the_chart(annotation="{}")))
    assert line["what"].startswith("a ValidatingAdmissionPolicyBinding of the chart is invalid: ")
    assert line["fix"].endswith("--force-conflicts")
