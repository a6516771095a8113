"""Compare recorded scheduling scenarios with evenspread's verdict.

A scenario is a cluster and a pod in JSON. evenspread's verdict has the same fields as the recorded verdict. With the
field ``raw``, the pod is as kube-scheduler receives it. Otherwise the pod is as a client submits it. Objects may lack
names, namespaces, containers and allocatable resources.
"""

from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from webhook.conformance.validate_cases import text_of
from webhook.core.api.types import Pod, TypeMeta
from webhook.core.api.version import RECORDED, KubernetesVersion
from webhook.core.apiserver.admission_plugins import as_created
from webhook.core.apiserver.decoding import DecodeError, decode
from webhook.core.decoders import decoder_of
from webhook.core.index import node_sets
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.pods import FINISHED
from webhook.core.index.readers import decode_object
from webhook.core.scheduler.args import ArgsError, decode_args
from webhook.core.scheduler.cycle import Cycle
from webhook.core.scheduler.plugins.default_selector import default_selector, pod_services
from webhook.core.scheduler.plugins.pod_topology_spread import DomainCounts
from webhook.core.scheduler.plugins.spread_constraints import SYSTEM_DEFAULTS, SpreadDefaults
from webhook.core.scheduler.plugins.status import Code, Status
from webhook.core.scheduler.problem import FILTERS, take
from webhook.core.scheduler.scoring.node_scores import best_nodes, node_scores, take_scoring
from webhook.core.scheduler.verdict import Verdict

_Json = dict[str, object]

# Kinds of the lists in a scenario.
_LISTS = {
    "nodes": TypeMeta(api_version="v1", kind="Node"),
    "namespaces": TypeMeta(api_version="v1", kind="Namespace"),
    "services": TypeMeta(api_version="v1", kind="Service"),
    "replicaSets": TypeMeta(api_version="apps/v1", kind="ReplicaSet"),
    "statefulSets": TypeMeta(api_version="apps/v1", kind="StatefulSet"),
    "replicationControllers": TypeMeta(api_version="v1", kind="ReplicationController"),
    "persistentVolumes": TypeMeta(api_version="v1", kind="PersistentVolume"),
    "persistentVolumeClaims": TypeMeta(api_version="v1", kind="PersistentVolumeClaim"),
    "storageClasses": TypeMeta(api_version="storage.k8s.io/v1", kind="StorageClass"),
    "csiNodes": TypeMeta(api_version="storage.k8s.io/v1", kind="CSINode"),
    "csiDrivers": TypeMeta(api_version="storage.k8s.io/v1", kind="CSIDriver"),
    "csiStorageCapacities": TypeMeta(api_version="storage.k8s.io/v1", kind="CSIStorageCapacity"),
    "volumeAttachments": TypeMeta(api_version="storage.k8s.io/v1", kind="VolumeAttachment"),
}
# Maps of text. Go reads null as empty text here, and as absent anywhere else.
_TEXT_MAPS = frozenset({"labels", "annotations", "matchLabels", "nodeSelector", "selector"})
_DEFAULT_SELECTOR = "DefaultSelector"
_SCORES = "Scores"
# These plugins score too. The scenarios have nothing for them to score: no node images, waiting claims or resource
# claims.
_NO_SCORES = ("ImageLocality", "VolumeBinding", "DynamicResources")
_POD = decoder_of(Pod)


class Scenario(Struct, frozen=True):
    """A cluster, a pod as kube-scheduler receives it, and the cluster's default constraints."""

    index: ClusterIndex
    pod: Pod
    defaults: SpreadDefaults


def read_scenario(case: Mapping[str, bytes], version: KubernetesVersion = RECORDED) -> Scenario:
    """Decode a recorded case.

    Raises:
        DecodeError: An object cannot be decoded.
        ArgsError: The case's podTopologySpreadArgs are invalid.
        msgspec.ValidationError: A field of the scenario itself has another type.
    """
    index = _index(case, version)
    pod = decode(case.get("pod", b"{}"), _POD, "v1.Pod")
    defaults = _defaults(case.get("podTopologySpreadArgs", b"null"), version)
    return Scenario(index, pod if case.get("raw") == b"true" else as_created(pod, version), defaults)


