"""Text before and after: the bytes that are added are those between the guillemets."""

import re

import pytest

from webhook.manifests.editing.document_text import UneditableError
from webhook.manifests.editing.insertion import insertion
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.manifest import read_manifests

CONSTRAINTS = [{"maxSkew": 1, "labelSelector": {"matchLabels": {"app": "web"}}, "matchLabelKeys": ["y"]}]


def inserted(text, path="spec", which=0):
    """The text with the addition marked, or the reason why there is none."""
    data = text.encode()
    found = [each for each in read_manifests("f", data) if not isinstance(each, InputFault)]
    try:
        edit = insertion(data, found[which], path, CONSTRAINTS)
    except UneditableError as error:
        return f"refused: {error}"
    return (data[: edit.start] + "«".encode() + edit.text + "»".encode() + data[edit.end :]).decode()


HEAD = "apiVersion: v1\nkind: Pod\n"
ADDED = """\
topologySpreadConstraints:
- maxSkew: 1
  labelSelector:
    matchLabels:
      app: web
  matchLabelKeys:
  - "y\""""


def block(column, text=ADDED, line_break="\n"):
    return "".join(f"{line_break}{' ' * column}{line}" for line in text.split("\n"))


def case(before, after, name):
    return pytest.param(before, after, id=name)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        case("spec:\n  a: 1\n", f"spec:«{block(2)}»\n  a: 1\n", "below the key"),
        case("spec:\n    a: 1\n", f"spec:«{block(4)}»\n    a: 1\n", "the file's own indentation"),
        case("spec: # pods\n  # one\n\n  a: 1\n", f"spec: # pods«{block(2)}»\n  # one\n\n  a: 1\n", "above comments"),
        case("'spec' :\n  a: 1\n", f"'spec' :«{block(2)}»\n  a: 1\n", "a quoted key"),
        case(
            "spec:\r\n  a: 1\r\n", f"spec:«{block(2, line_break=chr(13) + chr(10))}»\r\n  a: 1\r\n", "Windows line ends"
        ),
        case("spec:\n  a: 1", f"spec:«{block(2)}»\n  a: 1", "no line end at the end"),
        case("# é🐙\nspec:\n  a: 1\n", f"# é🐙\nspec:«{block(2)}»\n  a: 1\n", "characters of several bytes above"),
        case("spec:\n  a: [1]\n", f"spec:«{block(2)}»\n  a: [1]\n", "a list in flow style says nothing of indentation"),
        case(
            "spec:\n  a:\n    - 1\n",
            "spec:«" + block(2, ADDED.replace("\n", "\n  ").replace('  - "y', '    - "y')) + "»\n  a:\n    - 1\n",
            "lists to the right of their keys",
        ),
        case(
            "spec:\n  topologySpreadConstraints: [ ]  # none\n  a: 1\n",
            "spec:\n  topologySpreadConstraints«:  # none"
            + block(2, ADDED).removeprefix("\n  topologySpreadConstraints:")
            + "»\n  a: 1\n",
            "an empty list, with a comment",
        ),
        case(
            "spec:\n  topologySpreadConstraints: null  \n",
            "spec:\n  topologySpreadConstraints«:"
            + block(2, ADDED).removeprefix("\n  topologySpreadConstraints:")
            + "»\n",
            "a null",
        ),
        case(
            "spec:\n  topologySpreadConstraints:",
            "spec:\n  topologySpreadConstraints«:"
            + block(2, ADDED).removeprefix("\n  topologySpreadConstraints:")
            + "»",
            "nothing at all, at the end of the file",
        ),
        case("spec: {a: 1}\n", "refused: the pod spec is written in flow style ({…})", "flow style"),
        case(
            "spec: &x\n  a: 1\n",
            "refused: the pod spec has an anchor: the addition would appear at every alias",
            "anchor",
        ),
        case("spec: !!map\n  a: 1\n", "refused: the pod spec has a tag", "tag"),
        case(
            "x: &x {a: 1}\nspec: *x\n",
            "refused: the pod spec has an anchor: the addition would appear at every alias",
            "an alias of an anchor",
        ),
        case("metadata: {}\n", "refused: the object has no pod spec", "no spec"),
        case("spec:\n", "refused: the object has no pod spec", "an empty spec"),
        case("spec: text\n", "refused: the object has no pod spec", "no mapping"),
        case("spec:\n  a: '{{ x }}'\n", "refused: the file contains '{{', like a Helm template", "a template"),
        case("? spec\n: a: 1\n", "refused: the pod spec does not start on its own line", "an explicit key"),
        case(
            "spec:\n  topologySpreadConstraints: &x []\n",
            "refused: topologySpreadConstraints exists and is empty, in a form that evenspread cannot edit",
            "an empty list with an anchor",
        ),
    ],
)
def test_yaml(before, after):
    head = HEAD.replace("\n", "\r\n") if "\r" in before else HEAD
    expected = after if after.startswith("refused") else head + after
    assert inserted(head + before) == expected


