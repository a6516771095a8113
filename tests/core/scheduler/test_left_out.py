"""Each filter of the default profile is known once: as evaluated, or by name as left out."""

from build import cluster, pod
from core.scheduler import left_out

from webhook.config.scheduler import CONFIGURABLE_FILTERS
from webhook.core.api.types import ClaimSource as Claimed
from webhook.core.api.types import (
    ClaimTemplate,
    EphemeralSource,
    PodSchedulingGroup,
    ResourceClaim,
    SchedulingGate,
    Volume,
)
from webhook.core.index.tables.namespace_table import ADMISSION_RESOURCES
from webhook.core.scheduler.ephemeral_claims import with_ephemeral_claims
from webhook.core.scheduler.not_evaluated import NOT_ADMITTED, NOT_EVALUATED, OTHER_FILTERS, not_evaluated
from webhook.core.scheduler.plugins.volumes import DRIVER_RESOURCES
from webhook.core.scheduler.problem import FILTERS, take
from webhook.core.scheduler.profile import SchedulerProfile


def test_the_page_has_the_table():
    text = left_out.FILE.read_text()
    assert left_out.with_what_is_left_out(text) == text, "run: make docs"
    assert left_out.table() in text


def test_the_page_says_whom_each_entry_matters_for():
    assert {*left_out.MATTERS_FOR} == {*NOT_EVALUATED, *NOT_ADMITTED}, "MATTERS_FOR in tests/core/scheduler/left_out.py"


def test_a_filter_that_is_evaluated_is_not_left_out_as_well():
    assert {*FILTERS} & {*NOT_EVALUATED} == set(), (
        "take it out of OTHER_FILTERS in webhook/core/scheduler/not_evaluated.py"
    )
    assert sorted(CONFIGURABLE_FILTERS) == sorted({*FILTERS, *OTHER_FILTERS})


def test_each_entry_concerns_some_pod_and_each_concern_is_an_entry():
    everything = pod(
        scheduling_gates=(SchedulingGate(name="g"),),
        scheduling_group=PodSchedulingGroup(pod_group_name="g"),
        resource_claims=(ResourceClaim(name="r"),),
        host_network=True,
        host_users=False,
        volumes=(
            Volume(name="v", persistent_volume_claim=Claimed(claim_name="c")),
            Volume(name="w", ephemeral=EphemeralSource(volume_claim_template=ClaimTemplate())),
        ),
    )
    index = cluster("z1: a=0")
    for resource in DRIVER_RESOURCES.values():
        index.mark_missing(resource, "403 Forbidden")
    index = with_ephemeral_claims(index, everything)
    problems = take(index, everything), take(index, everything, profile=SchedulerProfile())
    concerned = {name for problem in problems for name in not_evaluated(problem)}
    assert concerned == {*NOT_EVALUATED}


def test_what_a_pod_gets_on_creation_is_named_after_the_kinds_that_give_it():
    assert [*NOT_ADMITTED] == [*ADMISSION_RESOURCES, "AdmissionPlugins"]
