"""Workloads of one file that count each other, without a cluster and beside one."""

import json

import pytest
import yaml
from build import labels
from cli.snapshots import running, snapshot

RULE = "selector-too-wide"
NO_SELECTOR = {"Job", "ReplicationController"}
HARD = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}


def constraint(counts, **fields):
    return HARD | {"labelSelector": {"matchLabels": labels(counts)}} | fields


def deployed(name, has, *constraints, kind="Deployment", api="apps/v1", own=None, meta=None, **spec):
    """A workload; ``has`` are its pods' labels, and ``own`` those of its selector if they are others."""
    template = {
        "metadata": {"labels": labels(has)},
        "spec": {"topologySpreadConstraints": [*constraints], "containers": [{"name": "web", "image": "web:1"}]},
    }
    selector = {"selector": {"matchLabels": labels(own or has)}}
    if kind == "CronJob":
        body = {"schedule": "@daily", "jobTemplate": {"spec": {"template": template}}}
    else:
        body = {"template": template, **({} if kind in NO_SELECTOR else {"replicas": 3, **selector})}
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, **(meta or {})}, "spec": body | spec}


POD_NAME = "statefulset.kubernetes.io/pod-name"
WIDE = deployed("api", "app=web part=api", constraint("app=web"))
WORKER = deployed("worker", "app=web part=worker")
SHOP, LOBBY = ({"namespace": each} for each in ("shop", "lobby"))
CONTROLLED = {"ownerReferences": [{"apiVersion": "x/v1", "kind": "X", "name": "x", "uid": "1", "controller": True}]}
GROUP = {
    "apiVersion": "evenspread.io/v1alpha1",
    "kind": "SpreadGroup",
    "metadata": {"name": "shop"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "shard": {"label": "part"},
        "expected": {"shards": 2, "podsPerShard": 3},
        "caps": [{"topologyKey": "topology.kubernetes.io/zone", "lessThan": "1/2"}],
    },
}
SAID = ["api: zone[0] also counts the pods of worker in the same file"]


