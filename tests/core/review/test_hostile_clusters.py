"""Small objects beside clusters that were filled to slow reviews down: the event loop is held up for a moment at most.

`python -m bench.hostile_clusters` measures all of them at full size.
"""

import functools
import time

import pytest
from manifest import headline
from msgspec.structs import replace

from bench import hostile_clusters as hostile
from webhook.admission import answer
from webhook.admission_request import decode_review
from webhook.core.budget import Budget, Missing
from webhook.core.policy.defaults import Defaults
from webhook.core.policy.policy import Mode

NODES = 2000
# Milliseconds of processor time. The limit is 3, and what follows the last check takes about one; a busy machine three
# times as long. Without the limit each of these rows takes 40 to 5,000.
MOST = 25


@functools.cache
def beside(*fillings):
    engine = hostile.filled(NODES, fillings)
    return replace(engine, policy=replace(engine.policy, ceiling=Mode.DENY))


OF_OWN, OF_VOLUMES, OF_NAMESPACES, OF_LOWER, OF_SERVICES = (
    (hostile.nodes, each)
    for each in (hostile.own_pods, hostile.volumes, hostile.namespaces, hostile.lower, hostile.services)
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fillings", "name"),
    [
        pytest.param(OF_OWN, "own: update, rack", id="own pods in many racks"),
        pytest.param(OF_OWN, "own: update, rack and row turned", id="own pods in many racks and rows"),
        pytest.param(OF_OWN, "own: Deployment 3, rack", id="own pods of a new Deployment"),
        pytest.param(OF_OWN, "own: update, rack, taints honoured", id="own pods in racks with taints"),
        pytest.param(OF_LOWER, "lower: Pod 1, zone and host", id="nodes reserved for other pods"),
        pytest.param(OF_LOWER, "lower: Deployment 3, priority", id="pods to preempt"),
        pytest.param(OF_NAMESPACES, "limited: Pod 1, zone and host", id="LimitRanges"),
        pytest.param(OF_NAMESPACES, "own: Deployment 3, near all namespaces", id="a pod in each namespace"),
        pytest.param(OF_NAMESPACES, "own: Deployment 3, near many namespaces", id="labels of namespaces"),
        pytest.param(OF_SERVICES, "services: Deployment 3, rack", id="services"),
        pytest.param(OF_VOLUMES, "volumes: Deployment 3, a local claim", id="free volumes"),
        pytest.param(OF_VOLUMES, "volumes: Pod 1, a measured claim", id="published capacity"),
    ],
)
def test_the_event_loop_is_held_up_for_a_moment_at_most(fillings, name):
    took, given = hostile.in_line(beside(*fillings), dict(hostile.cases())[name])
    assert not given.failed
    assert took < MOST


def test_an_ordinary_object_is_judged_beside_ordinary_nodes():
    _, given = hostile.in_line(beside(hostile.services), hostile.review("Pod", "own", hostile.BOTH, 1))
    assert not given.decision.costly


@pytest.mark.parametrize("unjudged", [Missing.BUSY, Missing.CROWDED])
def test_where_no_process_takes_it_a_rule_on_deny_says_that_it_ran_out_of_time(monkeypatch, unjudged):
    monkeypatch.setattr("webhook.core.budget._THREAD_SECONDS", 0)
    body = hostile.review("Deployment", "own", hostile.many_valued("rack"), 3)
    given = answer(
        "validate",
        decode_review(body),
        beside(*OF_OWN),
        now="2026-01-01",
        budget=Budget(clock=time.perf_counter, unjudged=unjudged),
    )
    assert not given.decision.allowed
    assert Missing.TOO_COSTLY.value in given.decision.message


def test_an_old_object_that_ran_out_of_time_excuses_nothing(monkeypatch):
    monkeypatch.setattr("webhook.core.budget._THREAD_SECONDS", 0)
    body = hostile.review("Deployment", "own", hostile.many_valued("rack"), 3, update=True)
    given = answer(
        "validate",
        decode_review(body),
        beside(*OF_OWN),
        now="2026-01-01",
        budget=Budget(clock=time.perf_counter, unjudged=Missing.BUSY),
    )
    assert headline(given.decision) == (
        "Deployment own: too costly to check against this cluster; make the object smaller, or try again "
        "(1 of 15 problems)"
    )


def test_a_process_answers_what_the_event_loop_leaves_to_it():
    body = hostile.review("Deployment", "own", hostile.many_valued("rack"), 3)
    _, here = hostile.in_line(beside(*OF_OWN), body)
    there = answer("validate", decode_review(body), beside(*OF_OWN), now="2026-01-01")
    assert here.decision.costly or here.body == there.body
    assert {each.reason.kind for each in there.decision.not_evaluated}.isdisjoint({Missing.TOO_COSTLY, Missing.BUSY})


POD = hostile.review("Pod", "own", hostile.BOTH | hostile.asking(cpu="200"), 1)
ALWAYS = Defaults(fallback="always")


def mutated(**given):
    engine = beside(*OF_LOWER)
    engine = replace(engine, policy=replace(engine.policy, defaults=ALWAYS))
    began = time.thread_time()
    answered = answer("mutate", decode_review(POD), engine, now="2026-01-01", **given)
    return answered, (time.thread_time() - began) * 1e3


def test_a_fallback_that_takes_long_is_left_to_a_thread():
    answered, took = min(
        (mutated(budget=Budget(clock=time.perf_counter, may_search=False)) for _ in range(3)), key=lambda each: each[1]
    )
    assert answered.decision.costly
    assert took < MOST


def test_a_fallback_that_takes_too_long_even_there_is_none(monkeypatch):
    monkeypatch.setattr("webhook.core.budget._THREAD_SECONDS", 0)
    decision = mutated()[0].decision
    assert (decision.costly, decision.fallback) == (False, None)
