"""Notes about constraints inside the texts of a ConfigMap or a Secret, which no rule reads.

What becomes of such a text depends on its reader: kubectl may apply it, an operator may make pods of it, or nothing.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.manifest import Manifest

Json = Any  # raw JSON from outside

# The fields with plain text; a Secret's data and a ConfigMap's binaryData are base64, and are not searched.
_TEXTS = {("v1", "ConfigMap"): "data", ("v1", "Secret"): "stringData"}
_NAME = "topologySpreadConstraints"
# The field as a key of YAML or JSON with a value that is not empty, but not in a comment or in prose.
_HELD = re.compile(
    rf"""(?:^[ \t]*(?:-[ \t]+)?|[{{,]\s*)["']?{_NAME}["']?[ \t]*:"""
    r"""\s*(?:\#[^\n]*\n\s*)*(?:-\s|\[\s*[^\]\s]|\{\s*[^}\s])""",
    re.MULTILINE,
)


def carried(manifest: Manifest) -> Iterator[InputFault]:
    """A note for each text of the object that contains constraints."""
    field = _TEXTS.get((manifest.api_version, manifest.kind))
    if field is None or (isinstance(manifest.value, bytes) and _NAME.encode() not in manifest.value):
        return
    value: Json = msgspec.json.decode(manifest.value) if isinstance(manifest.value, bytes) else manifest.value
    texts = value.get(field)
    for key, text in texts.items() if isinstance(texts, Mapping) else ():
        if isinstance(text, str) and _HELD.search(text):
            place = manifest.locate(f"{field}[{key}]")
            message = (
                f"{manifest.title} has {_NAME} in the text of its {field}, which was not looked at: "
                f"check what stands in {key} as a file of its own"
            )
            yield InputFault(file=manifest.file, message=message, line=place.line, column=place.column, fatal=False)
