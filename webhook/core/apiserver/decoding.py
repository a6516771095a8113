"""Decode JSON objects into typed values, or report kube-apiserver's error.

Two decoders agree on every object accepted by both. msgspec is fast and decodes well-formed objects. If it fails,
`go_json` follows Go's rules, which are slower and accept more. Only `go_json` checks fields missing from `api.types`.
`decode_strictly` always uses `go_json`, and so also finds wrong types and unknown names in these fields.

Source: k8s.io/apimachinery runtime/serializer/json/json.go; k8s.io/apiserver endpoints/handlers/rest.go (the 400
answer).
"""

from typing import TypeVar

import msgspec

from webhook.core.api.types import TypeMeta
from webhook.core.api.version import RECORDED, KubernetesVersion
from webhook.core.apiserver import go_json
from webhook.core.decoders import converted, decoder_of, has_more_values

T = TypeVar("T")

# Kinds named in kube-apiserver's decoding errors. Each is version v1 of its group.
GO_KINDS = frozenset(
    {
        *("Pod", "PodTemplate", "ReplicationController", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"),
        *("Job", "CronJob"),
    }
)
_TYPE_META = decoder_of(TypeMeta)
# Go's rules take a microsecond for each value.
_MOST_VALUES = 4096
_UNNAMED = f"a value has the wrong type. Beyond {_MOST_VALUES:,} values, evenspread does not search for its field"


class DecodeError(Exception):
    """An object with a decoding error.

    Attributes:
        path: The field with indices. Empty for the whole object.
        text: The decoder's text.
        message: The message of the 400 answer. For a template inside another object it equals ``text``.
    """

    def __init__(self, *, path: str, text: str, message: str) -> None:
        super().__init__(message)
        self.path = path
        self.text = text
        self.message = message


def _refused(path: str, text: str, kind: str) -> DecodeError:
    """Build the error with the message of a 400 answer.

    Source: endpoints/handlers/rest.go ``transformDecodeError``.
    """
    cause = f'{kind} in version "v1" cannot be handled as a {kind}: ' if kind in GO_KINDS else ""
    return DecodeError(path=path, text=text, message=f"{cause}{text}")


def decode(raw: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[T], go_type: str, prefix: tuple[str, ...] = ()) -> T:
    """Decode a JSON object with ``decoder``. If this fails, decode by Go's rules.

    Source: runtime/serializer/json/json.go ``Decode``.

    Args:
        raw: The JSON text.
        decoder: The fast decoder.
        go_type: ``v1.`` and a built-in kind, or ``v1.PodTemplateSpec``.
        prefix: The names of the fields around the object, for paths in error messages.

    Raises:
        DecodeError: With kube-apiserver's message.
    """
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return decode_strictly(raw, decoder, go_type, prefix)[0]


def decode_strictly(
    raw: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[T], go_type: str, prefix: tuple[str, ...] = ()
) -> tuple[T, tuple[str, ...]]:
    """Decode an object by Go's rules. Return also the warnings about unknown and repeated fields.

    Raises:
        DecodeError: The object, including fields that evenspread does not use, has a wrong type or too many values.
            Go's rules are a hundred times slower, so a large object would block other requests.

    Source: runtime/serializer/json/json.go ``Decode``.
    """
    if has_more_values(raw, _MOST_VALUES):
        raise _refused("", _UNNAMED, go_type.removeprefix("v1."))
    value, warnings = as_go_reads(raw, go_type, prefix)
    return converted(value, decoder.type), warnings


def as_go_reads(
    raw: bytes | msgspec.Raw, go_type: str, prefix: tuple[str, ...] = (), version: KubernetesVersion = RECORDED
) -> tuple[object, tuple[str, ...]]:
    """Return the object as kept by Go's decoder, with the warnings of strict decoding.

    It has only known fields. Nulls and repeated fields are resolved, and quantities are text. DecodeError has
    kube-apiserver's message.

    Source: runtime/serializer/json/json.go ``unmarshal``.
    """
    try:
        return go_json.decode_go(_read(raw), go_type, prefix, version)
    except go_json.GoJsonError as error:
        raise _refused(error.path, str(error), go_type.removeprefix("v1.")) from None


def type_of(raw: bytes) -> TypeMeta:
    """Read the object's apiVersion and kind.

    Raises:
        DecodeError: The JSON is not an object, or its apiVersion or kind is not a string.

    Source: runtime/serializer/json/meta.go ``Interpret``.
    """
    try:
        return _TYPE_META.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        stated = go_json.interpreted_type(_read(raw))
    except go_json.GoJsonError as error:
        raise DecodeError(path=error.path, text=str(error), message=str(error)) from None
    return TypeMeta(api_version=stated["apiVersion"] or None, kind=stated["kind"] or None)


def _read(raw: bytes | msgspec.Raw) -> object:
    try:
        return go_json.read(bytes(raw))
    except ValueError as error:
        text = f"the object is not valid JSON: {str(error)[: go_json.ERROR_CHARACTERS]}"
        raise DecodeError(path="", text=text, message=text) from None
