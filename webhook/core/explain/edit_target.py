"""The object in which to write a pod's fix, and the JSON patch on its template.

A pod's constraints are immutable; its controller makes the next pod from the template.
"""

from collections.abc import Mapping
from shlex import quote

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.types import OwnerReference, Pod
from webhook.core.changes.candidates import PodFix
from webhook.core.changes.change import Changes
from webhook.core.index.owners import controllers
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.workloads.kinds import BUILT_IN_KINDS, CRON_JOB, JOB, KINDS, TEMPLATED, GroupKind, group_kind, traits


class EditTarget(Struct, frozen=True, kw_only=True):
    """The object to edit.

    Args:
        path: What precedes the pod's ``spec`` in it. None if it is unknown or immutable.
        note: A sentence about it, without full stop.
        places: The index of each of the pod's constraints in the template, for those that it has.
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
        """Its name in messages."""
        return object_title(self.kind, self.namespace, self.name)

    @property
    def resource(self) -> str:
        """Its kind as an argument of kubectl: ``deployment``, ``rollout.argoproj.io``."""
        group, kind = group_kind(self.api_version, self.kind)
        return self.kind.lower() if (group, kind) in BUILT_IN_KINDS else f"{self.kind.lower()}.{group}"

    def placed(self, changes: Changes) -> Changes | None:
        """The changes of a pod's constraints as changes of the object's; None if they cannot be written there."""
        if self.path is None or any(each.index not in self.places for each in changes):
            return None
        return tuple(replace(each, index=self.places[each.index]) for each in changes)


def object_title(kind: str, namespace: str, name: str) -> str:
    """An object's name in messages: ``Deployment shop/web``."""
    return f"{kind} {namespace}/{name}"


def target(pod: Pod, index: ReadOnlyIndex) -> EditTarget:
    """The object to edit to change the next pod: the topmost controller, or the pod itself if it has none."""
    chain, namespace = controllers(pod, index), pod.meta.namespace
    if not chain:
        note = "the constraints of a Pod cannot be changed: delete it, and create it anew with the change"
        return EditTarget(api_version="v1", kind="Pod", namespace=namespace, name=pod.meta.name, note=note)
    top = chain[-1]
    kind = group_kind(top.api_version, top.kind)
    path = _path_of(kind)
    note = _note(kind, pod)
    if kind == JOB:
        path = None
    elif path is None and len(chain) > 1:
        below = chain[-2]
        note = f"it makes {below.kind} {below.name}: where it has the constraints is not known here"
    elif path is None:
        note = "where it has the constraints is not known here"
    places = _places(pod, top, index)
    # Injected, or added by another webhook: a change of the template would not take them away.
    if path is not None and not places:
        path, note = None, "its template has no such constraints: something else puts them into the pods"
    return EditTarget(
        api_version=top.api_version,
        kind=top.kind,
        namespace=namespace,
        name=top.name,
        path=path,
        note=note,
        places=places,
    )


def _path_of(kind: GroupKind) -> str | None:
    sites = KINDS[kind].layout.sites if kind in TEMPLATED else ()
    return sites[0].prefix if len(sites) == 1 and "*" not in sites[0].template else None


def _note(kind: GroupKind, pod: Pod) -> str:
    delete = f"kubectl delete pod {quote(pod.meta.name)} -n {quote(pod.meta.namespace)}"
    if kind == JOB:
        return "the template of a Job cannot be changed: delete it, and create it anew with the change"
    if kind == CRON_JOB:
        return "this changes its next Job; the one that waits stays as it is"
    if not pod.meta.uid:
        return ""
    keeps = traits(kind).keeps_pods
    if keeps:
        return f"then delete the pod, for another to be made: {delete}"
    return f"if the pod stays as it is, delete it, for another to be made: {delete}" if keeps is None else ""


def _places(pod: Pod, top: OwnerReference, index: ReadOnlyIndex) -> dict[int, int]:
    """The index of each of the pod's constraints in the template, found by key and whenUnsatisfiable."""
    own = pod.pod_spec.constraints
    owner = index.owners.get(top.api_version, top.kind, pod.meta.namespace, top.name)
    if owner is None or not owner.templates:
        return {place: place for place in range(len(own))}
    by_identity = {each.identity: place for place, each in enumerate(owner.templates[0].constraints)}
    return {place: by_identity[each.identity] for place, each in enumerate(own) if each.identity in by_identity}


def patch(fix: PodFix, where: EditTarget, pod: Pod) -> list[dict[str, object]] | None:
    """The fix as a JSON patch (RFC 6902) of the object; None if it cannot be expressed.

    It tests the keys of the constraints first, so that it fails on a changed template.
    """
    changes = where.placed(fix.changes)
    if changes is None:
        return None
    root = f"/{(where.path or '').replace('.', '/')}spec/topologySpreadConstraints"
    keys = {each.index: pod.pod_spec.constraints[each.index].topology_key for each in fix.changes}
    operations = [_operation("test", f"{root}/{where.places[index]}/topologyKey", key) for index, key in keys.items()]
    for each in changes:
        if each.field:
            verb = "remove" if each.value is None else "add"
            operations.append(_operation(verb, f"{root}/{each.index}/{each.field}", each.value))
    # From the last to the first: a removal moves those behind it.
    removed = sorted((each.index for each in changes if not each.field), reverse=True)
    return operations + [_operation("remove", f"{root}/{index}") for index in removed]


def _operation(verb: str, path: str, value: object = None) -> dict[str, object]:
    made: dict[str, object] = {"op": verb, "path": path}
    return made if verb == "remove" else made | {"value": msgspec.to_builtins(value)}


def command(operations: list[dict[str, object]], where: EditTarget, options: str = "") -> str:
    """A ``kubectl patch`` command, quoted for a shell; ``options`` select the cluster as the command line did."""
    text = msgspec.json.encode(operations).decode()
    named = f"{quote(where.resource)} {quote(where.name)} -n {quote(where.namespace)}"
    return f"kubectl patch {named}{options} --type=json -p {quote(text)}"
