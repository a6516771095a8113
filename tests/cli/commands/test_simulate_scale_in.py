"""``evenspread simulate --replicas N`` below the running pods, and ``--scale-in``."""

import json
import time

import pytest
from cli.snapshots import node, owned, running, snapshot, waiting
from cluster.api import FakeApi
from manifest import workload

ZONE = "zone hard 1 app=web"
EVEN = "a: a0=3 | b: b0=3 | c: c0=3"
COST = "controller.kubernetes.io/pod-deletion-cost"
NOTE = "no forecast of the scale-in to 1 replica: "

PAGE = """\
Deployment shop/web fits: all 3 pods have a node already

scale-in of Deployment shop/web from 9 to 3 pods
zone[0]  DoNotSchedule, maxSkew 1
  today   skew 0  a 3, b 3, c 3
  best    skew 0  a 1, b 1, c 1
  likely  skew 0  a 1, b 1, c 1
  worst   skew 3  a 3, b 0, c 0
  range   skew 3  at most, with 6 pods, if the scale-in can stop anywhere
  the worst case leaves no pod in b and c
  4 new pods repair the worst case, if each gets a node in the domain with the
    fewest pods
if another order keeps maxSkew, evenspread can choose it: set the annotation
  evenspread.io/scale-in: guard on the workload, and controller.scaleIn.guard in
  the chart

not evaluated: AdmissionPlugins: quota, other webhooks and policies for a new
  pod
"""


def web(*constraints, replicas=9, kind="Deployment", **more):
    written = constraints or (ZONE,)
    return workload(kind, "app=web", *written, meta={"name": "web", "namespace": "shop"}, replicas=replicas, **more)


def job(*constraints):
    """A Job, as the API server stores it."""
    spec = {"parallelism": 3, "selector": {"matchLabels": {"app": "web"}}}
    return workload("Job", "app=web", *constraints, meta={"name": "web", "namespace": "shop"}, spec=spec)


def autoscaler(least, target="Deployment/web"):
    kind, name = target.split("/")
    meta = {"name": "web", "namespace": "shop"}
    spec = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": kind, "name": name}, "maxReplicas": 20}
    spec |= {} if least is None else {"minReplicas": least}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": meta, "spec": spec}


def pod(name, on, *, labels="", **annotations):
    """A running pod ``app=web`` with more labels and annotations."""
    made = running(name, on)
    added = dict(part.split("=") for part in labels.split())
    meta = made["metadata"] | {"labels": made["metadata"]["labels"] | added, "annotations": annotations}
    return {**made, "metadata": meta}


@pytest.fixture
def ask(run, tmp_path):
    """Simulate Deployment web of a snapshot: gives exit code, standard output, standard error."""

    def ask(state, *arguments, objects=(), words=("deploy/web", "-n", "shop"), stdin=b"", taken_at=None):
        file = tmp_path / "snapshot.jsonl"
        file.write_bytes(snapshot(state, *objects, taken_at=taken_at))
        return run("simulate", "--snapshot", str(file), *words, *arguments, stdin=stdin)

    return ask


@pytest.fixture
def answer(ask):
    """The JSON of the scale-in, and the notes."""

    def answer(*arguments, **more):
        code, out, err = ask(*arguments, "-o", "json", **more)
        assert (code, err) == (0, "")
        found = json.loads(out)
        return found["scaleIn"], found["notes"]

    return answer