def test_a_mapping_that_is_merged_in():
    text = "apiVersion: v1\nkind: Pod\nx: &t\n  spec:\n    a: 1\ntemplate:\n  <<: *t\n"
    assert inserted(text, "template.spec") == "refused: the pod spec comes from an alias or a merge key"


def test_a_list_and_several_documents():
    pod = "  - apiVersion: v1\n    kind: Pod\n    spec:\n      a: 1\n"
    text = f"a: 1\n---\napiVersion: v1\nkind: List\nitems:\n{pod}{pod}"
    assert inserted(text, which=1) == f"{text[: -len(chr(10) + '      a: 1' + chr(10))]}«{block(6)}»\n      a: 1\n"


def test_a_byte_order_mark():
    text = f"\ufeff{HEAD}spec:\n  a: 1\n"
    assert inserted(text) == f"\ufeff{HEAD}spec:«{block(2)}»\n  a: 1\n"


COMPACT = '[{"maxSkew":1,"labelSelector":{"matchLabels":{"app":"web"}},"matchLabelKeys":["y"]}]'
SPACED = re.sub(r"([:,])", r"\1 ", COMPACT)
PRETTY = """[
      {
        "maxSkew": 1,
        "labelSelector": {
          "matchLabels": {
            "app": "web"
          }
        },
        "matchLabelKeys": [
          "y"
        ]
      }
    ]"""


@pytest.mark.parametrize(
    ("spec", "after"),
    [
        case('{"a":1}', f'{{«"topologySpreadConstraints":{COMPACT},»"a":1}}', "compact"),
        case('{"a": 1}', f'{{«"topologySpreadConstraints": {SPACED}, »"a": 1}}', "on one line"),
        case('{ "a": 1 }', f'{{ «"topologySpreadConstraints": {SPACED}, »"a": 1 }}', "with room in the braces"),
        case(
            '{\n    "a": 1\n  }',
            '{\n    «"topologySpreadConstraints": ' + PRETTY + ',\n    »"a": 1\n  }',
            "on lines",
        ),
        case(
            '{\r\n\t"a": 1\r\n}',
            '{\r\n\t«"topologySpreadConstraints": '
            + PRETTY.replace("    ", "", 0).replace("\n    ", "\n").replace("  ", "\t").replace("\n", "\r\n\t")
            + ',\r\n\t»"a": 1\r\n}',
            "with tabs and Windows line ends",
        ),
        case('{"topologySpreadConstraints":null}', f'{{"topologySpreadConstraints":«{COMPACT}»}}', "a null"),
        case('{"a":1,"topologySpreadConstraints":[]}', f'{{"a":1,"topologySpreadConstraints":«{COMPACT}»}}', "empty"),
        case("{}", None, "an empty spec"),
    ],
)
def test_json(spec, after):
    head = '{"apiVersion": "v1",\n"kind": "Pod",\n  "spec": '
    expected = "refused: the object has no pod spec" if after is None else f"{head}{after}}}"
    assert inserted(f"{head}{spec}}}") == expected


def test_a_file_that_is_another_one():
    [manifest] = read_manifests("f", f"{HEAD}spec:\n  a: 1\n".encode())
    with pytest.raises(UneditableError, match="the file has changed since it was read"):
        insertion(b"other", manifest, "spec", CONSTRAINTS)
