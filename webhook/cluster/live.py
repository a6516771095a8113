"""Read a live cluster once, by listing its kinds. It only needs the verbs get and list."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct

from webhook.cluster.connection import ApiServer
from webhook.cluster.errors import ClusterError
from webhook.cluster.listing import Listing, list_objects
from webhook.cluster.resources import Resource
from webhook.cluster.wire import decoded_name
from webhook.core.api.types import ObjectMeta, TypeMeta
from webhook.core.api.version import KubernetesVersion, parse_version
from webhook.core.api.well_known import DEFAULT_NAMESPACE
from webhook.core.index.objects import ApiObject, meta_of
from webhook.core.text import one_line

_Kept = TypeVar("_Kept")
# The consequence of an unreadable kind, for messages.
_LOST: Mapping[str, str] = {
    "nodes": "rules about nodes and domains are not evaluated",
    "pods": "rules about running pods are not evaluated",
    "namespaces": "ceilings, exemptions and defaults.overrides are evaluated as if namespaces had no labels",
    "services": "defaults get no selectors from Services",
    "horizontalpodautoscalers": "rules use the workload's replicas, not the autoscaler's maximum",
    "poddisruptionbudgets": "skew --fix cannot respect them",
}


class UnreadableClusterError(Exception):
    """The cluster cannot be read. The message is a single line.

    ``silent`` is true if the API server does not answer.
    """

    def __init__(self, message: str, *, silent: bool = False) -> None:
        super().__init__(message)
        self.silent = silent


class LiveCluster(Struct, frozen=True, kw_only=True):
    """An API server that has answered a request.

    Attributes:
        source: The cluster's name in messages: ``cluster prod``.
        namespace: The namespace for manifests without one.
        release: The API server's release, as reported by the server. Empty if not reported.
    """

    server: ApiServer
    source: str
    namespace: str = DEFAULT_NAMESPACE
    release: str = ""

    @property
    def version(self) -> KubernetesVersion | None:
        """The API server's minor release. None if evenspread does not support it."""
        try:
            return parse_version(self.release)
        except ValueError:
            return None


def read_kinds(
    live: LiveCluster,
    resources: Iterable[Resource],
    keep: Callable[[Raw, TypeMeta], _Kept],
    progress: Callable[[int], None],
) -> Iterator[Listing[_Kept]]:
    """List the objects of each kind, as `list_objects` does. ``progress`` gets the number of objects of all kinds.

    Raises:
        UnreadableClusterError: A request failed, or the user may list no kind.
    """
    total, allowed, refused = 0, False, ""

    def count(objects: int) -> None:
        nonlocal total
        total += objects
        progress(total)

    for resource in resources:
        try:
            listing = list_objects(live.server, resource, keep, progress=count)
        except ClusterError as error:
            raise unreachable_error(live.source, error) from error
        # A missing extension proves no permission: every client gets this answer.
        answered = bool(listing.values) if resource.extension else not listing.refused
        allowed, refused = allowed or answered, refused or listing.detail
        yield listing
    if refused and not allowed:
        raise UnreadableClusterError(f"{live.source}: you may not read anything: {refused}")


def unreachable_error(source: str, error: ClusterError) -> UnreadableClusterError:
    """Return the error for a cluster that does not answer."""
    return UnreadableClusterError(f"{source} cannot be read: {error}", silent=True)


def left_out_line(kind: str | None, value: ApiObject, why: str) -> str:
    """Return the line about an object left out of the index: ``Pod shop/web-0: why: left out``."""
    return _left_out(kind, meta_of(value), why)


def undecodable_line(kind: str | None, value: Raw | bytes | Mapping[str, object], why: str) -> str:
    """Return the line about an undecodable object left out of the index, in the format of `left_out_line`."""
    return _left_out(kind, decoded_name(value if isinstance(value, Raw | bytes) else msgspec.json.encode(value)), why)


def _left_out(kind: str | None, meta: ObjectMeta, why: str) -> str:
    title = f"{meta.namespace}/{meta.name}".removeprefix("/")
    return one_line(f"{kind} {title}: {why}: left out")


def missing_kind_line(listing: Listing[_Kept]) -> str:
    """Return the line about an unreadable kind, with the consequence: ``nodes: 403 Forbidden: …``."""
    lost = _LOST.get(listing.resource, "answers that need them are unknown")
    return f"{listing.resource}: {listing.refused}: {lost}"
