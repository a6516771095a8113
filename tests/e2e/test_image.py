"""The image, built without an engine: what is in it, and the webhook out of its own files as a kubelet would run it."""

import base64
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tarfile
from importlib.metadata import distributions

import pytest
from e2e.controlplane.authority import Authority
from e2e.controlplane.up import HOST, end_with_parent, free_ports
from server.attack import stop_under_load
from server.conftest import Server, eventually, posted, read_reply

from image import build, debian, run, wheels

REPOSITORY = pathlib.Path(__file__).parents[2]
IMAGE = REPOSITORY / "dist" / "image"
ROOT = IMAGE / "root"
LAYOUT = IMAGE / "layout"
INTERPRETER = f"/usr/bin/{debian.PYTHON}"
EXAMPLE = f"/{wheels.SITE}/evenspread/webhook/example"
# Shells, package managers, compilers, and what fetches more of them.
UNWANTED = re.compile(
    r"(ba|da|z|k)?sh|busybox|apt.*|dpkg.*|pip.*|ensurepip|cc|c\+\+|gcc.*|g\+\+|cpp|as|ld(\.bfd)?|make|curl|wget|perl.*|su|sudo"
)


def blob(descriptor):
    return LAYOUT / "blobs" / "sha256" / descriptor["digest"].removeprefix("sha256:")


@pytest.fixture(name="manifest", scope="module")
def _manifest():
    [entry] = json.loads((LAYOUT / "index.json").read_text())["manifests"]
    return json.loads(blob(entry).read_text())


@pytest.fixture(name="members", scope="module")
def _members(manifest):
    """Every file of the image by its path, as the last layer has it."""
    found = {}
    for layer in manifest["layers"]:
        with tarfile.open(blob(layer)) as opened:
            found |= {member.name: member for member in opened}
    return found


