"""``evenspread explain --pending``: what an operator sees first."""

import json

import pytest
from cli.snapshots import owned, snapshot, waiting

ZONE = "zone hard 1 app=web"
TAINTED = "z1: a=1 | z2: ~b=0"
SENTENCE = (
    "0/2 nodes are available: 1 node(s) didn't match pod topology spread constraints, "
    "1 node(s) had untolerated taint(s)."
)


@pytest.fixture
def ask(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def ask(state, *arguments, objects=()):
        file = tmp_path / "snapshot.jsonl"
        file.write_bytes(snapshot(state, *objects))
        return run("explain", "--snapshot", file.name, "--pending", *arguments)

    return ask


def test_the_screen(ask):
    objects = [
        owned("ReplicaSet", "web-1", "Deployment/web"),
        waiting("web-b", ZONE, owner="ReplicaSet/web-1", since="2026-01-02T00:00:00Z"),
        waiting("web-a", ZONE, owner="ReplicaSet/web-1", since="2026-01-01T00:00:00Z"),
        waiting("bare", ZONE, namespace="other", nodeSelector={"disk": "ssd"}),
        waiting("big", cpu="99"),
        waiting("soon"),
        waiting("gated", ZONE, schedulingGates=[{"name": "example.com/wait"}]),
        waiting("foreign", ZONE, schedulerName="volcano"),
    ]
    code, out, err = ask(TAINTED, objects=objects)
    assert (code, err) == (1, "")
    assert out == SCREEN


SCREEN = f"""\
7 Pending pods in all namespaces: 2 blocked by spread constraints, 1 short of capacity, \
1 blocked for another reason, 1 with a fitting node, 1 with scheduling gates, \
1 of another scheduler

2 pods blocked by spread constraints: Deployment shop/web
  oldest: shop/web-a, since 2026-01-01T00:00:00Z
  {SENTENCE}
  zone[0]: zone z2 (1 node, tainted dedicated:NoSchedule) stays at 0 pods, \
and maxSkew 1 lets no other zone have more than 1
  fix: add nodeTaintsPolicy: Honor  (then 1 node admits the pod)

1 pod short of capacity: Pod shop/big
  oldest: shop/big
  0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s).
  cause: capacity (no node the pod may use is large enough, even when empty)
  in the way: needs 99 cpu, but no node has more than 4 cpu

1 pod blocked for another reason: Pod other/bare
  oldest: other/bare
  0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) had untolerated taint(s).
  cause: other (without its node selector and affinity 1 node would admit it)
  in the way: not selected (wants disk=ssd, which no node has)

1 pod with a fitting node: Pod shop/soon
  oldest: shop/soon
  fits 1 node: the scheduler has not tried the pods yet, or preemption freed capacity

1 pod with scheduling gates: Pod shop/gated
  oldest: shop/gated
  scheduling gates (example.com/wait): the scheduler ignores the pod until they are removed

1 pod of another scheduler: Pod shop/foreign
  oldest: shop/foreign
  volcano schedules this pod and may decide differently (see schedulerNames)

details of a pod: evenspread explain pod/web-a -n shop --snapshot snapshot.jsonl
"""


def test_nothing_waits(ask):
    assert ask(TAINTED) == (0, "no pod is Pending in any namespace\n", "")
    leaving = waiting("new", ZONE)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert ask(TAINTED, "-n", "shop", objects=[leaving]) == (0, "no pod is Pending in namespace shop\n", "")


def test_one_namespace_or_all(ask):
    objects = [waiting("one", ZONE), waiting("two", ZONE, namespace="other")]
    assert ask(TAINTED, "-n", "shop", objects=objects)[1].startswith(
        "1 Pending pod in namespace shop: 1 blocked by spread constraints\n"
    )
    assert ask(TAINTED, "-n", "shop", "-A", objects=objects)[1].startswith("2 Pending pods in all namespaces: ")
    empty = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "empty"}}
    assert ask(TAINTED, "-n", "empty", objects=[*objects, empty])[0] == 0


def test_a_key_that_nodes_have_in_other_letters(ask):
    _, out, _ = ask("z1: a", objects=[waiting("new", "topology.kubernetes.io/zoen hard 1 app=web")])
    assert "  zoen[0]: no node has the label zoen; nodes have topology.kubernetes.io/zone\n" in out


def test_pods_that_only_wait_for_their_turn_are_no_finding(ask):
    assert ask("z1: a", objects=[waiting("new", ZONE)])[0] == 0


def test_workloads_that_wait_for_the_same_share_a_group(ask):
    objects = [waiting(f"{owner}-{number}", ZONE, owner=f"ReplicaSet/{owner}") for owner in "vwxyz" for number in "01"]
    _, out, _ = ask(TAINTED, objects=[*objects, waiting("w-2", ZONE, owner="ReplicaSet/w")])
    assert (
        "11 pods blocked by spread constraints: "
        "ReplicaSet shop/w (3), ReplicaSet shop/v (2), ReplicaSet shop/x (2) and 2 more workloads\n"
    ) in out


def test_a_constraint_that_cannot_be_read_has_no_domain_to_name(ask):
    odd = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    odd["labelSelector"] = {"matchLabels": {"app": "a b"}}
    _, out, _ = ask("z1: a", objects=[waiting("new", odd)])
    assert "  cause: spread (without its DoNotSchedule constraints 1 node would admit it)\n" in out


def test_more_groups_than_a_screen_holds(ask):
    objects = [waiting(f"new-{number:02}", cpu=str(number + 5), memory=None) for number in range(3)]
    for number in range(15):
        pod = waiting(f"r-{number:02}")
        pod["spec"]["containers"][0]["resources"] = {"requests": {f"example.com/r{number:02}": "1"}}
        objects.append(pod)
    _, out, _ = ask("z1: a", objects=objects)
    assert "\nand 4 pods in 4 more groups (-o json lists all)\n" in out
    assert len(json.loads(ask("z1: a", "-o", "json", objects=objects)[1])) == 16
