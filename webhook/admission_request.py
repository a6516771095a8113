"""Decode AdmissionReview v1 requests.

An invalid body raises a ReviewError with an HTTP status.

Source: k8s.io/api/admission/v1.
"""

import re

import msgspec
from msgspec import Raw, Struct

from webhook.core.decoders import decoder_of, read_nested
from webhook.core.review.decision import AdmissionRequest
from webhook.logs import bounded

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"

# controller-runtime has the same limit. The API server's limit is 3 MiB for each of the object and the old object.
MAX_REVIEW_BYTES = 7 * 1024 * 1024
# kube-apiserver writes the envelope into the first KiB or two, before the objects.
START_BYTES = 64 * 1024
_OBJECTS = re.compile(rb',\s*"(?:object|oldObject)"\s*:\s*\{')
# The answer repeats the uid, which has 36 characters. Anything much longer is rejected.
_LONGEST_UID = 256


class ReviewError(Exception):
    """The body is no valid AdmissionReview. ``status`` is the HTTP status of the answer."""

    status: int | None = 400

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


_NULL = Raw(b"null")


class _GroupVersionKind(Struct, frozen=True, gc=False):
    group: str = ""
    version: str = ""
    kind: str = ""


class _GroupVersionResource(Struct, frozen=True, gc=False):
    group: str = ""
    resource: str = ""


class _User(Struct, frozen=True):
    username: str = ""
    groups: tuple[str, ...] | None = None


class _WireRequest(Struct, frozen=True, rename="camel"):
    uid: str
    kind: _GroupVersionKind
    operation: str
    resource: _GroupVersionResource | None = None
    sub_resource: str | None = None
    name: str | None = None
    namespace: str | None = None
    user_info: _User | None = None
    dry_run: bool | None = None
    object: Raw = _NULL
    old_object: Raw = _NULL


class _Review(Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    request: _WireRequest | None = None


_DECODER = decoder_of(_Review)


def decode_review(body: bytes, *, in_line: bool = False) -> AdmissionRequest:
    """Decode the envelope of a review. Its objects stay bytes.

    Raises:
        ReviewError: The body is no AdmissionReview v1 with a request.
        RecursionError: The nesting is too deep, and the caller is the event loop (``in_line``). Elsewhere the deep
            levels are cut, which takes 0.5 ms for each KiB.
    """
    try:
        envelope = _DECODER.decode(body) if in_line else read_nested(_DECODER.decode, body)
    except msgspec.ValidationError as error:
        raise ReviewError(f"not an {API_VERSION} {KIND}: {bounded(str(error))}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ReviewError(f"the body is not JSON: {bounded(str(error))}") from error
    if envelope.kind != KIND or envelope.api_version != API_VERSION:
        stated = f"{bounded(envelope.api_version, 64)} {bounded(envelope.kind, 64)}"
        raise ReviewError(f"not an {API_VERSION} {KIND} but {stated}")
    request = envelope.request
    if request is None:
        raise ReviewError(f"the {KIND} has no request")
    if not 0 < len(request.uid) <= _LONGEST_UID:
        raise ReviewError(f"request.uid must have 1 to {_LONGEST_UID} characters")
    user = request.user_info
    return AdmissionRequest(
        uid=request.uid,
        operation=request.operation,
        group=request.kind.group,
        version=request.kind.version,
        kind=request.kind.kind,
        resource_group=request.resource.group if request.resource else "",
        resource=request.resource.resource if request.resource else "",
        sub_resource=request.sub_resource or "",
        namespace=request.namespace or "",
        name=request.name or "",
        user=user.username if user else "",
        groups=(user.groups if user else None) or (),
        dry_run=request.dry_run or False,
        object=_present(request.object),
        old_object=_present(request.old_object),
    )


def decode_start(body: bytes) -> AdmissionRequest:
    """Decode the envelope of a review from the start of its body, without the objects.

    Quotes in a JSON string are escaped, so no text in the envelope can imitate the field ``object``.

    Raises:
        ReviewError: The envelope is incomplete, or comes after an object.

    Source: k8s.io/api admission/v1/types.go ``AdmissionRequest``, whose order of fields encoding/json keeps.
    """
    objects = _OBJECTS.search(body)
    try:
        return decode_review(body if objects is None else body[: objects.start()] + b"}}", in_line=True)
    except RecursionError:
        raise ReviewError("the envelope is nested too deeply") from None


def _present(raw: Raw) -> Raw | None:
    # The length is checked first, because the comparison copies the object, which can have megabytes.
    return None if memoryview(raw).nbytes == len(b"null") and bytes(raw) == b"null" else raw
