"""``check --kustomize`` with the kubectl that the control plane is built with."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e

DEPLOY = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: web}]
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: topology.kubernetes.io/zone
        whenUnsatisfiable: DoNotSchedule
        labelSelector: {matchLabels: {app: web}}
"""
PATCH = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      topologySpreadConstraints:
      - {topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, maxSkew: 0}
"""


@pytest.mark.parametrize(("patches", "code"), [("[]", 0), ("[{path: patch.yaml}]", 1)], ids=["as it is", "patched"])
def test_what_kubectl_builds_is_checked(binaries, tmp_path, patches, code):
    (tmp_path / "deploy.yaml").write_text(DEPLOY)
    (tmp_path / "patch.yaml").write_text(PATCH)
    (tmp_path / "kustomization.yaml").write_text(f"resources: [deploy.yaml]\npatches: {patches}\n")
    done = subprocess.run(
        [sys.executable, "-m", "webhook", "check", "--kustomize", str(tmp_path), "--rule", "max-skew"],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{binaries}:{Path(sys.executable).parent}"},
        check=False,
    )
    assert (done.returncode, done.stderr) == (code, "")
    assert ("max-skew" in done.stdout) == bool(code)
