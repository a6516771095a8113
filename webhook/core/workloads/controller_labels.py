"""Labels that a pod gets after its template was written: by its controller, at binding, or by other webhooks.

A rule must not call a selector wrong for asking for one of them.

Source: each project's own code; Kubernetes: deployment/util, controller/history, statefulset/stateful_set_utils.go,
job/job_controller.go, the PodTopologyLabels admission plugin.
"""

from collections.abc import Mapping
from functools import cache
from zlib import crc32

from webhook.core.api.types import PodTemplate
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

    Of built-in kinds it is known what their controllers add: see `labels_at_creation`.
    """
    if workload.built_in:
        return _among(key, _INJECTED)
    return not _among(key, _BOUND) and may_be_added(workload, key, in_template=False)


def _among(key: str, names: tuple[str, ...]) -> bool:
    return key in names or key.startswith(_prefixes(names))


@cache  # one for each kind of workload
def _prefixes(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if name.endswith("/"))


# How a made-up value begins, in place of a hash, uid or name that a controller has not given yet.
NOT_YET_KNOWN = "not-yet-known"


def placeholder(workload: Workload, what: str) -> str:
    """A value in place of one that the workload's controller has not given yet.

    Shape: it differs between workloads and between uses (``what``), and no pod that runs has it.
    """
    meta = workload.meta
    text = "/".join((what, *workload.group_kind, meta.namespace, meta.name, meta.generate_name, meta.uid))
    return f"{NOT_YET_KNOWN}-{crc32(text.encode()):08x}"


def is_placeholder(value: str) -> bool:
    """Whether a part of the value is made up."""
    return NOT_YET_KNOWN in value


def labels_at_creation(workload: Workload, template: PodTemplate) -> dict[str, str]:
    """The labels that every pod of a template is created with; `placeholder` where the value is not known.

    Shape: what a controller of a custom resource adds is not known, but for Argo Rollouts.
    Source: pkg/controller: deployment/sync.go, statefulset/stateful_set_utils.go, daemon/util/daemonset_util.go,
    job/job_controller.go; pkg/registry/batch/job strategy.go ``generateSelector``.
    """
    kind, name, revision = workload.group_kind, name_of(workload), placeholder(workload, "revision")
    if kind in REVISIONED:
        return {**template.labels, REVISIONED[kind]: revision}
    if kind == STATEFUL_SET:
        first = workload.first_ordinal
        return {**template.labels, **ordinal_labels(f"{name}-{first}", first), CONTROLLER_REVISION_HASH: revision}
    if kind == DAEMON_SET:
        generation = placeholder(workload, "generation")
        return {**template.labels, CONTROLLER_REVISION_HASH: revision, POD_TEMPLATE_GENERATION: generation}
    if kind not in {JOB, CRON_JOB}:
        return dict(template.labels)
    index = {JOB_COMPLETION_INDEX: "0"} if workload.indexed else {}
    job, uid = job_of(workload)
    generated = {JOB_NAME: job, CONTROLLER_UID: uid, OLD_JOB_NAME: job, OLD_CONTROLLER_UID: uid}
    return {**({} if workload.manual_selector else generated), **template.labels, **index}


def name_of(workload: Workload) -> str:
    """The name that the workload has or will get."""
    return workload.meta.name or placeholder(workload, "name")


def job_of(workload: Workload) -> tuple[str, str]:
    """The name and uid of a Job, or of the next Job of a CronJob.

    Source: cronjob/utils.go ``getJobFromTemplate2``.
    """
    if workload.group_kind == CRON_JOB:
        return f"{name_of(workload)}-{NOT_YET_KNOWN}", placeholder(workload, "job")
    return name_of(workload), workload.meta.uid or placeholder(workload, "uid")


_MAX_ORDINALS = 64  # that are compared with a selector: one that differs is found among so many


def known_label_values(workload: Workload, key: str) -> tuple[str, ...] | None:
    """The values of a label that the controller gives the pods by name or ordinal; None where they are not known.

    Source: statefulset/stateful_set_utils.go ``updateIdentity``; batch/job/strategy.go ``generateSelector``.
    """
    name = workload.meta.name
    if name and workload.group_kind == STATEFUL_SET and key in {POD_NAME, POD_INDEX}:
        first = workload.first_ordinal
        ordinals = range(first, first + min(max(1, workload.replicas or 1), _MAX_ORDINALS))
        return tuple(ordinal_labels(f"{name}-{ordinal}", ordinal)[key] for ordinal in ordinals)
    if name and workload.group_kind == JOB and key in {JOB_NAME, OLD_JOB_NAME} and not workload.manual_selector:
        return (name,)
    return None


def ordinal_labels(name: str, ordinal: int) -> Mapping[str, str]:
    """The labels that tell the pods of a StatefulSet apart.

    Source: statefulset/stateful_set_utils.go ``updateIdentity``.
    """
    return {POD_NAME: name, POD_INDEX: str(ordinal)}
