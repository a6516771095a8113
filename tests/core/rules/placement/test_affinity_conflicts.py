"""`spread-conflicts-affinity`: what keeps pods out of domains that count, each beside a twin that does not."""

import pytest
from build import NAMESPACE, cluster, filled
from build import running as running_pod
from manifest import FIXED, PLAIN, examined, findings_of, pods_term, said, template, told, web, workload
from msgspec.structs import replace

from webhook.core.api.storage import (
    Claim,
    PersistentVolume,
    PersistentVolumeSpec,
    StorageClass,
    VolumeNodeAffinity,
)
from webhook.core.api.types import ClaimSpec, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, ObjectMeta
from webhook.core.api.well_known import BIND_COMPLETED
from webhook.core.api.well_known import ZONE as ZONE_KEY
from webhook.core.policy.policy import Messages
from webhook.core.review.messages import WARNING_CHARS, warnings_of

CONFLICTS = "spread-conflicts-affinity"
ZONE, HOST = "zone hard 1 app=web", "hostname hard 1 app=web"
IGNORE = " nodeAffinityPolicy:Ignore"
IN_A = {"nodeSelector": {ZONE_KEY: "a"}}
DATA = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
IN_ZONE_A = {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE_KEY, "operator": "In", "values": ["a"]}]}]}
BOTH_POLICIES = "set nodeAffinityPolicy and nodeTaintsPolicy: Honor"
OUTSIDE_C = {
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE_KEY, "operator": "NotIn", "values": ["c"]}]}]
            }
        }
    }
}
AFFINITY = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": IN_ZONE_A}}}


APART, NEAR = pods_term("podAntiAffinity", "hostname"), pods_term("podAffinity", "zone")


