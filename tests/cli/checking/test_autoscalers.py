"""Autoscalers among the files: what they may scale a workload to counts."""

import json

import pytest
import yaml

WORKLOAD = """apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      topologySpreadConstraints:
      - maxSkew: 5
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: DoNotSchedule
        labelSelector: {matchLabels: {app: web}}
"""
HPA = """---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: web}, minReplicas: 3, maxReplicas: 20}
"""
KEDA = """---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: web, namespace: shop}
spec: {scaleTargetRef: {kind: StatefulSet, name: web}}
"""
SAID = "spread-without-effect"


def said(run, tmp_path, *texts):
    paths = []
    for number, text in enumerate(texts):
        paths.append(tmp_path / f"{number}.yaml")
        paths[-1].write_text(text)
    _, out, _ = run("check", *map(str, paths), "-o", "json", "--level", "audit")
    return [row["rule"] for row in json.loads(out) if row.get("rule") == SAID and "severity" in row]


@pytest.mark.parametrize("scaler", [HPA, KEDA], ids=["HorizontalPodAutoscaler", "ScaledObject"])
def test_it_counts_wherever_it_stands(run, tmp_path, scaler):
    assert said(run, tmp_path, WORKLOAD) == [SAID]
    assert said(run, tmp_path, WORKLOAD + scaler) == []
    assert said(run, tmp_path, WORKLOAD, scaler) == []
    assert said(run, tmp_path, scaler, WORKLOAD) == []


def test_both_are_without_a_namespace(run, tmp_path):
    texts = [text.replace(", namespace: shop", "") for text in (WORKLOAD, HPA)]
    assert said(run, tmp_path, texts[0]) == [SAID]
    assert said(run, tmp_path, *texts) == []


@pytest.mark.parametrize(
    "scaler",
    [
        pytest.param(HPA.replace("name: web,", "name: web, x: y,").replace("shop", "other"), id="another namespace"),
        pytest.param(HPA.replace("name: web}", "name: db}"), id="another target"),
        pytest.param(HPA.replace("maxReplicas: 20", "maxReplicas: many"), id="a number that is none"),
        pytest.param(KEDA.replace("{scaleTargetRef: {kind: StatefulSet, name: web}}", "[]"), id="no target"),
        pytest.param(KEDA.replace("spec: {", "spec: [").replace("web}}", "web}]"), id="a list for a mapping"),
        pytest.param(KEDA.replace("keda.sh", "example.com"), id="another group"),
    ],
)
def test_what_scales_nothing_here(run, tmp_path, scaler):
    assert SAID in said(run, tmp_path, WORKLOAD, scaler)


def test_as_json(run, tmp_path):
    scaler = json.dumps(yaml.safe_load(HPA.removeprefix("---\n")))
    assert said(run, tmp_path, WORKLOAD, scaler) == []
