"""Bytes of an object -> typed values, or the message with which kube-apiserver refuses the bytes.

Two decoders agree on every object that both accept. msgspec is fast and takes well-formed objects; where it fails,
`go_json` follows Go's own rules, which are slower and accept more. Only `go_json` looks at fields that `api.types` does
not have, so `decode_strictly`, which always uses it, also finds wrong types and unknown names in those.

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

# Kinds that kube-apiserver names in its decoding errors; each is version v1 of its group.
GO_KINDS = frozenset(
    {
        *("Pod", "PodTemplate", "ReplicationController", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"),
        *("Job", "CronJob"),
    }
)
_TYPE_META = decoder_of(TypeMeta)
# Go's rules take a microsecond for each.
_MOST_VALUES = 4096
_UNNAMED = f"it does not fit its type; of more than {_MOST_VALUES:,} values, evenspread does not name the one"


class DecodeError(Exception):
    """An object that cannot be decoded.

    Shape: ``path`` names the field with indices ("" for the whole object); ``text`` is the decoder's own text;
    ``message`` is that of the 400 answer, the same as ``text`` for a template inside another object.
    """

    def __init__(self, *, path: str, text: str, message: str) -> None:
        super().__init__(message)
        self.path = path
        self.text = text
        self.message = message


def _refused(path: str, text: str, kind: str) -> DecodeError:
    """The error, with the message of the 400 answer. Source: endpoints/handlers/rest.go ``transformDecodeError``."""
    cause = f'{kind} in version "v1" cannot be handled as a {kind}: ' if kind in GO_KINDS else ""
    return DecodeError(path=path, text=text, message=f"{cause}{text}")


def decode(raw: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[T], go_type: str, prefix: tuple[str, ...] = ()) -> T:
    """Decode an object, by the fast decoder if it is well formed.

    Shape: ``go_type`` is ``v1.`` and a built-in kind or ``PodTemplateSpec``; ``prefix`` are the fields above.
    Errors: DecodeError.
    Source: runtime/serializer/json/json.go ``Decode``.
    """
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return decode_strictly(raw, decoder, go_type, prefix)[0]


def decode_strictly(
    raw: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[T], go_type: str, prefix: tuple[str, ...] = ()
) -> tuple[T, tuple[str, ...]]:
    """Decode an object by Go's rules; with it, the warnings of strict decoding about unknown and repeated fields.

    Errors: DecodeError, also for fields that the model does not have, and for so many values that Go's rules, which are
    a hundred times slower, would hold up others.
    Source: runtime/serializer/json/json.go ``Decode``.
    """
    if has_more_values(raw, _MOST_VALUES):
        raise _refused("", _UNNAMED, go_type.removeprefix("v1."))
    value, warnings = as_go_reads(raw, go_type, prefix)
    return converted(value, decoder.type), warnings


def as_go_reads(
    raw: bytes | msgspec.Raw, go_type: str, prefix: tuple[str, ...] = (), version: KubernetesVersion = RECORDED
) -> tuple[object, tuple[str, ...]]:
    """The object as Go's decoder would keep it, and the warnings of strict decoding.

    Shape: JSON values of known fields only; nulls and repeated fields are resolved, quantities are text.
    Errors: DecodeError.
    Source: runtime/serializer/json/json.go ``unmarshal``.
    """
    try:
        return go_json.decode_go(_read(raw), go_type, prefix, version)
    except go_json.GoJsonError as error:
        raise _refused(error.path, str(error), go_type.removeprefix("v1.")) from None


def type_of(raw: bytes) -> TypeMeta:
    """The apiVersion and kind that the bytes of an object state.

    Errors: DecodeError if they are no JSON object, or if apiVersion or kind is no string.
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
        text = f"the object is not valid JSON: {str(error)[:256]}"
        raise DecodeError(path="", text=text, message=text) from None
