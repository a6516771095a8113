"""A rolling update in a game: the pods to delete and create."""

from collections import Counter
from typing import NamedTuple

from webhook.core.placement.pod_limits import Pods


class Turn(NamedTuple):
    """The replacement of a StatefulSet's pod by a new pod of the same name.

    Attributes:
        pod_class: The class of the new pod.
        place: The class of the old pod's node, or its slot for `game_of`. None for a pod missing from the start.
    """

    pod_class: int
    place: int | None


class RolloutRules(NamedTuple):
    """The rules of a rolling update: old pods, new pods, and limits of the strategy.

    Attributes:
        old: The pod class to replace.
        new: The class of the new pods. Unused with ``turns``.
        replicas: The wanted number of pods.
        surge: maxSurge in pods.
        unavailable: maxUnavailable in pods.
        turns: The pods to replace in this order, missing pods first. Each of their nodes is a class.
        in_turn: Whether a pod is created only after the pods of earlier turns have a node.

    Source: deployment/rolling.go ``reconcileNewReplicaSet``, ``reconcileOldReplicaSets``;
    statefulset/stateful_set_control.go ``updateStatefulSetAfterInvariantEstablished``.
    """

    old: int
    new: int
    replicas: int
    surge: int
    unavailable: int
    turns: tuple[Turn, ...] = ()
    in_turn: bool = False

    def is_due(self, placed: Pods) -> Counter[int]:
        """Count the created pods by class, including placed pods."""
        gone, made = len(self.turns) - placed[self.old], sum(placed) - placed[self.old]
        return Counter(turn.pod_class for turn in self.turns[: min(gone, made + 1) if self.in_turn else gone])
