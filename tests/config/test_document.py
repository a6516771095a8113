import textwrap

import pytest

from webhook.config import ConfigError
from webhook.config.document import MAX_CONFIG_LEVELS, read_config_document

BOMB = "\n".join(["a0: &a0 [x, x, x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)])
MERGE_BOMB = "\n".join(
    ["a0: &a0 {x: 1}"] + [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 9)]
)
# Each level lies within the depth of the text, all of them together do not.
TALL = "\n".join(["a0: &a0 [x]"] + [f"a{n}: &a{n} [[[[[[[[[[*a{n - 1}]]]]]]]]]]" for n in range(1, 9)])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("a: 1\nb: [x, 0x10, 1.5, true, ~]", {"a": 1, "b": ["x", 16, 1.5, True, None]}, id="scalars"),
        pytest.param("a: off\nb: 'off'", {"a": False, "b": "off"}, id="off is a boolean in YAML 1.1"),
        pytest.param("a: 2027-03-31", {"a": "2027-03-31"}, id="a date stays text"),
        pytest.param("a: !!str 1\nc: =", {"a": "1", "c": "="}, id="tags that say text"),
        pytest.param("---\na: 1\n---\n# nothing more\n", {"a": 1}, id="an empty document after it"),
        pytest.param("a: 1\r\nb: 2\r\n", {"a": 1, "b": 2}, id="Windows line ends"),
        pytest.param("x: &a [1, 2]\ny: *a", {"x": [1, 2], "y": [1, 2]}, id="an alias"),
        pytest.param(
            "x: &a {b: 1, c: 2}\ny: {<<: *a, c: 3}",
            {"x": {"b": 1, "c": 2}, "y": {"b": 1, "c": 3}},
            id="a merge key gives what the mapping does not say itself",
        ),
        pytest.param(
            "x: {<<: [{a: 1}, {a: 2, b: 2}]}", {"x": {"a": 1, "b": 2}}, id="the earlier of two merged mappings wins"
        ),
        pytest.param("a\n", "a", id="no mapping at all is still a value"),
    ],
)
def test_a_document_is_read_as_kubernetes_reads_it(text, value):
    assert read_config_document(text, file="p.yaml").value == value


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param("", ["1:1: the file is empty; it needs at least apiVersion and kind"], id="empty"),
        pytest.param("# a\n---\n", ["1:1: the file is empty; it needs at least apiVersion and kind"], id="comments"),
        pytest.param(
            "a: 1\n---\nb: 2",
            ["3:1: a second YAML document starts here; the file must hold one SpreadPolicy"],
            id="two documents",
        ),
        pytest.param(
            "a: 1\nb: {c: 1,\n  c: 2}\na: 3",
            [
                "3:3: b.c: duplicate key; the first is on line 2",
                "4:1: a: duplicate key; the first is on line 1",
            ],
            id="every duplicate key",
        ),
        pytest.param(
            "a:\n\tb: 1",
            ["2:1: not YAML: found character that cannot start any token; YAML is indented with spaces, not tabs"],
            id="a tab",
        ),
        pytest.param("a: @b", ["1:4: not YAML: found character that cannot start any token"], id="no tab to blame"),
        pytest.param("a: [", ["2:1: not YAML: did not find expected node content"], id="half a list"),
        pytest.param("a: b\nc: d\x07e", ["2:5: not YAML: a control character"], id="a control character"),
        pytest.param("a: *b", ["1:4: the alias *b has no anchor before it"], id="an alias of nothing"),
        pytest.param("a: &a [*a]", ["1:8: the alias *a has no anchor before it"], id="an alias inside its anchor"),
        pytest.param("? [a]\n: b", ["1:3: a key must be a plain name, not a mapping or a list"], id="a list as a key"),
        pytest.param("a: {<<: 1}", ["1:9: a: << can only merge mappings"], id="merging a number"),
        pytest.param("a: .inf", ["1:4: a: must be a finite number, is .inf"], id="infinity"),
        pytest.param("a: !!int x", ['1:4: a: must be a valid !!int, is "x"'], id="a tag that is not true"),
        pytest.param("a: !!bool x", ['1:4: a: must be a valid !!bool, is "x"'], id="a boolean that is none"),
        pytest.param("a: !!int ''", ['1:4: a: must be a valid !!int, is ""'], id="an integer without digits"),
        pytest.param(
            "a: !!python/name:os.system x",
            ['1:4: a: unknown YAML tag "tag:yaml.org,2002:python/name:os.system"'],
            id="a tag that would run code",
        ),
        pytest.param(
            "[" * 200_000, [f"1:52: nested deeper than {MAX_CONFIG_LEVELS} levels"], id="brackets without end"
        ),
        pytest.param(TALL, ["1:5: aliases nest deeper than 50 levels"], id="a tower of aliases"),
        pytest.param(BOMB, ["1:10: more than 100000 values with all aliases expanded"], id="an alias bomb"),
        pytest.param(
            MERGE_BOMB, ["1:5: more than 100000 values with all aliases expanded"], id="an alias bomb of merge keys"
        ),
    ],
)
def test_what_cannot_be_read_is_said_with_its_place(text, lines):
    with pytest.raises(ConfigError) as raised:
        read_config_document(text, file="p.yaml")
    assert raised.value.render().split("\n") == [f"p.yaml:{line}" for line in lines]


def test_every_value_knows_its_place():
    text = textwrap.dedent("""\
        a:
          - b: 1
            c.d/e: x
        """)
    document = read_config_document(text, file="p.yaml")
    assert document.places["a", 0, "b"] == (2, 8)
    assert document.keys["a", 0, "c.d/e"] == (3, 5)
    assert document.written == {("a", 0, "b"): "1"}


@pytest.mark.parametrize(
    ("path", "line"),
    [
        pytest.param(("a", 0, "b"), "p:2:8: a[0].b: bad", id="the value"),
        pytest.param(("a", 0, "x", "y"), "p:2:5: a[0].x.y: bad", id="what is absent, at the mapping where it belongs"),
        pytest.param(("a", 0, "c.d/e"), "p:3:12: a[0][c.d/e]: bad", id="a key that is no plain name"),
        pytest.param(("a", 0, "q\n" + "r" * 99), f"p:2:5: a[0][q\\n{'r' * 61}…]: bad", id="a key is shown bounded"),
        pytest.param((), "p:1:1: bad", id="the file as a whole"),
    ],
)
def test_a_fault_is_shown_at(path, line):
    document = read_config_document("a:\n  - b: 1\n    c.d/e: x\n", file="p")
    assert document.fault(path, "bad").render("p") == line
