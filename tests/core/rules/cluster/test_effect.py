"""What declaring constraints does at all."""

import pytest
from build import autoscaler, cluster, index, node, service
from manifest import DENY, GROWING, PLAIN, findings_of, said, workload
from msgspec.structs import replace

from webhook.core.api.types import SpreadConstraint
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.policy.defaults import DefaultConstraint, Defaults
from webhook.core.policy.policy import Mode, Policy
from webhook.core.scheduler.profile import SchedulerProfile

ZONES_A_B = replace(DENY, domains={ZONE: ("a", "b")})
OWN_ZONES = replace(DENY, domains={"Zone": ("a", "b")})
REQUIRED = replace(DENY, rules={"spread-required": Mode.WARN})
HOST_AWAY = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "web"}}}
        ]
    }
}
HOST_RATHER_AWAY = {
    "podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "podAffinityTerm": {"topologyKey": HOSTNAME, "labelSelector": {}}}
        ]
    }
}


@pytest.mark.parametrize(
    ("kind", "constraints", "fields", "lost"),
    [
        pytest.param("Deployment", ["zone hard 1 app=web"], {}, "nodes", id="zones alone"),
        pytest.param("StatefulSet", ["hostname soft 1 app=web"], {}, "zones", id="hosts alone"),
        pytest.param("Rollout", ["rack hard 1 app=web"], {}, "nodes and zones", id="neither"),
        pytest.param("Deployment", ["zone hard 1 app=web", "hostname soft 1 app=web"], {}, None, id="both"),
        pytest.param(
            "Deployment",
            ["failure-domain.beta.kubernetes.io/zone soft 1 app=web"],
            {},
            "nodes",
            id="zones by their former name",
        ),
        pytest.param(
            "Deployment",
            ["failure-domain.beta.kubernetes.io/zone hard 1 app=web", "kubernetes.io/hostnames soft 1 app=web"],
            {},
            None,
            id="both, one deprecated and one misspelt",
        ),
        pytest.param("Deployment", [], {}, None, id="none declared"),
        pytest.param("Deployment", ["zone hard 1 app=web"], {"replicas": 1}, None, id="a single replica"),
        pytest.param("Deployment", ["zone hard 1 app=web"], {"replicas": None}, None, id="a single replica by default"),
        pytest.param("Deployment", ["zone hard 1 app=web"], {"affinity": HOST_AWAY}, None, id="hosts by anti-affinity"),
        pytest.param("Deployment", ["zone hard 1 app=web"], {"affinity": HOST_RATHER_AWAY}, None, id="hosts preferred"),
        pytest.param("Job", ["zone hard 1 app=web"], {}, None, id="the scheduler does not spread Jobs"),
    ],
)
def test_what_declaring_one_switches_off(kind, constraints, fields, lost):
    expected = [f"declaring a constraint turns off the scheduler's default spreading across {lost}"] if lost else []
    assert said("system-defaults-lost", workload(kind, "app=web", *constraints, **fields)) == expected


@pytest.mark.parametrize(
    ("nodes", "key", "policy", "lost"),
    [
        pytest.param(None, "Zone", DENY, "nodes", id="a bare name, which topology-key-typo replaces by zone"),
        pytest.param(None, "az", DENY, "nodes", id="another name of a zone"),
        pytest.param(None, "node", DENY, "zones", id="a bare name of a host"),
        pytest.param(None, "rack", DENY, "nodes and zones", id="no name of either"),
        pytest.param(None, "Zone", OWN_ZONES, "nodes and zones", id="a bare name that the configuration knows"),
        pytest.param("a: n1 | b: n2", "Zone", DENY, "nodes", id="no node has it, so topology-key-unknown replaces it"),
        pytest.param("a: n1 | b: n2", "example.com/zone", DENY, "nodes", id="no node has it, with a prefix"),
        pytest.param("a: n1 | b: n2", "az", DENY, "nodes and zones", id="no node has it, and no rule replaces it"),
        pytest.param("a: n1 | b: n2", "own.io/zone", DENY, "nodes and zones", id="nodes have it"),
    ],
)
def test_a_key_that_another_rule_replaces_is_not_added_again(nodes, key, policy, lost):
    """Both fixes together would be two constraints over one key, which kube-apiserver refuses."""
    known = None if nodes is None else cluster(nodes, labelled="own.io/zone=x")
    text = f"declaring a constraint turns off the scheduler's default spreading across {lost}"
    manifest = workload("Deployment", "app=web", f"{key} soft 1 app=web")
    assert said("system-defaults-lost", manifest, index=known, policy=policy) == [text]