@pytest.fixture
def east(monkeypatch):
    """The local time is five hours ahead of UTC."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "XXX-5")
        time.tzset()
        yield
    time.tzset()


def worst(scale_in):
    (only,) = scale_in["constraints"]
    return only["worst"]


class TestThePage:
    def test_the_whole_of_it(self, ask):
        assert ask(EVEN, "--replicas", "3", objects=[web()]) == (0, PAGE, "")

    @pytest.mark.parametrize(
        ("state", "replicas", "constraints", "lines"),
        [
            pytest.param(EVEN, 8, [ZONE], ["the controller keeps maxSkew 1 in every order"], id="a pod less"),
            pytest.param(
                EVEN,
                0,
                [ZONE],
                [
                    "range   skew 3  at most, with 6 pods, if the scale-in can stop anywhere",
                    "the worst case leaves no pod in a, b and c",
                    "the controller keeps maxSkew 1 in every order at the end, but may exceed it",
                ],
                id="all pods",
            ),
            pytest.param(
                "a: a0=4 | b: b0=1 b1=1 b2=1",
                3,
                [ZONE],
                [
                    "the worst case leaves no pod in a",
                    "the controller exceeds maxSkew 1 in every order",
                    "2 new pods repair",
                ],
                id="pods that share a node go first",
            ),
            pytest.param(
                "a: a0=5 | b: b0=1",
                5,
                [ZONE],
                [
                    "the controller exceeds maxSkew 1 in every order",
                    "scaling out by 1 pod does not repair the worst case, which",
                ],
                id="uneven before",
            ),
            pytest.param(
                EVEN,
                3,
                [f"{ZONE} minDomains:4"],
                ["the worst case leaves", "new pods do not repair the worst case, because the global minimum stays"],
                id="fewer zones than minDomains",
            ),
            pytest.param("a0=3", 1, [ZONE], ["the controller keeps maxSkew 1 in every order"], id="no zone"),
        ],
    )
    def test_consequences(self, ask, state, replicas, constraints, lines):
        _, out, _ = ask(state, "--replicas", str(replicas), objects=[web(*constraints)])
        found = out.replace("\n    ", " ").split("\n")
        after = [line.strip() for line in found if line.startswith("  ")]
        for line in lines:
            assert any(each.startswith(line) for each in after), out

    def test_many_domains_have_their_extremes(self, ask):
        state = " | ".join(f"z{number}: n{number}={1 + (number < 2)}" for number in range(8))
        _, out, _ = ask(state, "--replicas", "9", objects=[web()])
        assert "today   skew 1  1 to 2 pods in 8 domains\n" in out
        _, out, _ = ask(state, "--replicas", "4", objects=[web()])
        assert "worst   skew 1  0 to 1 pods in 8 domains, 4 of them empty\n" in out

    def test_no_domain(self, ask):
        _, out, _ = ask("a0=3", "--replicas", "1", objects=[web()])
        assert "worst   no eligible domain\n" in out

    def test_no_constraint(self, ask):
        _, out, _ = ask("a0=3", "--replicas", "1", objects=[job()], words=("job/web", "-n", "shop"))
        assert "scale-in of Job shop/web from 3 to 1 pod\n  its pods have no spread constraints\n" in out


class TestJson:
    @pytest.mark.parametrize(
        ("words", "stdin"),
        [
            pytest.param(("deploy/web", "-n", "shop"), b"", id="a name"),
            pytest.param(("-",), json.dumps(web()).encode(), id="a manifest"),
        ],
    )
    def test_the_promised_shape(self, answer, words, stdin):
        found, _ = answer(EVEN, "--replicas", "3", objects=[web()], words=words, stdin=stdin)
        assert found == {
            "bestSkew": 0,
            "worstSkew": 3,
            "constraints": [
                {
                    "workload": "Deployment shop/web",
                    "topologyKey": "topology.kubernetes.io/zone",
                    "index": 0,
                    "whenUnsatisfiable": "DoNotSchedule",
                    "maxSkew": 1,
                    "today": {"a": 3, "b": 3, "c": 3},
                    "best": {"a": 1, "b": 1, "c": 1},
                    "likely": {"a": 1, "b": 1, "c": 1},
                    "worst": {"a": 3, "b": 0, "c": 0},
                    "bestSkew": 0,
                    "likelySkew": 0,
                    "worstSkew": 3,
                    "emptied": ["b", "c"],
                    "repair": 4,
                    "worstStop": {"replicas": 6, "skew": 3},
                }
            ],
            "workloads": {"Deployment shop/web": {"pods": 9, "replicas": 3}},
        }

    def test_the_manifests_own_replicas(self, answer):
        found, _ = answer(EVEN, words=("-",), stdin=json.dumps(web(replicas=8)).encode())
        assert found["workloads"] == {"Deployment shop/web": {"pods": 9, "replicas": 8}}

    @pytest.mark.parametrize("replicas", ["9", "12"])
    def test_no_scale_in(self, answer, replicas):
        assert answer("a: a0=3 | b: b0=3 | c: c0=3", "--replicas", replicas, objects=[web()])[0] is None

    def test_a_rollout_is_no_scale_in(self, answer):
        assert answer(EVEN, "--replicas", "3", "--rollout", objects=[web()])[0] is None

    def test_the_largest_skew_over_the_constraints(self, answer):
        two = web(ZONE, "hostname soft 1 app=web")
        found, _ = answer("a: a0=1 a1=1 | b: b0=1 b1=1", "--replicas", "2", objects=[two])
        assert [each["worstSkew"] for each in found["constraints"]] == [2, 1]
        assert (found["bestSkew"], found["worstSkew"]) == (1, 2)

    def test_default_constraints_of_the_scheduler(self, answer):
        unspread = workload("ReplicaSet", "app=web", meta={"name": "web", "namespace": "shop"}, replicas=9)
        found, _ = answer(EVEN, "--replicas", "3", objects=[unspread], words=("rs/web", "-n", "shop"))
        assert [(each["topologyKey"], each["index"], each["worstSkew"]) for each in found["constraints"]] == [
            ("kubernetes.io/hostname", None, 3),
            ("topology.kubernetes.io/zone", None, 3),
        ]

    def test_many_domains_leave_out_the_empty_ones(self, answer):
        state = " | ".join(f"z{number}: n{number}={int(number < 2)}" for number in range(101))
        found, _ = answer(state, "--replicas", "1", objects=[web()])
        assert (worst(found), found["worstSkew"]) == ({"z0": 1}, 1)

    def test_no_constraint(self, answer):
        found, _ = answer("a0=3", "--replicas", "1", objects=[job()], words=("job/web", "-n", "shop"))
        assert (found["bestSkew"], found["worstSkew"], found["constraints"]) == (None, None, [])


class TestTheOrder:
    """Each controller removes pods in its own order."""

    @pytest.mark.parametrize(
        ("kind", "pods", "expected"),
        [
            pytest.param("Deployment", [("p", "a0"), ("q", "a0"), ("r", "b0")], {"a": 0, "b": 1}, id="a Deployment"),
            pytest.param(
                "ReplicaSet", [("p", "a0"), ("q", "a0"), ("r", "b0")], {"a": 1, "b": 0}, id="a bare ReplicaSet"
            ),
            pytest.param(
                "StatefulSet", [("web-0", "b0"), ("web-1", "a0"), ("web-2", "a0")], {"a": 0, "b": 1}, id="ordinals"
            ),
            pytest.param("Job", [("p", "a0"), ("q", "a0"), ("r", "b0")], {"a": 1, "b": 0}, id="a Job"),
        ],
    )
    def test_of_the_kind(self, answer, kind, pods, expected):
        objects = [job(ZONE) if kind == "Job" else web(kind=kind), *(pod(name, on) for name, on in pods)]
        found, _ = answer("a: a0 | b: b0", "--replicas", "1", objects=objects, words=(f"{kind}/web", "-n", "shop"))
        assert worst(found) == expected

    @pytest.mark.parametrize(
        ("kind", "expected"),
        [
            pytest.param("Deployment", {"replicas": 3, "skew": 3}, id="any pods of a Deployment"),
            pytest.param("StatefulSet", {"replicas": 5, "skew": 1}, id="the highest ordinals"),
            pytest.param("Job", {"replicas": 3, "skew": 3}, id="any pods of a Job"),
        ],
    )
    def test_the_worst_stop_of_the_kind(self, answer, kind, expected):
        pods = [pod(f"web-{number}", on) for number, on in enumerate(("a0", "b0", "a1", "b1", "a2", "b2"))]
        objects = [job(ZONE) if kind == "Job" else web(kind=kind), *pods]
        nodes = "a: a0 a1 a2 | b: b0 b1 b2"
        found, _ = answer(nodes, "--replicas", "0", objects=objects, words=(f"{kind}/web", "-n", "shop"))
        assert [each["worstStop"] for each in found["constraints"]] == [expected]

    @pytest.mark.parametrize(("kind", "guardable"), [("Deployment", True), ("ReplicaSet", True), ("Job", False)])
    def test_the_guard_is_for_pods_of_replica_sets(self, ask, kind, guardable):
        objects = [job(ZONE) if kind == "Job" else web(kind=kind)]
        pods = [pod(name, on) for name, on in (("p", "a0"), ("q", "a1"), ("r", "b0"), ("s", "b1"))]
        _, out, _ = ask(
            "a: a0 a1 | b: b0 b1", "--replicas", "2", objects=[*objects, *pods], words=(f"{kind}/web", "-n", "shop")
        )
        assert "worst   skew 2  a 2, b 0\n" in out
        assert ("if another order keeps maxSkew, evenspread can choose it" in out) is guardable

    def test_a_bare_replica_set_beside_one_with_an_owner(self, answer):
        """Only an owner's pods on the same node count."""
        pods = [pod("p", "a0"), pod("q", "a0"), pod("r", "b0")]
        owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x", "controller": True}
        above = web(kind="ReplicaSet")
        above["metadata"]["ownerReferences"] = [owner]
        found, _ = answer("a: a0 | b: b0", "--replicas", "1", objects=[above, *pods], words=("rs/web", "-n", "shop"))
        assert worst(found) == {"a": 0, "b": 1}

    def test_a_stateful_set_keeps_its_first_ordinals(self, answer):
        pods = [pod(f"web-{number}", on) for number, on in ((0, "a0"), (2, "b0"), (3, "a0"))]
        found, _ = answer(
            "a: a0 | b: b0",
            "--replicas",
            "2",
            objects=[web(kind="StatefulSet"), *pods],
            words=("sts/web", "-n", "shop"),
        )
        assert worst(found) == {"a": 1, "b": 0}
        assert found["workloads"] == {"StatefulSet shop/web": {"pods": 3, "replicas": 1}}

    def test_deletion_costs_choose(self, answer):
        pods = [pod("p", "a0"), pod("q", "b0"), pod("r", "a1", **{COST: "-1"}), pod("s", "b1", **{COST: "-1"})]
        found, _ = answer("a: a0 a1 | b: b0 b1", "--replicas", "2", objects=[web(), *pods])
        assert (found["worstSkew"], worst(found)) == (0, {"a": 1, "b": 1})

    @pytest.mark.parametrize(
        ("created", "taken_at", "skew"),
        [
            pytest.param(("09:00:00", "09:59:59"), "10:00:00Z", 2, id="the youngest go first"),
            pytest.param(("09:59:58", "09:59:59"), "10:00:00.1Z", 0, id="ages of 1.1 and 2.1 s are alike"),
            pytest.param(("09:00:00", "09:59:59"), "10:00:00", 2, id="a time without zone is UTC"),
            pytest.param(("09:00:00", "09:59:59"), "noon", 0, id="an unknown time"),
        ],
    )
    @pytest.mark.usefixtures("east")
    def test_ages_choose(self, answer, created, taken_at, skew):
        pods = [pod(f"{zone}{number}", f"{zone}{number}") for zone in "ab" for number in (0, 1)]
        for each in pods:
            each["metadata"]["creationTimestamp"] = f"2026-11-20T{created[each['metadata']['name'] > 'b']}Z"
        nodes, taken_at = "a: a0 a1 | b: b0 b1", f"2026-11-20T{taken_at}"
        found, _ = answer(nodes, "--replicas", "2", objects=[web(), *pods], taken_at=taken_at)
        assert found["bestSkew"] == skew

    def test_pending_pods_go_first(self, answer):
        found, _ = answer("a: a0=1 | b: b0=1", "--replicas", "2", objects=[web(), waiting("p")])
        assert found["workloads"] == {"Deployment shop/web": {"pods": 3, "replicas": 2}}
        assert worst(found) == {"a": 1, "b": 1}

    def test_terminating_pods_are_gone(self, answer):
        gone = pod("p", "a0")
        gone["metadata"]["deletionTimestamp"] = "2026-11-01T00:00:00Z"
        found, _ = answer("a: a0=1 | b: b0=1", "--replicas", "1", objects=[web(), gone])
        assert found["workloads"] == {"Deployment shop/web": {"pods": 2, "replicas": 1}}

    def test_pods_of_a_drained_node_are_gone(self, answer):
        found, _ = answer("a: a0=2 | b: b0=2", "--replicas", "1", "--drain", "b0", objects=[web()])
        assert found["workloads"] == {"Deployment shop/web": {"pods": 2, "replicas": 1}}
        assert worst(found) == {"a": 1, "b": 0}

    def test_unreadable_pods_and_pods_of_other_namespaces_are_skipped(self, answer):
        broken, other = pod("p", "a0"), pod("q", "a0")
        broken["status"]["containerStatuses"] = [{"name": "c", "restartCount": "x"}]
        other["metadata"]["namespace"] = "else"
        found, _ = answer("a: a0=1 | b: b0=1", "--replicas", "1", objects=[web(), broken, other])
        assert found["workloads"] == {"Deployment shop/web": {"pods": 2, "replicas": 1}}

    def test_ages_decide_nothing_in_a_file_without_a_time(self, answer):
        """Its pods may all have been created a second before."""
        ages = (("old-1", "a0", "2000-01-01T00:00:00Z"), ("old-2", "a1", "2000-01-01T00:00:00Z"))
        ages += (("young", "b0", "2026-11-01T00:00:00Z"),)
        pods = [pod(name, on) for name, on, _ in ages]
        for made, (_, _, since) in zip(pods, ages, strict=True):
            made["metadata"]["creationTimestamp"] = since
        found, _ = answer("a: a0 a1 | b: b0", "--replicas", "2", objects=[web(replicas=3), *pods])
        (only,) = found["constraints"]
        assert (only["best"], only["worst"]) == ({"a": 1, "b": 1}, {"a": 2, "b": 0})


