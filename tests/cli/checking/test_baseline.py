"""The baseline of `check`: known findings are hidden, new findings fail, fixed findings are named."""

import json

import pytest

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, namespace: shop}}
spec:
  replicas: 3
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      topologySpreadConstraints:
"""
CONSTRAINT = """\
      - maxSkew: 1
        topologyKey: {key}
        whenUnsatisfiable: ScheduleAnyway
        labelSelector: {{matchLabels: {{app: {counted}}}}}
"""
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def deployment(name, **counted):
    """A Deployment with a constraint over each key that counts this app. An app other than its name is a finding."""
    keys = {"zone": ZONE, "host": HOST}
    constraints = (CONSTRAINT.format(key=keys[key], counted=app) for key, app in counted.items())
    return DEPLOYMENT.format(name=name) + "".join(constraints)


BAD, GOOD = deployment("web", zone="old"), deployment("web", zone="web")
HIDES = "base.json: note: hides 1 known finding\n"
FIXED = "base.json: note: fixed: Deployment shop/web selector-not-self; --write-baseline removes fixed findings\n"


@pytest.fixture
def later(run, tmp_path):
    """Write a baseline of web.yaml, replace the file, and check again: exit code, lines of findings, notes."""

    def later(before, after, *options, name="web.yaml"):
        (tmp_path / "web.yaml").write_text(before)
        assert run("check", "web.yaml", "--write-baseline", "base.json", *options)[0] == 0
        (tmp_path / "web.yaml").unlink()
        (tmp_path / name).write_text(after)
        code, out, err = run("check", name, "--baseline", "base.json", "--level", "high", "-o", "json", *options)
        return code, [entry["line"] for entry in json.loads(out) if "severity" in entry], err

    return later


# The lost defaults, a finding at audit level, would add to every count.
RULE = ("--rule", "selector-not-self")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(BAD, BAD, (0, [], HIDES), id="the same"),
        pytest.param(BAD, "# moved\n\n" + BAD, (0, [], HIDES), id="moved lines"),
        pytest.param(BAD, BAD.replace("apps/v1", "apps/v1beta2"), (0, [], HIDES), id="another version of the API"),
        pytest.param(BAD, GOOD, (0, [], FIXED), id="fixed"),
        pytest.param(GOOD, BAD, (1, [14], ""), id="new"),
        pytest.param(BAD, deployment("api", zone="old"), (1, [14], ""), id="of another object"),
        pytest.param(BAD, deployment("web", zone="old", host="old"), (1, [18], HIDES), id="of another constraint"),
        pytest.param(BAD, f"{BAD}---\n{BAD}", (1, [29], HIDES), id="once more than known"),
        pytest.param(BAD, deployment("api", zone="api"), (0, [], ""), id="its object is not in the run"),
    ],
)
def test_only_other_findings_are_reported(later, before, after, expected):
    assert later(before, after, *RULE) == expected


def test_a_renamed_file_keeps_its_findings(later):
    assert later(BAD, BAD, *RULE, name="renamed.yaml") == (0, [], HIDES)


def test_a_rule_that_did_not_run_fixes_nothing(run, later, tmp_path):
    assert later(BAD, BAD)[0] == 0
    (tmp_path / "web.yaml").write_text(GOOD)
    err = run("check", "web.yaml", "--baseline", "base.json", "--rule", "selector-empty")[2]
    assert "fixed" not in err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(None, "base.json: No such file or directory\n", id="missing"),
        pytest.param(
            "[]", "base.json: not a baseline of check --write-baseline: Expected `object`, got `array`\n", id="other"
        ),
        pytest.param(
            '{"version": 1}',
            "base.json: not a baseline of check --write-baseline: Object missing required field `findings`\n",
            id="no findings",
        ),
        pytest.param(
            '{"version": 2, "findings": {"web": []}}',
            "base.json: a baseline of version 2, and this evenspread reads version 1: "
            "write it again with check --write-baseline\n",
            id="another version",
        ),
    ],
)
def test_an_unreadable_baseline_is_an_error(check, tmp_path, content, message):
    if content is not None:
        (tmp_path / "base.json").write_text(content)
    code, out, err = check("web.yaml", "--baseline", "base.json", web=GOOD)
    assert (code, out) == (2, "")
    assert message in err


def test_an_unwritable_baseline_is_an_error(check):
    code, _, err = check("web.yaml", "--write-baseline", "none/base.json", web=BAD)
    assert code == 2
    assert "none/base.json: not written: No such file or directory\n" in err


def test_unreadable_input_writes_no_baseline(check, tmp_path):
    assert check("web.yaml", "--write-baseline", "base.json", web=GOOD + "  broken: [")[0] == 3
    assert not (tmp_path / "base.json").exists()


def test_a_baseline_and_fixes_exclude_each_other(check):
    code, _, err = check("web.yaml", "--fix", "--baseline", "base.json", web=BAD)
    assert code == 2
    assert "--baseline, --write-baseline, --fix and --add-defaults exclude each other: use one" in err


@pytest.mark.slow
def test_a_legacy_repository(run, tmp_path):
    """200 manifests with 150 findings, then one new mistake: reported, ignored with a reason, and repaired."""
    apps = tmp_path / "apps"
    apps.mkdir()
    for number in range(200):
        counted = "old" if number < 150 else f"app-{number}"
        (apps / f"{number}.yaml").write_text(deployment(f"app-{number}", zone=counted))
    command = ("check", "apps", "--rule", "selector-not-self")
    code, _, err = run(*command, "--write-baseline", "base.json")
    assert (code, err) == (0, "base.json: 150 findings written; --baseline base.json hides them\n")
    hides = "base.json: note: hides 150 known findings\n"
    assert run(*command, "--baseline", "base.json")[::2] == (0, hides)

    new = apps / "199.yaml"
    new.write_text(deployment("app-199", zone="old"))
    code, out, err = run(*command, "--baseline", "base.json")
    assert (code, err, out.count("selector-not-self (")) == (1, hides, 1)
    assert out.startswith("apps/199.yaml:14:9: high selector-not-self")

    comment = "# evenspread: ignore[selector-not-self] counts the pods of the old app\n"
    new.write_text(comment + new.read_text())
    assert run(*command, "--baseline", "base.json")[::2] == (0, hides)

    new.write_text(comment + deployment("app-199", zone="app-199"))
    code, _, err = run(*command, "--baseline", "base.json")
    assert code == 0
    assert "apps/199.yaml:1:1: note: unused ignore[selector-not-self]: no such finding here; --fix removes it\n" in err