def test_an_autoscaler_sets_the_replicas_that_are_left_out():
    manifest = workload("StatefulSet", "app=web", "zone hard 1 app=web", replicas=None)
    scaled = index(autoscaler("StatefulSet/web", 10))
    text = "declaring a constraint turns off the scheduler's default spreading across nodes"
    assert said("system-defaults-lost", manifest, index=scaled) == [text]


HOSTS_LOST = ["declaring a constraint turns off the scheduler's default spreading across nodes"]
ZONES_LOST = ["declaring a constraint turns off the scheduler's default spreading across zones"]


@pytest.mark.parametrize(
    ("nodes", "constraint", "policy", "expected"),
    [
        pytest.param("a: n1 n2", "zone hard 1 app=web", DENY, HOSTS_LOST, id="two nodes"),
        pytest.param("a: n1 | b: n2", "hostname hard 1 app=web", DENY, ZONES_LOST, id="two zones"),
        pytest.param("a: n1 ~n2", "zone hard 1 app=web", DENY, HOSTS_LOST, id="a taint may go"),
        pytest.param("a: n1", "zone hard 1 app=web", DENY, [], id="one node"),
        pytest.param("a: n1 n2", "hostname hard 1 app=web", DENY, [], id="one zone"),
        pytest.param("n1 n2", "hostname hard 1 app=web", DENY, [], id="no zones at all"),
        pytest.param("", "hostname hard 1 app=web", DENY, ZONES_LOST, id="no node is known"),
        pytest.param("a: n1 n2", "hostname hard 1 app=web", ZONES_A_B, ZONES_LOST, id="a zone without a node"),
        pytest.param("a: n1", "zone hard 1 app=web", GROWING, HOSTS_LOST, id="one node, and more may come"),
        pytest.param("a: n1", "hostname hard 1 app=web", GROWING, [], id="more may come, in the same zone"),
    ],
)
def test_what_cannot_be_uneven_is_no_loss(nodes, constraint, policy, expected):
    manifest = workload("Deployment", "app=web", constraint)
    assert said("system-defaults-lost", manifest, index=cluster(nodes), policy=policy) == expected


def test_the_domains_that_the_pods_may_use_count():
    pinned = workload("Deployment", "app=web", "hostname hard 1 app=web", nodeSelector={ZONE: "a"})
    assert said("system-defaults-lost", pinned, index=cluster("a: n1 | b: n2")) == []


def required(key, *values):
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": [*values]}]}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    }


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"nodeSelector": {ZONE: "a"}}, [], id="one zone"),
        pytest.param({"nodeSelector": {"zone": "east"}}, [], id="one zone by a bare name"),
        pytest.param({"nodeSelector": {"failure-domain.beta.kubernetes.io/zone": "a"}}, [], id="by the former name"),
        pytest.param(required(ZONE, "a"), [], id="one zone by affinity"),
        pytest.param(required("availability-zone", "a"), [], id="by affinity and a bare name"),
        pytest.param({"nodeSelector": {"az": "a"}} | required(ZONE, "a", "b"), [], id="one by one of two names"),
        pytest.param({"nodeSelector": {HOSTNAME: "n1"}}, ZONES_LOST, id="one node"),
        pytest.param({"nodeSelector": {"disk": "ssd"}}, ZONES_LOST, id="another label"),
        pytest.param(required(ZONE, "a", "b"), ZONES_LOST, id="two zones"),
    ],
)
def test_what_the_object_alone_pins_is_no_loss(fields, expected):
    manifest = workload("Deployment", "app=web", "hostname hard 1 app=web", **fields)
    assert said("system-defaults-lost", manifest) == expected


def test_nothing_is_lost_on_one_node():
    manifest = workload("Deployment", "app=web", "zone hard 1 app=web", nodeSelector={HOSTNAME: "n1"})
    assert said("system-defaults-lost", manifest) == []


