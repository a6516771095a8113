"""``evenspread explain`` of pods that kube-apiserver refuses: that is said before what any node says."""

import json

import pytest
from cli.snapshots import owned, snapshot, waiting
from cluster.api import FakeApi
from manifest import constraint, workload

ERROR = 'spec.topologySpreadConstraints[0][0]: Invalid value: "app": exists in both matchLabelKeys and labelSelector'
TWICE = {**constraint("zone hard 1 app=web"), "matchLabelKeys": ["app"]}
STATE = "z1: a=1 | z2: b=0"
BLOCK = """\
no pod of this workload can be created: spec.topologySpreadConstraints[0][0]:
  Invalid value: "app": exists in both matchLabelKeys and labelSelector
  at spec.template.spec.topologySpreadConstraints[0].matchLabelKeys[0]
  fix: remove matchLabelKeys
"""
BELOW = "below: the scheduler's answer once the pod can be created\n\n"


@pytest.fixture
def ask(run, tmp_path):
    """Explain something of a snapshot: gives exit code, standard output, standard error."""

    def ask(*arguments, objects=(), manifest=None):
        file = tmp_path / "snapshot.jsonl"
        file.write_bytes(snapshot(STATE, *objects))
        return run("explain", "--snapshot", str(file), *arguments, stdin=json.dumps(manifest).encode())

    return ask


def test_the_refusal_comes_first(ask):
    code, out, err = ask("-", manifest=workload("Deployment", "app=web", TWICE))
    assert (code, err) == (1, "")
    assert out.startswith(f"{BLOCK}{BELOW}the next pod of Deployment shop/web: 1 of 2 nodes admits it\n")
    code, out, _ = ask("-", manifest=workload("Deployment", "app=web", "zone hard 1 app=web"))
    assert code == 0
    assert out.startswith("the next pod of Deployment shop/web: 1 of 2 nodes admits it\n")


def test_explain_a_refused_workload_without_pods(ask):
    code, out, _ = ask("deployment/web", "-n", "shop", objects=[workload("Deployment", "app=web", TWICE)])
    assert code == 1
    assert out.startswith(f"{BLOCK}{BELOW}the next pod of Deployment shop/web: ")


def test_explain_a_refused_workload_whose_older_pods_wait(ask):
    old = waiting("web-1-x", "zone hard 1 app=web", owner="ReplicaSet/web-1")
    between = owned("ReplicaSet", "web-1", "Deployment/web")
    objects = [old, between, workload("Deployment", "app=web", TWICE)]
    code, out, _ = ask("deployment/web", "-n", "shop", objects=objects)
    assert code == 1
    assert out.startswith(
        f"{BLOCK}\nPod shop/web-1-x (1 of 1 pending pods of Deployment shop/web): 1 of 2 nodes admits it\n"
    )
    for other in (
        [],
        [{**workload("Deployment", "app=web", TWICE), "spec": {"template": 1}}],
        [owned("Deployment", "web")],
    ):
        code, out, _ = ask("deployment/web", "-n", "shop", objects=[old, between, *other])
        assert code == 0
        assert out.startswith("Pod shop/web-1-x")
    code, out, _ = ask("pod/web-1-x", "-n", "shop", objects=objects)
    assert (code, out.startswith("Pod shop/web-1-x: 1 of 2 nodes admits it\n")) == (0, True)


def test_that_the_workload_may_not_be_read_is_no_reason_to_say_nothing(run, tmp_path):
    """Who may list may not always get."""
    with FakeApi() as api:
        api.put("nodes", "n1", status={"allocatable": {"pods": "9"}})
        reference = {"apiVersion": "apps/v1", "controller": True, "uid": "u"}
        above, between = ({**reference, "kind": kind, "name": "web"} for kind in ("Deployment", "ReplicaSet"))
        api.put("replicasets", "web", "shop", metadata={"ownerReferences": [above]})
        api.put("pods", "web-x", "shop", metadata={"ownerReferences": [between]}, spec={})
        api.forbidden.add("deployments")
        code, out, _ = run("explain", "--kubeconfig", api.kubeconfig(tmp_path), "deployment/web", "-n", "shop")
    assert code == 0
    assert out.startswith("Pod shop/web-x (1 of 1 pending pods of Deployment shop/web): 1 of 1 node admits it\n")


def test_a_pod_that_is_yet_to_be_created(ask):
    code, out, _ = ask("-", manifest=workload("Pod", "app=web", TWICE))
    assert code == 1
    assert out.startswith("this pod cannot be created: spec.topologySpreadConstraints[0][0]: Invalid value:\n")
    assert "  at spec.topologySpreadConstraints[0][0]\n" in out


def test_one_of_several_templates(ask):
    template = workload("Deployment", "app=web", TWICE)["spec"]["template"]
    spec = {"headGroupSpec": {"template": template}, "workerGroupSpecs": [{"template": {"spec": {}}}]}
    manifest = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "web"}, "spec": spec}
    code, out, _ = ask("-", "-o", "json", manifest=manifest)
    head, workers = json.loads(out)
    assert code == 1
    assert next(iter(head)) == "refused"
    assert head["refused"] == [
        {
            "title": "no pod of spec.headGroupSpec.template can be created",
            "message": ERROR,
            "path": "spec.headGroupSpec.template.spec.topologySpreadConstraints[0].matchLabelKeys[0]",
            "fix": "remove matchLabelKeys",
        }
    ]
    assert "refused" not in workers
