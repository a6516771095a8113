import json

import pytest

from webhook.manifests.reading import manifest
from webhook.manifests.reading.documents import InputFault, split
from webhook.manifests.reading.manifest import MAX_YAML_BYTES, read_manifests


def read(data):
    """Objects as ``kind/name@line:column``, faults as their line."""
    if isinstance(data, str):
        data = data.encode()
    return [
        str(found) if isinstance(found, InputFault) else f"{found.kind}/{found.name}@{place(found)}"
        for found in read_manifests("f", data)
    ]


def place(manifest, path=""):
    found = manifest.locate(path)
    return f"{found.line}:{found.column}"


def obj(name, **fields):
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, **fields})


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param("---\n# x\n---\n\n---\n", [], id="empty documents"),
        pytest.param(f"{obj('a')}\n---\n{obj('b')}\n", ["Pod/a@1:1", "Pod/b@3:1"], id="two documents"),
        pytest.param(f"--- # first\n{obj('a')}\n---\n\n", ["Pod/a@2:1"], id="comments behind separators"),
        pytest.param(
            f"{obj('a')}{obj('b')}\n{obj('c')}",
            ["Pod/a@1:1", "Pod/b@1:63", "Pod/c@2:1"],
            id="JSON, one behind the other",
        ),
        pytest.param(
            "apiVersion: v1\r\nkind: Pod\r\n---\r\nkind: X\r\napiVersion: v1\r\n",
            ["Pod/@1:1", "X/@4:1"],
            id="Windows line ends",
        ),
        pytest.param("\ufeffapiVersion: v1\nkind: Pod\n", ["Pod/@1:1"], id="byte-order mark"),
        pytest.param(f"\ufeff{obj('a')}", ["Pod/a@1:1"], id="byte-order mark before JSON"),
        pytest.param("{apiVersion: v1, kind: Pod}", ["Pod/@1:1"], id="YAML in braces"),
        pytest.param('{"apiVersion": "v1", "kind": "Pod",}', ["Pod/@1:1"], id="JSON with a comma too many is YAML"),
        pytest.param("a: &a {kind: Pod, apiVersion: v1}\n<<: *a\n", ["Pod/@1:1"], id="anchors and merge keys"),
        pytest.param(
            f'{{"apiVersion": "v1", "kind": "List", "items": [\n  {obj("a")},\n  {obj("b")}]}}',
            ["Pod/a@2:3", "Pod/b@3:3"],
            id="a list in JSON",
        ),
        pytest.param(
            "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: a}\n- " + obj("b"),
            ["Pod/a@4:3", "Pod/b@7:3"],
            id="a list in YAML",
        ),
        pytest.param(
            "apiVersion: apps/v1\nkind: DeploymentList\nitems:\n- metadata: {name: a}\n",
            ["Deployment/a@4:3"],
            id="a typed list in YAML",
        ),
        pytest.param(
            '{"apiVersion":"apps/v1","kind":"PodList","items":[{"metadata":{"name":"a"}}]}',
            ["Pod/a@1:51"],
            id="a typed list in JSON",
        ),
        pytest.param(
            '{"apiVersion":"v1","kind":"List","items":null}', ["List/@1:1"], id="items that are null are no list"
        ),
        pytest.param(
            "apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}\n", ["Pod/a-@1:1"], id="a generated name"
        ),
    ],
)
def test_objects_and_their_places(data, expected):
    assert read(data) == expected


