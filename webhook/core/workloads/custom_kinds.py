"""Where custom resources keep their pod templates or the constraints alone, and the way there over parsed JSON.

In a path ``[*]`` stands for every entry of a list, ``*`` for every value of a map.

Source: the CRDs of the projects named in ``CUSTOM``.
"""

import re
from collections.abc import Iterator

from msgspec import Struct


class EmbeddedKind(Struct, frozen=True, kw_only=True, rename="camel"):
    """A further kind whose pods have constraints, from ``workloads`` of the configuration.

    Shape: it has a ``template_path``, or a ``constraints_path`` where they stand outside a pod template; ``pod_labels``
    are pairs.
    """

    api_version: str
    kind: str
    template_path: str | None = None
    replicas_path: str | None = None
    selector_path: str | None = None
    constraints_path: str | None = None
    pod_labels: tuple[tuple[str, str], ...] = ()


class Site(Struct, frozen=True):
    """One place of templates in an object, or of constraints that stand in none.

    Shape: ``template`` is a path from the object. ``replicas`` is one from the entry that the last wildcard of
    ``template`` stands for; from the object where there is no wildcard. Where ``alone`` is set, it is the path of the
    constraints and ``template`` is empty. ``labels`` are those that the kind's operator gives the pods, as pairs;
    ``{name}`` in a value is the name of the object.
    """

    template: str
    replicas: str | None = None
    alone: str = ""
    labels: tuple[tuple[str, str], ...] = ()

    @property
    def prefix(self) -> str:
        """What stands before ``spec`` of the pod in a path; empty for a Pod."""
        return f"{self.template}." if self.template else ""

    @property
    def constraints(self) -> str:
        """Where the constraints stand, as a path from the object."""
        return self.alone or f"{self.prefix}spec.{CONSTRAINTS}"


class Layout(Struct, frozen=True):
    """Where one kind keeps its fields, as paths from the object.

    Shape: what is not ``whole`` is a part of the pods: an operator adds the rest. ``filled`` names what the operator
    writes into constraints, if anything. Where ``inherits`` is set, pods get the labels of the object too.
    """

    sites: tuple[Site, ...]
    selector: str | None = "spec.selector"
    strategy: str | None = None
    suspend: str | None = None
    late_labels: tuple[str, ...] = ()
    whole: bool = True
    filled: str = ""
    inherits: bool = False


CONSTRAINTS = "topologySpreadConstraints"
# No text without any of these holds constraints, whatever they are called.
_HINTS = re.compile(rb"spread|constrain|maxSkew|topologyKey|whenUnsatisfiable", re.IGNORECASE)
VALUES_KIND = "Values"  # stands for a file of a chart's values, which has no kind of its own
# Objects with values of a chart.
_CHARTS = frozenset(
    {
        *(("", VALUES_KIND), ("helm.toolkit.fluxcd.io", "HelmRelease")),
        *(("argoproj.io", "Application"), ("argoproj.io", "ApplicationSet")),
        *(("helm.cattle.io", "HelmChart"), ("helm.cattle.io", "HelmChartConfig")),
    }
)


def configured_layout(api_version: str, kind: str, embedded: tuple[EmbeddedKind, ...]) -> Layout | None:
    """The layout of a kind that the configuration names."""
    for own in embedded:
        if own.kind == kind and own.api_version == api_version:
            alone = own.constraints_path or ""
            site = Site(own.template_path or "", own.replicas_path, alone, own.pod_labels)
            return Layout((site,), selector=own.selector_path, whole=not alone)
    return None


def walk(value: object, path: str) -> Iterator[tuple[tuple[str, ...], object, object]]:
    """Every place that a path with wildcards stands for: its concrete path, its value, the last wildcard's entry."""
    frontier: list[tuple[tuple[str, ...], object, object]] = [((), value, value)]
    for name, many in _steps(path):
        frontier = [
            ((*at, step), child, child if many else entry)
            for at, here, entry in frontier
            for step, child in _children(here, name, many=many)
        ]
    return iter(frontier)


def path_matches(path: str, steps: tuple[str, ...]) -> bool:
    """Whether a path with wildcards stands for this place; an item is ``[0]`` in its steps."""
    names = [*_steps(path)]
    return len(names) == len(steps) and all(
        step == name or (many and step.startswith("[") == (name == "[]"))
        for (name, many), step in zip(names, steps, strict=True)
    )


def _steps(path: str) -> Iterator[tuple[str, bool]]:
    for segment in path.split(".") if path else ():
        if segment == "*":
            yield "", True
        elif segment.endswith("[*]"):
            yield segment.removesuffix("[*]"), False
            yield "[]", True
        else:
            yield segment, False


def _children(here: object, name: str, *, many: bool) -> Iterator[tuple[str, object]]:
    if many and name == "[]":
        if isinstance(here, list):
            yield from ((f"[{index}]", child) for index, child in enumerate(here))
    elif isinstance(here, dict):
        if many:
            yield from ((key if key.isalnum() else f"[{key}]", child) for key, child in here.items())
        elif name in here:
            yield name, here[name]


def value_at_layout_path(value: object, path: str | None) -> object:
    """The value at a path without wildcards, or None.

    Shape: names of fields between dots; `json_edits.value_at` is for paths with items, and keys that have dots.
    """
    if path is None:
        return None
    for name in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def holds_chart_values(api_version: str, kind: str) -> bool:
    """Whether an object of this type holds values of a Helm chart."""
    return (api_version.rpartition("/")[0], kind) in _CHARTS


def may_hold_constraints(text: bytes) -> bool:
    """Whether a text has any word of constraints, also in a misspelt name."""
    return _HINTS.search(text) is not None
