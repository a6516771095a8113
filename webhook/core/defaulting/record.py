"""The annotation that records an injection, and its JSON Patch."""

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from webhook.core.api.types import NodeSelectorRequirement, PodAffinityTerm, PodTemplate, SpreadConstraint
from webhook.core.api.well_known import INJECTED_ANNOTATION
from webhook.core.decoders import decoder_of

Operation = Mapping[str, object]
"""One operation of a JSON Patch: ``op``, ``path``, ``value``."""
MAX_ANNOTATION_BYTES = 256 * 1024  # Source: apimachinery api/validation TotalAnnotationSizeLimitB


class InjectionRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The annotation ``evenspread.io/injected``.

    Attributes:
        revision: The revision of the defaults, or of the plan of the SpreadGroup ``group``.
        override: The name of the override in force.
        constraints: The injected constraints.
        filled: Indices of the pod's own constraints that got a selector. Then ``constraints`` is empty.
        group: The name of the SpreadGroup.
        pin: The plan's node requirement.
        apart: The plan's anti-affinity terms.
    """

    revision: str
    override: str | None = None
    constraints: tuple[SpreadConstraint, ...] = ()
    filled: tuple[int, ...] = ()
    group: str | None = None
    pin: NodeSelectorRequirement | None = None
    apart: tuple[PodAffinityTerm, ...] = ()


_RECORD = decoder_of(InjectionRecord)


def injected_constraints(pod: PodTemplate) -> tuple[SpreadConstraint, ...]:
    """Return the injected constraints in the pod's annotation."""
    record = injection_record(pod)
    return () if record is None else record.constraints


def injection_record(pod: PodTemplate) -> InjectionRecord | None:
    """Return the injection record in the annotations of a pod or template. None if absent or unreadable."""
    text = (pod.meta.annotations or {}).get(INJECTED_ANNOTATION)
    if text is None:
        return None
    try:
        return _RECORD.decode(text)
    except msgspec.MsgspecError:
        return None


def annotation_patch(annotations: Mapping[str, str] | None, key: str, text: str) -> Operation | None:
    """Return the operation that writes an annotation of an object with metadata.

    None if all annotations together would exceed kube-apiserver's limit.

    Source: api/validation/objectmeta.go ``ValidateAnnotationsSize``.
    """
    others = {name: value for name, value in (annotations or {}).items() if name != key}
    # kube-apiserver would reject the pod for too large annotations, and evenspread would be the cause.
    used = sum(len(part.encode()) for pair in others.items() for part in pair)
    if used + len(key) + len(text.encode()) > MAX_ANNOTATION_BYTES:
        return None
    if annotations is None:
        return add_operation("/metadata/annotations", {key: text})
    step = key.replace("~", "~0").replace("/", "~1")  # of a JSON Pointer
    return add_operation(f"/metadata/annotations/{step}", text)


def add_operation(path: str, value: object) -> Operation:
    """Build a JSON Patch operation with a new value (RFC 6902)."""
    return {"op": "add", "path": path, "value": value}
