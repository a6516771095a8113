"""What a rule is, what it is asked about, and what it answers: nothing, findings, or that it could not look."""

import json
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from functools import cached_property
from itertools import chain
from math import inf
from typing import ParamSpec, TypeVar

from msgspec import Struct

from webhook.core.api.types import HOSTNAME, PodSpec, SpreadConstraint
from webhook.core.api.version import KubernetesVersion
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.readers import Autoscaler
from webhook.core.policy.policy import Mode, Policy
from webhook.core.workloads.reading import Template, Workload

NO_CLUSTER = "no cluster"
STALE = "what is known of the cluster is older than maxStaleness"
NO_TIME = "no time left"
NOT_YET = "not in this release"
# Nobody writes as many in one template. The pods are counted for each, which takes up to 40 ms among 40,000 others.
MOST_COUNTED = 16
# Each is looked up on every node.
MOST_RESOURCES = 32
TOO_MANY = f"more than {MOST_COUNTED} constraints and pod affinity terms, or {MOST_RESOURCES} resources"
# At 5,000 nodes, what there is to say of one template takes less than a millisecond, and a few where much is wrong.
LEAST_SECONDS = 0.01
# kube-apiserver asks for 120 characters a warning; beyond 4,096 in all it cuts every one of them.
WARNING_CHARS = 120


_Item = TypeVar("_Item")


