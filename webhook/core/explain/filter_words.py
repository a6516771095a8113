"""The phrases for each scheduler filter in explanations."""

from collections.abc import Mapping

from msgspec import Struct

from webhook.core.scheduler.plugins import pod_topology_spread
from webhook.core.scheduler.plugins.inter_pod_affinity import INTER_POD_AFFINITY
from webhook.core.scheduler.plugins.node_affinity import NODE_AFFINITY
from webhook.core.scheduler.plugins.node_name import NODE_NAME
from webhook.core.scheduler.plugins.node_ports import NODE_PORTS
from webhook.core.scheduler.plugins.node_resources_fit import NODE_RESOURCES_FIT
from webhook.core.scheduler.plugins.node_unschedulable import NODE_UNSCHEDULABLE
from webhook.core.scheduler.plugins.node_volume_limits import NODE_VOLUME_LIMITS
from webhook.core.scheduler.plugins.taint_toleration import TAINT_TOLERATION
from webhook.core.scheduler.plugins.volume_binding import VOLUME_BINDING
from webhook.core.scheduler.plugins.volume_restrictions import VOLUME_RESTRICTIONS
from webhook.core.scheduler.plugins.volume_zone import VOLUME_ZONE


class _FilterWords(Struct, frozen=True):
    """The words for a filter in explanations.

    Attributes:
        closed: Completes the sentence "a node is ...", for example "tainted". Empty if the filter's status names the
            resource.
        parts: The keys in ``PART_WORDS`` of the pod's requirements checked by the filter.
    """

    closed: str
    parts: tuple[str, ...]


# The requirements that people change together, after "without". They are tried in this order.
PART_WORDS: Mapping[str, str] = {
    "spread": "its DoNotSchedule constraints",
    "room": "",  # The text is "with free capacity".
    "cordons": "cordons",
    "taints": "taints",
    "selection": "its node selector and affinity",
    "volumes": "its volumes",
    "pods": "affinity between pods",
}
FILTER_WORDS: Mapping[str, _FilterWords] = {
    NODE_NAME: _FilterWords("of another name", ("selection",)),
    NODE_UNSCHEDULABLE: _FilterWords("cordoned", ("cordons",)),
    TAINT_TOLERATION: _FilterWords("tainted", ("taints",)),
    NODE_AFFINITY: _FilterWords("not selected", ("selection",)),
    NODE_PORTS: _FilterWords("with the port taken", ("room",)),
    NODE_RESOURCES_FIT: _FilterWords("", ("room",)),
    VOLUME_RESTRICTIONS: _FilterWords("by its volumes", ("volumes",)),
    NODE_VOLUME_LIMITS: _FilterWords("by its volumes", ("room", "volumes")),
    VOLUME_BINDING: _FilterWords("by its volumes", ("volumes",)),
    VOLUME_ZONE: _FilterWords("by its volumes", ("volumes",)),
    pod_topology_spread.POD_TOPOLOGY_SPREAD: _FilterWords("over another limit", ("spread",)),
    INTER_POD_AFFINITY: _FilterWords("by pod affinity", ("pods",)),
}

# The filters of each part.
PARTS: Mapping[str, frozenset[str]] = {
    part: frozenset(plugin for plugin, words in FILTER_WORDS.items() if part in words.parts) for part in PART_WORDS
}
