"""List the objects to scan: workloads page by page, and pods without a workload.

The selection and the JSON fields are the same as for `audit` of a snapshot. A Deployment's ReplicaSets and the pods of
workloads are skipped, since the scan already has their template. A failed list restarts. Completed lists are not
repeated.
"""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from functools import partial
from http import HTTPStatus

import msgspec
from msgspec import Raw

from webhook.cluster.connection import ApiServer
from webhook.cluster.errors import RefusedError
from webhook.cluster.listing import ListedPage, NotListedError, list_pages
from webhook.cluster.resources import BUILT_IN_RESOURCES, Resource, group_path, with_workloads
from webhook.cluster.unowned_pods import UnownedPod
from webhook.core.api.types import Named, TypeMeta
from webhook.core.decoders import decoder_of, read_nested
from webhook.core.policy.policy import Policy
from webhook.core.scan.scan_context import ObjectKey, stands_for
from webhook.core.workloads.kind_fields import constraint_paths, has_template
from webhook.core.workloads.kinds import POD, GroupKind, group_kind
from webhook.logs import bounded
from webhook.snapshot.projection import project

ObjectJson = bytes  # an object as JSON, with apiVersion and kind
ObjectName = tuple[GroupKind, str, str]  # kind, namespace, name
UnreadNames = Collection[GroupKind | ObjectName]

# Each is a request. A cluster with more such pods gets a sample.
_MOST_UNOWNED = 1000
_PAGE = 50
_NODE: GroupKind = ("", "Node")  # the owner of static pods; each node has some
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError)
_NAMED = decoder_of(Named)
_POD = TypeMeta(api_version="v1", kind="Pod")

_log = logging.getLogger(__name__)


def is_among(unread: UnreadNames, one: GroupKind | ObjectName) -> bool:
    """Whether ``unread`` has this kind or object. A kind in ``unread`` includes all its objects."""
    return one in unread or one[0] in unread


def in_both(one: UnreadNames, other: UnreadNames) -> set[GroupKind | ObjectName]:
    """Return the kinds and objects in both sets. A kind in a set includes all objects of the kind."""
    return {item for item in one if is_among(other, item)} | {item for item in other if is_among(one, item)}


