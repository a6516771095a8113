"""The release: its workflow asks for no more than it needs, and what its scripts refuse."""

import io
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from release.man_page import man_page
from release.pyz.build import archive, zipapp
from release.pyz.manifests import download, homebrew_formula, krew_manifest
from webhook.cli.main import evenspread

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


def test_the_action_pastes_no_input_into_a_script():
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    steps = action["runs"]["steps"]
    assert [step["name"] for step in steps if "${{" in step["run"]] == []
    given = {text for step in steps for text in step.get("env", {}).values()}
    assert given == {f"${{{{ inputs.{name} }}}}" for name in action["inputs"]}


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


def test_the_workflow_of_visitors_runs_what_we_run_and_may_only_read():
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    workflow = yaml.safe_load(text)
    checkout, *others = workflow["jobs"]["run"]["steps"]

    assert workflow["permissions"] == {"contents": "read"}
    assert checkout in [step for job in JOBS.values() for step in job["steps"]]
    assert [step["run"].split()[-1] for step in others][-1] == ".ci/run"


# -- the command line as one file

MACHINE = f"{platform.system()}-{platform.machine()}"
THIS = f"cp{sys.version_info.major}{sys.version_info.minor}"
SAYS_HELLO = b"def run():\n    print('hello')\n"


@pytest.mark.parametrize(
    ("made_for", "files", "expected"),
    [
        pytest.param(MACHINE, {"common/evenspread.py": SAYS_HELLO, f"{THIS}/x.so": b""}, "hello\n", id="fits"),
        pytest.param(
            "Plan9-mips",
            {"common/evenspread.py": SAYS_HELLO, f"{THIS}/x.so": b""},
            f"one.pyz is for Plan9-mips, and this machine is {MACHINE}: download its file\n",
            id="another machine",
        ),
        pytest.param(
            MACHINE,
            {"common/evenspread.py": SAYS_HELLO, "cp30/x.so": b"", "cp31/x.so": b""},
            f"one.pyz needs one of the Pythons cp30, cp31, and this is {THIS}\n",
            id="another Python",
        ),
    ],
)
def test_the_single_file_says_where_it_runs(tmp_path, made_for, files, expected):
    file = tmp_path / "one.pyz"
    file.write_bytes(zipapp(files, made_for))
    done = subprocess.run(  # noqa: S603 our own file
        [sys.executable, "-I", file], capture_output=True, text=True, check=False, env={"HOME": str(tmp_path)}
    )
    assert done.stdout + done.stderr == expected


def test_the_single_file_is_the_same_for_the_same_packages():
    assert zipapp({"common/a.py": b"1"}, MACHINE) == zipapp({"common/a.py": b"1"}, MACHINE)
    assert zipapp({"common/a.py": b"1"}, MACHINE) != zipapp({"common/a.py": b"2"}, MACHINE)


ARCHIVES = {"linux-amd64": b"a", "linux-arm64": b"b", "darwin-arm64": b"c"}
DOWNLOADS = {platform: download("1.2.3", platform, data) for platform, data in ARCHIVES.items()}


def test_the_manifest_for_krew_names_each_archive():
    manifest = yaml.safe_load(krew_manifest("1.2.3", DOWNLOADS))

    assert manifest["spec"]["version"] == "v1.2.3"
    assert [
        (each["selector"]["matchLabels"], each["uri"].rpartition("/")[2]) for each in manifest["spec"]["platforms"]
    ] == [
        ({"os": "linux", "arch": "amd64"}, "evenspread-1.2.3-linux-amd64.zip"),
        ({"os": "linux", "arch": "arm64"}, "evenspread-1.2.3-linux-arm64.zip"),
        ({"os": "darwin", "arch": "arm64"}, "evenspread-1.2.3-darwin-arm64.zip"),
    ]


def test_the_formula_names_each_archive_with_its_checksum():
    formula = homebrew_formula("1.2.3", DOWNLOADS, "3.14")

    found = re.findall(r"on_(\w+) do|url \"(\S+)\"|sha256 \"(\w+)\"", formula)
    assert ["".join(each) for each in found] == [
        "macos",
        *("arm", *DOWNLOADS["darwin-arm64"]),
        "linux",
        *("arm", *DOWNLOADS["linux-arm64"]),
        *("intel", *DOWNLOADS["linux-amd64"]),
    ]
    assert re.search(r'^class Evenspread < Formula$.*^  version "1\.2\.3"$.*^end$', formula, re.MULTILINE | re.DOTALL)
    assert len(re.findall(r"(?:\bdo|^class .*|^  def .*)$", formula, re.MULTILINE)) == len(
        re.findall(r"^ *end$", formula, re.MULTILINE)
    )


@pytest.mark.skipif(shutil.which("ruby") is None, reason="no ruby here")
def test_the_formula_is_one_that_ruby_can_read(tmp_path):
    (tmp_path / "evenspread.rb").write_text(homebrew_formula("1.2.3", DOWNLOADS, "3.14"))
    assert run("ruby", "-c", "evenspread.rb", cwd=tmp_path).stdout == "Syntax OK\n"


def test_an_archive_has_what_package_managers_install():
    with zipfile.ZipFile(io.BytesIO(archive(b"app", ".TH"))) as packed:
        modes = {entry.filename: oct(entry.external_attr >> 16 & 0o777) for entry in packed.infolist()}
        assert modes == {"evenspread": "0o755", "evenspread.1": "0o644", "LICENSE": "0o644"}


# -- the manual page

MACROS = {"TH", "SH", "SS", "PP", "TP", "B", "I", "nf", "fi", "RS", "RE"}


def test_the_manual_page_has_each_command_and_option():
    page = man_page()
    shown = re.findall(r"^\.SS evenspread (\w+) ", page, re.MULTILINE)
    assert shown == evenspread.list_commands(None)
    section = page.partition(".SS evenspread audit ")[2].partition(".SS ")[0]
    assert ".TP\n.B \\-\\-context NAME\nRead the cluster of this context. Repeat it for more clusters.\n" in section
    assert section.rstrip().endswith("4 cluster not readable, 5 a bug of evenspread.")


def test_the_manual_page_has_no_other_macro_and_no_bare_hyphen():
    first, *lines = man_page().splitlines()
    assert first.startswith('.TH EVENSPREAD 1 "" "evenspread ')
    assert {line.split()[0][1:] for line in lines if line.startswith(".")} == MACROS - {"TH"}
    assert [line for line in lines if line.startswith("'") or re.search(r"(?<!\\)-|(?<!\\)[\"'`^~]", line)] == []


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff here")
def test_the_manual_page_is_rendered_without_a_warning(tmp_path):
    (tmp_path / "evenspread.1").write_text(man_page())
    done = run("groff", "-man", "-ww", "-Tutf8", "-P-cbou", "evenspread.1", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "evenspread audit [OPTIONS] [FILE|-]..." in done.stdout
