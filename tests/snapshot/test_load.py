import gzip
import io
import json

import pytest
from build import pod_names

from webhook.core.api.version import KubernetesVersion
from webhook.snapshot.load import SnapshotError, _Limits, read_items, read_snapshot

HEADER = {"kind": "Snapshot", "kubernetesVersion": "v1.36.2", "takenAt": "2026-11-20T08:00:00Z"}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"zone": "a"}}}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "shop"}, "spec": {}}
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
SMALL = _Limits(line=150, snapshot=400, document=300)


def lines(*objects):
    return "".join(json.dumps(entry) + "\n" for entry in objects).encode()


def stream(content):
    return io.BufferedReader(io.BytesIO(content))


def read(content):
    return read_snapshot(stream(content), "s.jsonl")


def listed(*items, indent=None, **more):
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items, **more}, indent=indent).encode()


def bare(entry):
    return {key: value for key, value in entry.items() if key not in {"apiVersion", "kind"}}


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(lines(HEADER, NODE, POD, SECRET), id="a snapshot"),
        pytest.param(gzip.compress(lines(HEADER, NODE, POD, SECRET)), id="a gzipped snapshot"),
        pytest.param(lines(HEADER, NODE, POD, SECRET).replace(b"\n", b"\r\n"), id="Windows line ends"),
        pytest.param(b"\xef\xbb\xbf" + lines(HEADER, NODE, POD, SECRET), id="a byte-order mark"),
        pytest.param(
            lines(HEADER, NODE, POD, SECRET).replace(b"\n", b"\n\n").rstrip(), id="empty lines, no last line end"
        ),
        pytest.param(lines(NODE, POD, SECRET), id="no header"),
        pytest.param(listed(NODE, POD, SECRET), id="a List on one line"),
        pytest.param(listed(NODE, POD, SECRET, indent=4), id="a List as kubectl prints it"),
        pytest.param(gzip.compress(listed(NODE, POD, SECRET, indent=4)), id="a gzipped List"),
    ],
)
def test_contents(content):
    made = read(content)
    assert made.objects == {"Node": 1, "Pod": 1, "Secret": 1}
    assert [node.name for node in made.index.nodes.all()] == ["n1"]
    assert pod_names(made.index, "shop") == ("p",)


def test_the_header_says_when_and_of_what():
    made = read(lines(HEADER))
    assert (made.version, made.taken_at) == (KubernetesVersion(1, 36, 2), "2026-11-20T08:00:00Z")
    assert (read(lines(NODE)).version, read(lines(NODE)).taken_at) == (None, None)


def test_a_list_of_one_kind_says_it_once():
    made = read(json.dumps({"apiVersion": "v1", "kind": "NodeList", "items": [bare(NODE)]}).encode())
    assert made.objects == {"Node": 1}


ALLOWED = {"apiVersion": "net.example.com/v1", "kind": "AllowList", "metadata": {"name": "a"}}


@pytest.mark.parametrize(
    ("content", "objects"),
    [
        pytest.param(json.dumps(ALLOWED).encode(), {"AllowList": 1}, id="an object whose kind ends with List"),
        pytest.param(lines(ALLOWED, NODE), {"AllowList": 1, "Node": 1}, id="such an object on the first line"),
        pytest.param(json.dumps({"kind": "Nodes", "items": [NODE]}).encode(), {"Node": 1}, id="a list of another kind"),
        pytest.param(b'{"apiVersion": "v1", "kind": "NodeList", "items": null}', {}, id="a list without items"),
    ],
)
def test_a_list_is_known_by_its_items(content, objects):
    assert read(content).objects == objects


def test_one_object_over_several_lines():
    assert read(json.dumps(NODE, indent=2).encode()).objects == {"Node": 1}