@pytest.mark.parametrize(
    ("nodes", "constraints", "fields", "expected"),
    [
        pytest.param(
            "a: n1 | b: n2 | c: n3",
            [ZONE + IGNORE],
            {"replicas": 3, **IN_A},
            ["warn at most 1 of 3 fit: node selector allows 1 of 3 zones; remove zone[0]"],
            id="a node selector that leaves nothing to spread over",
        ),
        pytest.param(
            "a: n1 | b: n2 | c: n3",
            [ZONE + IGNORE],
            {"replicas": 3, **OUTSIDE_C},
            ["warn at most 2 of 3 fit: node affinity allows 2 of 3 zones; set nodeAffinityPolicy: Honor"],
            id="a selector that leaves two zones",
        ),
        pytest.param(
            "a: n1 | b: n2 | c: n3 | d: ~n4",
            [ZONE + IGNORE],
            {"replicas": 3, **OUTSIDE_C},
            [f"warn at most 2 of 3 fit: node affinity allows 2 of 4 zones; {BOTH_POLICIES}"],
            id="a zone that is not selected and a tainted one: both changes are needed",
        ),
        pytest.param("a: n1 | b: n2 | c: n3", [ZONE], {"replicas": 3, **IN_A}, [], id="Honor"),
        pytest.param(
            "a: n1 | b: n2 | c: n3",
            [ZONE + IGNORE],
            {"replicas": 3, **AFFINITY},
            ["warn at most 1 of 3 fit: node affinity allows 1 of 3 zones; remove zone[0]"],
            id="node affinity",
        ),
        pytest.param(
            "a: n1 | b: n2", ["zone hard 3 app=web" + IGNORE], {"replicas": 3, **IN_A}, [], id="maxSkew for all"
        ),
        pytest.param(
            "a: n1 | b: n2 | c: n3",
            [f"{ZONE} minDomains:3"],
            {"replicas": 3, **IN_A},
            ["warn at most 1 of 3 fit: node selector allows 1 zone, and minDomains is 3; remove zone[0]"],
            id="minDomains",
        ),
        pytest.param(
            "a: n1 | b: n2 | c: n3",
            [f"{ZONE} minDomains:3"],
            {"replicas": 3, "nodeSelector": {"kubernetes.io/os": "linux"}},
            [],
            id="a node selector that no node meets: it is not the constraint",
        ),
        pytest.param(
            "a: n1 n2 | b: n3 | c: n4",
            [f"{ZONE} minDomains:1000000"],
            {"replicas": 3, **IN_A},
            ["warn at most 1 of 3 fit: node selector allows 1 zone, and minDomains is 1000000; remove zone[0]"],
            id="minDomains as a cap is left alone",
        ),
        pytest.param(
            "a: n1 | b: n2 n3 n4 n5",
            [ZONE],
            {"replicas": 5, **APART},
            ["warn at most 3 of 5 fit: anti-affinity limits one zone to 1 pod; make zone ScheduleAnyway"],
            id="anti-affinity over hosts",
        ),
        pytest.param("a: n1 | b: n2 n3 n4 n5", [ZONE], {"replicas": 3, **APART}, [], id="places enough"),
        pytest.param("a: n1 | b: n2 n3", [ZONE], {"replicas": 4, **APART}, [], id="as few without the constraint"),
        pytest.param(
            "a: n1 | b: n2 n3",
            [ZONE],
            {"replicas": 4, **pods_term("podAntiAffinity", "zone")},
            [],
            id="one pod a zone in any case",
        ),
        pytest.param(
            "a: n1 | b: n2 n3 n4 n5",
            [ZONE],
            {"replicas": 5, **pods_term("podAntiAffinity", "hostname", "other")},
            [],
            id="anti-affinity to others",
        ),
        pytest.param(
            "a: n1 | b: n2",
            [ZONE],
            {"replicas": 5, **NEAR},
            ["warn at most 1 of 5 fit: pod affinity keeps all pods together; make zone ScheduleAnyway"],
            id="pod affinity to itself",
        ),
        pytest.param(
            "a: n1=1 | b: n2",
            [ZONE],
            {"replicas": 5, **NEAR},
            ["warn at most 1 of 5 fit (1 runs already): pod affinity allows 1 of 2 zones"],
            id="pod affinity to those that run",
        ),
        pytest.param(
            "a: ~n1 | b: n2 | c: n3",
            [ZONE + IGNORE],
            {"replicas": 3, "nodeSelector": {ZONE_KEY: "b"}},
            ["warn at most 1 of 3 fit: node selector allows 1 of 3 zones; remove zone[0]"],
            id="a tainted zone beside one that is not selected",
        ),
        pytest.param(
            "a: ~n1 | b: n2 | c: n3",
            [ZONE],
            {"replicas": 3, **pods_term("podAntiAffinity", "hostname", "other")},
            [],
            id="only a tainted zone: tainted-nodes-counted has it",
        ),
        pytest.param(
            " | ".join(f"z{n}: n{n}" for n in range(65)),
            [ZONE],
            {"replicas": 3, **pods_term("podAffinity", "hostname")},
            [],
            id="too many hosts to be together on",
        ),
        pytest.param(
            "n1 | b: n2",
            [ZONE],
            {"replicas": 3, "nodeSelector": {"kubernetes.io/hostname": "n1"}},
            [],
            id="no key: topology-key-partial has it",
        ),
    ],
)
def test_conflicts(nodes, constraints, fields, expected):
    assert told(CONFLICTS, web(*constraints, **fields), cluster(nodes), FIXED) == expected


def test_what_it_says_at_length():
    found = examined(
        web(ZONE + IGNORE, replicas=3, **OUTSIDE_C), FIXED, index=cluster("a: n1 | b: n2 | c: n3")
    ).findings
    (finding,) = (each.finding for each in found if each.finding.rule == CONFLICTS)
    assert finding.path == "spec.template.spec.topologySpreadConstraints[0].nodeAffinityPolicy"
    assert finding.detail == (
        "at most 2 of 3 fit with zone[0] (maxSkew 1): node affinity allows 2 of 3 zones, and zone c stays at 0"
    )
    assert finding.fix == "set nodeAffinityPolicy: Honor and add nodeTaintsPolicy: Honor"
    (warning,) = warnings_of([finding])
    assert warning == (
        "evenspread/spread-conflicts-affinity: at most 2 of 3 fit: node affinity allows 2 of 3 zones;"
        " nodeAffinityPolicy: Honor"
    )
    assert len(warning) <= WARNING_CHARS


