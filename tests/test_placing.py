"""What our search says of all orders of recorded worlds, against Kubernetes' own filters; `make placing` asks more.

Recorded by ``python -m conformance.placing ORACLE --record SEED COUNT``.
"""

from collections import Counter

import pytest

from conformance.claims.referee import Recorded, Unasked, read_cases
from conformance.placing import groups
from conformance.placing.__main__ import RECORDED, differences
from conformance.placing.worlds import FAMILIES


@pytest.mark.slow
def test_every_order_ends_as_with_kubernetes_own_filters():
    families = Counter()
    for of, answers in read_cases(RECORDED):
        assert not differences(of, Recorded(answers)), of["id"]
        families[of["id"].split("/")[0]] += 1
    assert families.keys() == FAMILIES.keys()


@pytest.mark.parametrize("field", ["fewest", "most", "left"])
def test_a_wrong_answer_is_noticed(field):
    of, answers = next(case for case in read_cases(RECORDED) if case[0]["id"].startswith("rollout"))
    wrong = {digest: {**answer, field: answer.get(field, 0) + 1} for digest, answer in answers.items()}
    assert differences(of, Recorded(wrong)).keys() == {field}


@pytest.mark.slow
def test_every_order_places_all_pods_of_a_derived_plan():
    """Of groups: `conformance.placing.groups` asks the real filters, and is run again where a plan changes."""
    answers = [answers for _, answers in read_cases(groups.RECORDED)]
    for shape, recorded in zip(groups.SHAPES, answers, strict=True):
        assert groups.is_kept(groups.planned(shape), Recorded(recorded), groups.evades_on(shape))[0], groups.name_of(
            shape
        )


def test_a_plan_that_was_not_recorded_is_noticed():
    with pytest.raises(Unasked):
        groups.is_kept(groups.planned(groups.SHAPES[0]), Recorded({}))
