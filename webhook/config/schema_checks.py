"""Validate the configuration file against its JSON Schema.

`policy.schema.json` defines every field, its default and its description. It has two custom keywords. ``x-must``
describes a pattern for error messages. ``x-as-written`` keeps an unquoted scalar as text (1.10 does not become 1.1).
"""

import functools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import resources
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from webhook.config.document import ConfigDocument
from webhook.config.faults import MAX_SHOWN_CHARS, ConfigFault, Path, render_path, shown
from webhook.core.spelling import did_you_mean

if TYPE_CHECKING:
    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

Schema = Mapping[str, Any]  # raw JSON: a schema has any shape

_TYPE_NAMES = {
    "object": "a mapping",
    "array": "a list",
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
}
# Names of modes in other tools (Pod Security Admission, Gatekeeper, Kyverno, linters), and evenspread's word.
_SYNONYMS = {
    "enforce": "deny",
    "block": "deny",
    "error": "deny",
    "fail": "deny",
    "warning": "warn",
    "dryrun": "audit",
    "dry-run": "audit",
    "info": "audit",
    "report": "audit",
    "disabled": "off",
    "none": "off",
    "ignore": "off",
    "enabled": "inject",
}


@functools.cache
def schema() -> Schema:
    """Return the schema of the configuration file."""
    text = resources.files("webhook.config").joinpath("policy.schema.json").read_text(encoding="utf-8")
    loaded: Schema = json.loads(text)
    return loaded


def normalised(document: ConfigDocument) -> ConfigDocument:
    """Drop null fields, and turn unquoted ``off`` from a boolean into text."""
    return document._replace(value=_plain(document.value, schema(), (), document.written))


def shape_faults(document: ConfigDocument) -> list[ConfigFault]:
    """Return all faults of the document by the schema."""
    return [fault for error in _validator().iter_errors(document.value) for fault in _faults(error, document)]


def resolved(part: Schema) -> Schema:
    """Resolve the ``$ref`` of a part of the schema. Keywords next to the ``$ref`` are kept."""
    if "$ref" not in part:
        return part
    target: Schema = schema()["$defs"][part["$ref"].rpartition("/")[2]]
    return {**resolved(target), **part}


@functools.cache
def _validator() -> "Validator":
    # This import takes a sixth of the webhook's start, and only a configuration file needs it.
    from jsonschema import Draft202012Validator, validators  # noqa: PLC0415  slow to import

    # JSON Schema accepts 1.0 as an integer. Kubernetes does not.
    types = Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _checker, value: isinstance(value, int) and not isinstance(value, bool)
    )
    # types-jsonschema leaves this function without types.
    extend = cast("Callable[..., Callable[[Schema], Validator]]", validators.extend)
    kind = extend(Draft202012Validator, {"pattern": _pattern_errors}, type_checker=types)
    made: Validator = kind(schema())
    return made


def _pattern_errors(_validator: object, pattern: str, value: object, _part: Schema) -> "Iterator[ValidationError]":
    """Yield an error if the value does not match. As in Helm, `$` does not match before a final line break."""
    from jsonschema import ValidationError  # noqa: PLC0415  slow to import

    if isinstance(value, str) and (value.endswith("\n") or not re.search(pattern, value)):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _plain(value: object, part: Schema, path: Path, written: Mapping[Path, str]) -> object:
    part = resolved(part)
    if isinstance(value, dict):
        properties = part.get("properties", {})
        other = part.get("additionalProperties") or {}
        return {
            key: _plain(inner, properties.get(key, other), (*path, key), written)
            for key, inner in value.items()
            if inner is not None
        }
    if isinstance(value, list):
        return [_plain(item, part.get("items", {}), (*path, index), written) for index, item in enumerate(value)]
    if value is False and "off" in part.get("enum", ()):
        return "off"
    return written.get(path, value) if part.get("x-as-written") else value


class _Misfit(NamedTuple):
    """An error of the JSON schema validator.

    Attributes:
        wanted: The argument of the failed schema keyword.
        value: The invalid value.
        part: The violated part of the schema.
        written: The text of the value in the file, for an unquoted scalar that is no string. None otherwise.
    """

    wanted: Any  # raw JSON, by keyword
    value: object
    part: Schema
    written: str | None

    @property
    def actual(self) -> str:
        if isinstance(self.value, bool):
            return f"the boolean {shown(self.value)}"
        return f"the number {shown(self.value)}" if isinstance(self.value, int | float) else shown(self.value)


