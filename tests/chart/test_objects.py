"""What stands in the objects: that they can do no harm, and agree with the program."""

import base64
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from chart.rendered import CA, CERT_MANAGER, EXISTING, INJECT, ZERO, files, objects, one, refusal
from msgspec import to_builtins
from server.conftest import serving

from certs.authority import issue_authority, issue_leaf
from certs.store import write_pair
from webhook.cli.main import evenspread
from webhook.cluster.resources import BUILT_IN_RESOURCES, watched
from webhook.cluster.writing.registration import configurations
from webhook.config import parse_policy
from webhook.config.schema_checks import schema
from webhook.core.admission_policies.installed import binding_names, read_binding
from webhook.core.api.version import RECORDED
from webhook.core.context import Context
from webhook.core.policy.defaults import Defaults
from webhook.core.policy.policy import Mode
from webhook.core.review.examination import examine

DENIED = "what kube-apiserver would refuse"
VALIDATING, MUTATING = "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"


def container(values, role="webhook"):
    (found,) = one("Deployment", values, role)["spec"]["template"]["spec"]["containers"]
    return found


def policy(values):
    return parse_policy(one("ConfigMap", values)["data"]["policy.yaml"]).policy


# -- the webhook configurations


@pytest.mark.parametrize(
    ("fills", "fallback"), [(False, "annotation"), (True, "annotation"), (False, "off"), (False, "always")]
)
def test_the_webhooks_are_those_that_a_terminal_registers(fills, fallback):
    values = {
        **EXISTING,
        "config": {"defaults": {"mode": "inject", "fillNullSelector": fills, "fallback": fallback}},
        "crds": {"install": True},
    }
    defaults = Defaults(mode="inject", fill_null_selector=fills, fallback=fallback)
    expected = configurations("https://x", CA.encode(), defaults, groups=True)
    pairs = [
        pair for each in expected for pair in zip(one(each["kind"], values)["webhooks"], each["webhooks"], strict=True)
    ]
    assert len(pairs) == 3
    for ours, theirs in pairs:
        for webhook in (ours, theirs):
            webhook["rules"].sort(key=lambda rule: (rule["apiGroups"], rule["resources"]))
        assert ours["clientConfig"]["caBundle"] == theirs["clientConfig"]["caBundle"]
        (selected,) = ours["namespaceSelector"]["matchExpressions"]
        (excluded,) = theirs["namespaceSelector"]["matchExpressions"]
        assert selected == {**excluded, "values": [*excluded["values"], "platform"]}
        apart = {"clientConfig", "namespaceSelector"}
        assert {name: ours[name] for name in ours.keys() - apart} == {
            name: theirs[name] for name in theirs.keys() - apart
        }


@pytest.mark.parametrize(("kind", "route"), [(VALIDATING, "validate"), (MUTATING, "mutate")])
def test_the_api_server_is_led_to_the_service(kind, route):
    (webhook,) = one(kind, INJECT | EXISTING)["webhooks"]
    port = one("Service", INJECT)["spec"]["ports"][0]
    assert webhook["clientConfig"] == {
        "caBundle": base64.b64encode(CA.encode()).decode(),
        "service": {"namespace": "platform", "name": "evenspread-webhook", "port": port["port"], "path": f"/{route}"},
    }
    assert port["targetPort"] in {each["name"] for each in container(INJECT)["ports"]}


def test_narrower_selectors_never_let_a_system_namespace_in():
    values = {
        **INJECT,
        "webhook": {
            "excludedNamespaces": ["team", "kube-system"],
            "namespaceSelector": {
                "matchLabels": {"tier": "test"},
                "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "Exists"}],
            },
            "objectSelector": {"matchLabels": {"spread": "yes"}},
        },
    }
    for kind in (VALIDATING, MUTATING):
        (webhook,) = one(kind, values)["webhooks"]
        first, second = webhook["namespaceSelector"]["matchExpressions"]
        assert first["values"] == ["kube-system", "kube-public", "kube-node-lease", "platform", "team"]
        assert (first["operator"], second["operator"]) == ("NotIn", "Exists")
        assert webhook["namespaceSelector"]["matchLabels"] == {"tier": "test"}
        assert webhook["objectSelector"] == {"matchLabels": {"spread": "yes"}}


def test_only_the_validating_webhook_can_fail_closed():
    values = {**INJECT, "webhook": {"failurePolicy": "Fail", "timeoutSeconds": 3}}
    policies = [one(kind, values)["webhooks"][0]["failurePolicy"] for kind in (VALIDATING, MUTATING)]
    assert policies == ["Fail", "Ignore"]


RULES = "evenspread.io/rules"


