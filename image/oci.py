"""An image as files: OCI's image layout, with one manifest.

Source: opencontainers/image-spec image-layout.md, manifest.md, config.md.
"""

import datetime as dt
import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

# What the Dockerfile says too (tests/image compares them).
TITLE = "evenspread"
DESCRIPTION = "Admission webhook for topologySpreadConstraints"
LICENSES = "Apache-2.0"
USER = "65532:65532"
PORTS = ("10250/tcp", "10251/tcp")
ENTRYPOINT = ("/usr/local/bin/evenspread",)
COMMAND = ("webhook",)
ENVIRONMENT = ("PATH=/usr/local/bin:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1")

_INDEX = "application/vnd.oci.image.index.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"


class Contents(NamedTuple):
    """What an image holds.

    Shape: each layer is a file and its descriptor with ``diff_id``. Unit: seconds since 1970.
    """

    architecture: str
    version: str
    seconds: int
    layers: tuple[tuple[Path, Mapping[str, Any]], ...]

    @property
    def annotations(self) -> dict[str, str]:
        """What the manifest says about itself."""
        named = {"title": TITLE, "description": DESCRIPTION, "licenses": LICENSES, "version": self.version}
        return {f"org.opencontainers.image.{name}": value for name, value in named.items()}

    @property
    def config(self) -> dict[str, Any]:
        """How it is run."""
        created = dt.datetime.fromtimestamp(self.seconds, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        run = {
            "User": USER,
            "ExposedPorts": {port: {} for port in PORTS},
            "Env": [*ENVIRONMENT],
            "Entrypoint": [*ENTRYPOINT],
            "Cmd": [*COMMAND],
            "WorkingDir": "/",
            "Labels": self.annotations,
        }
        return {
            "created": created,
            "architecture": self.architecture,
            "os": "linux",
            "config": run,
            "rootfs": {"type": "layers", "diff_ids": [descriptor["diff_id"] for _, descriptor in self.layers]},
            "history": [{"created": created, "created_by": "image/build.py"} for _ in self.layers],
        }


def write_layout(contents: Contents, folder: Path) -> str:
    """Write an image; returns the digest of its manifest."""
    shutil.rmtree(folder, ignore_errors=True)
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    described = []
    for file, descriptor in contents.layers:
        shutil.copyfile(file, blobs / descriptor["digest"].removeprefix("sha256:"))
        described.append({key: value for key, value in descriptor.items() if key != "diff_id"})
    manifest = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": _write(blobs, contents.config, _CONFIG),
        "layers": described,
        "annotations": contents.annotations,
    }
    entry = _write(blobs, manifest, _MANIFEST)
    platform = {"architecture": contents.architecture, "os": "linux"}
    name = {"org.opencontainers.image.ref.name": contents.version}
    index = {
        "schemaVersion": 2,
        "mediaType": _INDEX,
        "manifests": [entry | {"platform": platform, "annotations": name}],
    }
    (folder / "index.json").write_bytes(_bytes(index))
    (folder / "oci-layout").write_bytes(_bytes({"imageLayoutVersion": "1.0.0"}))
    return str(entry["digest"])


def _write(blobs: Path, document: object, kind: str) -> dict[str, Any]:
    """Write a document as a blob; returns its descriptor."""
    content = _bytes(document)
    digest = hashlib.sha256(content).hexdigest()
    (blobs / digest).write_bytes(content)
    return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(content)}


def _bytes(document: object) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
