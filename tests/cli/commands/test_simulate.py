"""``evenspread simulate``: the page, the JSON, the exit codes, what may happen to a cluster, whose pods."""

import json

import pytest
from cli.snapshots import snapshot
from manifest import workload

ZONE, HOST = "zone hard 1 app=web", "hostname hard 1 app=web"
TAINTED = "a: a0=2 a1=1 | b: b0=3 | c: ~c0"
SIX = "a: a0 a1 | b: b0 b1 | c: c0 c1"

PAGE = """\
Deployment shop/web does not fit: 6 of 9 pods get a node, in whatever order
note: 6 pods run already and stay; with --rollout they are replaced
web #7 waits, cause: spread (without its DoNotSchedule constraints 3 nodes would
  admit it)
zone[0]: zone c (1 node, tainted dedicated:NoSchedule) stays at 0 pods, and
  maxSkew 1 lets no other zone have more than 1

zone[0]  DoNotSchedule, maxSkew 1
  DOMAIN  PODS before -> after
  c           0 -> 0       minimum
  a           3 -> 3     ###
  b           3 -> 3     ###

what would help, in Deployment shop/web; with each of them all its pods fit, in every order:
  add nodeTaintsPolicy: Honor
  set maxSkew: 5 (then one zone may have 5 pods more than another)
  set whenUnsatisfiable: ScheduleAnyway (then all pods may come to stand in one
    zone)

not evaluated: SchedulerConfiguration: disabled plugins, added node affinity,
  ignored resources, extenders; AdmissionPlugins: quota, other webhooks and
  policies, of a pod yet to be created
"""


def web(*constraints, replicas=9, kind="Deployment", name="web", pods="app=web", **more):
    meta = {"name": name, "namespace": "shop"}
    return workload(kind, pods, *constraints, meta=meta, replicas=replicas, **more)


def redis(host_skew):
    """Three shards of two pods, a shard's pods in different zones."""
    for shard in range(3):
        term = {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {"matchLabels": {"shard": str(shard)}}}
        apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        constraints = f"hostname hard {host_skew} app=redis", "zone hard 2 app=redis"
        labels = f"app=redis shard={shard}"
        yield web(*constraints, replicas=2, kind="StatefulSet", name=f"redis-{shard}", pods=labels, affinity=apart)


@pytest.fixture
def ask(run, tmp_path):
    """Simulate manifests in a snapshot: gives exit code, standard output, standard error."""

    def ask(state, *arguments, objects=(), manifests=(), **more):
        file = tmp_path / "snapshot.jsonl"
        file.write_bytes(snapshot(state, *objects, **more))
        stdin = "\n---\n".join(json.dumps(each) for each in manifests).encode()
        words = ["-"] if manifests else []
        return run("simulate", "--snapshot", str(file), *words, *arguments, stdin=stdin)

    return ask


@pytest.fixture
def answer(ask):
    """The JSON, and the exit code."""

    def answer(*arguments, **more):
        code, out, err = ask(*arguments, "-o", "json", **more)
        assert not err
        return json.loads(out), code

    return answer


class TestThePage:
    def test_the_whole_of_it(self, ask):
        code, out, err = ask(TAINTED, manifests=[web(ZONE)])
        assert (code, err) == (1, "")
        assert out == PAGE

    def test_shards_that_can_get_stuck(self, ask):
        code, out, _ = ask(SIX, manifests=[*redis(1)])
        assert code == 1
        assert "can get stuck: all 6 pods get a node in some orders, in others 1\n  stays Pending\n16 % of" in out
        assert (
            "the shortest way there\n"
            "  redis-0-0  -> a0 (zone a)\n"
            "  redis-0-1  -> b0 (zone b)\n"
            "  redis-1-0  -> a1 (zone a)\n"
            "  redis-1-1  -> b1 (zone b)\n"
            "  redis-2-0  -> c0 (zone c)\n"
        ) in out
        assert "redis-2-1 waits, cause: spread" in out

    def test_shards_with_room_on_hosts_fit(self, ask):
        code, out, _ = ask(SIX, manifests=[*redis(2)])
        assert code == 0
        assert out.replace("\n  ", " ").startswith(
            "3 workloads (StatefulSet shop/redis-0, StatefulSet shop/redis-1, StatefulSet shop/redis-2) fit: "
            "all 6 pods get a node, in whatever order\n"
        )


class TestJson:
    def test_the_promised_shape(self, answer):
        found, code = answer(TAINTED, manifests=[web(ZONE)])
        assert code == 1
        assert found["verdict"] == "does-not-fit"
        assert (found["cause"], found["wanted"], found["fits"]) == ("spread", 9, {"min": 6, "max": 6})
        assert found["blocking"] == {
            "topologyKey": "topology.kubernetes.io/zone",
            "domain": "c",
            "count": 0,
            "nodes": [{"name": "c0", "reason": "tainted dedicated:NoSchedule"}],
        }
        assert found["fixes"][1] == {
            "text": "set maxSkew: 5",
            "target": "Deployment shop/web",
            "path": "spec.template.spec.topologySpreadConstraints[0].maxSkew",
            "from": 1,
            "to": 5,
            "fits": {"min": 9, "max": 9},
            "harms": ["one zone may have 5 pods more than another"],
        }
        assert found["workloads"] == {
            "Deployment shop/web": {"verdict": "does-not-fit", "wanted": 9, "fits": {"min": 6, "max": 6}}
        }
        assert found["rollout"] is found["addNodes"] is found["preempts"] is None
        assert found["stuckProbability"] == {"uniform": 1.0, "scored": None}

    def test_shards(self, answer):
        found, _ = answer(SIX, manifests=[*redis(1)])
        assert (found["verdict"], found["fits"]) == ("can-get-stuck", {"min": 5, "max": 6})
        assert found["witness"][0] == {"pod": "redis-0-0", "node": "a0"}
        assert len(found["witness"]) == 5
        assert found["stuckProbability"]["uniform"] == pytest.approx(133 / 810)
        assert {each["verdict"] for each in found["workloads"].values()} == {"can-get-stuck"}

    def test_a_rollout(self, answer):
        strategy = {"strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}
        found, code = answer("a: a0=6 | b: b0=6", "--rollout", manifests=[web(ZONE, replicas=12, spec=strategy)])
        assert (code, found["verdict"]) == (0, "fits")
        assert found["rollout"] == {"worstFinalSkew": 2, "newRunning": {"min": 12, "max": 12}}