def volume(zone):
    """The claim ``data`` and its volume, which is in one zone."""
    term = NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key=ZONE_KEY, operator="In", values=(zone,)),))
    affinity = VolumeNodeAffinity(required=NodeSelector(node_selector_terms=(term,)))
    bound = ObjectMeta(name="data", namespace=NAMESPACE, annotations={BIND_COMPLETED: "yes"})
    yield Claim(metadata=bound, spec=ClaimSpec(volume_name="pv-1"))
    yield PersistentVolume(metadata=ObjectMeta(name="pv-1"), spec=PersistentVolumeSpec(node_affinity=affinity))


def with_volume(nodes, zone="a"):
    return filled(cluster(nodes), volume(zone))


def test_a_volume_in_one_zone():
    manifest = web(ZONE, replicas=3, **DATA)
    assert told(CONFLICTS, manifest, with_volume("a: n1 | b: n2 | c: n3"), FIXED) == [
        "warn at most 1 of 3 fit: claim data allows 1 of 3 zones; make zone ScheduleAnyway"
    ]
    assert told(CONFLICTS, manifest, with_volume("a: n1 n2 n3"), FIXED) == []
    wide = web("zone hard 3 app=web", replicas=3, **DATA)
    assert told(CONFLICTS, wide, with_volume("a: n1 | b: n2 | c: n3"), FIXED) == []


def test_a_claim_that_nobody_knows():
    manifest = web(ZONE, replicas=3, **DATA)
    index = cluster("a: n1 | b: n2 | c: n3")
    assert said(CONFLICTS, manifest, policy=FIXED, index=index) == ["not evaluated: an unknown PersistentVolumeClaim"]
    index.mark_missing("persistentvolumes", "403 Forbidden")
    assert said(CONFLICTS, manifest, policy=FIXED, index=index) == ["not evaluated: persistentvolumes: 403 Forbidden"]


def test_a_claim_for_one_pod_only_is_in_the_way_itself():
    index = with_volume("a: n1 | b: n2 | c: n3")
    claim = next(volume("a"))
    exclusive = ClaimSpec(volume_name="pv-1", access_modes=("ReadWriteOncePod",))
    index.apply("MODIFIED", Claim(metadata=claim.metadata, spec=exclusive))
    assert told(CONFLICTS, web(ZONE, replicas=3, **DATA), index, FIXED) == []


@pytest.mark.parametrize(
    ("constraints", "remedy", "fix"),
    [
        pytest.param([ZONE], "make zone ScheduleAnyway", "whenUnsatisfiable: ScheduleAnyway", id="a hard one"),
        pytest.param(
            [f"{ZONE} minDomains:2"],
            "make zone ScheduleAnyway",
            "set whenUnsatisfiable: ScheduleAnyway and remove minDomains",
            id="with minDomains",
        ),
        pytest.param([ZONE, "zone soft 1 app=web"], "remove zone[0]", "remove the constraint", id="with a soft twin"),
    ],
)
def test_how_a_constraint_is_made_soft(constraints, remedy, fix):
    (finding,) = findings_of(
        CONFLICTS, web(*constraints, replicas=3, **DATA), FIXED, index=with_volume("a: n1 | b: n2")
    )
    assert (finding.remedy, finding.fix) == (remedy, fix)


@pytest.mark.parametrize(
    ("fields", "room"),
    [
        pytest.param(
            {"hostNetwork": True, "containers": [{"name": "c", "ports": [{"containerPort": 80}]}]}, 2, id="a port"
        ),
        pytest.param({"containers": [{"name": "c", "resources": {"requests": {"cpu": "32"}}}]}, 4, id="processors"),
        pytest.param(APART, 2, id="anti-affinity"),
    ],
)
def test_a_fix_needs_room_on_the_nodes(fields, room):
    index = with_volume("a: n1 n2 | b: n3 | c: n4")
    for replicas, remedy in ((room, "; make zone ScheduleAnyway"), (room + 1, "")):
        manifest = web(ZONE, replicas=replicas, **DATA, **fields)
        (answer,) = told(CONFLICTS, manifest, index, FIXED) or [f"; {remedy}"]
        if replicas > 1:
            assert answer.endswith(f"zones{remedy}")


