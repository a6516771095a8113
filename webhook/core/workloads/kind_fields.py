"""The paths of pod templates and constraints by workload kind.

Source: the API types of k8s.io/api.
"""

from collections.abc import Iterator, Mapping

from webhook.core.api.types import LabelSelector, ObjectMeta, PodTemplate, TypeMeta
from webhook.core.workloads import built_in_objects
from webhook.core.workloads.custom_kinds import EmbeddedKind, Layout, configured_layout
from webhook.core.workloads.kinds import (
    BUILT_IN_KINDS,
    JOB,
    KINDS,
    MADE_BY,
    POD,
    REPLICATION_CONTROLLER,
    TEMPLATED,
    GroupKind,
    group_kind,
)
from webhook.core.workloads.operators import OPERATOR_LAYOUTS, OperatorConstraint, SiblingFields

# Types of built-in kinds other than `built_in_objects.Object`.
_DECODED: Mapping[GroupKind, type] = {
    POD: PodTemplate,
    REPLICATION_CONTROLLER: built_in_objects.ReplicationController,
    JOB: built_in_objects.Job,
}


def has_template(api_version: str, kind: str, embedded: tuple[EmbeddedKind, ...] = ()) -> bool:
    """Whether objects of this kind contain whole pod templates. Pods of such objects need no review of their own."""
    layout = configured_layout(api_version, kind, embedded)
    return group_kind(api_version, kind) in TEMPLATED if layout is None else layout.whole


def makes_kind(api_version: str, kind: str, made: GroupKind, embedded: tuple[EmbeddedKind, ...] = ()) -> bool:
    """Whether the kind's controller creates objects of the kind ``made``. A configured kind may create any kind."""
    layout = configured_layout(api_version, kind, embedded)
    return (made, group_kind(api_version, kind)) in MADE_BY if layout is None else layout.whole


def constraint_paths(api_version: str, kind: str, embedded: tuple[EmbeddedKind, ...] = ()) -> tuple[str, ...]:
    """Return the paths of constraints in objects of this kind, with wildcards."""
    layout = configured_layout(api_version, kind, embedded) or layout_of(group_kind(api_version, kind))
    return () if layout is None else tuple(site.constraints for site in layout.sites)


def fields_read(stated: TypeMeta, embedded: tuple[EmbeddedKind, ...] = ()) -> Iterator[tuple[str, type]]:
    """Yield the fields read from a kind, each with its path (with wildcards) and its decoded type.

    The empty path is the object itself.
    """
    api_version, kind = stated.api_version or "", stated.kind or ""
    key = group_kind(api_version, kind)
    layout = configured_layout(api_version, kind, embedded)
    if layout is None and key in BUILT_IN_KINDS:
        yield "", _DECODED.get(key, built_in_objects.Object)
        return
    layout = layout or layout_of(key)
    if layout is None:
        return
    yield "metadata", ObjectMeta
    for site in layout.sites:
        path = site.bare_path or site.template
        # Paths next to a template start at the last wildcard's entry.
        entry = max(path.rfind("[*]") + len("[*]"), path.rfind(".*") + len(".*"))
        prefix = f"{path[:entry]}." if "*" in path else ""
        yield path, (tuple[OperatorConstraint, ...] if site.bare_path else PodTemplate)
        if site.replicas:
            yield f"{prefix}{site.replicas}", int
        if layout.filled:
            yield prefix.removesuffix("."), SiblingFields
    if layout.selector:
        yield layout.selector, LabelSelector
    if layout.strategy:
        yield layout.strategy, built_in_objects.StrategyFields
    if layout.suspend:
        yield layout.suspend, bool
    for path in layout.late_labels:
        yield path, Mapping[str, str]


def layout_of(kind: GroupKind) -> Layout | None:
    """Return where objects of a kind keep their pod templates and constraints.

    None for a kind unknown to evenspread.
    """
    row = KINDS.get(kind)
    return OPERATOR_LAYOUTS.get(kind) if row is None else row.layout
