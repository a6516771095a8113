"""Find the configuration of a repository: ``evenspread.yaml`` in the working directory or a parent."""

from pathlib import Path

from msgspec import Struct

CONFIG_NAMES = ("evenspread.yaml", ".evenspread.yaml")
_KIND = b"SpreadPolicy"
_MAX_BYTES = 1 << 20  # of a configuration


class FoundConfig(Struct, frozen=True):
    """The configuration file of a repository. All files named in the configuration must be inside ``root``."""

    file: Path
    root: Path


def find_config(directory: Path) -> FoundConfig | None:
    """Find the nearest file with a SpreadPolicy, up to the root of the repository.

    The root has an entry ``.git``. Outside a repository, only the directory itself counts: a stranger could write to a
    parent such as ``/tmp``. A manifest of the same name, such as evenspread's own release, is skipped.
    """
    folders = _to_root(directory)
    for folder in folders:
        for name in CONFIG_NAMES:
            file = folder / name
            if _has_policy(file, folders[-1]):
                return FoundConfig(file, folders[-1])
    return None


def _to_root(directory: Path) -> list[Path]:
    """The directory and its parents up to the repository's root."""
    folders = [directory, *directory.parents]
    roots = (number for number, folder in enumerate(folders) if (folder / ".git").exists())
    return folders[: next(roots, 0) + 1]


def _has_policy(file: Path, root: Path) -> bool:
    try:
        # A named pipe would block. A link out of the repository could quote a secret in an error.
        if not file.is_file() or not file.resolve().is_relative_to(root.resolve()):
            return False
        with file.open("rb") as stream:
            return _KIND in stream.read(_MAX_BYTES)
    except OSError:
        return False
