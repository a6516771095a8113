"""SpreadGroups on pages: the list, and one with its caps, its plan, its fields and what would repair it."""

import msgspec
import pytest
from build import cluster, running
from console.reading import read
from console.scans import EVERYTHING
from core.groups.grouped import zones
from core.groups.status.stands import THREE, members, placed, told
from msgspec.structs import replace

from webhook.core.api.spread_group import SpreadGroup
from webhook.core.groups.status.forms import GroupWithStatus, Unguarded

# Three shards of two pods; in a zone fewer than half of them.
SIX = zones(2, 2, 2)


def group(status, name="redis", namespace="shop"):
    spec = {
        "selector": {"matchLabels": {"app": "redis"}},
        "shard": {"label": "shard"},
        "expected": {"shards": 3, "podsPerShard": 2},
    }
    meta = {"name": name, "namespace": namespace}
    return GroupWithStatus(msgspec.convert({"metadata": meta, "spec": spec}, SpreadGroup), status)


def held():
    return told(THREE, cluster(SIX))


def broken():
    """``a: 0 1 2 | b: - | c: -``: one pod too many in a zone, and all three without the fields."""
    index = cluster(SIX)
    pods = [running(f"redis-{each}-0", f"a{each % 2}", f"app=redis shard={each}") for each in range(3)]
    for each in pods:
        index.apply("ADDED", each)
    return told(THREE, index, members(), pods)


def console(browse, *groups):
    return browse(replace(EVERYTHING, groups=groups))


def test_those_with_a_broken_cap_come_first(browse):
    page = read(console(browse, group(held(), "fine"), group(broken(), "worse")).get("/groups"))
    assert page.rows == [
        "Group There is a plan All pods fit No order gets stuck Every cap holds All workloads have the plan's fields",
        "worse in shop yes yes yes no no",
        "fine in shop yes yes yes yes no",
    ]
    assert "/group?namespace=shop&name=worse" in page.links


def test_a_group_shows_its_caps_its_plan_and_its_fields(browse):
    index = cluster(SIX)
    first = told(THREE, index, members())
    status = told(THREE, index, members(status=first), placed(index, first, a0="0", b0="0"), first)
    page = read(console(browse, group(status)).get("/group?namespace=shop&name=redis"))
    text = " ".join(page.texts["content"].split())
    assert "SpreadGroup in shop · 3 shards of 2 pods" in text
    assert "What is wrong" not in text
    assert "At most 2 pods in a zone Pods in each domain a 1 b 1 c 0 maxSkew 2 would not keep the cap: of" in text
    assert "of 6 pods in 3 zones, 3 could be in one." in text
    assert "No order gets stuck yes: zones do not affect one another, and each has room for its own pods" in text
    assert page.rows[-3:] == ["redis-0 ● ● no", "redis-1 ● no ●", "redis-2 no ● ●"]
    assert "StatefulSet redis-0 YAML spec: template: spec: topologySpreadConstraints: - " in text
    assert "minDomains: 1000000" in text


def test_a_broken_cap_shows_what_would_repair_it(browse):
    page = read(console(browse, group(broken())).get("/group?namespace=shop&name=redis"))
    text = " ".join(page.texts["content"].split())
    assert "What is wrong 1 node has up to 2 pods, at most 1; zone a 3 pods, at most 2" in text
    assert "redis-2-0 a b at most 2 in a zone" in page.rows
    assert "3 pods without the plan's fields: redis-0-0, redis-1-0, redis-2-0" in text


def test_names_are_text_and_lists_are_cut(browse):
    status = broken()
    workload = status.workloads[0]
    many = replace(
        status,
        workloads=tuple(replace(workload, name=f"<b>{number}") for number in range(90)),
        unguarded=Unguarded(count=700, pods=("<i>",)),
    )
    answer = console(browse, group(many, "<script>")).get("/group?namespace=shop&name=%3Cscript%3E")
    page = read(answer)
    assert not any(each in answer.text for each in ("<b>0", "<i>", "<script>"))
    assert answer.text.count("<details>") == 20
    assert "The status of the SpreadGroup lists the fields of 70 more workloads." in page.texts["content"]
    assert "700 pods without the plan's fields: <i> …" in page.texts["content"]


@pytest.mark.parametrize("address", ["/group", "/group?namespace=shop&name=nobody", "/group?name=redis"])
def test_a_group_that_is_not_there_is_said_so(browse, address):
    assert console(browse, group(held())).get(address).status_code == 404


def test_a_group_that_nobody_has_planned_yet_has_a_page(browse):
    """No condition is there, no spec could be read."""
    status = replace(held(), conditions=(), workloads=(), distribution=())
    none = GroupWithStatus(SpreadGroup(metadata=group(status).group.metadata), status)
    page = read(console(browse, none).get("/group?namespace=shop&name=redis"))
    assert page.texts["content"].startswith("redis SpreadGroup in shop The plan")
    assert (
        "redis in shop not known not known not known not known not known"
        in read(console(browse, none).get("/groups")).rows
    )


@pytest.mark.parametrize(
    ("groups", "text"),
    [((), "There is no SpreadGroup."), (None, "SpreadGroups are unknown.")],
    ids=["none", "a file"],
)
def test_an_empty_list_says_why(browse, groups, text):
    page = read(browse(replace(EVERYTHING, groups=groups)).get("/groups"))
    assert text in page.texts["nothing"]
