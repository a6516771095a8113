"""A review's facts: each question once, all of one moment, and changes do not wait."""

import pickle

import pytest
from build import cluster, pod_names, running, selector
from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace
from properties.test_discretion import CLUSTER, body, manifests

from webhook.admission_request import decode_review
from webhook.core.api.selectors import compile_selector
from webhook.core.api.storage import Claim
from webhook.core.api.types import ClaimSpec, ObjectMeta
from webhook.core.api.version import RECORDED
from webhook.core.context import Context
from webhook.core.index.remote_index import SEVERAL_REVISIONS, RemoteIndex, answer_all, judge_remotely
from webhook.core.policy.policy import Policy
from webhook.core.review.review import review

WEB = compile_selector(selector("app=web"))


class Noting:
    """Notes what it is asked."""

    def __init__(self, of):
        self.of, self.asked = of, []

    def all(self, questions):
        self.asked += [name for name, _, _ in questions]
        return answer_all(self.of, questions)


def test_each_question_is_asked_once():
    ask = Noting(cluster("z1: a=2 b=1"))
    facts = RemoteIndex(ask)
    for _ in range(2):
        assert sum(facts.pods.count("shop", WEB).values()) == 3
        assert facts.pods.count("shop", WEB, terminating=True) == facts.pods.count("shop", WEB)
        assert facts.pods.count("batch", WEB) == {}
        assert facts.version == RECORDED
        assert facts.pods.terms_matching("shop", {"app": "web"}) == []  # no key of a dict
        assert facts.pods.terms_matching("shop", {"app": "api"}) == []
        assert facts.volumes.candidates(Claim(metadata=ObjectMeta(name="data"), spec=ClaimSpec())) == ()
    assert ask.asked == [*["pods.count"] * 3, "version", *["pods.terms_matching"] * 2, "volumes.candidates"]


def counting(known, changes):
    """A function that counts the pods twice, between which the next change comes in, and its results."""
    found = []

    def judge(asked):
        first = sum(asked.pods.count("shop", WEB).values())
        if changes:
            known.apply("ADDED", changes.pop(0))
        found.append((first, len(pod_names(asked, "shop"))))
        return found[-1]

    return judge, found


def test_an_object_is_not_judged_anew_for_events_about_others():
    known, seen = cluster("z1: a=2"), []

    def judge(asked):
        pods = sum(asked.pods.count("shop", WEB).values())
        known.apply("ADDED", running(f"new-{len(seen)}", "a", namespace="other"))
        seen.append((pods, len(pod_names(asked, "shop"))))
        return seen[-1]

    assert judge_remotely(judge, Noting(known)) == (2, 2)
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("changes", "expected"), [pytest.param(0, [(2, 2)], id="none"), pytest.param(1, [(2, 3), (3, 3)], id="one")]
)
def test_changes_while_an_object_is_judged_afar(changes, expected):
    known = cluster("z1: a=2")
    judge, found = counting(known, [running(f"new-{number}", "a") for number in range(changes)])
    assert judge_remotely(judge, Noting(known)) == expected[-1]
    assert found == expected


def test_afar_changes_do_not_wait():
    known, seen = cluster("z1: a=2"), []

    def judge(asked):
        seen.append(sum(asked.pods.count("shop", WEB).values()))
        known.apply("ADDED", running(f"new-{len(seen)}", "a"))
        return asked.nodes.get(f"asked for the first time: {len(seen)}")

    assert judge_remotely(judge, Noting(known)) is None
    assert seen == [2, 3, 4]


def elsewhere(facts):
    """The facts in another process, which has no index to ask."""
    made = RemoteIndex(None)
    made.known = pickle.loads(pickle.dumps(facts.known))  # noqa: S301 what was pickled here
    return made


@pytest.mark.slow
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(manifests)
def test_the_same_facts_give_the_same_decision_elsewhere(written):
    asked, facts = decode_review(body(written)), RemoteIndex(Noting(CLUSTER))
    here = Context(policy=Policy(), version=RECORDED, index=facts)
    decision = review(asked, here)
    assert review(asked, replace(here, index=CLUSTER)) == decision
    before = dict(facts.known)
    assert review(asked, replace(here, index=elsewhere(facts))) == decision
    assert facts.known == before


class Mixed(Noting):
    """Answers some questions together at several moments, as a server does that answers others in between."""

    def __init__(self, of, times):
        super().__init__(of)
        self.times = times

    def all(self, questions):
        if len(questions) == 1:
            return super().all(questions)
        self.times -= 1
        revision, answers = super().all(questions)
        return revision if self.times < 0 else SEVERAL_REVISIONS, answers


@pytest.mark.parametrize(("times", "asked"), [(0, 1), (1, 2), (9, 2)])
def test_answers_of_several_moments_are_compared_once_more(times, asked):
    known = cluster("z1: a=2")
    judge, found = counting(known, [running("late", "a")])
    mixed = Mixed(known, times)
    assert judge_remotely(judge, mixed) == (3, 3)
    assert (len(found), times - mixed.times) == (2, asked)