GOOD = "apiVersion: v1\nkind: Pod\n"


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        pytest.param("just text", "f:1:1: not a Kubernetes object: text instead of a mapping", id="text"),
        pytest.param("- a\n- b\n", "f:1:1: not a Kubernetes object: a list instead of a mapping", id="a list"),
        pytest.param(
            "\n\na: b\n", "f:3:1: not a Kubernetes object: it has no apiVersion and no kind", id="not Kubernetes"
        ),
        pytest.param(
            "apiVersion: v1\nkind: y\n", "f:1:1: not a Kubernetes object: it has no kind", id="a kind that is a boolean"
        ),
        pytest.param("a: b: c\n", "f:1:5: not YAML: mapping values are not allowed in this context", id="not YAML"),
        pytest.param("a:\n\tb: c\n", "f:2:1: not YAML: a tab character; YAML is indented with spaces", id="tab"),
        pytest.param("a: @b\n", "f:1:4: not YAML: a plain text cannot start with @; quote it", id="reserved character"),
        pytest.param(b"a: \xff\n", "f:1:4: not YAML: invalid leading UTF-8 octet", id="invalid UTF-8"),
        pytest.param(b"a: b\0c\n", "f:1:5: not YAML: control characters are not allowed", id="NUL"),
        pytest.param(
            "a: [[[\n",
            "f:2:1: not YAML: did not find expected node content while parsing a flow node",
            id="open brackets",
        ),
        pytest.param("x: " + "[" * 10_000, "f:1:403: not YAML: nested more than 400 levels deep", id="10,000 brackets"),
        pytest.param(
            "x: " + "[" * 10_000 + "]" * 10_000,
            "f:1:403: not YAML: nested more than 400 levels deep",
            id="10,000 brackets, closed",
        ),
        pytest.param(
            '{"a": ' + "[" * 10_000 + "]" * 10_000 + "}",
            "f:1:2: nested more than 400 levels deep",
            id="10,000 brackets in JSON",
        ),
        pytest.param(
            "a: {{ .Values.a }}\n",
            "f:1:17: a template; check its output: helm template CHART | evenspread check -",
            id="a template",
        ),
        pytest.param('{"a": 1,\n "b": ]}', "f:2:7: not JSON: invalid character", id="not JSON"),
        *(
            pytest.param(
                f'{{"a": 1,\n{text}',
                f"f:2:{column}: not JSON: invalid character '/' {words}; JSON has no comments: remove them",
                id=f"a comment {words}, {text[:6]}",
            )
            for text, column, words in (
                ('// c\n"b": {"c": 2}}', 1, "looking for beginning of object key string"),
                ('"b" /* c */: 2}', 5, "after object key"),
                ('"b": {} // c\n}', 9, "after object key:value pair"),
                ('"b": // c\n"c": 2}', 6, "looking for beginning of value"),
                ('"b": [{} // c\n]}', 10, "after array element"),
            )
        ),
        pytest.param('{"a": ["b",', "f:2:1: JSON ends too early", id="JSON cut short"),
        pytest.param(b'{"a": "\xff"}', "f:1:8: not valid UTF-8", id="invalid UTF-8 in JSON"),
        pytest.param(
            "a: 1\n...\nb: 1\n",
            "f:3:1: kubectl ignores everything from here to the next '---': the document has ended",
            id="text behind the end",
        ),
        pytest.param(
            GOOD + "items: 5\n", "f:1:1: not a Kubernetes list: items is a number", id="items that are no list"
        ),
        pytest.param(
            '{"kind": "List", "items": 5}',
            "f:1:1: not a Kubernetes list: items is not a list",
            id="items that are no list in JSON",
        ),
        pytest.param(
            '{"kind": "List", "items": [5]}',
            "f:1:28: not a Kubernetes object: not a JSON object",
            id="an item that is no object",
        ),
        pytest.param("a: &a [*a]\n", "f:1:8: not YAML: anchor 'a' value contains itself", id="an anchor in itself"),
    ],
)
def test_one_line_a_fault_and_the_rest_is_read(data, fault):
    data = (data.encode() if isinstance(data, str) else data).removesuffix(b"\n") + b"\n"
    found = read(b"%s---\n%s---\n%s" % (GOOD.encode(), data, GOOD.encode()))
    lines = data.count(b"\n")
    place, _, message = fault.removeprefix("f:").partition(": ")
    line, column = place.split(":")
    assert found[0] == "Pod/@1:1"
    assert f"f:{int(line) + 3}:{column}: {message}" in found
    assert found[-1] == f"Pod/@{5 + lines}:1"
    assert fault in read(data)


def test_a_separator_with_text_hides_its_own_document_only():
    assert read(f"{obj('a')}\n--- |\n text\n---\n{obj('b')}\n") == [
        "Pod/a@1:1",
        "f:2:4: kubectl accepts only a comment after '---' on the same line; document skipped: |",
        "Pod/b@5:1",
    ]


@pytest.mark.parametrize("depth", [398, 399, 700, 985, 1100])
def test_json_is_as_deep_as_yaml_may_be(depth):
    text = f'{{"apiVersion": "v1", "kind": "X", "a": "[{{", "b": {"[" * depth}{"]" * depth}}}'
    deep = [[f"f:1:{column}: nested more than 400 levels deep"] for column in (1, 2)]
    assert read(text) == ["X/@1:1"] if depth <= 399 else read(text) in deep


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    ("text", "foreign"), [("kind: Pod\n", True), ("apiVersion: v1\nkind: Pod\n", False), ("äpfel: 1\n", True)]
)
def test_utf_16_without_a_mark_is_named(encoding, text, foreign):
    [fault] = read_manifests("f", text.encode(encoding))
    said = "f:1:1: UTF-16 text without a byte order mark, which kubectl does not read; save it as UTF-8"
    assert (str(fault), fault.foreign) == (said, foreign)


