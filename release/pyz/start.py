"""The start of evenspread.pyz: unpack the packages once into the user's cache, then run the command line."""

import os
import platform
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

ARCHIVE = Path(__file__).parent
PYTHON = f"cp{sys.version_info.major}{sys.version_info.minor}"


def main() -> None:
    with zipfile.ZipFile(ARCHIVE) as archive:
        made_for, digest = archive.read("MADE_FOR").decode().split()
        pythons = sorted({name.partition("/")[0] for name in archive.namelist() if name.startswith("cp3")})
        machine = f"{platform.system()}-{platform.machine()}"
        if machine != made_for:
            sys.exit(f"{ARCHIVE.name} is for {made_for}, and this machine is {machine}: download its file")
        if PYTHON not in pythons:
            sys.exit(f"{ARCHIVE.name} needs one of the Pythons {', '.join(pythons)}, and this is {PYTHON}")
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evenspread"
        packages = cache / f"packages-{digest}-{PYTHON}"
        if not packages.is_dir():
            cache.mkdir(parents=True, exist_ok=True)
            unpack(archive, packages)
    sys.path.insert(0, str(packages))
    sys.argv[0] = str(ARCHIVE)
    from evenspread import run  # noqa: PLC0415  it has just been unpacked

    run()


def unpack(archive: zipfile.ZipFile, packages: Path) -> None:
    """Write the packages of this Python. Another process may do the same: the first to finish wins."""
    folder = Path(tempfile.mkdtemp(dir=packages.parent))
    try:
        for name in archive.namelist():
            part, _, path = name.partition("/")
            if part in {"common", PYTHON}:
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(archive.read(name))
        folder.rename(packages)
    except OSError:
        if not packages.is_dir():
            raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


main()
