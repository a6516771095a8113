import pytest

from webhook.manifests.reading.positions import find, json_duplicates, json_tree, yaml_tree

YAML = """\
a:
  b.c/d: x
  b: {e: [1, {f: g}]}
  c: &q
    - z: 1
m:
  <<: {k: v}
  n: *q
"""
JSON = '{"a": {"b": [1, {"c": "x{"}, 3], "d": null, "e\\u0066": []}}'


@pytest.mark.parametrize(
    ("path", "text"),
    [
        pytest.param("a.b.c/d", "b.c/d: x", id="a key with dots"),
        pytest.param("a[b.c/d]", "b.c/d: x", id="a key in brackets"),
        pytest.param("a.b.e[1].f", "f: g", id="flow style"),
        pytest.param("a.c[0].z", "z: 1", id="an item of a list"),
        pytest.param("m.n[0].z", "z: 1", id="through an alias"),
        pytest.param("m.k", "k: v", id="through a merge"),
        pytest.param("a.b.e[1].{x, y}", "{f: g}", id="two fields at once"),
        pytest.param("a.b.e[1].missing", "{f: g}", id="a missing field is where it should stand"),
        pytest.param("a.b.e[7]", "e: [1, {f: g}]", id="an item that is not there"),
        pytest.param("a.b.e[1][0]", "{f: g}", id="the odd path of an overlapping matchLabelKeys"),
    ],
)
def test_fields_of_yaml(path, text):
    span = find(yaml_tree(YAML.encode()), path)
    assert YAML[span.start : span.end] == text


@pytest.mark.parametrize(
    ("path", "text"),
    [
        pytest.param("a.b[1].c", '"c": "x{"', id="brackets in text"),
        pytest.param("a.b[2]", "3", id="an item"),
        pytest.param("a.d", '"d": null', id="null"),
        pytest.param("a.ef", '"e\\u0066": []', id="an escaped key"),
        pytest.param("b", JSON, id="nothing of the path"),
    ],
)
def test_fields_of_json(path, text):
    span = find(json_tree(JSON), path)
    assert JSON[span.start : span.end] == text


@pytest.mark.parametrize(
    ("text", "duplicates"),
    [
        pytest.param('{"a": {"b": 1}, "b": 2}', [], id="the same key one level down"),
        pytest.param('{"a": 1, "a": 2}', [("a", 9)], id="the later one"),
        pytest.param('{"x": [{"a": 1, "b": 2, "a": 3}]}', [("a", 24)], id="inside a list"),
        pytest.param('{"<<": 1, "<<": 2}', [("<<", 10)], id="JSON has no merge keys"),
    ],
)
def test_duplicate_keys_of_json(text, duplicates):
    assert json_duplicates(text) == duplicates