@pytest.mark.parametrize(
    ("kind", "select", "expected"),
    [
        pytest.param("CloneSet", "app=web", HOSTS_LOST, id="a Service selects them"),
        pytest.param("CloneSet", "app=api", [], id="the Service selects others"),
        pytest.param("Job", "app=web", HOSTS_LOST, id="a Job behind a Service"),
        pytest.param("Pod", "app=web", [], id="a single pod"),
        pytest.param("DaemonSet", "app=web", [], id="a DaemonSet"),
    ],
)
def test_a_service_gives_other_kinds_a_selector(kind, select, expected):
    found = index(node("n1", "a"), node("n2", "b"), service("web", select))
    assert said("system-defaults-lost", workload(kind, "app=web", "zone hard 1 app=web"), index=found) == expected


@pytest.mark.parametrize(
    ("profiles", "name", "expected"),
    [
        pytest.param([("default-scheduler", "System")], None, HOSTS_LOST, id="as it is built"),
        pytest.param([("default-scheduler", "List")], None, [], id="with constraints of its own"),
        pytest.param([("default-scheduler", "List")], "other", HOSTS_LOST, id="of another profile"),
        pytest.param([("default-scheduler", "System"), ("other", "List")], "other", [], id="of the profile it names"),
    ],
)
def test_a_configured_scheduler_has_defaults_of_its_own(profiles, name, expected):
    known = tuple(SchedulerProfile(name=own, defaulting_type=kind) for own, kind in profiles)
    manifest = workload("Deployment", "app=web", "zone hard 1 app=web", schedulerName=name)
    assert said("system-defaults-lost", manifest, policy=replace(PLAIN, scheduler_profiles=known)) == expected


@pytest.mark.parametrize(
    ("constraint", "fix"),
    [
        ("zone hard 1 app=web", "add {maxSkew: 3, topologyKey: kubernetes.io/hostname,"),
        ("hostname hard 1 app=web", "add {maxSkew: 5, topologyKey: topology.kubernetes.io/zone,"),
    ],
    ids=["hosts have 3", "zones have 5"],
)
def test_the_fix_has_the_schedulers_own_number(constraint, fix):
    [lost] = findings_of("system-defaults-lost", workload("Deployment", "app=web", constraint))
    assert lost.fix.startswith(fix)


SINGLE = ["zone[0] has no effect on a single replica"]


@pytest.mark.parametrize(
    ("kind", "constraint", "replicas", "expected"),
    [
        pytest.param("StatefulSet", "zone hard 1 app=web", 1, [], id="one pod, and maybe an autoscaler"),
        pytest.param("StatefulSet", "zone hard 1 app=web", 2, [], id="two pods"),
        pytest.param("StatefulSet", "zone hard 1 app=web", 0, [], id="none yet"),
        pytest.param(
            "StatefulSet",
            "zone hard 3 app=web",
            3,
            ["zone[0] does not spread the pods: 3 replicas cannot exceed maxSkew 3"],
            id="maxSkew 3 over 3 pods",
        ),
        pytest.param("StatefulSet", "zone hard 2 app=web", 3, [], id="maxSkew 2 over 3 pods"),
        pytest.param("StatefulSet", "zone hard 3 app=web minDomains:3", 3, [], id="a cap of 3"),
        pytest.param("Deployment", "zone hard 3 app=web", 3, [], id="a rollout brings a fourth"),
        pytest.param(
            "Deployment",
            "zone hard 4 app=web",
            3,
            ["zone[0] does not spread the pods: 3 replicas cannot exceed maxSkew 4"],
            id="maxSkew 4 over 3 and a fourth",
        ),
        pytest.param("StatefulSet", "zone soft 3 app=web", 3, [], id="a soft one still prefers"),
        pytest.param("StatefulSet", "zone soft 100 app=web", 3, [], id="however large, the emptier zone is first"),
        pytest.param(
            "StatefulSet",
            "hostname hard 3 app=web",
            3,
            ["hostname[0] has no effect: 3 replicas cannot exceed maxSkew 3"],
            id="a key that every node has",
        ),
        pytest.param("StatefulSet", "hostname hard 0 app=web", 3, [], id="a maxSkew that is refused"),
    ],
)
def test_constraints_that_can_do_nothing(kind, constraint, replicas, expected):
    assert (
        said("spread-without-effect", workload(kind, "app=web tier=front", constraint, replicas=replicas)) == expected
    )


