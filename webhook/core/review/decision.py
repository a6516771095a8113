"""The input and the results of a review."""

from collections.abc import Mapping

from msgspec import Raw, Struct

from webhook.core.api.types import TypeMeta
from webhook.core.apiserver.decoding import DecodeError
from webhook.core.defaulting.fallback import Fallback
from webhook.core.defaulting.injection import Injection
from webhook.core.index.owners import Awaited
from webhook.core.review.judging import JudgedFinding
from webhook.core.rules.frame.rule import NotEvaluated
from webhook.core.rules.placement.pod_fits import Feasibility
from webhook.core.workloads.kinds import GroupKind
from webhook.core.workloads.workload import Workload


class AdmissionRequest(Struct, frozen=True, kw_only=True):
    """An admission request with only the fields that affect decisions.

    Attributes:
        resource: The plural name of the written resource. For a subresource, ``kind`` is another kind.
        resource_group: The API group of ``resource``.
    """

    uid: str
    operation: str
    group: str
    version: str
    kind: str
    resource_group: str = ""
    resource: str = ""
    sub_resource: str = ""
    namespace: str = ""
    name: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    dry_run: bool = False
    object: bytes | Raw | None = None
    old_object: bytes | Raw | None = None

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_kind(self) -> GroupKind:
        return self.group, self.kind

    @property
    def is_write(self) -> bool:
        """Whether the request creates or updates an object."""
        return self.operation in {"CREATE", "UPDATE"}

    @property
    def stated(self) -> TypeMeta:
        return TypeMeta(api_version=self.api_version, kind=self.kind)

    @property
    def logged(self) -> Mapping[str, str | bool]:
        """The fields for logs. The objects are left out, because pods can contain secrets."""
        return {
            "uid": self.uid,
            "operation": self.operation,
            "kind": self.kind,
            "subResource": self.sub_resource,
            "namespace": self.namespace,
            "name": self.name,
            "user": self.user,
            "dryRun": self.dry_run,
        }


class Decision(Struct, frozen=True, kw_only=True):
    """The webhook's decision about an admission request.

    Attributes:
        reason: Why the object was not examined.
        feasibility: The dry run of a pod.
        injection: The defaults of a pod. In mode ``observe``, they are only recorded and ``patch`` is empty.
        fallback: The softened constraints of a pod, also recorded in mode ``observe``.
        delivery: ``delivered``, or why the workload did not get its group's plan.
        awaits: An object to wait for. If set, the decision must not be sent.
        costly: Whether the object takes too long for the event loop, so there is no decision yet.
        fault: The exception of the review.
    """

    allowed: bool = True
    reason: str = ""
    message: str = ""
    findings: tuple[JudgedFinding, ...] = ()
    not_evaluated: tuple[NotEvaluated, ...] = ()
    warnings: tuple[str, ...] = ()
    patch: tuple[Mapping[str, object], ...] = ()
    audit: Mapping[str, str] = {}
    feasibility: Feasibility | None = None
    injection: Injection | None = None
    fallback: Fallback | None = None
    delivery: str = ""
    awaits: Awaited | None = None
    costly: bool = False
    fault: Exception | None = None


class Examination(Struct, frozen=True, kw_only=True):
    """The full result for one object, for the command line and for reports.

    Attributes:
        workload: None if the kind has no pod template, or if there is a ``decode_error``.
        decode_error: Why the object cannot be decoded. ``findings`` then has a `wrong-type`.
        warnings: kube-apiserver's own warnings. Warnings about unknown and repeated fields come first.
    """

    workload: Workload | None = None
    findings: tuple[JudgedFinding, ...] = ()
    not_evaluated: tuple[NotEvaluated, ...] = ()
    decode_error: DecodeError | None = None
    warnings: tuple[str, ...] = ()
