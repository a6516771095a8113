"""The release: its workflow asks for no more than it needs, and what its scripts refuse."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / ".github" / "workflows" / "release.yml").read_text()
# YAML 1.1 takes the key `on` for true.
WORKFLOW = yaml.safe_load(TEXT)
JOBS = WORKFLOW["jobs"]
STEPS = [
    pytest.param(job, step, id=f"{name} {number}")
    for name, job in JOBS.items()
    for number, step in enumerate(job["steps"])
]
SCRIPTS = sorted((ROOT / "release").glob("*.sh"))


def run(*command, cwd=ROOT):
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)  # noqa: S603 our scripts


# -- the workflow


def test_nothing_is_permitted_but_to_a_job_that_says_so():
    assert WORKFLOW["permissions"] == {}
    writes = {name: {what for what, how in job["permissions"].items() if how == "write"} for name, job in JOBS.items()}
    assert writes == {
        "build": set(),
        "files": {"contents", "id-token", "attestations"},
        "index": {"id-token"},
        "registry": {"packages", "id-token", "attestations"},
    }
    assert {name for name, job in JOBS.items() if job.get("environment") == "release"} == JOBS.keys() - {"build"}


@pytest.mark.parametrize(("job", "step"), STEPS)
def test_an_action_is_pinned_by_hash_and_a_command_is_ours(job, step):
    if "uses" in step:
        assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", step["uses"])
        assert re.search(rf"{re.escape(step['uses'])} # v\d+\.\d+\.\d+$", TEXT, re.MULTILINE)
        assert step["uses"].startswith("actions/checkout@") <= (
            step.get("with", {}).get("persist-credentials") is False
        )
    else:
        # What anybody may name, a tag above all, is given in the environment and never pasted into a command.
        assert "${{" not in step["run"]
        for script in re.findall(r"release/\w+\.sh", step["run"]):
            assert ROOT / script in SCRIPTS
        for target in re.findall(r"make ([\w-]+)", step["run"]):
            assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert job["runs-on"]


def test_every_script_of_the_release_is_called():
    called = {ROOT / path for path in re.findall(r"release/\w+\.sh", TEXT + (ROOT / "Makefile").read_text())}
    assert called == set(SCRIPTS)


@pytest.mark.parametrize("script", SCRIPTS, ids=[script.name for script in SCRIPTS])
def test_a_script_is_one_that_bash_can_read(script):
    assert run("bash", "-n", str(script)).stderr == ""
    assert script.stat().st_mode & 0o111
    assert "set -euo pipefail" in script.read_text()


# -- what scripts refuse


@pytest.fixture(name="repository")
def _repository(tmp_path):
    """What a tag is compared with."""
    for name in (
        "pyproject.toml",
        "CHANGELOG.md",
        "webhook/__init__.py",
        "charts/evenspread/Chart.yaml",
        "release/check.sh",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_a_tag_of_another_version_is_refused(repository):
    done = run("release/check.sh", "v9.9.9", cwd=repository)
    assert done.returncode == 1
    said = [line.split(" says ")[0] for line in done.stderr.splitlines()]
    assert said[:4] == ["pyproject.toml", "webhook/__init__.py", "Chart.yaml's version", "Chart.yaml's appVersion"]
    assert said[4] == "CHANGELOG.md has no section 9.9.9"


def test_a_tag_that_the_changelog_speaks_of_is_taken(repository):
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[1]
    (repository / "CHANGELOG.md").write_text(f"## {version} (today)\n")
    assert run("release/check.sh", f"v{version}", cwd=repository).returncode == 0


def test_the_changelog_has_each_heading_and_each_entry_once():
    """Changes that were merged line by line bring both back."""
    for release in re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1:]:
        headings = re.findall(r"^### .+", release, re.MULTILINE)
        entries = [" ".join(each.split()) for each in re.split(r"^(?:- |### )", release, flags=re.MULTILINE)[1:]]
        assert (sorted({*headings}), sorted({*entries})) == (sorted(headings), sorted(entries))


def made(folder, **files):
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    return str(folder)


def test_what_two_machines_make_is_put_together(tmp_path):
    one = made(tmp_path / "a", wheel="w", amd64="1", SHA256SUMS="x")
    other = made(tmp_path / "b", wheel="w", arm64="2", SHA256SUMS="y")
    assert run("release/gather.sh", str(tmp_path / "all"), one, other).returncode == 0
    sums = (tmp_path / "all" / "SHA256SUMS").read_text()
    assert [line.split()[1] for line in sums.splitlines()] == ["amd64", "arm64", "wheel"]


def test_what_two_machines_make_differently_is_refused(tmp_path):
    one, other = made(tmp_path / "a", wheel="w"), made(tmp_path / "b", wheel="v")
    done = run("release/gather.sh", str(tmp_path / "all"), one, other)
    assert (done.returncode, "is not what another machine has made" in done.stderr) == (1, True)
