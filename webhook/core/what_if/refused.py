"""kube-apiserver's errors for the next pod of an object. The scheduler never sees such a pod."""

from collections.abc import Mapping

from msgspec import Raw, Struct

from webhook.core.api.types import Pod, TypeMeta
from webhook.core.apiserver.decoding import DecodeError
from webhook.core.context import Context
from webhook.core.index.pod_admission import refused_by_admission
from webhook.core.pods_to_create.next_pod import NextPod
from webhook.core.rules.constraint.pods_refused import evaluate
from webhook.core.rules.frame.rule import Finding
from webhook.core.rules.frame.subject import Subject, placed_constraints
from webhook.core.text import one_line
from webhook.core.workloads.reading import read_exactly, read_workload
from webhook.core.workloads.refused_pods import refusals
from webhook.core.workloads.workload import Template, Workload


class Refused(Struct, frozen=True, kw_only=True):
    """An error of kube-apiserver about a pod.

    Attributes:
        path: The path of the error's cause in the object.
        fix: A fix. Empty if unknown.
    """

    title: str
    message: str
    path: str
    fix: str = ""


def refused(next_pod: NextPod) -> tuple[Refused, ...]:
    """kube-apiserver's errors for the next pod of a template. Empty if it accepts the pod."""
    workload, template, context = next_pod.source.workload, next_pod.source.template, next_pod.context
    posted = Pod(metadata=next_pod.sent.metadata, spec=next_pod.sent.spec)
    title, path = _title(workload, template), f"{template.path}spec"
    texts = refused_by_admission(posted, context.cluster, context.version)
    return (
        *_refused_as_written(workload, template, context),
        *(Refused(title=title, message=f"forbidden: {one_line(text)}", path=path) for text in texts),
    )


def _refused_as_written(workload: Workload, template: Template, context: Context) -> tuple[Refused, ...]:
    """Return kube-apiserver's errors for the next pod of a template.

    Errors that depend on objects of the cluster are not included.
    """
    errors = refusals(workload, template, context.version)
    if not errors:
        return ()
    subject = Subject(workload=workload, placed=placed_constraints(workload), context=context)
    fixes = {finding.path: finding.fix for finding in evaluate(subject) if isinstance(finding, Finding)}
    title = _title(workload, template)
    return tuple(
        Refused(title=title, message=refusal.error.text, path=refusal.path, fix=fixes.get(refusal.path, ""))
        for refusal in errors
    )


def _title(workload: Workload, template: Template) -> str:
    if workload.is_pod:
        return "this pod cannot be created"
    if len(workload.templates) > 1:
        return f"no pod of {one_line(template.path.rstrip('.'))} can be created"
    return "no pod of this workload can be created"


def refused_of(raw: bytes | Raw | Mapping[str, object], stated: TypeMeta, context: Context) -> tuple[Refused, ...]:
    """Return the errors for the next pod of each template of an object. Empty if the object cannot be decoded."""
    try:
        value, _ = read_exactly(raw, stated, context.version)
        workload = read_workload(value, context.policy.workloads, api_version=stated.api_version, kind=stated.kind)
    except DecodeError:
        return ()
    if workload is None:
        return ()
    return tuple(error for template in workload.templates for error in _refused_as_written(workload, template, context))
