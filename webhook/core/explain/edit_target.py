"""Find the object to edit for a pod's fix, and make its JSON patch.

A pod's constraints are immutable. Its controller creates the next pod from the template.
"""

from collections.abc import Mapping, Sequence
from shlex import quote

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.types import OwnerReference, Pod
from webhook.core.changes.candidates import PodFix
from webhook.core.changes.change import Changes
from webhook.core.index.owners import controllers
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.text import object_title
from webhook.core.workloads.kinds import BUILT_IN_KINDS, CRON_JOB, JOB, KINDS, TEMPLATED, GroupKind, group_kind, traits


class EditTarget(Struct, frozen=True, kw_only=True):
    """The object to edit for a fix, and where its pod spec is.

    Attributes:
        path: The path of the object's field that contains the pod's ``spec``. None if unknown or immutable.
        note: A sentence about the object, without a full stop.
        places: Maps the index of each constraint in the pod to its index in the object's template.
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
        """The object's name in messages."""
        return object_title(self.kind, self.namespace, self.name)

    @property
    def resource(self) -> str:
        """The object's kind as a kubectl argument: ``deployment``, ``rollout.argoproj.io``."""
        group, kind = group_kind(self.api_version, self.kind)
        return self.kind.lower() if (group, kind) in BUILT_IN_KINDS else f"{self.kind.lower()}.{group}"

    def placed(self, changes: Changes) -> Changes | None:
        """Convert changes of the pod's constraints into changes of the edited object.

        None if the edited object lacks one of the constraints, or if its constraints field is unknown or immutable.
        """
        if self.path is None or any(change.index not in self.places for change in changes):
            return None
        return tuple(replace(change, index=self.places[change.index]) for change in changes)


def edit_target(pod: Pod, index: ReadOnlyIndex) -> EditTarget:
    """Find the object to edit: the pod's topmost controller. A pod without a controller is itself the object."""
    chain, namespace = controllers(pod, index), pod.meta.namespace
    if not chain:
        note = "the constraints of a Pod are immutable: delete it, then create it with the change"
        return EditTarget(api_version="v1", kind="Pod", namespace=namespace, name=pod.meta.name, note=note)
    top = chain[-1]
    kind = group_kind(top.api_version, top.kind)
    path = _path_of(kind)
    note = _note(kind, pod)
    if kind == JOB:
        path = None
    elif path is None and len(chain) > 1:
        below = chain[-2]
        created = f"{top.kind} creates {below.kind} {below.name}"
        note = f"{created}: evenspread does not know the constraints field of {top.kind}"
    elif path is None:
        note = f"evenspread does not know the constraints field of {top.kind}"
    places = _places(pod, top, index)
    # The constraints were injected. A change of the template would not remove them.
    if path is not None and not places:
        path, note = None, "its template lacks the constraints: another program adds them to the pods"
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
        return "the template of a Job is immutable: delete the Job, then create it with the change"
    if kind == CRON_JOB:
        return "the change applies to the next Job, not to the waiting Job"
    if not pod.meta.uid:
        return ""
    keeps = traits(kind).keeps_pods
    another = f"so that its controller creates another: {delete}"
    if keeps:
        return f"then delete the pod, {another}"
    return f"if the pod does not change, delete it, {another}" if keeps is None else ""


def _places(pod: Pod, top: OwnerReference, index: ReadOnlyIndex) -> dict[int, int]:
    own = pod.pod_spec.constraints
    owner = index.owners.get(top.api_version, top.kind, pod.meta.namespace, top.name)
    if owner is None or not owner.templates:
        return {place: place for place in range(len(own))}
    by_identity = {constraint.identity: place for place, constraint in enumerate(owner.templates[0].constraints)}
    return {place: by_identity[each.identity] for place, each in enumerate(own) if each.identity in by_identity}


def json_patch(fix: PodFix, where: EditTarget, pod: Pod) -> list[dict[str, object]] | None:
    """Return the fix as a JSON patch (RFC 6902). None if it cannot be expressed.

    The patch tests the keys of the constraints first, so it fails on a changed template.
    """
    changes = where.placed(fix.changes)
    if changes is None:
        return None
    root = f"/{(where.path or '').replace('.', '/')}spec/topologySpreadConstraints"
    keys = {change.index: pod.pod_spec.constraints[change.index].topology_key for change in fix.changes}
    operations = [_operation("test", f"{root}/{where.places[index]}/topologyKey", key) for index, key in keys.items()]
    for change in changes:
        if change.field:
            verb = "remove" if change.value is None else "add"
            operations.append(_operation(verb, f"{root}/{change.index}/{change.field}", change.value))
    # Remove the last first, so that earlier indexes stay valid.
    removed = sorted((change.index for change in changes if not change.field), reverse=True)
    return operations + [_operation("remove", f"{root}/{index}") for index in removed]


def _operation(verb: str, path: str, value: object = None) -> dict[str, object]:
    made: dict[str, object] = {"op": verb, "path": path}
    return made if verb == "remove" else made | {"value": msgspec.to_builtins(value)}


def patch_command(operations: Sequence[Mapping[str, object]], where: EditTarget, options: str = "") -> str:
    """Return a ``kubectl patch`` command, quoted for a shell. ``options`` select the cluster."""
    text = msgspec.json.encode(operations).decode()
    named = f"{quote(where.resource)} {quote(where.name)} -n {quote(where.namespace)}"
    return f"kubectl patch {named}{options} --type=json -p {quote(text)}"
