import json
from pathlib import Path

import pytest

from webhook.manifests.reading.go_yaml import MAX_YAML_LEVELS, Duplicate, read_document
from webhook.manifests.reading.yaml_scalars import UnreadableDocumentError, is_timestamp

# What sigs.k8s.io/yaml v1.6.0 and apimachinery v0.37.1 made of each text.
RECORDED = [
    json.loads(line) for line in (Path(__file__).parents[2] / "testdata" / "go-yaml.jsonl").read_text().splitlines()
]


@pytest.mark.parametrize("case", [case for case in RECORDED if "value" in case], ids=lambda case: repr(case["yaml"]))
def test_values_are_those_of_kubernetes_clients(case):
    # Compared as JSON text: 1 and True are equal in Python, and so are 1 and 1.0.
    assert json.dumps(read_document(case["yaml"].encode()).value, sort_keys=True) == json.dumps(
        case["value"], sort_keys=True
    )


@pytest.mark.parametrize("case", [case for case in RECORDED if "error" in case], ids=lambda case: repr(case["yaml"]))
def test_what_kubernetes_clients_refuse_is_refused(case):
    with pytest.raises(UnreadableDocumentError):
        read_document(case["yaml"].encode())


@pytest.mark.parametrize(
    ("written", "read"),
    [
        pytest.param("9" * 200_000, "9" * 200_000, id="no number of Go's"),
        pytest.param("0" * 5000 + "7", 7, id="zeros"),
        pytest.param("0b-" + "1" * 5000, "0b-" + "1" * 5000, id="bits"),
        pytest.param("9" * 300, 1e300, id="a float"),
    ],
)
def test_numbers_of_many_digits_end_no_run(written, read):
    assert read_document(f"a: {written}".encode()).value == {"a": read}


@pytest.mark.parametrize(
    ("text", "message", "index"),
    [
        pytest.param("a: [b\n", "did not find expected ',' or ']' while parsing a flow sequence", 6, id="open list"),
        pytest.param("a: *x", "unknown anchor 'x' referenced", 3, id="alias without anchor"),
        pytest.param("a: &x [*x]", "anchor 'x' value contains itself", 7, id="an anchor inside itself"),
        pytest.param("? [a]\n: b", "a list cannot be a key", 4, id="list as key"),
        pytest.param("~: b", "null cannot be a key", 0, id="null as key"),
        pytest.param(
            "99999999999999999999: b\n18446744073709551615: c",
            "a number beyond 64 bits cannot be a key",
            24,
            id="uint64 as key",
        ),
        pytest.param("a: .inf", "JSON has no infinity and no not-a-number", 3, id="infinity"),
        pytest.param("a: !!int x", "cannot decode !!str `x` as a !!int", 3, id="tag that does not fit"),
        pytest.param("a: !!binary '='", "!!binary value contains invalid base64 data", 3, id="not base64"),
        pytest.param(
            "a: {<<: 1}", "map merge requires map or sequence of maps as the value", 8, id="merge of a number"
        ),
        pytest.param(
            "a: [b?c]",
            "Kubernetes' clients read '?' in flow style as the start of a key; quote the text",
            4,
            id="? in flow style",
        ),
        pytest.param("é: \x07", "control characters are not allowed", 3, id="control character, counted in characters"),
        pytest.param("\ufeffa: \x07", "control characters are not allowed", 3, id="a byte-order mark is not counted"),
    ],
)
def test_refusals_say_why_and_where(text, message, index):
    with pytest.raises(UnreadableDocumentError) as refused:
        read_document(text.encode())
    assert (refused.value.message, refused.value.index) == (message, index)


@pytest.mark.parametrize(
    ("text", "duplicates"),
    [
        pytest.param("a: 1\nb: 2\na: 3", (Duplicate("a", 10),), id="the later one is reported"),
        pytest.param("x: {a: 1, a: 2, a: 3}", (Duplicate("a", 10), Duplicate("a", 16)), id="each later one"),
        pytest.param('1: a\n"1": b', (Duplicate("1", 5),), id="the same once it is JSON"),
        pytest.param("a: &x {b: 1}\nc: {<<: *x, b: 2}", (), id="overriding a merge is no duplicate"),
        pytest.param("a: &x {b: 1}\nc: {<<: *x, b: 2, b: 3}", (Duplicate("b", 31),), id="but twice beside a merge is"),
        pytest.param("a: 1\nb: {a: 2}", (), id="the same key one level down"),
    ],
)
def test_duplicate_keys_are_reported_and_the_last_one_wins(text, duplicates):
    assert read_document(text.encode()).duplicates == duplicates


@pytest.mark.parametrize(
    ("text", "value", "trailing"),
    [
        pytest.param("a: 1\n", {"a": 1}, None, id="nothing behind"),
        pytest.param("a: 1\n...\n# end\n", {"a": 1}, None, id="an explicit end"),
        pytest.param("a: 1\n...\nb: 2\n", {"a": 1}, 9, id="a second document without separator"),
        pytest.param("{a: 1} }", {"a": 1}, 7, id="one bracket too many"),
    ],
)
def test_what_no_client_reads_is_reported(text, value, trailing):
    reading = read_document(text.encode())
    assert (reading.value, reading.trailing) == (value, trailing)


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ("{a: ", "}"), ("- ", "")])
def test_depth_is_bounded(opening, closing):
    assert read_document((opening * MAX_YAML_LEVELS + "x" + closing * MAX_YAML_LEVELS).encode()).value is not None
    deep = 50_000
    with pytest.raises(UnreadableDocumentError, match=f"nested more than {MAX_YAML_LEVELS} levels deep"):
        read_document((opening * deep + "x" + closing * deep).encode())


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "~", "null"])
def test_a_document_without_content_is_nothing(text):
    assert read_document(text.encode()).value is None


@pytest.mark.parametrize(
    ("text", "timestamp"),
    [
        ("2001-12-14", True),
        ("2001-1-2", True),
        ("2001-13-01", False),
        ("2001-02-30", False),
        ("2001-12-14t21:59:43.10-05:00", True),
        ("2001-12-14 21:59:43", True),
        ("2001-12-14 25:59:43", False),
        ("0000-01-01", True),
        ("yesterday", False),
    ],
)
def test_dates(text, timestamp):
    assert is_timestamp(text) is timestamp
