"""The order of removals of recorded cases, against the controllers' own code; `make removals` compares more.

Recorded by ``python -m conformance.removals PROGRAM --record SEED COUNT``.
"""

import gzip
import json

import pytest

from conformance.removals.__main__ import RECORDED, differences


def recorded():
    with gzip.open(RECORDED, "rt") as lines:
        for line in lines:
            pair = json.loads(line)
            yield pair["case"], pair["answer"]


def test_controllers_remove_pods_in_our_order():
    numbers = 0
    for case, answer in recorded():
        assert not differences(case, answer), case["id"]
        numbers += 1
    assert numbers == 300


def wrong_less(answer):
    first, second = answer["active"][:2]
    after = answer["less"][first]
    return {
        **answer["less"],
        first: [each for each in after if each != second] if second in after else [*after, second],
    }


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        pytest.param("active", lambda answer: answer["active"][1:], id="active pods"),
        pytest.param("ordinals", lambda answer: dict.fromkeys(answer["ordinals"], 99), id="ordinals"),
        pytest.param("less", wrong_less, id="which of two pods"),
        pytest.param("replicaSet", lambda answer: answer["replicaSet"][1:], id="a set that did not come out"),
        pytest.param("replicaSet", lambda answer: [*answer["replicaSet"], "stranger"], id="a set that is not allowed"),
        pytest.param("job", lambda answer: answer["job"][1:], id="a set of a Job that did not come out"),
    ],
)
def test_a_wrong_answer_is_noticed(field, wrong):
    case, answer = next(
        (case, answer) for case, answer in recorded() if case["tries"] == 0 and len(answer["active"]) == 3
    )
    assert differences(case, {**answer, field: wrong(answer)}).keys() == {field}
