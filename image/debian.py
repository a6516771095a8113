"""Debian packages: the locked ones, fetched by apt from where this machine gets its own, and unpacked without dpkg."""

import functools
import io
import subprocess
import tarfile
from collections.abc import Iterable, Iterator
from email.parser import HeaderParser
from fnmatch import fnmatch
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from urllib.parse import unquote

RELEASES = ("trixie", "bookworm")  # the release of the packages, and an older one with the same mirrors
PYTHON = "python3.13"
LOCK = Path(__file__).with_name("packages.lock")
STATUS = Path("var/lib/dpkg/status.d")  # where scanners look in an image without dpkg
_SITES = (
    "apt-get",
    "indextargets",
    "--no-release-info",  # also before the first apt-get update
    "--format=$(RELEASE) $(SITE)",
    "Created-By: Packages",
    "Component: main",
)
_FETCH = ("/usr/lib/apt/apt-helper", "-qq", "-o", "APT::Sandbox::User=root", "download-file")
_HEADER_BYTES = 60  # of a member of an ar archive
# What nothing reads in a container: manuals, and what Python needs neither to run nor to import what we import.
_LEFT_OUT = (
    "usr/share/doc/*/[!c]*",
    "usr/share/doc/*/c[!o]*",
    "usr/share/man/*",
    "usr/share/info*",
    "usr/share/lintian/*",
    "usr/share/dict*",
    "usr/share/bug/*",
    "usr/share/gcc*",
    "usr/share/base-files/*",
    "usr/share/binfmts/*",
    "usr/share/applications*",
    "usr/share/pixmaps*",
    "usr/lib/*/gconv*",
    "usr/lib/*/audit*",
    "usr/lib/valgrind*",
    f"usr/lib/{PYTHON}/pydoc_data*",
    f"usr/lib/{PYTHON}/test*",
    f"usr/lib/{PYTHON}/lib-dynload/_curses*",
    f"usr/lib/{PYTHON}/lib-dynload/_dbm*",
    f"usr/lib/{PYTHON}/lib-dynload/_sqlite3*",
    f"usr/lib/{PYTHON}/lib-dynload/readline*",
    f"usr/lib/{PYTHON}/lib-dynload/*test*",
    f"usr/lib/{PYTHON}/lib-dynload/xx*",
    "etc/cron*",
    "etc/default*",
    "etc/dpkg*",
    "etc/profile.d*",
    "etc/skel*",
    "var/lock*",
    "var/run*",
    "etc/update-motd.d*",
)
_USERS = """\
root:x:0:0:root:/root:/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin
nonroot:x:65532:65532:nonroot:/:/sbin/nologin
"""
_HOSTS = "127.0.0.1 localhost\n::1 localhost\n"  # a kubelet mounts its own over it
_GROUPS = "root:x:0:\nnogroup:x:65534:\nnonroot:x:65532:\n"


def unpack_all(archive: tarfile.TarFile, root: Path, members: Iterable[tarfile.TarInfo] | None = None) -> None:
    """Unpack an archive of which the hash is known, with every link and mode as it stands there."""
    if hasattr(tarfile, "fully_trusted_filter"):
        archive.extractall(root, members=members, filter="fully_trusted")  # noqa: S202 of a known hash
    else:  # Debian 12's own Python, in the Dockerfile, knows no filters
        archive.extractall(root, members=members)  # noqa: S202 the same


class Package(NamedTuple):
    """A file of Debian's archive. Shape: ``path`` as in the list of packages of its ``suite``, escaped as in a URL."""

    architecture: str
    sha256: str
    suite: str
    path: str

    @property
    def name(self) -> str:
        """Its name, from the name of the file."""
        return unquote(self.path).rpartition("/")[2].partition("_")[0]


class Lock(NamedTuple):
    """What image/lock.sh has written. Shape: ``date`` as in ISO 8601, of the day of the lock."""

    date: str
    packages: tuple[Package, ...]


