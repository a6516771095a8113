import json

import pytest

MANIFEST = """\
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: web, namespace: shop}
spec:
  template:
    metadata: {labels: {app: web}}
    spec:
      topologySpreadConstraints:
      - maxSkew: 0
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: ScheduleAnyway
        labelSelector: {matchLabels: {app: old}}
"""
RULES = ("--rule", "max-skew", "--rule", "selector-not-self")
SKEW = "spec.template.spec.topologySpreadConstraints[0].maxSkew"


def case(run, tmp_path, text, *arguments):
    (tmp_path / "a.yaml").write_text(text)
    code, out, err = run("test", ".", "-o", "json", *RULES, *arguments)
    assert err == ""
    return code, [
        (each["line"], each["missing"], [f"{row['mode']} {row['rule']}" for row in each["unexpected"]])
        for each in json.loads(out)
    ]


@pytest.mark.parametrize(
    ("comments", "code", "missing", "unexpected"),
    [
        pytest.param("# expect: max-skew\n# expect: selector-not-self\n", 0, [], [], id="one line a finding"),
        pytest.param("# expect: selector-not-self, max-skew\n", 0, [], [], id="several on a line, in any order"),
        pytest.param(f"# expect: warn max-skew at {SKEW}, warn selector-not-self\n", 0, [], [], id="mode and path"),
        pytest.param("# a comment\n#expect:max-skew,selector-not-self\n---\n", 0, [], [], id="above a separator"),
        pytest.param("# expect: max-skew\n", 1, [], ["warn selector-not-self"], id="one too many"),
        pytest.param(
            "# expect: deny max-skew, selector-not-self\n", 1, ["deny max-skew"], ["warn max-skew"], id="another mode"
        ),
        pytest.param(
            "# expect: max-skew at spec, selector-not-self\n",
            1,
            ["max-skew at spec"],
            ["warn max-skew"],
            id="another path",
        ),
        pytest.param(
            "# expect: max-skew, max-skew, selector-not-self\n", 1, ["max-skew"], [], id="twice, but there is one"
        ),
        pytest.param("# expect: nothing\n", 1, [], ["warn max-skew", "warn selector-not-self"], id="nothing"),
        pytest.param("", 1, [], ["warn max-skew", "warn selector-not-self"], id="no expectation"),
    ],
)
def test_expectations(run, tmp_path, comments, code, missing, unexpected):  # noqa: PLR0917 the columns of the table
    line = 4 if "---" in comments else 1
    assert case(run, tmp_path, comments + MANIFEST) == (code, [(line, missing, unexpected)])


def test_a_general_expectation_leaves_the_exact_finding(run, tmp_path):
    two = MANIFEST + MANIFEST.partition("Constraints:\n")[2].replace("hostname", "zone")
    exact = "spec.template.spec.topologySpreadConstraints[1].maxSkew"
    comments = f"# expect: max-skew, max-skew at {exact}, selector-not-self, selector-not-self\n"
    assert case(run, tmp_path, comments + two) == (0, [(1, [], [])])


def test_each_document_has_its_own(run, tmp_path):
    text = f"# expect: nothing\n{MANIFEST}---\n# expect: max-skew, selector-not-self\n{MANIFEST}"
    code, cases = case(run, tmp_path, text)
    assert (code, [(line, bool(unexpected)) for line, _, unexpected in cases]) == (1, [(1, True), (15, False)])


def test_the_ceiling_is_named_where_it_is_why(run, tmp_path):
    (tmp_path / "a.yaml").write_text("# expect: deny max-skew, selector-not-self\n" + MANIFEST)
    code, out, _ = run("test", ".", *RULES)
    assert code == 1
    assert f"  + warn max-skew at {SKEW}  (configured as deny, but a ceiling lowers it)\n" in out


def test_an_object_without_template_needs_no_expectation(run, tmp_path):
    text = f"# expect: max-skew, selector-not-self\n{MANIFEST}---\napiVersion: v1\nkind: Namespace\n"
    assert case(run, tmp_path, text) == (0, [(1, [], [])])


def test_the_diff(run, tmp_path):
    (tmp_path / "a.yaml").write_text("# expect: selector-not-self, selector-empty\n" + MANIFEST)
    code, out, err = run("test", "a.yaml", *RULES)
    assert (code, err) == (1, "")
    assert out == (
        "FAIL a.yaml:1: Rollout shop/web\n"
        "  - selector-empty\n"
        f"  + warn max-skew at {SKEW}\n"
        f"      {SKEW}: Invalid value: 0: must be greater than zero\n"
        "(- expected, not found; + found, not expected)\n"
        "1 document: 0 as expected, 1 not\n"
    )


def test_what_to_write_where_nothing_stands(run, tmp_path):
    (tmp_path / "a.yaml").write_text(MANIFEST)
    _, out, _ = run("test", "a.yaml", *RULES)
    assert "  no expectation; add this comment above the document: # expect: max-skew, selector-not-self\n" in out


def test_all_as_expected(run, tmp_path):
    (tmp_path / "a.yaml").write_text("# expect: max-skew, selector-not-self\n" + MANIFEST)
    assert run("test", "a.yaml", *RULES) == (0, "1 document: 1 as expected, 0 not\n", "")
    assert run("test", "a.yaml", "-v", *RULES)[1].startswith("ok   a.yaml:1: Rollout shop/web\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "# expect: max-scew\n" + MANIFEST,
            "a.yaml:1:1: error: no rule 'max-scew'; did you mean 'max-skew'?",
            id="no rule",
        ),
        pytest.param(
            "# expect: Max Skew!\n" + MANIFEST,
            "a.yaml:1:1: error: invalid expectation 'Max Skew!'; "
            "write it as # expect: [deny|warn|audit] RULE [at PATH]",
            id="no expectation",
        ),
        pytest.param(
            "a: b: c\n", "a.yaml:1:5: error: not YAML: mapping values are not allowed in this context", id="not YAML"
        ),
    ],
)
def test_what_cannot_be_read(run, tmp_path, text, message):
    (tmp_path / "a.yaml").write_text(text)
    code, _, err = run("test", "a.yaml")
    assert code == 3
    assert err.splitlines()[0] == message