@pytest.mark.parametrize("mode", [ZERO, EXISTING, CERT_MANAGER], ids=["self", "a Secret of yours", "cert-manager"])
def test_what_may_refuse_writes_has_no_rules_before_the_controller_adds_them(mode):
    """Nobody answers at the first install, and in mode self nobody is trusted."""
    values = {**mode, "webhook": {"extraResources": [{"apiGroup": "example.com", "resources": ["things"]}]}}
    opened = one(VALIDATING, values)
    closed = one(VALIDATING, {**values, "webhook": {**values["webhook"], "failurePolicy": "Fail"}})
    assert RULES not in opened["metadata"].get("annotations", {})
    assert json.loads(closed["metadata"]["annotations"][RULES]) == opened["webhooks"][0]["rules"]
    assert "rules" not in closed["webhooks"][0]
    assert closed["webhooks"][0]["failurePolicy"] == "Fail"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (ZERO, ["validating"]),
        (INJECT, ["validating", "mutating"]),
        ({"crds": {"install": True}}, ["validating", "mutating"]),
        (INJECT | {"webhook": {"enabled": False}}, []),
        (CERT_MANAGER, ["validating"]),
    ],
)
def test_the_controller_is_ready_when_the_configurations_of_this_release_are_complete(values, expected):
    """`helm --wait` waits for its pod, which each revision has anew."""
    args = container(values, "controller")["args"]
    rendered = {each["kind"].removesuffix("WebhookConfiguration").lower() for each in objects(values)}
    assert [flag.partition("=")[2] for flag in args if flag.startswith("--expect=")] == expected
    assert rendered & {"validating", "mutating"} == {*expected}
    assert f"--deployment=platform/{one('Deployment', values)['metadata']['name']}" in args
    template = one("Deployment", values, "controller")["spec"]["template"]
    assert template["metadata"]["annotations"]["evenspread.io/revision"] == "1"


@pytest.mark.parametrize("mode", [EXISTING, CERT_MANAGER], ids=["a Secret of yours", "cert-manager"])
def test_the_controller_writes_configurations_only_where_nobody_else_completes_them(mode):
    def verbs(**webhook):
        (rule,) = [
            each
            for each in one("ClusterRole", {**mode, "webhook": webhook}, "controller")["rules"]
            if "validatingwebhookconfigurations" in each["resources"]
        ]
        return rule["verbs"]

    assert (verbs(), verbs(failurePolicy="Fail")) == (["get", "watch"], ["get", "watch", "patch"])


def test_no_configuration_matches_everything_or_what_holds_a_cluster_up():
    (webhook,) = one(VALIDATING, ZERO)["webhooks"]
    for rule in webhook["rules"]:
        named = {*rule["apiGroups"], *rule["resources"], *rule["operations"]}
        assert not [each for each in named if "*" in each or "/" in each.removesuffix("/scale")]
        assert not named & {"nodes", "leases", "namespaces", "secrets", "events", "DELETE", "CONNECT"}


def test_cert_manager_is_asked_to_fill_in_the_authority():
    certificate = [each for each in objects(CERT_MANAGER) if each["kind"] == "Certificate"][-1]
    metadata = one(VALIDATING, CERT_MANAGER)["metadata"]
    (webhook,) = one(VALIDATING, CERT_MANAGER)["webhooks"]
    source = f"platform/{certificate['metadata']['name']}"
    assert metadata["annotations"] == {"cert-manager.io/inject-ca-from": source}
    assert "caBundle" not in webhook["clientConfig"]
    assert "evenspread-webhook.platform.svc" in certificate["spec"]["dnsNames"]
    assert certificate["spec"]["secretName"] == "evenspread-webhook-tls"


def test_templates_of_groups_are_sent_where_their_definition_is_installed():
    crds = {"crds": {"install": True}}
    (webhook,) = one(MUTATING, ZERO | crds)["webhooks"]
    assert (webhook["name"], webhook["failurePolicy"]) == ("groups.evenspread.io", "Ignore")
    assert webhook["clientConfig"]["service"]["path"] == "/mutate"
    (rule,) = webhook["rules"]
    assert (rule["apiGroups"], rule["resources"]) == (["apps"], ["deployments", "statefulsets"])
    both = one(MUTATING, INJECT | crds)["webhooks"]
    assert [each["name"] for each in both] == ["mutate.evenspread.io", "groups.evenspread.io"]
    assert both[1]["namespaceSelector"] == both[0]["namespaceSelector"]


# -- permissions


def test_the_role_is_what_the_program_watches_and_nothing_else():
    rules = one("ClusterRole", ZERO)["rules"]
    asked = {
        (version.rpartition("/")[0], resource.name)
        for resource in BUILT_IN_RESOURCES
        for version in resource.api_versions
        if not resource.extension
    }
    assert granted(rules) == asked, "charts/evenspread/templates/rbac.yaml, then make docs"
    assert {tuple(rule["verbs"]) for rule in rules} == {("get", "list", "watch")}


