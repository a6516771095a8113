"""The webhook in mode inject, and what is asked of the pods that it has seen."""

import collections

from e2e.objects import HOST, ZONE, path
from e2e.served import certified, serving
from e2e.waiting import eventually

RECORD = "evenspread.io/injected"
CONSTRAINTS = [
    {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"},
    {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "ScheduleAnyway"},
]
QUIET = {"name": "quiet", "namespaceSelector": {"matchLabels": {"defaults": "none"}}, "defaultConstraints": []}
DEFAULTS = {"mode": "inject", "defaultConstraints": CONSTRAINTS, "overrides": [QUIET]}
REPLICAS = 6


def injecting(plane, folder, kubeconfig=None):
    """The webhook as it runs in a cluster, but for its certificate."""
    flags = ("--no-register", f"--kubeconfig={kubeconfig or plane.admin}", *certified(folder, plane.authority))
    return serving(folder, {"defaults": DEFAULTS}, *flags)


def create(plane, namespace, made):
    """The object, as the API server keeps it."""
    return plane.api.request("POST", path(made["kind"], namespace), made)


def pods(plane, namespace, phase="Running"):
    items = plane.api.request("GET", path("Pod", namespace))["items"]
    return [item for item in items if item["status"].get("phase") == phase or phase is None]


def running(plane, namespace, count=REPLICAS, *, seconds=30):
    """So many running pods, once there are."""
    return eventually(lambda: len(found := pods(plane, namespace)) == count and found, seconds, every=0.002 * count)


def constraints(made):
    return made["spec"].get("topologySpreadConstraints", [])


def records(found):
    """How many of the pods carry the record."""
    return sum(RECORD in made["metadata"].get("annotations", {}) for made in found)


def skew(found):
    """Over the three zones of the cluster."""
    zones = collections.Counter(made["spec"]["nodeName"].split("-")[1] for made in found)
    counts = [zones[zone] for zone in "abc"]
    return max(counts) - min(counts)


def spreading(labels, keys=()):
    """The constraints as the API server stores them: it merges matchLabelKeys into the selector."""
    rest = {key: value for key, value in labels.items() if key not in keys}
    merged = [{"key": key, "operator": "In", "values": [labels[key]]} for key in keys]
    selector = {"matchLabels": rest} | ({"matchExpressions": merged} if merged else {})
    more = {"labelSelector": selector} | ({"matchLabelKeys": list(keys)} if keys else {})
    return [each | more for each in CONSTRAINTS]
