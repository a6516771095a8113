"""Ignore comments in manifests."""

import json

import pytest

from webhook.cli.checking.ignores import ignores_in
from webhook.manifests.reading.documents import InputDocument

WEB = """\
HEAD
apiVersion: apps/v1
kind: Deployment  AT-KIND
metadata: {name: web}  AT-NAME
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      topologySpreadConstraints:
      ABOVE-FIRST
      - maxSkew: 1  AT-FIRST
        topologyKey: topology.kubernetes.io/zone
        whenUnsatisfiable: ScheduleAnyway
        labelSelector: {matchLabels: {app: old}}  AT-SELECTOR
      - maxSkew: 1  AT-SECOND
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: ScheduleAnyway
        labelSelector: {matchLabels: {app: old}}
"""
NOT_SELF = "# evenspread: ignore[selector-not-self] counted with the proxy"


def web(**comments):
    """The Deployment with these comments. Both constraints select other pods."""
    text = WEB
    for place in ("HEAD", "AT-KIND", "AT-NAME", "ABOVE-FIRST", "AT-FIRST", "AT-SELECTOR", "AT-SECOND"):
        text = text.replace(place, comments.get(place.lower().replace("-", "_"), ""))
    return text


def entries(out):
    return [entry for entry in json.loads(out) if "severity" in entry]


def ignored(out):
    """The lines of ignored findings."""
    return [entry["line"] for entry in entries(out) if entry.get("waived")]


@pytest.mark.parametrize(
    ("comments", "lines"),
    [
        pytest.param({"at_selector": NOT_SELF}, [16], id="at the end of the line"),
        pytest.param({"at_first": NOT_SELF}, [16], id="at the end of the first line of a constraint"),
        pytest.param({"above_first": NOT_SELF}, [16], id="above a constraint"),
        pytest.param({"at_second": NOT_SELF}, [20], id="of another constraint"),
        pytest.param({"at_kind": NOT_SELF}, [16, 20], id="of the object, by its kind"),
        pytest.param({"at_name": NOT_SELF}, [16, 20], id="of the object, by its name"),
        pytest.param({"head": NOT_SELF}, [16, 20], id="of the document"),
        pytest.param({"at_selector": NOT_SELF.replace("[", "[max-skew, ")}, [16], id="several rules"),
        pytest.param({"at_selector": "# evenspread:ignore[selector-not-self]"}, [16], id="without spaces and reason"),
        pytest.param({"at_selector": NOT_SELF.replace("not-self", "null")}, [], id="another rule"),
        pytest.param({"at_selector": "# evenspread: ignore"}, [], id="no rule"),
        pytest.param({"at_selector": NOT_SELF.replace(": ignore", ": ignored")}, [], id="another word"),
        pytest.param({}, [], id="no comment"),
    ],
)
def test_the_findings_of_a_block(check, comments, lines):
    code, out, _ = check("web.yaml", "-o", "json", "--level", "low", web=web(**comments))
    assert (ignored(out), code) == (lines, 0 if lines == [16, 20] else 1)


def test_the_reason_is_shown(check):
    out = check("web.yaml", web=web(head=NOT_SELF))[1]
    assert out.splitlines()[0] == "web.yaml:16:9: selector-not-self Deployment web: ignored: counted with the proxy"
    assert "no findings, 2 exempted" in out


def test_sarif_suppresses_them_in_source(check):
    [run] = json.loads(check("web.yaml", "-o", "sarif", web=web(head=NOT_SELF))[1])["runs"]
    expected = [{"kind": "inSource", "justification": "ignored: counted with the proxy"}]
    assert [result["suppressions"] for result in run["results"]] == [expected, expected]


UNUSED = "unused ignore[max-skew]: no such finding here; --fix removes it"


