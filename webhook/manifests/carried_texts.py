"""Constraints in the texts that a ConfigMap or a Secret carries, which no rule reads: a note says that they are there.

What is done with such a text only its reader knows: kubectl applies it, an operator makes pods of it, or nobody does.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from webhook.manifests.documents import Fault
from webhook.manifests.manifest import Manifest

Json = Any  # raw JSON from outside

# The data of a Secret is in base64, and of a ConfigMap binaryData too.
_TEXTS = {("v1", "ConfigMap"): "data", ("v1", "Secret"): "stringData"}
_NAME = "topologySpreadConstraints"
# A key of YAML or JSON that holds something: an item, a mapping, or what a template puts there; no comment, no prose.
_HELD = re.compile(
    rf"""(?:^[ \t]*(?:-[ \t]+)?|[{{,]\s*)["']?{_NAME}["']?[ \t]*:"""
    r"""\s*(?:\#[^\n]*\n\s*)*(?:-\s|\[\s*[^\]\s]|\{\s*[^}\s])""",
    re.MULTILINE,
)


def carried(manifest: Manifest) -> Iterator[Fault]:
    """A note for each text of the object that has constraints in it."""
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
            yield Fault(file=manifest.file, message=message, line=place.line, column=place.column, fatal=False)