def told(run, tmp_path, *files, options=()):
    """The object and the message of each finding of the rule; a file is a list of objects."""
    for number, objects in enumerate(files):
        (tmp_path / f"{number}.yaml").write_text(yaml.safe_dump_all(objects))
    _, out, _ = run("check", str(tmp_path), "-o", "json", "--level", "audit", *options)
    rows = [row for row in json.loads(out) if row.get("rule") == RULE and "severity" in row]
    assert all((row["severity"], row["mode"]) == ("medium", "audit") for row in rows)
    return [f"{row['object']['name']}: {row['message']}" for row in rows]


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([WIDE, WORKER], SAID, id="it counts the other's pods"),
        pytest.param([WORKER, WIDE], SAID, id="in any order"),
        pytest.param([{"apiVersion": "v1", "kind": "List", "items": [WORKER, WIDE]}], SAID, id="in a List"),
        pytest.param(
            [deployed("api", "app=web part=api", constraint("app=web", matchLabelKeys=["part"])), WORKER],
            [],
            id="a label of its own in matchLabelKeys",
        ),
        pytest.param([deployed("api", "app=web part=api", constraint("part=api")), WORKER], [], id="in its selector"),
        pytest.param([WIDE, deployed("worker", "app=db")], [], id="other labels"),
        pytest.param(
            [deployed("api", "app=web", constraint("app=web", matchLabelKeys=["pod-template-hash"])), WORKER],
            [],
            id="its own revision alone",
        ),
        pytest.param(
            [
                deployed(
                    "api", "app=web part=api", constraint("app=web", matchLabelKeys=[POD_NAME]), kind="StatefulSet"
                ),
                WORKER,
            ],
            [],
            id="a label that its controller adds",
        ),
        pytest.param(
            [WIDE, deployed("worker", "app=web part=worker", constraint("app=web"))],
            [*SAID, "worker: zone[0] also counts the pods of api in the same file"],
            id="each counts the other's",
        ),
        pytest.param(
            [deployed("api", "app=web", constraint("app=web")), deployed("worker", "app=web")],
            SAID,
            id="both have the same selector",
        ),
        pytest.param(
            [deployed("api", "app=web", constraint("app=web")), deployed("canary", "app=web track=canary")],
            [],
            id="its own selector matches the canary's pods too",
        ),
        pytest.param(
            [deployed("api", "app=web track=canary", constraint("app=web")), deployed("worker", "app=web")],
            SAID,
            id="a canary counts the stable pods",
        ),
        pytest.param(
            [deployed("api", "app=web part=api", constraint("app=web"), meta=SHOP), WORKER],
            [],
            id="one names a namespace and the other none",
        ),
        pytest.param(
            [
                deployed("api", "app=web part=api", constraint("app=web"), meta=SHOP),
                deployed("worker", "app=web part=worker", meta=LOBBY),
            ],
            [],
            id="two namespaces",
        ),
        pytest.param(
            [
                deployed("api", "app=web part=api", constraint("app=web"), meta=SHOP),
                deployed("worker", "app=web part=worker", meta=SHOP),
            ],
            SAID,
            id="one namespace",
        ),
        pytest.param([WIDE, deployed("api", "app=web part=other")], [], id="the same object twice"),
        pytest.param([WIDE, deployed("worker", "app=web part=w", kind="StatefulSet")], SAID, id="a StatefulSet"),
        pytest.param([WIDE, deployed("worker", "app=web part=w", kind="DaemonSet")], SAID, id="a DaemonSet"),
        pytest.param(
            [WIDE, deployed("worker", "app=web part=w", kind="Rollout", api="argoproj.io/v1alpha1")],
            SAID,
            id="a Rollout",
        ),
        pytest.param([WIDE, deployed("worker", "app=web", kind="Job", api="batch/v1")], [], id="a Job"),
        pytest.param([WIDE, deployed("worker", "app=web", kind="CronJob", api="batch/v1")], [], id="a CronJob"),
        pytest.param(
            [
                deployed("api", "app=web", constraint("app=web"), kind="CronJob", api="batch/v1"),
                deployed("api-1", "app=web", constraint("app=web"), kind="Job", api="batch/v1", meta=CONTROLLED),
            ],
            [],
            id="a Job of a CronJob",
        ),
        pytest.param(
            [
                deployed("api", "app=web", constraint("app=web")),
                deployed(
                    "api-1", "app=web pod-template-hash=1", constraint("app=web"), kind="ReplicaSet", meta=CONTROLLED
                ),
            ],
            [],
            id="a ReplicaSet of a Deployment",
        ),
        pytest.param([WIDE, deployed("worker", "app=web part=w", meta=CONTROLLED)], [], id="one of an operator"),
        pytest.param([WIDE, deployed("worker", "app=web part=w", replicas=0)], [], id="no replicas"),
        pytest.param([WIDE, WORKER, GROUP], [], id="members of one SpreadGroup"),
        pytest.param(
            [WIDE, WORKER, GROUP | {"metadata": {"name": "shop", "namespace": "lobby"}}],
            SAID,
            id="a SpreadGroup of another namespace",
        ),
        pytest.param([WIDE, WORKER | {"spec": {"template": []}}], [], id="one that cannot be read"),
        pytest.param(
            [WIDE, *(deployed(name, f"app=web part={name}") for name in ("d", "a", "c", "b"))],
            ["api: zone[0] also counts the pods of a, b and other workloads in the same file"],
            id="many others",
        ),
        pytest.param(
            [WIDE, deployed("api", "app=web part=db", kind="StatefulSet")],
            ["api: zone[0] also counts the pods of StatefulSet api in the same file"],
            id="another kind of the same name",
        ),
    ],
)
def test_workloads_of_one_file(run, tmp_path, objects, expected):
    assert told(run, tmp_path, objects) == expected


