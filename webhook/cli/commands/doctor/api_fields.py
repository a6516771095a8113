"""Read fields of API objects, which are plain JSON here."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from webhook.core.api.selectors import Selector, valid_selector
from webhook.core.api.types import LabelSelector
from webhook.core.decoders import converted

Object: TypeAlias = Mapping[str, Any]


def at(value: object, *path: str | int, default: Any = "") -> Any:  # noqa: ANN401 JSON
    """Read a field, as in ``at(pod, "spec", "containers", 0)``. Absent and null fields give the default."""
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, Mapping) else None
    return default if value is None else value


def name_of(value: object) -> str:
    """The name of an object."""
    return str(at(value, "metadata", "name"))


def selector_of(value: object) -> Selector | None:
    """A labelSelector. None if it is absent or invalid."""
    return valid_selector(converted(value, LabelSelector)) if isinstance(value, Mapping) else None


def option(deployment: object, name: str) -> str:
    """The value of ``--name=value`` in a Deployment's container. Empty if it is absent."""
    start = f"--{name}="
    return next((word.removeprefix(start) for word in arguments(deployment) if word.startswith(start)), "")


def arguments(deployment: object) -> tuple[str, ...]:
    """The arguments of a Deployment's container."""
    return tuple(map(str, at(deployment, "spec", "template", "spec", "containers", 0, "args", default=())))


def port(pod_spec: object, name: str) -> int:
    """The number of a named container port. 0 if it is absent."""
    ports = [
        entry for container in at(pod_spec, "containers", default=()) for entry in at(container, "ports", default=())
    ]
    return next((int(at(entry, "containerPort", default=0)) for entry in ports if at(entry, "name") == name), 0)


def is_ready(pod: object) -> bool:
    """Whether a pod's Ready condition is True."""
    conditions = at(pod, "status", "conditions", default=())
    return any(at(condition, "type") == "Ready" and at(condition, "status") == "True" for condition in conditions)
