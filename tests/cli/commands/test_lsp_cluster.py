"""The language server beside a cluster: domains of a topologyKey, and completion of label keys."""

import pytest
from cli.editor import Editor
from cli.snapshots import HOSTNAME, ZONE, node, snapshot

CONSTRAINT = """\
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: topology.kubernetes.io/zone
        whenUnsatisfiable: DoNotSchedule
        labelSelector: {matchLabels: {app: web}}
"""
WEB = f"""\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: shop}}
spec:
  replicas: 3
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web, version: "1.0"}}}}
    spec:
{CONSTRAINT}      containers: [{{name: web, image: web}}]
"""
ABOVE, BELOW = WEB.split(CONSTRAINT)
LINE = ABOVE.count("\n")  # of topologySpreadConstraints
SUSPECT = node("tainted", "z3", tainted=True)


@pytest.fixture(scope="module")
def editor(tmp_path_factory):
    folder = tmp_path_factory.mktemp("folder")
    lines = snapshot("z1: a=2 b | z2: c | : d", SUSPECT)
    (folder / "cluster.jsonl").write_bytes(lines)
    with Editor(folder, "--snapshot", str(folder / "cluster.jsonl")) as editor:
        yield editor


@pytest.fixture(scope="module")
def offline(tmp_path_factory):
    with Editor(tmp_path_factory.mktemp("offline")) as editor:
        yield editor


def hovered(editor, text, line, character=12):
    editor.open(text)
    hover = editor.hover(line, character)
    return None if hover is None else (str(hover.range), hover.contents.value)


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        pytest.param(
            WEB,
            LINE + 2,
            (
                f"{LINE + 2}:8-{LINE + 2}:48",
                (
                    "`topology.kubernetes.io/zone`: 3 domains, 4 nodes\n\n"
                    "| domain | nodes | matching pods |\n|---|--:|--:|\n"
                    "| z1 | 2 | 2 |\n| z2 | 1 | 0 |\n| z3 | 1 | 0 |\n\n"
                    "2 matching pods: skew 2, maxSkew 1"
                ),
            ),
            id="zones, with a node outside and a tainted one",
        ),
        pytest.param(
            WEB.replace("Deployment", "DaemonSet").replace("  replicas: 3\n", ""),
            LINE + 1,
            (
                f"{LINE + 1}:8-{LINE + 1}:48",
                (
                    "`topology.kubernetes.io/zone`: 3 domains, 4 nodes\n\n"
                    "| domain | nodes |\n|---|--:|\n| z1 | 2 |\n| z2 | 1 |\n| z3 | 1 |"
                ),
            ),
            id="of a kind without a skew",
        ),
        pytest.param(
            WEB.replace(ZONE, "rack"),
            LINE + 2,
            (f"{LINE + 2}:8-{LINE + 2}:25", "`rack`: 0 domains, 0 nodes"),
            id="a key that no node has",
        ),
        pytest.param(WEB, LINE + 1, None, id="another field"),
        pytest.param(WEB.replace("{app: web}}\n      cont", "{app: web}\n      cont"), LINE + 2, None, id="half-typed"),
    ],
)
def test_hover(editor, text, line, expected):
    assert hovered(editor, text, line) == expected


def test_hover_without_a_cluster(offline):
    text = "`topology.kubernetes.io/zone`: no nodes known: start `evenspread lsp` with --snapshot FILE or --cluster"
    assert hovered(offline, WEB, LINE + 2) == (f"{LINE + 2}:8-{LINE + 2}:48", text)


NODE_KEYS = {
    ZONE: "3 domains on 4 nodes",
    HOSTNAME: "5 domains on 5 nodes",
}
LABELS = {"app: web": "label of the pods", 'version: "1.0"': "label of the pods"}
KEYS = {"app": "label of the pods: web", "version": "label of the pods: 1.0"}
HASH = {"pod-template-hash": "the revision of the template"}
HEAD = "      topologySpreadConstraints:\n      - maxSkew: 1\n"


def completed(editor, typed):
    """The completions at the mark in this text: each with its detail, and the text with the last one."""
    text = ABOVE + typed.replace("^", "") + BELOW
    before = (ABOVE + typed).partition("^")[0]
    line, character = before.count("\n"), len(before) - before.rfind("\n") - 1
    editor.open(text)
    items = editor.complete(line, character)
    lines = text.split("\n")
    texts = {
        lines[line][: item.text_edit.range.start.character]
        + item.text_edit.new_text
        + lines[line][item.text_edit.range.end.character :]
        for item in items
    }
    return {item.label: item.detail for item in sorted(items, key=lambda item: item.sort_text)}, texts


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        pytest.param(f"{HEAD}        topologyKey: ^\n", NODE_KEYS, id="a key"),
        pytest.param(f"{HEAD}        topologyKey: topology.kube^\n", NODE_KEYS, id="a part of a key"),
        pytest.param(
            "      topologySpreadConstraints:\n      - topologyKey: ^\n", NODE_KEYS, id="first in a constraint"
        ),
        pytest.param("      topologySpreadConstraints: [{topologyKey: ^\n", NODE_KEYS, id="in braces, still open"),
        pytest.param(f"{HEAD}        labelSelector:\n          matchLabels:\n            ^\n", LABELS, id="labels"),
        pytest.param(
            f"{HEAD}        labelSelector:\n          matchLabels:\n            app: web\n            ver^\n",
            LABELS,
            id="below another label",
        ),
        pytest.param(f"{HEAD}        labelSelector: {{matchLabels: {{^\n", LABELS, id="labels in braces, still open"),
        pytest.param(
            f"{HEAD}        labelSelector: {{matchLabels: {{version: ^}}}}\n",
            {'"1.0"': "label of the pods"},
            id="the value of a label",
        ),
        pytest.param(
            f"{HEAD}        labelSelector:\n          matchExpressions:\n          - key: ^\n", KEYS, id="an expression"
        ),
        pytest.param(
            f"{HEAD}        matchLabelKeys:\n        - ^\n", KEYS | HASH, id="a list at the column of its key"
        ),
        pytest.param(f"{HEAD}        matchLabelKeys:\n          - ^\n", KEYS | HASH, id="a list further right"),
        pytest.param(f"{HEAD}        matchLabelKeys: [app, ^\n", KEYS | HASH, id="a list in brackets"),
        pytest.param(
            "      affinity:\n        nodeAffinity:\n          requiredDuringSchedulingIgnoredDuringExecution:\n"
            "            nodeSelectorTerms:\n            - matchExpressions:\n              - key: ^\n",
            NODE_KEYS,
            id="node affinity",
        ),
        pytest.param(f"{HEAD}        whenUnsatisfiable: ^\n", {}, id="another field"),
        pytest.param("^", {}, id="an empty line"),
    ],
)
def test_completion(editor, typed, expected):
    assert completed(editor, typed)[0] == expected


def test_the_word_is_replaced(editor):
    _, lines = completed(editor, f"{HEAD}        topologyKey: topology.kube^  # zone\n")
    assert lines == {f"        topologyKey: {key}  # zone" for key in (ZONE, HOSTNAME)}


def test_completion_without_a_cluster(offline):
    usual = (ZONE, HOSTNAME, "topology.kubernetes.io/region")
    expected = dict.fromkeys(usual, "well-known label of nodes")
    assert completed(offline, f"{HEAD}        topologyKey: ^\n")[0] == expected
