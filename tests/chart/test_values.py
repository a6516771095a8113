"""Which objects which values make, and which values are refused."""

import helm_python
import pytest
import yaml
from chart.recorded import RELEASES
from chart.reference import (
    KINDS,
    NAMES,
    PAGE,
    SCHEMA,
    WEBHOOK,
    known_names,
    with_kinds,
    with_made,
    with_policy,
    with_tables,
)
from chart.rendered import CA, CERT_MANAGER, CHART, EXISTING, INJECT, ZERO, chart, files, names, objects, one, refusal

from webhook import __version__

ALWAYS = [
    "ClusterRole/evenspread-webhook",
    "ClusterRoleBinding/evenspread-webhook",
    "ConfigMap/evenspread-webhook",
    "Deployment/evenspread-webhook",
    "NetworkPolicy/evenspread-webhook",
    "PodDisruptionBudget/evenspread-webhook",
    "Service/evenspread-webhook",
    "ServiceAccount/evenspread-webhook",
]
# What scans the cluster, and rotates the release's own CA.
CONTROLLER = [
    "ClusterRole/evenspread-controller",
    "ClusterRoleBinding/evenspread-controller",
    "Deployment/evenspread-controller",
    "Lease/evenspread-controller",
    "NetworkPolicy/evenspread-controller",
    "Role/evenspread-controller",
    "RoleBinding/evenspread-controller",
    "Service/evenspread-controller",
    "ServiceAccount/evenspread-controller",
]
OWN_CA = ["Role/evenspread-webhook", "RoleBinding/evenspread-webhook", "Secret/evenspread-ca"]
NO_SCAN = {"controller": {"scan": {"enabled": False}}}
VALIDATING, MUTATING = "ValidatingWebhookConfiguration/evenspread", "MutatingWebhookConfiguration/evenspread"
BUDGET = "PodDisruptionBudget/evenspread-webhook"


def objects_of(*more, without=()):
    """Of zero values, and these."""
    return sorted({*ALWAYS, *CONTROLLER, *OWN_CA, VALIDATING, *more} - {*without})


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param(ZERO, objects_of(), id="zero values: nothing mutates"),
        pytest.param(INJECT, objects_of(MUTATING), id="inject"),
        pytest.param({**ZERO, "config": {"defaults": {"mode": False}}}, objects_of(), id="defaults off"),
        pytest.param({**ZERO, "config": {"ceiling": "deny"}}, objects_of(), id="deny"),
        pytest.param(
            CERT_MANAGER,
            objects_of(
                "Certificate/evenspread-webhook",
                "Certificate/evenspread-webhook-ca",
                "Issuer/evenspread-webhook",
                "Issuer/evenspread-webhook-self",
                without=OWN_CA,
            ),
            id="cert-manager with a CA of its own",
        ),
        pytest.param(
            {"certificates": {"mode": "certManager", "certManager": {"issuerRef": {"kind": "ClusterIssuer"}}}},
            objects_of("Certificate/evenspread-webhook", without=OWN_CA),
            id="cert-manager with an issuer of yours",
        ),
        pytest.param(EXISTING, objects_of(without=OWN_CA), id="a Secret of yours"),
        pytest.param(NO_SCAN, objects_of(), id="no scan: there is the CA to be looked after"),
        pytest.param(EXISTING | NO_SCAN, objects_of(without=[*CONTROLLER, *OWN_CA]), id="no scan, a Secret of yours"),
        pytest.param({"webhook": {"enabled": False}}, objects_of(without=[VALIDATING]), id="switched off"),
        pytest.param(
            {"certificates": {"mode": "existingSecret"}, "webhook": {"enabled": False}},
            sorted([*ALWAYS, *CONTROLLER]),
            id="switched off: no certificate is asked for either",
        ),
        pytest.param(
            {"controller": {"serviceAccountName": "ours"}},
            objects_of(without=["ServiceAccount/evenspread-controller"]),
            id="an account of yours for the controller",
        ),
        pytest.param({**ZERO, "replicas": 1}, objects_of(without=[BUDGET]), id="one replica has no budget"),
        pytest.param({**ZERO, "podDisruptionBudget": {"enabled": False}}, objects_of(without=[BUDGET]), id="no budget"),
        pytest.param(
            {**ZERO, "networkPolicy": {"enabled": False}},
            objects_of(without=["NetworkPolicy/evenspread-webhook", "NetworkPolicy/evenspread-controller"]),
            id="no network policy",
        ),
        pytest.param(
            {**ZERO, "rbac": {"create": False}, "serviceAccount": {"create": False, "name": "ours"}},
            objects_of(
                without=[name for name in (*ALWAYS, *CONTROLLER, *OWN_CA) if "Role" in name or "Account" in name]
            ),
            id="an account of yours",
        ),
        pytest.param(
            {**ZERO, "serviceMonitor": {"enabled": True}, "tests": {"enabled": True}},
            objects_of(
                "ServiceMonitor/evenspread-webhook",
                "ServiceMonitor/evenspread-controller",
                "Pod/evenspread-webhook-test",
            ),
            id="monitor and test",
        ),
        pytest.param(
            {"prometheusRule": {"enabled": True}, "grafanaDashboard": {"enabled": True}},
            objects_of("PrometheusRule/evenspread", "ConfigMap/evenspread-dashboard"),
            id="alerts and a dashboard",
        ),
        pytest.param(
            {"crds": {"install": True}},
            objects_of(
                "CustomResourceDefinition/spreadgroups.evenspread.io", "MutatingWebhookConfiguration/evenspread"
            ),
            id="the definition of groups",
        ),
        pytest.param(
            {"autoscaling": {"enabled": True}},
            objects_of("HorizontalPodAutoscaler/evenspread-webhook"),
            id="an autoscaler",
        ),
    ],
)
def test_values_make_these_objects(values, expected):
    assert names(values) == expected


