"""What a rule is, what it is asked about, and what it answers: nothing, findings, or that it could not look."""

from collections.abc import Callable, Iterable
from enum import StrEnum

from msgspec import Struct

from webhook.core.kinds import Template, Workload
from webhook.core.model import SpreadConstraint
from webhook.core.policy import Mode, Policy
from webhook.core.version import KubernetesVersion


class Severity(StrEnum):
    """How much is lost if nobody acts."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Finding(Struct, frozen=True, kw_only=True):
    """One rule broken at one place; a value, never an exception.

    Shape: ``path`` is the whole API path. ``summary`` has the numbers and ``remedy`` the smallest fix in a few words:
    together they are a warning. ``headline`` is the same as the first line of a denial, ``detail`` what it means, and
    ``fix`` what to write into the manifest. ``key`` tells the same finding in another version of the object: it holds
    no index. ``warns`` is False where the rule is not sure enough to bother anybody.
    """

    rule: str
    path: str
    summary: str
    remedy: str = ""
    headline: str = ""
    detail: str = ""
    fix: str = ""
    key: str = ""
    warns: bool = True


class NotEvaluated(Struct, frozen=True):
    """A rule that could have spoken of this object, and the fact that it lacked."""

    rule: str
    missing: str


class Placed(Struct, frozen=True):
    """One constraint and where it stands."""

    template: Template
    index: int
    constraint: SpreadConstraint

    @property
    def path(self) -> str:
        """The API path: ``spec.template.spec.topologySpreadConstraints[0]``."""
        return f"{self.template.path}spec.topologySpreadConstraints[{self.index}]"

    @property
    def name(self) -> str:
        """How messages call it: ``zone[0]``."""
        return f"{(self.constraint.topology_key or '').rpartition('/')[2]}[{self.index}]"

    @property
    def key(self) -> str:
        """What stays the same when constraints are put in front of it."""
        return f"{self.template.path} {self.constraint.topology_key} {self.constraint.when_unsatisfiable}"


class Subject(Struct, frozen=True, kw_only=True):
    """What a rule is asked about.

    Shape: ``placed`` are the constraints of all templates, in order. ``api_server_warns`` says that kube-apiserver
    gives its own warnings for this object in this request.
    """

    workload: Workload
    placed: tuple[Placed, ...]
    policy: Policy
    version: KubernetesVersion
    api_server_warns: bool = False


Answer = Finding | NotEvaluated


class Rule(Struct, frozen=True, kw_only=True):
    """One check. Its id, and the meaning of its id, are promises.

    Shape: ``mode`` is the default one. ``feasibility`` rules are never denied on Pods.
    """

    id: str
    title: str
    severity: Severity
    mode: Mode
    evaluate: Callable[[Subject], Iterable[Answer]]
    since: str = "1.0"
    why: str = ""
    silent: str = ""
    feasibility: bool = False
    api: bool = False


def place(workload: Workload) -> tuple[Placed, ...]:
    """All constraints of an object, in the order of its templates."""
    return tuple(
        Placed(template, index, constraint)
        for template in workload.templates
        for index, constraint in enumerate(template.template.pod_spec.constraints)
    )
