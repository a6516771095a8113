"""Other values into the text of a manifest: what is written, and what is refused."""

import pytest

from webhook.core.json_edits import Edit, applied, marked
from webhook.manifests.editing.document_text import TextEdit as Bytes
from webhook.manifests.editing.document_text import UneditableError
from webhook.manifests.editing.proven_edits import ObjectChange, Pieces, edited, value_of
from webhook.manifests.editing.rewriting import rewritten
from webhook.manifests.reading.manifest import read_manifests

HEAD = "apiVersion: v1\nkind: Thing\n"


def after(text, edits):
    """The text with edits of its last object."""
    data = text.encode()
    manifest = [*read_manifests("f", data)][-1]
    before = value_of(manifest)
    asked = [Edit(path, value) for path, value in edits.items()]
    change = ObjectChange(0, applied(before, asked), tuple(rewritten(data, manifest, before, marked(before, asked))))
    new = edited(data, [change])
    again = [*read_manifests("f", new)][-1]
    assert value_of(again) == change.after
    return new.decode()


@pytest.mark.parametrize(
    ("body", "edits", "expected"),
    [
        pytest.param("a: 1  # one\nb: 2\n", {"a": 3}, "a: 3  # one\nb: 2\n", id="a number"),
        pytest.param('a: "1"\n', {"a": 1}, "a: 1\n", id="out of its quotes"),
        pytest.param("a: {v: 1.0}\n", {"a.v": "1.0"}, 'a: {v: "1.0"}\n', id="into quotes"),
        pytest.param("a:   # none\nb: 1\n", {"a": {"x": 1}}, "a: {x: 1}   # none\nb: 1\n", id="in place of nothing"),
        pytest.param("a: null\n", {"a": [1]}, "a: [1]\n", id="in place of null"),
        pytest.param(
            "a:\n  x:\n    v: 1\nb: 1\n", {"a": {"z": 1}}, "a:\n  z: 1\nb: 1\n", id="a field for another of its value"
        ),
        pytest.param("a:\n  x:\n    v: 1\nb: 1\n", {"a": 7}, "a: 7\nb: 1\n", id="in place of a block"),
        pytest.param(
            "a:\n- x: 1\n  v: 2\nb: 1\n", {"a[0].z": 3}, "a:\n- x: 1\n  v: 2\n  z: 3\nb: 1\n", id="a new field"
        ),
        pytest.param(
            "a:\n- x:\n    v: 2 # v\n# b\nb: 1",
            {"a[0].z": "n"},
            'a:\n- x:\n    v: 2 # v\n  z: "n"\n# b\nb: 1',
            id="behind a block",
        ),
        pytest.param("a: |\n  text\nb: 1\n", {"b": 2}, "a: |\n  text\nb: 2\n", id="below a block of text"),
        pytest.param("b: 1\na: >-\n  #t\n", {"b": 2}, "b: 2\na: >-\n  #t\n", id="above a block of text"),
        pytest.param("b: 1\na: |\n  text", {"c": 2}, "b: 1\na: |\n  text\nc: 2", id="behind a block of text"),
        pytest.param(
            "a: |2-\n   x\n\n  y\n\n# b\n", {"b": 2}, "a: |2-\n   x\n\n  y\nb: 2\n\n# b\n", id="behind one with a gap"
        ),
        pytest.param(
            "a:\n- x: 1\n  v: |\n    t\nb: {}\n",
            {"a[0].x": 2, "a[0].z": 3},
            "a:\n- x: 2\n  v: |\n    t\n  z: 3\nb: {}\n",
            id="behind one in a list",
        ),
        pytest.param(
            "a: &t |\n  text\nb: *t\n", {"c": 2}, "a: &t |\n  text\nc: 2\nb: *t\n", id="beside one with an anchor"
        ),
        pytest.param("b: 1\na: |\n  text\n\nc: 2\n", {"a": None}, "b: 1\n\nc: 2\n", id="a block of text goes"),
        pytest.param(
            "b: 1\na: !!str >\n  text\n\n", {"c": 2}, "b: 1\na: !!str >\n  text\nc: 2\n\n", id="behind one with a tag"
        ),
        pytest.param("a: |+\n  x\n\n", {"b": 2}, "a: |+\n  x\n\nb: 2\n", id="behind one that keeps its empty lines"),
        pytest.param(
            "a: |+\r\n  x\r\n\r\n", {"b": 2}, "a: |+\r\n  x\r\n\r\nb: 2\r\n", id="the same with other line ends"
        ),
        pytest.param("a: {x: 1}\n", {"a.v": 2}, "a: {x: 1, v: 2}\n", id="a new field in brackets"),
        pytest.param("a: {}\n", {"a.v": 2}, "a: {v: 2}\n", id="the first in brackets"),
        pytest.param("a:\n  x: 1  # x\n  # v is\n  v: 2\n", {"a.x": None}, "a:\n  # v is\n  v: 2\n", id="a line goes"),
        pytest.param("a:\n- x: 1\n  v: 2\n", {"a[0].x": None}, "a:\n- v: 2\n", id="the first of an item goes"),
        pytest.param(
            "a:\n- x: 1\n  v: 2\n  z: 3\n", {"a[0].x": None, "a[0].v": None}, "a:\n- z: 3\n", id="two of an item"
        ),
        pytest.param(
            "a:\n  x: 1\n  v: 2\n", {"a.v": None, "a.z": 3}, "a:\n  x: 1\n  z: 3\n", id="the last goes, another comes"
        ),
        pytest.param("a: {x: 1, v: 2, z: 3}\n", {"a.x": None, "a.v": None}, "a: {z: 3}\n", id="two in brackets"),
        pytest.param(
            "a: {x: 1, v: 2, z: 3}\n",
            {"a.z": None, "a.v": None, "a.w": 0},
            "a: {x: 1, w: 0}\n",
            id="one for two in brackets",
        ),
        pytest.param("a: {x: 1}\nb: 1\n", {"a.x": None}, "a: {}\nb: 1\n", id="all in brackets"),
        pytest.param("a:\n  x: 1\nb: 1", {"b": None}, "a:\n  x: 1\n", id="the last line of the file"),
        pytest.param("a:\n- 1\n- 2 # two\n- 3\nb: 1\n", {"a[1]": None}, "a:\n- 1\n- 3\nb: 1\n", id="an item goes"),
        pytest.param("a:\n- x: 1\n  v: 2\n- x: 3\n", {"a[0]": None}, "a:\n- x: 3\n", id="an item of two lines"),
        pytest.param("a:\n- 1\n- 2", {"a[1]": None}, "a:\n- 1\n", id="the last line is an item"),
        pytest.param("a:\n- 1\nb: 1\n", {"a[0]": None}, "b: 1\n", id="the last item: the list goes"),
        pytest.param("a: [1, 2, 3]\n", {"a[0]": None, "a[2]": None}, "a: [2]\n", id="items in brackets"),
        pytest.param(
            "a:\n  - x: 1\n",
            {"a[1]": {"x": 2, "v": {"z": "t"}}},
            "a:\n  - x: 1\n  - x: 2\n    v:\n      z: t\n",
            id="a new item",
        ),
        pytest.param(
            "a:\n- {x: 1}\n", {"a[1]": {"x": 2}}, "a:\n- {x: 1}\n- {x: 2}\n", id="a new item like those before"
        ),
        pytest.param("a: [1]\n", {"a[1]": 2, "a[2]": 3}, "a: [1, 2, 3]\n", id="new items in brackets"),
        pytest.param("a: []\n", {"a[0]": 2}, "a: [2]\n", id="the first item"),
        pytest.param(
            "maxskew: 1 # s\nb: 2\n", {"maxskew": None, "maxSkew": 1}, "maxSkew: 1 # s\nb: 2\n", id="another name"
        ),
        pytest.param(
            "a:\r\n  x: 1\r\nb: 1\r\n", {"a.v": 2, "b": 3}, "a:\r\n  x: 1\r\n  v: 2\r\nb: 3\r\n", id="line ends"
        ),
        pytest.param("a:\r\n  x: 1", {"a.v": 2}, "a:\r\n  x: 1\r\n  v: 2", id="the last line ends nowhere"),
        pytest.param("a:\r\n- 1", {"a[1]": 2}, "a:\r\n- 1\r\n- 2", id="the last item ends nowhere"),
        pytest.param("é: 'ü'\na: 1\n", {"a": "ä"}, "é: 'ü'\na: \"ä\"\n", id="letters of several bytes"),
        pytest.param(
            "a: {x: [1, 2], v: {z: 1}}\n",
            {"a.x[0]": None, "a.v.z": 2},
            "a: {x: [2], v: {z: 2}}\n",
            id="inside of brackets",
        ),
        pytest.param("a: b\n  c\nd: 1\n", {"a": "e"}, "a: e\nd: 1\n", id="a text of two lines"),
    ],
)
def test_yaml(body, edits, expected):
    assert after(HEAD + body, edits) == HEAD + expected
    item = "apiVersion: v1\nkind: List\nitems:\n- " + (HEAD + body).replace("\n", "\n  ").rstrip(" ")
    if "\r" not in body:
        wanted = "apiVersion: v1\nkind: List\nitems:\n- " + (HEAD + expected).replace("\n", "\n  ").rstrip(" ")
        assert after(item, edits) == wanted


