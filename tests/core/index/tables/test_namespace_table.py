"""What admission reads of the cluster, and what is said where it is not known."""

import pytest
from build import index, pod
from core.apiserver.test_admission_plugins import limit_range, priority_class, runtime_class

from webhook.core.api.version import RECORDED
from webhook.core.index.pod_admission import as_admitted, facts_for, refused_by_admission

GIVES = limit_range({"defaultRequest": {"cpu": "1"}})
USUAL = priority_class("usual", 5, globalDefault=True)


def facts(known, **spec):
    return facts_for(pod(**spec), known)


def test_a_pod_gets_what_its_namespace_and_its_classes_give():
    known = index(GIVES, priority_class(), USUAL, runtime_class({"cpu": "1"}))
    found = facts(known, priority_class_name="high", runtime_class_name="boxed")
    assert (found.limit_ranges, found.priority_class.value, found.unknown) == ((GIVES,), 1000, ())
    assert found.runtime_class.overhead.pod_fixed == {"cpu": "1"}
    assert (facts(known).priority_class, facts(known).runtime_class) == (USUAL, None)
    assert known.namespaces.admission_facts("other", "", "").limit_ranges == ()


def test_the_lower_of_two_default_priority_classes_counts():
    known = index(USUAL, priority_class("low", -5, globalDefault=True))
    assert facts(known).priority_class.meta.name == "low"


def test_what_is_deleted_or_changed_gives_nothing_any_more():
    known, boxed = index(GIVES, USUAL, runtime_class({"cpu": "1"})), runtime_class({"cpu": "1"})
    known.apply("MODIFIED", priority_class("usual", 5))
    assert facts(known).priority_class is None
    for each in (GIVES, USUAL, boxed):
        known.apply("DELETED", each)
    found = facts(known, priority_class_name="usual", runtime_class_name="boxed")
    assert (found.limit_ranges, found.priority_class, found.runtime_class) == ((), None, None)


@pytest.mark.parametrize(
    ("lacking", "spec", "unknown", "missing"),
    [
        pytest.param((), {}, (), (), id="all is known"),
        pytest.param(("limitranges",), {}, ("LimitRange",), (), id="ranges are not"),
        pytest.param(("priorityclasses", "runtimeclasses"), {}, ("PriorityClass",), (), id="perhaps a default class"),
        pytest.param(
            *(("priorityclasses", "runtimeclasses"), {"priority_class_name": "x", "runtime_class_name": "y"}),
            *(("PriorityClass", "RuntimeClass"), ()),
            id="nor classes",
        ),
        pytest.param(
            *((), {"priority_class_name": "x", "runtime_class_name": "y"}),
            *(("PriorityClass", "RuntimeClass"), ("PriorityClass", "RuntimeClass")),
            id="no such classes",
        ),
        pytest.param(
            *(("priorityclasses", "runtimeclasses"), {"priority_class_name": "high", "runtime_class_name": "boxed"}),
            *((), ()),
            id="these were seen before",
        ),
    ],
)
def test_what_is_not_known_is_said(lacking, spec, unknown, missing):
    known = index(priority_class(), runtime_class({"cpu": "1"}))
    for resource in lacking:
        known.mark_missing(resource, "403 Forbidden")
    found = facts(known, **spec)
    assert (found.unknown, found.missing) == (unknown, missing)


def test_answers_are_remembered_as_long_as_nothing_changes_and_they_are_few():
    known = index(GIVES)
    assert facts(known) is facts(known)
    first = facts(known)
    known.mark_missing("limitranges", "403 Forbidden")
    assert facts(known).unknown == ("LimitRange",)
    known.mark_known("limitranges")
    assert facts(known) is first
    for number in range(400):
        facts(known, priority_class_name=f"made-up-{number}")
        facts(known, priority_class_name="x" * (500 + number))
    assert len(known.namespaces._answers) <= 256
    known.apply("DELETED", GIVES)
    assert facts(known).limit_ranges == ()


def test_two_ranges_that_disagree_are_not_known():
    other = limit_range({"defaultRequest": {"cpu": "2"}}, name="two")
    assert facts(index(GIVES, other)).unknown == ("LimitRange",)


def test_the_pod_as_the_scheduler_gets_it():
    known = index(priority_class("usual", 5, globalDefault=True))
    assert as_admitted(pod(), known, RECORDED).pod_spec.priority == 5
    assert refused_by_admission(pod(priority=7), known, RECORDED)[0].startswith("the integer value of priority (7)")
