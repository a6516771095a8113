"""The smallest changes of a pod's constraints that help it, each proven."""

import pytest
from build import cluster, constraint, pod, running
from msgspec.structs import replace

from webhook.core.api.types import NodeSpec, PodStatus
from webhook.core.api.well_known import HOSTNAME
from webhook.core.changes.candidates import PodFix, pod_fixes
from webhook.core.changes.change import Change
from webhook.core.scheduler.plugins.spread_constraints import SpreadDefaults
from webhook.core.scheduler.problem import take

WEB = "app=web"
SOFT = ("whenUnsatisfiable", "ScheduleAnyway")
HONOR = ("nodeTaintsPolicy", "Honor")


def zone(skew=1, **more):
    return constraint(select=WEB, max_skew=skew, **more)


def host(skew=1, **more):
    return constraint(HOSTNAME, select=WEB, max_skew=skew, **more)


def offered(index, *constraints, **spec):
    """Each fix as (changes..., nodes); a change of the first constraint as (field, value)."""
    found = [*pod_fixes(take(index, pod(WEB, constraints=constraints or None, **spec)))]
    return [(*((each.index, each.field, each.value) for each in fix.changes), fix.nodes) for fix in found]


def first(field, value, nodes, index=0):
    return ((index, field, value), nodes)


@pytest.mark.parametrize(
    ("state", "constraints", "expected"),
    [
        pytest.param(
            "z1: a=1 | z2: ~b=0",
            (zone(),),
            [first(*HONOR, 1), first("maxSkew", 2, 1), first(*SOFT, 1)],
            id="a tainted zone: Honor, then the smallest maxSkew, then giving up",
        ),
        pytest.param(
            "z1: a=4 | z2: b=3 c=0 | z3: ~d=1",
            (zone(),),
            [first(*HONOR, 2), first("maxSkew", 3, 2), first(*SOFT, 3)],
            id="the smallest maxSkew admits the emptiest zone that has a usable node",
        ),
        pytest.param(
            "z1: a=1 | z2: b=1",
            (zone(min_domains=3),),
            [first("minDomains", 2, 2), first("maxSkew", 2, 2), ((0, *SOFT), (0, "minDomains", None), 2)],
            id="more domains than there are; a soft constraint takes no minDomains",
        ),
        pytest.param(
            "z1: a=1 b=0 | z2: ~c=0",
            (zone(), host()),
            [first(*HONOR, 1), first("maxSkew", 2, 1), first(*SOFT, 1)],
            id="of two constraints the one that is in the way",
        ),
        pytest.param(
            "z1: a=1 | z2: ~b=0",
            (zone(), host()),
            [
                ((0, *HONOR), (1, *HONOR), 1),
                ((0, "maxSkew", 2), (1, "maxSkew", 2), 1),
                ((0, *SOFT), (1, *SOFT), 1),
            ],
            id="both where neither alone is enough",
        ),
        pytest.param(
            "z1: a=1 | z2: ~b=0",
            (zone(), zone(3, when="ScheduleAnyway")),
            [first(*HONOR, 1), first("maxSkew", 2, 1), ((0, "", None), 1)],
            id="beside its soft twin a constraint can only go",
        ),
        pytest.param("z1: a=0", (constraint("rack", select=WEB),), [first(*SOFT, 1)], id="a key that no node has"),
        pytest.param("z1: ~a=0 | z2: ~b=0", (zone(),), [], id="no constraint is in the way"),
        pytest.param(
            "z1: a=1 | z2: ~b=0", (constraint(select="app=not/a/value"),), [], id="a selector that cannot be read"
        ),
    ],
)
def test_what_helps(state, constraints, expected):
    assert offered(cluster(state), *constraints) == expected


def test_affinity_may_be_ignored_and_should_not():
    index = cluster("z1: a=1 | z2: b=0 | z3: ~c=5")
    ignoring = zone(node_affinity_policy="Ignore")
    assert offered(index, ignoring, node_selector={"kubernetes.io/hostname": "a"}) == [
        first("nodeAffinityPolicy", "Honor", 1),
        first("maxSkew", 2, 1),
        first(*SOFT, 1),
    ]


def test_a_pod_that_does_not_count_itself_needs_less():
    index = cluster("z1: a=2 | z2: ~b=0")
    assert tuple(pod_fixes(take(index, pod("app=db", constraints=(zone(),))))) == (
        PodFix((Change(0, *HONOR),), 1),
        PodFix((Change(0, "maxSkew", 2),), 1),
        PodFix((Change(0, *SOFT),), 1),
    )


def test_the_clusters_own_constraints_are_nothing_to_change():
    index = cluster("z1: a=1 | z2: ~b=0")
    index.apply("ADDED", running("other", "a"))
    defaults = SpreadDefaults((zone(),))
    problem = take(index, pod(WEB), defaults)
    assert [*pod_fixes(problem)] == []


def test_what_is_offered_holds_beside_nominated_pods():
    index = cluster("z1: a=0 | z2: ~b=0")
    first_in_line = running("first", "")
    status = PodStatus(nominated_node_name="a")
    index.apply("ADDED", replace(first_in_line, spec=replace(first_in_line.spec, node_name=None), status=status))
    assert offered(index, zone()) == [first(*HONOR, 1), first("maxSkew", 2, 1), first(*SOFT, 1)]


def test_a_zone_whose_nodes_are_cordoned():
    index = cluster("z1: a=1 | z2: b=0")
    index.apply("MODIFIED", replace(index.nodes.get("b"), spec=NodeSpec(unschedulable=True)))
    assert offered(index, zone()) == [first("maxSkew", 2, 1), first(*SOFT, 1)]
