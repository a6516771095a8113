"""What a URL asks for."""

import pytest

from webhook.console.query import Only, Query, Sort, address, link, number, read_query


@pytest.mark.parametrize(
    ("given", "read"),
    [
        pytest.param({}, Query(), id="nothing"),
        pytest.param(
            {"q": " web ", "only": "pending", "sort": "skew", "page": "3", "key": "zone"},
            Query(text="web", only=Only.PENDING, sort=Sort.SKEW, page=3, key="zone"),
            id="everything",
        ),
        pytest.param({"only": "nice", "sort": "x", "page": "0"}, Query(), id="what nobody knows"),
        pytest.param({"page": "-1"}, Query(), id="a page before the first"),
        pytest.param({"page": "99999999999999999999"}, Query(), id="a page that cannot be"),
        pytest.param({"page": "٣"}, Query(), id="a digit of another script"),
        pytest.param({"q": "x" * 1000}, Query(text="x" * 256), id="a text without end"),
    ],
)
def test_it_is_read_and_bounded(given, read):
    assert read_query(given) == read


def test_an_address_has_what_is_not_as_by_default():
    query = Query(text="a b&c", sort=Sort.NAME)
    assert address("/workloads", query) == "/workloads?q=a+b%26c&sort=name"
    assert address("/workloads", query, page=2, text="") == "/workloads?sort=name&page=2"
    assert address("/workloads", Query()) == "/workloads"


def test_a_link_may_name_anything():
    assert link("/workload", {"name": '"><script>'}) == "/workload?name=%22%3E%3Cscript%3E"


@pytest.mark.parametrize(
    ("text", "read"), [("7", 7), ("1000", 1000), ("1001", None), ("", None), ("1e3", None), ("+1", None)]
)
def test_a_number_is_bounded(text, read):
    assert number(text, most=1000) == read