def locked(architecture: str) -> Lock:
    """The locked packages of an architecture."""
    lines = [line.split() for line in LOCK.read_text().splitlines() if not line.startswith("#")]
    [date] = [rest[0] for word, *rest in lines if word == "date"]
    return Lock(date, tuple(Package(word, *rest) for word, *rest in lines if word == architecture))


def fetched(package: Package, cache: Path) -> bytes:
    """The bytes of a package, from the cache or by apt, which checks their hash.

    Errors: SystemExit if apt knows no source of the suite, or if that has the package no more.
    """
    kept = cache / package.sha256
    if not kept.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=cache) as folder:
            half = Path(folder) / "package"
            command = [*_FETCH, f"{_site(package.suite)}/{package.path}", str(half), f"SHA256:{package.sha256}"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 apt's own
            if done.returncode:
                raise SystemExit(f"{package.path}: {done.stderr.strip()}\nmake image-lock takes today's packages")
            half.replace(kept)
    return kept.read_bytes()


@functools.cache
def _site(suite: str) -> str:
    """The address of a suite in apt's configuration. A mirror of an older release has the newer one too."""
    try:
        targets = subprocess.run(_SITES, capture_output=True, text=True, check=True).stdout  # noqa: S603 apt's own
    except FileNotFoundError:
        targets = ""
    sites = dict(line.split(" ", 1) for line in targets.splitlines())
    for release in RELEASES:
        site = sites.get(suite.replace(RELEASES[0], release))
        if site is not None:
            return site
    raise SystemExit(f"apt has no source of Debian's {suite}: its packages are fetched as apt is configured here")


def unpack(lock: Lock, cache: Path, root: Path) -> None:
    """Unpack the packages into a folder, with what their maintainer scripts would make that is of use here."""
    (root / "etc").mkdir(parents=True)
    for folder in ("bin", "sbin", "lib", "lib64"):  # as usrmerge leaves a system; packages still name both
        (root / "usr" / folder).mkdir(parents=True, exist_ok=True)
        (root / folder).symlink_to(f"usr/{folder}")
    for package in lock.packages:
        members = dict(_members(fetched(package, cache)))
        with tarfile.open(fileobj=io.BytesIO(members["data.tar"])) as opened:
            unpack_all(opened, root, _wanted(opened))
        status = root / STATUS / package.name
        status.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(fileobj=io.BytesIO(members["control.tar"])) as opened:
            control = opened.extractfile("./control")
            status.write_bytes(b"" if control is None else control.read())
    (root / "usr/bin/python3").symlink_to(PYTHON)
    (root / "var").mkdir(exist_ok=True)
    (root / "var/run").symlink_to("/run")
    (root / "etc/passwd").write_text(_USERS)
    (root / "etc/group").write_text(_GROUPS)
    (root / "etc/hosts").write_text(_HOSTS)
    (root / "etc/nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n")


def version_of(package: Package, root: Path) -> str:
    """The version of a package that was unpacked, as it says itself: the name of its file lacks the epoch."""
    control = HeaderParser().parsestr((root / STATUS / package.name).read_text())
    return str(control["Version"])


def _members(archive: bytes) -> Iterator[tuple[str, bytes]]:
    """The members of an ar archive. Shape: their names without the ending that says how they are compressed."""
    place = len(b"!<arch>\n")
    while place < len(archive):
        header = archive[place : place + _HEADER_BYTES]
        size = int(header[48:58])
        place += _HEADER_BYTES
        yield header[:16].decode().strip().rstrip("/").removesuffix(".xz"), archive[place : place + size]
        place += size + size % 2


def _wanted(opened: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    for member in opened:
        path = member.name.removeprefix("./")
        top, _, rest = path.partition("/")
        if any(fnmatch(path, pattern) for pattern in _LEFT_OUT):
            continue
        if top in {"bin", "sbin", "lib", "lib64"}:
            if not rest:
                continue  # it is a link here
            path = f"usr/{path}"
        if path not in {"", "."}:
            yield member.replace(name=path, deep=False)