@pytest.mark.parametrize(
    ("kind", "constraint", "fields", "expected"),
    [
        pytest.param("StatefulSet", "zone hard 1 app=web", {}, SINGLE, id="replaced in place"),
        pytest.param("StatefulSet", "zone hard 1 tier=front", {}, [], id="it counts others"),
        pytest.param("StatefulSet", "zone soft 1 app=web", {}, SINGLE, id="soft"),
        pytest.param("Deployment", "zone soft 1 app=web", {}, [], id="the next pod prefers another zone"),
        pytest.param("Deployment", "zone hard 1 app=web", {}, [], id="the next pod must go elsewhere"),
        pytest.param("Deployment", "zone hard 2 app=web", {}, SINGLE, id="the next pod may stand beside it"),
        pytest.param(
            "Deployment", "zone hard 1 app=web", {"spec": {"strategy": {"type": "Recreate"}}}, SINGLE, id="Recreate"
        ),
    ],
)
def test_a_single_replica_that_nothing_scales(kind, constraint, fields, expected):
    manifest = workload(kind, "app=web tier=front", constraint, replicas=1, **fields)
    cluster = index(node("n1", "a"), node("n2", "b"))
    assert said("spread-without-effect", manifest, index=cluster) == expected


def test_a_single_replica_may_be_kept_from_a_node_without_the_key():
    manifest = workload("StatefulSet", "app=web", "zone hard 1 app=web", replicas=1)
    assert said("spread-without-effect", manifest, index=cluster("a: n1 | b: n2")) == SINGLE
    assert said("spread-without-effect", manifest, index=cluster("n0 | a: n1 | b: n2")) == []


DAEMON = ["zone[0] has no effect: a DaemonSet puts one pod on each node"]
IGNORED = "zone hard 1 app=web nodeAffinityPolicy:Ignore"


@pytest.mark.parametrize(
    ("nodes", "constraint", "fields", "expected"),
    [
        pytest.param("a: n1 n2 | b: n3", "zone hard 1 app=web", {}, DAEMON, id="only its own node counts for a pod"),
        pytest.param("a: n1=1 n2 | b: n3", "zone hard 1 app=web", {}, DAEMON, id="beside another under the same label"),
        pytest.param("a: n1 n2 | b: n3", "zone soft 1 app=web", {}, DAEMON, id="soft"),
        pytest.param("a: n1 n2 | b: n3", IGNORED, {}, [], id="all nodes count, and two are in one zone"),
        pytest.param("a: n1 n2 | b: n3", "zone hard 1 app=web minDomains:2", {}, [], id="one domain is too few"),
        pytest.param("a: n1 n2 | b: n3", "zone hard 0 app=web", {}, [], id="a maxSkew that is refused"),
        pytest.param("n1 n2 | b: n3", "zone hard 1 app=web", {}, [], id="two nodes without zone get none"),
        pytest.param("n1 n2 | b: n3", "zone soft 1 app=web", {}, DAEMON, id="a soft one shuts out nobody"),
        pytest.param("~n1 n2 | b: n3", "zone hard 1 app=web", {}, [], id="one of them is tainted"),
        pytest.param("~n1 ~n2 | b: n3", "zone hard 1 app=web", {}, DAEMON, id="both are, and it has no pod there"),
        pytest.param(
            "n1 n2 | b: n3",
            "zone hard 1 app=web",
            {"nodeSelector": {"topology.kubernetes.io/zone": "b"}},
            DAEMON,
            id="it chooses nodes with the key",
        ),
        pytest.param("n1 n2", "zone hard 1 app=web", {"nodeSelector": {"a": "b"}}, [], id="no node is chosen"),
    ],
)
def test_what_keeps_no_pod_of_a_daemonset_from_its_node(nodes, constraint, fields, expected):
    manifest = workload("DaemonSet", "app=web", constraint, **fields)
    assert said("spread-without-effect", manifest, index=cluster(nodes)) == expected


@pytest.mark.parametrize(("taint", "expected"), [("node.kubernetes.io/unschedulable", []), ("dedicated", DAEMON)])
def test_a_daemonset_has_pods_on_nodes_that_are_cordoned(taint, expected):
    manifest = workload("DaemonSet", "app=web", "zone hard 1 app=web")
    assert said("spread-without-effect", manifest, index=cluster("~n0 | a: n1", taint=taint)) == expected