@pytest.mark.parametrize(
    ("body", "edits", "expected"),
    [
        pytest.param('"a": 1', {"a": "1"}, '"a": "1"', id="a value"),
        pytest.param('"a": {"x": 1}', {"a.v": {"z": 2}}, '"a": {"x": 1, "v": {"z": 2}}', id="a new field"),
        pytest.param('"a": {}', {"a.v": 2}, '"a": {"v":2}', id="the first field"),
        pytest.param('"a":{"x":1,"v":2}', {"a.x": None}, '"a":{"v":2}', id="a field goes"),
        pytest.param('"a": {\n  "x": 1\n }', {"a.v": 2}, '"a": {\n  "x": 1,\n  "v": 2\n }', id="on lines"),
        pytest.param('"a": {\n  "x": 1,\n  "v": 2\n }', {"a.v": None}, '"a": {\n  "x": 1\n }', id="the last line goes"),
        pytest.param('"a": [1, 2, 3]', {"a[1]": None, "a[3]": 4}, '"a": [1, 3, 4]', id="items"),
        pytest.param('"maxskew": 1', {"maxskew": None, "maxSkew": 1}, '"maxSkew": 1', id="another name"),
        pytest.param('"a": ["x"]', {"a[0]": None}, None, id="the last item: the list goes"),
        pytest.param('"a": {"t": "é"}', {"a.t": "ü"}, '"a": {"t": "ü"}', id="letters of several bytes"),
    ],
)
def test_json(body, edits, expected):
    head = '{"apiVersion": "v1", "kind": "Thing"'
    assert after(f"{head}, {body}}}", edits) == (f"{head}, {expected}}}" if expected else f"{head}}}")