def test_a_disk_of_the_pod_itself_may_be_in_the_way():
    disk = {"name": "disk", "gcePersistentDisk": {"pdName": "d"}}
    manifest = web(ZONE + IGNORE, replicas=3, **IN_A, volumes=[disk])
    assert told(CONFLICTS, manifest, cluster("a: n1 | b: n2"), FIXED) == []


def test_names_as_configured():
    policy = replace(FIXED, messages=Messages(detail="minimal"))
    (finding,) = findings_of(CONFLICTS, web(ZONE + IGNORE, replicas=3, **IN_A), policy, index=cluster("a: n1 | b: n2"))
    assert finding.detail.endswith("and 1 zone stays at 0")


def test_where_capacity_grows_it_is_a_note():
    manifest = web(ZONE + IGNORE, replicas=3, **IN_A)
    (answer,) = told(CONFLICTS, manifest, cluster("a: n1 | b: n2 | c: n3"), replace(PLAIN, capacity="growing"))
    assert answer.startswith("audit at most 1 of 3 fit")


def stateful(nodes, volumes, *constraints, running=0, lacks=None, made_by=None, **fields):
    """What is said of a StatefulSet whose first volumes are in these zones, ``a a b``; ``-`` is a claim without one."""
    index = cluster(nodes)
    for ordinal, zone in enumerate(volumes.split()):
        claim, made = volume(zone)
        name, behind = f"data-web-{ordinal}", f"pv-{ordinal}"
        spec = ClaimSpec() if zone == "-" else ClaimSpec(volume_name=behind)
        index.apply("ADDED", Claim(metadata=replace(claim.metadata, name=name), spec=spec))
        index.apply("ADDED", replace(made, metadata=ObjectMeta(name=behind)))
        if ordinal < running:
            index.apply("ADDED", running_pod(f"web-{ordinal}", f"{zone}1"))
    if lacks:
        index.mark_missing(lacks, "403 Forbidden")
    index.apply(
        "ADDED",
        StorageClass(
            metadata=ObjectMeta(name="late"),
            **{"provisioner": "disks", "volume_binding_mode": "WaitForFirstConsumer", **(made_by or {})},
        ),
    )
    claims = [{"metadata": {"name": "data"}, "spec": {"storageClassName": "late"}}]
    templates = {"volumeClaimTemplates": claims, **fields.pop("spec", {})}
    manifest = workload("StatefulSet", "app=web", *constraints, spec=templates, **fields)
    return told(CONFLICTS, manifest, index, FIXED), said(CONFLICTS, manifest, policy=FIXED, index=index)


NODES = "a: a1 a2 | b: b1 b2 | c: c1 c2"


