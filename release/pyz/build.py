"""Build the command line as one file for each platform, with its archive and manifest for krew.

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

import yaml

ROOT = Path(__file__).parents[2]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
# The name in a file, uv's name, and what Python calls it (platform.system and machine).
PLATFORMS = {
    "linux-amd64": ("x86_64-manylinux_2_28", "Linux-x86_64"),
    "linux-arm64": ("aarch64-manylinux_2_28", "Linux-aarch64"),
    "darwin-arm64": ("aarch64-apple-darwin", "Darwin-arm64"),
}
DOWNLOADS = "https://github.com/evenspread/evenspread/releases/download"
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


def krew_archive(app: bytes) -> bytes:
    """Return a zip file with the executable and the licence, which krew unpacks."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, data, mode in (("evenspread", app, 0o755), ("LICENSE", (ROOT / "LICENSE").read_bytes(), 0o644)):
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.external_attr = (stat.S_IFREG | mode) << 16
            archive.writestr(entry, data)
    return written.getvalue()


def krew_manifest(version: str, archives: dict[str, bytes]) -> str:
    """Return the manifest of the plugin ``kubectl evenspread`` for krew's index."""
    platforms = []
    for platform, archive in archives.items():
        system, architecture = platform.split("-")
        platforms.append(
            {
                "selector": {"matchLabels": {"os": system, "arch": architecture}},
                "uri": f"{DOWNLOADS}/v{version}/evenspread-{version}-{platform}.zip",
                "sha256": hashlib.sha256(archive).hexdigest(),
                "bin": "evenspread",
            }
        )
    spec = {
        "version": f"v{version}",
        "homepage": "https://evenspread.io",
        "shortDescription": "Check and explain topologySpreadConstraints",
        "description": "Check manifests for constraints that spread nothing or keep pods Pending, and explain\n"
        "where kube-scheduler can place a pod. It needs Python 3.11 to 3.14.\n",
        "platforms": platforms,
    }
    plugin = {"apiVersion": "krew.googlecontainertools.github.com/v1alpha2", "kind": "Plugin"}
    return yaml.safe_dump({**plugin, "metadata": {"name": "evenspread"}, "spec": spec}, sort_keys=False)


def main(wheel: str, folder: str, *platforms: str) -> None:
    version = Path(wheel).name.split("-")[1]
    archives = {}
    for platform in platforms or PLATFORMS:
        app = zipapp(packages(Path(wheel).resolve(), platform), PLATFORMS[platform][1])
        file = Path(folder) / f"evenspread-{version}-{platform}.pyz"
        file.write_bytes(app)
        file.chmod(0o755)
        archives[platform] = krew_archive(app)
        file.with_suffix(".zip").write_bytes(archives[platform])
    (Path(folder) / "krew.yaml").write_text(krew_manifest(version, archives))


if __name__ == "__main__":
    main(*sys.argv[1:])