class TestUnknownPods:
    """A note instead of a forecast."""

    @pytest.mark.parametrize(
        ("hashes", "wanted"),
        [
            pytest.param(("1", "2"), {}, id="pods of two revisions"),
            pytest.param(("1", "1"), {"web-1": 2, "web-2": 1}, id="the new ReplicaSet has no pod yet"),
        ],
    )
    def test_a_rollout_in_progress(self, answer, hashes, wanted):
        pods = [pod(on, on, labels=f"pod-template-hash={each}") for on, each in zip(("a0", "b0"), hashes, strict=True)]
        sets = [owned("ReplicaSet", name, "Deployment/web", replicas=number) for name, number in wanted.items()]
        found, notes = answer("a: a0 | b: b0", "--replicas", "1", objects=[web(), *pods, *sets])
        assert (found, notes) == (None, [f"Deployment shop/web: {NOTE}a rollout is in progress"])

    @pytest.mark.parametrize(
        ("hashes", "wanted"),
        [
            pytest.param(("1", "1"), {}, id="one revision"),
            pytest.param(("1", "1"), {"web-1": 2, "web-0": 0}, id="an old ReplicaSet"),
        ],
    )
    def test_no_rollout(self, answer, hashes, wanted):
        """The pod without a revision belongs to no ReplicaSet."""
        pods = [pod(on, on, labels=f"pod-template-hash={each}") for on, each in zip(("a0", "b0"), hashes, strict=True)]
        sets = [owned("ReplicaSet", name, "Deployment/web", replicas=number) for name, number in wanted.items()]
        found, notes = answer("a: a0 | b: b0=1", "--replicas", "1", objects=[web(), *pods, *sets])
        assert found["workloads"] == {"Deployment shop/web": {"pods": 2, "replicas": 1}}
        assert (found["constraints"][0]["today"], found["worstSkew"], notes) == ({"a": 1, "b": 2}, 2, [])

    def test_another_controller(self, answer):
        clones = {**web(), "apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet"}
        found, notes = answer(EVEN, "--replicas", "1", objects=[clones], words=("cloneset/web", "-n", "shop"))
        assert (found, notes) == (None, [f"CloneSet shop/web: {NOTE}its controller's choice of pods is unknown"])

    def test_no_selector(self, answer):
        job = workload("Job", "app=web", ZONE, meta={"name": "web", "namespace": "shop"}, spec={"parallelism": 2})
        found, notes = answer(EVEN, "--replicas", "1", words=("-",), stdin=json.dumps(job).encode())
        assert found is None
        assert f"Job shop/web: {NOTE}its pods are unknown" in notes