def granted(rules):
    return {(group, name) for rule in rules for group in rule["apiGroups"] for name in rule["resources"]}


def test_groups_may_be_read_where_their_definition_is_installed():
    for role in ("webhook", "controller"):
        (rule,) = [
            each
            for each in one("ClusterRole", ZERO | {"crds": {"install": True}}, role)["rules"]
            if "spreadgroups" in each["resources"]
        ]
        expected = {"apiGroups": ["evenspread.io"], "resources": ["spreadgroups"], "verbs": ["get", "list", "watch"]}
        assert rule == expected
        assert ("evenspread.io", "spreadgroups") not in granted(one("ClusterRole", ZERO, role)["rules"])


def test_the_guard_gets_its_right_and_a_policy_that_limits_it():
    kinds = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")

    def rights(values):
        return [rule for rule in one("ClusterRole", values, "controller")["rules"] if rule["verbs"] == ["patch"]]

    guarded = {**ZERO, "controller": {"scaleIn": {"guard": True}}}
    assert {"apiGroups": [""], "resources": ["pods"], "verbs": ["patch"]} in rights(guarded)
    assert "--guard-scale-in" in container(guarded, "controller")["args"]
    policy, binding = (one(kind, guarded, "controller", "-scale-in") for kind in kinds)
    assert binding["spec"] == {"policyName": policy["metadata"]["name"], "validationActions": ["Deny"]}
    account = one("ServiceAccount", guarded, "controller")["metadata"]["name"]
    (condition,) = policy["spec"]["matchConditions"]
    assert condition["expression"].endswith(f"'system:serviceaccount:platform:{account}'")
    assert policy["spec"]["failurePolicy"] == "Fail"
    # By default: no right, no option, no policy.
    assert not [rule for rule in rights(ZERO) if "pods" in rule["resources"]]
    assert "--guard-scale-in" not in container(ZERO, "controller")["args"]
    assert not [each for each in objects(ZERO) if each["kind"] in kinds]


# -- admission policies

POLICIES = {"admission": {"static": "policies"}}
OF_MODES = ["evenspread-audit", "evenspread-deny", "evenspread-warn"]


def policy_bindings(values):
    return {
        each["metadata"]["name"]: each
        for each in objects(values)
        if each["kind"] == "ValidatingAdmissionPolicyBinding" and not each["metadata"]["name"].endswith("-scale-in")
    }


@pytest.mark.parametrize("static", ["policies", "both"])
def test_a_binding_of_each_mode_has_the_selectors_of_the_webhook(static):
    conditions = [{"name": "mine", "expression": "request.name != 'a'"}]
    webhook = {
        "excludedNamespaces": ["team"],
        "namespaceSelector": {"matchLabels": {"tier": "test"}},
        "objectSelector": {"matchLabels": {"spread": "yes"}},
        "matchConditions": conditions,
    }
    values = {"admission": {"static": static}, "webhook": webhook}
    (registered,) = one(VALIDATING, values)["webhooks"]
    found = policy_bindings(values)
    assert [*found] == OF_MODES
    for name, binding in found.items():
        assert binding["spec"] == {
            "policyName": name,
            "validationActions": [name.removeprefix("evenspread-").capitalize()],
            "matchResources": {key: registered[key] for key in ("namespaceSelector", "objectSelector")},
        }
        read = read_binding({**binding, "metadata": {**binding["metadata"], "uid": "u"}})
        assert (read.settings.static, read.settings.failure_policy) == (static, "Ignore")
        assert [*map(to_builtins, read.settings.match_conditions)] == conditions
    assert binding_names("evenspread") == ("evenspread-deny", "evenspread-warn", "evenspread-audit")