def test_what_is_compared(run, tmp_path):
    """Files of one directory may be copies of one application for several environments."""
    assert told(run, tmp_path, [WIDE], [WORKER]) == []
    shop = WORKER | {"metadata": {"name": "worker", "namespace": "shop"}}
    assert told(run, tmp_path, [WIDE, shop]) == []
    assert told(run, tmp_path, [WIDE, shop], options=("--namespace", "shop")) == SAID


def runs(name, on, has):
    pod = running(name, on)
    return {**pod, "metadata": pod["metadata"] | {"labels": labels(has)}}


@pytest.mark.parametrize(
    ("pods", "objects", "expected"),
    [
        pytest.param([], [WIDE, WORKER], SAID, id="no pod of it runs yet"),
        pytest.param([runs("api-1", "n1", "app=web part=api")], [WIDE, WORKER], SAID, id="its own pods run"),
        pytest.param(
            [runs("worker-1", "n1", "app=web part=worker")],
            [WIDE, WORKER],
            ["api: zone[0] also counts 1 pod of other workloads"],
            id="a pod of it runs, and is counted where it is",
        ),
        pytest.param(
            [runs("worker-1", "no-zone", "app=web part=worker")], [WIDE, WORKER], [], id="its node does not count"
        ),
        pytest.param([], [WIDE, WORKER, GROUP], [], id="one group"),
    ],
)
def test_beside_a_cluster(run, tmp_path, pods, objects, expected):
    known = tmp_path / "cluster.jsonl"
    known.write_bytes(snapshot("a: n1 | b: n2 | no-zone", *pods))
    assert told(run, tmp_path, objects, options=("-n", "shop", "--snapshot", str(known))) == expected


@pytest.mark.parametrize(
    ("objects", "told"),
    [
        pytest.param(
            [WIDE, WORKER],
            """IN:21:9: medium selector-too-wide (the webhook only records it)
  Deployment api  spec.template.spec.topologySpreadConstraints[0].labelSelector
   21 |       - labelSelector:
      |         ^~~~~~~~~~~~~~
  zone[0] also counts the pods of worker in the same file
  fix: labelSelector: {matchLabels: {app: web, part: api}}
  see: https://evenspread.io/rules/selector-too-wide
""",
            id="narrower",
        ),
        pytest.param(
            [deployed("api", "app=web", constraint("app=web")), deployed("worker", "app=web")],
            """IN:19:9: medium selector-too-wide (the webhook only records it)
  Deployment api  spec.template.spec.topologySpreadConstraints[0].labelSelector
   19 |       - labelSelector:
      |         ^~~~~~~~~~~~~~
  zone[0] also counts the pods of worker in the same file
  fix: add a distinct label to the pods of each workload, and select it here
  see: https://evenspread.io/rules/selector-too-wide
""",
            id="the same selector",
        ),
    ],
)
def test_the_text(run, tmp_path, objects, told):
    path = tmp_path / "shop.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    _, out, _ = run("check", str(path), "--rule", RULE)
    assert out.partition("\n\n")[0] + "\n" == told.replace("IN", str(path))


@pytest.mark.parametrize(("kind", "api"), [("Deployment", "apps/v1"), ("ReplicationController", "v1")])
def test_fix(run, tmp_path, kind, api):
    first = deployed("api", "app=web part=api", constraint("app=web"), kind=kind, api=api)
    second = deployed("worker", "app=web part=worker", kind=kind, api=api)
    assert told(run, tmp_path, [first, second]) == SAID
    path = tmp_path / "0.yaml"
    run("check", str(path), "--fix", "--rule", RULE, "--write")
    narrowed, same = fixed = [*yaml.safe_load_all(path.read_text())]
    assert narrowed["spec"]["template"]["spec"]["topologySpreadConstraints"] == [constraint("app=web part=api")]
    assert same == second
    assert told(run, tmp_path, fixed) == []
