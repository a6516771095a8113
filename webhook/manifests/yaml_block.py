"""Values -> YAML in block style, read the same by go-yaml and by YAML 1.2.

A library's dumper quotes what its own reader would misread; ``y``, ``1e3`` and ``0o17`` are names to it and no text to
kubectl.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from webhook.manifests.go_scalars import resolve_plain

Json = Any

# Letters first: a number or a date is quoted, whatever reader may come. No colon and no number sign: they end a text.
_PLAIN = re.compile(r"[A-Za-z](?:[A-Za-z0-9 _./()=,;+@%'\[\]-]*[A-Za-z0-9_./()%'\]])?", re.ASCII)


def block_lines(value: Json, *, indent: int = 0) -> Iterator[str]:
    """The lines of a mapping or a list that is not empty, without line ends.

    Unit: ``indent`` is how many columns the items of a list in a mapping stand to the right of its key.
    Errors: TypeError for what JSON does not have.
    """
    if isinstance(value, Mapping):
        for key, item in value.items():
            if _nested(item):
                yield f"{scalar(key)}:"
                margin = " " * (2 if isinstance(item, Mapping) else indent)
                yield from (margin + line for line in block_lines(item, indent=indent))
            else:
                yield f"{scalar(key)}: {scalar(item)}"
        return
    for item in value:
        lines = block_lines(item, indent=indent) if _nested(item) else iter((scalar(item),))
        yield f"- {next(lines)}"
        yield from (f"  {line}" for line in lines)


def _nested(item: object) -> bool:
    return isinstance(item, Mapping | list | tuple) and bool(item)


def scalar(value: object) -> str:
    """A text, number, boolean or null; empty mappings and lists too."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and isinstance(resolve_plain(value), str):
        return value
    return json.dumps(value, ensure_ascii=False)
