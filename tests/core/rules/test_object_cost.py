"""What an object costs by its size alone, what is written and beside 5,000 nodes: a table, in milliseconds."""

import pytest
from manifest import workload

from webhook.core.api.well_known import POD_INDEX, ZONE
from webhook.core.rules.object_cost import MOST_IN_LINE, cost, is_costly
from webhook.core.workloads.reading import read_workload

REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
SPREAD = ("zone hard 1 app=web", "host soft 1 app=web")


def hard(count):
    return {
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": f"k{number}", "whenUnsatisfiable": "DoNotSchedule"} for number in range(count)
        ]
    }


def on_nodes(operator, terms=1, each=1, values=1):
    one = {"key": "a", "operator": operator, "values": ["1"] * values}
    term = {"matchExpressions": [one] * each, "matchFields": [one]}
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term] * terms}}}}


def near(kind, when, count):
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
    return {"affinity": {kind: {when: [term if when == REQUIRED else {"weight": 1, "podAffinityTerm": term}] * count}}}


def by(key, **more):
    """A term that counts pods by the value of a key."""
    term = {"topologyKey": "zone", "labelSelector": {"matchExpressions": [{"key": key, "operator": "Exists"}]}, **more}
    return {"affinity": {"podAffinity": {REQUIRED: [term]}}}


def spread_by(key, **more):
    return {"topologySpreadConstraints": [{"labelSelector": {"matchLabels": {key: "b"}}, **more}]}


def requesting(count):
    amounts = {f"example.com/r{number}": "1" for number in range(count)}
    return {"containers": [{"name": "c", "ports": [{"containerPort": 1}], "resources": {"requests": amounts}}]}


@pytest.mark.parametrize(
    ("kind", "spec", "nodes", "expected"),
    [
        pytest.param("Pod", {}, 5000, 0.3, id="a pod"),
        pytest.param("Deployment", {}, 5000, 1.7, id="a template"),
        pytest.param("Deployment", {}, 500, 0.2, id="beside 500 nodes"),
        pytest.param("Deployment", {}, 15_000, 1.7, id="beside 15,000 nodes"),
        pytest.param("Pod", hard(4), 5000, 1.6, id="4 hard constraints"),
        pytest.param("Pod", hard(6), 5000, 4.8, id="6 hard constraints"),
        pytest.param("Pod", hard(16), 5000, 85.6, id="16 hard constraints"),
        pytest.param("Pod", near("podAffinity", REQUIRED, 3), 5000, 1.5, id="3 required pod terms"),
        pytest.param("Pod", near("podAntiAffinity", REQUIRED, 15), 5000, 6.5, id="15 required pod terms"),
        pytest.param("Pod", near("podAntiAffinity", PREFERRED, 1000), 5000, 9.3, id="1,000 preferred pod terms"),
        pytest.param("Pod", spread_by("app"), 5000, 0.3, id="pods counted by their app"),
        pytest.param("Pod", spread_by(ZONE), 5000, 10.3, id="pods counted by the label of a zone"),
        pytest.param("Pod", spread_by(ZONE), 50, 0.1, id="beside few nodes"),
        pytest.param("Pod", spread_by("app", matchLabelKeys=[ZONE]), 5000, 10.3, id="by their own zone"),
        pytest.param("Pod", by("app"), 5000, 0.7, id="neighbours by their app"),
        pytest.param("Pod", by(ZONE), 5000, 10.7, id="neighbours by their zone"),
        pytest.param("Pod", by("app", mismatchLabelKeys=[POD_INDEX]), 5000, 10.7, id="by another index"),
        pytest.param("Pod", on_nodes("In", 4, 4), 5000, 0.7, id="16 requirements on nodes"),
        pytest.param(
            "Pod", on_nodes("In", 1, 1, 5000), 5000, 80.3, id="a requirement of 5,000 values, and one of names"
        ),
        pytest.param("Pod", on_nodes("Gt", 11, 10), 5000, 606.3, id="11 terms of 10 comparisons"),
        pytest.param("Pod", {"affinity": {"podAffinity": {}}}, 5000, 0.3, id="no term"),
        pytest.param("Pod", {"affinity": {"nodeAffinity": {}}}, 5000, 0.3, id="no requirement on nodes"),
        pytest.param("Pod", {"nodeSelector": {"a": "b"}}, 5000, 0.3, id="a node selector"),
        pytest.param("Pod", {"tolerations": [{}] * 100}, 5000, 1.3, id="100 tolerations"),
        pytest.param("Pod", requesting(2), 5000, 0.3, id="2 resources"),
        pytest.param("Pod", requesting(32), 5000, 16.8, id="32 resources"),
        pytest.param("Pod", {"volumes": [{"name": "v"}] * 500}, 5000, 3.3, id="500 volumes"),
        pytest.param("Pod", {"volumes": [{"name": "v"}] * 500}, 5, 3.0, id="500 volumes beside few nodes"),
        pytest.param("Pod", {"containers": [{"ports": [{}] * 499}]}, 5, 3.0, id="499 ports beside few nodes"),
        pytest.param(
            "Pod",
            {
                "topologySpreadConstraints": [
                    {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"] * 1000}]}}
                ]
            },
            5000,
            3.3,
            id="1,000 values of a label",
        ),
    ],
)
def test_cost(kind, spec, nodes, expected):
    read = read_workload(workload(kind, "app=web", **{"topologySpreadConstraints": [{"maxSkew": 1}], **spec}))
    assert round(cost(read, nodes) - cost(read, 0), 1) == expected


def spread(count, **more):
    return [{"maxSkew": 1, "topologyKey": f"k{number}", **more} for number in range(count)]


SOFT = {"whenUnsatisfiable": "ScheduleAnyway"}
SEVEN = {"labelSelector": {"matchLabels": {f"l{number}": "x" for number in range(7)}}}


@pytest.mark.parametrize(
    ("constraints", "expected", "costly"),
    [
        pytest.param([], 0, False, id="nothing to look at"),
        pytest.param(spread(1), 0.25, False, id="a constraint"),
        pytest.param(spread(8, **SOFT, **SEVEN), 2.42, False, id="8 with 7 labels each"),
        pytest.param(spread(8, **SOFT, matchLabelKeys=["a"] * 7), 2.42, False, id="8 with 7 keys each"),
        pytest.param(spread(17, whenUnsatisfiable="DoNotSchedule"), 2.65, False, id="too many to look at a cluster"),
        pytest.param(spread(40), 6.1, True, id="40 constraints"),
        pytest.param(spread(129), 19.45, False, id="so many that no rule looks"),
    ],
)
def test_cost_of_what_is_written(constraints, expected, costly):
    read = read_workload(workload("Deployment", "app=web", topologySpreadConstraints=constraints))
    assert round(cost(read, 0), 2) == expected
    assert (is_costly(read, 0), is_costly(read, 5000)) == (costly, costly)


@pytest.mark.parametrize("kind", ["Pod", "Deployment", "StatefulSet"])
def test_what_people_write_is_judged_in_line(kind):
    given = workload(kind, "app=web", *SPREAD, "rack hard 1 app=web", **near("podAntiAffinity", REQUIRED, 2))
    assert cost(read_workload(given), 5000) < MOST_IN_LINE
    assert not is_costly(read_workload(given), 5000)