def decide_verdict(case: Mapping[str, bytes], version: KubernetesVersion = RECORDED) -> Mapping[str, object]:
    """Predict kube-scheduler's verdict about the pod on every node.

    Returns:
        The fields of a recorded verdict. ``feasible`` lists the nodes that pass all filters.

    Raises:
        msgspec.ValidationError: A field of ``case`` has a wrong type. Faulty API objects give an ``error`` field
            instead.
    """
    id_ = text_of(case.get("id"))
    try:
        scenario = read_scenario(case, version)
    except DecodeError as error:
        return {"id": id_, "error": error.text}
    except ArgsError as error:
        return {"id": id_, "error": f"podTopologySpreadArgs: {error}"}
    cycle = Cycle(take(scenario.index, scenario.pod, scenario.defaults))
    verdict, plugin = cycle.verdict(), text_of(case.get("plugin"))
    names = [*verdict.nodes.names_of(verdict.nodes.live)]
    return (
        {"id": id_, "preFilter": _status(verdict.pre_filter), "nodes": _statuses(verdict, names)}
        | _spread_alone(cycle, names)
        | {"scores": _scores(cycle, case.get("feasible"), verdict)}
        | {"fits": bool(verdict.feasible), "feasible": [*verdict.nodes.names_of(verdict.feasible)]}
        | {"message": verdict.sentence or None}
        | (_requested_part(plugin, cycle, verdict, scenario.index) if plugin else {})
    )


def _listed(raw: bytes | None) -> list[Raw]:
    return [] if raw in (None, b"null") else decoder_of(list[Raw]).decode(raw or b"[]")


def _spread_alone(cycle: Cycle, names: Iterable[str]) -> _Json:
    verdict = cycle.verdict_of("PodTopologySpread")
    return {
        "spreadPreFilter": _status(verdict.pre_filter),
        "spread": _statuses(verdict, names),
        "spreadState": [_state(domains) for domains in cycle.domains] or None,
    }


def _scores(cycle: Cycle, named: bytes | None, verdict: Verdict) -> _Json | None:
    feasible, nodes = verdict.feasible, verdict.nodes
    if named not in (None, b"null"):
        names = [text_of(bytes(name)) for name in _listed(named)]
        feasible = node_sets.from_slots([nodes.slots[name] for name in names if name in nodes.slots], nodes.size)
    scores = cycle.scores(feasible) if feasible else None
    return None if scores is None else dict(scores)


def _requested_part(plugin: str, cycle: Cycle, verdict: Verdict, index: ClusterIndex) -> _Json:
    """Return a recorded part of the verdict.

    ``plugin`` is the part: the result of a filter plugin alone, the selector of cluster defaults (`_DEFAULT_SELECTOR`),
    or the scores of all plugins (`_SCORES`).
    """
    pod, nodes = cycle.problem.pod, verdict.nodes
    names = [*nodes.names_of(nodes.live)]
    if plugin == _SCORES:
        return _node_scores(cycle, verdict.feasible, index)
    if plugin == _DEFAULT_SELECTOR:
        services = pod_services(pod.labels, pod.meta.namespace, index)
        return {
            "defaultSelector": default_selector(pod.meta, pod.meta.namespace, index).text,
            "podServices": [service.metadata.name for service in services if service.metadata] or None,
        }
    if plugin not in FILTERS:
        status = Status.of_error("no such filter plugin")
        return {"alone": {"plugin": plugin, "preFilter": _status(status), "nodes": {}}}
    verdict = cycle.verdict_of(plugin)
    return {"alone": {"plugin": plugin, "preFilter": _status(verdict.pre_filter), "nodes": _statuses(verdict, names)}}


