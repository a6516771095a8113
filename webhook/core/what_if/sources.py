"""The objects that create pods."""

from collections.abc import Iterator, Mapping

from msgspec import Raw

from webhook.core.api.types import TypeMeta
from webhook.core.context import Context
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.pods_to_create.next_pod import PodSource, sent_pod
from webhook.core.text import object_title, one_line
from webhook.core.workloads.kinds import TEMPLATED, group_kind
from webhook.core.workloads.reading import read_exactly, read_workload
from webhook.core.workloads.workload import namespace_of, selector_of


class ReplicatedSource(PodSource, frozen=True, kw_only=True):
    """A pod template of a workload, with the number of pods to simulate.

    Attributes:
        title: Its name in messages.
        replicas: The number of pods.
        most: The autoscaler's maximum. 0 without an autoscaler.
    """

    title: str
    replicas: int
    most: int = 0


def sources_of(
    raw: bytes | Raw | Mapping[str, object],
    stated: TypeMeta,
    context: Context,
    *,
    applied: bool,
    replicas: int | None = None,
) -> Iterator[ReplicatedSource]:
    """Yield a source for each template of an object.

    An object without pods, or with a pod on every node, has none.

    Args:
        raw: The object.
        stated: Its type.
        context: The cluster and the policy.
        applied: Whether the object is in the cluster.
        replicas: A number of replicas to use instead of the object's.

    Raises:
        DecodeError: The object does not fit the API's types.
    """
    value, _ = read_exactly(raw, stated, context.version)
    workload = read_workload(value, context.policy.workloads, api_version=stated.api_version, kind=stated.kind)
    if workload is None or not workload.whole or workload.traits.on_every_node:
        return
    namespace = namespace_of(workload.meta.namespace, context.namespace)
    name = workload.meta.name or workload.meta.generate_name or "(unnamed)"
    for template in workload.templates:
        site = f" ({template.path.rstrip('.')})" if len(workload.templates) > 1 else ""
        stated_replicas = template.replicas if template.replicas is not None else 1  # The API server's default.
        yield ReplicatedSource(
            title=one_line(f"{object_title(workload.kind, namespace, name)}{site}"),
            workload=workload,
            template=template,
            namespace=namespace,
            own=selector_of(workload) if len(workload.templates) == 1 else None,
            applied=applied,
            replicas=stated_replicas if replicas is None else replicas,
        )


def add_owners(source: PodSource, index: ClusterIndex) -> None:
    """Add the owners of the source's pods to the index. Some selectors are derived from owners."""
    for owner in sent_pod(source, index).owners:
        if index.owners.get(owner.api_version, owner.kind, source.namespace, owner.meta.name) is None:
            index.change("ADDED", owner)


def sources_in_cluster(type_meta: TypeMeta, raw: Raw, context: Context) -> Iterator[ReplicatedSource]:
    """Yield the sources of an object of the cluster. An object with a controller has none.

    Raises:
        DecodeError: The object does not fit the API's types.
    """
    for source in sources_of(raw, type_meta, context, applied=True):
        workload = source.workload
        above = workload.meta.controller
        made_by = above is not None and group_kind(above.api_version, above.kind) in TEMPLATED
        makes_none = workload.is_pod or made_by or workload.suspended or workload.traits.completes
        if not makes_none and source.own is not None:
            yield source