NO_CERTIFICATE = """\
evenspread needs a certificate that the API server trusts.
In namespace platform Helm sees no Secret evenspread-webhook-tls. Choose one:

  - the release makes it:    --set certificates.mode=self
  - cert-manager makes it:   --set certificates.mode=certManager
  - you make the Secret, with tls.crt, tls.key and ca.crt, for the name
    evenspread-webhook.platform.svc (the chart's README has the commands)
  - you made it, but Helm cannot see the cluster (helm template, Argo CD):
                             --set-file certificates.caBundle=ca.crt
"""
FAIL = """\
webhook.failurePolicy: Fail stops every write that nobody answers for.
It needs replicas (or autoscaling.minReplicas) of at least 2 and podDisruptionBudget.enabled.
"""


def existing(**values):
    return {"certificates": {"mode": "existingSecret", **values}}


def failing(**values):
    return {**ZERO, "webhook": {"failurePolicy": "Fail"}, **values}


NO_CA = "controller.replicas is 0, but only the controller makes the CA (certificates.mode: self). Set it to 1 or more."
NO_RULES = (
    "controller.replicas is 0, but only the controller adds the rules to the webhook configurations "
    "(webhook.failurePolicy: Fail). Set it to 1 or more."
)


def without_controller(**values):
    return {**values, "controller": {"replicas": 0}}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        pytest.param({}, "", id="no values"),
        pytest.param(existing(), NO_CERTIFICATE, id="no certificate, and no cluster to read it from"),
        pytest.param(existing(caBundle="TUlJ"), "is no certificate in PEM.", id="a CA that is none"),
        pytest.param(
            {"certificates": {"self": {"leafDuration": "7d"}}},
            "does not match pattern",
            id="a duration that Go has not",
        ),
        pytest.param(
            {"certificates": {"caBundle": CA, "clientCA": "TUlJ"}},
            "(certificates.clientCA) is no certificate in PEM.",
            id="a CA of callers that is none",
        ),
        pytest.param(
            {"certificates": {"caBundle": CA, "clientCA": f"{CA}-----BEGIN PRIVATE KEY-----"}},
            "(certificates.clientCA) holds a private key",
            id="the key of callers' CA",
        ),
        pytest.param(
            {"certificates": {"caBundle": CA, "clientCA": CA}, "tests": {"enabled": True}},
            "the pod of `helm test` has no certificate of its own",
            id="a test pod that would not be answered",
        ),
        pytest.param(
            existing(caBundle=f"{CA}-----BEGIN EC PRIVATE KEY-----"),
            "holds a private key; give its certificate alone.",
            id="a key beside the CA",
        ),
        pytest.param(failing(replicas=1), FAIL, id="Fail with one replica"),
        pytest.param(failing(podDisruptionBudget={"enabled": False}), FAIL, id="Fail without a budget"),
        pytest.param(
            failing(autoscaling={"enabled": True, "minReplicas": 1}), FAIL, id="Fail, and the autoscaler leaves one"
        ),
        pytest.param(failing(), "", id="Fail with two and a budget"),
        pytest.param(without_controller(), NO_CA, id="nobody makes the CA"),
        pytest.param(without_controller(webhook={"enabled": False}), NO_CA, id="nobody makes the CA of pods"),
        pytest.param(without_controller(**failing()), NO_CA, id="nobody makes the CA, and it fails closed"),
        pytest.param(without_controller(**failing(**CERT_MANAGER)), NO_RULES, id="nobody adds the rules"),
        pytest.param(without_controller(**failing(**EXISTING)), NO_RULES, id="nobody adds the rules, your Secret"),
        pytest.param(without_controller(**CERT_MANAGER), "", id="nobody scans"),
        pytest.param(without_controller(**EXISTING), "", id="nobody scans, with your Secret"),
        pytest.param({**ZERO, "hostNetwork": True}, "on the host port 10250 is the kubelet's", id="the kubelet's port"),
        pytest.param({**ZERO, "hostNetwork": True, "ports": {"webhook": 9443}}, "", id="another port"),
        pytest.param(
            {**ZERO, "serviceAccount": {"create": False}}, "name an account of yours", id="everybody's account"
        ),
        pytest.param({**ZERO, "global": {"any": 1}}, "", id="what an umbrella chart passes down"),
        pytest.param({**ZERO, "webhook": {"timeoutSeconds": 30}}, "want 10", id="a timeout that holds everybody up"),
        pytest.param({**ZERO, "webhook": {"failurePolicy": "fail"}}, "one of 'Ignore', 'Fail'", id="a misspelt word"),
        pytest.param(
            {**ZERO, "config": {"stuckThreshold": 2}}, "'/config/stuckThreshold'", id="a policy of the wrong shape"
        ),
    ],
)
def test_values_are_refused_with_these_words(values, said):
    assert said in refusal(values)
    assert bool(said) == bool(refusal(values))


