"""The result of one scheduler plugin: a status, and the nodes that have it.

Source: k8s.io/kube-scheduler framework/interface.go.
"""

from collections.abc import Callable, Iterable

from msgspec import Struct

SUCCESS = "Success"
UNSCHEDULABLE = "Unschedulable"
UNRESOLVABLE = "UnschedulableAndUnresolvable"
SKIP = "Skip"
ERROR = "Error"


class Status(Struct, frozen=True, omit_defaults=True):
    """A code and its reasons in kube-scheduler's words.

    Shape: ``code`` is one of the constants above; ``plugin`` is "" until a cycle names it.
    Source: kube-scheduler framework/interface.go ``Status``.
    """

    code: str
    plugin: str = ""
    reasons: tuple[str, ...] = ()

    @property
    def rejected(self) -> bool:
        """Whether it rejects the pod; an error does not.

        Source: kube-scheduler framework/interface.go ``IsRejected``.
        """
        return self.code in (UNSCHEDULABLE, UNRESOLVABLE)


OK = Status(SUCCESS)
SKIPPED = Status(SKIP)

# A status and the set of nodes that have it (`node_sets`).
StatusOfNodes = tuple[Status, int]


class PluginResult(Struct, frozen=True):
    """A plugin after its PreFilter.

    Shape: ``decide`` is its Filter: it takes a set of nodes and returns disjoint sets of those that fail; None if
    Filter does not run. ``allowed`` are the names of the nodes that PreFilter leaves, None for all.
    Source: kube-scheduler framework/interface.go ``PreFilterResult``.
    """

    pre_filter: Status = OK
    filter: Callable[[int], Iterable[StatusOfNodes]] | None = None
    allowed: frozenset[str] | None = None


PASSES = PluginResult(SKIPPED)


def unresolvable(*reasons: str) -> Status:
    """A rejection that no preemption can lift.

    Source: kube-scheduler framework/interface.go ``UnschedulableAndUnresolvable``.
    """
    return Status(UNRESOLVABLE, reasons=reasons)


def unschedulable(*reasons: str) -> Status:
    """A rejection that preemption might lift. Source: kube-scheduler framework/interface.go ``Unschedulable``."""
    return Status(UNSCHEDULABLE, reasons=reasons)


def failure(text: str) -> Status:
    """An error that fails the whole scheduling attempt. Source: kube-scheduler framework/interface.go ``AsStatus``."""
    return Status(ERROR, reasons=(text,))


def with_plugin(status: Status, plugin: str) -> Status:
    """The status with the plugin's name."""
    return Status(status.code, plugin, status.reasons)
