"""Every object that the chart can make is one that Kubernetes 1.31 to 1.37 takes, to the last field."""

import functools
import json
import re

import pytest
import yaml
from chart.recorded import KINDS, OPERATORS, RECORDED, RELEASES
from chart.rendered import CERT_MANAGER, CHART, EXISTING, INJECT, ZERO, objects
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from webhook.cli.main import evenspread

MATRIX = {
    "zero": ZERO,
    "inject": INJECT,
    "cert-manager": CERT_MANAGER,
    "a Secret of yours": EXISTING,
    "on the hosts": {"hostNetwork": True, "ports": {"webhook": 9443}, "dnsPolicy": "ClusterFirstWithHostNet"},
    "one replica": {"replicas": 1},
    "OpenShift": {"podSecurityContext": {"runAsUser": None, "runAsGroup": None}},
    "nothing but the webhook": {
        "serviceAccount": {"create": False, "name": "ours"},
        "rbac": {"create": False},
        "networkPolicy": {"enabled": False},
        "podDisruptionBudget": {"enabled": False},
        "resources": None,
        "podSecurityContext": None,
        "securityContext": None,
    },
    "much": {
        "config": {"defaults": {"mode": "inject", "fillNullSelector": True}},
        "webhook": {
            "failurePolicy": "Fail",
            "excludedNamespaces": ["a"],
            "namespaceSelector": {
                "matchLabels": {"a": "b"},
                "matchExpressions": [{"key": "c", "operator": "In", "values": ["d"]}],
            },
            "objectSelector": {"matchLabels": {"a": "b"}},
            "matchConditions": [{"name": "own", "expression": "request.userInfo.username != 'a'"}],
            "extraResources": [{"apiGroup": "example.com", "resources": ["things"]}],
            "annotations": {"a": "b"},
        },
        "commonLabels": {"team": "a"},
        "podLabels": {"a": "b"},
        "podAnnotations": {"a": "b"},
        "imagePullSecrets": [{"name": "registry"}],
        "priorityClassName": "system-cluster-critical",
        "nodeSelector": {"a": "b"},
        "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}],
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}}}
                ]
            }
        },
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {
                    "matchLabels": {
                        "app.kubernetes.io/name": "evenspread",
                        "app.kubernetes.io/instance": "evenspread",
                        "app.kubernetes.io/component": "webhook",
                    }
                },
                "matchLabelKeys": ["pod-template-hash"],
            }
        ],
        "extraEnv": [{"name": "A", "value": "b"}],
        "serviceAccount": {"annotations": {"a": "b"}},
        "networkPolicy": {"healthFrom": [{"namespaceSelector": {"matchLabels": {"a": "b"}}}]},
        "extraVolumes": [{"name": "a", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "a", "mountPath": "/a"}],
        "autoscaling": {"enabled": True},
        "serviceMonitor": {"enabled": True, "labels": {"a": "b"}},
        "prometheusRule": {"enabled": True, "labels": {"a": "b"}},
        "grafanaDashboard": {"enabled": True, "annotations": {"grafana_folder": "a"}},
        "tests": {"enabled": True},
    },
}


@functools.cache
def recorded():
    return json.loads(RECORDED.read_text())


@functools.cache
def definitions(release):
    return {
        name: next((each["schema"] for each in versions if release in each["releases"]), True)
        for name, versions in recorded()["definitions"].items()
    }


@functools.cache
def validator(kind, release):
    if kind in recorded()["operators"]:
        return Draft202012Validator(recorded()["operators"][kind])
    root = {"$ref": f"#/$defs/{recorded()['kinds'][kind]}", "$defs": definitions(release)}
    return Draft202012Validator(root)


def kind_of(made):
    return f"{made['apiVersion']} {made['kind']}"


@functools.cache
def _faults(text, release):
    made = json.loads(text)
    found = validator(kind_of(made), release).iter_errors(made)
    return [f"{made['kind']} {each.json_path}: {each.message}" for each in found]


def faults(made, release):
    """What the API server of a release would refuse, or drop in silence."""
    return _faults(json.dumps(made, sort_keys=True), release)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("values", MATRIX.values(), ids=MATRIX.keys())
def test_every_object_is_taken_by_every_release(values, release):
    made = objects(values)
    assert len(made) >= 5
    assert [fault for each in made for fault in faults(each, release)] == []


@pytest.mark.parametrize("values", MATRIX.values(), ids=MATRIX.keys())
def test_our_own_check_finds_nothing(values, tmp_path):
    manifest = tmp_path / "all.yaml"
    manifest.write_text(yaml.safe_dump_all(objects(values)))
    ran = CliRunner().invoke(evenspread, ["check", str(manifest)])
    assert (ran.exit_code, re.search(r"[1-9] workloads?: no findings", ran.output) is not None) == (0, True), ran.output


def test_nothing_is_rendered_otherwise_by_release():
    """So one rendering stands for all of them."""
    texts = [file.read_text() for file in (CHART / "templates").rglob("*.*") if file.name != "NOTES.txt"]
    assert [text for text in texts if re.search(r"\.Capabilities\b", text)] == []


@pytest.mark.parametrize(
    ("kind", "spec", "release", "expected"),
    [
        ("apps/v1 Deployment", {"replica": 2, "selector": {}, "template": {}}, "1.31.0", "'replica' was unexpected"),
        ("apps/v1 Deployment", {"replicas": "2", "selector": {}, "template": {}}, "1.37.0", "is not of type 'integer'"),
        ("policy/v1 PodDisruptionBudget", {"maxUnavailable": [1]}, "1.34.0", "is not of type 'string', 'integer'"),
        ("monitoring.coreos.com/v1 ServiceMonitor", {"selector": {}, "endpoint": []}, "1.31.0", "unexpected"),
    ],
)
def test_what_a_release_would_not_take_is_found(kind, spec, release, expected):
    api_version, _, name = kind.partition(" ")
    assert re.search(expected, str(faults({"apiVersion": api_version, "kind": name, "spec": spec}, release)))


def test_a_field_that_is_newer_than_a_release_is_found():
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [], "resources": {}}}
    assert [bool(faults(pod, release)) for release in ("1.31.0", "1.37.0")] == [True, False]


def test_every_release_and_kind_is_recorded():
    assert recorded()["releases"] == [*RELEASES]
    assert [*recorded()["kinds"]] == [*KINDS]
    assert len(recorded()["operators"]) == 2 * len(OPERATORS)
