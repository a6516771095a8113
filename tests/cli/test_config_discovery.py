"""The configuration file of a repository."""

import json

import pytest

from webhook.cli.config_discovery import find_config

HEAD = "apiVersion: config.evenspread.io/v1alpha1\nkind: SpreadPolicy\n"
OFF = f"{HEAD}rules: {{selector-not-self: 'off'}}\n"
ON = f"{HEAD}rules: {{selector-not-self: deny}}\n"
RELEASE = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: evenspread}\n"
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: topology.kubernetes.io/zone
    whenUnsatisfiable: ScheduleAnyway
    labelSelector: {matchLabels: {app: old}}
"""
CHECK = ("check", "pod.yaml", "-o", "json")


def tree(root, files):
    """Write these files. A name that ends with a slash is a directory."""
    for name, text in files.items():
        path = root / name
        (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        if not name.endswith("/"):
            path.write_text(text)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({"evenspread.yaml": OFF}, "evenspread.yaml", id="here"),
        pytest.param({".evenspread.yaml": OFF}, ".evenspread.yaml", id="hidden"),
        pytest.param({"evenspread.yaml": OFF, ".evenspread.yaml": ON}, "evenspread.yaml", id="both"),
        pytest.param({"../evenspread.yaml": OFF, "../.git/": ""}, "../evenspread.yaml", id="in the root"),
        pytest.param({"../../evenspread.yaml": OFF, "../../.git": "gitdir: x"}, "../../evenspread.yaml", id="worktree"),
        pytest.param(
            {"../../evenspread.yaml": OFF, "../.evenspread.yaml": ON, "../../.git/": ""},
            "../.evenspread.yaml",
            id="the nearest",
        ),
        pytest.param({"../evenspread.yaml": OFF, ".git/": ""}, None, id="above the root"),
        pytest.param({"../evenspread.yaml": OFF}, None, id="above, outside a repository"),
        pytest.param({"evenspread.yaml": RELEASE}, None, id="a manifest of evenspread's own release"),
        pytest.param(
            {"evenspread.yaml": RELEASE, ".evenspread.yaml": OFF}, ".evenspread.yaml", id="beside such a manifest"
        ),
        pytest.param({"evenspread.yaml/": ""}, None, id="a directory"),
        pytest.param({}, None, id="none"),
    ],
)
def test_the_nearest_file_of_the_repository(tmp_path, files, expected):
    here = tmp_path / "a" / "b" / "c"
    here.mkdir(parents=True)
    tree(here, files)
    found = find_config(here)
    assert (found and found.file) == (expected and (here / expected).resolve())


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        pytest.param("policies/a.yaml", "evenspread.yaml", id="inside"),
        pytest.param("../secret.yaml", None, id="out of the repository"),
        pytest.param("evenspread.yaml", None, id="to itself"),
    ],
)
def test_a_link_leads_nowhere_outside(tmp_path, target, expected):
    here = tmp_path / "here"
    tree(tmp_path, {"here/.git/": "", "here/policies/a.yaml": OFF, "secret.yaml": OFF})
    (here / "evenspread.yaml").symlink_to(here / target)
    found = find_config(here)
    assert (found and found.file.name) == expected


@pytest.mark.parametrize(
    ("options", "modes", "err"),
    [
        pytest.param((), [], "", id="found"),
        pytest.param(("-v",), [], "policy of evenspread.yaml\n", id="-v names it"),
        pytest.param(("--no-config",), ["warn"], "", id="turned off"),
        pytest.param(("--config", "on.yaml", "-v"), ["warn"], "", id="another file"),
    ],
)
def test_check_uses_it(run, tmp_path, options, modes, err):
    tree(tmp_path, {"evenspread.yaml": OFF, "on.yaml": ON, "pod.yaml": POD})
    _, out, stderr = run(*CHECK, *options)
    assert ([each["mode"] for each in json.loads(out) if "mode" in each], stderr) == (modes, err)


def test_it_is_found_from_a_directory_of_the_repository(run, tmp_path, monkeypatch):
    tree(tmp_path, {".git/": "", "evenspread.yaml": OFF, "apps/pod.yaml": POD})
    monkeypatch.chdir(tmp_path / "apps")
    code, _, err = run(*CHECK, "-v")
    assert (code, err) == (0, "policy of ../evenspread.yaml\n")


def test_faults_are_those_of_any_configuration(run, tmp_path):
    tree(tmp_path, {"evenspread.yaml": f"{HEAD}ceilling: warn\n", "pod.yaml": POD})
    assert run(*CHECK)[::2] == (2, 'evenspread.yaml:3:1: ceilling: unknown field; did you mean "ceiling"?\n')


def test_a_strangers_file_reads_nothing_outside_the_repository(run, tmp_path, monkeypatch):
    scheduler = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    tree(tmp_path, {"secret.yaml": scheduler, "in/.git/": "", "in/scheduler.yaml": scheduler, "in/pod.yaml": POD})
    monkeypatch.chdir(tmp_path / "in")
    tree(tmp_path / "in", {"evenspread.yaml": f"{HEAD}schedulerConfiguration: ../secret.yaml\n"})
    code, _, err = run(*CHECK)
    assert (code, err) == (
        2,
        "evenspread.yaml:3:25: schedulerConfiguration: ../secret.yaml: is outside the repository; use --config FILE\n",
    )
    tree(tmp_path / "in", {"evenspread.yaml": f"{HEAD}schedulerConfiguration: scheduler.yaml\n"})
    assert run(*CHECK)[0] == 1
