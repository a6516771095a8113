"""The pod that kube-apiserver makes of one that is posted, by what the cluster's LimitRanges and classes say."""

from webhook.core.api.types import Pod
from webhook.core.api.version import KubernetesVersion
from webhook.core.apiserver.admission_plugins import AdmissionFacts, as_created, plugin_refusals
from webhook.core.apiserver.pod_defaults import with_decoding_defaults
from webhook.core.index.read_only import ReadOnlyIndex


def as_admitted(pod: Pod, index: ReadOnlyIndex, version: KubernetesVersion) -> Pod:
    """The pod as the scheduler gets it after a create request, as far as admission is known (`facts_for`).

    Errors: none; what would be refused is left as it is.
    """
    return as_created(pod, version, facts_for(pod, index))


def facts_for(pod: Pod, index: ReadOnlyIndex) -> AdmissionFacts:
    """What kube-apiserver's admission plugins read for the pod."""
    spec = pod.pod_spec
    return index.namespaces.admission_facts(
        pod.meta.namespace, spec.priority_class_name or "", spec.runtime_class_name or ""
    )


def refused_by_admission(pod: Pod, index: ReadOnlyIndex, version: KubernetesVersion) -> tuple[str, ...]:
    """Why kube-apiserver's admission plugins refuse a pod that is posted; empty where they do not, as far as known."""
    decoded = with_decoding_defaults(pod, version)
    return plugin_refusals(decoded, facts_for(decoded, index), version)
