"""``check --kustomize DIR``: what is built and checked, and what is not built."""

import os

import pytest

BASE = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      topologySpreadConstraints:
      - {maxSkew: 0, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}
"""
PRINTS = '#!/bin/sh\ncat "$2/deploy.yaml"; echo "# $0 $1 $GIT_ALLOW_PROTOCOL" >&2\n'
OFFERED = "check its output: evenspread check --kustomize DIR"


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Makes programs of these names, which are the whole PATH."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")

    def make(script, *names):
        (tmp_path / "bin").mkdir(exist_ok=True)
        for name in names:
            (tmp_path / "bin" / name).write_text(script)
            (tmp_path / "bin" / name).chmod(0o755)

    return make


@pytest.fixture
def tree(tmp_path):
    """Writes an overlay with this kustomization beside a base."""

    def tree(text, **files):
        for name, content in {"kustomization.yaml": text, "deploy.yaml": BASE, **files}.items():
            path = tmp_path / "app" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)

    return tree


@pytest.mark.parametrize("name", ["kustomize", "kubectl"])
def test_what_it_prints_is_checked(run, programs, tree, name):
    tree("resources: [deploy.yaml]\n")
    programs(PRINTS, "kustomize", name)
    code, out, err = run("check", "--kustomize", "app", "--rule", "max-skew")
    assert (code, out.splitlines()[0], err) == (
        1,
        "kustomize build app:10:10: high max-skew (kube-apiserver refuses it)",
        "",
    )


@pytest.mark.parametrize(
    ("text", "files", "reason"),
    [
        pytest.param(
            "resources: [https://example.com/a.yaml]",
            {},
            "names https://example.com/a.yaml, which is not a local file",
            id="a URL",
        ),
        pytest.param(
            "resources: ['github.com/a/b//c?ref=v1']",
            {},
            "names github.com/a/b//c?ref=v1, which is not a local file",
            id="a git repository",
        ),
        pytest.param(
            "components: [git@example.com:a/b]",
            {},
            "names git@example.com:a/b, which is not a local file",
            id="a component elsewhere",
        ),
        pytest.param("bases: [nowhere]", {}, "names nowhere, which is not a local file", id="a base that is not there"),
        pytest.param("helmCharts: [{name: web}]", {}, "inflates a Helm chart", id="a Helm chart"),
        pytest.param(
            "patches: [{path: 'https://example.com/p.yaml'}]",
            {},
            "loads https://example.com/p.yaml",
            id="a patch elsewhere",
        ),
        pytest.param(
            "openapi: {path: 'https://example.com/p.json'}",
            {},
            "loads https://example.com/p.json",
            id="a schema elsewhere",
        ),
        pytest.param(
            "configMapGenerator: [{files: ['a=https://example.com/a']}]",
            {},
            "loads https://example.com/a",
            id="a generator's file elsewhere",
        ),
        pytest.param(
            "resources: [base]",
            {"base/kustomization.yml": "resources: [//x/y]"},
            "names //x/y, which is not a local file",
            id="in a base",
        ),
        pytest.param(
            "resources: [base]", {"base/a.yaml": ""}, "has no kustomization.yaml", id="a base without a kustomization"
        ),
    ],
)
def test_what_needs_more_than_local_files_is_not_built(run, tree, text, files, reason):
    tree(text, **files)
    code, _, err = run("check", "--kustomize", "app")
    assert (code, err.startswith("kustomize build app: error: not built: ")) == (3, True)
    assert err.endswith(f" {reason} (--kustomize only reads local files)\n")
    note = run("check", "app/kustomization.yaml")[2]
    assert ("with remote bases or Helm charts" in note, OFFERED in note) == (True, False)


def test_it_is_offered_where_it_builds(run, tree):
    tree("resources: [deploy.yaml, base]\n", **{"base/kustomization.yaml": "resources: []"})
    assert run("check", "app/kustomization.yaml")[2] == (
        f"app/kustomization.yaml:1:1: note: skipped: a kustomization; {OFFERED}\n"
    )


def test_a_failure_is_in_its_words(run, programs, tree):
    tree("resources: [deploy.yaml]\n")
    programs("#!/bin/sh\necho 'Error: no such patch' >&2; exit 1\n", "kustomize")
    assert run("check", "--kustomize", "app")[::2] == (3, "kustomize build app: error: Error: no such patch\n")


def test_kustomize_and_kubectl_are_both_missing(run, tree, monkeypatch, tmp_path):
    tree("resources: [deploy.yaml]\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run("check", "--kustomize", "app")[::2] == (
        3,
        "kustomize build app: error: neither kustomize nor kubectl is in the PATH\n",
    )


@pytest.mark.parametrize("option", ["--fix", "--add-defaults"])
def test_nothing_is_written_into_what_was_built(run, option):
    code, _, err = run("check", "--kustomize", "app", option)
    assert code == 2
    assert "--fix, --add-defaults and --write cannot change the output of --kustomize" in err
