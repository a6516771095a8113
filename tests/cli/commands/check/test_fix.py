"""`check --fix`: what is printed, what is written, and what is left."""

import json
from pathlib import Path

import pytest
import yaml

from webhook.manifests.editing import atomic_write

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
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: maybe
        labelSelector: {matchLabels: {app: web}}
"""
FIXED = WEB.replace("maxSkew: 0", "maxSkew: 1").replace("old", "web")
LEFT = (
    "web.yaml:17:9: left when-unsatisfiable: Deployment shop/web:"
    ' spec.template.spec.topologySpreadConstraints[1].whenUnsatisfiable: Unsupported value: "maybe":'
    ' supported values: "DoNotSchedule", "ScheduleAnyway";'
    " fix (by hand: there are several possible changes): choose DoNotSchedule (a requirement)"
    " or ScheduleAnyway (a preference)\n"
)


@pytest.fixture
def fix(check):
    """Runs check in a directory that holds web.yaml."""

    def fix(*arguments, web=WEB, stdin=b""):
        return check(*arguments, web=web, stdin=stdin)

    return fix


def test_a_diff_and_what_is_left(fix, tmp_path):
    code, out, err = fix("--fix", "web.yaml")
    changed = [line for line in WEB.splitlines(keepends=True) if line not in FIXED]
    assert code == 1
    assert out == (
        "--- web.yaml\n+++ web.yaml\n@@ -8,10 +8,10 @@\n"
        "     metadata: {labels: {app: web}}\n     spec:\n       topologySpreadConstraints:\n"
        "-      - maxSkew: 0  # one\n+      - maxSkew: 1  # one\n"
        "         topologyKey: topology.kubernetes.io/zone\n         whenUnsatisfiable: ScheduleAnyway\n"
        f"-{changed[1]}+{changed[1].replace('old', 'web')}"
        f" {' '.join(WEB.splitlines(keepends=True)[14:17])}"
    )
    assert err == LEFT + "2 findings can be fixed in 1 file, 1 left\n"
    assert (tmp_path / "web.yaml").read_text() == WEB


def test_written_where_it_stands(fix, run, tmp_path):
    code, out, err = fix("--fix", "--write", "web.yaml")
    assert (code, out) == (
        1,
        (
            "web.yaml:11:9: fixed max-skew: Deployment shop/web: maxSkew: 1\n"
            "web.yaml:14:9: fixed selector-not-self: Deployment shop/web: labelSelector: {matchLabels: {app: web}}\n"
        ),
    )
    assert err == LEFT + "2 findings fixed in 1 file, 1 left\n"
    assert (tmp_path / "web.yaml").read_text() == FIXED
    assert run("check", "--fix", "--write", "web.yaml") == (1, "", LEFT + "0 findings fixed in 0 files, 1 left\n")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        pytest.param(("--fix",), 1, id="there is something to fix"),
        pytest.param(("--fix", "--write"), 0, id="nothing is left"),
    ],
)
def test_the_exit_code_is_of_what_is_left(fix, arguments, code):
    assert fix(*arguments, "web.yaml", web=WEB.replace("maybe", "ScheduleAnyway"))[0] == code


def test_nothing_to_fix(fix):
    web = FIXED.replace("maybe", "ScheduleAnyway")
    assert fix("--fix", "web.yaml", web=web) == (0, "", "0 findings can be fixed in 0 files, 0 left\n")


def test_only_the_rules_that_were_asked_for(fix):
    code, out, err = fix("--fix", "--rule", "max-skew", "web.yaml")
    assert (code, err) == (1, "1 finding can be fixed in 1 file, 0 left\n")
    assert [line for line in out.splitlines() if line[0] in "+-"][2:] == [
        "-      - maxSkew: 0  # one",
        "+      - maxSkew: 1  # one",
    ]


def test_what_is_exempted_stays(fix, tmp_path):
    (tmp_path / "policy").write_text(
        "apiVersion: config.evenspread.io/v1alpha1\nkind: SpreadPolicy\n"
        "exemptions: [{rule: selector-not-self, match: {namespace: shop}, reason: legacy, expires: 2099-01-01}]\n"
    )
    _, out, err = fix("--config", "policy", "--fix", "web.yaml")
    assert "old" not in "".join(line for line in out.splitlines() if line[0] in "+-")
    assert err == LEFT + "1 finding can be fixed in 1 file, 1 left\n"


def test_the_standard_input_and_faults(fix):
    code, out, err = fix("--fix", "-", "nowhere", stdin=WEB.encode())
    assert (code, out.splitlines()[:2]) == (3, ["--- <stdin>", "+++ <stdin>"])
    assert "nowhere: error:" in err


def test_what_the_text_cannot_take_is_told(fix, tmp_path):
    shared = WEB.replace("labelSelector: {matchLabels: {app: old}}", "labelSelector: &own {matchLabels: {app: old}}")
    code, out, err = fix("--fix", "--write", "--rule", "selector-not-self", "web.yaml", web=shared)
    assert (code, out) == (1, "")
    assert "; fix (by hand: the value has an anchor, a tag or a block of text): labelSelector:" in err
    assert (tmp_path / "web.yaml").read_text() == shared


def test_what_cannot_be_written(fix, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic_write, "replace_file", full)
    code, out, err = fix("--fix", "--write", "web.yaml", web=WEB.replace("maybe", "ScheduleAnyway"))
    assert (code, out) == (1, "")
    assert "web.yaml: error: not written: no space left on device\n" in err
    assert err.splitlines()[-1].startswith("0 findings fixed in 0 files, ")


def test_fixes_that_uncover_others_go_on(fix, tmp_path):
    """A value of the wrong type hides everything else, one after the other."""
    web = (
        WEB.replace("replicas: 3", 'replicas: "3"')
        .replace("maxSkew: 0", 'maxSkew: "1"')
        .replace("maybe", "schedule-anyway")
    )
    web = web.replace("{app: old}", "{app: web, v: 1.0}").replace("labels: {app: web}", "labels: {app: web, v: true}")
    code, _, err = fix("--fix", "--write", "web.yaml", web=web)
    assert (code, err.splitlines()[-1]) == (0, "6 findings fixed in 1 file, 0 left")
    [deployment] = yaml.safe_load_all((tmp_path / "web.yaml").read_text())
    template = deployment["spec"]["template"]
    assert deployment["spec"]["replicas"] == 3
    assert template["metadata"]["labels"] == {"app": "web", "v": "true"}
    zone, host = template["spec"]["topologySpreadConstraints"]
    assert (zone["maxSkew"], zone["labelSelector"]) == (1, {"matchLabels": {"app": "web", "v": "true"}})
    assert host["whenUnsatisfiable"] == "ScheduleAnyway"


def test_json(fix, tmp_path):
    (tmp_path / "web.json").write_text(json.dumps(yaml.safe_load(WEB), indent=2))
    fix("--fix", "--write", "web.json")
    assert (tmp_path / "web.json").read_text() == json.dumps(yaml.safe_load(FIXED), indent=2)


def test_is_what_the_page_shows(fix):
    _, out, err = fix("--fix", "web.yaml")
    page = Path(__file__).parents[4] / "docs" / "cli" / "fixes.md"
    assert f"$ evenspread check --fix web.yaml\n{out}{err}```\n" in page.read_text()


RULES = ("--rule", "unread-constraints", "--rule", "unknown-field")


def test_a_change_of_the_configuration_is_said_to_be_one(fix):
    web = "apiVersion: db.example.com/v1\nkind: Db\nspec: {topologySpreadConstraints: [{maxSkew: 1}]}\n"
    _, _, err = fix("--fix", *RULES, "web.yaml", web=web)
    assert "; fix (by hand: change evenspread's configuration, not this file): add to workloads" in err


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        pytest.param("kind: Deployment", "kind: Deployment", id="the right one"),
        pytest.param("kind: deployment", "kind: Deployment", id="a kind in another case"),
        pytest.param("kind: Deploymnet", "kind: Deployment", id="a misspelt kind"),
        pytest.param("topologySpreadConstraint:", "topologySpreadConstraints:", id="a misspelt name"),
    ],
)
def test_a_wrong_name_is_replaced_though_a_note_comes_to_light(fix, tmp_path, wrong, right):
    spread = FIXED.partition("      - maxSkew: 1\n        topologyKey: kubernetes.io/hostname")[0]
    code, _, err = fix("--fix", "--write", *RULES, "web.yaml", web=spread.replace(right, wrong))
    assert (tmp_path / "web.yaml").read_text() == spread
    assert code == 0
    assert ("1 finding fixed" if wrong != right else "0 findings fixed") in err
