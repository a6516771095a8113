"""Required affinity and anti-affinity between pods."""

import pytest
from build import apart, cluster, namespace, pod, running, selector
from msgspec.structs import replace

from webhook.core.api.types import (
    Affinity,
    LabelSelector,
    LabelSelectorRequirement,
    PodAffinity,
    PodAffinityTerm,
    WeightedPodAffinityTerm,
)
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.scheduler.cycle import Cycle
from webhook.core.scheduler.plugins.status import OK, PASSES, Status
from webhook.core.scheduler.problem import take

LONELY = Status("UnschedulableAndUnresolvable", reasons=("node(s) didn't match pod affinity rules",))
OWN = Status("Unschedulable", reasons=("node(s) didn't match pod anti-affinity rules",))
EXISTING = Status("Unschedulable", reasons=("node(s) didn't satisfy existing pods anti-affinity rules",))


def term(select, key=ZONE, *, within=None, namespaces=None):
    wanted = None if select is None else selector(select)
    chosen = None if within is None else selector(within)
    return PodAffinityTerm(label_selector=wanted, topology_key=key, namespace_selector=chosen, namespaces=namespaces)


def near(*terms):
    return Affinity(pod_affinity=PodAffinity(required=terms))


def verdict_of(index, affinity=None, labelled="app=web"):
    return Cycle(take(index, pod(labelled, affinity=affinity))).verdict_of("InterPodAffinity")


def told(index, affinity=None, labelled="app=web"):
    verdict = verdict_of(index, affinity, labelled)
    return [verdict.status(name) for name in sorted(verdict.nodes.slots)]


@pytest.mark.parametrize(
    ("spread", "affinity", "statuses"),
    [
        pytest.param("z1: a=1 b=0 | z2: c=0", near(term("app=web")), [OK, OK, LONELY], id="near pods of a zone"),
        pytest.param("z1: a=1 b=0", near(term("app=web", HOSTNAME)), [OK, LONELY], id="near pods of a host"),
        pytest.param("z1: a=0 | b=0", near(term("app=web")), [OK, LONELY], id="the first of its kind needs the key"),
        pytest.param("z1: a=0", near(term("app=api")), [LONELY], id="nobody to be near to"),
        pytest.param("z1: a=1", near(term("app=web"), term("tier=x")), [LONELY], id="one pod must match all terms"),
        pytest.param("z1: a=1", near(term(None)), [LONELY], id="a null selector matches nobody"),
        pytest.param("z1: a=1 | z2: b=0", apart(term("app=web")), [OWN, OK], id="apart by zone"),
        pytest.param("a=1 b=0", apart(term("app=web")), [OK, OK], id="apart by a key that nodes lack"),
        pytest.param("z1: a=1", apart(term("app=web", namespaces=("batch",))), [OK], id="apart in another namespace"),
        pytest.param("z1: a=1", apart(term("app=web", within="{}")), [OWN], id="apart in all namespaces"),
        pytest.param(
            "z1: a=1", apart(term("app=web", within="team=red")), [OWN], id="apart in the namespaces of a team"
        ),
        pytest.param("z1: a=1", apart(term("app=web", within="team=blue")), [OK], id="apart in those of another"),
    ],
)
def test_terms_of_the_incoming_pod(spread, affinity, statuses):
    index = cluster(spread)
    index.apply("ADDED", namespace(labelled="team=red"))
    assert told(index, affinity) == statuses


@pytest.mark.parametrize(
    ("of", "labelled", "status"),
    [
        pytest.param(term("app=web"), "app=web", EXISTING, id="selected"),
        pytest.param(term("app=web"), "app=api", OK, id="not selected"),
        pytest.param(term("app"), "app=api", EXISTING, id="selected by a key"),
        pytest.param(term("{}"), "app=api", EXISTING, id="everybody"),
        pytest.param(term(None), "app=web", OK, id="nobody"),
        pytest.param(term("app=web", within="team=red"), "app=web", EXISTING, id="selected in a namespace"),
        pytest.param(term("app=web", within="team=blue"), "app=web", OK, id="not selected in another"),
        pytest.param(term("app=web", namespaces=("batch",)), "app=web", OK, id="of another namespace"),
        pytest.param(term("app=web", "rack"), "app=web", OK, id="by a key that nodes lack"),
    ],
)
def test_terms_of_existing_pods(of, labelled, status):
    index = cluster("z1: a=0 b=0 | z2: c=0")
    index.apply("ADDED", namespace(labelled="team=red"))
    keeper = running("keeper", "a", "app=db", affinity=apart(of))
    index.apply("ADDED", keeper)
    assert told(index, labelled=labelled) == [status, status, OK]
    leaving = replace(keeper, metadata=replace(keeper.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
    index.apply("MODIFIED", leaving)
    assert told(index, labelled=labelled) == [status, status, OK]  # a terminating pod still keeps others away
    index.apply("DELETED", leaving)
    assert told(index, labelled=labelled) == [OK, OK, OK]


def test_a_pod_without_terms_that_nobody_rejects_skips_the_plugin():
    assert verdict_of(cluster("z1: a=1")).pre_filter == PASSES.pre_filter


def test_the_order_of_reasons():
    index = cluster("z1: a=1")
    index.apply("ADDED", running("keeper", "a", "app=db", affinity=apart(term("app=web"))))
    assert told(index, apart(term("app=web"))) == [OWN]
    both = Affinity(
        pod_affinity=PodAffinity(required=(term("app=none"),)),
        pod_anti_affinity=apart(term("app=web")).pod_anti_affinity,
    )
    assert told(index, both) == [LONELY]


def test_selectors_that_cannot_be_read():
    broken = PodAffinityTerm(
        label_selector=LabelSelector(match_expressions=(LabelSelectorRequirement(key="a", operator="Near"),)),
        topology_key=ZONE,
    )
    text = 'requiredAffinityTerms: "Near" is not a valid label selector operator'
    verdict = verdict_of(cluster("z1: a=1"), near(broken))
    assert verdict.pre_filter == Status("UnschedulableAndUnresolvable", reasons=(f"parsing pod: {text}",))
    weighted = PodAffinity(preferred=(WeightedPodAffinityTerm(weight=1, pod_affinity_term=broken),))
    both = Affinity(pod_affinity=PodAffinity(required=(broken,)), pod_anti_affinity=weighted)
    preferred = 'preferredAntiAffinityTerms: "Near" is not a valid label selector operator'
    assert verdict_of(cluster("z1: a=1"), both).pre_filter.reasons == (f"parsing pod: [{text}, {preferred}]",)
    index = cluster("z1: a=0")
    index.apply("ADDED", running("x", "a", "app=x", affinity=apart(broken, term("app=web"))))
    assert told(index) == [OK]  # of an existing pod, one such term takes all of them along
