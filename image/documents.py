"""What is in an image, and what made it: an SPDX document and a SLSA provenance, beside it.

Source: spdx.github.io/spdx-spec v2.3; slsa.dev/spec/v1.0/provenance.
"""

import datetime as dt
import hashlib
import json
import subprocess
import zipfile
from collections.abc import Iterable
from email.parser import HeaderParser
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from image import debian

_HOME = "https://evenspread.io"  # of names, which need not lead anywhere
_TOOL = "evenspread image/build.py"
_NOTHING_SAID = "NOASSERTION"


class _Part(NamedTuple):
    """A package in the image. Shape: ``purl`` as in github.com/package-url/purl-spec."""

    name: str
    version: str
    sha256: str
    purl: str
    licence: str


def write(lock: debian.Lock, python: Iterable[Path], digest: str, seconds: int, folder: Path) -> None:
    """Write both documents about the image with the digest into the folder with its root. Unit: seconds since 1970."""
    parts = [*(_of_debian(each, folder / "root") for each in lock.packages), *map(_of_wheel, python)]
    created = dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    written = {"sbom.spdx.json": _spdx(parts, digest, created), "provenance.json": _provenance(parts, digest)}
    for name, document in written.items():
        (folder / name).write_text(json.dumps(document, indent=1) + "\n")


def _of_debian(package: debian.Package, root: Path) -> _Part:
    name, version = package.name, debian.version_of(package, root)
    purl = f"pkg:deb/debian/{name}@{quote(version, safe='')}?arch={package.architecture}&distro=debian-12"
    return _Part(name, version, package.sha256, purl, _NOTHING_SAID)  # see its copyright file, in the image


def _of_wheel(wheel: Path) -> _Part:
    content = wheel.read_bytes()
    with zipfile.ZipFile(wheel) as opened:
        [path] = [each for each in opened.namelist() if each.endswith(".dist-info/METADATA")]
        metadata = HeaderParser().parsestr(opened.read(path).decode())
    name = metadata["Name"].lower().replace("_", "-")
    version = metadata["Version"]
    licence = metadata.get("License-Expression") or _NOTHING_SAID  # what is not an expression, SPDX does not take
    return _Part(name, version, hashlib.sha256(content).hexdigest(), f"pkg:pypi/{name}@{version}", licence)


def _spdx(parts: Iterable[_Part], digest: str, created: str) -> dict[str, Any]:
    image = {
        "SPDXID": "SPDXRef-image",
        "name": "evenspread",
        "versionInfo": digest,
        "downloadLocation": _NOTHING_SAID,
        "filesAnalyzed": False,
        "primaryPackagePurpose": "CONTAINER",
        "checksums": [{"algorithm": "SHA256", "checksumValue": digest.removeprefix("sha256:")}],
    }
    listed = [_listed(number, part) for number, part in enumerate(parts)]
    document = "SPDXRef-DOCUMENT"
    described = {"spdxElementId": document, "relationshipType": "DESCRIBES", "relatedSpdxElement": image["SPDXID"]}
    contains = [
        {"spdxElementId": image["SPDXID"], "relationshipType": "CONTAINS", "relatedSpdxElement": each["SPDXID"]}
        for each in listed
    ]
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": document,
        "name": "evenspread image",
        "documentNamespace": f"{_HOME}/spdx/{digest.removeprefix('sha256:')}",
        "creationInfo": {"created": created, "creators": [f"Tool: {_TOOL}"]},
        "packages": [image, *listed],
        "relationships": [described, *contains],
    }


def _listed(number: int, part: _Part) -> dict[str, Any]:
    reference = {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": part.purl}
    return {
        "SPDXID": f"SPDXRef-package-{number}",
        "name": part.name,
        "versionInfo": part.version,
        "downloadLocation": _NOTHING_SAID,  # whoever builds it has mirrors of his own; the purl names the package
        "filesAnalyzed": False,
        "licenseDeclared": part.licence,
        "licenseConcluded": _NOTHING_SAID,
        "copyrightText": _NOTHING_SAID,
        "externalRefs": [reference],
        # Of the package as it was fetched.
        "checksums": [{"algorithm": "SHA256", "checksumValue": part.sha256}],
    }


def _provenance(parts: Iterable[_Part], digest: str) -> dict[str, Any]:
    """An in-toto statement, unsigned: whoever publishes the image signs one of his own beside it."""
    fetched = [{"uri": part.purl, "digest": {"sha256": part.sha256}} for part in parts]
    definition = {
        "buildType": f"{_HOME}/image/v1",
        "externalParameters": {"script": "image/build.py"},
        "resolvedDependencies": [*_commit(), *fetched],
    }
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "evenspread", "digest": {"sha256": digest.removeprefix("sha256:")}}],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {"buildDefinition": definition, "runDetails": {"builder": {"id": f"{_HOME}/image/local"}}},
    }


def _commit() -> list[dict[str, Any]]:
    """The commit that is built, if this is a clone of which nothing is changed."""
    here = Path(__file__).parent

    def said(*arguments: str) -> str:
        try:
            done = subprocess.run(["git", *arguments], cwd=here, capture_output=True, text=True, check=False)  # noqa: S603, S607
        except FileNotFoundError:
            return ""
        return done.stdout.strip()

    commit = said("rev-parse", "HEAD")
    if not commit or said("status", "--porcelain", "--untracked-files=no"):
        return []
    return [{"uri": "git+evenspread", "digest": {"gitCommit": commit}}]