def test_json_without_spaces_gets_none():
    text = '{"apiVersion":"v1","kind":"Thing","a":{"x":1}}'
    assert after(text, {"a.v": [1, 2]}) == '{"apiVersion":"v1","kind":"Thing","a":{"x":1,"v":[1,2]}}'


@pytest.mark.parametrize(
    ("body", "edits", "reason"),
    [
        pytest.param(
            "a: &x {v: 1}\nb: *x\n", {"a.v": 2}, "the value has an anchor, a tag or a block of text", id="an anchor"
        ),
        pytest.param(
            "a: &x {v: 1}\nb: *x\n", {"b.v": 2}, "the value comes from an alias or a merge key", id="an alias"
        ),
        pytest.param(
            "a: &x {v: 1}\nb: {<<: *x, z: 1}\n",
            {"b.v": 2},
            "the value comes from an alias or a merge key",
            id="merged",
        ),
        pytest.param("a: !!str 1\n", {"a": 2}, "the value has an anchor, a tag or a block of text", id="a tag"),
        pytest.param(
            "a: |\n  text\nb: 1\n", {"a": 2}, "the value has an anchor, a tag or a block of text", id="a block of text"
        ),
        pytest.param(
            "a:\n  x: 1 # why\n  v: 2\n", {"a": 2}, "the replaced text contains a comment", id="a comment in what goes"
        ),
        pytest.param(
            "a:\n  x: &v 1\nb: *v\n",
            {"a": 2},
            "the replaced text contains an anchor, an alias or a tag",
            id="what another needs",
        ),
        pytest.param(
            "a:\n- x: 1\n  # of v\n  v: 2\n",
            {"a[0].x": None},
            "the removed text contains a comment",
            id="a comment between",
        ),
        pytest.param(
            "a:\n- - 1\n  - 2\n",
            {"a[0][0]": None},
            "an item does not start on its own line",
            id="a list in a list",
        ),
        pytest.param("? a\n: 1\nb: 2\n", {"a": None}, None, id="a key with a question mark"),
        pytest.param("a: '{{ x }}'\nb: 1\n", {"b": 2}, "the file contains '{{', like a Helm template", id="a template"),
        pytest.param(
            "a: {x: 1,\n # v\n v: 2}\n",
            {"a.x": None},
            "the removed text contains a comment",
            id="a comment in brackets",
        ),
    ],
)
def test_what_is_refused(body, edits, reason):
    with pytest.raises(UneditableError) as refused:
        after(HEAD + body, edits)
    assert reason is None or str(refused.value) == reason


def test_edits_of_several_rounds_are_one_diff():
    data = b"one two three"
    pieces = Pieces.of(data).edited([Bytes(4, 7, b"2"), Bytes(8, 13, b"3")])
    pieces = pieces.edited([Bytes(0, 3, b"1"), Bytes(4, 5, b"two"), Bytes(5, 5, b"!")])
    assert pieces.edits() == [Bytes(0, 3, b"1"), Bytes(4, 7, b"two!"), Bytes(8, 13, b"3")]
    assert Pieces.of(data).edits() == []
    assert edited(data, [ObjectChange(0, None, tuple(pieces.edits()))]) == b"1 two! 3"