@pytest.mark.parametrize(
    ("values", "written", "left"),
    [
        pytest.param(ZERO, False, False, id="the webhook, by default"),
        pytest.param(POLICIES, True, True, id="policies"),
        pytest.param({"admission": {"static": "both"}}, True, False, id="both"),
        pytest.param(POLICIES | {"webhook": {"enabled": False}}, False, True, id="the kill switch"),
        pytest.param(POLICIES | CERT_MANAGER | {"controller": {"scan": {"enabled": False}}}, True, True, id="no scan"),
    ],
)
def test_the_controller_writes_policies_where_the_chart_binds_them(values, written, left):
    assert bool(policy_bindings(values)) is written
    arguments = container(values, "controller")["args"]
    assert ("--admission-policies" in arguments) is written
    stop = "kubectl delete validatingadmissionpolicybinding evenspread-deny evenspread-warn evenspread-audit --ignore"
    assert (stop in files(values)["NOTES.txt"]) is written
    assert not written or "--config=/run/evenspread/policy/policy.yaml" in arguments
    assert ("--leave-warnings-to-policies" in container(values)["args"]) is left
    rules = [each for each in one("ClusterRole", values, "controller")["rules"] if "resourceNames" in each]
    rights = {each["resources"][0]: (sorted(each["resourceNames"]), each["verbs"]) for each in rules}
    rights.pop("mutatingwebhookconfigurations")
    expected = {
        "validatingadmissionpolicies": (OF_MODES, ["get", "create", "patch", "update", "delete"]),
        "validatingadmissionpolicybindings": (OF_MODES, ["get"]),
    }
    assert rights == (expected if written else {})


def test_policies_need_a_controller():
    values = POLICIES | CERT_MANAGER | {"controller": {"replicas": 0}}
    assert "only the controller writes the admission policies (admission.static)" in refusal(values)


def test_zero_values_watch_nothing_that_is_not_granted():
    assert watched(policy(ZERO)) == BUILT_IN_RESOURCES


def test_named_kinds_are_both_sent_and_granted():
    values = {**ZERO, "webhook": {"extraResources": [{"apiGroup": "example.com", "resources": ["things"]}]}}
    (webhook,) = one(VALIDATING, values)["webhooks"]
    granted, sent = one("ClusterRole", values)["rules"][-1], webhook["rules"][-1]
    assert granted == {"apiGroups": ["example.com"], "resources": ["things"], "verbs": ["get", "list", "watch"]}
    assert (sent["apiGroups"], sent["resources"]) == (["example.com"], ["things"])


def rules_of(role, values=ZERO):
    found = one("Role", values, role)["rules"] + one("ClusterRole", values, role)["rules"]
    assert not [each for rule in found for field in rule.values() for each in field if "*" in each]
    return found


def named_rights(role):
    """What a role may do with objects that it names: resource -> names, verbs."""
    named = [rule for rule in rules_of(role) if "resourceNames" in rule]
    return {name: (rule["resourceNames"], rule["verbs"]) for rule in named for name in rule["resources"]}


def written(values=ZERO):
    """What the controller may change without naming it: resource -> verbs."""
    reading = {"get", "list", "watch"}
    unnamed = [rule for rule in rules_of("controller", values) if "resourceNames" not in rule]
    return {
        (group, name): {*rule["verbs"]}
        for rule in unnamed
        for group in rule["apiGroups"]
        for name in rule["resources"]
        if {*rule["verbs"]} - reading
    }


def test_the_controller_writes_reports_and_events_and_no_more_than_it_is_told_to():
    report, event = {"list", "create", "patch", "delete"}, {"create", "patch"}
    reports = {("openreports.io", "reports"): report, ("wgpolicyk8s.io", "policyreports"): report}
    events = {("events.k8s.io", "events"): event}

    def scan(**values):
        return written({"controller": {"scan": values}})

    assert written() == reports | events
    assert (scan(reports=False), scan(events=False), scan(enabled=False)) == (events, reports, {})


def test_the_controller_reads_what_the_webhook_watches_and_every_kind_that_is_sent():
    values = {"controller": {"scan": {"extraResources": [{"apiGroup": "db.example.com", "resources": ["dbs"]}]}}}
    rules = one("ClusterRole", values, "controller")["rules"]
    granted = {
        (group, name, verb) for r in rules for group in r["apiGroups"] for name in r["resources"] for verb in r["verbs"]
    }
    (webhook,) = one(VALIDATING, ZERO)["webhooks"]
    sent = {(group, name) for rule in webhook["rules"] for group in rule["apiGroups"] for name in rule["resources"]}
    sent.remove(("apps", "controllerrevisions"))  # the sets that they are of are read
    listed = {(group, name, "list") for group, name in sent if "/" not in name} | {("db.example.com", "dbs", "list")}
    watched_too = {
        (group, name, verb)
        for rule in one("ClusterRole", ZERO)["rules"]
        for group in rule["apiGroups"]
        for name in rule["resources"]
        for verb in rule["verbs"]
    }
    assert listed | watched_too <= granted


@pytest.mark.parametrize(
    "values", [ZERO, CERT_MANAGER, EXISTING], ids=["its own CA", "cert-manager", "a Secret of yours"]
)
def test_the_controller_does_what_it_is_told_to(values):
    def flags(**scan):
        return {
            each.partition("=")[0] for each in container({**values, "controller": {"scan": scan}}, "controller")["args"]
        }

    assert {"--scan", "--config", "--lease"} <= flags()
    assert {"--no-reports", "--no-events", "--all-workloads"} & flags() == set()
    assert {"--no-reports", "--no-events", "--all-workloads"} <= flags(reports=False, events=False, allWorkloads=True)
    assert ("--ca-secret" in flags()) == (values == ZERO)


