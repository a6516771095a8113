"""Kustomizations: which files they patch, and whether they build from local files alone.

Source: kustomize api/types/kustomization.go ``Kustomization``; api/loader/fileloader.go ``IsRemoteFile``.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from webhook.core.api.types import TypeMeta
from webhook.manifests.reading.files import leads_out
from webhook.manifests.reading.go_scalars import UnreadableDocumentError
from webhook.manifests.reading.go_yaml import read_document

Json = Any  # raw JSON from outside

NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
# Entries are files or directories, or text of their own where they have several lines.
_ENTRIES = ("resources", "bases", "components", "crds", "configurations", "generators", "transformers", "validators")
_HELM = ("helmCharts", "helmChartInflationGenerator")
_URL = re.compile(r"https?://", re.IGNORECASE)
# The bases of one build. More of them refer to each other in circles.
_MAX_BASES = 256
_MAX_BYTES = 2**20  # of a kustomization


def kustomization_in(directory: Path) -> Path | None:
    """The kustomization file of a directory; None if it has none."""
    return next((directory / name for name in NAMES if (directory / name).is_file()), None)


def why_not_built(directory: Path) -> str:
    """Why a build needs more than local files and kustomize's own generators. Empty if it does not."""
    pending, seen = [directory], set[str]()
    while pending:
        base = pending.pop()
        if (real := os.path.realpath(base)) in seen:
            continue
        seen.add(real)
        if len(seen) > _MAX_BASES:
            return f"{directory} has more than {_MAX_BASES} bases"
        if reason := next(_needs(base), ""):
            return reason
        entries = map(base.joinpath, _entries(_parsed((kustomization_in(base) or base).absolute())))
        pending += (each for each in entries if each.is_dir())
    return ""


def _needs(base: Path) -> Iterator[str]:
    file = kustomization_in(base)
    if file is None:
        yield f"{base} has no {NAMES[0]}"
        return
    value = _parsed(file.absolute())
    if not value:
        yield f"{file} cannot be read, or is empty"
    if any(name in value for name in _HELM):
        yield f"{file} inflates a Helm chart"
    for entry in _entries(value):
        if _URL.match(entry) or not (base / entry).exists():
            yield f"{file} names {entry}, which is no local file"
    yield from (f"{file} loads {text}" for text in _loaded(value) if _URL.match(text))


def patched_files(files: Iterable[str]) -> dict[str, TypeMeta | None]:
    """The patch files of kustomizations, by resolved path, with the stated type of the target.

    Kustomizations are searched for in the directories of the files and above.
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
        is_read = not leads_out(str(file)) and file.stat().st_size <= _MAX_BYTES
        value = read_document(file.read_bytes()).value if is_read else None
    except (OSError, UnreadableDocumentError):
        return {}
    return value if isinstance(value, dict) else {}


def _list(value: Mapping[str, Json], name: str) -> list[Json]:
    found = value.get(name)
    return found if isinstance(found, list) else []


def _dicts(value: Mapping[str, Json], name: str) -> Iterator[Mapping[str, Json]]:
    return (each for each in _list(value, name) if isinstance(each, dict))


def _entries(value: Mapping[str, Json]) -> Iterator[str]:
    """Every entry that is a path. Entries with several lines are inline text."""
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
