"""``evenspread simulate``: the page, the JSON, the exit codes, what may happen to a cluster, whose pods."""

import json
from pathlib import Path

import pytest
from cli.snapshots import node, owned, running, snapshot, waiting
from cluster.api import NOT_INSTALLED, FakeApi
from manifest import workload


def snapshot_node(name, zone, taints):
    """A cordoned node with these taints."""
    made = node(name, zone, cordoned=True)
    return {**made, "spec": made["spec"] | {"taints": taints}}


EXAMPLE = str(Path(__file__).parents[3] / "webhook" / "example" / "cluster.jsonl")

ZONE, HOST = "zone hard 1 app=web", "hostname hard 1 app=web"
TAINTED = "a: a0=2 a1=1 | b: b0=3 | c: ~c0"
SIX = "a: a0 a1 | b: b0 b1 | c: c0 c1"

PAGE = """\
Deployment shop/web does not fit: 6 of 9 pods get a node in any order
note: 6 pods keep running; use --rollout to simulate their replacement
web #7 waits, cause: spread (without its DoNotSchedule constraints 3 nodes would
  admit it)
zone[0]: zone c (1 node, tainted dedicated:NoSchedule) stays at 0 pods, and
  maxSkew 1 lets no other zone have more than 1

zone[0]  DoNotSchedule, maxSkew 1
  DOMAIN  PODS before -> after
  a           3 -> 3     ###
  b           3 -> 3     ###
  c           0 -> 0       minimum

fixes for Deployment shop/web, smallest first; with each of them, all its pods
  fit in every order:
  add nodeTaintsPolicy: Honor
  set maxSkew: 5 (then one zone may have 5 more pods than another)
  set whenUnsatisfiable: ScheduleAnyway (then all pods may end up in one zone)
  set replicas: 6 (then 3 pods fewer run)
  remove taint dedicated:NoSchedule from c0

or add 1 empty node like a0 in zone c

not evaluated: SchedulerConfiguration: disabled plugins, added node affinity,
  ignored resources, extenders; AdmissionPlugins: quota, other webhooks and
  policies for a new pod
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


@pytest.fixture
def policy(tmp_path):
    """The option for a configuration of one line more."""

    def policy(line):
        head = "apiVersion: config.evenspread.io/v1alpha1\nkind: SpreadPolicy\n"
        (tmp_path / "policy.yaml").write_text(f"{head}{line}\n")
        return "--config", str(tmp_path / "policy.yaml")

    return policy


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
            "the shortest sequence to this result\n"
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
            "all 6 pods get a node in any order\n"
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
            "harms": ["one zone may have 5 more pods than another"],
        }
        assert found["workloads"] == {
            "Deployment shop/web": {"verdict": "does-not-fit", "wanted": 9, "fits": {"min": 6, "max": 6}}
        }
        assert found["rollout"] is found["preempts"] is None
        assert found["addNodes"] == [{"like": "a0", "labels": {"topology.kubernetes.io/zone": "c"}, "nodes": 1}]
        assert found["stuckProbability"] == {"uniform": 1.0, "scored": 1.0}

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

    def test_a_rollout_that_recreates(self, ask, answer):
        """All old pods go first. Played in steps, the new ones could come to stand in one zone or in both."""
        manifests = [web(ZONE, replicas=3, spec={"strategy": {"type": "Recreate"}})]
        found, code = answer("a: a0=2 | b: ~b0=1", "--rollout", manifests=manifests)
        assert (code, found["verdict"], found["fits"]) == (1, "does-not-fit", {"min": 1, "max": 1})
        assert found["witness"] == [{"pod": "web #1", "node": "a0"}]
        assert found["rollout"] == {"worstFinalSkew": None, "newRunning": {"min": 1, "max": 1}}
        assert "the strategy Recreate deletes all old pods before it creates new pods" in found["notes"][0]
        assert answer("a: a0=2 | b: b0=1", "--rollout", manifests=manifests)[0]["rollout"]["worstFinalSkew"] == 1
        assert ask("a: a0=2 | b: ~b0=1", "--rollout", manifests=manifests)[0] == 1

    @pytest.mark.parametrize(("paused", "notes"), [(True, 1), (False, 0)])
    def test_a_paused_deployment_makes_no_pod_of_a_new_template(self, answer, paused, notes):
        manifests = [web(ZONE, replicas=2, spec={"paused": paused})]
        found, _ = answer("a: a0=1 | b: b0=1", "--rollout", manifests=manifests)
        assert [each for each in found["notes"] if "is paused" in each] == [
            "Deployment shop/web is paused: its controller creates no pods from a new template until you resume it"
        ] * notes

    def test_a_rollout_of_ordinals(self, answer):
        """The highest goes first, and waits for the one node of the zone where its place was."""
        objects = [running(f"web-{number}", node) for number, node in enumerate(("a0", "a0", "b0"))]
        made = web(ZONE, replicas=3, kind="StatefulSet", spec={"updateStrategy": {"rollingUpdate": {"partition": 1}}})
        found, code = answer("a: a0 | b: b0", "--rollout", objects=objects, manifests=[made])
        assert (code, found["verdict"], found["fits"]) == (0, "fits", {"min": 3, "max": 3})
        found, code = answer("a: a0 | b: -b0", "--rollout", objects=objects, manifests=[made])
        assert (code, found["verdict"], found["witness"]) == (
            1,
            "does-not-fit",
            [{"pod": "web-2", "node": "b0", "gone": True}],
        )


class TestWhatHappensToTheCluster:
    def test_a_drained_node_stays_a_domain(self, answer):
        found, code = answer("a: a0=1 | b: b0=1 | c: c0=1", "--drain", "c0", manifests=[web(ZONE, replicas=6)])
        assert (code, found["verdict"], found["fits"]) == (1, "does-not-fit", {"min": 2, "max": 2})
        assert (found["event"], found["blocking"]["domain"]) == ("node c0 is drained", "c")
        assert found["notes"][0] == "1 pod without a controller is lost: shop/c0-0"

    def test_a_deleted_node_is_none(self, answer):
        found, _ = answer("a: a0=1 | b: b0=1 | c: c0=1", "--delete-node", "c0", manifests=[web(ZONE, replicas=6)])
        assert (found["verdict"], found["event"]) == ("fits", "node c0 is deleted")

    @pytest.mark.parametrize(
        ("taint", "verdict"),
        [
            pytest.param("b0=disk=broken:NoSchedule", "does-not-fit", id="keeps pods away"),
            pytest.param("b0=disk:PreferNoSchedule", "fits", id="is a preference"),
        ],
    )
    def test_a_taint(self, answer, taint, verdict):
        found, _ = answer("a: a0 | b: b0", "--taint", taint, manifests=[web(ZONE, replicas=4)])
        assert found["verdict"] == verdict

    def test_a_taint_that_evicts(self, answer):
        owner = waiting("web-x", owner="ReplicaSet/web-1")
        pod = owner | {"spec": owner["spec"] | {"nodeName": "b0"}, "status": {"phase": "Running"}}
        objects = [pod, owned("ReplicaSet", "web-1", replicas=1)]
        found, _ = answer("a: a0 | b: b0", "--taint", "b0=x:NoExecute", objects=objects)
        assert found["workloads"] == {
            "ReplicaSet shop/web-1": {"verdict": "fits", "wanted": 1, "fits": {"min": 1, "max": 1}}
        }

    def test_nodes_are_added_like_one_that_takes_pods(self, answer):
        manifests = [web(HOST, replicas=5)]
        assert answer("a: a0 | b: ~b0 b1", manifests=manifests)[0]["verdict"] == "does-not-fit"
        found, _ = answer("a: a0 | b: ~b0 b1", "--add-nodes", "zone=b:3", "--delete-node", "b0", manifests=manifests)
        assert (found["verdict"], found["event"]) == (
            "fits",
            "3 nodes like b1 are added, node b0 is deleted",
        )

    @pytest.mark.parametrize(("most", "verdict"), [(1, "does-not-fit"), (2, "fits")])
    def test_an_added_node_attaches_as_many_volumes_as_its_model(self, answer, most, verdict):
        late = {"provisioner": "disks", "volumeBindingMode": "WaitForFirstConsumer"}
        drivers = [{"name": "disks", "nodeID": "a0", "allocatable": {"count": most}}]
        storage = {"apiVersion": "storage.k8s.io/v1"}
        objects = [
            storage | {"kind": "StorageClass", "metadata": {"name": "late"}, **late},
            storage | {"kind": "CSINode", "metadata": {"name": "a0"}, "spec": {"drivers": drivers}},
        ]
        spec = {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"storageClassName": "late"}}]}
        db = web(replicas=4, kind="StatefulSet", name="db", pods="app=db", spec=spec)
        found, _ = answer("a: a0", "--add-nodes", "zone=a:1", manifests=[db], objects=objects)
        assert found["verdict"] == verdict

    def test_a_zone_is_lost_twice(self, ask, answer):
        lost = ("--lose", "zone=c")
        code, out, _ = ask("a: a0=1 | b: b0=1 | c: c0=1", *lost, manifests=[web(ZONE, replicas=6)])
        assert code == 1
        first, second = out.split("\n\nif ")
        assert first.startswith(
            "if zone c cannot be reached:\nDeployment shop/web does not fit: 2 of 6 pods get a node"
        )
        assert "zone[0]: zone c (1 node, unreachable) stays at 0 pods" in first
        assert second.startswith("zone c is gone:\nDeployment shop/web fits: all 6 pods get a node")
        found, _ = answer("a: a0=1 | b: b0=1 | c: c0=1", *lost, manifests=[web(ZONE, replicas=6)])
        assert [each["verdict"] for each in found["events"]] == ["does-not-fit", "fits"]
        assert found["event"] == "zone c cannot be reached"

    def test_ordinals_stay_on_nodes_that_cannot_be_reached(self, ask):
        objects = [running("web-0", "a0"), running("web-1", "b0")]
        for each in objects:
            owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "controller": True}
            each["metadata"]["ownerReferences"] = [owner]
        manifests = [web(ZONE, replicas=2, kind="StatefulSet")]
        _, out, _ = ask("a: a0 | b: b0 b1", "--lose", "zone=b", objects=objects, manifests=manifests)
        assert "StatefulSet shop/web: 1 pod stays on unreachable nodes" in out
        assert "StatefulSet shop/web fits: both pods get a node in any order" in out

    @pytest.mark.parametrize(
        ("arguments", "code", "message"),
        [
            pytest.param(["--drain", "a1"], 2, "the cluster has no node a1", id="no such node"),
            pytest.param(["--lose", "zone=z"], 2, "the cluster has no zone z: it has a, b", id="no such zone"),
            pytest.param(["--lose", "rack=z"], 2, "no node has this label", id="no such key"),
            pytest.param(["--lose", "zone"], 2, "'zone' is not KEY=VALUE, for example zone=b", id="no value"),
            pytest.param(["--taint", "a0=x"], 2, "'a0=x' is not NODE=KEY=VALUE:EFFECT", id="no effect"),
            pytest.param(["--add-nodes", "zone=a"], 2, "'zone=a' is not KEY=VALUE:NUMBER", id="no number"),
            pytest.param([], 2, "add FILE, KIND/NAME, --all, or an event", id="nothing"),
            pytest.param(["--all", "--replicas", "3"], 2, "--replicas and --rollout need FILE", id="of all"),
            pytest.param(["--all", "deploy/web"], 2, "use only one of", id="both"),
            pytest.param(["no/such"], 2, "'no/such' is neither a file nor a workload", id="neither"),
            pytest.param(
                ["deploy/web", "deploy/api"],
                2,
                "one KIND/NAME at a time; for several workloads, use their manifests or --all",
                id="two workloads",
            ),
            pytest.param(["deploy/web", "no/such"], 2, "'no/such' is neither a file nor a workload", id="one of two"),
            pytest.param(["deploy", "web"], 3, "no Deployment default/web", id="apart"),
            pytest.param(["deploy/web"], 3, "no Deployment default/web; use -n for another namespace", id="not there"),
        ],
    )
    def test_that_cannot_be_asked(self, ask, arguments, code, message):
        found, out, err = ask("a: a0 | b: b0", *arguments)
        assert (found, out) == (code, "")
        assert message in err


class TestWhosePods:
    def test_of_one_workload_of_the_cluster(self, answer):
        objects = [web(ZONE, replicas=4)]
        found, code = answer("a: a0=1 | b: ~b0=1", "deploy/web", "-n", "shop", objects=objects)
        assert (code, found["wanted"], found["fits"]) == (1, 4, {"min": 3, "max": 3})
        assert found["witness"] == [{"pod": "web #3", "node": "a0"}]
        assert (found["waiting"], found["notes"]) == ("web #4", [])
        assert answer("a: a0=1 | b: ~b0=1", "deploy", "web", "-n", "shop", "--replicas", "3", objects=objects)[1] == 0

    def test_of_all_that_lack_pods(self, ask):
        objects = [
            web(ZONE, replicas=4),
            web(replicas=1, name="api", pods="app=api", selector="app=api"),
            waiting("new", HOST),
        ]
        code, out, _ = ask("a: a0=1 | b: ~b0=1", "--all", objects=objects)
        assert code == 1
        assert out.startswith("3 workloads (")
        assert "Deployment shop/web does not fit" in out

    @pytest.mark.parametrize(
        ("kind", "spec", "field"),
        [
            pytest.param("Deployment", {"template": 5}, "DeploymentSpec.spec.template", id="a template"),
            pytest.param(
                "StatefulSet", {"volumeClaimTemplates": "x"}, "StatefulSetSpec.spec.volumeClaimTemplates", id="claims"
            ),
        ],
    )
    @pytest.mark.parametrize("arguments", [["--all"], ["--all", "-n", "shop"], ["--drain", "b0"]])
    def test_of_all_that_can_be_read(self, ask, kind, spec, field, arguments):
        """What cannot be is named and left out, as by `skew`; of another namespace nothing is said."""
        objects = [web(ZONE, replicas=4), web(kind=kind, name="broken", spec=spec)]
        code, out, err = ask("a: a0=1 | b: ~b0=1", *arguments, objects=objects)
        assert (code, "Deployment shop/web does not fit" in out) == (1, True)
        assert f"note: {kind} shop/broken: {kind} in version" in err
        assert f"{field} of type" in err
        assert err.endswith(": left out\n")
        found = json.loads(ask("a: a0 | b: b0", *arguments, "-o", "json", objects=objects)[1])
        assert found["notEvaluated"][-1].startswith(f"{kind} shop/broken: ")
        other = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}
        assert ask("a: a0", "--all", "-n", "other", objects=[*objects, other])[2] == ""

    def test_of_none(self, ask):
        code, out, _ = ask("a: a0=1", "--all", objects=[web(ZONE, replicas=1)])
        assert (code, out) == (0, "every workload fits: no pod needs a node\n")

    def test_that_kube_apiserver_refuses_are_not_decided(self, answer):
        found, code = answer("a: a0", manifests=[web(f"{ZONE} keys:app", replicas=2)])
        assert (code, found["verdict"]) == (1, "unknown")
        assert "no pod of this workload can be created" in found["doubt"]

    def test_with_services_of_the_files(self, answer):
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web"},
            "spec": {"selector": {"app": "web"}},
        }
        assert answer("a: a0", "-n", "shop", manifests=[service, web(replicas=1)])[0]["verdict"] == "fits"

    @pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "Job"])
    def test_of_several_that_count_their_own_revision_alone(self, answer, kind):
        """Labels that only a controller will know differ between workloads: each is spread by itself."""
        key = {"Job": "batch.kubernetes.io/controller-uid", "Deployment": "pod-template-hash"}
        constraint = f"zone hard 1 part-of=shop keys:{key.get(kind, 'controller-revision-hash')}"
        manifests = [
            web(constraint, kind=kind, name=name, pods=f"app={name} part-of=shop", selector=f"app={name}", replicas=1)
            for name in ("web", "api")
        ]
        found, _ = answer("a: a0 | b: ~b0", manifests=manifests)
        assert (found["verdict"], found["fits"]) == ("fits", {"min": 2, "max": 2})

    def test_of_jobs_whose_names_are_generated(self, answer):
        constraint = "zone hard 1 part-of=shop keys:batch.kubernetes.io/job-name"
        made = web(constraint, kind="Job", pods="part-of=shop", replicas=1)
        made["metadata"] = {"generateName": "run-", "namespace": "shop"}
        assert answer("a: a0 | b: ~b0", manifests=[made, made])[0]["fits"] == {"min": 2, "max": 2}

    def test_of_a_file_without_any(self, run, tmp_path):
        (tmp_path / "s.jsonl").write_bytes(snapshot("a: a0"))
        (tmp_path / "d.json").write_text(json.dumps(web(kind="DaemonSet")))
        code, _, err = run("simulate", "d.json", "--snapshot", "s.jsonl")
        assert (code, "no workload whose pods need a node" in err) == (3, True)


def terminating(name, on, kind="StatefulSet", owner="web", **more):
    """A pod that is being deleted, of a controller of that kind."""
    api = {"Job": "batch/v1"}.get(kind, "apps/v1")
    made = waiting(name, **more)
    reference = [{"apiVersion": api, "kind": kind, "name": owner, "controller": True}] if kind else []
    meta = made["metadata"] | {"deletionTimestamp": "2026-11-24T06:00:00Z", "ownerReferences": reference}
    return {**made, "metadata": meta, "spec": made["spec"] | {"nodeName": on}, "status": {"phase": "Running"}}


UNREACHABLE = [{"key": "node.kubernetes.io/unreachable", "effect": each} for each in ("NoSchedule", "NoExecute")]


class TestPodsThatTerminate:
    """Their nodes get rid of them in time. What holds a place until then holds none in the end."""

    @pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
    @pytest.mark.parametrize("arguments", [["-n", "shop", "sts/web"], ["--all"]])
    def test_an_ordinal_is_made_again_once_it_is_gone(self, answer, policy, arguments):
        made = web(ZONE, replicas=3, kind="StatefulSet", spec={"podManagementPolicy": policy})
        objects = [made, terminating("web-0", "b0"), running("web-1", "a0"), running("web-2", "b0")]
        found, code = answer("a: a0 | b: b0", *arguments, objects=objects)
        assert (code, found["verdict"], found["fits"]["max"]) == (0, "fits", 3)
        assert found["notes"][0] == "1 terminating pod counts as deleted: shop/web-0"
        # The only zone that may take it takes no pod.
        found, code = answer("a: -a0 | b: b0", *arguments, objects=[made, *objects[1:2], running("web-1", "b0")])
        assert (code, found["verdict"]) == (1, "does-not-fit")
        assert found["waiting"] == "web-0"

    @pytest.mark.parametrize(("taints", "code"), [(UNREACHABLE, 0), ([], 1)], ids=["unreachable", "cordoned"])
    def test_an_ordinal_on_an_unreachable_node_stays(self, answer, taints, code):
        made = web(ZONE, replicas=2, kind="StatefulSet")
        lost = snapshot_node("a0", "a", taints)
        objects = [made, lost, terminating("web-0", "a0"), running("web-1", "b0")]
        found, exit_code = answer("b: b0", "sts/web", "-n", "shop", objects=objects)
        assert exit_code == code
        assert any("on unreachable nodes" in each for each in found["notes"]) is not bool(code)

    @pytest.mark.parametrize("kind", ["StatefulSet", "ReplicaSet", "Job", "DaemonSet", None])
    def test_what_they_hold_is_free_once_they_are_gone(self, answer, kind):
        objects = [terminating("other", "a0", kind, "other", cpu="3")]
        made = web(replicas=1, containers=holding("2"))
        found, _ = answer("a: a0", manifests=[made], objects=objects)
        assert (found["verdict"], found["fits"]) == ("fits", {"min": 1, "max": 1})
        # Who will be made anew looks for a node, too; who was replaced already does not.
        again = kind in {"StatefulSet", "DaemonSet"}
        assert ("1 pending pod of other workloads" in str(found["notEvaluated"])) is again
        found, _ = answer("a: a0", "--all", objects=[*objects, made])
        assert (found["verdict"], len(found["workloads"])) == (("does-not-fit", 2) if again else ("fits", 1))

    def test_one_without_a_node_looks_for_none(self, answer):
        made = terminating("web-x", "a0", "ReplicaSet", "web-1")
        del made["spec"]["nodeName"]
        assert answer("a: a0", "--all", objects=[made])[0]["workloads"] == {}

    def test_one_on_a_drained_node_was_replaced_already(self, answer):
        objects = [terminating("x", "a0", "ReplicaSet", "web-1"), terminating("y", "a0", None)]
        found, _ = answer("a: a0 | b: b0", "--drain", "a0", objects=objects)
        assert (found["workloads"], found["notes"]) == ({}, [])

    @pytest.mark.parametrize(
        ("gone", "stays", "pods", "verdict"),
        [
            pytest.param(["a0"], "a0", "app=api", "fits", id="and others"),
            pytest.param(["a0"], None, "app=api", "unknown", id="and nobody else"),
            pytest.param(["a0"], "b0", "app=api", "unknown", id="and nobody else there"),
            pytest.param(["x0"], "b0", "app=api", "fits", id="on a node without the key"),
            pytest.param(["a0"], None, "app=web", "fits", id="and each other, to one zone"),
            pytest.param(["a0", "b0"], None, "app=web", "unknown", id="and each other, to two zones"),
        ],
    )
    def test_whom_they_attract_must_come_before_they_are_gone(self, answer, gone, stays, pods, verdict):
        term = {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {"matchLabels": {"app": "web"}}}
        near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        objects = [terminating(f"web-{each}", each, "ReplicaSet", "web-1") for each in gone]
        objects += [running("web-y", stays), node("x0")] if stays else []
        made = web(name="api", pods=pods, selector=pods, replicas=1, affinity=near)
        found, _ = answer("a: a0 | b: b0", manifests=[made], objects=objects)
        assert found["verdict"] == verdict
        assert ("the pods' required affinity needs terminating pods" in found["doubt"]) is (verdict == "unknown")


class TestLongSearches:
    def test_past_the_number_of_states_orders_are_tried(self, answer):
        found, code = answer(SIX, "--states", "1", manifests=[*redis(2)])
        assert (code, found["verdict"], found["fits"]) == (1, "unknown", {"min": None, "max": None})
        assert "none of 200 sampled orders got stuck, which proves nothing" in found["doubt"]
        stuck, _ = answer(SIX, "--states", "1", manifests=[*redis(1)])
        assert (stuck["verdict"], stuck["stuckProbability"]["uniform"]) == ("can-get-stuck", None)

    def test_ctrl_c_prints_what_is_known(self, ask, monkeypatch):
        def stop(*_, tick, **__):
            tick(1_234)
            raise KeyboardInterrupt

        monkeypatch.setattr("webhook.core.what_if.joint_simulation.simulate", stop)
        code, out, _ = ask(SIX, manifests=[*redis(1)])
        assert code == 130
        assert "are undecided\ninterrupted with 1,234 states searched, and no verdict yet\n" in out


class TestTheWholeCluster:
    def test_of_a_lost_zone_each_workload_is_told_alone(self, run):
        code, out, err = run("simulate", "--lose", "zone=eu-central-1b", "--states", "500", "--snapshot", EXAMPLE)
        assert (code, err) == (1, "")
        first, second = out.split("\n\nif ")
        assert "do not fit, each simulated alone\n" in first
        assert "\nDeployment shop/checkout does not fit: 3 of 5 pods get a node in any order\n" in first
        assert "\n  fix: add nodeTaintsPolicy: Honor\n" in first
        assert "\nStatefulSet data/kafka does not fit: 2 of 3 pods get a node in any order\n" in second
        assert "zone[0]: 2 zones, fewer than minDomains 3: the minimum is 0" in second
        assert "workloads fit alone\n" in second

    def test_whoever_follows_the_advice_fits(self, run, tmp_path):
        arguments = ("deployment/ledger", "-n", "payments", "-o", "json")
        _, out, _ = run("simulate", *arguments, "--snapshot", EXAMPLE)
        [fix, *_] = json.loads(out)["fixes"]
        lines = [json.loads(line) for line in Path(EXAMPLE).read_text().splitlines()]
        for each in lines:
            if each["kind"] == "Deployment" and each["metadata"]["name"] == "ledger":
                each["spec"]["template"]["spec"]["topologySpreadConstraints"][0]["maxSkew"] = fix["to"]
        followed = tmp_path / "followed.jsonl"
        followed.write_text("\n".join(map(json.dumps, lines)))
        code, out, _ = run("simulate", *arguments, "--snapshot", str(followed))
        assert (fix["path"], code) == ("spec.template.spec.topologySpreadConstraints[0].maxSkew", 0)

    def test_of_a_live_one(self, run, tmp_path):
        with FakeApi() as api:
            allocatable = {"cpu": "4", "memory": "8Gi", "pods": "110"}
            for name, zone in (("n1", "a"), ("n2", "b")):
                labels = {"topology.kubernetes.io/zone": zone}
                api.put("nodes", name, metadata={"labels": labels}, status={"allocatable": allocatable})
            made = web(ZONE, replicas=2)
            api.put("deployments", "web", "shop", spec=made["spec"])
            owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "controller": True}
            meta = {"labels": {"app": "web"}, "ownerReferences": [owner]}
            api.put("pods", "one", "shop", metadata=meta, spec={"nodeName": "n1"})
            file = api.kubeconfig(tmp_path)
            code, out, err = run("simulate", "--kubeconfig", file, "--drain", "n2")
            assert (code, err) == (1, NOT_INSTALLED)
            assert "Deployment shop/web does not fit: 1 of 2 pods gets a node" in out
            assert run("simulate", "--kubeconfig", file, "deploy/web", "-n", "shop")[0] == 0
            there = api.kubeconfig(tmp_path, namespace="shop")
            assert run("simulate", "--kubeconfig", there, "deploy/web")[0] == 0
            code, _, err = run("simulate", "--kubeconfig", file, "deploy/api", "-n", "shop")
            assert (code, err) == (3, f"{NOT_INSTALLED}evenspread: cluster x: no Deployment shop/api\n")
            api.forbidden.add("nodes")
            assert run("simulate", "--kubeconfig", file, "--all")[0] == 4


class TestWhatHelps:
    """Each fix that is offered was played; the first words say which are."""

    def test_two_fields_together(self, answer):
        found, _ = answer("a: a0 | b: ~b0", manifests=[web(ZONE, HOST, replicas=12)])
        assert [each["text"] for each in found["fixes"]][:2] == [
            "add nodeTaintsPolicy: Honor in zone[0] and hostname[1]",
            "set whenUnsatisfiable: ScheduleAnyway in zone[0] and hostname[1]",
        ]
        both = [f"{each} nodeTaintsPolicy:Honor" for each in (ZONE, HOST)]
        assert answer("a: a0 | b: ~b0", manifests=[web(*both, replicas=12)])[1] == 0

    def test_a_node_that_is_uncordoned(self, answer):
        found, _ = answer("a: a0 | b: b0 | c: -c0", manifests=[web(ZONE, replicas=6)])
        [cordon] = [each for each in found["fixes"] if each["target"] == "Node c0"]
        assert cordon == {
            "text": "uncordon c0",
            "target": "Node c0",
            "path": "spec.unschedulable",
            "from": True,
            "to": None,
            "fits": {"min": 6, "max": 6},
            "harms": [],
        }
        assert answer("a: a0 | b: b0 | c: c0", manifests=[web(ZONE, replicas=6)])[1] == 0

    def test_fewer_replicas(self, answer):
        found, _ = answer("a: a0 | b: ~b0", manifests=[web(ZONE, replicas=6)])
        [fewer] = [each for each in found["fixes"] if each["path"] == "spec.replicas"]
        assert (fewer["text"], fewer["from"], fewer["to"], fewer["fits"]) == (
            "set replicas: 1",
            6,
            1,
            {"min": 1, "max": 1},
        )
        assert fewer["harms"] == ["5 pods fewer run"]
        assert answer("a: a0 | b: ~b0", "--replicas", "1", manifests=[web(ZONE, replicas=6)])[1] == 0

    def test_less_parallelism_of_a_job(self, answer):
        made = web(ZONE, kind="Job", replicas=None, spec={"parallelism": 6})
        found, _ = answer("a: a0 | b: ~b0", manifests=[made])
        [fewer] = [each for each in found["fixes"] if each["path"] == "spec.parallelism"]
        assert (found["wanted"], fewer["text"], fewer["from"], fewer["to"]) == (6, "set parallelism: 1", 6, 1)

    def test_a_rollout_by_revision_or_with_one_pod_less(self, answer):
        """Zone b is shut, and a may hold no more: the old pods stand in the way of the new ones."""
        strategy = {"strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}
        manifests = [web(ZONE, replicas=1, spec=strategy)]
        found, _ = answer("a: a0=1 | b: ~b0", "--rollout", manifests=manifests)
        assert found["verdict"] == "does-not-fit"
        fixes = {each["text"]: each for each in found["fixes"]}
        assert fixes["add matchLabelKeys: [pod-template-hash]"]["to"] == ["pod-template-hash"]
        assert fixes["set maxUnavailable: 1"]["path"] == "spec.strategy.rollingUpdate.maxUnavailable"
        assert fixes["set maxUnavailable: 1"]["harms"] == ["during a rolling update 1 pod may be missing"]
        strategy["strategy"]["rollingUpdate"]["maxUnavailable"] = 1
        manifests = [web(ZONE, replicas=1, spec=strategy)]
        assert answer("a: a0=1 | b: ~b0", "--rollout", manifests=manifests)[1] == 0

    def test_nothing_more_once_somebody_does_not_want_to_wait(self, answer, monkeypatch):
        played = []

        def stop(*arguments):
            played.append(arguments)
            raise KeyboardInterrupt

        monkeypatch.setattr("webhook.core.what_if.suggestions.all_fit", stop)
        found, _ = answer("a: a0 | b: ~b0", manifests=[web(ZONE, HOST, replicas=6)])
        assert (len(played), found["fixes"]) == (1, [])


class TestWhatMakesRoom:
    def test_nodes_and_whom_to_preempt(self, ask, answer):
        """Each node holds a pod of 3 cpus, and 4 is what it has."""
        there = "a: a0 | b: b0"
        objects = [
            {**(each := running(f"x{node}", node)), "spec": {**each["spec"], "containers": holding("3")}}
            for node in ("a0", "b0")
        ]
        for each in objects:
            each["metadata"]["labels"] = {"app": "batch"}
        important = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "important"}}
        objects.append({**important, "value": 1000})
        made = web(ZONE, replicas=4, containers=holding("2"), priorityClassName="important")
        asked = {"objects": objects, "manifests": [made]}
        found, code = answer(there, **asked)
        assert (code, found["verdict"], found["cause"], found["fits"]["max"]) == (1, "does-not-fit", "capacity", 0)
        assert (found["addNodes"], found["preempts"]) == (
            [
                {"like": "a0", "labels": {"topology.kubernetes.io/zone": "a"}, "nodes": 1},
                {"like": "b0", "labels": {"topology.kubernetes.io/zone": "b"}, "nodes": 1},
            ],
            2,
        )
        _, out, _ = ask(there, **asked)
        assert (
            "\nor add 1 empty node like a0 in zone a and 1 empty node like b0 in zone b\n"
            "\nor preempt 2 pods of lower priority (the scheduler does this itself)\n"
        ) in out

    def test_of_a_rollout_and_of_pods_that_wait(self, answer):
        """Three pods on one node; a new one may only come once an old one is gone, which none is."""
        strategy = {"strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}
        manifests = [web(HOST, replicas=2, spec=strategy, containers=holding("3"))]
        found, _ = answer("a: a0=1 a1=1", "--rollout", manifests=manifests, cpu="3")
        assert (found["verdict"], found["addNodes"], found["preempts"]) == (
            "does-not-fit",
            [{"like": "a0", "labels": {}, "nodes": 1}],
            None,
        )
        objects = [waiting(f"new-{number}", cpu="3") for number in range(3)]
        found, _ = answer("a: a0", "--all", objects=objects)
        assert (found["addNodes"], found["preempts"]) == ([{"like": "a0", "labels": {}, "nodes": 2}], None)

    @pytest.mark.parametrize(
        ("configured", "cause"),
        [pytest.param("fixed", "spread", id="fixed"), pytest.param("growing", "capacity", id="growing")],
    )
    def test_where_nodes_can_be_added(self, ask, answer, policy, configured, cause):
        given = {"manifests": [web(ZONE, replicas=2)]}
        asked = policy(f"capacity: {configured}")
        found, code = answer("a: a0 | b: ~b0", *asked, **given)
        assert (code, found["verdict"], found["cause"]) == (1, "does-not-fit", cause)
        _, out, _ = ask("a: a0 | b: ~b0", *asked, **given)
        assert ("web #2 waits, cause today: spread" in out) == (cause == "capacity")
        assert ("(this cluster can add nodes" in out) == (cause == "capacity")

    def test_in_a_zone_that_has_no_node_yet(self, answer, policy):
        given = {"manifests": [web("zone hard 1 app=web minDomains:2", replicas=2)]}
        assert answer("a: a0", **given)[0]["addNodes"] is None
        found, _ = answer("a: a0", *policy("domains: {topology.kubernetes.io/zone: [a, b]}"), **given)
        assert found["addNodes"] == [{"like": "a0", "labels": {"topology.kubernetes.io/zone": "b"}, "nodes": 1}]

    def test_nothing_is_tried_without_end(self, answer, monkeypatch):
        monkeypatch.setattr("webhook.core.what_if.run._ROOM_TRIALS", 1)
        found, _ = answer("a: a0 | b: b0", manifests=[web(ZONE, replicas=200, containers=holding("1"))])
        assert (found["verdict"], found["addNodes"]) == ("does-not-fit", None)


def autoscaler(most, **more):
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    meta = {"name": "web", "namespace": "shop"}
    kind = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    return {**kind, "metadata": meta, "spec": {"scaleTargetRef": target, "maxReplicas": most}, **more}


class TestAtTheAutoscalersMaximum:
    @pytest.mark.parametrize("of_cluster", [True, False])
    def test_of_the_files_or_the_cluster(self, answer, of_cluster):
        made, scaler = web(ZONE, replicas=2), [autoscaler(9)]
        given = {"objects": scaler, "manifests": [made]} if of_cluster else {"manifests": [made, *scaler]}
        found, code = answer("a: a0 | b: ~b0", **given)
        assert (code, found["verdict"]) == (1, "does-not-fit")
        assert found["atMaximum"] == {"verdict": "does-not-fit", "wanted": 9, "fits": {"min": 1, "max": 1}}

    def test_is_a_line_of_the_page(self, ask):
        code, out, _ = ask("a: a0 | b: ~b0", manifests=[web(ZONE, replicas=1), autoscaler(9)])
        assert code == 0
        assert "at the autoscaler's maximum (9 pods) it does not fit: 1 of 9 pods gets a node" in out

    def test_of_several_workloads(self, ask):
        _, out, _ = ask("a: a0", manifests=[web(replicas=1), web(name="api", replicas=1), autoscaler(3)])
        assert "at each autoscaler's maximum (4 pods) they fit: all 4 pods get a node" in out

    @pytest.mark.parametrize(
        ("arguments", "most"),
        [
            pytest.param([], 2, id="no more than there are"),
            pytest.param(["--replicas", "1"], 9, id="a number that is asked for"),
            pytest.param(["--rollout"], 9, id="a rolling update"),
        ],
    )
    def test_is_not_asked_for(self, answer, arguments, most):
        found, _ = answer("a: a0", *arguments, manifests=[web(replicas=2), autoscaler(most)])
        assert found["atMaximum"] is None


def holding(cpu):
    return [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]


BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


def in_zone(zone):
    terms = [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}]
    return {"nodeSelectorTerms": [{"matchExpressions": terms}]}


class TestForecast:
    """Where the scheduler would most likely put the pods."""

    @pytest.mark.parametrize(
        ("state", "constraints", "expected"),
        [
            pytest.param("a: a0 | b: b0", ["zone soft 1 app=web"], ["a0", "b0", "a0"], id="one after the other"),
            pytest.param("a: a0=2 | b: b0", ["zone soft 1 app=web"], ["b0"], id="beside those that run"),
            pytest.param("a: a0=1 a1 | b: b0=1", [], ["a1"], id="the emptiest node"),
            pytest.param("a: a0 | b: ~b0", ["zone hard 1 app=web"], ["a0"], id="as long as nodes admit them"),
        ],
    )
    def test_is_made_pod_by_pod(self, answer, state, constraints, expected):
        found, _ = answer(state, manifests=[web(*constraints, replicas=3)])
        assert [each["node"] for each in found["mostLikely"]] == expected
        assert {each["workload"] for each in found["mostLikely"]} == {"Deployment shop/web"}

    def test_says_how_many_nodes_were_as_good(self, answer):
        found, _ = answer("a: a0 a1 | b: b0", manifests=[web("zone soft 1 app=web", replicas=3)])
        assert [each["best"] for each in found["mostLikely"]] == [3, 1, 3]

    def test_stands_below_the_verdict(self, ask):
        code, out, _ = ask("a: a0 | b: b0", manifests=[web("zone hard 1 app=web", replicas=3)])
        line = "by its scores, the scheduler most likely places 2 on a0, 1 on b0 (other nodes\n  tie)\n"
        assert (code, out.partition("\n")[2].startswith(line)) == (0, True)

    def test_is_left_out_where_no_order_places_all(self, ask):
        assert "by its scores" not in ask(TAINTED, manifests=[web(ZONE)])[1]

    @pytest.mark.slow
    def test_counts_how_often_the_scheduler_would_get_stuck(self, answer, ask):
        found, _ = answer(SIX, manifests=[*redis(1)])
        assert found["verdict"] == "can-get-stuck"
        assert 0 <= found["stuckProbability"]["scored"] < 1
        assert " of 100 simulated runs get stuck" in " ".join(ask(SIX, manifests=[*redis(1)])[1].split())

    def test_is_not_made_of_a_rolling_update(self, answer):
        found, _ = answer("a: a0=1 | b: b0=1", "--rollout", manifests=[web(ZONE, replicas=2)])
        assert found["mostLikely"] is None
        assert found["stuckProbability"]["scored"] is None

    def test_lets_ordinals_wait_for_those_of_their_own_workload(self, answer):
        claims = [
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": f"data-db-{number}", "namespace": "shop", "annotations": BOUND},
                "spec": {"volumeName": f"pv-{number}", "resources": {"requests": {"storage": "1Gi"}}},
                "status": {"phase": "Bound"},
            }
            for number in range(2)
        ]
        volumes = [
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": f"pv-{number}"},
                "spec": {"capacity": {"storage": "1Gi"}, "nodeAffinity": {"required": in_zone("ab"[number])}},
            }
            for number in range(2)
        ]
        template = {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
        db = web(replicas=2, kind="StatefulSet", name="db", pods="app=db", spec={"volumeClaimTemplates": [template]})
        nowhere = web(replicas=1, nodeSelector={"no": "node"})
        found, _ = answer("a: a0 | b: b0", manifests=[nowhere, db], objects=[*claims, *volumes])
        assert [each["node"] for each in found["mostLikely"]] == ["a0", "b0"]

    @pytest.mark.parametrize(("most", "expected"), [(1, ["a0", "b0"]), (2, ["a0", "a0"])])
    def test_counts_the_attached_volumes_of_all_ordinals(self, answer, most, expected):
        claim = {"name": "data-db-0", "namespace": "shop", "annotations": BOUND}
        late = {"provisioner": "disks", "volumeBindingMode": "WaitForFirstConsumer"}
        drivers = [{"name": "disks", "nodeID": "a0", "allocatable": {"count": most}}]
        source = {"csi": {"driver": "disks", "volumeHandle": "h"}, "nodeAffinity": {"required": in_zone("a")}}
        objects = [
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": claim, "spec": {"volumeName": "pv"}},
            {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"}, "spec": source},
            {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "late"}, **late},
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "CSINode",
                "metadata": {"name": "a0"},
                "spec": {"drivers": drivers},
            },
        ]
        spec = {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"storageClassName": "late"}}]}
        db = web(replicas=2, kind="StatefulSet", name="db", pods="app=db", spec=spec)
        found, _ = answer("a: a0 | b: b0=3", manifests=[db], objects=objects)
        assert [each["node"] for each in found["mostLikely"]] == expected

    def test_leaves_the_cluster_as_it_was(self, answer):
        objects = [waiting("web-9")]
        found, _ = answer("a: a0 | b: b0", "--all", objects=objects)
        assert [each["node"] for each in found["mostLikely"]] == ["a0"]
        assert found["verdict"] == "fits"