def inside(*arguments, options=(), program=INTERPRETER):
    """A program of the image, run in it."""
    command = [sys.executable, run.__file__, str(IMAGE), *options, "--entrypoint", program, "--", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


# -- what is in it


def test_the_same_inputs_give_the_same_digest_in_another_place_of_another_user(tmp_path):
    """Nothing comes from the first build but what was fetched for it."""
    cache = tmp_path / "cache" / "evenspread" / "image"
    cache.mkdir(parents=True)
    for fetched in ("debian", "wheels"):
        (cache / fetched).symlink_to(build.CACHE / fetched)
    [wheel] = (REPOSITORY / "dist" / "wheel").glob("*.whl")
    code = "import os, sys; os.umask(0o077); from image.build import main; main()"
    subprocess.run(
        [sys.executable, "-c", code, wheel, tmp_path / "image"],
        cwd=REPOSITORY,
        env=os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache"), "TZ": "Asia/Tokyo", "LC_ALL": "C"},
        check=True,
    )
    for name in ("digest", "sbom.spdx.json", "provenance.json"):
        assert (tmp_path / "image" / name).read_text() == (IMAGE / name).read_text()


def test_every_file_is_roots_of_one_date_readable_and_for_nobody_to_write(members):
    assert {(member.uid, member.gid, member.uname, member.gname) for member in members.values()} == {(0, 0, "", "")}
    assert len({member.mtime for member in members.values()}) == 1
    modes = {(member.type, member.mode) for name, member in members.items() if name not in {"tmp", "var/tmp"}}
    assert modes == {
        (tarfile.DIRTYPE, 0o755),
        (tarfile.REGTYPE, 0o644),
        (tarfile.REGTYPE, 0o755),
        (tarfile.SYMTYPE, 0o777),
    }


def test_there_is_no_shell_no_package_manager_and_no_compiler(members):
    programs = {name for name, member in members.items() if member.isreg() and member.mode & 0o111}
    assert [name for name in programs if UNWANTED.fullmatch(name.rpartition("/")[2])] == []
    programs = {name for name in members if name.startswith(("usr/bin/", "usr/sbin/", "usr/local/bin/"))}
    ours = {"evenspread", "kubectl-evenspread", "kubectl_complete-evenspread"}
    assert programs == {"usr/bin/python3", INTERPRETER.lstrip("/"), *(f"usr/local/bin/{name}" for name in ours)}


def needed(file):
    """The shared libraries that a file names, by the loader's own account."""
    [libraries] = (ROOT / "usr/lib").glob("*-linux-gnu")
    loader = libraries / build._LOADERS[build.machine()]
    listed = subprocess.run(
        [loader, "--inhibit-cache", "--library-path", libraries, "--list", file],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "not found" not in listed, f"{file}: {listed}"
    return {pathlib.Path(path).resolve() for path in re.findall(r"(?:=> )?(/\S+) \(0x", listed)}


def test_every_library_is_there_and_every_package_is_needed():
    files = [ROOT / INTERPRETER.lstrip("/"), *ROOT.rglob("*.cpython-313-*.so"), *ROOT.rglob("*.abi3.so")]
    assert len(files) > 40
    used = set().union(*map(needed, files))
    owners = {each.name for each in (ROOT / debian.STATUS).iterdir()}
    libraries = {each.partition(":")[0] for each in owners if each.startswith("lib") and "python" not in each}
    patterns = {"libc6": "libc.", "libgcc-s1": "libgcc_s.", "libssl3t64": "libssl.", "libbz2-1.0": "libbz2."}
    patterns |= {name: f"{name.rstrip('0123456789')}." for name in libraries - patterns.keys()}
    unneeded = {name for name in libraries if not any(each.name.startswith(patterns[name]) for each in used)}
    assert unneeded == set()


def test_the_root_that_is_run_is_the_layers(members):
    there = {str(path.relative_to(ROOT)) for path in ROOT.rglob("*")}
    assert there == members.keys()


def test_modules_of_the_program_are_compiled_and_of_the_wheel(members):
    [wheel] = (REPOSITORY / "dist" / "wheel").glob("*.whl")
    folder = f"{wheels.SITE}/evenspread/"
    sources = {name for name in members if name.startswith(folder) and name.endswith(".py")}
    assert len(sources) > 250
    for source in sources:
        place, _, name = source.rpartition("/")
        assert f"{place}/__pycache__/{name.removesuffix('.py')}.cpython-313.pyc" in members
    assert wheels.named(wheel)[0] == "evenspread"


def test_the_bill_of_materials_names_what_is_installed():
    said = json.loads((IMAGE / "sbom.spdx.json").read_text())
    named = {each["name"]: each["versionInfo"] for each in said["packages"] if each["name"] != "evenspread"}
    installed = {each.name for each in (ROOT / debian.STATUS).iterdir()}
    python = {
        each.name.lower().replace("_", "-"): each.version for each in distributions(path=[str(ROOT / wheels.SITE)])
    }
    packages = debian.locked(build.machine()).packages
    locked = {package.name: debian.version_of(package, ROOT) for package in packages}
    assert installed == locked.keys()
    assert named == locked | {name: version for name, version in python.items() if name != "evenspread"}
    related = {each["relatedSpdxElement"] for each in said["relationships"]}
    assert related == {each["SPDXID"] for each in said["packages"]}


def test_the_provenance_is_of_this_image_and_names_what_it_was_made_of():
    said = json.loads((IMAGE / "provenance.json").read_text())
    digest = (IMAGE / "digest").read_text()
    assert said["subject"] == [{"name": "evenspread", "digest": {"sha256": digest.removeprefix("sha256:")}}]
    made_of = {each["digest"].get("sha256") for each in said["predicate"]["buildDefinition"]["resolvedDependencies"]}
    assert {package.sha256 for package in debian.locked(build.machine()).packages} <= made_of
    hashes = set(re.findall(r"sha256:([0-9a-f]{64})", (REPOSITORY / "requirements.lock").read_text()))
    assert len(made_of & hashes) > 40


# -- running it

SELF = """
import json, os, pathlib
lines = pathlib.Path("/proc/self/status").read_text().splitlines()
status = dict(line.split(":\\t", 1) for line in lines if ":\\t" in line)
def refused(path):
    try:
        pathlib.Path(path, "x").write_text("x")
    except OSError as error:
        return error.errno
print(json.dumps({
    "pid": os.getpid(), "ids": os.getresuid() + os.getresgid(), "groups": os.getgroups(),
    "capabilities": [status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")],
    "no_new_privileges": status["NoNewPrivs"],
    "refused": {path: refused(path) for path in ("/", "/usr", "/etc", "/run", "/dev", "/tmp", "/dev/shm")},
    "processes": [name for name in os.listdir("/proc") if name.isdigit()],
    "environment": dict(os.environ),
}))
"""
READ_ONLY = 30  # EROFS


def test_it_runs_as_the_charts_security_context_asks():
    done = inside("-c", SELF)
    said = json.loads(done.stdout or "{}")
    assert said, done.stderr
    assert (said["pid"], said["ids"], said["groups"]) == (1, [65532] * 6, [])
    assert set(said["capabilities"]) == {"0" * 16}
    assert said["no_new_privileges"] == "1"
    assert said["refused"].pop("/dev/shm") is None  # noqa: S108 the container's
    assert set(said["refused"].values()) == {READ_ONLY}
    assert said["processes"] == ["1"]
    assert {"HOME", "LANG"}.isdisjoint(said["environment"])


def test_what_is_left_out_of_a_wheel_is_not_missed(tmp_path):
    """The whole way to an API server: a kubeconfig with a token, and a request that nobody answers."""
    cluster = {"name": "c", "cluster": {"server": f"https://{HOST}:9"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    user = {"name": "u", "user": {"token": "t"}}
    config = {"clusters": [cluster], "contexts": [context], "users": [user], "current-context": "c"}
    tmp_path.chmod(0o755)  # its user is another than ours
    (tmp_path / "config").write_text(json.dumps(config))
    mounted = ("--bind", f"{tmp_path}:/run/kube")
    done = inside("audit", "--kubeconfig", "/run/kube/config", options=mounted, program="/usr/local/bin/evenspread")
    assert (done.returncode, "Connection refused" in done.stderr) == (4, True), done.stderr


@contextlib.contextmanager
def serving(folder, *options):
    """The webhook out of the image, until the end of the block, beside the example cluster."""
    authority = Authority()
    certificate, key = authority.issue("webhook", names=("localhost",))
    for name, content in (("ca.crt", authority.pem), ("tls.crt", certificate), ("tls.key", key)):
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o444)
    folder.chmod(0o755)
    port, health = free_ports(2)
    tls = ("--cert=/run/evenspread/tls/tls.crt", "--key=/run/evenspread/tls/tls.key", "--drain-seconds=1.5")
    bound = (f"--bind={HOST}:{port}", f"--health-bind={HOST}:{health}")
    known = (f"--config={EXAMPLE}/policy.yaml", f"--snapshot={EXAMPLE}/cluster.jsonl")
    mounts = ("--bind", f"{folder}:/run/evenspread/tls", "--tmpfs", "/tmp")  # noqa: S108 the container's
    command = [sys.executable, run.__file__, IMAGE, *mounts, *options, "--", "webhook", *tls, *bound, *known]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            command,
            stdout=log,
            stderr=log,
            preexec_fn=end_with_parent,  # noqa: PLW1509  it calls prctl and nothing else
        )
    running = Server(process, port, f"http://{HOST}:{health}", str(folder / "ca.crt"), [])
    try:
        eventually(lambda: answers(running), 20)
        yield running
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)


def answers(server):
    assert server.process.poll() is None
    with contextlib.suppress(OSError):
        return server.get("/readyz")[0] == 200
    return False


def asked(server, name):
    review = (REPOSITORY / "webhook" / "example" / f"{name}.json").read_bytes()
    path = "/mutate" if name == "bare-pod" else "/validate"
    with server.connect() as connection, connection.makefile("rb") as stream:
        connection.sendall(posted(review, path))
        return json.loads(read_reply(stream).body)["response"]


def test_it_answers_reviews_over_tls_and_drains(tmp_path):
    with serving(tmp_path) as server:
        denied = asked(server, "denied-rollout")
        assert (denied["allowed"], denied["status"]["code"]) == (False, 403)
        patched = asked(server, "bare-pod")
        assert patched["allowed"]
        assert b"topologySpreadConstraints" in base64.b64decode(patched["patch"])
        failures, late, code, took = stop_under_load(server, clients=4, noticed=0.5)
    log = (tmp_path / "log").read_text()
    assert (failures, code) == ([], 0), log
    assert len(late) > 4
    assert took < 15
    assert "Traceback" not in log


def test_it_ends_with_who_started_it(tmp_path):
    with serving(tmp_path) as server:
        server.process.kill()
        server.process.wait(10)
        eventually(lambda: not listens(server))


def listens(server):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", server.port), 1):
        return True
    return False


def test_its_exit_code_and_signals_are_the_programs():
    assert inside("-c", "raise SystemExit(7)").returncode == 7
    assert inside("-c", "import os; os._exit(3)").returncode == 3
    assert inside("nonsense", program="/nowhere").stderr == "image/run.py: No such file or directory\n"
    missing = inside("-c", "", options=("--tmpfs", "/opt/there"))
    assert missing.stderr == "image/run.py: /opt/there is not in the image, and mount points are made below /run\n"


def test_nothing_of_a_run_stays_in_the_root(members):
    assert {str(path.relative_to(ROOT)) for path in ROOT.rglob("*")} == members.keys()
