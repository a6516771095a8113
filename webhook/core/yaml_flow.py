"""Values as YAML in flow style, on one line, quoted so that all YAML readers agree."""

import json
import re
from collections.abc import Mapping
from functools import lru_cache

import msgspec
from msgspec import Struct

# Plain scalars begin with a letter: after a digit, a sign or a point, some readers see a number or a date.
_PLAIN = re.compile(r"[A-Za-z](?:[A-Za-z0-9_./-]*[A-Za-z0-9])?", re.ASCII)
# Words that some reader takes for a boolean or for nothing.
NO_TEXT = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null"})


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
    """A scalar; a text is quoted if some reader could take it for something else."""
    if not isinstance(value, str):
        return json.dumps(value)
    if _PLAIN.fullmatch(value) and value.lower() not in NO_TEXT:
        return value
    if value.isprintable():
        return json.dumps(value, ensure_ascii=False)
    return '"' + "".join(map(_escaped, value)) + '"'


@lru_cache(maxsize=16384)  # of a few bytes, as `go_text`: whoever writes thousands of odd letters has each escaped
def _escaped(letter: str) -> str:
    if letter.isprintable() or letter < " ":
        return json.dumps(letter, ensure_ascii=False)[1:-1]
    return f"\\u{ord(letter):04x}" if ord(letter) < 0x10000 else f"\\U{ord(letter):08x}"
