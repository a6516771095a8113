"""The objects that one scan looks at: workloads that somebody wrote, page by page, and pods that have none.

As in `audit` of a snapshot, and as JSON of the same fields: ReplicaSets of a Deployment and the pods of workloads
repeat a template that is looked at already. A list that fails is begun again, and those before it are not.
"""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterator

import msgspec
from msgspec import Raw

from webhook.cluster.connection import ApiServer, RefusedError
from webhook.cluster.listing import NotListedError, Pause, list_pages
from webhook.cluster.resources import Resource, with_workloads
from webhook.cluster.unowned_pods import UnownedPod
from webhook.core.api.types import Named, TypeMeta
from webhook.core.decoders import decoder_of, read_nested
from webhook.core.policy.policy import Policy
from webhook.core.scan.scan_context import stands_for
from webhook.core.workloads.kinds import POD, GroupKind, group_kind
from webhook.core.workloads.reading import constraint_paths, has_template
from webhook.logs import bounded
from webhook.snapshot.projection import project

ObjectJson = bytes  # an object as JSON, with apiVersion and kind
ObjectName = tuple[GroupKind, str, str]  # kind, namespace, name
UnreadNames = Collection[GroupKind | ObjectName]

# Each is a request; whoever has more pods that no workload stands for sees some of them.
_MOST_UNOWNED = 1000
_PAGE = 50
_FOUND, _FORBIDDEN, _GONE = 200, 403, 404
_NODE: GroupKind = ("", "Node")  # the owner of static pods, which each node has
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError)
_NAMED = decoder_of(Named)
_POD = TypeMeta(api_version="v1", kind="Pod")

_log = logging.getLogger(__name__)


def is_among(unread: UnreadNames, one: GroupKind | ObjectName) -> bool:
    """Whether it is there, or the kind of the object is."""
    return one in unread or one[0] in unread


def in_both(one: UnreadNames, other: UnreadNames) -> set[GroupKind | ObjectName]:
    """What is in both, be it an object in one and its kind in the other."""
    return {each for each in one if is_among(other, each)} | {each for each in other if is_among(one, each)}


class WorkloadLister:
    """See the module; `objects` may be called again after it raised, and goes on.

    Shape: ``unread`` has the kinds of which not all objects could be read, and whoever looks at objects adds those of
    which it knows nothing.
    """

    def __init__(
        self, server: ApiServer, policy: Policy, unowned: tuple[UnownedPod, ...], sleep: Callable[[float], None]
    ) -> None:
        self._server = server
        self._embedded = policy.workloads
        self._unowned = unowned
        self._pause = Pause(sleep=sleep)
        self._left = [each for each in with_workloads(server, policy) if self._is_listed(each)]
        of = [(each.api_versions[0], each.kind) for each in self._left]
        # What these made is not looked at again; pods of other operators' kinds stand for what their operator made.
        self._kinds = {group_kind(*each) for each in of if has_template(*each, self._embedded)}
        self._pods: list[UnownedPod] | None = None  # that are still to be looked at; None before kinds are listed
        self.unread: set[GroupKind | ObjectName] = set()

    def objects(self) -> Iterator[list[ObjectJson]]:
        """Some objects at a time.

        Errors: ClusterError if the API server does not answer.
        """
        while self._left:
            yield from self._of_kind(self._left[0])
            self._left.pop(0)
        if self._pods is None:
            self._pods = self._representatives()
        while self._pods:
            yield [each for pod in self._pods[:_PAGE] if (each := self._pod(pod)) is not None]
            del self._pods[:_PAGE]

    def _is_listed(self, resource: Resource) -> bool:
        version = resource.api_versions[0]
        read = constraint_paths(version, resource.kind, self._embedded)
        return bool(read) and group_kind(version, resource.kind) != POD

    def _of_kind(self, resource: Resource) -> Iterator[list[ObjectJson]]:
        try:
            for page in list_pages(self._server, resource, pause=self._pause):
                yield [each for item in page.items if (each := self._taken(item, page.of)) is not None]
        except NotListedError as error:
            kind = group_kind(resource.api_versions[0], resource.kind)
            self.unread.add(kind)
            # Their objects are nobody's business then, and pods of theirs stand for them.
            self._kinds.discard(kind)
            fields = {"resource": error.resource, "why": bounded(str(error))}
            _log.info("a kind of workload is not listed", extra={"fields": fields})

    def _taken(self, item: Raw, of: TypeMeta) -> ObjectJson | None:
        """The object, unless another one that is listed made it, or it is no object."""
        try:
            meta = read_nested(_NAMED.decode, bytes(item)).meta
            version = of.api_version or ""
            owner = stands_for(group_kind(version, of.kind or ""), version, meta, self._embedded)
            if owner is not None and group_kind(owner.api_version, owner.kind) in self._kinds:
                return None
            return read_nested(lambda text: project(text, of, self._embedded), bytes(item))
        except _UNREADABLE:
            return None

    def _representatives(self) -> list[UnownedPod]:
        """One pod of each controller whose kind is not listed, and every pod without one, as many as are looked at."""
        seen, found, of_namespace = set[tuple[str, str, str, str]](), list[tuple[int, UnownedPod]](), Counter[str]()
        for pod in self._unowned:
            owner = pod.owner
            if owner is not None:
                kind = group_kind(owner.api_version, owner.kind)
                key = (pod.namespace, *kind, owner.name)
                if kind == _NODE or kind in self._kinds or key in seen:
                    continue
                seen.add(key)
            of_namespace[pod.namespace] += 1
            found.append((of_namespace[pod.namespace], pod))
        if len(found) > _MOST_UNOWNED:
            _log.warning("%d pods without a workload are looked at, and no more", _MOST_UNOWNED)
            self.unread.add(POD)
        # The first of each namespace, the second of each, and so on: one that has many takes no other's place.
        found.sort(key=lambda each: each[0])
        return [pod for _, pod in found[:_MOST_UNOWNED]]

    def _pod(self, pod: UnownedPod) -> ObjectJson | None:
        """The pod; None where it has gone, or may not be read.

        Errors: ClusterError.
        """
        answer = self._server.send("GET", f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}")
        if answer.status == _FOUND:
            return project(msgspec.json.encode(answer.content), _POD, self._embedded)
        if answer.status == _FORBIDDEN:
            self.unread.add(POD)
        elif answer.status != _GONE:
            message = str(answer.content.get("message", ""))
            raise RefusedError(answer.status, message, retry_after=answer.retry_after)
        return None
