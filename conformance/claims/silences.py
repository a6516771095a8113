"""Where pods have no place because of spread and no rule says so: the reasons, and which of them no page allows."""

from conformance.claims.controller import hard_of, own_names
from conformance.claims.readings import softened
from conformance.claims.worlds import HOSTNAME, ZONE

# They say that pods have no place.
CEILINGS = ("tainted-nodes-counted", "zone-host-ceiling", "spread-conflicts-affinity", "min-domains-unreachable")
_KEYS = ("topology-key-unknown", "topology-key-partial", "topology-key-typo")
EXPLAINED = frozenset(
    (*CEILINGS, *_KEYS, "selector-not-self", "selector-too-wide", "replicas-do-not-fit", "replicas-can-get-stuck", "pods-refused")
)

SPOKEN = "a rule speaks"
SOME_ORDERS = "only some orders leave pods over"


def silence(inspected):
    """The reason why no rule speaks of pods without a place because of spread; None where there is nothing to say."""
    manifest = inspected.manifest
    if not hard_of(manifest):
        return None
    placed = inspected.place()
    if placed["fewest"] == placed["queued"]:
        return None
    free = inspected.place(manifest=softened(manifest))
    if free["fewest"] < free["queued"]:
        return None  # capacity, or something else that is not spread
    spoken = {finding.rule for finding in inspected.findings}
    if spoken & EXPLAINED:
        return SPOKEN
    if placed["most"] == placed["queued"]:
        return SOME_ORDERS
    return next(reason for reason, is_so in REASONS if is_so(inspected))


def spec_of(inspected):
    return (inspected.manifest["spec"].get("template") or {}).get("spec", inspected.manifest["spec"])


def has_foreign(inspected):
    return any(each["metadata"]["labels"].get("app") == "web" and each["metadata"]["name"].startswith("canary") for each in inspected.pods())


def has_own(inspected):
    return any(each["metadata"]["name"].startswith("web-") for each in inspected.pods())


def has_passing(inspected):
    taints = [each["key"] for node in inspected.nodes() for each in node["spec"].get("taints", ())]
    return any(each.startswith("node.kubernetes.io/") for each in taints)


REASONS = (
    ("kind that runs to completion, or on every node, or one pod", lambda it: it.manifest["kind"] in {"Job", "DaemonSet", "Pod"} or it.wanted == 1),
    ("StatefulSet with volumes", lambda it: bool(it.manifest["spec"].get("volumeClaimTemplates"))),
    ("inter-pod affinity", lambda it: bool({"podAffinity", "podAntiAffinity"} & (spec_of(it).get("affinity") or {}).keys())),
    ("pods of others are counted", has_foreign),
    ("pods of its own run already", has_own),
    ("cordoned or unready nodes", has_passing),
    ("two or more hard constraints", lambda it: len(hard_of(it.manifest)) > 1),
    ("minDomains", lambda it: any(each.get("minDomains", 1) > 1 for each in hard_of(it.manifest))),
    ("nodes without room hold the minimum", lambda it: any(each["status"]["allocatable"]["cpu"] in {"1", "2", "3"} for each in it.nodes())),
    ("other", lambda it: True),
)


def wrongly_silent(inspected):
    """The rule whose own case this is, by its page, although nothing is said; None where a page allows silence.

    Each of the pages claims what no order of placing exceeds, so that one order that places all pods allows silence.
    Of the rest only the plain cases: a workload that is replaced, not running yet, alone in its namespace, in a
    cluster with room whose nodes have every key and no taint that passes.
    """
    if inspected.silence in {None, SPOKEN, SOME_ORDERS}:
        return None
    manifest, spec = inspected.manifest, spec_of(inspected)
    if "schedulingGroup" in spec:
        return None
    plain = (
        manifest["kind"] in {"Deployment", "ReplicaSet", "Rollout"}
        and not own_names(inspected.world)
        and not inspected.pods()
        and not has_passing(inspected)
        and not {"podAffinity", "podAntiAffinity"} & (spec.get("affinity") or {}).keys()
        and all(each["status"]["allocatable"]["cpu"] == "16" for each in inspected.nodes())
    )
    hard = hard_of(manifest)
    labels = manifest["spec"]["template"]["metadata"]["labels"] if plain else {}
    keys = {each["topologyKey"] for each in hard}
    own = all(each["labelSelector"] == {"matchLabels": labels} and not each.get("matchLabelKeys") for each in hard)
    everywhere = all(keys <= each["metadata"]["labels"].keys() for each in inspected.nodes())
    if not (plain and own and everywhere):
        return None
    pinned = bool(spec.get("nodeSelector") or spec.get("affinity"))
    tainted = any(each["spec"].get("taints") for each in inspected.nodes())
    domains = any(each.get("minDomains", 1) > 1 for each in hard)
    if len(hard) == 1 and pinned + tainted + domains == 1:
        return "spread-conflicts-affinity" if pinned else "tainted-nodes-counted" if tainted else "min-domains-unreachable"
    if len(hard) == 2 and keys == {ZONE, HOSTNAME} and not (pinned or tainted or domains):
        return "zone-host-ceiling"
    return None
