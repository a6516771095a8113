"""Values -> YAML in block style that go-yaml and YAML 1.2 read the same.

PyYAML's dumper quotes only what PyYAML itself would misread; it leaves ``1e3`` and ``0o17`` unquoted, which are numbers
to kubectl.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from webhook.core.yaml_flow import NO_TEXT, flow_scalar

Json = Any

# Plain scalars begin with a letter, so that numbers and dates are quoted for every reader, and have no ':' and no '#',
# which can end a plain scalar.
_PLAIN = re.compile(r"[A-Za-z](?:[A-Za-z0-9 _./()=,;+@%'\[\]-]*[A-Za-z0-9_./()%'\]])?", re.ASCII)


def block_lines(value: Json, *, indent: int = 0) -> Iterator[str]:
    """The lines of a mapping or a list that is not empty, without line breaks.

    Unit: ``indent`` is by how many columns a list's items are indented below the key of the list.
    Errors: TypeError for values that JSON does not have.
    """
    if isinstance(value, Mapping):
        for key, item in value.items():
            if _nested(item):
                yield f"{block_scalar(key)}:"
                margin = " " * (2 if isinstance(item, Mapping) else indent)
                yield from (margin + line for line in block_lines(item, indent=indent))
            else:
                yield f"{block_scalar(key)}: {block_scalar(item)}"
        return
    for item in value:
        lines = block_lines(item, indent=indent) if _nested(item) else iter((block_scalar(item),))
        yield f"- {next(lines)}"
        yield from (f"  {line}" for line in lines)


def block(value: Json) -> str:
    """A mapping or a list as a text with its line breaks."""
    return "".join(f"{line}\n" for line in block_lines(value)) if _nested(value) else f"{block_scalar(value)}\n"


def _nested(item: object) -> bool:
    return isinstance(item, Mapping | list | tuple) and bool(item)


def block_scalar(value: object) -> str:
    """A text, number, boolean or null on one line, or an empty mapping or list."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in NO_TEXT:
        return value
    return flow_scalar(value)
