import gzip
import json
from itertools import islice
from pathlib import Path

import pytest

from webhook.cli.commands.conformance import as_text, comparison_exit_code, comparisons_as_json
from webhook.cli.main import main
from webhook.conformance.vectors import Comparison, Difference, VectorError, compare_file, differences
from webhook.core.api.version import KubernetesVersion

VECTORS = Path(__file__).parent.parent.parent / "conformance" / "vectors"


FILES = sorted(str(file.relative_to(VECTORS)) for file in VECTORS.rglob("*.jsonl.gz"))


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_we_agree_with_the_recorded_verdicts(name):
    agrees(VECTORS / name)


@pytest.mark.parametrize("name", FILES)
def test_we_agree_with_one_recorded_verdict_in_ten(name, tmp_path):
    with gzip.open(VECTORS / name) as lines:
        tenth = b"".join(islice(lines, 0, None, 10))
    file = tmp_path / "tenth.jsonl"
    file.write_bytes(tenth)
    agrees(file)


def agrees(file):
    for comparison in compare_file(file):
        assert comparison.first == ()
        assert comparison.agree == (comparison.cases if comparison.supported else 0)


@pytest.mark.parametrize(
    ("expected", "got", "places"),
    [
        pytest.param({}, {"a": 1}, [], id="what is not expected is not compared"),
        pytest.param({"a": None}, {}, [], id="absent is null"),
        pytest.param({"a": {"b": 1}}, {"a": {"b": 2, "c": 3}}, ["a.b"], id="a field of a field"),
        pytest.param({"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 1}, {"b": 3}]}, ["a[1].b"], id="an entry"),
        pytest.param({"a": [1]}, {"a": (1, 2)}, ["a"], id="lists of other lengths"),
        pytest.param({"a": []}, {"a": None}, ["a"], id="no list"),
        pytest.param({"a": 1, "b": 2}, {"a": 2, "b": 1}, ["a", "b"], id="two places"),
        pytest.param({"a": True}, {"a": 1}, ["a"], id="true is not 1"),
        pytest.param({"a": 100}, {"a": 100.0}, [], id="one number"),
    ],
)
def test_only_what_is_expected_is_compared(expected, got, places):
    assert [where for where, _, _ in differences(expected, got)] == places


POD = {"kind": "Pod", "apiVersion": "v1", "spec": {"topologySpreadConstraints": [{"maxSkew": 0}]}}
FIRST = {"type": "FieldValueInvalid", "field": "spec.topologySpreadConstraints[0].maxSkew"}
REQUIRED = {"type": "FieldValueRequired"}
ERRORS = [FIRST, REQUIRED, {"detail": 'supported values: "DoNotSchedule", "ScheduleAnyway"'}]


def vectors(tmp_path, *lines, name="some.jsonl"):
    path = tmp_path / name
    text = "".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def case(scenario, expected, **more):
    return {"scenario": {"id": "x", **scenario}, "expected": expected, **more}


@pytest.mark.parametrize(
    ("line", "where"),
    [
        pytest.param(case({"object": POD}, {"errors": ERRORS}, note="partial"), None, id="errors by type and field"),
        pytest.param(case({"object": POD}, {"errors": ERRORS[:2]}), "errors", id="too few errors"),
        pytest.param(case({"object": POD}, {"errors": [REQUIRED, *ERRORS[1:]]}), "errors[0].type", id="another type"),
        pytest.param(
            case({"object": POD | {"spec": 5}}, {"errors": [], "warnings": [], "topologySpreadConstraints": None}),
            "decodeError",
            id="a whole record without a decodeError has none",
        ),
        pytest.param(case({"object": POD | {"spec": 5}}, {"errors": []}), None, id="a partial one does not say"),
        pytest.param(
            case({"object": POD | {"x": 5}}, {"errors": ERRORS, "warnings": [], "topologySpreadConstraints": [{}]}),
            "strictWarnings",
            id="a whole record without strictWarnings has none",
        ),
        pytest.param(case({"object": {"kind": "Foo"}}, {"errors": []}), "errors", id="a kind that nobody recorded"),
        pytest.param(
            case({"args": {"defaultingType": "x"}}, {"errors": [{"field": "defaultingType"}]}), None, id="args"
        ),
        pytest.param(case({"args": {"x": 1}}, {"args": {}, "errors": []}), "args", id="args that cannot be decoded"),
        pytest.param(case({"yaml": "defaultingType: List\n"}, {"args": {"defaultingType": "List"}}), None, id="YAML"),
        pytest.param(case({}, {"args": {"defaultingType": "System"}}), None, id="no args"),
        pytest.param({"scenario": {}, "expected": {"id": ""}}, None, id="no id"),
        pytest.param(' { "scenario" : {"args": {} } ,\t"expected":{ "errors": [] }}\n', None, id="spaces"),
    ],
)
def test_one_case(tmp_path, line, where):
    (comparison,) = compare_file(vectors(tmp_path, line))
    assert [difference.where for difference in comparison.first] == ([where] if where else [])
    assert comparison.agree == (0 if where else 1)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("a: [\n", "yaml: line 1: did not find expected node content", id="a flow list left open"),
        pytest.param("{a: b\n", "yaml: line 1: did not find expected ',' or '}'", id="a flow mapping left open"),
        pytest.param("\t a\n", "yaml: found character that cannot start any token", id="a tab"),
        pytest.param(
            "a: 1\nb: c: d\n", "yaml: line 2: mapping values are not allowed in this context", id="two colons"
        ),
        pytest.param("x: *a\ny: [\n", "yaml: unknown anchor 'a' referenced", id="an unknown anchor"),
        pytest.param("x: .inf\n", "yaml: JSON has no infinity and no not-a-number", id="infinity, in words of our own"),
    ],
)
def test_yaml_that_cannot_be_read_is_refused_in_go_yamls_words(tmp_path, text, fault):
    (comparison,) = compare_file(vectors(tmp_path, case({"yaml": text}, {"decodeError": fault})))
    assert comparison.first == ()


