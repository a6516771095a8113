"""A control plane of another release, as which command line and webhook judge (`make e2e-release RELEASE=1.34`)."""

import json
import os
import subprocess

import pytest
from e2e.objects import constraint, failures, path, workload
from e2e.registration import registered
from e2e.served import NO_INSTALLATION, PROGRAM
from e2e.waiting import eventually

from webhook.core.api.gates import MERGES_SPREAD_KEYS, VALIDATES_STATEFUL_SETS
from webhook.core.api.version import parse_version

BROKEN = workload("StatefulSet", "db", constraint(maxSkew=0))
TWICE = workload("Deployment", "web", constraint(matchLabelKeys=["app"]))
# Each with whether the release refuses the object itself; else it refuses each of the pods.
REFUSED = [
    pytest.param((BROKEN, VALIDATES_STATEFUL_SETS.holds), id="the template of a StatefulSet, validated since 1.34"),
    pytest.param((TWICE, lambda version: not MERGES_SPREAD_KEYS.holds(version)), id="a key twice, refused up to 1.33"),
]


@pytest.fixture(name="release", scope="module")
def _release(plane):
    """The release that the API server says it is."""
    found = plane.api.request("GET", "/version")["gitVersion"]
    assert found.startswith(f"v{os.environ.get('EVENSPREAD_RELEASE', '1.37')}.")
    return found


def evenspread(*arguments, **more):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60, check=False, **more)


def found_by(ran):
    """The grave findings of a command, by rule."""
    return {each["rule"]: each["message"] for each in json.loads(ran.stdout) if each.get("severity") == "high"}


@pytest.mark.parametrize("refused", REFUSED)
def test_what_is_refused_at_once_and_what_later(plane, namespace, strict, release, refused):
    made, refuses = refused
    checked = found_by(evenspread("check", "-", "--kube-version", release, "-o", "json", input=json.dumps(made)))
    with registered(plane, namespace, strict.server):
        denied = plane.api.send("POST", path(made["kind"], namespace), made)
    answer = plane.api.send("POST", path(made["kind"], namespace), made)
    if refuses(parse_version(release)):
        # The object never comes to a validating webhook.
        assert (denied.status, answer.status) == (422, 422)
        [said] = checked.values()
        assert said in answer.message
        assert "pods-refused" not in checked
    else:
        assert (denied.status, answer.status) == (403, 201)
        assert "pods-refused" in denied.message
        words = checked["pods-refused"].removeprefix("no pod of this workload can be created: ")
        assert words in eventually(lambda: failures(plane, namespace))[0]


@pytest.mark.parametrize("refused", REFUSED)
def test_a_cluster_is_judged_as_its_own_release(plane, namespace, release, tmp_path, refused):
    made, refuses = refused
    accepted = plane.api.send("POST", path(made["kind"], namespace), made).status == 201
    assert accepted is not refuses(parse_version(release))
    environment = {**os.environ, "KUBECONFIG": str(plane.admin), "HOME": str(tmp_path)}
    ran = evenspread("audit", "--cluster", "-n", namespace, "-o", "json", env=environment, cwd=tmp_path)
    assert NO_INSTALLATION.fullmatch(ran.stderr)  # a release that is not supported would be said
    assert ("pods-refused" in found_by(ran)) is accepted
    taken = evenspread("snapshot", env=environment, cwd=tmp_path)
    assert json.loads(taken.stdout.partition("\n")[0])["kubernetesVersion"] == release
