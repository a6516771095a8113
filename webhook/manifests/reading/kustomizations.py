"""Kustomizations: which files they patch, and whether they build from local files alone.

Source: kustomize api/types/kustomization.go ``Kustomization``; api/loader/fileloader.go ``IsRemoteFile``.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from webhook.core.api.types import TypeMeta
from webhook.manifests.reading.go_scalars import UnreadableDocumentError
from webhook.manifests.reading.go_yaml import read_document

Json = Any  # raw JSON from outside

NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
# Entries are files or directories, or text of their own where they have several lines.
_ENTRIES = ("resources", "bases", "components", "crds", "configurations", "generators", "transformers", "validators")
_HELM = ("helmCharts", "helmChartInflationGenerator")
_URL = re.compile(r"https?://", re.IGNORECASE)
# A tree of bases that is deeper refers to itself.
_MAX_BASES = 64


def kustomization_in(directory: Path) -> Path | None:
    """The kustomization file of a directory; None if it has none."""
    return next((directory / name for name in NAMES if (directory / name).is_file()), None)


def why_not_built(directory: Path, depth: int = 0) -> str:
    """What a build needs besides local files and kustomize's own generators; empty if it needs nothing."""
    file = kustomization_in(directory)
    if file is None:
        return f"{directory} has no {NAMES[0]}"
    value = _parsed(file.absolute())
    if any(name in value for name in _HELM):
        return f"{file} inflates a Helm chart"
    for entry in _entries(value):
        path = directory / entry
        if _URL.match(entry) or not path.exists():
            return f"{file} names {entry}, which is no local file"
        if path.is_dir() and depth < _MAX_BASES and (reason := why_not_built(path, depth + 1)):
            return reason
    remote = next((text for text in _loaded(value) if _URL.match(text)), "")
    return f"{file} loads {remote}" if remote else ""


def patched_files(files: Iterable[str]) -> dict[str, TypeMeta | None]:
    """The files that a kustomization names as patches, by resolved path, each with the kind of its target if stated.

    Looked at are kustomizations among the files, and those in directories above them.
    """
    directories = {above for file in files for above in Path(file).absolute().parents}
    return {path: kind for directory in sorted(directories) for path, kind in _patches_in(directory)}


@cache
def _patches_in(directory: Path) -> tuple[tuple[str, TypeMeta | None], ...]:
    file = kustomization_in(directory)
    value = {} if file is None else _parsed(file)
    patches = (
        *(
            (each.get("path"), target_of(each))
            for name in ("patches", "patchesJson6902")
            for each in _dicts(value, name)
        ),
        *((each, None) for each in _list(value, "patchesStrategicMerge")),
    )
    return tuple(
        (str((directory / path).resolve()), kind)
        for path, kind in patches
        if isinstance(path, str) and "\n" not in path and (directory / path).is_file()
    )


def target_of(patch: Mapping[str, Json]) -> TypeMeta | None:
    """The type that an entry of ``patches`` states for its target."""
    target = patch.get("target")
    kind = target.get("kind") if isinstance(target, Mapping) else None
    if not isinstance(kind, str) or not isinstance(target, Mapping):
        return None
    version = "/".join(part for part in (target.get("group"), target.get("version")) if isinstance(part, str))
    return TypeMeta(api_version=version or None, kind=kind)


@cache
def _parsed(file: Path) -> Mapping[str, Json]:
    try:
        value = read_document(file.read_bytes()).value
    except (OSError, UnreadableDocumentError):
        return {}
    return value if isinstance(value, dict) else {}


def _list(value: Mapping[str, Json], name: str) -> list[Json]:
    found = value.get(name)
    return found if isinstance(found, list) else []


def _dicts(value: Mapping[str, Json], name: str) -> Iterator[Mapping[str, Json]]:
    return (each for each in _list(value, name) if isinstance(each, dict))


def _entries(value: Mapping[str, Json]) -> Iterator[str]:
    """Every entry that is a path, and not text of its own."""
    for name in _ENTRIES:
        yield from (each for each in _list(value, name) if isinstance(each, str) and "\n" not in each)


def _loaded(value: Mapping[str, Json]) -> Iterator[str]:
    """Every other text that kustomize may load a file by."""
    yield from (each for each in _list(value, "patchesStrategicMerge") if isinstance(each, str))
    for name in ("patches", "patchesJson6902", "replacements"):
        yield from (str(each.get("path")) for each in _dicts(value, name))
    for name in ("configMapGenerator", "secretGenerator"):
        for each in _dicts(value, name):
            texts = (text for key in ("files", "envs") for text in _list(each, key))
            yield from (str(text).rpartition("=")[2] for text in (*texts, each.get("env")))
    openapi = value.get("openapi")
    yield str(openapi.get("path")) if isinstance(openapi, Mapping) else ""
