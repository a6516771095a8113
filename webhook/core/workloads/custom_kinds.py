"""Paths of pod templates and constraints in custom resources.

The module `layout_paths` reads the values at these paths.

Source: the CRDs of the projects named in `kinds` and `operators`.
"""

import re

from msgspec import Struct


class EmbeddedKind(Struct, frozen=True, kw_only=True, rename="camel"):
    """A custom kind from ``workloads`` of the configuration.

    It has a ``template_path``, or a ``constraints_path`` for constraints outside a pod template.

    Attributes:
        pod_labels: The labels added to its pods, as pairs.
    """

    api_version: str
    kind: str
    template_path: str | None = None
    replicas_path: str | None = None
    selector_path: str | None = None
    constraints_path: str | None = None
    pod_labels: tuple[tuple[str, str], ...] = ()


class Site(Struct, frozen=True):
    """A path of pod templates in a custom resource, or of its bare constraints.

    Bare constraints are outside any pod template.

    Attributes:
        template: The path of the template from the object. Empty for bare constraints.
        replicas: The path of the replicas. It starts at the list item or map value matched by the last wildcard in
            ``template``. Without a wildcard, it starts at the object.
        bare_path: The path of the bare constraints. Empty with a template.
        labels: The labels added by the operator, as pairs. ``{name}`` in a value is the object's name.
    """

    template: str
    replicas: str | None = None
    bare_path: str = ""
    labels: tuple[tuple[str, str], ...] = ()

    @property
    def prefix(self) -> str:
        """The path before the pod's ``spec``. Empty for a Pod."""
        return f"{self.template}." if self.template else ""

    @property
    def constraints(self) -> str:
        """The path of the constraints from the object."""
        return self.bare_path or f"{self.prefix}spec.{CONSTRAINTS}"


class Layout(Struct, frozen=True):
    """The paths of a kind's fields, starting from the object's root.

    Attributes:
        whole: Whether the templates are complete pods. Otherwise an operator adds the missing fields.
        filled: The key in `operators.FILLS` for constraints completed by the operator. Empty otherwise.
        inherits: Whether pods also get the object's labels.
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
# Every text with constraints has a match, with any field names.
_HINTS = re.compile(rb"spread|constrain|maxSkew|topologyKey|whenUnsatisfiable", re.IGNORECASE)
VALUES_KIND = "Values"  # the kind of a chart's values file, which has none
# Kinds with values of a Helm chart.
_CHARTS = frozenset(
    {
        *(("", VALUES_KIND), ("helm.toolkit.fluxcd.io", "HelmRelease")),
        *(("argoproj.io", "Application"), ("argoproj.io", "ApplicationSet")),
        *(("helm.cattle.io", "HelmChart"), ("helm.cattle.io", "HelmChartConfig")),
    }
)


def configured_layout(api_version: str, kind: str, embedded: tuple[EmbeddedKind, ...]) -> Layout | None:
    """Return the layout of a kind from the configuration. None if the configuration lacks the kind."""
    for own in embedded:
        if own.kind == kind and own.api_version == api_version:
            bare_path = own.constraints_path or ""
            site = Site(own.template_path or "", own.replicas_path, bare_path, own.pod_labels)
            return Layout((site,), selector=own.selector_path, whole=not bare_path)
    return None


def holds_chart_values(api_version: str, kind: str) -> bool:
    """Whether objects of this type contain values of a Helm chart."""
    return (api_version.rpartition("/")[0], kind) in _CHARTS


def may_hold_constraints(text: bytes) -> bool:
    """Whether the text contains a word from the names of constraint fields, even misspelt."""
    return _HINTS.search(text) is not None
