"""What a fix does to all replicas, in words."""

import pytest

from webhook.core.what_if.suggestions import PlacedReplicas


@pytest.mark.parametrize(
    ("fewest", "most", "expected"),
    [
        (6, 6, "all 6 replicas then fit in every order"),
        (4, 6, "some orders then place 4 of 6 replicas"),
        (4, 4, "4 of 6 replicas then fit"),
        (3, 4, "3 to 4 of 6 replicas then fit"),
    ],
)
def test_what_all_orders_come_to(fewest, most, expected):
    assert PlacedReplicas(6, fewest, most).text == expected