@pytest.mark.parametrize(
    ("constraint", "policy", "expected"),
    [
        pytest.param("hostname hard 1 app=web", DENY, "hostname[0]", id="every node has a hostname"),
        pytest.param("zone hard 1 app=web", DENY, "", id="a node may lack the zone"),
        pytest.param("zone soft 1 app=web", DENY, "zone[0]", id="a soft one shuts out nobody"),
    ],
)
def test_a_daemonset_without_a_cluster(constraint, policy, expected):
    found = said("spread-without-effect", workload("DaemonSet", "app=web", constraint), policy=policy)
    assert found == ([f"{expected} has no effect: a DaemonSet puts one pod on each node"] if expected else [])


def test_a_node_that_is_added_may_lack_a_key_of_ones_own():
    manifest = workload("DaemonSet", "app=web", "rack hard 1 app=web")
    found = index(node("n1", rack="r"))
    assert said("spread-without-effect", manifest, index=found) == [DAEMON[0].replace("zone", "rack")]
    assert said("spread-without-effect", manifest, index=found, policy=GROWING) == []


def fixed(manifest, rule, **more):
    [found] = findings_of(rule, manifest, **more)
    return found.remedy, found.fix, [(each.path.rpartition("Constraints")[2], each.value) for each in found.edits]


@pytest.mark.parametrize(
    ("nodes", "constraints", "fix"),
    [
        pytest.param(
            "a: n1 n2", ["zone hard 1 app=web"], ("remove it", "remove the constraint", [("[0]", None)]), id="the last"
        ),
        pytest.param(
            "a: n1 n2",
            ["zone hard 1 app=web", "hostname soft 1 app=web"],
            ("remove it", "remove the constraint", [("[0]", None)]),
            id="zones cannot be uneven",
        ),
        pytest.param(
            "a: n1 n2 | b: n3",
            ["zone hard 5 app=web", "hostname soft 1 app=web"],
            ("lower its maxSkew", "lower its maxSkew, or remove the constraint", []),
            id="the scheduler's own spreading over zones would be missed",
        ),
        pytest.param(
            "n0 | a: n1 | b: n3",
            ["zone hard 5 app=web"],
            ("lower its maxSkew", "lower its maxSkew, or remove the constraint", []),
            id="it keeps pods off a node without zone",
        ),
    ],
)
def test_how_to_be_rid_of_it(nodes, constraints, fix):
    manifest = workload("Deployment", "app=web", *constraints)
    assert fixed(manifest, "spread-without-effect", index=cluster(nodes)) == fix


def test_taking_out_the_only_constraint_may_break_what_the_platform_asks():
    manifest = workload("Deployment", "app=web", "zone hard 5 app=web")
    found = cluster("a: n1 | b: n2")
    assert fixed(manifest, "spread-without-effect", index=found)[2] == [("[0]", None)]
    assert fixed(manifest, "spread-without-effect", index=found, policy=REQUIRED)[2] == []


def test_pods_of_others_under_its_labels_make_maxskew_reachable():
    manifest = workload("StatefulSet", "app=web", "zone hard 3 app=web")
    told = [len(said("spread-without-effect", manifest, index=cluster(f"a: n1={pods} | b: n2"))) for pods in (0, 3, 4)]
    assert told == [1, 1, 0]


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        pytest.param(
            "",
            (
                "the scheduler would then prefer nodes with the label topology.kubernetes.io/zone;"
                " evenspread does not know your nodes"
            ),
            id="no cluster",
        ),
        pytest.param(
            "n0 | a: n1 | b: n2",
            "the scheduler would then prefer nodes with the label topology.kubernetes.io/zone",
            id="one has none",
        ),
        pytest.param("a: n1 | b: n2", "", id="all have it"),
    ],
)
def test_why_a_default_over_zones_is_not_pasted(nodes, reason):
    manifest = workload("Deployment", "app=web", "hostname hard 1 app=web")
    known = {"index": cluster(nodes)} if nodes else {}
    [found] = findings_of("system-defaults-lost", manifest, **known)
    assert found.by_hand == reason


HOST_DEFAULT = {
    "maxSkew": 3,
    "topologyKey": HOSTNAME,
    "whenUnsatisfiable": "ScheduleAnyway",
    "labelSelector": {"matchLabels": {"app": "web"}},
}