class TestScaleInToTheMinimum:
    @pytest.mark.parametrize(("least", "replicas"), [(3, 3), (None, 1), (0, 0)])
    def test_the_minimum(self, answer, least, replicas):
        found, _ = answer(EVEN, "--scale-in", objects=[web(), autoscaler(least)])
        assert found["workloads"] == {"Deployment shop/web": {"pods": 9, "replicas": replicas}}

    def test_a_deployment_that_leaves_its_replicas_to_the_autoscaler(self, answer):
        unscaled = workload("Deployment", "app=web", ZONE, meta={"name": "web", "namespace": "shop"})
        del unscaled["spec"]["replicas"]
        found, _ = answer(EVEN, "--scale-in", objects=[unscaled, autoscaler(3)])
        assert found["worstSkew"] == 3

    @pytest.mark.parametrize(
        ("objects", "message"),
        [
            pytest.param([web()], "no autoscaler scales it, so --scale-in has no minimum; use --replicas N", id="none"),
            pytest.param(
                [web(), autoscaler(3, "Deployment/api")],
                "no autoscaler scales it, so --scale-in has no minimum; use --replicas N",
                id="of another workload",
            ),
            pytest.param([web(), autoscaler(9)], "its autoscaler's minimum 9 is not below its 9 pods", id="not below"),
        ],
    )
    def test_no_minimum(self, ask, objects, message):
        assert ask(EVEN, "--scale-in", objects=objects) == (2, "", f"evenspread: Deployment shop/web: {message}\n")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--scale-in", "--all"], "--scale-in needs FILE or KIND/NAME"),
            (["--scale-in", "deploy/web", "--replicas", "3"], "use only one of --scale-in, --replicas and --rollout"),
            (["--scale-in", "deploy/web", "--rollout"], "use only one of --scale-in, --replicas and --rollout"),
        ],
    )
    def test_usage(self, ask, arguments, message):
        code, _, err = ask(EVEN, *arguments, words=())
        assert (code, err.splitlines()[-1]) == (2, f"Error: {message}")


@pytest.mark.parametrize("arguments", [["-n", "shop"], []], ids=["a namespace", "the context's namespace"])
def test_a_live_cluster(run, tmp_path, arguments):
    with FakeApi() as api:
        for made in (node("a0", "a"), node("b0", "b")):
            api.put(
                "nodes",
                made["metadata"]["name"],
                metadata={"labels": made["metadata"]["labels"]},
                status=made["status"],
            )
        api.put("deployments", "web", "shop", spec=web()["spec"])
        for name, on in (("p", "a0"), ("q", "b0")):
            api.put("pods", name, "shop", metadata={"labels": {"app": "web"}}, spec={"nodeName": on})
        file = api.kubeconfig(tmp_path, namespace="shop")
        code, out, _ = run("simulate", "--kubeconfig", file, "deploy/web", "--replicas", "1", *arguments, "-o", "json")
    assert (code, json.loads(out)["scaleIn"]["worstSkew"]) == (0, 1)
