"""The autoscalers in the input, which say how many replicas a workload may have."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import structs

from webhook.core.api.types import ObjectMeta
from webhook.core.decoders import converted
from webhook.core.index.objects import Autoscaler, AutoscalerSpec, ScaleTarget
from webhook.core.workloads.kinds import DEPLOYMENT, group_kind, native_version
from webhook.manifests.reading.files import File
from webhook.manifests.reading.manifest import Manifest, read_manifests

Json = Any

# Files without any of these words are not parsed here.
_WORDS = (b"HorizontalPodAutoscaler", b"ScaledObject")
# KEDA makes a HorizontalPodAutoscaler of it. Source: keda.sh/v1alpha1 ScaledObjectSpec, defaultHPAMaxReplicas.
_SCALED_OBJECT = ("keda.sh", "ScaledObject")
_KEDA_DEFAULT_MAX_REPLICAS = 100


def autoscalers(files: Iterable[File], namespace: str) -> Iterator[Autoscaler]:
    """Every autoscaler of the files; ``namespace`` is for those that name none. Unreadable objects are left out."""
    for file in files:
        if any(word in file.data for word in _WORDS):
            for found in read_manifests(file.name, file.data, duplicates=False, having=_WORDS):
                if isinstance(found, Manifest) and (scaler := _autoscaler(found)) is not None:
                    meta = ObjectMeta(name=found.name, namespace=found.namespace or namespace)
                    yield structs.replace(scaler, metadata=meta)


def _autoscaler(manifest: Manifest) -> Autoscaler | None:
    kind = group_kind(manifest.api_version, manifest.kind)
    if kind not in {("autoscaling", "HorizontalPodAutoscaler"), _SCALED_OBJECT}:
        return None
    try:
        value: Json = msgspec.json.decode(manifest.value) if isinstance(manifest.value, bytes) else manifest.value
        spec = value.get("spec") or {}
        return Autoscaler(spec=_of_keda(spec)) if kind == _SCALED_OBJECT else converted(value, Autoscaler)
    except (msgspec.DecodeError, AttributeError, TypeError):
        return None


def _of_keda(spec: Mapping[str, Json]) -> AutoscalerSpec:
    target = {"apiVersion": native_version(DEPLOYMENT), "kind": DEPLOYMENT[1], **(spec.get("scaleTargetRef") or {})}
    return AutoscalerSpec(
        scale_target_ref=converted(target, ScaleTarget),
        max_replicas=converted(spec.get("maxReplicaCount", _KEDA_DEFAULT_MAX_REPLICAS), int),
    )
