"""Values in YAML's flow style, on one line, which every reader of YAML reads the same."""

import json
import re
from collections.abc import Mapping

import msgspec
from msgspec import Struct

# Letters first: what begins with a digit, a sign or a point may be a number or a date to some reader of YAML.
_PLAIN = re.compile(r"[A-Za-z](?:[A-Za-z0-9_./-]*[A-Za-z0-9])?", re.ASCII)
_NO_TEXT = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null"})


def plain(value: object) -> object:
    """A value of the model as JSON has it."""
    return msgspec.json.decode(msgspec.json.encode(value)) if isinstance(value, Struct | tuple) else value


def one_field(name: str, value: object) -> str:
    """``maxSkew: 1``: a field in YAML, on one line."""
    return f"{scalar(name)}: {flow(value)}"


def flow(value: object) -> str:
    """A value in YAML's flow style, on one line, which every reader of YAML reads the same."""
    value = plain(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(one_field(str(key), each) for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    return scalar(value)


def scalar(value: object) -> str:
    """A text, quoted where it may be read as something else; a number, true, false or null."""
    if not isinstance(value, str):
        return json.dumps(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _NO_TEXT:
        return value
    if value.isprintable():
        return json.dumps(value, ensure_ascii=False)
    return '"' + "".join(map(_escaped, value)) + '"'


def _escaped(letter: str) -> str:
    if letter.isprintable():
        return json.dumps(letter, ensure_ascii=False)[1:-1]
    return f"\\u{ord(letter):04x}" if ord(letter) < 0x10000 else f"\\U{ord(letter):08x}"