@pytest.mark.parametrize(
    ("nodes", "constraints", "added"),
    [
        pytest.param("", ["zone hard 1 app=web"], [("[1]", HOST_DEFAULT)], id="nodes have hostnames"),
        pytest.param("", ["hostname hard 1 app=web"], [], id="whether nodes have zones is not known"),
        pytest.param(
            "a: n1 | b: n2",
            ["hostname hard 1 app=web"],
            [("[1]", {**HOST_DEFAULT, "maxSkew": 5, "topologyKey": ZONE})],
            id="they have",
        ),
        pytest.param("n0 | a: n1 | b: n2", ["hostname hard 1 app=web"], [], id="one has not"),
        pytest.param("", ["zone hard 1 app=api"], [("[1]", HOST_DEFAULT)], id="the workload's own selector"),
        pytest.param(
            "",
            ["zone hard 1 app=web keys:pod-template-hash,tier,nope"],
            [("[1]", {**HOST_DEFAULT, "matchLabelKeys": ["pod-template-hash", "tier"]})],
            id="keys that the pods have or get",
        ),
        pytest.param(
            "",
            ["zone hard 1 app=web keys:pod-template-hash,pod-template-hash"],
            [("[1]", {**HOST_DEFAULT, "matchLabelKeys": ["pod-template-hash"]})],
            id="a key that stands there twice, once",
        ),
    ],
)
def test_what_gives_the_schedulers_spreading_back(nodes, constraints, added):
    manifest = workload("Deployment", "app=web tier=front", *constraints)
    found = cluster(nodes) if nodes else None
    assert fixed(manifest, "system-defaults-lost", index=found)[2] == added


@pytest.mark.parametrize(
    ("constraint", "selector"),
    [
        pytest.param("zone hard 1 app=web", {"matchLabels": {"app": "web"}}, id="of the first constraint"),
        pytest.param("zone hard 1 app=api", None, id="which counts others"),
        pytest.param("zone hard 1 null", None, id="which counts nobody"),
        pytest.param("zone hard 1 app=a_", None, id="which cannot be read"),
        pytest.param(
            "zone hard 1 app=web keys:app",
            {"matchLabels": {"app": "web"}},
            id="a key that it names is left out",
        ),
    ],
)
def test_without_a_selector_of_its_own_a_workload_gives_that_of_its_constraint(constraint, selector):
    manifest = workload("ReplicationController", "app=web", constraint)
    added = fixed(manifest, "system-defaults-lost")[2]
    assert [value["labelSelector"] for _, value in added] == ([selector] if selector else [])
    assert not any("matchLabelKeys" in value for _, value in added)


IN_A = {"nodeSelector": {"topology.kubernetes.io/zone": "a"}}
ONE_ZONE = ["zone[0] has no effect: all nodes are in one zone"]
CHOSEN = ["zone[0] has no effect: all usable nodes are in one zone"]


@pytest.mark.parametrize(
    ("nodes", "constraint", "fields", "expected"),
    [
        pytest.param("a: n1 n2", "zone hard 1 app=web", {}, ONE_ZONE, id="one zone"),
        pytest.param("a: n1 n2", "zone soft 1 app=web", {}, ONE_ZONE, id="one zone, softly"),
        pytest.param("a: n1 | b: n2", "zone hard 1 app=web", {}, [], id="two zones"),
        pytest.param("a: n1 n2", "zone hard 1 app=web minDomains:2", {}, [], id="one zone, and two are asked for"),
        pytest.param("n0 | a: n1 n2", "zone hard 1 app=web", {}, [], id="it keeps pods off a node without zone"),
        pytest.param("~n0 | a: n1 n2", "zone hard 1 app=web", {}, ONE_ZONE, id="a taint keeps them off anyway"),
        pytest.param("a: n1 | b: n2", "zone hard 1 app=web", IN_A, CHOSEN, id="pods choose one of two"),
        pytest.param("a: n1 | b: n2", "zone soft 1 app=web", IN_A, CHOSEN, id="pods choose one of two, softly"),
        pytest.param("a: n1 | b: n2", "zone hard 1 app=web nodeAffinityPolicy:Ignore", IN_A, [], id="both count"),
        pytest.param("a: n1 | b: ~n2", "zone hard 1 app=web", {}, [], id="a tainted one counts"),
        pytest.param("a: n1 | b: ~n2", "zone hard 1 app=web nodeTaintsPolicy:Honor", {}, CHOSEN, id="it does not"),
        pytest.param("a: n1 | b: n2", "zone hard 1 app=web", {"nodeSelector": {"pool": "x"}}, [], id="no node"),
        pytest.param("n1 n2", "zone hard 1 app=web", {}, [], id="none, which another rule says"),
    ],
)
def test_one_domain_is_never_uneven(nodes, constraint, fields, expected):
    manifest = workload("Deployment", "app=web", constraint, **fields)
    assert said("spread-without-effect", manifest, index=cluster(nodes)) == expected


