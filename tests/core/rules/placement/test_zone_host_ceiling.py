"""`zone-host-ceiling`, each case beside a twin of which it says nothing."""

import pytest
from build import cluster
from core.rules.placement.places import CEILING, HOST, ZONE
from manifest import FIXED, findings_of, told, web
from msgspec.structs import replace


@pytest.mark.slow
@pytest.mark.parametrize(
    ("nodes", "constraints", "replicas", "expected"),
    [
        pytest.param(
            "a: n1 | b: n2 n3 n4 n5",
            [ZONE, HOST],
            6,
            ["warn zones of 1 and 4 nodes hold at most 3 of 6 pods; make hostname ScheduleAnyway"],
            id="zones of 1 and 4",
        ),
        pytest.param("a: n1 | b: n2 n3 n4 n5", [ZONE, HOST], 3, [], id="as many as they hold"),
        pytest.param("a: n1 n2 | b: n3 n4", [ZONE, HOST], 60, [], id="equal zones"),
        pytest.param("a: n1 | b: n2 n3 n4 n5", [ZONE, "hostname soft 1 app=web"], 6, [], id="one of them soft"),
        pytest.param("a: n1 | b: n2 n3 n4 n5", [ZONE, "hostname hard 6 app=web"], 6, [], id="hosts that take all"),
        pytest.param(
            "a: n1 | b: n2 n3 n4 | c: n5 n6 | d: n7 n8 n9 | e: p1",
            [ZONE, HOST],
            9,
            ["warn zones of 1 to 3 nodes hold at most 8 of 9 pods; make hostname ScheduleAnyway"],
            id="many zones",
        ),
        pytest.param(
            "a: n1=1 | b: n2=1 n3 n4 n5",
            [ZONE, HOST],
            6,
            ["warn zones of 1 and 4 nodes hold at most 3 of 6 pods (2 run already); make hostname ScheduleAnyway"],
            id="with two of them running",
        ),
        pytest.param(
            "a: n1 ~n2=2 | b: n3=1",
            [ZONE, HOST],
            6,
            ["warn 2 zones of 1 node hold at most 3 of 6 pods (3 run already); make hostname ScheduleAnyway"],
            id="zones of 1 node",
        ),
        pytest.param(
            "a: n1 n2 | b: n3 n4 n5 | c: ~n6",
            [ZONE, HOST],
            6,
            [],
            id="where the zones alone admit as few",
        ),
        pytest.param("a: n1=3 | b: n2=3 n3 n4 n5", [ZONE, HOST], 5, [], id="where more run than are asked for"),
        pytest.param(
            " | ".join(["a: n0", *(f"z{n}: n{n} m{n}" for n in range(1, 65))]), [ZONE, HOST], 999, [], id="65 zones"
        ),
        pytest.param(
            "a: n1 | b: n2 n3 n4 n5",
            [f"{HOST} keys:pod-template-hash", f"{ZONE} keys:pod-template-hash"],
            6,
            ["warn zones of 1 and 4 nodes hold at most 3 of 6 pods; make hostname ScheduleAnyway"],
            id="each revision by itself",
        ),
    ],
)
def test_zones_of_unequal_size(nodes, constraints, replicas, expected):
    assert told(CEILING, web(*constraints, replicas=replicas), cluster(nodes), FIXED) == expected


def test_hosts_that_share_a_name():
    index = cluster("a: n1 | b: n2 n3 n4 n5")
    twin = index.nodes.get("n5")
    labels = {**twin.labels, "kubernetes.io/hostname": "n4"}
    index.apply("MODIFIED", replace(twin, metadata=replace(twin.metadata, labels=labels)))
    assert told(CEILING, web(ZONE, HOST, replicas=6), index, FIXED) == []


def test_no_fix_without_room():
    small = cluster("a: n1 | b: n2 n3 n4 n5", resources={"cpu": "1", "pods": "110"})
    manifest = web(ZONE, HOST, replicas=6, containers=[{"name": "c", "resources": {"requests": {"cpu": "1"}}}])
    assert told(CEILING, manifest, small, FIXED) == ["warn zones of 1 and 4 nodes hold at most 3 of 6 pods"]


def test_another_constraint_is_made_soft_where_the_first_is_not_enough():
    anti = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [anti]}}
    manifest = web(ZONE, HOST, replicas=5, affinity=affinity)
    assert told(CEILING, manifest, cluster("a: n1 | b: n2 n3 n4 n5"), FIXED) == []  # spread-conflicts-affinity has it
    manifest = web("zone hard 1 app=web minDomains:2", "hostname hard 1 app=web", "hostname soft 1 app=web", replicas=6)
    (finding,) = findings_of(CEILING, manifest, FIXED, index=cluster("a: n1 | b: n2 n3 n4 n5"))
    assert finding.remedy == "remove hostname[1]"
    # Once all fit, the loss of a zone would cost pods: the fix sees to that as well.
    assert finding.fix == "remove the constraint and add nodeTaintsPolicy: Honor in zone[0]"
    assert (finding.edits, finding.by_hand) == ((), "another ScheduleAnyway constraint has the same topologyKey")