def test_the_first_ten_differences_are_kept(tmp_path):
    lines = [{"scenario": {"id": str(i)}, "expected": {"args": None}} for i in range(12)]
    (comparison,) = compare_file(vectors(tmp_path, *lines))
    assert [difference.id for difference in comparison.first] == [str(i) for i in range(10)]
    assert (comparison.cases, comparison.agree) == (12, 0)


def test_kinds_are_counted_apart_and_unknown_ones_not_compared(tmp_path):
    lines = [case({"object": POD}, {}), "\n", case({"pod": {}}, {}), case({"plugin": "X"}, {}), case({"nodes": []}, {})]
    comparisons = compare_file(vectors(tmp_path, *lines, name="some.jsonl.gz"), {"validate": lambda *_: {}})
    assert [
        (comparison.kind, comparison.cases, comparison.agree, comparison.supported) for comparison in comparisons
    ] == [
        ("validate", 1, 1, True),
        ("verdict", 3, 0, False),
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("", "it contains no vectors", id="empty"),
        pytest.param("{\n", "1: no vector: Expecting value", id="cut off"),
        pytest.param("[]\n", "1: no vector: no '{' at character 0", id="no object"),
        pytest.param('{"scenario" {}}\n', "1: no vector: no ':' at character 12", id="no colon"),
        pytest.param('{"scenario":{}}\n', "1: no vector: it lacks 'expected'", id="no expected"),
        pytest.param(
            '{"scenario":{"id":5},"expected":{}}\n',
            "1: no vector: Expected `str`, got `int`",
            id="an id that is a number",
        ),
    ],
)
def test_a_file_that_holds_no_vectors(tmp_path, text, fault):
    path = vectors(tmp_path, text)
    with pytest.raises(VectorError) as caught:
        compare_file(path)
    assert fault in str(caught.value)
    assert str(caught.value).startswith(str(path))


def test_a_file_that_cannot_be_opened(tmp_path):
    with pytest.raises(VectorError, match="No such file or directory"):
        compare_file(tmp_path / "gone")
    broken = tmp_path / "broken.gz"
    broken.write_bytes(gzip.compress(b"x" * 1000)[:20])
    with pytest.raises(VectorError, match="end-of-stream"):
        compare_file(broken)


GOOD = case({"object": POD}, {"errors": ERRORS})
BAD = case({"object": POD}, {"warnings": ["w"]})
VERDICT = case({"pod": {}}, {"fits": False, "message": "no nodes available to schedule pods"})


