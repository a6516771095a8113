"""API objects without all that no answer depends on: what a snapshot holds, and what an audit keeps in memory.

An allow-list, made from the types that objects are decoded as: a field that nothing reads is not copied, whatever it is
called and wherever it stands. Environments, commands, images, Secrets' names and the like have no such field.
"""

import functools
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.inspect import (
    CustomType,
    DictType,
    Metadata,
    NoneType,
    RawType,
    StructType,
    Type,
    UnionType,
    VarTupleType,
    type_info,
)

from webhook.core.api.types import TypeMeta, Volume
from webhook.core.index import readers
from webhook.core.workloads import reading
from webhook.core.workloads.custom_kinds import EmbeddedKind

Json = Any

# Read by a watch alone, or by nobody.
_NOT_COPIED = frozenset({"resourceVersion", "finalizers"})


class Shape(Struct, frozen=True, kw_only=True):
    """What is copied at one place: members of an object, entries of a list, values of a map, or a plain value.

    Shape: several may be set, where several types are read from one place. ``named`` entries are left out if nothing is
    copied of them but a name.
    """

    members: Mapping[str, "Shape"] = {}
    entries: "Shape | None" = None
    values: "Shape | None" = None
    plain: bool = False
    named: bool = False


_PLAIN = Shape(plain=True)
_ANNOTATIONS = Shape(members=dict.fromkeys(sorted(readers.READ_ANNOTATIONS), _PLAIN))


def project(raw: bytes | Raw, of: TypeMeta, embedded: tuple[EmbeddedKind, ...] = ()) -> bytes:
    """The object as JSON that says its kind and has nothing but what is read of it.

    Errors: msgspec.DecodeError, UnicodeDecodeError, RecursionError for what is no JSON object.
    """
    value = msgspec.json.decode(raw, type=dict[str, Json])
    copied = _copied(value, _shape_of(of, embedded))
    return msgspec.json.encode({"apiVersion": of.api_version, "kind": of.kind, **copied})


def is_read(of: TypeMeta, embedded: tuple[EmbeddedKind, ...] = ()) -> bool:
    """Whether any answer depends on objects of that kind."""
    return _shape_of(of, embedded) != Shape()


@functools.cache
def _shape_of(of: TypeMeta, embedded: tuple[EmbeddedKind, ...] = ()) -> Shape:
    """What is copied of a kind; nothing of one that no answer depends on."""
    read = readers.fields_read(of)
    shape = _typed(type_info(read)) if read is not None else None
    for path, type_ in reading.fields_read(of, embedded):
        shape = _either(shape, _at(path, _typed(type_info(type_))))
    return shape or Shape()


def _copied(value: Json, shape: Shape) -> Json:
    if isinstance(value, dict):
        return {
            name: _copied(inner, found)
            for name, inner in value.items()
            if (found := shape.members.get(name, shape.values)) is not None
        }
    if isinstance(value, list):
        inner = shape.entries
        if inner is None:
            return []
        copied = (_copied(entry, inner) for entry in value)
        return [entry for entry in copied if not inner.named or entry.keys() != {"name"}]
    # A text where none belongs stays a text, so that it is still wrong, but says nothing.
    return "" if isinstance(value, str) and not shape.plain else value


def _typed(info: Type) -> Shape | None:
    """What is copied where a type is decoded; None where its decoder looks at nothing."""
    match info:
        case StructType(cls=cls, fields=fields):
            read = {each.encode_name: _typed(each.type) for each in fields if each.encode_name not in _NOT_COPIED}
            if "annotations" in read:
                read["annotations"] = _ANNOTATIONS
            members = {name: inner for name, inner in read.items() if inner is not None}
            # Of most volumes nothing is read, and their name is often that of a Secret.
            found: Shape | None = Shape(members=members, named=cls is Volume)
        case DictType(value_type=inner):
            found = Shape(values=_typed(inner))
        case VarTupleType(item_type=inner):
            found = Shape(entries=_typed(inner))
        case UnionType(types=types):
            found = functools.reduce(_either, map(_typed, types))
        case Metadata(type=inner):
            found = _typed(inner)
        case RawType() | NoneType() | CustomType():  # UNSET is a custom one
            found = None
        case _:
            found = _PLAIN
    return found


def _at(path: str, shape: Shape | None) -> Shape | None:
    """The shape below a path: ``spec.tasks[*].template``, ``spec.replicaSpecs.*.template``."""
    for name in reversed(path.replace("[*]", ".[]").split(".") if path else ()):
        match name:
            case "[]":
                shape = Shape(entries=shape)
            case "*":
                shape = Shape(values=shape)
            case _:
                shape = Shape(members={name: shape or Shape()})
    return shape


def _merged(one: Shape, other: Shape) -> Shape:
    members = dict(one.members)
    for name, inner in other.members.items():
        members[name] = _merged(members[name], inner) if name in members else inner
    return Shape(
        members=members,
        entries=_either(one.entries, other.entries),
        values=_either(one.values, other.values),
        plain=one.plain or other.plain,
        named=one.named or other.named,
    )


def _either(one: Shape | None, other: Shape | None) -> Shape | None:
    return _merged(one, other) if one is not None and other is not None else one or other
