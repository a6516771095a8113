"""Counts as SVG."""

import re
import xml.etree.ElementTree as ET

import pytest

from webhook.console.pages.pictures import bar, column


def shapes(picture):
    """``pods 0+50 | limit 50``: what is drawn, in percent of the width."""
    drawn = []
    for each in ET.fromstring(picture):  # noqa: S314 our own
        at = each.attrib
        drawn.append(f"{at['class']} {at['x']}+{at['width']}" if "width" in at else f"{at['class']} {at['x1']}")
    return " | ".join(drawn)


@pytest.mark.parametrize(
    ("pods", "settings", "drawn"),
    [
        pytest.param(2, {"full": 4}, "pods 0+50", id="half of it"),
        pytest.param(0, {"full": 0}, "pods 0+0", id="nothing of nothing"),
        pytest.param(2, {"full": 4, "least": 1, "limit": 3}, "pods 0+50 | least 25 | limit 75", id="below the limit"),
        pytest.param(
            4, {"full": 4, "least": 0, "limit": 1}, "pods 0+25 | above 25+75 | least 0 | limit 25", id="above it"
        ),
        pytest.param(4, {"full": 4, "others": 3}, "pods 0+25 | others 25+75", id="most of it of other workloads"),
        pytest.param(
            4,
            {"full": 4, "limit": 3, "others": 2},
            "pods 0+50 | others 50+25 | above 75+25 | limit 75",
            id="of others and above it",
        ),
        pytest.param(
            4, {"full": 4, "limit": 1, "others": 2}, "pods 0+25 | above 25+75 | limit 25", id="its own are above it"
        ),
        pytest.param(1, {"full": 3, "limit": 3}, "pods 0+33.33 | limit 100", id="the limit at the end"),
    ],
)
def test_a_bar(pods, settings, drawn):
    assert shapes(bar(pods, **settings)) == drawn


@pytest.mark.parametrize(
    ("pods", "full", "high", "drawn"),
    [(3, 3, False, ("pods", 24)), (1, 3, False, ("pods", 8)), (3, 3, True, ("above", 24)), (0, 0, False, ("pods", 1))],
)
def test_a_column(pods, full, high, drawn):
    [shape] = ET.fromstring(column(pods, full=full, high=high))  # noqa: S314 our own
    assert (shape.attrib["class"], float(shape.attrib["height"])) == drawn
    assert float(shape.attrib["y"]) + float(shape.attrib["height"]) == 24


def test_pictures_carry_no_style():
    assert re.findall(r"style|fill=|stroke=", bar(3, full=3, limit=1) + column(1, full=1, high=True)) == []