@pytest.mark.parametrize(
    ("comments", "options", "note"),
    [
        pytest.param({"head": NOT_SELF}, (), "", id="used"),
        pytest.param(
            {"head": NOT_SELF.replace("[", "[max-skew, ")}, (), f"web.yaml:1:1: note: {UNUSED}\n", id="unused"
        ),
        pytest.param(
            {"head": NOT_SELF.replace("[", "[max-skew, ")}, ("--rule", "selector-not-self"), "", id="not asked"
        ),
        pytest.param({"head": "# evenspread: ignore[group-cap] x"}, (), "", id="not evaluated without a cluster"),
        pytest.param(
            {"at_selector": "# evenspread: ignore[selector-not-sef] x"},
            (),
            "web.yaml:16:51: note: no rule 'selector-not-sef'; did you mean 'selector-not-self'?\n",
            id="unknown",
        ),
        pytest.param(
            {"head": "# evenspread: ignore"},
            (),
            "web.yaml:1:1: note: the comment names no rule; write it as # evenspread: ignore[RULE] reason\n",
            id="no rule",
        ),
        pytest.param(
            {"head": "# evenspread: ignore[selector-not-self]"},
            ("--require-reasons",),
            "web.yaml:1:1: note: the comment needs a reason; write it as # evenspread: ignore[RULE] reason\n",
            id="no reason",
        ),
        pytest.param({"head": NOT_SELF}, ("--require-reasons",), "", id="with the required reason"),
    ],
)
def test_notes(check, comments, options, note):
    assert check("web.yaml", *options, web=web(**comments))[2] == note


def test_a_comment_without_the_required_reason_has_no_effect(check):
    bare = web(head="# evenspread: ignore[selector-not-self]")
    assert check("web.yaml", web=bare)[0] == 0
    assert check("web.yaml", "--require-reasons", web=bare)[0] == 1


@pytest.mark.parametrize(
    ("exempt", "mode", "code"),
    [
        ("warnings", "warn", 0),
        ("warnings", "deny", 1),
        ("denials", "deny", 0),
        ("none", "warn", 1),
    ],
)
def test_the_policy_limits_comments_as_the_annotation(check, tmp_path, exempt, mode, code):
    head = "apiVersion: config.evenspread.io/v1alpha1\nkind: SpreadPolicy\nceiling: deny\n"
    policy = f"{head}rules: {{selector-not-self: {mode}}}\nannotations: {{exempt: {exempt}}}\n"
    (tmp_path / "policy.yaml").write_text(policy)
    found, _, err = check("web.yaml", "--config", "policy.yaml", web=web(head=NOT_SELF))
    note = "ignore[selector-not-self] has no effect: the policy (annotations.exempt) allows no comment here"
    assert (found, note in err) == (code, bool(code))


@pytest.mark.parametrize(
    ("comments", "left"),
    [
        pytest.param({"head": "# evenspread: ignore[max-skew] x"}, {"head": None}, id="a line of its own"),
        pytest.param({"at_first": " # evenspread: ignore[max-skew] x"}, {}, id="at the end of a line"),
        pytest.param(
            {"head": "# evenspread: ignore[max-skew, selector-not-self] x"},
            {"head": "# evenspread: ignore[selector-not-self] x"},
            id="one of two rules",
        ),
    ],
)
def test_fix_removes_unused_comments(check, tmp_path, comments, left):
    used = {} if "selector-not-self" in comments.get("head", "") else {"at_kind": NOT_SELF}
    code, out, err = check("web.yaml", "--fix", "--write", web=web(**used, **comments))
    expected = web(**used, **{place: text or "" for place, text in left.items()})
    if "head" in left and left["head"] is None:
        expected = expected.removeprefix("\n")
    assert [line.rstrip() for line in (tmp_path / "web.yaml").read_text().splitlines()] == [
        line.rstrip() for line in expected.splitlines()
    ]
    assert "removed an unused ignore comment" in out
    assert (code, "1 unused ignore comment removed" in err) == (0, True)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("a: 1 # evenspread: ignore[x]\n", [(1, 1, 1)], id="a comment"),
        pytest.param("a: '# evenspread: ignore[x]'\n", [], id="in quotes"),
        pytest.param("a: |\n  # evenspread: ignore[x]\n", [], id="in a block scalar"),
        pytest.param("a: b#evenspread: ignore[x]\n", [], id="in a word"),
        pytest.param("a: 1\n# evenspread: ignore[x]\n", [(2, 0, 0)], id="above nothing"),
        pytest.param("# evenspread: ignore[x]\n# more\n\na: 1\n", [(1, 4, 4)], id="above another comment"),
        pytest.param("b: 1\n# evenspread: ignore[x]\na:\n- 1\n- 2\nc: 1\n", [(2, 3, 5)], id="a key with its list"),
        pytest.param("a: '\n# evenspread: ignore[x]\n", [], id="not YAML"),
    ],
)
def test_comments_in_a_document(text, found):
    ignores = ignores_in(InputDocument(file="a.yaml", text=text.encode()))
    assert [(each.line, each.first, each.last) for each in ignores] == found


def test_json_has_no_comments():
    assert [*ignores_in(InputDocument(file="a.json", text=b'{"a": "# evenspread: ignore[x]"}', json=True))] == []
