"""Build the command line as one file for each platform, its archives for krew and Homebrew, and the manual page.

    python -m release.pyz.build WHEEL FOLDER [PLATFORM...]

A file contains the locked packages for all supported releases of CPython. `start.py` unpacks those of the running one.
"""

import hashlib
import io
import stat
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from release.man_page import man_page
from release.pyz.manifests import Download, download, homebrew_formula, krew_manifest

ROOT = Path(__file__).parents[2]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
# The name in a file, uv's name, and what Python calls it (platform.system and machine).
PLATFORMS = {
    "linux-amd64": ("x86_64-manylinux_2_28", "Linux-x86_64"),
    "linux-arm64": ("aarch64-manylinux_2_28", "Linux-aarch64"),
    "darwin-arm64": ("aarch64-apple-darwin", "Darwin-arm64"),
}
NOTES = {"RECORD", "direct_url.json", "REQUESTED", "INSTALLER", "uv_cache.json"}
EPOCH = (1980, 1, 1, 0, 0, 0)


def packages(wheel: Path, platform: str) -> dict[str, bytes]:
    """Return the files of the wheel and its packages by path: ``common/...`` if all Pythons have the same."""
    trees = {}
    for python in PYTHONS:
        with tempfile.TemporaryDirectory() as folder:
            uv: list[str | Path] = [
                ROOT / ".venv/bin/uv",
                "pip",
                "install",
                "--quiet",
                "--no-config",
                "--target",
                folder,
            ]
            uv += ["--python-version", python, "--python-platform", PLATFORMS[platform][0], "--only-binary", ":all:"]
            uv += ["--constraint", ROOT / "requirements.lock", f"{wheel}[cluster]"]
            subprocess.run(uv, check=True)  # noqa: S603  our own arguments
            trees["cp" + python.replace(".", "")] = {
                str(path.relative_to(folder)): path.read_bytes()
                for path in sorted(Path(folder).rglob("*"))
                if path.is_file() and is_needed(path.relative_to(folder))
            }
    first, *others = trees.values()
    common = {path for path, data in first.items() if all(tree.get(path) == data for tree in others)}
    files = {f"common/{path}": first[path] for path in common}
    files |= {f"{python}/{path}": tree[path] for python, tree in trees.items() for path in tree.keys() - common}
    return dict(sorted(files.items()))


def is_needed(path: Path) -> bool:
    """Return whether a run needs the file. It needs no scripts, and no notes of the installer."""
    return path.parts[0] not in {"bin", ".lock"} and path.name not in NOTES


def zipapp(files: dict[str, bytes], made_for: str) -> bytes:
    """Return the executable file. ``made_for`` is the platform as Python names it."""
    digest = hashlib.sha256(repr([(path, hashlib.sha256(data).hexdigest()) for path, data in files.items()]).encode())
    start = (Path(__file__).parent / "start.py").read_bytes()
    head = {"__main__.py": start, "MADE_FOR": f"{made_for} {digest.hexdigest()[:16]}".encode()}
    written = io.BytesIO()
    written.write(b"#!/usr/bin/env python3\n")
    with zipfile.ZipFile(written, "a", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, data in (head | files).items():
            archive.writestr(zipfile.ZipInfo(path, EPOCH), data, zipfile.ZIP_DEFLATED)
    return written.getvalue()


def archive(app: bytes, manual: str) -> bytes:
    """Return a zip file with the executable, its manual page and the licence, for package managers to unpack."""
    files = (
        ("evenspread", app, 0o755),
        ("evenspread.1", manual.encode(), 0o644),
        ("LICENSE", (ROOT / "LICENSE").read_bytes(), 0o644),
    )
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as packed:
        for name, data, mode in files:
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.external_attr = (stat.S_IFREG | mode) << 16
            packed.writestr(entry, data)
    return written.getvalue()


def main(wheel: str, folder: str, *platforms: str) -> None:
    version = Path(wheel).name.split("-")[1]
    manual, made, downloads = man_page(), Path(folder), dict[str, Download]()
    for platform in platforms or PLATFORMS:
        app = zipapp(packages(Path(wheel).resolve(), platform), PLATFORMS[platform][1])
        file = made / f"evenspread-{version}-{platform}.pyz"
        file.write_bytes(app)
        file.chmod(0o755)
        packed = archive(app, manual)
        file.with_suffix(".zip").write_bytes(packed)
        downloads[platform] = download(version, platform, packed)
    (made / "evenspread.1").write_text(manual)
    (made / "krew.yaml").write_text(krew_manifest(version, downloads))
    (made / "evenspread.rb").write_text(homebrew_formula(version, downloads, PYTHONS[-1]))


if __name__ == "__main__":
    main(*sys.argv[1:])