@pytest.mark.parametrize(
    ("nodes", "volumes", "constraints", "fields", "expected"),
    [
        pytest.param(
            NODES,
            "a a a a a",
            [ZONE],
            {"replicas": 6},
            ["warn at most 2 of 6 fit: volumes hold 5 pods in zone a; make zone ScheduleAnyway"],
            id="volumes of one zone",
        ),
        pytest.param(NODES, "a b c a b c", [ZONE], {"replicas": 6}, [], id="volumes of all zones"),
        pytest.param(NODES, "a a", [ZONE], {"replicas": 6}, [], id="new pods enough for the other zones"),
        pytest.param(NODES, "- - -", [ZONE], {"replicas": 3}, [], id="claims without a volume"),
        pytest.param(NODES, "a a a a a", ["zone hard 6 app=web"], {"replicas": 6}, [], id="a maxSkew that takes them"),
        pytest.param(
            NODES, "a a a a", ["zone hard 1 app=other"], {"replicas": 4}, [], id="pods that it does not count"
        ),
        pytest.param(
            NODES,
            "a a a a",
            [ZONE],
            {"replicas": 4, "running": 2},
            ["warn at most 2 of 4 fit (2 run already): volumes hold 2 pods in zone a; make zone ScheduleAnyway"],
            id="two that run, and two that may not follow",
        ),
        pytest.param(NODES, "a a a a", [ZONE], {"replicas": 4, "running": 4}, [], id="all run"),
        pytest.param(
            "a: a1 | b: b1 | c: ~c1",
            "c c a",
            [ZONE],
            {"replicas": 3},
            [],
            id="volumes on nodes that are tainted: it is not the constraint",
        ),
        pytest.param(
            NODES,
            "a a a",
            [HOST],
            {"replicas": 12},
            [],
            id="volumes that two hosts reach",
        ),
        pytest.param(
            "a: a1 | b: b1 | c: c1",
            "a a a",
            [HOST],
            {"replicas": 3},
            ["warn at most 1 of 3 fit: volumes hold 3 pods in one node; make hostname ScheduleAnyway"],
            id="volumes of one host, not named",
        ),
        pytest.param(
            NODES,
            "a a a a a",
            [ZONE, "hostname hard 9 app=web"],
            {"replicas": 6},
            ["warn at most 2 of 6 fit: volumes hold 5 pods in zone a; make zone ScheduleAnyway"],
            id="two constraints",
        ),
        pytest.param(
            NODES,
            "- - - a a",
            [ZONE],
            {"replicas": 2, "spec": {"ordinals": {"start": 3}}},
            ["warn at most 1 of 2 fit: volumes hold 2 pods in zone a; make zone ScheduleAnyway"],
            id="ordinals that begin later",
        ),
        pytest.param(
            NODES,
            "a",
            [ZONE],
            {"replicas": 2, "nodeSelector": {"kubernetes.io/os": "linux"}},
            [],
            id="a node selector that leaves no zone at all",
        ),
        pytest.param(
            "a: a1 | b: b1 | c: ~c1",
            "c",
            [ZONE + " nodeTaintsPolicy:Honor"],
            {"replicas": 2},
            [],
            id="a volume in a zone that does not count",
        ),
        pytest.param(
            "a: a1 a2 | b: b1 | c: ~c1",
            "a a a",
            [HOST],
            {"replicas": 4},
            [],
            id="a host that is closed, and volumes that two reach: no volume holds a pod on one",
        ),
        pytest.param(NODES, "a a a", [ZONE], {"replicas": 999}, [], id="more than are looked for"),
        pytest.param(
            NODES, "a a a", [ZONE], {"replicas": 3, "spec": {"volumeClaimTemplates": [5]}}, [], id="no claims"
        ),
    ],
)
def test_volumes_of_a_stateful_set(nodes, volumes, constraints, fields, expected):
    found, answers = stateful(nodes, volumes, *constraints, **fields)
    assert found == expected
    assert len(answers) == len(expected)  # and it was evaluated


def test_volumes_that_nobody_may_list():
    assert stateful(NODES, "", ZONE, replicas=3, lacks="persistentvolumes")[1] == [
        "not evaluated: persistentvolumes: 403 Forbidden"
    ]


def test_only_the_pinned_one_of_two_templates_conflicts():
    free, pinned = (template("app=web", ZONE + IGNORE, **spec) for spec in ({}, IN_A))
    ray = workload("RayCluster", "app=web")
    groups = [{"replicas": 7, "template": each} for each in (free, pinned)]
    ray["spec"] = {"headGroupSpec": {"template": template("app=head")}, "workerGroupSpecs": groups}
    answers = examined(ray, FIXED, index=cluster("a: n1 | b: n2 | c: n3"))
    paths = [each.finding.path for each in answers.findings if each.finding.rule == CONFLICTS]
    assert len(paths) == 1
    assert paths[0].startswith("spec.workerGroupSpecs[1].")
