"""The language server, over its standard input and output."""

import subprocess
import sys

import pytest
from cli.editor import Editor

WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      topologySpreadConstraints:
      - maxSkew: 0  # one
        topologyKey: topology.kubernetes.io/zone
        whenUnsatisfiable: ScheduleAnyway
        labelSelector: {matchLabels: {app: old}}
"""
CLEAN = WEB.replace("maxSkew: 0", "maxSkew: 1").replace("old", "web")
MAX_SKEW = (
    "10:8-10:18",
    "Error",
    "max-skew",
    (
        "spec.template.spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero\n"
        "fix: maxSkew: 1"
    ),
)
NOT_SELF = (
    "13:8-13:48",
    "Error",
    "selector-not-self",
    (
        "zone[0] counts app=old but the pods have app=web, so this constraint does not spread these pods\n"
        "fix: labelSelector: {matchLabels: {app: web}}"
    ),
)
NOT_CLOSED = "not YAML: did not find expected ',' or '}' while parsing a flow mapping"


@pytest.fixture(scope="module")
def editor(tmp_path_factory):
    with Editor(tmp_path_factory.mktemp("folder")) as editor:
        yield editor


def shown(diagnostics):
    """Range, severity, rule and message of each."""
    return [(str(each.range), each.severity.name, each.code, each.message) for each in diagnostics]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(WEB, [MAX_SKEW, NOT_SELF], id="two findings"),
        pytest.param(CLEAN, [], id="none"),
        pytest.param(WEB.replace("\n", "\r\n"), [MAX_SKEW, NOT_SELF], id="Windows line ends"),
        pytest.param(
            WEB.replace("replicas: 3", "replicas: 3\n  paused: false"),
            [(each[0].replace("10:", "11:").replace("13:", "14:"), *each[1:]) for each in (MAX_SKEW, NOT_SELF)],
            id="below another line",
        ),
        pytest.param(
            WEB.replace("{app: old}}", "{app: old}"),
            [("14:0-14:0", "Error", None, NOT_CLOSED)],
            id="half-typed: the parse error alone",
        ),
        pytest.param(
            f"{WEB.replace('{app: old}}', '{app: old}')}---\n{WEB}",
            [
                ("14:0-14:3", "Error", None, NOT_CLOSED),
                *(
                    (f"{each[0].replace('10:', '25:').replace('13:', '28:')}", *each[1:])
                    for each in (MAX_SKEW, NOT_SELF)
                ),
            ],
            id="half-typed beside another document",
        ),
        pytest.param(
            CLEAN.replace("ScheduleAnyway", "ScheduleAnyway  # evenspread: ignore[max-skew] x"),
            [
                (
                    "12:43-12:75",
                    "Information",
                    None,
                    "unused ignore[max-skew]: no such finding here; --fix removes it",
                )
            ],
            id="an unused ignore comment",
        ),
        pytest.param("services:\n  web: {image: web}\n", [], id="another kind of YAML"),
        pytest.param("services:\n  web: {image: web\n", [], id="another kind of YAML, half-typed"),
        pytest.param("", [], id="an empty file"),
    ],
)
def test_diagnostics(editor, text, expected):
    assert shown(editor.open(text)) == expected
    assert editor.close() == ()


def test_diagnostics_while_typing(editor):
    assert shown(editor.open(CLEAN)) == []
    assert shown(editor.type(CLEAN.replace("maxSkew: 1", "maxSkew: 0"))) == [MAX_SKEW]
    assert shown(editor.type(CLEAN)) == []


def test_each_finding_links_to_its_rule(editor):
    [found] = editor.open(CLEAN.replace("maxSkew: 1", "maxSkew: 0"))
    assert (found.source, found.code_description.href) == ("evenspread", "https://evenspread.io/rules/max-skew")


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        pytest.param(None, "10:28-10:38", id="UTF-16 by default: two units for a rocket"),
        pytest.param("utf-8", "10:30-10:40", id="UTF-8: four"),
        pytest.param("utf-32", "10:27-10:37", id="UTF-32: one"),
    ],
)
@pytest.mark.slow
def test_the_units_of_the_editor(tmp_path, encoding, expected):
    above = CLEAN[: CLEAN.index("      - maxSkew")]
    text = f"{above}      - {{topologyKey: '🚀', maxSkew: 0, whenUnsatisfiable: ScheduleAnyway}}\n"
    with Editor(tmp_path, "--rule", "max-skew", encoding=encoding) as editor:
        [found] = editor.open(text)
        editor.actions(text, 10)
    assert str(found.range) == expected
    [edit] = editor.offered[0].edit.document_changes[0].edits
    assert edit.range.end == found.range.end


ABOVE = "      # evenspread: ignore[max-skew] reason\n      - maxSkew"


def test_code_actions_of_a_line(editor):
    diagnostics = editor.open(WEB)
    assert editor.actions(WEB, 10, diagnostics=diagnostics) == {
        "Fix max-skew: maxSkew: 1": WEB.replace("maxSkew: 0", "maxSkew: 1"),
        "Ignore max-skew here": WEB.replace("      - maxSkew", ABOVE),
    }
    assert [(action.kind, action.diagnostics, action.is_preferred) for action in editor.offered] == [
        ("quickfix", diagnostics[:1], True),
        ("quickfix", diagnostics[:1], None),
    ]
    assert editor.actions(WEB, 11) == {}


def test_a_fix_edits_the_object_under_the_cursor(editor):
    """Two objects of a file have the same title."""
    twice = f"{WEB}---\n{WEB}"
    editor.open(twice)
    fixed = editor.actions(twice, 10)["Fix max-skew: maxSkew: 1"]
    assert fixed == f"{WEB.replace('maxSkew: 0', 'maxSkew: 1')}---\n{WEB}"


def test_an_ignored_finding_is_gone(editor):
    editor.open(WEB)
    ignored = editor.actions(WEB, 10)["Ignore max-skew here"]
    assert [each[2] for each in shown(editor.type(ignored))] == ["selector-not-self"]


def test_fix_all_is_what_check_fixes(editor):
    editor.open(WEB)
    fixed = editor.actions(WEB, 0, 14, only=["source.fixAll.evenspread"])
    assert fixed == {"Fix all findings of evenspread": CLEAN}
    assert [action.kind for action in editor.offered] == ["source.fixAll.evenspread"]
    editor.type(CLEAN)
    assert editor.actions(CLEAN, 0, 14, only=["source.fixAll"]) == {}
    assert editor.actions(CLEAN, 0, 14, only=["refactor"]) == {}


@pytest.mark.slow
def test_json_has_fixes_but_no_comments(editor):
    text = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": {"app": "web"}},\n"spec": %s}\n'
    broken = text % (
        '{"topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "kubernetes.io/hostname",'
        ' "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {"app": "web"}}}]}'
    )
    editor.open(broken, "web.json")
    expected = {"Fix max-skew: maxSkew: 1": broken.replace('"maxSkew": 0', '"maxSkew": 1')}
    assert editor.actions(broken, 1, name="web.json") == expected


@pytest.mark.slow
def test_options_as_for_check(tmp_path):
    commented = WEB.replace("# one", "# evenspread: ignore[max-skew]")
    with Editor(tmp_path, "--rule", "max-skew", "--require-reasons") as editor:
        found = shown(editor.open(commented))
    assert [each[2] for each in found] == [None, "max-skew"]


@pytest.mark.slow
def test_the_end(tmp_path):
    assert Editor(tmp_path).quit() == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "code", "line"),
    [
        pytest.param(
            ("--snapshot", "none.jsonl"), 3, "evenspread: none.jsonl: No such file or directory\n", id="no snapshot"
        ),
    ],
)
def test_a_wrong_start(tmp_path, options, code, line):
    command = [sys.executable, "-m", "evenspread", "lsp", *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)  # noqa: S603 our own
    assert (done.returncode, done.stdout, done.stderr) == (code, "", line)
