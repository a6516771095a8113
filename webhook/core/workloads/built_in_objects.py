"""Built-in workload kinds, with the fields read by evenspread.

A class without a docstring is the API's type with these fields.

Source: k8s.io/api apps/v1/types.go, batch/v1/types.go, core/v1/types.go.
"""

from collections.abc import Mapping

from webhook.core.api.types import ApiType, Int32, LabelSelector, ObjectMeta, PodTemplate, ResourceRequirements

IntOrText = int | str
"""A count or a percentage, as in maxSurge."""


class RollingUpdate(ApiType, frozen=True):
    max_surge: IntOrText | None = None
    max_unavailable: IntOrText | None = None
    partition: IntOrText | None = None


class StrategyFields(ApiType, frozen=True):
    type: str | None = None
    rolling_update: RollingUpdate | None = None


class _JobScheduling(ApiType, frozen=True):
    """The PodGroup scheduling of a Job. Only its presence matters."""


class JobSpec(ApiType, frozen=True):
    parallelism: Int32 | None = None
    completions: Int32 | None = None
    selector: LabelSelector | None = None
    template: PodTemplate | None = None
    completion_mode: str | None = None
    manual_selector: bool | None = None
    scheduling: _JobScheduling | None = None


class _ClaimMeta(ApiType, frozen=True):
    name: str = ""


class _ClaimTemplateSpec(ApiType, frozen=True):
    storage_class_name: str | None = None
    resources: ResourceRequirements | None = None


class _ClaimTemplate(ApiType, frozen=True):
    metadata: _ClaimMeta | None = None
    spec: _ClaimTemplateSpec | None = None


class _StatefulSetOrdinals(ApiType, frozen=True):
    start: Int32 | None = None


class _JobTemplate(ApiType, frozen=True):
    spec: JobSpec | None = None


class Spec(JobSpec, frozen=True):
    """The spec fields of all built-in kinds. A field means the same in every kind."""

    replicas: Int32 | None = None
    strategy: StrategyFields | None = None
    update_strategy: StrategyFields | None = None
    job_template: _JobTemplate | None = None
    suspend: bool | None = None
    paused: bool | None = None
    volume_claim_templates: tuple[_ClaimTemplate, ...] | None = None
    ordinals: _StatefulSetOrdinals | None = None
    pod_management_policy: str | None = None


class Object(ApiType, frozen=True):
    metadata: ObjectMeta | None = None
    spec: Spec | None = None


class _JobCondition(ApiType, frozen=True):
    type: str = ""
    status: str = ""


class JobStatus(ApiType, frozen=True):
    succeeded: Int32 | None = None
    conditions: tuple[_JobCondition, ...] | None = None

    @property
    def has_ended(self) -> bool:
        """Whether the controller creates no more pods. Source: job/utils.go ``IsJobFinished``."""
        return any(one.type in ("Complete", "Failed") and one.status == "True" for one in self.conditions or ())


class Job(Object, frozen=True):
    status: JobStatus | None = None


class ReplicationControllerSpec(ApiType, frozen=True):
    replicas: Int32 | None = None
    selector: Mapping[str, str] | None = None  # this kind alone has a plain map as selector
    template: PodTemplate | None = None


class ReplicationController(ApiType, frozen=True):
    metadata: ObjectMeta | None = None
    spec: ReplicationControllerSpec | None = None
