"""Write values as YAML text with the same meaning in go-yaml and YAML 1.2.

PyYAML's dumper only quotes for PyYAML itself. It leaves ``1e3`` and ``0o17`` unquoted, and kubectl reads numbers.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeGuard

import msgspec
from msgspec import Struct

# Unquoted scalars start with a letter. After a digit, a sign or a point, some readers see a number or a date. A ':' or
# a '#' can end such a scalar, and in flow style also a bracket or a comma.
_PLAIN_IN_FLOW = re.compile(r"[A-Za-z](?:[A-Za-z0-9_./-]*[A-Za-z0-9])?", re.ASCII)
_PLAIN_IN_BLOCK = re.compile(r"[A-Za-z](?:[A-Za-z0-9 _./()=,;+@%'\[\]-]*[A-Za-z0-9_./()%'\]])?", re.ASCII)
_Collection = Mapping[str, object] | Sequence[object]
# Words that some reader takes for a boolean or null.
_NO_TEXT = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null"})


def plain(value: object) -> object:
    """Convert a struct or a tuple into plain JSON values."""
    return msgspec.json.decode(msgspec.json.encode(value)) if isinstance(value, Struct | tuple) else value


def one_field(name: str, value: object) -> str:
    """Write a field on one line: ``maxSkew: 1``."""
    return f"{flow_scalar(name)}: {flow(value)}"


def flow(value: object) -> str:
    """Write a value in flow style, on one line."""
    value = plain(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(one_field(str(key), each) for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    return flow_scalar(value)


def flow_scalar(value: object) -> str:
    """Write a scalar as YAML text, usable in flow style and in block style.

    Quote the text if a YAML parser could read it as another value.
    """
    if not isinstance(value, str):
        return json.dumps(value)
    if _PLAIN_IN_FLOW.fullmatch(value) and value.lower() not in _NO_TEXT:
        return value
    if value.isprintable():
        return json.dumps(value, ensure_ascii=False)
    return '"' + "".join(map(_escaped, value)) + '"'


@lru_cache(maxsize=16384)  # a few bytes an entry, as in `go_text`
def _escaped(letter: str) -> str:
    if letter.isprintable() or letter < " ":
        return json.dumps(letter, ensure_ascii=False)[1:-1]
    return f"\\u{ord(letter):04x}" if ord(letter) < 0x10000 else f"\\U{ord(letter):08x}"


def block(value: object) -> str:
    """Write a value in block style, with line breaks."""
    return "".join(f"{line}\n" for line in block_lines(value)) if _nested(value) else f"{block_scalar(value)}\n"


def block_lines(value: _Collection, *, indent: int = 0) -> Iterator[str]:
    """Yield the lines of a mapping or list of JSON values in block style, without line breaks.

    Args:
        value: A mapping or list with items.
        indent: How many columns the items of a list are indented from its key.
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


def _nested(item: object) -> TypeGuard[_Collection]:
    return isinstance(item, Mapping | list | tuple) and bool(item)


def block_scalar(value: object) -> str:
    """Return the YAML text of a scalar, or of an empty mapping or list, for use in block style."""
    if isinstance(value, str) and _PLAIN_IN_BLOCK.fullmatch(value) and value.lower() not in _NO_TEXT:
        return value
    return flow_scalar(value)
