"""What the image is made of and how, as far as that needs no image: tests/e2e/test_image.py runs one."""

import fnmatch
import hashlib
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from chart.rendered import ZERO, one

from image import debian, oci, run, wheels

ROOT = Path(__file__).parent.parent
IGNORED = (ROOT / ".dockerignore").read_text().split()
PACKAGES = [line for line in (ROOT / "image/packages.txt").read_text().splitlines() if not line.startswith("#")]


def stages():
    """The instructions of each stage: word and rest."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    found = []
    for word, rest in (line.split(None, 1) for line in text.splitlines() if line.strip()):
        if word == "FROM":
            found.append([])
        if found:
            found[-1].append((word, " ".join(rest.split())))
    return found


BUILD, RUN = stages()
COPIED = [rest.split()[0] for word, rest in BUILD if word == "COPY"]
CONFIG = oci.Contents(architecture="amd64", version="1", seconds=0, layers=()).config["config"]


def setting(word):
    (rest,) = [rest for found, rest in RUN if found == word]
    return rest


# -- the Dockerfile: the same files, run the same way


def test_the_dockerfile_takes_its_files_from_the_program_that_makes_them_without_an_engine():
    assert BUILD[-1] == ("RUN", "python3 -m image.build wheel/*.whl /out")
    assert [rest for word, rest in RUN if word in {"FROM", "COPY"}] == ["scratch", "--from=build /out/root /"]
    assert {word for word, _ in RUN} - {"FROM", "COPY"} == {
        "LABEL",
        "ENV",
        "USER",
        "WORKDIR",
        "EXPOSE",
        "ENTRYPOINT",
        "CMD",
    }


def test_the_dockerfile_runs_them_as_the_image_says():
    assert setting("USER") == CONFIG["User"]
    assert setting("WORKDIR") == CONFIG["WorkingDir"]
    assert {f"{port}/tcp" for port in setting("EXPOSE").split()} == set(CONFIG["ExposedPorts"])
    assert json.loads(setting("ENTRYPOINT")) == CONFIG["Entrypoint"]
    assert json.loads(setting("CMD")) == CONFIG["Cmd"]
    assert setting("ENV").split() == CONFIG["Env"]
    said = dict(re.findall(r'(\S+)="([^"]*)"', setting("LABEL")))
    assert said == {name: value for name, value in CONFIG["Labels"].items() if not name.endswith(".version")}


@pytest.mark.parametrize("source", COPIED)
def test_what_is_copied_reaches_the_build(source):
    assert source in {pattern.removeprefix("!") for pattern in IGNORED}
    assert IGNORED[0] == "*"


@pytest.mark.parametrize("source", [".venv", ".git", "tests", "charts", "docs", "webhook"])
def test_nothing_else_reaches_it(source):
    assert not any(fnmatch.fnmatch(source, pattern.removeprefix("!")) for pattern in IGNORED[1:])


# -- as the chart has it


def test_the_user_is_the_charts():
    context = one("Deployment", ZERO)["spec"]["template"]["spec"]["securityContext"]
    assert CONFIG["User"] == f"{context['runAsUser']}:{context['runAsGroup']}"


def test_the_ports_are_the_charts():
    (container,) = one("Deployment", ZERO)["spec"]["template"]["spec"]["containers"]
    assert [*CONFIG["ExposedPorts"]] == [f"{each['containerPort']}/tcp" for each in container["ports"]]


# -- Debian's packages


@pytest.mark.parametrize("architecture", ["amd64", "arm64"])
def test_every_package_is_locked_once(architecture):
    lock = debian.locked(architecture)
    assert sorted(package.name for package in lock.packages) == PACKAGES == sorted(set(PACKAGES))
    assert all(re.fullmatch(r"[0-9a-f]{64}", package.sha256) for package in lock.packages)
    assert {package.suite for package in lock.packages} <= {"trixie", "trixie-updates", "trixie-security"}
    assert all(package.path.startswith("pool/") for package in lock.packages)
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT00:00:00Z", lock.date)


def archived(**members):
    """A tar of files, with links where the text begins with an arrow."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:xz") as archive:
        for name, text in members.items():
            member = tarfile.TarInfo(name)
            if text.startswith("-> "):
                member.type, member.linkname = tarfile.SYMTYPE, text[3:]
            member.size = 0 if member.issym() else len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return written.getvalue()


def deb(**files):
    parts = {
        "debian-binary": b"2.0\n",
        "control.tar.xz": archived(**{"./control": "Package: tool\nVersion: 1:1+1\n"}),
        "data.tar.xz": archived(**{f"./{name}": text for name, text in files.items()}),
    }
    packed = b"!<arch>\n"
    for name, content in parts.items():
        packed += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode() + content
        packed += b"\n" * (len(content) % 2)
    return packed


PACKAGE = debian.Package("amd64", hashlib.sha256(b"tool").hexdigest(), "trixie", "pool/tool_1%2b1_amd64.deb")


