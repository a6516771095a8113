"""The pods that a workload will have, and what becomes of them: known answers, each worked out by hand."""

import pytest
from build import API_VERSIONS, NAMESPACE, cluster, filled, limited, policy, running, terminating
from manifest import workload as written
from msgspec import convert
from msgspec.structs import replace

from webhook.core.api.selectors import selector_from_labels
from webhook.core.api.storage import Claim, PersistentVolume, StorageClass
from webhook.core.api.types import Container, ContainerPort, NodeSpec, ResourceRequirements
from webhook.core.api.version import RECORDED
from webhook.core.api.well_known import ZONE
from webhook.core.context import Context
from webhook.core.index.lost_nodes import UNREACHABLE
from webhook.core.placement.placement_verdict import PlacementVerdict
from webhook.core.placement.rolling_update import RolloutRules
from webhook.core.placement.simulation import simulate
from webhook.core.pods_to_create.missing_pods import missing_pods, rollout_pods
from webhook.core.pods_to_create.next_pod import PodSource
from webhook.core.workloads.reading import read_workload

OWN = selector_from_labels({"app": "web"})
TWO = "a: a0=0 a1=0 | b: b0=0 b1=0"
ZONES, HOSTS = "zone hard 1 app=web", "hostname hard 1 app=web"
LATE = {"provisioner": "disks", "volumeBindingMode": "WaitForFirstConsumer"}
LATE_CLASS = convert({"metadata": {"name": "late"}, **LATE}, StorageClass)
WAITS = "when the terminating pods on unreachable nodes end, because the rollout waits for them"
KEY_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
APART = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
SHARED = {"persistentVolumeClaim": {"claimName": "data"}}
CLAIMS = {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"storageClassName": "late"}}]}


def made(kind, *constraints, replicas=6, **more):
    assert kind in API_VERSIONS
    return read_workload(written(kind, "app=web", *constraints, replicas=replicas, **more))


def setting(index, *, own=OWN, **more):
    found = cluster(index) if isinstance(index, str) else index
    return Context(policy=policy(mode="observe"), version=RECORDED, index=found), {"own": own, **more}


def asked(workload, replicas, setting):
    """What `missing_pods` and `rollout_pods` are asked."""
    within, more = setting
    source = PodSource(workload=workload, template=workload.templates[0], namespace=NAMESPACE, **more)
    return source, replicas, within


def coming(workload, within, replicas=6):
    return missing_pods(*asked(workload, replicas, within))


def rolling(within, *constraints, replicas=6, surge="25%", unavailable="25%", **more):
    strategy = {"strategy": {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}}
    workload = made("Deployment", *constraints, replicas=replicas, spec=strategy, **more)
    return rollout_pods(*asked(workload, replicas, within))


def verdict(coming):
    found = simulate(coming.game())
    return str(found.verdict), found.fewest, found.most


class TestThoseThatAreMissing:
    @pytest.mark.parametrize(
        ("index", "pods", "staying"),
        [
            pytest.param(TWO, 6, 0, id="none runs"),
            pytest.param("a: a0=1 | b: b0=1", 4, 2, id="two run"),
            pytest.param("a: a0=3 | b: b0=3", 0, 6, id="all run"),
            pytest.param("a: a0=4 | b: b0=4", 0, 8, id="more run"),
        ],
    )
    def test_of_a_deployment(self, index, pods, staying):
        found = coming(made("Deployment", ZONES), setting(index))
        assert (sum(each.pods for each in found.batches), found.staying) == (pods, staying)

    def test_that_cannot_be_told_from_those_of_others_are_all(self):
        found = coming(made("Deployment", ZONES), setting("a: a0=1", own=None))
        assert (found.batches[0].pods, found.staying) == (6, 0)

    def test_they_are_placed_beside_those_that_run(self):
        assert verdict(coming(made("Deployment", ZONES), setting("a: a0=2 | b: ~b0"))) == ("does-not-fit", 0, 0)
        assert verdict(coming(made("Deployment", ZONES), setting("a: a0=2 | b: b0"))) == ("fits", 4, 4)

    def test_of_a_new_revision_count_alone_if_the_constraint_says_so(self):
        keyed = f"{ZONES} keys:pod-template-hash"
        assert verdict(coming(made("Deployment", keyed), setting("a: a0=2 | b: ~b0"))) == ("does-not-fit", 1, 1)


