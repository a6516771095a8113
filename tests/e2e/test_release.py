"""What the release workflow does, with a registry on this machine: what was pushed is what was built."""

import hashlib
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

import pytest
import yaml
from e2e.controlplane.up import HOST, built, end_with_parent, free_ports
from server.conftest import eventually

REPOSITORY = pathlib.Path(__file__).parents[2]
VERSION = yaml.safe_load((REPOSITORY / "charts" / "evenspread" / "Chart.yaml").read_text())["version"]
PLATFORM = {"x86_64": "linux-amd64", "aarch64": "linux-arm64"}[platform.machine()]
PYTHON = pathlib.Path(sys.base_prefix) / "bin" / "python3"
SET = ("--set", "certificates.mode=certManager")


def said(*command, **environment):
    done = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, check=False, env=os.environ | environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(name="made", scope="module")
def _made():
    said("release/make.sh", PLATFORM)
    return REPOSITORY / "dist" / "release"


@pytest.fixture(name="tools", scope="module")
def _tools():
    return pathlib.Path(said("release/tools.sh"))


@pytest.fixture(name="crane", scope="module")
def _crane(tools):
    return str(tools / "crane")


@pytest.fixture(name="registry", scope="module")
def _registry(crane):
    [port] = free_ports(1)
    with subprocess.Popen(
        [crane, "registry", "serve", "--address", f"{HOST}:{port}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=end_with_parent,  # noqa: PLW1509  it calls prctl and nothing else
    ) as process:
        eventually(lambda: answers(crane, f"{HOST}:{port}"))
        yield f"{HOST}:{port}"
        process.terminate()


def answers(crane, registry):
    done = subprocess.run([crane, "catalog", registry, "--insecure"], capture_output=True, check=False)
    return done.returncode == 0


def test_the_image_is_pushed_as_it_was_built(made, crane, registry):
    [archive] = made.glob("*.oci.tar")
    name = f"{registry}/evenspread:{VERSION}"
    digest = said("release/publish_image.sh", name, str(archive), INSECURE="1")

    index = json.loads(said(crane, "manifest", "--insecure", name))
    [entry], architecture = index["manifests"], archive.name.removesuffix(".oci.tar").rpartition("-")[2]
    assert entry["digest"] == (REPOSITORY / "dist" / "image" / "digest").read_text()
    assert entry["platform"] == {"os": "linux", "architecture": architecture}
    assert digest == said(crane, "digest", "--insecure", name)
    assert "PASS" in said(crane, "validate", "--insecure", "--remote", f"{registry}/evenspread@{entry['digest']}")


def test_the_chart_is_pushed_as_it_was_packed_and_pulled_by_who_installs_it(made, registry, tmp_path):
    helm = built() / "helm"
    path = {"PATH": f"{helm.parent}:{os.environ['PATH']}", "INSECURE": "1"}
    packed = made / f"evenspread-{VERSION}.tgz"
    digest = said("release/publish_chart.sh", f"{registry}/charts", str(packed), **path)
    assert digest.startswith("sha256:")

    address = f"oci://{registry}/charts/evenspread"
    said(str(helm), "pull", address, "--plain-http", "--version", VERSION, "--destination", str(tmp_path))
    assert (tmp_path / packed.name).read_bytes() == packed.read_bytes()
    assert f"version: {VERSION}" in said(str(helm), "show", "chart", str(packed))
    assert said(str(helm), "template", str(packed), *SET) == said(str(helm), "template", "charts/evenspread", *SET)


# -- what users install, each in an environment with nothing else


def finds_the_mistake(*command, home):
    """Whether a check of the example prints its finding."""
    done = subprocess.run(
        [*command, "check", "examples/rejected.yaml"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        env={"HOME": str(home), "PATH": f"{PYTHON.parent}:/usr/bin:/bin"},
    )
    assert (done.returncode, done.stderr) == (1, "")
    return done.stdout.startswith("examples/rejected.yaml:12:9: high max-skew (kube-apiserver refuses it)\n")


def test_the_single_file_runs_with_python_alone(made, tmp_path):
    file = made / f"evenspread-{VERSION}-{PLATFORM}.pyz"

    assert finds_the_mistake(file, home=tmp_path)
    [packages] = (tmp_path / ".cache" / "evenspread").iterdir()
    was = packages.stat()
    assert finds_the_mistake(file, home=tmp_path)  # from the same folder, which stays as it was
    assert (list(packages.parent.iterdir()), packages.stat().st_mtime_ns) == ([packages], was.st_mtime_ns)


def test_the_wheel_is_installed_by_pip(made, tmp_path):
    [wheel] = made.glob("*.whl")
    said(str(PYTHON), "-m", "venv", str(tmp_path))
    said(str(tmp_path / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", str(wheel))

    assert finds_the_mistake(tmp_path / "bin" / "evenspread", home=tmp_path)


def test_krew_installs_the_plugin(made, tools, tmp_path):
    archive = made / f"evenspread-{VERSION}-{PLATFORM}.zip"
    root = {"KREW_ROOT": str(tmp_path / "krew"), "HOME": str(tmp_path)}
    said(str(tools / "krew"), "install", f"--manifest={made / 'krew.yaml'}", f"--archive={archive}", **root)

    assert finds_the_mistake(tmp_path / "krew" / "bin" / "kubectl-evenspread", home=tmp_path)
    shutil.rmtree(tmp_path / "krew")
    changed = tmp_path / archive.name
    changed.write_bytes(archive.read_bytes() + b"x")
    with pytest.raises(AssertionError, match="checksum does not match"):
        said(str(tools / "krew"), "install", f"--manifest={made / 'krew.yaml'}", f"--archive={changed}", **root)


def test_homebrew_downloads_the_archive_and_installs_its_manual_page(made, tmp_path):
    archive = made / f"evenspread-{VERSION}-{PLATFORM}.zip"
    formula = (made / "evenspread.rb").read_text()

    assert f'/v{VERSION}/{archive.name}"\n      sha256 "{hashlib.sha256(archive.read_bytes()).hexdigest()}"' in formula
    shutil.unpack_archive(archive, tmp_path)
    assert (tmp_path / "evenspread.1").read_bytes() == (made / "evenspread.1").read_bytes()
    for name in re.findall(r'(?:libexec|man1)\.install "(.+)"', formula):
        assert (tmp_path / name).is_file()


def test_bash_completes_the_single_file(made, tmp_path):
    shutil.copy(made / f"evenspread-{VERSION}-{PLATFORM}.pyz", tmp_path / "evenspread")
    script = (
        "source <(evenspread completion bash); COMP_WORDS=(evenspread aud); COMP_CWORD=1; "
        '_evenspread_completion evenspread; echo "${COMPREPLY[@]}"'
    )
    path = f"{tmp_path}:{PYTHON.parent}:/usr/bin:/bin"
    assert said("/bin/bash", "-c", script, HOME=str(tmp_path), PATH=path) == "audit"
