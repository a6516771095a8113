"""The largest skew that a scale-in can leave, from the counts of today."""

import pytest
from report.test_scanned import skew

from webhook.core.scan.actual_skew import worst_after_scale_in


@pytest.mark.parametrize(
    ("fields", "worst"),
    [
        pytest.param({"domains": {"a": 3, "b": 3, "c": 3}}, 3, id="one zone keeps its pods, another loses all"),
        pytest.param({"domains": {"a": 3, "b": 3}, "others": {"a": 1, "b": 1}}, 2, id="other workloads' pods stay"),
        pytest.param({"domains": {"a": 3, "b": 2}, "others": {"b": 2}}, 2, id="other pods are the minimum"),
        pytest.param({"domains": {"a": 3}}, 0, id="a single domain has no skew"),
        pytest.param({"domains": {"a": 3}, "min_domains": 2}, 3, id="fewer domains than minDomains"),
        pytest.param({"domains": {"a": 3}, "empty": 7}, 3, id="empty domains that are not listed"),
        pytest.param({"domains": {}}, 0, id="no domain"),
    ],
)
def test_the_worst_skew(fields, worst):
    assert worst_after_scale_in(skew(**fields)) == worst