@pytest.mark.parametrize(
    "template", ["apiVersion: v1\nkind: Pod\na: {%s}\n", '{"apiVersion": "v1",\n "kind": "Pod",\n"a":{%s}}']
)
def test_duplicate_keys_are_faults_but_the_object_is_read(template):
    pair = '"b": 1, "b": 2'
    column = template.splitlines()[2].index("%") + 9
    assert read(template % pair) == [
        f"f:3:{column}: duplicate key 'b': kubectl takes the last one, kustomize and Flux refuse it",
        "Pod/@1:1",
    ]


def test_two_objects_without_a_separator():
    both = "duplicate key '{}': kubectl takes the last one, kustomize and Flux refuse it{}"
    assert read("kind: Pod\napiVersion: v1\nkind: Job\napiVersion: batch/v1\n") == [
        "f:3:1: " + both.format("kind", ""),
        "f:4:1: " + both.format("apiVersion", "; is '---' missing above?"),
        "Job/@1:1",
    ]


def test_a_thousand_duplicate_keys_are_not_a_thousand_lines():
    found = read(GOOD + "a: 1\n" * 1000)
    assert len(found) == 22
    assert found[20] == "f:1:1: further duplicate keys are not listed"


def test_an_alias_bomb_is_refused_as_go_yaml_refuses_it():
    lines = ["a: &a [1,1,1,1,1,1,1,1,1]"]
    lines += [f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]" for i in range(12)]
    assert read("\n".join(lines)) == ["f:4:17: not YAML: document contains excessive aliasing"]


def test_a_yaml_document_has_a_largest_size_and_the_next_is_read():
    data = b"kind: " + b"x" * MAX_YAML_BYTES + b"\n---\n" + GOOD.encode()
    assert read(data) == [
        "f:1:1: the YAML document has 8.0 MiB; the limit is 8 MiB, and JSON has no limit",
        "Pod/@3:1",
    ]


@pytest.mark.parametrize(
    ("number", "sent"),
    [
        ("1.0", 1),
        ("1e3", 1000),
        ("1.5", 1.5),
        ("9223372036854775808", 9223372036854776000),
        ("-0.0", 0),
        ("1e21", 1e21),
    ],
)
def test_numbers_of_yaml_are_rewritten_as_kubectl_does(number, sent):
    [found] = read_manifests("f", f"apiVersion: v1\nkind: X\na: {number}\n".encode())
    assert found.value["a"] == sent
    assert type(found.value["a"]) is type(sent)


def test_json_is_taken_as_it_stands():
    text = b'{"apiVersion": "v1", "kind": "X", "a": 1.0, "b": 1e400}\n'
    assert [found.value for found in read_manifests("f", text)] == [text]


def test_a_last_line_without_line_end_has_one():
    [found] = read_manifests("f", b"apiVersion: v1\nkind: X\ndata: |\n  text")
    assert found.value["data"] == "text\n"


def test_helm_names_the_template():
    data = f"---\n# Source: web/templates/deployment.yaml\napiVersion: v1\nkind: Pod\n---\n{obj('b')}\n"
    assert [found.source for found in read_manifests("f", data.encode())] == ["web/templates/deployment.yaml", ""]


def test_comments_of_many_empty_documents_are_not_handed_on_without_end():
    empty = b"---\n# x\n" * 5000
    [found] = split("f", empty + b"---\n" + obj("b").encode())
    assert found.comments.endswith(b"# x\n")
    assert len(found.comments) <= 16 * 1024


@pytest.mark.parametrize(
    ("text", "path", "line", "caret"),
    [
        pytest.param("apiVersion: v1\nkind: X\nspec:\n  a: é\n", "spec.a", "  a: é", (4, 3, 2, 4), id="in YAML"),
        pytest.param(
            '{"apiVersion":"v1","kind":"X",\n "é": "é", "a": 5}',
            "a",
            ' "é": "é", "a": 5}',
            (2, 12, 11, 6),
            id="in JSON, in characters",
        ),
    ],
)
def test_the_line_and_the_caret(text, path, line, caret):
    [found] = read_manifests("f", text.encode())
    where = found.locate(path)
    assert (where.text, (where.line, where.column, where.caret, where.width)) == (line, caret)


@pytest.mark.parametrize(("more", "read"), [(0, True), (1, False)])
def test_a_yaml_document_may_be_as_long_as_the_bound(monkeypatch, more, read):
    monkeypatch.setattr(manifest, "MAX_YAML_BYTES", len(GOOD.encode()) - more)
    [found] = read_manifests("f", GOOD.encode())
    assert isinstance(found, InputFault) is not read