class TestOrdinals:
    def test_come_in_turn_unless_they_are_parallel(self):
        for spec, in_turn in (({}, True), ({"podManagementPolicy": "Parallel"}, False)):
            [batch] = coming(made("StatefulSet", ZONES, spec=spec), setting(TWO)).batches
            assert (batch.pods, batch.in_turn, batch.behind, batch.nodes) == (6, in_turn, None, None)

    def test_that_run_are_not_placed_again(self):
        index = cluster("a: a0 | b: b0")
        index.apply("ADDED", running("web-1", "a0"))
        found = coming(made("StatefulSet", ZONES), setting(index))
        assert ([each.pods for each in found.batches], found.staying) == ([5], 1)

    @pytest.mark.parametrize(
        "spec",
        [
            pytest.param({"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}, id="its room"),
            pytest.param(
                {"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]}, id="a port"
            ),
            pytest.param({"affinity": {"podAntiAffinity": {KEY_REQUIRED: [APART]}}}, id="anti-affinity"),
        ],
    )
    def test_that_terminate_free_what_they_hold(self, spec):
        held = read_workload(written("StatefulSet", "app=web", HOSTS, **spec)).templates[0].pod.pod_spec
        more = {"affinity": held.affinity} | ({"containers": held.containers} if held.containers else {})
        for pod, other, expected in (
            (terminating, running, ("fits", 1, 1)),  # beside web-1, which stays, web-0 comes back where it was
            (running, running, None),
            (terminating, terminating, ("fits", 2, 2)),
        ):
            index = cluster(
                "a: a0 | b: b0", resources={"cpu": "2", "pods": "9", "memory": "1Gi", "ephemeral-storage": "1Gi"}
            )
            for number, (make, name) in enumerate(((pod, "a0"), (other, "b0"))):
                index.apply("ADDED", make(f"web-{number}", name, **more))
            found = coming(made("StatefulSet", HOSTS, replicas=2, **spec), setting(index), 2)
            assert (verdict(found) if found.batches else None) == expected

    @pytest.mark.parametrize(
        ("where", "pods", "staying"),
        [("a0", 6, 0), ("b0", 5, 1)],
        ids=["on a healthy node", "on an unreachable one, for ever"],
    )
    def test_that_terminate_come_again(self, where, pods, staying):
        index = cluster("a: a0 | b: b0")
        index.apply("MODIFIED", replace(index.nodes.get("b0"), spec=NodeSpec(taints=UNREACHABLE)))
        index.apply("ADDED", terminating("web-1", where))
        found = coming(made("StatefulSet", ZONES), setting(index))
        assert (sum(each.pods for each in found.batches), found.staying) == (pods, staying)

    def test_one_whose_volume_is_shut_out_holds_the_rest_for_ever(self):
        index = self.with_volume("web-0", "c")
        ordered = coming(made("StatefulSet", ZONES, spec=CLAIMS), setting(index))
        assert [(each.pods, each.nodes, each.behind) for each in ordered.batches] == [(1, 0, None), (5, None, 0)]
        assert verdict(ordered) == ("does-not-fit", 0, 0)
        at_once = coming(made("StatefulSet", ZONES, spec={**CLAIMS, "podManagementPolicy": "Parallel"}), setting(index))
        assert {each.nodes: each.pods for each in at_once.batches} == {0: 1, None: 5}
        assert verdict(at_once) == ("does-not-fit", 5, 5)

    def test_with_volumes_in_one_place_only_go_there(self):
        index = self.with_volume("web-2", "b")
        found = coming(made("StatefulSet", ZONES, spec=CLAIMS), setting(index))
        places = index.nodes.view().column(ZONE).with_value("b")
        assert [(each.pods, each.nodes, each.behind) for each in found.batches] == [
            (2, None, None),
            (1, places, 0),
            (3, None, 1),
        ]

    def test_are_unknown_where_nobody_says_where_volumes_are_made(self):
        found = coming(made("StatefulSet", ZONES, spec=CLAIMS), setting(TWO))
        assert (found.unknown, found.batches) == ("the nodes of the pods' future volumes", ())

    def test_are_unknown_where_they_are_too_many(self):
        assert coming(made("StatefulSet", ZONES), setting(TWO), 257).unknown == "257 ordinals are too many to look up"

    @staticmethod
    def with_volume(pod, zone):
        """Nodes in zones a and b, where the claim of that pod has a volume in the zone."""
        index = cluster("a: a0 a1 | b: b0 b1")
        meta = {
            "name": f"data-{pod}",
            "namespace": NAMESPACE,
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        }
        index.apply("ADDED", convert({"metadata": meta, "spec": {"volumeName": "pv"}}, Claim))
        index.apply("ADDED", convert({"metadata": {"name": "pv", "labels": {ZONE: zone}}}, PersistentVolume))
        index.apply("ADDED", LATE_CLASS)
        return index


class TestARollout:
    FULL = "a: a0=3 | b: b0=3"

    def test_needs_to_know_the_pods(self):
        assert rolling(setting(TWO, own=None), ZONES).unknown == "which pods belong to the workload"

    def test_makes_all_pods_anew_as_the_strategy_says(self):
        found = rolling(setting(self.FULL), ZONES, surge=1, unavailable="50%")
        assert [(each.pods, sum(each.leaving.values())) for each in found.batches] == [(0, 6), (6, 0)]
        assert found.rollout == RolloutRules(old=0, new=1, replicas=6, surge=1, unavailable=3)

    @pytest.mark.parametrize(
        ("constraints", "strategy", "expected"),
        [
            pytest.param([ZONES], {}, ("fits", 6, 6), id="over zones"),
            pytest.param(
                ["hostname hard 1 app=web keys:pod-template-hash"], {"surge": 1}, ("fits", 6, 6), id="a revision apart"
            ),
            pytest.param([HOSTS], {"surge": 0, "unavailable": 1}, ("fits", 6, 6), id="one out, one in"),
        ],
    )
    def test_ends(self, constraints, strategy, expected):
        assert verdict(rolling(setting(self.FULL), *constraints, **strategy)) == expected

    def test_waits_for_a_node_that_only_its_own_progress_would_free(self):
        # One pod a node: with surge 1 and nothing unavailable, no new pod ever has a node.
        ports = {"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 8080}]}]}
        index = cluster("a: a0 | b: b0")
        held = (Container(name="c", ports=(ContainerPort(container_port=80, host_port=8080),)),)
        for number, name in enumerate(("a0", "b0")):
            index.apply("ADDED", running(f"web-{number}", name, containers=held))
        for strategy, expected in (
            ({"surge": 1, "unavailable": 0}, (PlacementVerdict.NO_FIT, 0, 0)),
            ({"surge": 0, "unavailable": 1}, (PlacementVerdict.FITS, 2, 2)),
        ):
            assert verdict(rolling(setting(index), ZONES, replicas=2, **strategy, **ports)) == expected

    def test_old_pods_free_what_they_hold(self):
        asks = Container(name="c", resources=ResourceRequirements(requests={"cpu": "2"}))
        index = cluster(
            "a: a0 | b: b0", resources={"cpu": "2", "pods": "9", "memory": "1Gi", "ephemeral-storage": "1Gi"}
        )
        for number, name in enumerate(("a0", "b0")):
            index.apply("ADDED", running(f"web-{number}", name, containers=(asks,)))
        spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}
        full = rolling(setting(index), ZONES, replicas=2, surge=1, unavailable=0, **spec)
        assert verdict(full) == ("does-not-fit", 0, 0)
        assert verdict(rolling(setting(index), ZONES, replicas=2, surge=0, unavailable=1, **spec)) == ("fits", 2, 2)

    @pytest.mark.parametrize(
        ("nodes", "strategy", "expected"),
        [
            pytest.param("a: a0=1 a1 | b: b0=2", {"type": "Recreate"}, ("fits", 3, 3), id="every node free"),
            pytest.param("a: a0=3 | b: ~b0", {"type": "Recreate"}, ("does-not-fit", 1, 1), id="a zone is shut"),
            pytest.param("a: a0=3 | b: ~b0", {}, ("does-not-fit", 0, 0), id="in steps, beside old pods"),
            pytest.param("a0=3 a1=0", {"type": "Recreate"}, ("fits", 3, 3), id="without zones"),
        ],
    )
    def test_that_recreates_begins_when_all_old_pods_are_gone(self, nodes, strategy, expected):
        constraint = HOSTS if ":" not in nodes else ZONES
        workload = made("Deployment", constraint, replicas=3, spec={"strategy": strategy})
        found = rollout_pods(*asked(workload, 3, setting(nodes)))
        assert verdict(found) == expected
        assert not strategy or not any(step.gone for step in simulate(found.game()).witness)

    def test_that_recreates_waits_for_pods_on_unreachable_nodes(self):
        index = cluster("a: a0=1 | b: b0")
        workload = made("Deployment", ZONES, replicas=2, spec={"strategy": {"type": "Recreate"}})
        assert rollout_pods(*asked(workload, 2, setting(index))).unknown == ""
        node = index.nodes.get("a0")
        index.apply("MODIFIED", replace(node, spec=NodeSpec(taints=UNREACHABLE)))
        waits = rollout_pods(*asked(workload, 2, setting(index))).unknown
        assert waits == "when its pods on unreachable nodes end, because Recreate waits for them"

    @pytest.mark.parametrize(
        ("pod", "unreachable", "expected"),
        [
            pytest.param(running, False, (1, ""), id="runs"),
            pytest.param(terminating, False, (0, ""), id="terminates, and is made anew"),
            pytest.param(terminating, True, (0, WAITS), id="terminates for ever"),
        ],
    )
    def test_of_ordinals_waits_for_one_that_terminates_on_an_unreachable_node(self, pod, unreachable, expected):
        index = cluster("a: a0 | b: b0")
        index.apply("ADDED", pod("web-0", "b0"))
        if unreachable:
            index.apply("MODIFIED", replace(index.nodes.get("b0"), spec=NodeSpec(taints=UNREACHABLE)))
        workload = made("StatefulSet", ZONES, replicas=2)
        found = rollout_pods(*asked(workload, 2, setting(index)))
        assert (sum(sum(each.leaving.values()) for each in found.batches), found.unknown) == expected

    @pytest.mark.parametrize(
        ("kind", "spec", "unknown"),
        [
            ("ReplicaSet", {}, "its controller does not replace running pods"),
            ("Job", {}, "its controller does not replace running pods"),
            ("Rollout", {}, "how its controller replaces pods"),
            ("StatefulSet", {"updateStrategy": {"type": "OnDelete"}}, "which pods are deleted manually (OnDelete)"),
            ("StatefulSet", {"updateStrategy": {"type": "Recreate"}}, "how its controller replaces pods"),
            ("StatefulSet", {"updateStrategy": {"type": "RollingUpdate"}}, ""),
            ("Deployment", {"strategy": {"type": "RollingUpdate"}}, ""),
        ],
    )
    def test_of_kinds_and_strategies(self, kind, spec, unknown):
        workload = made(kind, ZONES, spec=spec)
        assert rollout_pods(*asked(workload, 6, setting(TWO))).unknown == unknown

    def test_below_the_partition_the_old_revision_comes_back(self):
        """Of its own revision a0 holds no pod, of the other one: whoever counts that must not go there."""
        constraint = f"{ZONES} keys:controller-revision-hash"
        spec = {"updateStrategy": {"rollingUpdate": {"partition": 2}}}
        index = cluster("a: a0 | b: ~b0")
        for number in (1, 2):
            index.apply("ADDED", running(f"web-{number}", "a0"))
        workload = made("StatefulSet", constraint, replicas=3, spec=spec)
        found = rollout_pods(*asked(workload, 3, setting(index)))
        labels = [each.problem.pod.labels.get("controller-revision-hash") for each in found.batches]
        assert [each is None for each in labels] == [True, True, False]  # those that go, web-0, web-2


class TestTheSkewThatARolloutLeaves:
    # Published answers: two zones, 12 replicas, any arrangement at the start that maxSkew allows.
    @pytest.mark.parametrize(
        ("strategy", "skew"),
        [
            pytest.param({}, 4, id="a quarter more, a quarter fewer"),
            pytest.param({"surge": 1, "unavailable": 0}, 2, id="one more"),
            pytest.param({"surge": "100%", "unavailable": 0}, 6, id="all more"),
            pytest.param({"surge": 0, "unavailable": 1}, 0, id="one fewer"),
        ],
    )
    def test_over_zones(self, strategy, skew):
        starts = ["a: a0=6 | b: b0=6"]
        found = [rolling(setting(start), ZONES, replicas=12, **strategy) for start in starts]
        assert max(simulate(each.game()).skew for each in found) == skew

    def test_over_nodes_and_where_nothing_can_be_uneven(self):
        hosts = rolling(setting("a0=3 a1=3"), HOSTS, surge=2, unavailable=0)
        assert simulate(hosts.game()).skew == 2
        assert simulate(rolling(setting("a0=3 a1=3")).game()).skew == 0
        assert simulate(coming(made("Deployment", ZONES), setting(TWO)).game()).skew is None


def test_the_names_of_ordinals_are_known_and_those_of_others_not():
    index = cluster("a: a0 | b: b0")
    index.apply("ADDED", running("web-1", "a0"))
    for spec in ({}, {"podManagementPolicy": "Parallel"}):
        found = coming(made("StatefulSet", ZONES, spec=spec), setting(index), replicas=3)
        assert found.names == (("web-0", "web-2"),)
    assert coming(made("Deployment", ZONES), setting(TWO)).names == ()


class TestEphemeralVolumes:
    """Each pod has a volume of its own, and a node has a limit of attached volumes."""

    def made(self, kind="Deployment", replicas=4, name="late", **more):
        claim = {"spec": {"storageClassName": name}}
        volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": claim}}]
        return made(kind, replicas=replicas, volumes=volumes, **more)

    @pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
    @pytest.mark.parametrize(
        ("most", "expected"),
        [
            pytest.param(2, ("fits", 4, 4), id="room for all"),
            pytest.param(1, ("does-not-fit", 2, 2), id="room for two"),
        ],
    )
    def test_count_for_the_attach_limit(self, kind, most, expected):
        assert verdict(coming(self.made(kind), setting(limited("a: a0 | b: b0", most)), 4)) == expected

    def test_count_with_the_claims_of_a_stateful_set(self):
        index = setting(limited("a: a0 | b: b0", 2))
        assert verdict(coming(self.made("StatefulSet", spec=CLAIMS), index, 4)) == ("does-not-fit", 2, 2)
        assert verdict(coming(made("StatefulSet", replicas=4, spec=CLAIMS), index, 4)) == ("fits", 4, 4)

    @pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
    def test_made_before_the_pod_has_a_node_are_unknown(self, kind):
        index = limited("a: a0 | b: b0", 2, mode="Immediate")
        assert coming(self.made(kind), setting(index), 4).unknown == "the nodes of the pods' future volumes"

    @pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
    @pytest.mark.parametrize(
        ("most", "mode", "unknown"),
        [
            pytest.param(9, "WaitForFirstConsumer", "", id="enough for old and new pods"),
            pytest.param(
                2,
                "WaitForFirstConsumer",
                "how many volumes each node can attach, because running pods may have other ephemeral volumes",
                id="near the limit",
            ),
            pytest.param(9, "Immediate", "the nodes of the pods' future volumes", id="not waiting for the pod"),
        ],
    )
    def test_in_a_rollout(self, kind, most, mode, unknown):
        index = limited("a: a0 | b: b0", most, mode)
        for number, node in enumerate(["a0", "b0", "a0", "b0"]):
            index.apply("ADDED", running(f"web-{number}", node))
        assert rollout_pods(*asked(self.made(kind), 4, setting(index))).unknown == unknown


class TestSharedVolumes:
    """All pods of a template mount the same claim or disk."""

    def made(self, replicas, kind="Deployment", **volume):
        return made(kind, replicas=replicas, volumes=[{"name": "data", **volume}])

    def known(self, mode="ReadWriteOnce", *, bound=True):
        """The cluster with a claim."""
        spec = {"accessModes": [mode], "storageClassName": "late", "volumeName": "pv" if bound else None}
        meta = {"name": "data", "namespace": NAMESPACE, "annotations": BOUND if bound else None}
        claim = convert({"metadata": meta, "spec": spec}, Claim)
        volume = convert({"metadata": {"name": "pv"}, "spec": {"storageClassName": "late"}}, PersistentVolume)
        return filled(cluster("a: a0 | b: b0"), [LATE_CLASS, claim, volume])

    @pytest.mark.parametrize(
        ("replicas", "known", "expected"),
        [
            pytest.param(3, {}, ("fits", 3, 3), id="a bound claim"),
            pytest.param(1, {"mode": "ReadWriteOncePod"}, ("fits", 1, 1), id="one pod with a claim for one"),
            pytest.param(3, {"mode": "ReadWriteOncePod"}, ("does-not-fit", 1, 1), id="three with a claim for one"),
            pytest.param(
                3, {"mode": "ReadWriteOncePod", "bound": False}, ("does-not-fit", 1, 1), id="also before it is bound"
            ),
            pytest.param(1, {"bound": False}, ("fits", 1, 1), id="one pod with an unbound claim"),
        ],
    )
    def test_of_a_claim(self, replicas, known, expected):
        found = coming(self.made(replicas, **SHARED), setting(self.known(**known)), replicas)
        assert verdict(found) == expected

    @pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
    def test_the_first_pod_decides_where_an_unbound_claim_can_be_used(self, kind):
        found = coming(self.made(3, kind, **SHARED), setting(self.known(bound=False)), 3)
        assert found.unknown == "the nodes of the pods' future volumes"

    def test_a_rollout_is_unknown_with_a_claim_for_one_pod(self):
        index = self.known("ReadWriteOncePod")
        index.apply("ADDED", running("web-0", "a0"))
        expected = "when a pod of the rollout can use the claim with access mode ReadWriteOncePod"
        assert rollout_pods(*asked(self.made(1, **SHARED), 1, setting(index))).unknown == expected

    @pytest.mark.parametrize(
        ("disk", "expected"),
        [
            pytest.param({"gcePersistentDisk": {"pdName": "data"}}, ("does-not-fit", 2, 2), id="for one pod on a node"),
            pytest.param(
                {"gcePersistentDisk": {"pdName": "data", "readOnly": True}}, ("fits", 3, 3), id="the same, read only"
            ),
        ],
    )
    def test_of_a_disk(self, disk, expected):
        assert verdict(coming(self.made(3, **disk), setting(self.known()), 3)) == expected
