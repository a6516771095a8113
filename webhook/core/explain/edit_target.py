"""Which object a fix of a pod has to be written into, and how: a JSON patch on its template.

A pod's own constraints cannot be changed; its controller makes the next pod from its template.
"""

from collections.abc import Iterator, Mapping
from shlex import quote
from typing import Any

import msgspec
from msgspec import Struct

from webhook.core.api.types import OwnerReference, Pod, SpreadConstraint
from webhook.core.explain.fixes import Fix
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.owners import controllers
from webhook.core.workloads.custom_kinds import BUILT_IN, CUSTOM
from webhook.core.workloads.kinds import GroupKind, group_kind

Json = Any  # values of a patch

_IN_CRON_JOB = "spec.jobTemplate.spec.template."
# Kinds that leave the pods alone which they have made; the Pending one has to go before the next is made.
_KEEPING = frozenset({("apps", "ReplicaSet"), ("", "ReplicationController")})
_MAY_KEEP = frozenset({("apps", "StatefulSet"), ("apps", "DaemonSet")})


class Target(Struct, frozen=True, kw_only=True):
    """The object to edit.

    Shape: ``path`` stands before ``spec`` of the pod; it is None where it is not known, or cannot be changed. ``note``
    is what else there is to know, a sentence without its full stop. ``places`` are the places of the pod's constraints
    in the template; those that it does not have are missing.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    path: str | None = None
    note: str = ""
    places: Mapping[int, int] = {}

    @property
    def title(self) -> str:
        """As people say it: ``Deployment shop/web``."""
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def resource(self) -> str:
        """As kubectl takes it: ``deployment``, ``rollout.argoproj.io``."""
        group, kind = group_kind(self.api_version, self.kind)
        return self.kind.lower() if (group, kind) in BUILT_IN else f"{self.kind.lower()}.{group}"


def target(pod: Pod, index: ClusterIndex) -> Target:
    """What to edit for the next pod to be another: the topmost controller with a template that is known, or the pod."""
    chain, namespace = controllers(pod, index), pod.meta.namespace
    if not chain:
        note = "the constraints of a Pod cannot be changed: delete it, and create it anew with the change"
        return Target(api_version="v1", kind="Pod", namespace=namespace, name=pod.meta.name, note=note)
    top = chain[-1]
    kind = group_kind(top.api_version, top.kind)
    path = _path_of(kind)
    note = _note(kind, pod)
    if kind == ("batch", "Job"):
        path = None
    elif path is None and len(chain) > 1:
        below = chain[-2]
        note = f"it makes {below.kind} {below.name}: where it has the constraints is not known here"
    elif path is None:
        note = "where it has the constraints is not known here"
    places = _places(pod, top, index)
    if path is not None and not places:
        path, note = None, "its template has no such constraints: something else puts them into the pods"
    return Target(
        api_version=top.api_version,
        kind=top.kind,
        namespace=namespace,
        name=top.name,
        path=path,
        note=note,
        places=places,
    )


def _path_of(kind: GroupKind) -> str | None:
    if kind == ("batch", "CronJob"):
        return _IN_CRON_JOB
    if kind in BUILT_IN:
        return "spec.template."
    layout = CUSTOM.get(kind)
    sites = [site.template for site in layout.sites if "*" not in site.template] if layout else []
    return f"{sites[0]}." if layout and len(sites) == len(layout.sites) == 1 else None


def _note(kind: GroupKind, pod: Pod) -> str:
    delete = f"kubectl delete pod {quote(pod.meta.name)} -n {quote(pod.meta.namespace)}"
    if kind == ("batch", "Job"):
        return "the template of a Job cannot be changed: delete it, and create it anew with the change"
    if kind == ("batch", "CronJob"):
        return "this changes its next Job; the one that waits stays as it is"
    if not pod.meta.uid:
        return ""
    if kind in _KEEPING:
        return f"then delete the pod, for another to be made: {delete}"
    return f"if the pod stays as it is, delete it, for another to be made: {delete}" if kind in _MAY_KEEP else ""


def _places(pod: Pod, top: OwnerReference, index: ClusterIndex) -> dict[int, int]:
    """Where the template has each of the pod's constraints: no two have one key and one action."""
    own = pod.pod_spec.constraints
    owner = index.owner(top.api_version, top.kind, pod.meta.namespace, top.name)
    if owner is None or not owner.templates:
        return {place: place for place in range(len(own))}
    known = {_identity(each): place for place, each in enumerate(owner.templates[0].constraints)}
    return {place: known[_identity(each)] for place, each in enumerate(own) if _identity(each) in known}


def _identity(constraint: SpreadConstraint) -> tuple[str | None, str | None]:
    return constraint.topology_key, constraint.when_unsatisfiable


def patch(fix: Fix, where: Target, pod: Pod) -> list[dict[str, Json]] | None:
    """The fix as a JSON patch (RFC 6902) of the object; None where there is no way to say it.

    Shape: what is changed is tested first, so that it does nothing to a template that is another by now.
    """
    if where.path is None or any(change.index not in where.places for change in fix.changes):
        return None
    return [*_operations(fix, where, pod)]


def _operations(fix: Fix, where: Target, pod: Pod) -> Iterator[dict[str, Json]]:
    root = f"/{(where.path or '').replace('.', '/')}spec/topologySpreadConstraints"
    for index in dict.fromkeys(change.index for change in fix.changes):
        key = pod.pod_spec.constraints[index].topology_key
        yield {"op": "test", "path": f"{root}/{where.places[index]}/topologyKey", "value": key}
    for change in fix.changes:
        at = f"{root}/{where.places[change.index]}/{change.field}"
        if change.field and change.value is None:
            yield {"op": "remove", "path": at}
        elif change.field:
            yield {"op": "add", "path": at, "value": msgspec.to_builtins(change.value)}
    for index in sorted((where.places[each.index] for each in fix.changes if not each.field), reverse=True):
        yield {"op": "remove", "path": f"{root}/{index}"}


def command(operations: list[dict[str, Json]], where: Target, options: str = "") -> str:
    """``kubectl patch`` with them, as a shell takes it; ``options`` name the cluster, as the command line did."""
    text = msgspec.json.encode(operations).decode()
    named = f"{quote(where.resource)} {quote(where.name)} -n {quote(where.namespace)}"
    return f"kubectl patch {named}{options} --type=json -p {quote(text)}"
