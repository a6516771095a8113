"""Decode the object of a review into its pod templates, or record why that failed."""

from collections.abc import Mapping

from msgspec import Raw, Struct

from webhook.core.api.types import ObjectMeta, TypeMeta
from webhook.core.apiserver.decoding import DecodeError
from webhook.core.budget import Reason
from webhook.core.decoders import has_more_values
from webhook.core.policy.policy import Policy
from webhook.core.rules.object_cost import MAX_VALUES, TOO_MANY_VALUES
from webhook.core.workloads.kind_fields import constraint_paths
from webhook.core.workloads.reading import read_meta, read_workload
from webhook.core.workloads.workload import Workload

_NO_META = ObjectMeta()


class ReadObject(Struct, frozen=True):
    """An object as received, and its decoded workload.

    Attributes:
        workload: None for a kind without a pod template, and with a ``decode_error``.
        meta: The readable part of the metadata.
        limit: The limit exceeded by the object. Such an object is not decoded.
    """

    raw: bytes | Raw | Mapping[str, object]
    workload: Workload | None
    meta: ObjectMeta
    decode_error: DecodeError | None = None
    limit: Reason | None = None


UNREAD = ReadObject(b"", None, _NO_META, limit=TOO_MANY_VALUES)


def read_object(raw: bytes | Raw | Mapping[str, object], stated: TypeMeta, policy: Policy) -> ReadObject:
    """Decode an object as the type ``stated``, ignoring the object's own type.

    If ``stated`` is incomplete, the object's own apiVersion and kind are used.
    """
    try:
        workload = read_workload(raw, policy.workloads, api_version=stated.api_version, kind=stated.kind)
    except DecodeError as error:
        return ReadObject(raw, None, read_meta(raw), error)
    return ReadObject(raw, workload, workload.meta if workload else _NO_META)


def read_within_limit(raw: bytes | Raw, stated: TypeMeta, policy: Policy) -> ReadObject:
    """Decode an object at admission. Return `UNREAD` for more than `MAX_VALUES` JSON values in a kind with constraints.

    Decoding such an object would delay other reviews.
    """
    api_version, kind = stated.api_version or "", stated.kind or ""
    if has_more_values(raw, MAX_VALUES) and constraint_paths(api_version, kind, policy.workloads):
        return UNREAD
    return read_object(raw, stated, policy)
