"""Values as YAML text that go-yaml and YAML 1.2 read the same.

PyYAML's dumper quotes only what PyYAML itself would misread. It leaves ``1e3`` and ``0o17`` unquoted, which kubectl
reads as numbers.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

Json = Any

# Plain scalars begin with a letter: after a digit, a sign or a point, some readers see a number or a date. A ':' or
# a '#' can end one. In flow style brackets and commas end it too.
_PLAIN_IN_FLOW = re.compile(r"[A-Za-z](?:[A-Za-z0-9_./-]*[A-Za-z0-9])?", re.ASCII)
_PLAIN_IN_BLOCK = re.compile(r"[A-Za-z](?:[A-Za-z0-9 _./()=,;+@%'\[\]-]*[A-Za-z0-9_./()%'\]])?", re.ASCII)
# Words that some reader takes for a boolean or for nothing.
_NO_TEXT = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null"})


def plain(value: object) -> object:
    """A struct or tuple of ours as plain JSON values."""
    return msgspec.json.decode(msgspec.json.encode(value)) if isinstance(value, Struct | tuple) else value


def one_field(name: str, value: object) -> str:
    """A field as YAML on one line: ``maxSkew: 1``."""
    return f"{flow_scalar(name)}: {flow(value)}"


def flow(value: object) -> str:
    """A value as YAML in flow style, on one line."""
    value = plain(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(one_field(str(key), each) for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    return flow_scalar(value)


def flow_scalar(value: object) -> str:
    """A scalar for any style. Text is quoted if some reader could take it for something else."""
    if not isinstance(value, str):
        return json.dumps(value)
    if _PLAIN_IN_FLOW.fullmatch(value) and value.lower() not in _NO_TEXT:
        return value
    if value.isprintable():
        return json.dumps(value, ensure_ascii=False)
    return '"' + "".join(map(_escaped, value)) + '"'


@lru_cache(maxsize=16384)  # of a few bytes, as `go_text`: whoever writes thousands of odd letters has each escaped
def _escaped(letter: str) -> str:
    if letter.isprintable() or letter < " ":
        return json.dumps(letter, ensure_ascii=False)[1:-1]
    return f"\\u{ord(letter):04x}" if ord(letter) < 0x10000 else f"\\U{ord(letter):08x}"


def block(value: Json) -> str:
    """A value as YAML in block style, with line breaks."""
    return "".join(f"{line}\n" for line in block_lines(value)) if _nested(value) else f"{block_scalar(value)}\n"


def block_lines(value: Json, *, indent: int = 0) -> Iterator[str]:
    """The lines of a mapping or list that is not empty, without line breaks.

    Args:
        value: JSON values. Errors: TypeError for any other.
        indent: How many columns a list's items stand to the right of its key.
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


def _nested(item: object) -> bool:
    return isinstance(item, Mapping | list | tuple) and bool(item)


def block_scalar(value: object) -> str:
    """A scalar, or an empty mapping or list, for block style."""
    if isinstance(value, str) and _PLAIN_IN_BLOCK.fullmatch(value) and value.lower() not in _NO_TEXT:
        return value
    return flow_scalar(value)
