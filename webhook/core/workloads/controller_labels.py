"""Labels that a pod gets after its template was written: by its controller, at binding, or by other webhooks.

A rule must not call a selector wrong for asking for one of them.

Source: each project's own code; Kubernetes: deployment/util, controller/history, statefulset/stateful_set_utils.go,
job/job_controller.go, the PodTopologyLabels admission plugin.
"""

from collections.abc import Mapping
from functools import cache

from webhook.core.api.types import ObjectMeta, PodTemplate
from webhook.core.api.well_known import (
    CONTROLLER_REVISION_HASH,
    CONTROLLER_UID,
    JOB_COMPLETION_INDEX,
    JOB_NAME,
    OLD_CONTROLLER_UID,
    OLD_JOB_NAME,
    POD_INDEX,
    POD_NAME,
    POD_TEMPLATE_GENERATION,
    REGION,
    ZONE,
)
from webhook.core.workloads.kinds import (
    BUILT_IN_KINDS,
    CRON_JOB,
    DAEMON_SET,
    GROUP_LABELS,
    JOB,
    KINDS,
    REVISIONED,
    STATEFUL_SET,
    GroupKind,
    traits,
)
from webhook.core.workloads.workload import Workload

# By the meshes' injectors, and at binding; on pods of every kind.
_INJECTED = ("service.istio.io/", "security.istio.io/", "topology.istio.io/", "linkerd.io/")
_BOUND = (ZONE, REGION)
_ANY = (*_BOUND, *_INJECTED)

ADDED_KEYS = frozenset(
    key for keys in (_ANY, *(row.added or () for row in KINDS.values())) for key in keys if not key.endswith("/")
)
"""Labels that controllers add, each by its whole name."""


def may_be_added(workload: Workload, key: str, *, in_template: bool) -> bool:
    """Whether a pod of this workload may carry the label although its template does not, or with another value.

    A kind that only the configuration knows may add any label, but hardly changes one that the template has.
    """
    if _among(key, _ANY) or key in workload.late_labels:
        return True
    added = _added_to(workload.group_kind)
    if added is None:
        return not in_template and not workload.built_in
    return _among(key, added)


def may_be_added_to(kind: GroupKind, key: str) -> bool:
    """Whether a pod of another workload of the cluster may carry a label that its template does not have."""
    if _among(key, _ANY):
        return True
    added = _added_to(kind)
    return kind not in BUILT_IN_KINDS if added is None else _among(key, added)


def _added_to(kind: GroupKind) -> tuple[str, ...] | None:
    added = traits(kind).added
    return GROUP_LABELS.get(kind[0]) if added is None else added


def may_be_created_with(workload: Workload, key: str) -> bool:
    """Whether nobody knows if the pods have the label when they are created.

    Of built-in kinds it is known what their controllers add: see `labels_given`.
    """
    if workload.built_in:
        return _among(key, _INJECTED)
    return not _among(key, _BOUND) and may_be_added(workload, key, in_template=False)


def _among(key: str, names: tuple[str, ...]) -> bool:
    return key in names or key.startswith(_prefixes(names))


@cache  # one for each kind of workload
def _prefixes(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if name.endswith("/"))


# What stands for a hash or uid that the controller has not given yet: no pod that runs has it.
NOT_YET_KNOWN = "not-yet-known"


def labels_given(workload: Workload, template: PodTemplate) -> dict[str, str]:
    """The labels that every pod of a template is created with; `NOT_YET_KNOWN` where the value is not known.

    Shape: what a controller of a custom resource adds is not known, but for Argo Rollouts.
    Source: pkg/controller: deployment/sync.go, statefulset/stateful_set_utils.go, daemon/util/daemonset_util.go,
    job/job_controller.go; pkg/registry/batch/job strategy.go ``generateSelector``.
    """
    kind, name = workload.group_kind, workload.meta.name or NOT_YET_KNOWN
    if kind in REVISIONED:
        return {**template.labels, REVISIONED[kind]: NOT_YET_KNOWN}
    if kind == STATEFUL_SET:
        first, revision = workload.first_ordinal, {CONTROLLER_REVISION_HASH: NOT_YET_KNOWN}
        return {**template.labels, **ordinal_labels(f"{name}-{first}", first), **revision}
    if kind == DAEMON_SET:
        return {**template.labels, CONTROLLER_REVISION_HASH: NOT_YET_KNOWN, POD_TEMPLATE_GENERATION: NOT_YET_KNOWN}
    if kind not in {JOB, CRON_JOB}:
        return dict(template.labels)
    index = {JOB_COMPLETION_INDEX: "0"} if workload.indexed else {}
    job = workload.meta if kind == JOB else ObjectMeta()
    generated = {} if workload.manual_selector else _job_labels(job.name or NOT_YET_KNOWN, job.uid or NOT_YET_KNOWN)
    return {**generated, **template.labels, **index}


def ordinal_labels(name: str, ordinal: int) -> Mapping[str, str]:
    """The labels that tell the pods of a StatefulSet apart.

    Source: statefulset/stateful_set_utils.go ``updateIdentity``.
    """
    return {POD_NAME: name, POD_INDEX: str(ordinal)}


def _job_labels(name: str, uid: str) -> Mapping[str, str]:
    """Source: batch/job/strategy.go ``generateSelector``."""
    return {JOB_NAME: name, CONTROLLER_UID: uid, OLD_JOB_NAME: name, OLD_CONTROLLER_UID: uid}
