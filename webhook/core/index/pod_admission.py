"""Apply kube-apiserver's admission to a pod.

The cluster's LimitRanges, PriorityClasses and RuntimeClasses are read from the index.
"""

from webhook.core.api.types import Pod
from webhook.core.api.version import KubernetesVersion
from webhook.core.apiserver.admission_plugins import AdmissionFacts, as_created, plugin_refusals
from webhook.core.apiserver.pod_defaults import with_decoding_defaults
from webhook.core.index.read_only import ReadOnlyIndex


def as_admitted(pod: Pod, index: ReadOnlyIndex, version: KubernetesVersion) -> Pod:
    """Return the pod after kube-apiserver's admission.

    The index provides the LimitRanges, PriorityClass and RuntimeClass. A pod that kube-apiserver would refuse gets the
    same changes. `refused_by_admission` returns the reasons for a refusal.
    """
    return as_created(pod, version, facts_for(pod, index))


def facts_for(pod: Pod, index: ReadOnlyIndex) -> AdmissionFacts:
    """The objects that kube-apiserver's admission plugins read for the pod."""
    spec = pod.pod_spec
    return index.namespaces.admission_facts(
        pod.meta.namespace, spec.priority_class_name or "", spec.runtime_class_name or ""
    )


def refused_by_admission(pod: Pod, index: ReadOnlyIndex, version: KubernetesVersion) -> tuple[str, ...]:
    """The reasons of kube-apiserver's admission plugins for refusing the pod. Empty if no known object refuses it."""
    decoded = with_decoding_defaults(pod, version)
    return plugin_refusals(decoded, facts_for(decoded, index), version)
