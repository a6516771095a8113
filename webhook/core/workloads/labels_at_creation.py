"""Labels of new pods from their controllers, with placeholders for unknown values.

Source: Kubernetes deployment/util, controller/history, statefulset/stateful_set_utils.go, job/job_controller.go.
"""

from collections.abc import Mapping
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
)
from webhook.core.workloads.kinds import CRON_JOB, DAEMON_SET, JOB, REVISIONED, STATEFUL_SET
from webhook.core.workloads.workload import Workload

# The prefix of a placeholder for an unknown hash, uid or name.
NOT_YET_KNOWN = "not-yet-known"


def placeholder(workload: Workload, use: str) -> str:
    """Return a placeholder for a value set later by the workload's controller.

    The placeholder differs for each workload and each ``use`` (``revision``, ``uid``). No running pod has this
    placeholder in a label.
    """
    meta = workload.meta
    text = "/".join((use, *workload.group_kind, meta.namespace, meta.name, meta.generate_name, meta.uid))
    return f"{NOT_YET_KNOWN}-{crc32(text.encode()):08x}"


def is_placeholder(value: str) -> bool:
    return NOT_YET_KNOWN in value


def labels_at_creation(workload: Workload, template: PodTemplate) -> dict[str, str]:
    """Return the labels of a template's new pods. An unknown value is a `placeholder`.

    Labels from controllers of custom resources are unknown, except for Argo Rollouts.

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
    """Return the workload's name, or a placeholder."""
    return workload.meta.name or placeholder(workload, "name")


def job_of(workload: Workload) -> tuple[str, str]:
    """Return name and uid of a Job, or of a CronJob's next Job.

    Source: cronjob/utils.go ``getJobFromTemplate2``.
    """
    if workload.group_kind == CRON_JOB:
        return f"{name_of(workload)}-{NOT_YET_KNOWN}", placeholder(workload, "job")
    return name_of(workload), workload.meta.uid or placeholder(workload, "uid")


_MAX_ORDINALS = 64  # The most ordinals to compare with a selector. A mismatch shows among the first.


def known_label_values(workload: Workload, key: str) -> tuple[str, ...] | None:
    """Return the possible values of a label set by the pod's name or ordinal. None if unknown.

    Source: statefulset/stateful_set_utils.go ``updateIdentity``; batch/job/strategy.go ``generateSelector``.
    """
    name = workload.meta.name
    if name and workload.group_kind == STATEFUL_SET and key in {POD_NAME, POD_INDEX}:
        ordinals = workload.ordinals(min(max(1, workload.replicas or 1), _MAX_ORDINALS))
        return tuple(ordinal_labels(f"{name}-{ordinal}", ordinal)[key] for ordinal in ordinals)
    if name and workload.group_kind == JOB and key in {JOB_NAME, OLD_JOB_NAME} and not workload.manual_selector:
        return (name,)
    return None


def ordinal_labels(name: str, ordinal: int) -> Mapping[str, str]:
    """Return the labels of a StatefulSet's pod. Source: statefulset/stateful_set_utils.go ``updateIdentity``."""
    return {POD_NAME: name, POD_INDEX: str(ordinal)}
