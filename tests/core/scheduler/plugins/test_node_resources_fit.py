"""What is asked of the index about resources: it is held for one question at a time."""

from build import index, node
from msgspec.structs import replace

from webhook.core.api.resources import OF_EVERY_NODE
from webhook.core.api.types import NodeStatus
from webhook.core.index.nodes import Nodes
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.scheduler.plugins.node_resources_fit import scarce_amounts


class Listening(Nodes):
    """Answers as the nodes below, and notes the names in each question."""

    def __init__(self, below):
        super().__init__(below)
        self.asked = []

    def short_of(self, amounts):
        self.asked.append([name for name, _ in amounts])
        return self._below.short_of(amounts)


def offering(name, **amounts):
    return replace(node(name), status=NodeStatus(allocatable={"pods": "9", "cpu": "4", **amounts}))


BELOW = index(offering("a"), offering("b", **{"e.io/gpu": "2"}))


def test_what_every_node_has_is_one_question_and_any_other_one_by_itself():
    listening = Listening(BELOW.nodes)
    amounts = [("e.io/none", 1), *((name, 1) for name in OF_EVERY_NODE), ("e.io/gpu", 1)]
    found = scarce_amounts(amounts, ReadOnlyIndex(BELOW, nodes=listening))
    assert listening.asked == [[*OF_EVERY_NODE], ["e.io/none"], ["e.io/gpu"]]
    assert list(found.items()) == [
        ("e.io/none", (0, 0)),
        ("memory", (0, 0)),
        ("ephemeral-storage", (0, 0)),
        ("e.io/gpu", (0, 2)),
    ]


def test_where_nodes_have_room_nothing_is_copied():
    listening = Listening(BELOW.nodes)
    assert scarce_amounts([("pods", 9), ("cpu", 4000)], ReadOnlyIndex(BELOW, nodes=listening)) == {}
    assert listening.asked == [["pods", "cpu"]]