class Severity(StrEnum):
    """How much is lost if nobody acts."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Edit(Struct, frozen=True):
    """One change of an object: the JSON value that stands at a path afterwards.

    Shape: ``path`` is the whole API path, as in `Finding.path`; ``value`` is None where the field is taken out.
    """

    path: str
    value: object = None


class Finding(Struct, frozen=True, kw_only=True):
    """One rule broken at one place; a value, never an exception.

    Shape: ``path`` is the whole API path. ``summary`` has the numbers and ``remedy`` the smallest fix in a few words:
    together they are a warning, unless ``warning`` has its words, and the first line of a denial, unless ``headline``
    has. ``detail`` is what it means, and ``fix`` what to write instead of the text at ``path``, or in words what to do.
    ``edits`` are the same change for programs: together they make the finding go and bring no other that warns (notes
    that the fault had hidden may come to light); without them the fix is for people. ``key`` tells the same finding in
    another version of the object: it holds no index. ``warns`` is None for the rule's own default mode; True asks for a
    warning and False for silence where
    nobody configured the rule. ``at_most`` is the highest mode that this finding may have, whatever is configured.
    ``severity`` is None for the rule's own.
    """

    rule: str
    path: str
    summary: str
    remedy: str = ""
    warning: str = ""
    headline: str = ""
    detail: str = ""
    fix: str = ""
    edits: tuple[Edit, ...] = ()
    key: str = ""
    warns: bool | None = None
    at_most: Mode = Mode.DENY
    severity: Severity | None = None


class NotEvaluated(Struct, frozen=True):
    """A rule that could have spoken of this object, and the fact that it lacked.

    Shape: ``fault`` is what the rule raised, which is our fault and nobody else's.
    """

    rule: str
    missing: str
    fault: Exception | None = None


class Placed(Struct, frozen=True):
    """One constraint and where it stands."""

    template: Template
    index: int
    constraint: SpreadConstraint

    @property
    def path(self) -> str:
        """The API path: ``spec.template.spec.topologySpreadConstraints[0]``."""
        return f"{self.template.constraints_path}[{self.index}]"

    @property
    def name(self) -> str:
        """How messages call it: ``zone[0]``."""
        segment = (self.constraint.topology_key or "").rpartition("/")[2]
        return f"{quoted(segment, 40) if segment else 'constraint'}[{self.index}]"

    @property
    def noun(self) -> str:
        """How messages call one of its domains: ``zone``; a host is a node."""
        return noun_of(self.constraint.topology_key or "")

    @property
    def short_name(self) -> str:
        """``zone`` of ``zone[0]``."""
        return self.name.partition("[")[0]

    @property
    def key(self) -> str:
        """What stays the same when constraints are put in front of it."""
        return f"{self.template.path} {self.constraint.topology_key} {self.constraint.when_unsatisfiable}"


class Subject(Struct, frozen=True, kw_only=True, dict=True):
    """What a rule is asked about.

    Shape: ``placed`` are the constraints of all templates, in order. ``offline`` says that no kube-apiserver sees the
    object in this moment, so that its warnings are ours to give. ``creating`` is false where the object exists already.
    ``now`` is an ISO time (UTC), empty where it is not known. ``scalers`` are autoscalers that come with it. ``fixes``
    is false where nobody hears of them, so that none is tried.
    Unit: ``age`` says how many seconds ago the cluster was last known to be as the index has it, ``remaining`` how many
    seconds there are for an answer.
    """

    workload: Workload
    placed: tuple[Placed, ...]
    policy: Policy
    version: KubernetesVersion
    index: ClusterIndex | None = None
    offline: bool = False
    creating: bool = True
    age: Callable[[], float] = lambda: 0.0
    remaining: Callable[[], float] = lambda: inf
    now: str = ""
    scalers: tuple[Autoscaler, ...] = ()
    fixes: bool = True

    @property
    def scaler(self) -> Autoscaler | None:
        """What scales the workload, as it comes with it or as the cluster has it."""
        of = self.workload.api_version, self.workload.kind
        namespace, name = self.workload.meta.namespace, self.workload.meta.name
        beside = (each for each in self.scalers if each.meta.namespace == namespace and each.scales(*of, name))
        known = None if self.index is None else self.index.autoscaler(*of, namespace, name)
        return next(beside, known)

    @property
    def pods(self) -> str:
        """How messages call the pods: as in "but the pods have"."""
        return "this pod has" if self.workload.kind == "Pod" else "the pods have"

    def lacks(self, *resources: str) -> str:
        """What is missing to look at these resources of the cluster, for `NotEvaluated`; empty where nothing is."""
        if self.index is None:
            return NO_CLUSTER
        if missing := self.index.lacks(*resources):
            return missing
        if self._stale:
            return STALE
        if self._too_many and not self.offline:
            return TOO_MANY
        return NO_TIME if self.late else ""

    @cached_property
    def _stale(self) -> bool:
        return self.age() > self.policy.max_staleness_seconds

    @cached_property
    def _too_many(self) -> bool:
        specs = [each.template.pod_spec for each in self.workload.templates]
        return any(_counted(spec) > MOST_COUNTED or _resources(spec) > MOST_RESOURCES for spec in specs)

    @property
    def late(self) -> bool:
        """Whether there is no time left to look at the cluster."""
        return self.remaining() < LEAST_SECONDS

    def timely(self, items: Iterable[_Item]) -> Iterator[_Item]:
        """The items as long as there is time for them; that there was none for the rest, `rules.evaluate` tells."""
        for item in items:
            if self.late:
                return
            yield item


def _resources(spec: PodSpec) -> int:
    """How many resources the containers request."""
    written = [
        each.resources.requests or ()
        for each in (*(spec.containers or ()), *(spec.init_containers or ()))
        if each.resources
    ]
    return len(set(chain.from_iterable(written)))


def _counted(spec: PodSpec) -> int:
    """For how many selectors of its own a verdict on the pod counts pods."""
    near = spec.affinity.pod_affinity if spec.affinity else None
    apart = spec.affinity.pod_anti_affinity if spec.affinity else None
    terms = (near.required if near else None) or (), (apart.required if apart else None) or ()
    return len(spec.constraints) + sum(map(len, terms))


Answer = Finding | NotEvaluated
FAILED = "the rule failed, which is a fault of evenspread"


_P = ParamSpec("_P")


def guarded(
    rules: Iterable["Rule"], ask: Callable[_P, Iterable[Answer]], *args: _P.args, **kwargs: _P.kwargs
) -> Iterator[Answer]:
    """What these rules answer; if asking raises, they are not evaluated, and no other rule hears of it."""
    try:
        yield from ask(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 a rule may raise whatever it likes: every other rule still answers
        yield from (NotEvaluated(rule.id, FAILED, error) for rule in rules)


class Rule(Struct, frozen=True, kw_only=True):
    """One check. Its id, and the meaning of its id, are promises.

    Shape: ``mode`` is the default one; a finding may ask for another (`Finding.warns`). ``why`` and ``silent`` are for
    people: why it matters, and when the rule says nothing.
    """

    id: str
    title: str
    severity: Severity
    mode: Mode
    why: str
    silent: str
    since: str = "1.0"


def place(workload: Workload) -> tuple[Placed, ...]:
    """All constraints of an object, in the order of its templates."""
    return tuple(
        Placed(template, index, constraint)
        for template in workload.templates
        for index, constraint in enumerate(template.template.pod_spec.constraints)
    )


def one_line(text: str, limit: int = 256) -> str:
    """Text from outside as one printable line; what is cut ends in an ellipsis.

    kube-apiserver drops a warning that holds a control character, silently.
    """
    flat = text[: limit + 1]
    if not flat.isprintable():
        flat = "".join(letter if letter.isprintable() else " " for letter in flat)
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"


def shortened(text: str, limit: int) -> str:
    """The same as `one_line`, for sentences: what is cut ends with a whole word, if it has more than one."""
    flat = one_line(text, limit + 1)
    if len(flat) <= limit:
        return flat
    words = flat[: limit - 1].rpartition(" ")[0].rstrip(" ,;:")
    return f"{words} …" if words else one_line(flat, limit)


def short_enough(rule: str, *lines: str) -> str:
    """The first of the lines that a warning of the rule has room for; empty where it has for none."""
    room = WARNING_CHARS - len(f"evenspread/{rule}: ")
    return next((line for line in lines if len(line) <= room), "")


def noun_of(key: str) -> str:
    """How messages call a domain of the key: ``zone``; a host is a node."""
    segment = key.rpartition("/")[2] or "domain"
    return "node" if key == HOSTNAME else quoted(segment, 40)


def plural(count: int, noun: str) -> str:
    """``1 node``, ``2 nodes``, ``12,000 nodes``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def quoted(text: str, limit: int = 80) -> str:
    """A name from outside in a sentence: in quotes where nobody would see its ends, or what is odd in it."""
    plain = bool(text) and text.isprintable() and " " not in text
    return one_line(text if plain else json.dumps(text[: limit + 1], ensure_ascii=False), limit)