@pytest.mark.parametrize(
    ("taint", "expected"),
    [
        pytest.param("node.kubernetes.io/unreachable", [], id="it may be reached again"),
        pytest.param("node.kubernetes.io/not-ready", [], id="it may be ready again"),
        pytest.param("dedicated", ONE_ZONE, id="its taint stays"),
    ],
)
def test_a_node_without_the_key_whose_taint_may_pass_is_kept_off(taint, expected):
    manifest = workload("Deployment", "app=web", "zone hard 1 app=web")
    assert said("spread-without-effect", manifest, index=cluster("~n0 | a: n1 n2", taint=taint)) == expected


@pytest.mark.parametrize(
    ("capacity", "domains", "labels", "expected"),
    [
        pytest.param("auto", {}, "", ONE_ZONE, id="nobody adds nodes"),
        pytest.param("auto", {}, "agentpool=x", [], id="a pool may grow into another zone"),
        pytest.param("fixed", {}, "agentpool=x", ONE_ZONE, id="a pool that stays as it is"),
        pytest.param("growing", {}, "", [], id="nodes are added"),
        pytest.param("fixed", {"topology.kubernetes.io/zone": ("a", "b")}, "", [], id="another zone is configured"),
    ],
)
def test_another_domain_may_come(capacity, domains, labels, expected):
    manifest = workload("Deployment", "app=web", "zone hard 1 app=web")
    policy = replace(DENY, capacity=capacity, domains=domains)
    found = cluster("a: n1 n2", labelled=labels)
    assert said("spread-without-effect", manifest, policy=policy, index=found) == expected


def test_an_autoscaler_that_could_not_be_seen_may_add_to_a_single_replica():
    alone = workload("StatefulSet", "app=web", "zone soft 1 app=web", replicas=1)
    seen = index(node("n1", "a"), node("n2", "b"))
    assert said("spread-without-effect", alone, index=seen) == ["zone[0] has no effect on a single replica"]
    seen.mark_missing("horizontalpodautoscalers", "403 Forbidden")
    assert said("spread-without-effect", alone, index=seen) == []


def test_an_autoscaler_may_add_to_a_single_replica():
    scaled = index(autoscaler("StatefulSet/web", 10))
    manifest = workload("StatefulSet", "app=web", "zone hard 1 app=web", replicas=1)
    for each in (node("n1", "a"), node("n2", "b")):
        scaled.apply("ADDED", each)
    assert said("spread-without-effect", manifest, index=index(node("n1", "a"), node("n2", "b"))) == SINGLE
    assert said("spread-without-effect", manifest, index=scaled) == []


INJECTED = Policy(
    rules={"spread-required": Mode.WARN},
    defaults=Defaults(mode="inject", default_constraints=(DefaultConstraint(constraint=SpreadConstraint()),)),
)


@pytest.mark.parametrize(
    ("kind", "constraints", "fields", "policy", "speaks"),
    [
        pytest.param("Deployment", [], {}, REQUIRED, True, id="three replicas and nothing"),
        pytest.param("Deployment", [], {"replicas": 1}, REQUIRED, False, id="one replica"),
        pytest.param("Deployment", ["zone soft 1 app=web"], {}, REQUIRED, False, id="a constraint"),
        pytest.param("Deployment", [], {"affinity": HOST_AWAY}, REQUIRED, False, id="anti-affinity"),
        pytest.param("Job", [], {}, REQUIRED, False, id="a Job"),
        pytest.param("DaemonSet", [], {}, REQUIRED, False, id="a DaemonSet"),
        pytest.param("Deployment", [], {}, INJECTED, False, id="defaults are injected"),
        pytest.param("Deployment", [], {}, PLAIN, False, id="not configured"),
    ],
)
def test_workloads_that_must_say_how_they_are_spread(kind, constraints, fields, policy, speaks):
    expected = ["3 replicas declare neither spread constraints nor anti-affinity"] if speaks else []
    assert said("spread-required", workload(kind, "app=web", *constraints, **fields), policy=policy) == expected