@pytest.mark.parametrize("release", RELEASES)
def test_lint_finds_nothing(release):
    report = helm_python.lint(CHART, ZERO, strict=True, kube_version=f"v{release}")
    assert report["errors"] == []
    assert [each for each in report["messages"] if each["severity"] > 1] == []  # an icon is recommended


@pytest.mark.parametrize(
    "values", [ZERO, INJECT, CERT_MANAGER, EXISTING], ids=["zero", "inject", "cert-manager", "own"]
)
def test_rendering_twice_gives_the_same(values):
    again = chart().render(values, name="evenspread", namespace="platform")
    assert {*files(values).values()} == {text for text in again.values() if text.strip()}


def test_the_longest_release_name_makes_names_that_fit():
    made = objects({**CERT_MANAGER, "tests": {"enabled": True}}, name="r" * 53)
    assert max(len(each["metadata"]["name"]) for each in made) <= 63
    assert len({each["metadata"]["name"] for each in made if each["kind"] == "Certificate"}) == 2


@pytest.mark.parametrize(
    ("values", "name", "expected"),
    [
        (ZERO, "evenspread", "evenspread-webhook"),
        (ZERO, "spread", "spread-evenspread-webhook"),
        ({**ZERO, "nameOverride": "es"}, "spread", "spread-es-webhook"),
        ({**ZERO, "fullnameOverride": "es"}, "spread", "es-webhook"),
    ],
)
def test_names_come_from_the_release(values, name, expected):
    assert one("Deployment", values, name=name)["metadata"]["name"] == expected


def test_an_upgrade_keeps_selectors_and_names():
    """A Deployment's selector cannot be changed: it holds nothing that a version or a value may move."""
    changed = {**INJECT, "image": {"tag": "9"}, "commonLabels": {"team": "a"}, "podLabels": {"b": "c"}, "replicas": 5}
    for kind, role in (("Deployment", "webhook"), ("PodDisruptionBudget", "webhook"), ("Deployment", "controller")):
        before, after = one(kind, ZERO, role), one(kind, changed, role)
        assert before["spec"]["selector"] == after["spec"]["selector"]
    selector = {"name": "evenspread", "instance": "evenspread", "component": "webhook"}
    assert one("Service", changed)["spec"]["selector"] == {
        f"app.kubernetes.io/{label}": value for label, value in selector.items()
    }
    assert {*names(ZERO)} < {*names(changed)}


def test_labels_are_on_everything():
    for made in objects({**INJECT, "commonLabels": {"team": "a"}}):
        labels = made["metadata"]["labels"]
        assert (labels["team"], labels["app.kubernetes.io/managed-by"]) == ("a", "Helm")
        assert labels["app.kubernetes.io/version"] == __version__


def test_the_chart_is_of_this_version():
    assert (chart().version, chart().metadata["appVersion"]) == (__version__, __version__)


def test_every_value_has_a_default_and_every_default_is_described():
    described = yaml.safe_load(SCHEMA.read_text())["properties"]
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert [name for name in described if name != "global"] == [*values]


def test_the_generated_parts_are_up_to_date():
    assert with_policy(SCHEMA.read_text()) == SCHEMA.read_text(), "make docs"
    assert known_names(SCHEMA.read_text()) == NAMES.read_text(), "make docs"
    assert with_tables(PAGE.read_text()) == PAGE.read_text(), "make docs"
    assert with_kinds(KINDS.read_text()) == KINDS.read_text(), "make docs"
    assert with_made(WEBHOOK.read_text()) == WEBHOOK.read_text(), "make docs"


def test_a_kind_that_is_missing_in_the_chart_is_written():
    kinds, made = KINDS.read_text(), WEBHOOK.read_text()
    older = kinds.replace('    "argoproj.io" "rollouts"\n', "")
    assert older != kinds
    assert with_kinds(older) == kinds
    older = made.replace("'apps/ReplicaSet of argoproj.io/Rollout',", "")
    assert older != made
    assert with_made(older) == made