def test_items_know_their_lines():
    pretty = listed(NODE, POD, indent=1)
    assert [item.line for item in read_items(stream(pretty), "l")] == [5, 15]
    assert [item.line for item in read_items(stream(lines(HEADER, NODE) + b"\n" + lines(POD)), "l")] == [1, 2, 4]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"", "s.jsonl: the file is empty", id="an empty file"),
        pytest.param(b"kind: List\n", "s.jsonl:1: not JSON: JSON is malformed: invalid character (byte 0)", id="YAML"),
        pytest.param(
            b'{\n "kind": "List",\n oops\n}\n',
            "s.jsonl:3: not JSON: JSON is malformed: object keys must be strings (byte 20)",
            id="a broken List",
        ),
        pytest.param(
            lines(HEADER, NODE) + b'{"kind": "Pod", oops\n' + lines(POD),
            "s.jsonl:3: not a Kubernetes object: JSON is malformed: object keys must be strings (byte 16)",
            id="a broken line",
        ),
        pytest.param(
            lines(HEADER, {**POD, "spec": {"nodeName": 3}}),
            "s.jsonl:2: Pod: Expected `str | null`, got `int` - at `$.spec.nodeName`",
            id="a wrong type",
        ),
        pytest.param(
            listed(NODE, {**POD, "spec": {"nodeName": 3}}, indent=1),
            "s.jsonl:15: Pod: Expected `str | null`, got `int` - at `$.spec.nodeName`",
            id="a wrong type in a List",
        ),
        pytest.param(
            lines(HEADER, bare(NODE)),
            "s.jsonl:2: not a Kubernetes object: it has no apiVersion and no kind",
            id="an object without kind",
        ),
        pytest.param(
            listed(bare(NODE)),
            "s.jsonl:1: not a Kubernetes object: it has no apiVersion and no kind",
            id="an item without kind",
        ),
        pytest.param(
            listed({**bare(NODE), "kind": "Node"}, kind="NodeList"),
            "s.jsonl:1: not a Kubernetes object: it has no apiVersion",
            id="an item with a kind only, which has no type of its list",
        ),
        pytest.param(
            lines({**HEADER, "kubernetesVersion": "v1.12.0"}),
            "s.jsonl:1: Snapshot: Kubernetes 1.12 is not supported. Use 1.31 to 1.37, or 1.38 as announced",
            id="too old a cluster",
        ),
        pytest.param(
            lines(HEADER) + b'{"apiVersion": "v1", "kind": "Pod\xff"}\n',
            "s.jsonl:2: not a Kubernetes object: 'utf-8' codec can't decode byte 0xff in position 3: invalid start"
            " byte",
            id="not UTF-8",
        ),
        pytest.param(
            lines(HEADER) + b'{"apiVersion": "v1", "kind": "Pod", "spec": ' + b"[" * 100_000 + b"\n",
            "s.jsonl:2: not a Kubernetes object: maximum recursion depth exceeded while deserializing an object",
            id="nested without end",
        ),
        pytest.param(
            gzip.compress(lines(HEADER, NODE, POD))[:-20],
            "s.jsonl: cannot be unpacked: Compressed file ended before the end-of-stream marker was reached",
            id="a gzipped file cut short",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(content, message):
    with pytest.raises(SnapshotError) as caught:
        read(content)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(lines(HEADER, {**POD, "x": "y" * 150}), "s:2: an object of more than 150 bytes", id="a line"),
        pytest.param(lines(HEADER, *[NODE] * 9), "s:5: more than 400 bytes", id="all lines together"),
        pytest.param(listed(*[NODE] * 9, indent=1), "s: more than 300 bytes in one JSON document", id="a List"),
        pytest.param(
            gzip.compress(b"{" + b" " * 10**6), "s: more than 300 bytes in one JSON document", id="a gzip bomb"
        ),
    ],
)
def test_what_is_too_large_is_refused(content, message):
    with pytest.raises(SnapshotError) as caught:
        list(read_items(stream(content), "s", SMALL))
    assert str(caught.value) == message


def test_what_is_just_small_enough():
    assert len(list(read_items(stream(lines(HEADER, NODE, NODE)), "s", SMALL))) == 3


def test_a_list_says_nothing_of_the_kinds_that_it_lacks():
    """A snapshot has all there was; in a List of Deployments, that there is no pod means nothing."""
    assert read(lines(HEADER, NODE)).index.lacks("nodes", "pods", "services") == ""
    partial = read(listed(NODE, POD)).index
    assert partial.lacks("nodes", "pods") == ""
    assert partial.lacks("services") == "services: none in the file"
    assert partial.lacks("storageclasses") == "storageclasses: none in the file"


def test_a_header_says_what_was_asked_for():
    before = read(lines(HEADER)).index
    assert before.lacks("limitranges") == "limitranges: not in this snapshot"
    assert before.lacks("csinodes") == ""
    some = read(lines({**HEADER, "resources": ["pods", "limitranges"], "missing": {"pods": "403 Forbidden"}})).index
    assert (some.lacks("limitranges"), some.lacks("pods")) == ("", "pods: 403 Forbidden")
    assert some.lacks("csinodes") == "csinodes: not in this snapshot"
    assert before.lacks("poddisruptionbudgets") == "poddisruptionbudgets: not in this snapshot"


def test_a_header_says_what_could_not_be_read():
    index = read(lines({**HEADER, "missing": {"nodes": "403 Forbidden"}}, POD)).index
    assert (index.lacks("nodes"), index.lacks("pods")) == ("nodes: 403 Forbidden", "")


@pytest.mark.parametrize(("asked", "judged"), [(None, (1, 36)), (KubernetesVersion(1, 32), (1, 32))])
def test_the_index_judges_as_the_release_of_the_header_or_as_asked(asked, judged):
    snapshot = read_snapshot(stream(lines(HEADER, NODE)), "s.jsonl", as_version=asked)

    assert snapshot.index.version[:2] == judged
    assert snapshot.version[:2] == (1, 36)
