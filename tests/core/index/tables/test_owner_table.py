"""Workloads found by the labels of their templates."""

import pytest
from build import declared, owner, selector
from hypothesis import given
from hypothesis import strategies as st

from webhook.core.api.selectors import NOTHING, compile_selector
from webhook.core.api.types import LabelSelector, LabelSelectorRequirement
from webhook.core.index.cluster_index import ClusterIndex

WORKLOADS = (
    owner("Deployment/web", "app=web", declared("app=web track=stable")),
    owner("Deployment/canary", "app=web track=canary", declared("app=web track=canary")),
    owner("StatefulSet/db", "app=db", declared("app=db")),
    owner("Thing/pair", None, declared("app=db role=leader"), declared("app=db role=worker")),
    owner("Thing/bare", None, declared("")),
    owner("ReplicaSet/web-1", "app=web", above="Deployment/web"),
)


def found(index, text, most=9):
    return [each.meta.name for each in index.owners.matching("shop", compile_selector(selector(text)), most)]


def filled():
    index = ClusterIndex()
    for each in WORKLOADS:
        index.apply("ADDED", each)
    return index


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param("app=web", ["canary", "web"], id="a label"),
        pytest.param("app=web track=canary", ["canary"], id="two labels"),
        pytest.param("app=api", [], id="a label of nobody"),
        pytest.param("role=worker", ["pair"], id="one of two templates, named once"),
        pytest.param("app=web track!=canary", ["web"], id="a label and not another"),
        pytest.param("app!=web", ["db", "bare", "pair"], id="not a label"),
        pytest.param("{}", ["canary", "web", "db", "bare", "pair"], id="everything whose template is known"),
    ],
)
def test_workloads_by_selector(text, names):
    assert found(filled(), text) == names


def test_several_values_of_a_label():
    wanted = LabelSelectorRequirement(key="track", operator="In", values=("canary", "stable"))
    several = compile_selector(LabelSelector(match_expressions=(wanted,)))
    assert [each.meta.name for each in filled().owners.matching("shop", several, 9)] == ["canary", "web"]


def test_no_more_than_asked_for_and_none_of_other_namespaces():
    index = filled()
    assert found(index, "{}", 2) == ["canary", "web"]
    assert index.owners.matching("elsewhere", compile_selector(selector("{}")), 9) == ()
    assert index.owners.matching("shop", NOTHING, 9) == ()


def test_the_order_of_events_does_not_matter():
    for times in range(len(WORKLOADS)):
        index = ClusterIndex()
        for each in (*WORKLOADS[times:], *WORKLOADS[:times]):
            index.apply("ADDED", each)
        assert found(index, "{}", 3) == ["canary", "web", "db"]


def test_the_newest_template_counts():
    index = filled()
    index.apply("MODIFIED", owner("Deployment/web", "app=web", declared("app=web-v2")))
    assert found(index, "app=web") == ["canary"]
    assert found(index, "app=web-v2") == ["web"]
    index.apply("MODIFIED", owner("Deployment/web", "app=web"))
    index.apply("DELETED", WORKLOADS[1])
    index.apply("DELETED", WORKLOADS[1])
    assert found(index, "app") == ["db", "pair"]


LABELS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xyz"))


@given(st.lists(st.tuples(st.sampled_from("123"), st.none() | LABELS), max_size=12), LABELS)
def test_it_finds_what_looking_at_all_of_them_finds(events, wanted):
    index, known = ClusterIndex(), {}
    for name, has in events:
        labelled = " ".join(f"{key}={value}" for key, value in (has or {}).items())
        index.apply("DELETED" if has is None else "MODIFIED", owner(f"Deployment/{name}", None, declared(labelled)))
        known[name] = has
    asked = " ".join(f"{key}={value}" for key, value in wanted.items())
    expected = {name for name, has in known.items() if has is not None and wanted.items() <= has.items()}
    assert set(found(index, asked)) == expected
