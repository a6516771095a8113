"""Drift of the compiled admission policies: what changes of the installed objects doctor reports."""

import copy

import pytest
from cli.commands.doctor import world as w
from cli.commands.doctor.test_doctor import HELM, POLICY_HEAD, policy

from webhook.config import parse_policy
from webhook.core.admission_policies.installed import installed_policies, read_binding
from webhook.core.admission_policies.mutating_policies import mutating_policies
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
    by_kind = {
        w.COMPILED: "ValidatingAdmissionPolicy",
        w.COMPILED_BINDINGS: "ValidatingAdmissionPolicyBinding",
        w.COMPILED_DEFAULTS: "MutatingAdmissionPolicy",
        w.COMPILED_DEFAULTS_BINDINGS: "MutatingAdmissionPolicyBinding",
    }
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


MAP, MAP_BINDING = "MutatingAdmissionPolicy evenspread-defaults", "MutatingAdmissionPolicyBinding evenspread-defaults"
DEFAULTS = """
defaults:
  mode: MODE
  defaultConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}]
"""
INJECTS = DEFAULTS.replace("MODE", "inject")
APPLY_DEFAULTS = APPLY.replace("compile", "compile --target map")


def defaults_applied(text=INJECTS, version="1.37"):
    """The objects of `evenspread compile --target map`, as the API server stores them."""
    loaded = parse_policy(POLICY_HEAD + text, file="p", today="2026-11-28").policy
    made = copy.deepcopy([*mutating_policies(loaded, parse_version(version))])
    return {f"{each['kind']} {each['metadata']['name']}": each for each in made}


def defaults_world(objects, text=INJECTS, version="v1"):
    """An installation with this policy. Its webhook injects too, as doctor expects."""
    given = {path.replace("/v1/mutating", f"/{version}/mutating"): found for path, found in listed(objects).items()}
    webhook = {"metadata": {"name": "evenspread"}, "webhooks": [w.registered("mutate.evenspread.io")]}
    return world({}, text) | given | {w.MUTATING: w.items(webhook)}


@pytest.mark.parametrize("text", [INJECTS, DEFAULTS.replace("MODE", "observe")])
@pytest.mark.parametrize("rules", [{}, applied("")])
def test_defaults_as_applied(doctor, text, rules):
    assert doctor(defaults_world({**defaults_applied(text), **(rules and applied(text))}, text)) == []


@pytest.mark.parametrize(
    ("changed", "where", "what"),
    [
        pytest.param(removed(MAP_BINDING), MAP_BINDING, "does not exist", id="a deleted binding"),
        pytest.param(removed(MAP), MAP, "does not exist", id="a deleted policy"),
        pytest.param(
            change(MAP, "failurePolicy", to="Fail"),
            MAP,
            "spec.failurePolicy differs from the compiled object",
            id="another failurePolicy",
        ),
        pytest.param(
            change(MAP, "variables", 0, "expression", to="{}"),
            MAP,
            "spec.variables[0].expression differs from the compiled object",
            id="another expression",
        ),
    ],
)
def test_a_change_of_the_defaults(doctor, changed, where, what):
    objects = defaults_applied()
    changed(objects)
    (line,) = doctor(defaults_world(objects))
    assert (line["where"], line["what"]) == (where, what)
    assert line["fix"] == (APPLY_DEFAULTS if what == "does not exist" else APPLY_DEFAULTS.replace("apply", "replace"))


def test_defaults_are_left_over(doctor):
    (line,) = doctor(defaults_world(defaults_applied(), DEFAULTS.replace("MODE", "observe")))
    assert (line["where"], line["what"]) == (MAP, "spec.matchConditions differs from the compiled object")


def test_an_older_api_of_defaults(doctor):
    objects = defaults_applied(version="1.35")
    del objects[MAP_BINDING]
    (line,) = doctor(defaults_world(objects, version="v1beta1"), version="v1.35.0")
    assert line["where"] == MAP_BINDING


LOGS = "kubectl -n spread logs deployment/evenspread-controller --tail=20"
BOUND = f"{BINDING.partition(' ')[0]} even-warn"
OWNED = f"{DENY.partition(' ')[0]} even-warn"


def of_the_chart(text=CONFIGURED, annotation='{"static": "policies"}'):
    """The bindings of the chart, and their policies as the controller writes them."""
    loaded, objects = parse_policy(POLICY_HEAD + text, file="p", today="2026-11-28").policy, {}
    for mode in ("deny", "warn", "audit"):
        name, settings = f"even-{mode}", {"evenspread.io/admission-policies": '{"static": "policies"}'}
        metadata = {"name": name, "uid": f"u-{mode}", "annotations": settings}
        matched = {
            "matchPolicy": "Equivalent",
            "namespaceSelector": w.registered()["namespaceSelector"],
            "objectSelector": {},
        }
        spec = {"policyName": name, "validationActions": [mode.title()], "matchResources": matched}
        bound = {"kind": BOUND.partition(" ")[0], "metadata": metadata, "spec": spec}
        (owned,) = installed_policies(loaded, parse_version("1.37"), "2026-11-28", [read_binding(bound)])
        objects |= {BOUND.replace("warn", mode): bound, OWNED.replace("warn", mode): copy.deepcopy(owned)}
    objects[BOUND]["metadata"]["annotations"] = {"evenspread.io/admission-policies": annotation}
    return objects