@pytest.mark.parametrize(
    ("others", "code"),
    [
        pytest.param([Comparison(file="f", kind="args", cases=1, agree=1, first=())], 0, id="some were not compared"),
        pytest.param([], 1, id="nothing was compared"),
    ],
)
def test_a_kind_that_cannot_be_decided_never_counts_as_agreeing(others, code):
    comparisons = [*others, Comparison(file="f", kind="tides", cases=2, agree=0, first=(), supported=False)]
    assert comparison_exit_code(comparisons, unreadable=False) == code
    assert "f: tides: not supported yet; 2 cases were not compared" in as_text(comparisons)


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        pytest.param([GOOD], 0, id="all agree"),
        pytest.param([GOOD, BAD], 1, id="one differs"),
        pytest.param([GOOD, VERDICT], 0, id="two kinds agree"),
        pytest.param(["{"], 3, id="unreadable"),
    ],
)
def test_exit_codes(tmp_path, capsys, lines, code):
    assert main(["conformance", str(vectors(tmp_path, *lines))]) == code
    shown = capsys.readouterr()
    assert (VERDICT in lines) is ("verdict: 1 of 1 cases agree" in shown.out)
    assert (code == 3) is ("no vector" in shown.err)


def test_json_output(tmp_path, capsys):
    path = vectors(tmp_path, BAD)
    assert main(["conformance", "-o", "json", str(path)]) == 1
    assert json.loads(capsys.readouterr().out) == [
        {
            "file": str(path),
            "kind": "validate",
            "cases": 1,
            "agree": 0,
            "first": [{"id": "x", "where": "warnings", "expected": ["w"], "got": []}],
            "supported": True,
            "release": "1.37",
        }
    ]


def test_a_file_names_its_release(tmp_path):
    newer, older = (
        case({"object": POD | {"kind": "StatefulSet", "apiVersion": "apps/v1", "spec": {"template": POD}}}, expected)
        for expected in ({"errors": [{}, {}, {}]}, {"errors": []})
    )
    path = vectors(tmp_path, newer, {"kubernetesVersion": "v1.33.13"}, older, {"kubernetesVersion": "v1.34.4"}, newer)
    comparisons = compare_file(path)
    assert [(each.release, each.cases, each.agree) for each in comparisons] == [
        ("1.37", 1, 1),
        ("1.33", 1, 1),
        ("1.34", 1, 1),
    ]
    assert ": validate as Kubernetes 1.33: 1 of 1 cases agree" in as_text(comparisons)
    (as_one,) = compare_file(path, as_version=KubernetesVersion(1, 33))
    assert (as_one.release, as_one.cases, as_one.agree) == ("1.33", 3, 1)


@pytest.mark.parametrize(("asked", "code"), [([], 0), (["--kube-version", "1.33"], 0), (["--kube-version", "1.34"], 1)])
def test_the_release_of_a_file_may_be_told(tmp_path, capsys, asked, code):
    line = case(
        {"object": POD | {"kind": "StatefulSet", "apiVersion": "apps/v1", "spec": {"template": POD}}}, {"errors": []}
    )
    named = [] if asked else [{"kubernetesVersion": "v1.33.13"}]
    assert main(["conformance", *asked, str(vectors(tmp_path, *named, line))]) == code
    assert f"as Kubernetes {'1.34' if code else '1.33'}: " in capsys.readouterr().out


def test_a_release_that_is_not_supported(tmp_path):
    with pytest.raises(VectorError, match=r"1: no vector: Kubernetes 1\.29 is not supported. Use 1\.31 to 1\.37"):
        compare_file(vectors(tmp_path, {"kubernetesVersion": "v1.29.6"}))


def test_text_output():
    difference = Difference("case-7", "errors[0].text", "x" * 500, None)
    comparisons = [
        Comparison(file="v.gz", kind="validate", cases=3000, agree=2999, first=(difference,)),
        Comparison(file="w.gz", kind="verdict", cases=5, agree=0, first=(), supported=False),
    ]
    assert as_text(comparisons).splitlines() == [
        "v.gz: validate: 2999 of 3000 cases agree (99.96 %)",
        "  case-7: errors[0].text",
        '    expected "' + "x" * 399 + "...",
        "    got      null",
        "w.gz: verdict: not supported yet; 5 cases were not compared",
        "2999 of 3000 compared cases agree; 5 cases were not compared",
    ]
    assert comparisons_as_json([]) == "[]"
    assert as_text(comparisons[:1]).endswith("2999 of 3000 compared cases agree")
