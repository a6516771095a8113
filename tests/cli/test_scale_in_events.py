"""``skew`` and ``explain`` name a scale-in as the cause of a live Deployment's skew."""

import json

import jsonschema
import pytest
from cli import schemas
from cluster.api import FakeApi, refuse
from manifest import workload

ZONE = "topology.kubernetes.io/zone"
LEFT = "left by scale-in from 9 to 3"
REMOVED = "b b b c c c"  # the nodes of the removed pods
SINCE = "2026-11-28T10:00:00Z"


def more_than_the_limit(handler, _request):
    handler.json(200, {"metadata": {"continue": "x"}, "items": []})
    return True


def undecodable(handler, _request):
    handler.json(200, {"items": [{"reason": 1}]})
    return True


def event(api, name, reason, of, message, **more):
    kind, named = of.split("/")
    about = {"involvedObject": {"kind": kind, "name": named}, "lastTimestamp": SINCE}
    api.put("events", name, "shop", reason=reason, message=message, **about, **more)


@pytest.fixture(name="api")
def _api():
    """A Deployment of 3 pods, all in zone a, after a scale-in from 9."""
    with FakeApi(tls=False) as api:
        web = workload("Deployment", "app=web", "zone hard 1 app=web", replicas=3)
        for zone in "abc":
            room = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}
            api.put("nodes", zone, metadata={"labels": {ZONE: zone}}, status=room)
        api.put("deployments", "web", "shop", spec=web["spec"])
        above = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "controller": True}
        api.put("replicasets", "web-7d4", "shop", metadata={"ownerReferences": [above]}, spec=web["spec"])
        for number in range(3):
            labelled = {"labels": {"app": "web"}}
            api.put("pods", f"web-7d4-{number}", "shop", metadata=labelled, spec={"nodeName": "a"})
        scaled = "Scaled down replica set web-7d4 from 9 to 3"
        event(api, "scaled", "ScalingReplicaSet", "Deployment/web", scaled)
        for number, node in enumerate(REMOVED.split()):
            of = f"Pod/web-7d4-x{number}"
            event(api, f"stopped-{number}", "Killing", of, "Stopping container c", source={"host": node})
        yield api


@pytest.fixture(name="ask")
def _ask(api, run, tmp_path):
    return lambda *arguments: run(*arguments, "--kubeconfig", api.kubeconfig(tmp_path), "--no-config")[1]


def events_read(api):
    return [request.query["fieldSelector"] for request in api.requests if request.resource == "events"]


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(None, id="all events"),
        pytest.param(refuse(403), id="no permission to list events"),
        pytest.param(more_than_the_limit, id="more events than the limit"),
        pytest.param(undecodable, id="an undecodable event"),
    ],
)
@pytest.mark.parametrize(
    ("words", "line"),
    [
        pytest.param(("skew", "-n", "shop"), f"a 3, b 0, c 0; {LEFT}\n", id="skew"),
        pytest.param(("explain", "deployment/web", "-n", "shop"), f"\n  above maxSkew: {LEFT}\n", id="explain"),
    ],
)
@pytest.mark.sampled
def test_the_cause_is_named_if_the_events_prove_it(api, ask, words, line, fault):
    if fault is not None:
        api.strike("any", fault, resource="events", times=2)
    assert (line in ask(*words)) == (fault is None)
    answer = json.loads(ask(*words, "-o", "json"))
    [constraint] = answer if words[0] == "skew" else answer["constraints"]
    assert constraint.get("leftByScaleIn") == ({"from": 9, "to": 3} if fault is None else None)
    document = constraint if words[0] == "skew" else answer
    jsonschema.validate(document, {**schemas.published(), "$ref": f"#/$defs/{words[0]}"})


def test_events_are_read_once_in_a_namespace(api, ask):
    again = api.objects["deployments"]["shop", "web"]["spec"]
    api.put("deployments", "web2", "shop", spec=again)
    assert ask("skew", "-A").count(LEFT) == 1
    reasons = ["ScalingReplicaSet", "SuccessfulDelete", "Killing", "Scheduled"]
    assert events_read(api) == [f"reason={reason}" for reason in reasons]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(lambda api: api.put("pods", "d", "shop", metadata={"labels": {"app": "x"}}), 4, id="uneven"),
        pytest.param(lambda api: api.delete("events", "scaled", "shop"), 1, id="no scale-down"),
        pytest.param(lambda api: [api.delete("nodes", zone) for zone in "bc"], 0, id="even"),
        pytest.param(lambda api: api.delete("deployments", "web", "shop"), 0, id="no Deployment"),
    ],
)
def test_events_are_read_only_if_needed(api, ask, change, expected):
    change(api)
    ask("skew", "-A")
    assert len(events_read(api)) == expected


def test_a_snapshot_has_no_events(run, api, tmp_path):
    run("snapshot", "--kubeconfig", api.kubeconfig(tmp_path), "-o", "cluster.jsonl")
    out = run("skew", "-A", "--snapshot", "cluster.jsonl")[1]
    assert ("a 3, b 0, c 0\n" in out, LEFT in out) == (True, False)