class WorkloadLister:
    """Lists the objects of a full scan.

    After an error, the next call of `objects` continues. Between two full scans, `read` reads an object of a watched
    kind, and `list_unwatched` prepares `objects` for the other kinds.

    Args:
        pages: Lists a kind. By default it requests pages of the API server.

    Attributes:
        unread: Kinds and objects whose list or read request the API server refused. The scan also adds objects without
            a result.
    """

    def __init__(
        self,
        server: ApiServer,
        policy: Policy,
        unowned: tuple[UnownedPod, ...],
        sleep: Callable[[float], object],
        pages: Callable[[Resource], Iterator[ListedPage]] | None = None,
    ) -> None:
        self._server = server
        self._embedded = policy.workloads
        self._unowned = unowned
        self._pages = pages or partial(list_pages, server, sleep=sleep)
        self._left = [resource for resource in with_workloads(server, policy) if self._is_listed(resource)]
        listed = [(resource.api_versions[0], resource.kind) for resource in self._left]
        self._unwatched = [resource for resource in self._left if resource not in BUILT_IN_RESOURCES]
        named = ((group_kind(kept.api_versions[0], kept.kind), kept) for kept in self._left)
        self._watched = {kind: kept for kind, kept in named if kept in BUILT_IN_RESOURCES}
        # Skip objects created by these kinds. For operators' kinds without a template, scan the pods.
        self._kinds = {group_kind(*kind) for kind in listed if has_template(*kind, self._embedded)}
        self._pods: list[UnownedPod] | None = None  # remaining pods; None before kinds are listed
        self.unread: set[GroupKind | ObjectName] = set()

    def objects(self) -> Iterator[list[ObjectJson]]:
        """Yield the objects to scan, as JSON in lists.

        Workloads come first, then the pods to scan on their own.

        Raises:
            ClusterError: The API server does not answer.
        """
        while self._left:
            yield from self._list_kind(self._left[0])
            self._left.pop(0)
        if self._pods is None:
            self._pods = self._choose_pods()
        while self._pods:
            yield [document for pod in self._pods[:_PAGE] if (document := self._get_pod(pod)) is not None]
            del self._pods[:_PAGE]

    def is_watched(self, kind: GroupKind) -> bool:
        """Whether the index has events of the kind's objects."""
        return kind in self._watched

    def list_unwatched(self, unowned: tuple[UnownedPod, ...]) -> None:
        """Prepare the next call of `objects`: it yields the objects of unwatched kinds, and these pods."""
        self._left, self._unowned, self._pods = [*self._unwatched], unowned, None
        # A kind without a list or an object without a result is tried again.
        self.unread = {name for name in self.unread if self.is_watched(name if isinstance(name[0], str) else name[0])}

    def read(self, key: ObjectKey) -> ObjectJson | None:
        """Read an object of a watched kind. None if it is gone, forbidden, or created by a listed object.

        Raises:
            ClusterError: The API server does not answer.
        """
        resource = self._watched[key.group, key.kind]
        of = TypeMeta(api_version=resource.api_versions[0], kind=resource.kind)
        path = f"{group_path(resource.api_versions[0])}/namespaces/{key.namespace}/{resource.name}/{key.name}"
        try:
            with self._server.open(path) as stream:
                return self._kept_object(Raw(stream.body()), of)
        except RefusedError as refusal:
            if refusal.status == HTTPStatus.FORBIDDEN:
                self.unread.add(((key.group, key.kind), key.namespace, key.name))
            elif refusal.status != HTTPStatus.NOT_FOUND:
                raise
            return None

    def _is_listed(self, resource: Resource) -> bool:
        version = resource.api_versions[0]
        read = constraint_paths(version, resource.kind, self._embedded)
        return bool(read) and group_kind(version, resource.kind) != POD

    def _list_kind(self, resource: Resource) -> Iterator[list[ObjectJson]]:
        try:
            for page in self._pages(resource):
                yield [document for item in page.items if (document := self._kept_object(item, page.of)) is not None]
        except NotListedError as error:
            kind = group_kind(resource.api_versions[0], resource.kind)
            self.unread.add(kind)
            # Without a list of the kind, its pods represent it.
            self._kinds.discard(kind)
            fields = {"resource": error.resource, "why": bounded(str(error))}
            _log.info("a kind of workload cannot be listed", extra={"fields": fields})

    def _kept_object(self, item: Raw, type_meta: TypeMeta) -> ObjectJson | None:
        """Return the object. None if a listed object created it, or it cannot be decoded."""
        try:
            meta = read_nested(_NAMED.decode, bytes(item)).meta
            version = type_meta.api_version or ""
            owner = stands_for(group_kind(version, type_meta.kind or ""), version, meta, self._embedded)
            if owner is not None and group_kind(owner.api_version, owner.kind) in self._kinds:
                return None
            return read_nested(lambda text: project(text, type_meta, self._embedded), bytes(item))
        except _UNREADABLE:
            return None

    def _choose_pods(self) -> list[UnownedPod]:
        """Return a pod of each controller of an unlisted kind, and pods without a controller, up to the limit."""
        seen, candidates, of_namespace = (
            set[tuple[str, str, str, str]](),
            list[tuple[int, UnownedPod]](),
            Counter[str](),
        )
        for pod in self._unowned:
            owner = pod.owner
            if owner is not None:
                kind = group_kind(owner.api_version, owner.kind)
                key = (pod.namespace, *kind, owner.name)
                if kind == _NODE or kind in self._kinds or key in seen:
                    continue
                seen.add(key)
            of_namespace[pod.namespace] += 1
            candidates.append((of_namespace[pod.namespace], pod))
        if len(candidates) > _MOST_UNOWNED:
            _log.warning("too many pods without a workload: only %d are scanned", _MOST_UNOWNED)
            self.unread.add(POD)
        # Take the first pod of each namespace, then the second, so a namespace with many pods does not displace others.
        candidates.sort(key=lambda candidate: candidate[0])
        return [pod for _, pod in candidates[:_MOST_UNOWNED]]

    def _get_pod(self, pod: UnownedPod) -> ObjectJson | None:
        """Get the pod. None if it is gone or unreadable. Raises ClusterError."""
        answer = self._server.send("GET", f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}")
        if answer.status == HTTPStatus.OK:
            return project(msgspec.json.encode(answer.content), _POD, self._embedded)
        if answer.status == HTTPStatus.FORBIDDEN:
            self.unread.add(POD)
        elif answer.status != HTTPStatus.NOT_FOUND:
            message = str(answer.content.get("message", ""))
            raise RefusedError(answer.status, message, retry_after=answer.retry_after)
        return None