def chart_world(objects, *args, **changes):
    """The release `even`, whose webhook has these arguments. Its configuration has these changes."""
    configuration = {"metadata": {"name": "even"}, "webhooks": [w.registered(**changes)]}
    return world(objects) | {w.VALIDATING: w.items(configuration), w.DEPLOYMENT: w.deployment(*args)}


def test_policies_of_the_chart(doctor):
    assert doctor(chart_world(of_the_chart())) == []


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
    (line,) = doctor(chart_world(objects))
    assert (line["where"], line["what"], line["fix"]) == (OWNED, what, LOGS)
    (line,) = doctor(chart_world(objects) | {w.DEPLOYMENTS: w.items()})[-1:]
    assert line["fix"] == HELM


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        pytest.param(
            change(BOUND, "matchResources", "namespaceSelector", to={}),
            "matchResources.namespaceSelector.matchExpressions",
            id="all namespaces",
        ),
        pytest.param(
            change(BOUND, "matchResources", "objectSelector", to={"matchLabels": {"a": "b"}}),
            "matchResources.objectSelector.matchLabels",
            id="fewer objects",
        ),
        pytest.param(
            change(BOUND, "matchResources", "resourceRules", to=[{"resources": ["pods"]}]),
            "matchResources.resourceRules",
            id="fewer kinds",
        ),
    ],
)
def test_a_binding_with_other_objects_than_the_webhook(doctor, changed, path):
    objects = of_the_chart()
    changed(objects)
    (line,) = doctor(chart_world(objects))
    assert (line["where"], line["what"]) == (BOUND, f"spec.{path} differs from the webhook configuration")
    assert line["fix"] == f"{HELM} --force-conflicts"


def test_the_webhook_has_an_object_selector(doctor):
    selector = {"matchLabels": {"spread": "yes"}}
    lines = doctor(chart_world(of_the_chart(), objectSelector=selector))
    where = {each["where"] for each in lines if each["check"] == "admission policies"}
    assert where == {BOUND.replace("warn", mode) for mode in ("deny", "warn", "audit")}


def test_a_binding_with_another_action(doctor):
    objects = of_the_chart()
    change(BOUND, "validationActions", to=["Audit"])(objects)
    lines = doctor(chart_world(objects))
    assert (BOUND, "spec.validationActions[0] differs from the webhook configuration") in [
        (each["where"], each["what"]) for each in lines
    ]


def test_the_webhook_configuration_cannot_be_read(doctor):
    deployments = w.items(w.deployment(), w.controller())
    given = chart_world(of_the_chart()) | {w.VALIDATING: (403, {}), w.DEPLOYMENTS: deployments}
    assert {each["check"] for each in doctor(given, "-n", "spread")} == {"registration", "admission"}


@pytest.mark.parametrize(
    ("webhook", "controller"),
    [
        pytest.param("--leave-warnings-to-policies", "--scan", id="by the webhook"),
        pytest.param("--config=x", "--admission-policies", id="by the controller"),
    ],
)
def test_all_objects_of_the_chart_are_gone(doctor, webhook, controller):
    given = chart_world({}, webhook) | {w.DEPLOYMENTS: w.items(w.controller(controller))}
    lines = doctor(given)
    assert {(each["what"], each["fix"]) for each in lines} == {("does not exist", HELM)}
    assert [each["where"] for each in lines] == [BOUND.replace("warn", mode) for mode in ("deny", "warn", "audit")]
    # The chart has no policies without a webhook configuration.
    assert {each["check"] for each in doctor(given | {w.VALIDATING: w.items()}, "-n", "spread")} == {"registration"}


def test_a_deleted_binding_of_the_chart(doctor):
    objects = of_the_chart()
    del objects[BOUND], objects[OWNED]  # Kubernetes deletes the policy of a deleted binding
    (line,) = doctor(chart_world(objects))
    assert (line["where"], line["what"], line["fix"]) == (BOUND, "does not exist", HELM)


def test_objects_of_others_with_the_same_component(doctor):
    objects = applied()
    mine = copy.deepcopy(objects[DENY])
    mine["metadata"] |= {"name": "mine", "labels": {"app.kubernetes.io/component": "admission-policies"}}
    assert doctor(world(objects | {"mine": mine})) == []


def test_policies_of_the_chart_beside_applied_objects(doctor):
    lines = doctor(chart_world(of_the_chart() | applied()))
    assert {(each["what"], each["fix"].partition(" evenspread-")[0]) for each in lines} == {
        ("is not a compiled object", "kubectl delete validatingadmissionpolicy"),
        ("is not a compiled object", "kubectl delete validatingadmissionpolicybinding"),
    }


def test_a_binding_of_the_chart_is_invalid(doctor):
    (line,) = doctor(chart_world(of_the_chart(annotation="{}")))
    assert line["what"].startswith("a ValidatingAdmissionPolicyBinding of the chart is invalid: ")
    assert line["fix"].endswith("--force-conflicts")
