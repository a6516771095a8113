"""The result of a scheduler plugin: a status, and the nodes with this status.

Source: k8s.io/kube-scheduler framework/interface.go.
"""

from collections.abc import Callable, Iterable
from enum import StrEnum

from msgspec import Struct


class Code(StrEnum):
    """The kind of a status. Source: kube-scheduler framework/interface.go ``Code``."""

    SUCCESS = "Success"
    UNSCHEDULABLE = "Unschedulable"
    UNRESOLVABLE = "UnschedulableAndUnresolvable"
    SKIP = "Skip"
    ERROR = "Error"


class Status(Struct, frozen=True, omit_defaults=True):
    """A code and its reasons in kube-scheduler's words.

    Attributes:
        plugin: Empty until a cycle adds the name.

    Source: kube-scheduler framework/interface.go ``Status``.
    """

    code: Code
    plugin: str = ""
    reasons: tuple[str, ...] = ()

    @property
    def rejected(self) -> bool:
        """Whether the plugin rejects the pod. False for an error.

        Source: kube-scheduler framework/interface.go ``IsRejected``.
        """
        return self.code in _REJECTIONS

    @staticmethod
    def of_error(text: str) -> "Status":
        """Return an error status, which ends the scheduling of the pod.

        Source: kube-scheduler framework/interface.go ``AsStatus``.
        """
        return Status(Code.ERROR, reasons=(text,))

    def with_plugin(self, plugin: str) -> "Status":
        """Add the plugin's name. Source: kube-scheduler framework/interface.go ``WithPlugin``."""
        return Status(self.code, plugin, self.reasons)


_REJECTIONS = (Code.UNSCHEDULABLE, Code.UNRESOLVABLE)
OK = Status(Code.SUCCESS)

# A status, and the set of nodes with it (`node_sets`).
StatusOfNodes = tuple[Status, int]


class PluginResult(Struct, frozen=True):
    """The result of a plugin's PreFilter, and its Filter function.

    Attributes:
        pre_filter: The status of PreFilter.
        filter: The Filter function. It returns disjoint sets of rejected candidates. None if skipped.
        allowed: The names of the only possible nodes. None for all.

    Source: kube-scheduler framework/interface.go ``PreFilterResult``.
    """

    pre_filter: Status = OK
    filter: Callable[[int], Iterable[StatusOfNodes]] | None = None
    allowed: frozenset[str] | None = None


PASSES = PluginResult(Status(Code.SKIP))


def unresolvable(*reasons: str) -> Status:
    """Return a rejection that preemption cannot lift.

    Source: kube-scheduler framework/interface.go ``UnschedulableAndUnresolvable``.
    """
    return Status(Code.UNRESOLVABLE, reasons=reasons)


def unschedulable(*reasons: str) -> Status:
    """Build a rejection that preemption might lift. Source: kube-scheduler framework/interface.go ``Unschedulable``."""
    return Status(Code.UNSCHEDULABLE, reasons=reasons)
