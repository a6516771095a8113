"""How explanations speak of each filter: one row for a filter, whatever room of the explanation needs it."""

from collections.abc import Mapping

from msgspec import Struct

from webhook.core.scheduler.plugins.inter_pod_affinity import INTER_POD_AFFINITY
from webhook.core.scheduler.plugins.node_affinity import NODE_AFFINITY
from webhook.core.scheduler.plugins.node_name import NODE_NAME
from webhook.core.scheduler.plugins.node_ports import NODE_PORTS
from webhook.core.scheduler.plugins.node_resources_fit import NODE_RESOURCES_FIT
from webhook.core.scheduler.plugins.node_unschedulable import NODE_UNSCHEDULABLE
from webhook.core.scheduler.plugins.node_volume_limits import NODE_VOLUME_LIMITS
from webhook.core.scheduler.plugins.pod_topology_spread import POD_TOPOLOGY_SPREAD
from webhook.core.scheduler.plugins.taint_toleration import TAINT_TOLERATION
from webhook.core.scheduler.plugins.volume_binding import VOLUME_BINDING
from webhook.core.scheduler.plugins.volumes import VOLUME_RESTRICTIONS, VOLUME_ZONE


class FilterWords(Struct, frozen=True):
    """The words about one filter.

    Shape: ``closed`` completes "a node is", in a word or two; empty where the status names what is short. ``parts``
    are the keys of ``PART_WORDS`` that the filter belongs to.
    """

    closed: str
    parts: tuple[str, ...]


# What people would change in one go, and what stands after "without"; the order is that of the trials.
PART_WORDS: Mapping[str, str] = {
    "spread": "its DoNotSchedule constraints",
    "room": "",  # told as "with room"
    "cordons": "cordons",
    "taints": "taints",
    "selection": "its node selector and affinity",
    "volumes": "its volumes",
    "pods": "affinity between pods",
}
FILTER_WORDS: Mapping[str, FilterWords] = {
    NODE_NAME: FilterWords("of another name", ("selection",)),
    NODE_UNSCHEDULABLE: FilterWords("cordoned", ("cordons",)),
    TAINT_TOLERATION: FilterWords("tainted", ("taints",)),
    NODE_AFFINITY: FilterWords("not selected", ("selection",)),
    NODE_PORTS: FilterWords("with the port taken", ("room",)),
    NODE_RESOURCES_FIT: FilterWords("", ("room",)),
    VOLUME_RESTRICTIONS: FilterWords("by its volumes", ("volumes",)),
    NODE_VOLUME_LIMITS: FilterWords("by its volumes", ("room", "volumes")),
    VOLUME_BINDING: FilterWords("by its volumes", ("volumes",)),
    VOLUME_ZONE: FilterWords("by its volumes", ("volumes",)),
    POD_TOPOLOGY_SPREAD: FilterWords("over the limit", ("spread",)),
    INTER_POD_AFFINITY: FilterWords("by pod affinity", ("pods",)),
}
# The filters of each part.
PARTS: Mapping[str, frozenset[str]] = {
    part: frozenset(plugin for plugin, words in FILTER_WORDS.items() if part in words.parts) for part in PART_WORDS
}
# Filters for what a node can run out of, and what a larger, an emptier or one more node would have.
CAPACITY_FILTERS = PARTS["room"]