def test_a_package_is_unpacked_as_dpkg_would_on_a_merged_system(tmp_path):
    (tmp_path / PACKAGE.sha256).write_bytes(
        deb(
            **{
                "bin/tool": "1",
                "usr/bin/other": "2",
                "lib64/ld.so": "-> /lib/ld.so",
                "usr/share/doc/tool/copyright": "3",
                "usr/share/doc/tool/changelog.gz": "4",
                "usr/share/doc/tool/README": "5",
                "usr/share/man/man1/tool.1": "6",
                f"usr/lib/{debian.PYTHON}/pydoc_data/x.py": "7",
            }
        )
    )
    debian.unpack(debian.Lock("2026-01-01T00:00:00Z", (PACKAGE,)), tmp_path, tmp_path / "root")

    found = {str(each.relative_to(tmp_path / "root")) for each in (tmp_path / "root").rglob("*") if not each.is_dir()}
    assert {"usr/bin/tool", "usr/bin/other", "usr/lib64/ld.so", "usr/share/doc/tool/copyright"} <= found
    assert [each for each in found if each.endswith((".gz", "README", ".1", "x.py"))] == []
    assert (tmp_path / "root/bin").readlink() == Path("usr/bin")
    assert (tmp_path / "root/var/lib/dpkg/status.d/tool").read_text() == "Package: tool\nVersion: 1:1+1\n"
    assert debian.version_of(PACKAGE, tmp_path / "root") == "1:1+1"


@pytest.fixture(params=debian.RELEASES)
def archive(request, tmp_path, monkeypatch):
    """A folder that apt takes for Debian's archive, of the release in ``request.param``."""
    if not shutil.which("apt-get"):
        pytest.skip("apt, which fetches the packages, is not on this machine")
    (tmp_path / "sources.list").write_text(f"deb copy:{tmp_path}/archive {request.param} main\n")
    settings = {"Dir::Etc::sourcelist": tmp_path / "sources.list", "Dir::Etc::sourceparts": "/dev/null"}
    (tmp_path / "apt.conf").write_text("".join(f'{name} "{value}";\n' for name, value in settings.items()))
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
    (tmp_path / "archive/pool").mkdir(parents=True)
    debian._site.cache_clear()
    yield tmp_path / "archive/pool"
    debian._site.cache_clear()


def test_a_package_comes_from_where_apt_gets_its_own(archive, tmp_path):
    (archive / "tool_1+1_amd64.deb").write_bytes(b"tool")
    assert debian.fetched(PACKAGE, tmp_path / "cache") == b"tool"

    (archive / "tool_1+1_amd64.deb").unlink()
    assert debian.fetched(PACKAGE, tmp_path / "cache") == b"tool"


@pytest.mark.parametrize(
    ("there", "reason"),
    [pytest.param(None, "No such file", id="gone"), pytest.param(b"other", "Hash Sum mismatch", id="other bytes")],
)
def test_a_package_that_is_not_to_be_had_ends_it_with_what_to_do(archive, tmp_path, there, reason):
    if there:
        (archive / "tool_1+1_amd64.deb").write_bytes(there)
    with pytest.raises(SystemExit, match=f"(?s)^pool/tool_1.*{reason}.*make image-lock takes today's packages"):
        debian.fetched(PACKAGE, tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.usefixtures("archive")
def test_a_suite_that_apt_does_not_know_is_said(tmp_path):
    with pytest.raises(SystemExit, match=r"^apt has no source of Debian's trixie-updates: "):
        debian.fetched(PACKAGE._replace(suite="trixie-updates"), tmp_path / "cache")


# -- running it


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["nowhere", "--", "version"], "image/run.py: nowhere: make image builds one\n", id="no image"),
        pytest.param([".", "--bind", "a"], "a: write HOST:PATH or HOST:PATH:rw", id="half a mount"),
        pytest.param([".", "--bind", "a:b"], "a:b: write HOST:PATH or HOST:PATH:rw", id="a relative place"),
        pytest.param([".", "--env", "A"], "A: write NAME=VALUE", id="no value"),
    ],
)
def test_what_cannot_be_run_is_said(arguments, said):
    done = subprocess.run([sys.executable, run.__file__, *arguments], capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode in {2, 125}
    assert said in done.stderr


def test_arguments_take_the_place_of_the_images_own(tmp_path):
    layers = oci.Contents(architecture="amd64", version="1", seconds=0, layers=())
    oci.write_layout(layers, tmp_path / "layout")

    def command(*arguments):
        return run.asked([str(tmp_path), *arguments]).command

    assert command() == (*oci.ENTRYPOINT, *oci.COMMAND)
    assert command("--tmpfs", "/tmp", "--", "check", "--help") == (*oci.ENTRYPOINT, "check", "--help")  # noqa: S108
    assert command("--entrypoint", "/usr/bin/python3") == ("/usr/bin/python3",)
    asked = run.asked([str(tmp_path), "--bind", f"{tmp_path}:/run/x:rw", "--env", "A=b=c"])
    assert asked.mounts == (run.Mount(tmp_path, "/run/x", writable=True),)
    assert (asked.environment["A"], asked.user) == ("b=c", 65532)


def test_programs_are_those_of_the_wheel():
    assert oci.ENTRYPOINT == ("/usr/local/bin/evenspread",)
    assert wheels.SITE.startswith(f"usr/local/lib/{debian.PYTHON}/")