@pytest.mark.parametrize(
    ("scan", "left"),
    [
        pytest.param({}, True, id="reports tell"),
        pytest.param({"audits": False}, False, id="admission is to tell too"),
        pytest.param({"reports": False}, False, id="no reports"),
        pytest.param({"enabled": False}, False, id="no scan"),
    ],
)
def test_what_is_only_audited_is_left_to_a_scan_that_reports_it(scan, left):
    values = {**ZERO, "controller": {"scan": scan}}
    assert ("--leave-audit-to-scan" in container(values, "webhook")["args"]) is left


def test_a_role_may_change_objects_that_are_named_and_nothing_else():
    """None may create, delete or list Secrets; each object is one that the chart renders."""
    assert named_rights("webhook") == {"secrets": (["evenspread-ca"], ["get", "watch"])}
    configurations = (["evenspread"], ["get", "watch", "patch"])
    assert named_rights("controller") == {
        "secrets": (["evenspread-ca"], ["get", "watch", "update"]),
        "deployments": (["evenspread-webhook"], ["get"]),
        "leases": (["evenspread-controller"], ["get", "update"]),
        "validatingwebhookconfigurations": configurations,
        "mutatingwebhookconfigurations": configurations,
    }
    rendered = {each["metadata"]["name"] for each in objects(INJECT)}
    assert {name for names, _ in named_rights("controller").values() for name in names} <= rendered


def test_both_roles_are_told_of_the_same_ca():
    def of_the_ca(role):
        return sorted(flag for flag in container(ZERO, role)["args"] if flag.startswith(("--ca-", "--leaf-")))

    assert of_the_ca("webhook") == of_the_ca("controller")
    assert of_the_ca("webhook")[1] == f"--ca-secret=platform/{one('Secret', ZERO)['metadata']['name']}"
    names = [flag.partition("=")[2] for flag in container(ZERO)["args"] if flag.startswith("--tls-name=")]
    assert names[0] == f"{one('Service', ZERO)['metadata']['name']}.platform.svc"


def test_the_key_of_an_own_certificate_stays_in_memory():
    volumes = one("Deployment", ZERO)["spec"]["template"]["spec"]["volumes"]
    assert {each["name"]: each.get("emptyDir", {}).get("medium") for each in volumes} == {
        "policy": None,
        "tmp": "Memory",
    }


@pytest.mark.parametrize("role", ["webhook", "controller"])
def test_the_named_rights_are_of_the_account_of_the_pods_alone(role):
    account = one("Deployment", ZERO, role)["spec"]["template"]["spec"]["serviceAccountName"]
    for kind in ("RoleBinding", "ClusterRoleBinding"):
        binding = one(kind, ZERO, role)
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": account, "namespace": "platform"}]
        assert binding["roleRef"]["name"] == binding["metadata"]["name"]
    assert one("ServiceAccount", ZERO, role)["metadata"]["name"] == account


