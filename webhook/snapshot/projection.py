"""Reduce API objects to the fields read by evenspread.

Snapshots use this, and ``audit`` to save memory. The list of fields comes from the types in core. These types have no
fields for environment variables, commands, images or names of Secrets, so none of these are copied.
"""

import functools
from collections.abc import Mapping

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
from webhook.core.api.well_known import DELETION_COST_ANNOTATION
from webhook.core.decoders import decoder_of
from webhook.core.index import readers
from webhook.core.pods_to_remove.disruption_budget import DisruptionBudget
from webhook.core.pods_to_remove.running_pod import RemovalFields
from webhook.core.workloads.custom_kinds import EmbeddedKind
from webhook.core.workloads.kind_fields import fields_read
from webhook.core.workloads.kinds import POD, GroupKind, group_kind
from webhook.manifests.reading.go_yaml import Json

# Fields for watches only.
_NOT_COPIED = frozenset({"resourceVersion", "finalizers"})
# Types that decide about the removal of pods. The index has none of their fields.
_REMOVAL: Mapping[GroupKind, type] = {POD: RemovalFields, ("policy", "PodDisruptionBudget"): DisruptionBudget}


class _CopiedShape(Struct, frozen=True, kw_only=True):
    """The fields of a JSON value to copy into a snapshot.

    The value is an object with members, a list with entries, a map with values, or a scalar (``plain``). Several
    attributes are set if the value is decoded as several types.

    Attributes:
        named: Whether to leave out an entry if only its name would be copied.
    """

    members: Mapping[str, "_CopiedShape"] = {}
    entries: "_CopiedShape | None" = None
    values: "_CopiedShape | None" = None
    plain: bool = False
    named: bool = False


_PLAIN = _CopiedShape(plain=True)
_ANNOTATIONS = _CopiedShape(
    members=dict.fromkeys(sorted({*readers.READ_ANNOTATIONS, DELETION_COST_ANNOTATION}), _PLAIN)
)


def project(raw: bytes | Raw, type_meta: TypeMeta, embedded: tuple[EmbeddedKind, ...] = ()) -> bytes:
    """Encode the object as JSON with its type and the fields read by evenspread.

    Raises:
        msgspec.DecodeError: The text is not a JSON object.
        UnicodeDecodeError: The text is not UTF-8.
        RecursionError: The JSON is too deep.
    """
    value = decoder_of(dict[str, Json]).decode(raw)
    copied = _copied(value, _shape_of(type_meta, embedded))
    return msgspec.json.encode({"apiVersion": type_meta.api_version, "kind": type_meta.kind, **copied})


def is_read(type_meta: TypeMeta, embedded: tuple[EmbeddedKind, ...] = ()) -> bool:
    """Whether evenspread reads any field of this kind's objects."""
    return _shape_of(type_meta, embedded) != _CopiedShape()


@functools.cache
def _shape_of(type_meta: TypeMeta, embedded: tuple[EmbeddedKind, ...] = ()) -> _CopiedShape:
    """Return the fields to copy from a kind's objects. Empty for a kind unused by evenspread."""
    read = readers.decoded_type(type_meta)
    shape = _typed(type_info(decoder_of(read).type)) if read is not None else None
    read_fields = [*fields_read(type_meta, embedded)]
    removal = _REMOVAL.get(group_kind(type_meta.api_version or "", type_meta.kind or ""))
    if removal is not None:
        read_fields.append(("", removal))
    for path, type_ in read_fields:
        shape = _either(shape, _at(path, _typed(type_info(decoder_of(type_).type))))
    return shape or _CopiedShape()


def _copied(value: Json, shape: _CopiedShape) -> Json:
    if isinstance(value, dict):
        return {
            name: _copied(inner, member)
            for name, inner in value.items()
            if (member := shape.members.get(name, shape.values)) is not None
        }
    if isinstance(value, list):
        inner = shape.entries
        if inner is None:
            return []
        copied = (_copied(entry, inner) for entry in value)
        return [entry for entry in copied if not inner.named or entry.keys() != {"name"}]
    # Replace text by empty text where an object or list belongs: the type stays wrong, and the content stays private.
    return "" if isinstance(value, str) and not shape.plain else value


def _typed(info: Type) -> _CopiedShape | None:
    """Return the copied parts of a value decoded as this type. None if evenspread reads nothing of it."""
    match info:
        case StructType(cls=cls, fields=fields):
            read = {field.encode_name: _typed(field.type) for field in fields if field.encode_name not in _NOT_COPIED}
            if "annotations" in read:
                read["annotations"] = _ANNOTATIONS
            members = {name: inner for name, inner in read.items() if inner is not None}
            # evenspread reads no other field of most volumes. Their names are often names of Secrets.
            shape: _CopiedShape | None = _CopiedShape(members=members, named=cls is Volume)
        case DictType(value_type=inner):
            shape = _CopiedShape(values=_typed(inner))
        case VarTupleType(item_type=inner):
            shape = _CopiedShape(entries=_typed(inner))
        case UnionType(types=types):
            shape = functools.reduce(_either, map(_typed, types))
        case Metadata(type=inner):
            shape = _typed(inner)
        case RawType() | NoneType() | CustomType():  # UNSET is a custom one
            shape = None
        case _:
            shape = _PLAIN
    return shape


def _at(path: str, shape: _CopiedShape | None) -> _CopiedShape | None:
    """Return the shape of an object whose field at ``path`` has this shape.

    Examples of paths are ``spec.tasks[*].template`` and ``spec.replicaSpecs.*.template``.
    """
    for name in reversed(path.replace("[*]", ".[]").split(".") if path else ()):
        match name:
            case "[]":
                shape = _CopiedShape(entries=shape)
            case "*":
                shape = _CopiedShape(values=shape)
            case _:
                shape = _CopiedShape(members={name: shape or _CopiedShape()})
    return shape


def _merged(one: _CopiedShape, other: _CopiedShape) -> _CopiedShape:
    members = dict(one.members)
    for name, inner in other.members.items():
        members[name] = _merged(members[name], inner) if name in members else inner
    return _CopiedShape(
        members=members,
        entries=_either(one.entries, other.entries),
        values=_either(one.values, other.values),
        plain=one.plain or other.plain,
        named=one.named or other.named,
    )


def _either(one: _CopiedShape | None, other: _CopiedShape | None) -> _CopiedShape | None:
    return _merged(one, other) if one is not None and other is not None else one or other
