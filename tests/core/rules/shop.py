"""A cluster with several workloads, at a glance.

``a: n1=web,web,canary n2 | b: n3=web``: zones, their nodes, and whose pods run on each. Names stand for labels:
``web`` for ``app=web``, ``canary`` for ``app=web track=canary`` and so on; a tilde marks a terminating pod.
"""

from build import ROOMY, declared, index, node, owner, running
from manifest import constraint
from msgspec import convert
from msgspec.structs import replace

from webhook.core.api.types import NodeSpec, NodeStatus, SpreadConstraint

LABELS = {
    "web": "app=web",
    "old": "app=web pod-template-hash=1",
    "stable": "app=web track=stable",
    "canary": "app=web track=canary",
    "cart": "app=cart part=shop",
    "pay": "app=pay part=shop",
    "db": "app=db part=shop",
    "cache": "app=cache",
    "loose": "run=debug part=shop",
}


def spread(text):
    return convert(constraint(text), SpreadConstraint)


def deployed(name, *constraints, kind="Deployment", above=None):
    """A workload whose own selector is the labels of its pods."""
    template = declared(LABELS[name], *map(spread, constraints))
    return owner(f"{kind}/{name}", LABELS[name], template, above=above)


def shop(text, *owners, **labels):
    """The cluster; every node has the labels."""
    values = list(owners)
    for part in text.split("|"):
        zone, _, written = part.rpartition(":")
        for entry in written.split():
            name, _, pods = entry.partition("=")
            made = node(name.lstrip("~"), zone.strip() or None, **labels)
            spec = NodeSpec(unschedulable=True) if name.startswith("~") else None
            values.append(replace(made, spec=spec, status=NodeStatus(allocatable=ROOMY)))
            for number, whose in enumerate(filter(None, pods.split(","))):
                pod = running(f"{name}-{number}", name.lstrip("~"), LABELS[whose.lstrip("~")])
                if whose.startswith("~"):
                    pod = replace(pod, metadata=replace(pod.metadata, deletion_timestamp="2026-11-21T09:00:00Z"))
                values.append(pod)
    return index(*values)