def test_the_role_is_bound_to_the_account_of_the_pods_alone():
    binding = one("ClusterRoleBinding", ZERO)
    account = one("Deployment", ZERO)["spec"]["template"]["spec"]["serviceAccountName"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": account, "namespace": "platform"}]
    assert binding["roleRef"]["name"] == one("ClusterRole", ZERO)["metadata"]["name"]
    assert one("ServiceAccount", ZERO)["metadata"]["name"] == account


@pytest.mark.parametrize("values", [ZERO, INJECT, CERT_MANAGER], ids=["zero", "inject", "cert-manager"])
def test_nothing_that_is_rendered_holds_a_secret_or_is_a_hook(values):
    made = objects(values)
    assert [each["kind"] for each in made if each["kind"] == "Job"] == []
    assert [{*each} - {"apiVersion", "kind", "metadata", "type"} for each in made if each["kind"] == "Secret"] in (
        [],
        [{*()}],
    )
    assert [each for each in made if "helm.sh/hook" in each["metadata"].get("annotations", {})] == []


# -- the pods


@pytest.mark.parametrize(
    ("kind", "role"),
    [("Deployment", "webhook"), ("Deployment", "controller"), ("Pod", "test")],
    ids=["webhook", "controller", "test"],
)
def test_pods_are_restricted(kind, role):
    spec = one(kind, {"tests": {"enabled": True}}, role)["spec"]
    spec = spec["template"]["spec"] if kind == "Deployment" else spec
    assert spec["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    for each in spec["containers"]:
        assert each["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert "memory" in each["resources"]["requests"]
        assert [*each["resources"]["limits"]] == ["memory"]


def test_openshift_may_choose_the_user():
    values = {**ZERO, "podSecurityContext": {"runAsUser": None, "runAsGroup": None}}
    context = one("Deployment", values)["spec"]["template"]["spec"]["securityContext"]
    assert context == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


@pytest.mark.parametrize("role", ["webhook", "controller"])
def test_probes_ask_the_plain_port(role):
    found = container(ZERO, role)
    asked = {name: found[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")}
    assert asked == {
        "startup": {"path": "/healthz", "port": "health"},
        "liveness": {"path": "/healthz", "port": "health"},
        "readiness": {"path": "/readyz", "port": "health"},
    }


@pytest.mark.parametrize(
    ("values", "image"),
    [
        (ZERO, "evenspread:0.1.0"),
        ({**ZERO, "image": {"repository": "reg.example/es", "tag": "x"}}, "reg.example/es:x"),
        ({**ZERO, "image": {"digest": f"sha256:{'a' * 64}"}}, f"evenspread@sha256:{'a' * 64}"),
    ],
)
def test_the_image_is_named(values, image):
    assert container(values)["image"] == image


def test_the_kernel_grants_the_drain_its_time():
    spec = one("Deployment", {**ZERO, "drainSeconds": 15})["spec"]["template"]["spec"]
    assert "--drain-seconds=15" in spec["containers"][0]["args"]
    assert spec["terminationGracePeriodSeconds"] > 20  # graceful_timeout, which the drain is part of


@pytest.mark.parametrize(
    ("values", "secret"),
    [
        (EXISTING, "evenspread-webhook-tls"),
        (CERT_MANAGER, "evenspread-webhook-tls"),
        ({"certificates": {"mode": "existingSecret", "existingSecret": "ours", "caBundle": CA}}, "ours"),
    ],
)
def test_pods_wait_for_the_secret(values, secret):
    volumes = one("Deployment", values)["spec"]["template"]["spec"]["volumes"]
    (mounted,) = [each["secret"] for each in volumes if "secret" in each]
    assert (mounted["secretName"], "optional" in mounted) == (secret, False)
    assert [each["key"] for each in mounted["items"]] == ["tls.crt", "tls.key"]  # a CA's own key stays where it is


def test_a_rollout_never_has_fewer_pods():
    assert one("Deployment", ZERO)["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}


def test_pods_start_anew_only_for_what_is_read_at_the_start():
    def template(config):
        return one("Deployment", {**ZERO, "config": config})["spec"]["template"]["metadata"]

    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "templatePath": "spec.template"}
    owner = {"apiVersion": "example.com/v1", "kind": "Thing"}
    assert template({}) == template({"ceiling": "deny", "rules": {"selector-null": "off"}})
    assert "annotations" not in template({})
    defaults = [
        template({"defaults": {"mode": "inject", "defaultConstraints": each}}) for each in ([], [{"maxSkew": 1}])
    ]
    assert len({each["annotations"]["checksum/defaults"] for each in defaults}) == 2, "a pod made meanwhile has none"
    kinds = [template({"workloads": [thing]}), template({"defaults": {"owners": [owner]}})]
    assert len({each["annotations"]["checksum/kinds"] for each in kinds}) == 2
    controller = one("Deployment", {"config": {"workloads": [thing]}}, "controller")["spec"]["template"]["metadata"]
    assert controller["annotations"]["checksum/kinds"] == kinds[0]["annotations"]["checksum/kinds"]


@pytest.mark.parametrize("role", ["webhook", "controller"])
def test_the_chart_passes_its_own_rules(role):
    deployment = one("Deployment", ZERO, role)
    examined = examine(
        json.dumps(deployment).encode(),
        Context(policy=policy(ZERO), version=RECORDED, now="2026-01-01", namespace="platform"),
    )
    assert (examined.findings, examined.warnings) == ((), ())


@pytest.mark.parametrize(
    ("values", "role"),
    [(ZERO, "webhook"), (ZERO, "controller"), (EXISTING, "webhook"), (EXISTING, "controller")],
    ids=["webhook", "controller", "with a Secret of yours", "controller, with a Secret of yours"],
)
def test_the_arguments_are_the_programs_own(values, role):
    (command, *flags) = container(values, role)["args"]
    known = {name for each in evenspread.get_command(None, command).params for name in each.opts}
    assert {flag.partition("=")[0] for flag in flags} <= known
    mounted = {each["mountPath"] for each in container(values, role)["volumeMounts"]}
    files_named = [flag.partition("=")[2] for flag in flags if "=/" in flag]
    assert {file.rpartition("/")[0] for file in files_named} <= mounted
    assert "/tmp" in mounted  # noqa: S108  where the program makes its working directory


# -- the policy


def test_only_callers_of_the_given_authority_are_answered():
    given = {"certificates": {"caBundle": CA, "clientCA": CA}}
    (flag,) = [each for each in container(given)["args"] if each.startswith("--client-ca=")]
    mounts = {each["name"]: each["mountPath"] for each in container(given)["volumeMounts"]}
    assert flag == f"--client-ca={mounts['policy']}/client-ca.crt"
    assert one("ConfigMap", given)["data"]["client-ca.crt"] == CA
    assert "checksum/client-ca" in one("Deployment", given)["spec"]["template"]["metadata"]["annotations"]
    assert "client-ca" not in json.dumps([*objects(ZERO)])


def test_zero_values_deny_and_patch_nothing():
    found = policy(ZERO)
    assert (found.ceiling, found.defaults.mode) == (Mode.WARN, "observe")


def test_the_policy_arrives_as_it_was_written():
    constraint = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
    config = {
        "ceiling": "deny",
        "rulesVersion": "1.0",
        "rules": {"selector-not-self": "deny"},
        "namespaces": [{"match": {"names": ["payments"]}, "ceiling": "audit"}],
        "defaults": {"mode": "inject", "defaultConstraints": [{**constraint, "minDomains": 1000000}]},
        "messages": {"footer": "Questions: #platform"},
    }
    written = yaml.safe_load(one("ConfigMap", {**ZERO, "config": config})["data"]["policy.yaml"])
    assert written == {"apiVersion": "config.evenspread.io/v1alpha1", "kind": "SpreadPolicy", **config}
    assert policy({**ZERO, "config": config}).ceiling is Mode.DENY


def test_off_without_quotes_is_off():
    """YAML 1.1 reads it as false, and this is the kill switch."""
    text = """
ceiling: off
scaleIn: off
rules: {selector-null: off}
namespaces: [{match: {names: [a]}, ceiling: off, scaleIn: off}]
defaults: {mode: off, matchLabelKeys: off, fallback: off, fillNullSelector: false, acceptNodeGrowth: false}
"""
    found = policy({**ZERO, "config": yaml.safe_load(text)})
    assert (found.ceiling, found.rules["selector-null"], found.namespaces[0].ceiling) == (Mode.OFF,) * 3
    assert (found.scale_in, found.namespaces[0].scale_in) == ("off", "off")
    defaults = found.defaults
    assert (defaults.mode, defaults.match_label_keys, defaults.fallback) == ("off",) * 3
    assert (defaults.fill_null_selector, defaults.accept_node_growth) == (False, False)


def test_every_field_that_takes_off_is_among_them():
    def found(node, name=""):
        if isinstance(node, dict):
            if "off" in node.get("enum", ()):
                yield name
            for key, value in node.items():
                yield from found(value, name if key in {"items", "additionalProperties"} else key)

    assert {*found(schema())} == {
        "mode",
        "scaleIn",
        "matchLabelKeys",
        "fallback",
    }  # `mode` also stands for ceiling and rules
    assert str(schema()["properties"]).count("#/$defs/mode") == 2  # ceiling, rules


def test_files_beside_the_policy_keep_every_line():
    text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n# the end\n"
    data = one("ConfigMap", {**ZERO, "configFiles": {"scheduler.yaml": text}})["data"]
    assert data["scheduler.yaml"] == text


# -- what is said, and the test pod


SOFT = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            ZERO,
            [
                "certificate from its own CA.",
                "denies    nothing (ceiling: warn)",
                "patches   nothing (defaults.mode: observe)",
                "goes on without it",
            ],
        ),
        (
            INJECT,
            [
                "patches   nothing: config.defaults names no constraints",
                "controller, and new pods that declare no constraint;",
            ],
        ),
        (
            {**ZERO, "config": {"defaults": {"mode": "inject", "defaultConstraints": [SOFT]}}},
            ["patches   pods that declare no constraint, with the defaults"],
        ),
        (
            {**ZERO, "config": {"namespaces": [{"match": {"names": ["payments"]}, "ceiling": "deny"}]}},
            [f"denies    nothing (ceiling: warn), but in namespaces of config.namespaces {DENIED}"],
        ),
        (
            {**ZERO, "config": {"ceiling": False, "namespaces": [{"match": {"names": ["pay"]}, "ceiling": "deny"}]}},
            ["denies    nothing (ceiling: off)\n"],
        ),
        ({**ZERO, "config": {"ceiling": "deny"}}, [f"denies    {DENIED}\n", "goes on without it"]),
        (
            {**ZERO, "config": {"ceiling": "deny", "denyFrom": "high"}},
            [f"denies    {DENIED}, and what high rules warn of by default\n"],
        ),
        (
            {**ZERO, "config": {"ceiling": "deny", "denyFrom": "medium"}},
            [f"denies    {DENIED}, and what medium rules and more severe ones warn of by default\n"],
        ),
        ({**ZERO, "config": {"denyFrom": "high"}}, ["denies    nothing (ceiling: warn)\n"]),
        (
            {**ZERO, "config": {"ceiling": "deny", "rules": {"selector-null": "deny", "revision-mixed": "audit"}}},
            [f"denies    {DENIED}, selector-null\n"],
        ),
        (
            {
                **ZERO,
                "config": {
                    "ceiling": "deny",
                    "denyFrom": "high",
                    "rules": dict.fromkeys(("group-cap", "selector-null", "revision-mixed"), "deny"),
                    "namespaces": [{"match": {"names": ["payments"]}, "ceiling": "audit"}],
                },
            },
            [
                f"denies    {DENIED}, 3 rules of config.rules, and what high rules warn",
                "default; less in config.namespaces\n",
            ],
        ),
        (
            {**ZERO, "config": {"ceiling": "deny"}, "webhook": {"failurePolicy": "Fail"}},
            [
                "if down   the API server refuses what it cannot send",
                "Nothing is sent, and nothing refused, until the replicas are ready",
            ],
        ),
        (
            {**ZERO, "config": {"ceiling": False, "defaults": {"mode": False}}},
            ["(ceiling: off)", "(defaults.mode: off"],
        ),
        ({"webhook": {"enabled": False}}, ["Nothing is asked: webhook.enabled is false."]),
        (EXISTING, ["certificate from Secret evenspread-webhook-tls."]),
        (CERT_MANAGER, ["certificate from cert-manager."]),
        (
            ZERO,
            [
                "What runs is scanned after each change, and as a whole every 1h:",
                "reports   none: this cluster has neither",
            ],
        ),
        (
            {"controller": {"scan": {"reports": False, "events": False}}},
            ["reports   none (controller.scan.reports)", "events    none (controller.scan.events)"],
        ),
        ({"controller": {"scan": {"enabled": False}}}, ["What runs is not scanned"]),
    ],
    ids=[
        "no values",
        "injecting without constraints",
        "injecting",
        "denying in a namespace",
        "off, whatever a namespace says",
        "denying",
        "denying what is severe",
        "denying what is severe, and what is less so",
        "a severity below the ceiling",
        "denying by one rule",
        "denying by many rules, less in a namespace",
        "refusing while it is down",
        "all off",
        "not asked",
        "a certificate of yours",
        "a certificate of cert-manager",
        "no API for reports",
        "neither reports nor events",
        "no scan",
    ],
)
def test_notes_say_what_was_installed(values, said):
    notes = files(values)["NOTES.txt"]
    assert [each for each in said if each not in notes] == []
    assert max(map(len, notes.splitlines())) <= 140


@pytest.fixture(name="running", scope="module")
def _running(tmp_path_factory):
    """The program with the chart's own arguments and files, on loopback."""
    folder = tmp_path_factory.mktemp("pod")
    authority = issue_authority(datetime.now(UTC))
    certificate, _ = write_pair(folder / "pairs", issue_leaf(authority, ("localhost",), datetime.now(UTC)))
    (folder / "tls").symlink_to(certificate.parent)
    (folder / "policy").mkdir()
    (folder / "policy" / "policy.yaml").write_text(one("ConfigMap", ZERO)["data"]["policy.yaml"])
    (folder / "ca.crt").write_bytes(authority.certificate)
    flags = [
        flag.replace("/run/evenspread", str(folder)) for flag in container(EXISTING)["args"][1:] if "bind=" not in flag
    ]
    with serving(*flags) as server:
        yield server._replace(ca=str(folder / "ca.crt"))


@pytest.mark.slow
@pytest.mark.parametrize(("authority", "code"), [("the server's", 0), ("another", 1)])
def test_the_test_pod_sends_a_review(running, authority, code):
    (found,) = one("Pod", {**ZERO, "tests": {"enabled": True}}, "test")["spec"]["containers"]
    ca = Path(running.ca).read_text() if code == 0 else issue_authority(datetime.now(UTC)).certificate.decode()
    environment = {"URL": f"https://localhost:{running.port}/validate", "CA": ca}
    assert [each["name"] for each in found["env"]] == [*environment]
    ran = subprocess.run(  # noqa: S603  what the chart runs
        [sys.executable, *found["command"][1:], *found["args"]],
        env=environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (ran.returncode, authority, "helm-test" in ran.stdout) == (code, authority, code == 0)
