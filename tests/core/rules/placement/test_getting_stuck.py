"""Whole workloads: `replicas-do-not-fit`, `replicas-can-get-stuck` and `rollout-can-get-stuck`, beside silent twins."""

import json

import pytest
from build import NAMESPACE, ROOMY, autoscaler, cluster, running, terminating
from core.rules.placement.places import HOST, ZONE, with_node
from manifest import FIXED, GROWING, decide, examined, request, said, template, told, web
from msgspec import convert
from msgspec.structs import replace

from webhook.core.api.admission_objects import PriorityClass
from webhook.core.api.storage import Claim, CsiNode, PersistentVolume, StorageClass
from webhook.core.api.types import Container, ContainerPort, NodeSpec, ResourceRequirements, TypeMeta
from webhook.core.api.version import RECORDED
from webhook.core.api.well_known import ZONE as ZONE_KEY
from webhook.core.budget import Budget, Missing
from webhook.core.context import Context
from webhook.core.index.lost_nodes import UNREACHABLE
from webhook.core.index.readers import decode_object
from webhook.core.policy.policy import Messages
from webhook.core.review.review import review

DO_NOT_FIT, STUCK, ROLLOUT = "replicas-do-not-fit", "replicas-can-get-stuck", "rollout-can-get-stuck"
FULL = replace(FIXED, messages=Messages(detail="full"))
HONOR = " nodeTaintsPolicy:Honor"
CORDONED = "a: a0 | b: b0 | c: c0"
PORTS = {"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]}


def cordoned(text=CORDONED, name="c0"):
    return with_node(cluster(text), name, cordoned=True)


def asking(cpu):
    return {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}


def strategy(surge, unavailable):
    return {"spec": {"strategy": {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}}}


def pinned(zone="a", nodes="a: a0 | b: b0"):
    """Nodes, and a volume of web-0 in one of the zones."""
    index = cluster(nodes)
    meta = {"name": "data-web-0", "namespace": NAMESPACE, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    late = {"provisioner": "disks", "volumeBindingMode": "WaitForFirstConsumer"}
    index.apply("ADDED", convert({"metadata": meta, "spec": {"volumeName": "pv"}}, Claim))
    index.apply("ADDED", convert({"metadata": {"name": "pv", "labels": {ZONE_KEY: zone}}}, PersistentVolume))
    index.apply("ADDED", convert({"metadata": {"name": "late"}, **late}, StorageClass))
    return index


CLAIMS = {
    "podManagementPolicy": "Parallel",
    "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"storageClassName": "late"}}],
}

DISK = {"driver": "disks", "volumeHandle": "h"}
STATEFUL = {"kind": "StatefulSet", "replicas": 2, "spec": CLAIMS}


class TestReplicasThatDoNotFit:
    @pytest.mark.parametrize(
        ("index", "manifest", "expected"),
        [
            pytest.param(
                cordoned(),
                web(ZONE, replicas=7),
                ["warn 2 of 7 fit: cordoned zone c stays at 0; zone ScheduleAnyway fits 7"],
                id="a cordoned zone",
            ),
            pytest.param(cluster(CORDONED), web(ZONE, replicas=7), [], id="the same with the zone open"),
            pytest.param(cordoned(), web(ZONE, replicas=2), [], id="as many as fit"),
            pytest.param(
                cluster("a: a0 | b: b0"),
                web(f"{ZONE} minDomains:3", HOST, replicas=3),
                ["warn 2 of 3 fit: zone[0] has fewer zones than minDomains 3; zone minDomains: 2 fits 3"],
                id="too few domains",
            ),
            pytest.param(
                cluster("a: a0 | b0", labelled="disk=ssd"),
                web(
                    f"{ZONE} nodeAffinityPolicy:Honor", HOST, replicas=3, nodeSelector={"kubernetes.io/hostname": "b0"}
                ),
                [
                    (
                        "warn 0 of 3 fit: zone[0] has no eligible zone, because no eligible node has its topologyKey;"
                        " zone ScheduleAnyway fits 3"
                    )
                ],
                id="no domain, and no minDomains",
            ),
            pytest.param(
                cluster(CORDONED),
                web(ZONE, replicas=7, **asking("40")),
                ["audit 3 of 7 fit: no node admits another of these pods"],
                id="no room",
            ),
            pytest.param(
                cordoned(),
                web(ZONE, replicas=7, **asking("40")),
                ["audit 2 of 7 fit: cordoned zone c stays at 0"],
                id="no room, and a cordoned zone",
            ),
        ],
    )
    def test_are_told(self, index, manifest, expected):
        assert told(DO_NOT_FIT, manifest, index, FIXED) == expected

    def test_are_explained(self):
        [judged] = [
            each
            for each in examined(web(ZONE, replicas=7), FIXED, index=cordoned()).findings
            if each.finding.rule == DO_NOT_FIT
        ]
        assert judged.finding.detail == "2 of 7 fit (cause: spread): cordoned zone c stays at 0"
        assert judged.finding.path.endswith("[0].whenUnsatisfiable")

    def test_where_another_rule_warns_it_has_no_word(self):
        index = cluster("a: a0 | b: b0 | c: ~c0")
        assert told("tainted-nodes-counted", web(ZONE, replicas=7), index, FIXED)
        assert told(DO_NOT_FIT, web(ZONE, replicas=7), index, FIXED) == []

    def test_of_the_autoscaler_are_a_note(self):
        index = cordoned()
        index.apply("ADDED", autoscaler("Deployment/web", 9))
        assert told(DO_NOT_FIT, web(ZONE, replicas=2), index, FIXED) == [
            "audit 2 of 9 fit (the autoscaler's maximum): cordoned zone c stays at 0; zone ScheduleAnyway fits 9"
        ]

    def test_that_devices_may_admit_are_a_note(self):
        manifest = web(ZONE, replicas=7, resourceClaims=[{"name": "gpu"}])
        assert told(DO_NOT_FIT, manifest, cordoned(), FIXED)[0].startswith("audit 2 of 7")

    @pytest.mark.parametrize(("priority", "mode"), [(0, "warn"), (1000, "audit")])
    def test_for_which_preemption_may_make_room_are_a_note(self, priority, mode):
        # Zone b has room for one, until pods of another workload are preempted; zone a has room for all.
        index = cluster("a: a0 a1 | b: b0", resources={**ROOMY, "cpu": "4"})
        held = (Container(name="c", resources=ResourceRequirements(requests={"cpu": "3"})),)
        index.apply("ADDED", running("other", "b0", "app=x", containers=held))
        meta = {"name": "high"}
        index.apply("ADDED", convert({"metadata": meta, "value": priority}, PriorityClass))
        manifest = web(ZONE, replicas=4, priorityClassName="high", **asking("1"))
        assert [each.partition(" ")[0] for each in told(DO_NOT_FIT, manifest, index, FIXED)] == [mode]
        [judged] = [each for each in examined(manifest, FIXED, index=index).findings if each.finding.rule == DO_NOT_FIT]
        assert ("; preempting 1 pod makes room" in judged.finding.detail) is (mode == "audit")
        assert told(DO_NOT_FIT, manifest, cordoned(), FIXED)[0].startswith("warn")

    def test_where_capacity_grows_are_a_note(self):
        assert told(DO_NOT_FIT, web(ZONE, replicas=7), cordoned(), GROWING)[0].startswith("audit ")

    @pytest.mark.parametrize(
        "more",
        [
            {"schedulingGates": [{"name": "example.com/wait"}]},
            {
                "meta": {
                    "ownerReferences": [
                        {"apiVersion": "v1", "kind": "Thing", "name": "x", "uid": "u", "controller": True}
                    ]
                }
            },
        ],
        ids=["scheduling gates", "a controller"],
    )
    def test_that_nobody_tries_are_not_told(self, more):
        assert said(DO_NOT_FIT, web(ZONE, replicas=7, **more), index=cordoned()) == []

    def test_ordinals_that_run_keep_their_names(self):
        index = cordoned("a: a0 | b: b0 | c: c0")
        index.apply("ADDED", running("web-0", "a0"))
        assert told(DO_NOT_FIT, web(ZONE, kind="StatefulSet", replicas=7), index, FIXED) == [
            "warn 2 of 7 fit: cordoned zone c stays at 0; zone ScheduleAnyway fits 7"
        ]

    @pytest.mark.parametrize(
        ("pod", "unreachable", "count"),
        [
            pytest.param(running, False, "1 of 2", id="runs"),
            pytest.param(terminating, False, "0 of 2", id="terminates"),
            pytest.param(terminating, True, "1 of 2", id="terminates for ever"),
        ],
    )
    @pytest.mark.parametrize("spec", [{}, CLAIMS], ids=["in turn", "with volumes, at once"])
    def test_an_ordinal_that_terminates_looks_for_a_place_again(self, pod, unreachable, count, spec):
        index = pinned(nodes="a: a0 | b: b0")
        index.apply("ADDED", pod("web-0", "a0"))
        if unreachable:
            index.apply("MODIFIED", replace(index.nodes.get("a0"), spec=NodeSpec(taints=UNREACHABLE)))
        absent = web("example.com/absent hard 1 app=web", kind="StatefulSet", replicas=2, spec=spec)
        [line] = told(DO_NOT_FIT, absent, index, FIXED)
        assert line.split(" fit")[0].split(" ", 1)[1] == count

    def test_two_constraints_can_hold_each_other(self):
        manifest = web(ZONE + HONOR, "hostname hard 2 app=web" + HONOR, replicas=6, **asking("30"))
        assert told(DO_NOT_FIT, manifest, cluster("a: a0=3 | b: b0"), FIXED) == [
            "warn 5 of 6 fit: no node accepts another pod under zone and hostname"
        ]

    def test_ordinals_that_all_run_need_no_place(self):
        index = cluster("a: a0")
        index.apply("ADDED", running("web-0", "a0"))
        index.apply("ADDED", running("web-1", "a0"))
        assert said(DO_NOT_FIT, web(HOST, **STATEFUL), index=index) == []

    def test_with_more_in_the_way_than_spread(self):
        manifest = web(ZONE, replicas=3, **asking("60"), nodeSelector={"disk": "ssd"})
        [line] = told(DO_NOT_FIT, manifest, cluster("a: a0 | b: b0", labelled="disk=ssd"), FIXED)
        assert line == "audit 2 of 3 fit: no node admits another of these pods"

    @pytest.mark.parametrize("taken", [True, False])
    def test_a_taken_host_port_is_no_fault_of_the_constraint(self, taken):
        index = cluster("a: a0 | b: b0")
        ports = (Container(name="c", ports=(ContainerPort(container_port=80, host_port=80),)),)
        for name in ("a0", "b0") if taken else ():
            index.apply("ADDED", running(f"proxy-{name}", name, "app=proxy", containers=ports))
        manifest = web(ZONE, replicas=2 if taken else 3, **PORTS)
        [line] = told(DO_NOT_FIT, manifest, index, FIXED)
        assert line == f"audit {'0 of 2' if taken else '2 of 3'} fit: no node admits another of these pods"

    def test_an_attach_limit_is_no_fault_of_the_constraint(self):
        index = cluster("a: a0 | b: b0")
        late = {"provisioner": "disks", "volumeBindingMode": "WaitForFirstConsumer"}
        index.apply("ADDED", convert({"metadata": {"name": "late"}, **late}, StorageClass))
        for name in ("a0", "b0"):
            driver = {"name": "disks", "allocatable": {"count": 1}}
            index.apply("ADDED", convert({"metadata": {"name": name}, "spec": {"drivers": [driver]}}, CsiNode))
        [line] = told(DO_NOT_FIT, web(ZONE, **(STATEFUL | {"replicas": 3})), index, FIXED)
        assert line == "audit 2 of 3 fit: no node admits another of these pods"

    @pytest.mark.parametrize(
        ("most", "expected"), [(1, ["audit 2 of 3 fit: no node admits another of these pods"]), (2, [])]
    )
    def test_an_attach_limit_counts_pinned_pods_with_the_others(self, most, expected):
        index = pinned()
        volume = {"metadata": {"name": "pv", "labels": {ZONE_KEY: "a"}}, "spec": {"csi": DISK}}
        index.apply("MODIFIED", convert(volume, PersistentVolume))
        for name in ("a0", "b0"):
            driver = {"name": "disks", "allocatable": {"count": most}}
            index.apply("ADDED", convert({"metadata": {"name": name}, "spec": {"drivers": [driver]}}, CsiNode))
        assert told(DO_NOT_FIT, web(ZONE, **(STATEFUL | {"replicas": 3})), index, FIXED) == expected

    def test_the_rest_stays_beside_those_that_run(self):
        index = cordoned("a: a0=1 | b: b0=1 | c: c0")
        assert told(DO_NOT_FIT, web(ZONE, replicas=7), index, FIXED) == [
            "warn 2 of 7 fit: cordoned zone c stays at 0; zone ScheduleAnyway fits 7"
        ]

    @pytest.mark.parametrize(
        ("manifest", "index", "missing"),
        [
            pytest.param(web(ZONE, kind="Thing", selector=""), cordoned(), [], id="no kind that we know"),
            pytest.param(
                web(ZONE, selector=""),
                cordoned(),
                ["whether all replicas fit is unknown: its own pods (the kind has no selector)"],
                id="no selector",
            ),
            pytest.param(
                web(ZONE, kind="StatefulSet", spec=CLAIMS),
                cordoned(),
                ["whether all replicas fit is unknown: the nodes of the pods' future volumes"],
                id="volumes",
            ),
        ],
    )
    def test_what_is_not_known_is_said(self, manifest, index, missing):
        assert said(DO_NOT_FIT, manifest, index=index) == [f"not evaluated: {each}" for each in missing]


class TestReplicasThatCanGetStuck:
    def test_are_told(self):
        # The volume of web-0 is in zone a: if web-1 takes a0 first, web-0 has no node.
        found = told(STUCK, web(HOST, **STATEFUL), pinned(), FIXED)
        assert found == ["warn some orders place 1 of 2; maxSkew: 2 always places 2"]

    def test_are_explained_with_names_of_nodes_where_these_may_be_told(self):
        for policy, order in (
            (FULL, "one such order places pods on a0"),
            (FIXED, "one such order gets stuck after 1 step"),
        ):
            findings = examined(web(HOST, **STATEFUL), policy, index=pinned()).findings
            [judged] = [each for each in findings if each.finding.rule == STUCK]
            assert judged.finding.detail == (
                f"some orders place 1 of 2 (cause: spread); 25.0% of random orders leave pods Pending; {order}"
            )

    @pytest.mark.parametrize(
        "index", [pinned("a", "a: a0 | b: ~b0"), cluster("a: a0 | b: b0")], ids=["they never fit", "no volume"]
    )
    def test_silent_where_no_order_decides(self, index):
        assert told(STUCK, web(HOST, **STATEFUL), index, FIXED) == []

    def test_one_after_the_other_they_all_fit(self):
        spec = {**CLAIMS, "podManagementPolicy": "OrderedReady"}
        assert told(STUCK, web(HOST, kind="StatefulSet", replicas=2, spec=spec), pinned(), FIXED) == []

    def test_rarely_they_are_a_note(self):
        often = replace(FIXED, stuck_threshold=0.9)
        assert told(STUCK, web(HOST, **STATEFUL), pinned(), often)[0].startswith("audit ")


def job(**more):
    return web(ZONE, kind="Job", replicas=7, **more)


def training(*constraints, pod_labels="app=web"):
    """Seven pods of a kind whose objects have no selector."""
    spec = {"pytorchReplicaSpecs": {"Worker": {"replicas": 7, "template": template(pod_labels, *constraints)}}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "web", "namespace": NAMESPACE},
        "spec": spec,
    }


class TestPodsThatComplete:
    TOO_MANY = "warn 2 of 7 fit: cordoned zone c stays at 0; zone ScheduleAnyway fits 7"
    OF_THE_JOB = "app=web batch.kubernetes.io/job-name=web"

    @pytest.mark.parametrize(
        ("manifest", "expected"),
        [
            pytest.param(job(), [TOO_MANY], id="a work queue"),
            pytest.param(job(spec={"completions": 9}), [TOO_MANY], id="more completions than pods at once"),
            pytest.param(job(spec={"completions": 2}), [], id="no more pods at once than completions"),
            pytest.param({**job(spec={"completions": 9}), "status": {"succeeded": 7}}, [], id="few are left"),
            pytest.param({**job(), "status": {"succeeded": 1}}, [], id="a work queue that is done"),
            pytest.param(
                {**job(), "status": {"conditions": [{"type": "Failed", "status": "True"}]}}, [], id="it has failed"
            ),
            pytest.param(job(spec={"suspend": True}), [], id="suspended"),
            pytest.param(
                {
                    **job(),
                    "kind": "CronJob",
                    "spec": {"jobTemplate": {"spec": {"parallelism": 7, "template": template("app=web", ZONE)}}},
                },
                [],
                id="some day",
            ),
        ],
    )
    def test_are_told_of_at_once(self, manifest, expected):
        assert told(DO_NOT_FIT, manifest, cordoned(), FIXED) == expected

    def test_that_run_keep_their_places(self):
        index = cordoned()
        for node in ("a0", "b0"):
            index.apply("ADDED", running(f"web-{node}", node, self.OF_THE_JOB))
        found = told(DO_NOT_FIT, web(ZONE, kind="Job", replicas=3), index, FIXED)
        assert found == ["warn 2 of 3 fit: cordoned zone c stays at 0; maxSkew: 2 fits 3"]
        assert told(DO_NOT_FIT, web(ZONE, kind="Job", replicas=2), index, FIXED) == []

    def test_are_stuck_for_a_while_only(self):
        manifest = web(ZONE, "hostname hard 2 app=web", kind="Job", replicas=10)
        [line] = told(STUCK, manifest, cluster(TestASearchForWhichOthersWouldWait.NODES), FIXED)
        assert line.startswith("audit some orders place 7 of 10")

    def test_are_told_of_when_a_job_is_resumed(self):
        decision = decide(job(), job(spec={"suspend": True}), FIXED, index=cordoned())
        assert any(DO_NOT_FIT in line for line in decision.warnings)


class TestPodsOfKindsWithoutASelector:
    def test_are_told_of_before_the_first_runs(self):
        assert told(DO_NOT_FIT, training(ZONE), cordoned(), FIXED) == [TestPodsThatComplete.TOO_MANY]

    @pytest.mark.parametrize(
        ("manifest", "index", "missing"),
        [
            pytest.param(
                training(ZONE),
                cordoned("a: a0=1 | b: b0 | c: c0"),
                "its own pods (the kind has no selector)",
                id="pods have the labels",
            ),
            pytest.param(
                training("zone hard 1 job=web", pod_labels=""),
                cordoned(),
                "its own pods (the kind has no selector)",
                id="there are no labels",
            ),
            pytest.param(
                training("zone hard 1 training.kubeflow.org/job-name=web"),
                cordoned(),
                "the constraints select labels that the controller adds later",
                id="its controller's labels are counted",
            ),
        ],
    )
    def test_what_is_not_known_is_said(self, manifest, index, missing):
        assert said(DO_NOT_FIT, manifest, index=index) == [
            f"not evaluated: whether all replicas fit is unknown: {missing}"
        ]


class TestReplicasOfTheRevisionThatRuns:
    """Of a Deployment whose template the cluster has, only the number of replicas is new."""

    MANIFEST = web(f"{ZONE} keys:pod-template-hash", replicas=3)

    def known(self, *objects):
        index = cordoned()
        for node in ("a0", "b0"):
            index.apply("ADDED", running(f"web-{node}", node, "app=web pod-template-hash=h"))
        for each in objects:
            of = TypeMeta(api_version="apps/v1", kind=each["kind"])
            index.apply("ADDED", decode_object(json.dumps(each).encode(), of))
        return index

    def test_are_counted_beside_it(self):
        above = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u", "controller": True}
        revision = {
            "kind": "ReplicaSet",
            "metadata": {"name": "web-h", "namespace": NAMESPACE, "ownerReferences": [above]},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web", "pod-template-hash": "h"}}},
        }
        index = self.known(self.MANIFEST, revision)
        assert told(DO_NOT_FIT, self.MANIFEST, index, FIXED)[0].startswith("warn 2 of 3 fit")
        index.mark_missing("replicasets", "403 Forbidden")
        assert said(DO_NOT_FIT, self.MANIFEST, index=index) == [
            "not evaluated: whether all replicas fit is unknown: replicasets: 403 Forbidden"
        ]

    def test_a_new_revision_is_counted_alone(self):
        assert told(DO_NOT_FIT, self.MANIFEST, self.known(), FIXED) == []


class TestRollouts:
    def test_with_more_orders_than_there_is_time_for_are_not_evaluated(self):
        manifest = web(ZONE, "hostname hard 2 app=web", replicas=9)
        index = cluster("a: a0=2 a1=2 | b: b0=2 b1=2 b2=1")
        missing = {each.rule: each.missing for each in decide(manifest, policy=FIXED, index=index).not_evaluated}
        assert missing[ROLLOUT].startswith(
            "whether a rolling update always ends is unknown: more orders than can be tried ("
        )

    HELD = "a: a0=2 | b: ~b0"

    def test_that_wait_for_ports_of_the_old_pods_are_a_note(self):
        manifest = web(ZONE, replicas=2, **PORTS, **strategy(1, 0))
        ports = (Container(name="c", ports=(ContainerPort(container_port=80, host_port=80),)),)
        index = cluster("a: a0 | b: b0")
        for name in ("a0", "b0"):
            index.apply("ADDED", running(f"web-{name}", name, containers=ports))
        told_of = told(ROLLOUT, manifest, index, FIXED)
        assert told_of == ["audit a rollout places none of 2 new pods"]
        at_once = web(ZONE, replicas=2, **PORTS, **strategy(0, 1))
        assert told(ROLLOUT, at_once, index, FIXED) == []

    def test_that_the_old_pods_hold_up_are_told(self):
        manifest = web(ZONE, replicas=2, **strategy(1, 0))
        [line] = told(ROLLOUT, manifest, cluster(self.HELD), FIXED)
        assert line == ("warn a rollout places none of 2 new pods; nodeTaintsPolicy: Honor always places 2")

    def test_of_which_some_orders_end_early_are_told(self):
        manifest = web("hostname hard 2 app=web", replicas=7, **strategy(2, 1))
        index = cluster("a: ~a0=2 a1 | b: b0=2 b1=1")
        [line] = told(ROLLOUT, manifest, index, FIXED)
        assert line.startswith("warn some orders of a rollout place ")
        assert line.endswith("; nodeTaintsPolicy: Honor always places 7")
        [judged] = [each for each in examined(manifest, FULL, index=index).findings if each.finding.rule == ROLLOUT]
        assert "a0 (pod deleted)" in judged.finding.detail

    def test_for_which_preemption_may_make_room_are_a_note(self):
        index = cluster(self.HELD)
        index.apply("ADDED", convert({"metadata": {"name": "high"}, "value": 1000}, PriorityClass))
        [line] = told(ROLLOUT, web(ZONE, replicas=2, priorityClassName="high", **strategy(1, 0)), index, FIXED)
        assert line.startswith("audit a rollout places none of 2 new pods")

    def test_of_ordinals_are_told(self):
        manifest = web("zone hard 1 app=web", kind="StatefulSet", replicas=2)
        index = cluster("a: ~a0=0 | b: ~b0")
        for number in range(2):
            index.apply("ADDED", running(f"web-{number}", "a0"))
        [line] = told(ROLLOUT, manifest, index, FIXED)
        assert line == "audit a rollout places none of 2 new pods"

    def test_only_if_pods_run(self):
        manifest = web(ZONE, replicas=2, **strategy(1, 0))
        assert said(ROLLOUT, manifest, index=cluster("a: a0 | b: ~b0")) == []

    @pytest.mark.parametrize(
        ("kind", "spec"),
        [
            ("Deployment", {"strategy": {"type": "Recreate"}}),
            ("StatefulSet", {"updateStrategy": {"type": "OnDelete"}}),
            ("ReplicaSet", {}),
        ],
        ids=["all at once", "on delete", "never"],
    )
    def test_only_of_kinds_that_replace_pods_step_by_step(self, kind, spec):
        assert said(ROLLOUT, web(ZONE, kind=kind, replicas=2, spec=spec), index=cluster(self.HELD)) == []


class TestASearchForWhichOthersWouldWait:
    """Zones of 1, 3 and 1 nodes: the order decides, and no closed form says so."""

    MANIFEST = web(ZONE, "hostname hard 2 app=web", replicas=10)
    NODES = "a: n1 | b: n2 n3 n4 | c: n5"

    def judged(self, manifest=MANIFEST, **more):
        here = Context(policy=FIXED, version=RECORDED, index=cluster(self.NODES), budget=Budget(**more))
        return review(request(manifest), here)

    def test_is_done_elsewhere(self):
        assert self.judged(may_search=False).costly
        assert any(STUCK in line for line in self.judged().warnings)

    def test_is_left_out_where_nobody_else_has_time(self):
        decision = self.judged(unjudged=Missing.BUSY)
        assert (decision.costly, decision.warnings) == (False, ())
        missing = {each.rule: each.missing for each in decision.not_evaluated}
        assert missing[STUCK] == (
            "whether every order places all replicas is unknown: a search through all orders would delay other requests"
        )

    @pytest.mark.parametrize(("nodes", "costly"), [(200, False), (201, True)])
    def test_is_begun_elsewhere_where_many_nodes_have_pods_of_their_own(self, nodes, costly):
        """A closed form answers here, once the game is made: which takes too long already."""
        index = cluster("a: " + " ".join(f"n{number}=1" for number in range(nodes)))
        here = Context(policy=FIXED, version=RECORDED, index=index, budget=Budget(may_search=False))
        manifest = web("hostname hard 1 app=web", replicas=nodes, **strategy(1, 0))
        assert review(request(manifest), here).costly is costly

    def test_is_not_needed_where_a_closed_form_answers(self):
        assert not self.judged(web(ZONE, replicas=10), may_search=False).costly
