"""A rolling update in a simulation: the pods to delete and to create."""

from collections import Counter
from typing import NamedTuple

from msgspec import Struct

from webhook.core.placement.pod_limits import Pods


class Turn(NamedTuple):
    """The replacement of a StatefulSet's pod by a new pod of the same name.

    Attributes:
        pod_class: The class of the new pod.
        place: The class of the old pod's node. In the input of `game_of`, the slot of the node instead. None for a pod
            missing from the start.
    """

    pod_class: int
    place: int | None


class RolloutRules(Struct, frozen=True, kw_only=True):
    """A rolling update: its old pods, its new pods, and the limits of the strategy.

    Attributes:
        old: The pod class of the pods to delete.
        new: The pod class of the new pods. Unused with ``turns``.
        replicas: The wanted number of pods.
        surge: maxSurge in pods.
        unavailable: maxUnavailable in pods.
        turns: For a StatefulSet, its pods in the order of replacement. Missing pods come first. Each node with an old
            pod forms a node class of its own.
        in_turn: Whether a pod is created only after all pods earlier in ``turns`` have a node.

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
        """Count the new pods of each class that the rollout has created or may create now.

        Args:
            placed: The pods with a node, by pod class.
        """
        gone, made = len(self.turns) - placed[self.old], sum(placed) - placed[self.old]
        return Counter(turn.pod_class for turn in self.turns[: min(gone, made + 1) if self.in_turn else gone])
