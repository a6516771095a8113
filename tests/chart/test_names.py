"""What is said of a value that nobody knows: which one was probably meant."""

import re

import pytest
import yaml
from chart.rendered import ZERO, refusal

from webhook.config import ConfigError, parse_policy


def said(values):
    """The lines of the refusal, without where in the chart it comes from; empty if the values are taken."""
    return re.sub(r"\Aexecution error at \(evenspread/templates/[^)]*\): *", "", refusal({**ZERO, **values})).strip()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param({"replica": 3}, 'replica: unknown value; did you mean "replicas"?', id="a letter is missing"),
        pytest.param({"replicass": 3}, 'replicass: unknown value; did you mean "replicas"?', id="one too many"),
        pytest.param({"logLevle": ""}, 'logLevle: unknown value; did you mean "logLevel"?', id="two changed places"),
        pytest.param({"portz": {}}, 'portz: unknown value; did you mean "ports"?', id="another letter"),
        pytest.param(
            {"webhook": {"timeout-seconds": 3}},
            'webhook.timeout-seconds: unknown value; did you mean "timeoutSeconds"?',
            id="written otherwise",
        ),
        pytest.param(
            {"timeoutSeconds": 3},
            'timeoutSeconds: unknown value; did you mean "webhook.timeoutSeconds"?',
            id="in another place",
        ),
        pytest.param({"podLabel": None}, 'podLabel: unknown value; did you mean "podLabels"?', id="without a value"),
        pytest.param({"any": 1}, "any: unknown value; the chart's README lists them all", id="like none"),
        pytest.param(
            {"webhook": {"create": True}, "labels": {}, "config": {"mode": "deny"}},
            "config.mode: unknown value; the chart's README lists them all\n"
            "labels: unknown value; the chart's README lists them all\n"
            "webhook.create: unknown value; the chart's README lists them all",
            id="names that several places have",
        ),
        pytest.param(
            {"certificates": {"cabundle": "x", "certManager": {"issuer": {}}}},
            'certificates.cabundle: unknown value; did you mean "caBundle"?\n'
            "certificates.certManager.issuer: unknown value; the chart's README lists them all",
            id="all at once, before what they lead to",
        ),
        pytest.param(
            {"config": {"rules": {"selector-nul": "off"}}},
            'config.rules.selector-nul: unknown rule; did you mean "selector-null"?',
            id="a rule",
        ),
        pytest.param(
            {"config": {"exemptions": [{"rule": "max-skw", "match": {"kind": "Job"}, "reason": "x"}]}},
            'config.exemptions[0].rule: unknown rule "max-skw"; did you mean "max-skew"?',
            id="a rule that is exempted from",
        ),
        pytest.param({"global": {"any": 1}}, "", id="what an umbrella chart passes down"),
        pytest.param({"commonLabels": {"any": "x"}, "nodeSelector": {"any": "x"}}, "", id="names of yours"),
    ],
)
def test_the_name_that_was_meant_is_named(values, expected):
    assert said(values) == expected


@pytest.mark.parametrize(
    ("values", "meant"),
    [
        ({"replicaCount": 3}, "replicas"),
        ({"webhook": {"replicas": 3}}, "replicas"),
        ({"webhook": {"replicaCount": 3}}, "replicas"),
        ({"admissionController": {"replicas": 3}}, "replicas"),
        ({"controller": {"replicaCount": 3}}, "controller.replicas"),
        ({"backgroundController": {"replicas": 1}}, "controller"),
        ({"crds": {"enabled": True}}, "crds.install"),
        ({"crds": {"keepOnUninstall": True}}, "crds.keep"),
        ({"installCRDs": True}, "crds.install"),
        ({"prometheus": {"enabled": True}}, "serviceMonitor"),
        ({"metrics": {"enabled": True}}, "serviceMonitor"),
        ({"grafana": {"enabled": True}}, "grafanaDashboard"),
        ({"failurePolicy": "Fail"}, "webhook.failurePolicy"),
        ({"validatingWebhookFailurePolicy": "Fail"}, "webhook.failurePolicy"),
        ({"validatingWebhookTimeoutSeconds": 3}, "webhook.timeoutSeconds"),
        ({"excludedNamespaces": ["a"]}, "webhook.excludedNamespaces"),
        ({"volumes": []}, "extraVolumes"),
        ({"volumeMounts": []}, "extraVolumeMounts"),
        ({"logging": {"level": "debug"}}, "logLevel"),
        ({"pdb": {}}, "podDisruptionBudget"),
        ({"hpa": {}}, "autoscaling"),
        ({"controller": {"enabled": False}}, "controller.scan.enabled"),
        ({"image": {"registry": "registry.example"}}, "image.repository"),
        ({"webhook": {"resources": {}}}, "resources"),
        ({"webhook": {"tolerations": []}}, "tolerations"),
    ],
)
def test_the_names_of_peers_are_translated(values, meant):
    """As the charts of kyverno, gatekeeper and cert-manager call them."""
    (line,) = said(values).splitlines()
    assert line.endswith(f'unknown value; did you mean "{meant}"?')


@pytest.mark.parametrize(
    "config",
    [
        {"celing": "deny"},
        {"defaults": {"mod": "inject"}},
        {"defaults": {"overrides": [{"name": "a", "minReplica": 3, "defaultConstraints": []}]}},
    ],
    ids=["policy", "defaults", "a list"],
)
def test_of_a_policy_the_chart_says_what_the_program_says(config):
    with pytest.raises(ConfigError) as refused:
        parse_policy(yaml.safe_dump({"apiVersion": "config.evenspread.io/v1alpha1", "kind": "SpreadPolicy", **config}))
    (fault,) = [each for each in refused.value.faults if "unknown field" in each.message]
    assert said({"config": config}) == f"config.{fault.path}: {fault.message}".replace("unknown field", "unknown value")
