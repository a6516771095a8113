"""The command line and a real cluster: only read, said as it is, and the same from a file."""

import gzip
import json
import os
import subprocess

import pytest
from e2e.kubectl import Ran
from e2e.objects import constraint, path, workload
from e2e.served import NO_INSTALLATION, PROGRAM
from e2e.waiting import eventually

RBAC = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
UNKNOWN = constraint(topologyKey="example.com/rack")


@pytest.fixture(name="evenspread")
def _evenspread(plane, tmp_path):
    """The program in a directory of its own, with the administrator's kubeconfig."""

    def run(*arguments, stdin=""):
        environment = {**os.environ, "KUBECONFIG": str(plane.admin), "HOME": str(tmp_path)}
        ran = subprocess.run(
            [PROGRAM, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
            env=environment,
            cwd=tmp_path,
        )
        return Ran(ran.returncode, ran.stdout, ran.stderr)

    return run


@pytest.fixture(name="faulty")
def _faulty(plane, namespace):
    """A Deployment that counts other pods, a StatefulSet over a key that no node has, a Rollout that nobody refused."""
    deployment = workload("Deployment", "web", constraint(labelSelector={"matchLabels": {"app": "old"}}))
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    container["env"] = [{"name": "TOKEN", "value": "hush-hush"}]
    rollout = workload("Rollout", "canary", constraint(maxSkew=0))
    for made in (deployment, workload("StatefulSet", "db", UNKNOWN), rollout):
        plane.api.request("POST", path(made["kind"], namespace), made)
    pods = path("Pod", namespace)
    eventually(lambda: len(plane.api.request("GET", pods)["items"]) >= 3)
    return namespace


def rows(out, namespace):
    """What was found in the namespace: kind, name, rule and message."""
    found = [entry for entry in json.loads(out) if entry.get("object", {}).get("namespace") == namespace]
    return sorted((each["object"]["kind"], each["object"]["name"], each["rule"], each["message"]) for each in found)


def counted(out):
    """How often each rule speaks, in which mode."""
    found = [(entry["rule"], entry["mode"]) for entry in json.loads(out) if "mode" in entry]
    return {each: found.count(each) for each in found}


def test_a_cluster_and_its_snapshot_give_the_same_findings(evenspread, faulty, tmp_path):
    live = evenspread("audit", "--cluster", "-o", "json")
    assert live.code == 1
    assert NO_INSTALLATION.fullmatch(live.err)
    rules = {(kind, name, rule) for kind, name, rule, _ in rows(live.out, faulty)}
    assert {
        ("Deployment", "web", "selector-not-self"),
        ("StatefulSet", "db", "topology-key-unknown"),
        ("Rollout", "canary", "max-skew"),
    } <= rules

    taken = evenspread("snapshot", "-o", "taken.jsonl.gz", "--context", "local")
    assert taken.code == 0, taken.err
    assert rows(evenspread("audit", "taken.jsonl.gz", "-o", "json").out, faulty) == rows(live.out, faulty)
    assert b"hush" not in gzip.decompress((tmp_path / "taken.jsonl.gz").read_bytes())

    anonymous = evenspread("snapshot", "--snapshot", "taken.jsonl.gz", "--anonymise", "-o", "nobody.jsonl")
    assert anonymous.code == 0, anonymous.err
    text = (tmp_path / "nobody.jsonl").read_text()
    assert faulty not in text
    assert "node-a-0" not in text
    named, nameless = (evenspread("audit", file, "-o", "json").out for file in ("taken.jsonl.gz", "nobody.jsonl"))
    assert counted(nameless) == counted(named)


def test_what_kubectl_prints_is_a_page(evenspread, faulty, kubectl):
    printed = kubectl("get", "nodes,namespaces,deployments,statefulsets,pods,rollouts", "-A", "-o", "json")
    page = evenspread("audit", "-", stdin=printed.out)
    assert (page.code, page.err) == (1, "")
    assert f"\nStatefulSet {faulty}/db  " in page.out
    assert "no node has example.com/rack" in page.out


def test_check_sees_the_cluster(evenspread, faulty):
    manifest = json.dumps(workload("Deployment", "new", UNKNOWN) | {"metadata": {"name": "new", "namespace": faulty}})
    alone, beside = (
        evenspread("check", "-", "--rule", "topology-key-unknown", *more, stdin=manifest)
        for more in ((), ("--cluster",))
    )
    assert "1 rule not evaluated: without a cluster (add --cluster or --snapshot); -v lists it" in alone.out
    assert beside.code == 1
    assert "no node has example.com/rack" in beside.out
    assert "not evaluated" not in beside.out


def test_what_an_account_may_not_read_is_said(plane, evenspread, faulty):
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"view-{faulty}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}],
    }
    nobody = evenspread("audit", "-v", "--cluster", "--as", "jane")
    assert (nobody.code, nobody.out) == (4, "")
    assert nobody.err.splitlines()[-1].startswith(
        'evenspread: cluster local: you may not read anything: 403 nodes is forbidden: User "jane" cannot list'
    )

    plane.api.request("POST", RBAC, binding)
    try:
        said = eventually(lambda: (ran := evenspread("audit", "-v", "--cluster", "--as", "jane")).code == 1 and ran)
    finally:
        plane.api.send("DELETE", f"{RBAC}/view-{faulty}")
    assert "cluster local: note: nodes: 403 Forbidden: rules about nodes and domains are not evaluated\n" in said.err
    assert "not evaluated, nodes: 403 Forbidden: " in said.out
    assert "selector-not-self" in said.out