def _node_scores(cycle: Cycle, feasible: int, index: ClusterIndex) -> _Json:
    """Return the weighted scores by plugin and the best nodes. Both are null without a feasible node."""
    scoring, nodes = take_scoring(index, cycle.problem), cycle.problem.nodes
    scores = node_scores(scoring, cycle, feasible) if scoring is not None and feasible else None
    if scoring is None or scores is None:
        return {"nodeScores": None, "best": None}
    by_plugin = {
        plugin: {nodes.names[slot]: scores.get(plugin, {}).get(slot, 0) for slot in node_sets.to_slots(feasible)}
        for plugin in (*scores, *_NO_SCORES)
    }
    return {"nodeScores": by_plugin, "best": sorted(nodes.names_of(best_nodes(scoring, cycle, feasible)))}


def _statuses(verdict: Verdict, names: Iterable[str]) -> _Json:
    return {name: _status(verdict.status(name)) for name in names}


def _status(status: Status) -> _Json:
    shown: _Json = {"code": status.code}
    if status.code not in (Code.SUCCESS, Code.SKIP) and status.plugin:
        shown["plugin"] = status.plugin
    if status.reasons:
        shown["reasons"] = list(status.reasons)
    return shown


def _state(domains: DomainCounts) -> _Json:
    constraint = domains.constraint
    return {
        "maxSkew": constraint.max_skew,
        "topologyKey": constraint.topology_key,
        "selector": constraint.selector.text,
        "minDomains": constraint.min_domains,
        "nodeAffinityPolicy": constraint.node_affinity_policy,
        "nodeTaintsPolicy": constraint.node_taints_policy,
        "counts": dict(domains.counts),
    }


def _defaults(raw: bytes, version: KubernetesVersion) -> SpreadDefaults:
    args = None if raw == b"null" else decode_args(raw, version=version)
    return SYSTEM_DEFAULTS if args is None or args.defaulting_type == "System" else SpreadDefaults(args.constraints)


def _index(case: Mapping[str, bytes], version: KubernetesVersion) -> ClusterIndex:
    index = ClusterIndex(version, scoring=True)
    for field, kind in _LISTS.items():
        for raw in _listed(case.get(field)):
            try:
                value = decode_object(raw, kind)
            except msgspec.ValidationError:
                value = decode_object(msgspec.json.encode(_nulls_as_go_reads(msgspec.json.decode(raw))), kind)
            if value is not None:
                index.apply("ADDED", value)
    _add_pods(index, _listed(case.get("pods")))
    return index


def _add_pods(index: ClusterIndex, raws: Iterable[Raw]) -> None:
    seen: set[tuple[str, str]] = set()
    number = 0
    for raw in raws:
        pod = decode(raw, _POD, "v1.Pod")
        meta, finished = pod.meta, pod.status is not None and pod.status.phase in FINISHED
        if pod.pod_spec.node_name and not finished:
            if not meta.uid:  # as the recorder, whose cache needs one
                meta = replace(meta, uid=f"{meta.namespace}/{meta.name}/{number}")
                pod = replace(pod, metadata=meta)
            number += 1
        # Unnamed pods and pods with the same name still count.
        fresh = bool(meta.name) and (meta.namespace, meta.name) not in seen
        key = meta.name if fresh else f"{meta.name}#{len(seen)}"
        seen.add((meta.namespace, key))
        index.apply_pod("ADDED", pod, key)


def _nulls_as_go_reads(value: object, field: str = "") -> object:
    """Drop nulls, or replace them by empty text in maps of text, as Go decodes them."""
    if isinstance(value, list):
        return [{} if item is None else _nulls_as_go_reads(item) for item in value]
    if not isinstance(value, dict):
        return value
    if field in _TEXT_MAPS and not any(isinstance(inner, dict | list) for inner in value.values()):
        return {key: "" if each is None else each for key, each in value.items()}
    return {key: _nulls_as_go_reads(each, key) for key, each in value.items() if each is not None}
