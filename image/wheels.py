"""Python packages: the locked wheels, fetched by pip and unpacked as they are, so that no pip enters the image."""

import configparser
import hashlib
import io
import re
import subprocess
import sys
import zipfile
from pathlib import Path

from image.debian import PYTHON

SITE = f"usr/local/lib/{PYTHON}/dist-packages"  # where Debian's Python looks for what Debian does not bring
_BIN = "usr/local/bin"
_NEWEST_GLIBC = 41  # 2.41, of Debian 13
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
_PROGRAM = """\
#!/usr/bin/{python} -P
import sys

from {module} import {function}

sys.exit({function}())
"""


def fetched(lock: Path, architecture: str, cache: Path) -> list[Path]:
    """The wheels of a lock file for an architecture, in order of their names; pip compares each with its hash.

    Errors: SystemExit if one cannot be had.
    """
    kept = cache / PYTHON / hashlib.sha256(lock.read_bytes()).hexdigest()[:16] / architecture
    if not (kept / "complete").exists():
        machine = _MACHINES[architecture]
        platforms = [f"manylinux_2_{minor}_{machine}" for minor in range(5, _NEWEST_GLIBC + 1)]
        chosen = [f"--platform={each}" for each in (*platforms, f"manylinux2014_{machine}", f"linux_{machine}")]
        release = PYTHON.removeprefix("python")
        abi = f"--abi=cp{release.replace('.', '')}"
        python = ["--implementation=cp", f"--python-version={release}", abi, "--abi=abi3", "--abi=none"]
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += [
            "--only-binary=:all:",
            "--require-hashes",
            *chosen,
            *python,
            f"--dest={kept}",
            f"--requirement={lock}",
        ]
        if subprocess.run(command, check=False).returncode:  # noqa: S603 pip, with what stands above
            raise SystemExit(f"not all wheels of {lock.name} could be fetched")
        (kept / "complete").touch()
    return sorted(kept.glob("*.whl"))


def named(wheel: Path) -> tuple[str, str]:
    """Name and version, as its metadata have them."""
    name, version, *_ = wheel.name.split("-")
    return name, version


def unpack(wheel: Path, root: Path) -> None:
    """Unpack a wheel into a root; of its programs only those that are Python functions, and only ours are wanted."""
    with zipfile.ZipFile(wheel) as opened:
        for member in opened.infolist():
            path = re.sub(r"^[^/]+\.data/(purelib|platlib)/", "", member.filename)
            if member.is_dir() or re.match(r"[^/]+\.data/", path):
                continue
            target = root / SITE / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(opened.read(member))


def install_programs(wheel: Path, root: Path) -> None:
    """Write the programs that a wheel names into a root."""
    name, version = named(wheel)
    with zipfile.ZipFile(wheel) as opened:
        text = opened.read(f"{name}-{version}.dist-info/entry_points.txt").decode()
    programs = configparser.ConfigParser()
    programs.read_file(io.StringIO(text))
    (root / _BIN).mkdir(parents=True, exist_ok=True)
    for program, place in programs["console_scripts"].items():
        module, _, function = place.partition(":")
        file = root / _BIN / program
        file.write_text(_PROGRAM.format(python=PYTHON, module=module, function=function))
        file.chmod(0o755)