def _faults(error: "ValidationError", document: ConfigDocument) -> Iterator[ConfigFault]:
    path: Path = tuple(error.absolute_path)
    part = cast("Schema", error.schema)
    match error.validator:
        case "additionalProperties":
            for key in set(cast("dict[str, object]", error.instance)) - set(part["properties"]):
                message = f"unknown field{_meant_field(key, path, part['properties'])}"
                yield document.fault((*path, key), message, key=True)
        case "required":
            # jsonschema reports each missing name separately, and only in its message.
            name = next(name for name in part["required"] if error.message.startswith(f"'{name}' "))
            yield document.fault((*path, name), "is required")
        case "enum" if part == schema()["$defs"]["ruleId"]:
            word: object = error.instance
            hint = _hint(word, part["enum"]) if isinstance(word, str) else ""
            if "propertyNames" in error.absolute_schema_path:
                yield document.fault((*path, str(word)), f"unknown rule{hint}", key=True)
            else:
                yield document.fault(path, f"unknown rule {shown(word)}{hint}")
        case keyword:
            misfit = _Misfit(error.validator_value, error.instance, part, document.written.get(path))
            words = _WORDS.get(str(keyword))
            yield document.fault(path, "must not be empty" if words is None else words(misfit))


def _wrong_type(misfit: _Misfit) -> str:
    must = misfit.part.get("x-must", f"be {_TYPE_NAMES[misfit.wanted]}")
    scalar = not isinstance(misfit.value, dict | list)
    hint = "; quote it" if misfit.wanted == "string" and scalar and "x-must" not in misfit.part else ""
    return f"must {must}, is {misfit.actual}{hint}"


def _no_such_word(misfit: _Misfit) -> str:
    allowed: list[str] = misfit.wanted
    hint = ""
    if isinstance(misfit.value, bool):
        if misfit.written not in {"true", "false"}:
            hint = f"; YAML reads {shown(misfit.written)} as a boolean"
    elif isinstance(misfit.value, str):
        synonym = _SYNONYMS.get(misfit.value.lower())
        hint = f"; did you mean {shown(synonym)}?" if synonym in allowed else _hint(misfit.value, allowed)
    return f"must be one of {', '.join(allowed)}, is {misfit.actual}{hint}"


_WORDS: Mapping[str, Callable[[_Misfit], str]] = {
    "type": _wrong_type,
    "enum": _no_such_word,
    "const": lambda misfit: f"must be {misfit.wanted}, is {misfit.actual}",
    "pattern": lambda misfit: f"must {misfit.part['x-must']}, is {misfit.actual}",
    "minimum": lambda misfit: f"must be at least {misfit.wanted}, is {shown(misfit.value)}",
    "maximum": lambda misfit: f"must be at most {misfit.wanted}, is {shown(misfit.value)}",
    "maxLength": lambda misfit: f"must have at most {misfit.wanted} characters",
    "uniqueItems": lambda _misfit: "must not have an entry twice",
}


def _meant_field(key: str, path: Path, here: Mapping[str, object]) -> str:
    """Return a hint: the path of the nearest field with this name, else a similar name in the same mapping."""
    around = render_path(path).translate(_NO_DIGITS).split(".")

    def shared(place: str) -> int:
        return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(place.split("."), around, strict=False))))

    places = [place for place in _field_places() if place.rpartition(".")[2] == key]
    if key in _WRAPPERS and not path:
        return f"; a SpreadPolicy has no {key}: its fields are at the top level"
    if not places:
        return _hint(key, here)
    place = max(places, key=shared)
    return f"; {key} is a top-level field" if place == key else f"; did you mean {shown(place)}?"


_WRAPPERS = ("spec", "config")  # most Kubernetes objects have spec, and the chart's values have config
_NO_DASHES = str.maketrans("", "", "-_")
_NO_DIGITS = str.maketrans("", "", "0123456789")


@functools.cache
def _field_places() -> tuple[str, ...]:
    return tuple(path for path, _part in fields())


def fields(part: Schema | None = None, prefix: str = "") -> Iterator[tuple[str, Schema]]:
    """Yield the path (with ``[]`` for lists) and the schema of every field."""
    for name, inner in resolved(part or schema()).get("properties", {}).items():
        path = f"{prefix}{name}"
        field = resolved(inner)
        yield path, field
        if "items" in field:
            yield from fields(field["items"], f"{path}[].")
        else:
            yield from fields(field, f"{path}.")


def _hint(word: str, known: Iterable[str]) -> str:
    """Return a hint with a similar name, if any. Case, ``-`` and ``_`` do not matter."""
    return did_you_mean(
        word[:MAX_SHOWN_CHARS], known, fold=lambda text: text.lower().translate(_NO_DASHES), quote=shown
    )
