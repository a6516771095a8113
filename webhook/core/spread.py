"""The selector that cluster defaults get: DefaultSelector of kube-scheduler.

A default constraint has no selector of its own. For a pod it counts the pods that

    all Services which select this pod, and the ReplicaSet, StatefulSet or ReplicationController that owns it,

select together; where there is none of these, defaults do not apply.

Source: kube-scheduler framework/plugins/helper/spread.go.
"""

from collections.abc import Mapping

from msgspec import Struct

from webhook.core.index import ClusterIndex
from webhook.core.model import LabelSelector, LabelSelectorRequirement, ObjectMeta, Service

_REPLICATION_CONTROLLER = ("v1", "ReplicationController")
_SELECTING_OWNERS = {_REPLICATION_CONTROLLER, ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet")}


class DeducedSelector(Struct, frozen=True, kw_only=True):
    """A conjunction as the scheduler puts it together.

    Shape: ``pairs`` are equalities, those of Services and ReplicationController first; a pair may repeat. Both
    empty: nothing could be deduced, which selects no pod and switches defaults off.
    """

    pairs: tuple[tuple[str, str], ...] = ()
    expressions: tuple[LabelSelectorRequirement, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether nothing could be deduced."""
        return not self.pairs and not self.expressions

    def label_selector(self) -> LabelSelector:
        """The same as a constraint in a pod has to say it.

        Shape: a key that must equal two values (an owner that does not select the pod) cannot stand twice in
        matchLabels; its second value becomes an expression.
        """
        labels: dict[str, str] = {}
        expressions: list[LabelSelectorRequirement] = []
        for key, value in self.pairs:
            if labels.setdefault(key, value) != value:
                expressions.append(LabelSelectorRequirement(key=key, operator="In", values=(value,)))
        return LabelSelector(match_labels=labels or None, match_expressions=(*expressions, *self.expressions) or None)


def default_selector(meta: ObjectMeta, namespace: str, index: ClusterIndex) -> DeducedSelector:
    """What the scheduler deduces for a pod with this metadata."""
    pairs: dict[str, str] = {}
    for service in pod_services(meta.labels or {}, namespace, index):
        pairs |= (service.spec and service.spec.selector) or {}
    controller = meta.controller
    if controller is None or (controller.api_version, controller.kind) not in _SELECTING_OWNERS:
        return DeducedSelector(pairs=tuple(pairs.items()))
    # By name alone: the scheduler does not compare the uid either.
    owner = index.owner(controller.api_version, controller.kind, namespace, controller.name)
    selector = (owner.selector if owner else None) or LabelSelector()
    owned = selector.match_labels or {}
    if (controller.api_version, controller.kind) == _REPLICATION_CONTROLLER:
        return DeducedSelector(pairs=tuple((pairs | dict(owned)).items()))
    return DeducedSelector(pairs=(*pairs.items(), *owned.items()), expressions=selector.match_expressions or ())


def pod_services(labels: Mapping[str, str], namespace: str, index: ClusterIndex) -> tuple[Service, ...]:
    """The namespace's Services that select a pod with these labels, by name.

    Shape: a Service without selector selects nothing, one with an empty selector everything.
    """
    found = (s for s in index.services(namespace) if _selects(s.spec.selector if s.spec else None, labels))
    return tuple(sorted(found, key=lambda service: (service.metadata or ObjectMeta()).name))


def _selects(selector: Mapping[str, str] | None, labels: Mapping[str, str]) -> bool:
    return selector is not None and selector.items() <= labels.items()
