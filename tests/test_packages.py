"""The wheel and the source archive, as others install them: beside packages of the same names, without extras, anew."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import time
import tomllib
import venv
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
ALL = sysconfig.get_paths()["purelib"]
THEIRS = "raise SystemExit('a package of somebody else was imported')"

pytestmark = pytest.mark.slow


def build(kind, source, into):
    """The distribution of a kind, built from a folder."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(into)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)  # noqa: S603 our own build
    [made] = into.iterdir()
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


def closure(requirements):
    """The names of the distributions that requirements bring."""
    found, waiting = set(), [*requirements]
    while waiting:
        asked = Requirement(waiting.pop())
        if (asked.marker is None or asked.marker.evaluate({"extra": ""})) and asked.name not in found:
            found.add(asked.name)
            waiting += distribution(asked.name).requires or []
    return found


class Place:
    """An environment with the wheel, beside a `webhook` and a `certs` of somebody else."""

    def __init__(self, root, wheel, brought):
        venv.create(root, symlinks=True)
        self.bin = root / "bin"
        [self.site] = root.glob("lib/python*/site-packages")
        for name in ("webhook", "certs"):
            (self.site / name).mkdir()
            (self.site / name / "__init__.py").write_text(THEIRS)
        for name in brought:
            self._bring(distribution(name))
        install = ["install", "--quiet", "--no-deps", "--no-index", str(wheel)]
        subprocess.run([sys.executable, "-m", "pip", "--python", str(root), *install], check=True)  # noqa: S603 our wheel

    def _bring(self, found):
        for top in {file.parts[0] for file in found.files if file.parts[0] not in {"..", "__pycache__"}}:
            if not (self.site / top).exists():
                (self.site / top).symlink_to(found.locate_file(top))

    def run(self, *command):
        program, *arguments = command
        return subprocess.run(  # noqa: S603 the installed program
            [str(self.bin / program), *arguments],
            cwd=self.site,  # where `import webhook` finds theirs
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


@pytest.fixture(scope="module")
def light(wheel, tmp_path_factory):
    """Installed without an extra."""
    return Place(tmp_path_factory.mktemp("light"), wheel, closure(PROJECT["dependencies"]))


def test_the_wheel_installs_one_name(wheel):
    with zipfile.ZipFile(wheel) as opened:
        tops = {name.partition("/")[0] for name in opened.namelist()}
    assert tops == {"evenspread", f"evenspread-{PROJECT['version']}.dist-info"}


def test_the_wheel_has_every_file_of_the_packages(wheel):
    listed = subprocess.run(
        ["git", "ls-files", "webhook", "certs", "evenspread"],  # noqa: S607 of the clone
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    with zipfile.ZipFile(wheel) as opened:
        there = {name.removeprefix("evenspread/") for name in opened.namelist()}
    assert [file for file in listed if file.removeprefix("evenspread/") not in there] == []


def test_the_same_source_gives_the_same_bytes(wheel, archive, tmp_path):
    again = build("wheel", ROOT, tmp_path / "again")
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path / "source", filter="data")
    [source] = (tmp_path / "source").iterdir()
    from_archive = build("wheel", source, tmp_path / "archived")
    assert again.read_bytes() == wheel.read_bytes() == from_archive.read_bytes()
    assert build("sdist", ROOT, tmp_path / "sdist").read_bytes() == archive.read_bytes()


@pytest.mark.parametrize(
    "command",
    [("evenspread",), ("kubectl-evenspread",), ("python", "-m", "evenspread"), ("python", "-P", "-m", "evenspread")],
)
def test_programs_run_beside_packages_of_the_same_names(light, command):
    assert light.run(*command, "version").stdout.startswith(f"evenspread {PROJECT['version']} ")


def test_kubectl_completes(light):
    assert "check\tCheck manifests" in light.run("kubectl_complete-evenspread", "che").stdout


def test_the_packages_of_others_stay_theirs(light):
    assert light.run("python", "-c", "import evenspread, webhook").stderr.strip() == THEIRS.split("'")[1]


def test_a_check_needs_no_extra(light, tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_text("apiVersion: config.evenspread.io/v1alpha1\nkind: SpreadPolicy\nceiling: deny\n")
    examples = [str(ROOT / "examples" / name) for name in ("rejected.yaml", "warned.yaml", "clean.yaml")]
    for output in ("text", "json", "sarif"):
        done = light.run("evenspread", "check", "-o", output, "--config", str(policy), *examples)
        assert (done.returncode, done.stderr) == (1, ""), output
    fixed = light.run("evenspread", "check", "--fix", *examples)
    assert "+        labelSelector: {matchLabels: {app: web}}" in fixed.stdout


def test_reading_a_snapshot_needs_no_extra(light):
    cluster = str(light.site / "evenspread/webhook/example/cluster.jsonl")
    for command in (("audit",), ("explain", "--pending", "-A"), ("check", str(ROOT / "examples" / "clean.yaml"))):
        done = light.run("evenspread", *command, "--snapshot", cluster)
        assert (done.returncode in {0, 1}, done.stderr) == (True, ""), done


@pytest.mark.parametrize(
    ("command", "purpose", "module", "extra"),
    [
        pytest.param(("webhook", "--example"), "the servers and doctor need", "cryptography", "webhook", id="serving"),
        pytest.param(
            ("webhook", "--help"), "the servers and doctor need", "cryptography", "webhook", id="how to serve"
        ),
        pytest.param(
            ("audit", "--kubeconfig", "k"), "reading a cluster needs", "kubernetes", "cluster", id="a cluster"
        ),
        pytest.param(("lsp",), "the language server needs", "lsprotocol", "lsp", id="an editor"),
    ],
)
def test_what_an_extra_brings_says_so_in_one_line(light, command, purpose, module, extra):
    done = light.run("evenspread", *command)
    needs = f"evenspread: {purpose} the package {module}, which is not installed: pip install 'evenspread[{extra}]'\n"
    assert (done.returncode, done.stderr, done.stdout) == (2, needs, "")


def test_the_list_of_commands_says_so_too(light):
    done = light.run("evenspread", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "pip install 'evenspread[webhook]'" in " ".join(done.stdout.split())


def test_what_is_imported_is_named_as_a_dependency():
    """Of each extra that an import may lack, the distribution is asked for by that extra."""
    from webhook.cli.main import _EXTRA_OF_MODULE  # noqa: PLC0415 only here

    extras = PROJECT["optional-dependencies"]
    for module, (extra, _) in _EXTRA_OF_MODULE.items():
        names = {name.replace("-", "_") for name in closure(each for each in extras[extra] if "[" not in each)}
        assert module in names
    assert "evenspread[cluster]" in extras["webhook"]


def test_the_server_runs_beside_packages_of_the_same_names(light, tmp_path):
    """With the processes that it starts for costly objects, which find the same modules."""
    log = tmp_path / "log"
    command = [light.bin / "evenspread", "webhook", "--example", "--bind=127.0.0.1:0", "--health-bind=127.0.0.1:0"]
    with (
        log.open("w") as written,
        subprocess.Popen(  # noqa: S603 the installed program
            command, cwd=light.site, env=os.environ | {"PYTHONPATH": ALL}, stdout=written, stderr=written
        ) as process,
    ):
        until = time.monotonic() + 30
        while len(children(process.pid)) < 2 and time.monotonic() < until and process.poll() is None:
            time.sleep(0.1)
        before = children(process.pid)
        time.sleep(1.5)  # one that finds nothing ends within it, and is started anew
        after = children(process.pid)
        process.terminate()
        process.wait(30)
    assert (len(before), after) == (2, before), log.read_text()
    assert "No module named" not in log.read_text()


def children(master):
    """The processes that the server's worker has started."""

    def of(pid):
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    try:
        return [child for worker in of(master) for child in of(worker)]
    except FileNotFoundError:
        return []


def test_metadata_names_the_extras(wheel):
    with zipfile.ZipFile(wheel) as opened:
        [name] = [each for each in opened.namelist() if each.endswith("/METADATA")]
        lines = opened.read(name).decode().splitlines()
    assert {line for line in lines if line.startswith("Provides-Extra: ")} == {
        "Provides-Extra: cluster",
        "Provides-Extra: lsp",
        "Provides-Extra: webhook",
    }
