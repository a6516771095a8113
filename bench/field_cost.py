"""Measure the cost of each field of an object for its review, with a large cluster.

    python -m bench.field_cost [--in-line] [--kib N] [--kind Pod|Deployment] [NODES] [PATH ...]

The fields are all lists and maps of a pod in evenspread's own types. Each field gets as many different entries as fit
into KIB of JSON, in a pod and in a Deployment. Nested lists are filled at each level alone, and at the last two levels
together. The output is the slowest of a few reviews by processor time, the longest first. ``PATH`` selects fields,
named as in the table. With ``--in-line`` the output is the time in the event loop, which passes costly objects to a
process, the longest time of a single query by any process, and the number of reviews within the promised time.
"""

import argparse
import collections.abc
import gc
import json
import signal
import sys
import time
import types
import typing
from functools import partial

import msgspec

from bench.feasibility import running
from webhook.admission import Engine, answer
from webhook.admission_request import decode_review
from webhook.core.api.types import Node, NodeSelectorRequirement, NodeSpec, NodeStatus, ObjectMeta, PodSpec, Taint
from webhook.core.api.version import RECORDED
from webhook.core.budget import Budget
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.nodes import Nodes
from webhook.core.index.pods import Pods
from webhook.core.index.read_only import Namespaces, Owners, ReadOnlyIndex, Volumes
from webhook.core.policy.policy import Mode, Policy
from webhook.core.rules.rule_set import RULES

NODES = 5000
PODS_A_NODE = 30
LABELS = 17
KIB = (4, 32, 256)
CALLS = 3
SECONDS = 5
PROMISED_IN_LINE, PROMISED_OF_A_QUESTION = 5.0, 1.0  # milliseconds
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
POLICY = Policy(rules={rule.id: Mode.DENY for rule in RULES})

OPERATORS = ("NotIn", "In", "Exists", "DoesNotExist", "Gt", "Lt")
# What a text of that name may be; any other is "x7" in the seventh entry.
TEXTS = {
    "topologyKey": (ZONE, HOSTNAME, *(f"example.com/label-{n}" for n in range(LABELS))),
    "key": (HOSTNAME, ZONE, *(f"example.com/label-{n}" for n in range(LABELS))),
    "whenUnsatisfiable": ("DoNotSchedule", "ScheduleAnyway"),
    "effect": ("NoSchedule", "NoExecute"),
    "restartPolicy": ("Always",),
    "nodeAffinityPolicy": ("Honor", "Ignore"),
    "nodeTaintsPolicy": ("Honor", "Ignore"),
    "protocol": ("TCP", "UDP"),
}
LEFT_OUT = {"nodeName", "schedulerName", "deletionTimestamp", "hostIP"}  # which end a review early, or mean an address


def cluster(nodes):
    """Return nodes in three zones with many labels each, some tainted, and pods of large and small services."""
    index = ClusterIndex()
    for number in range(nodes):
        labels = {HOSTNAME: f"n{number}", ZONE: "abc"[number % 3], "number": str(number)}
        labels |= {f"example.com/label-{n}": str(number % (n + 2) ** 3) for n in range(LABELS)}
        taints = (Taint(key=f"key-{number % 50}", value="x", effect="NoSchedule"),) if number % 10 == 0 else None
        status = NodeStatus(allocatable={"cpu": "64", "memory": "256Gi", "pods": "110"})
        meta = ObjectMeta(name=f"n{number}", labels=labels)
        index.apply("ADDED", Node(metadata=meta, spec=NodeSpec(taints=taints), status=status))
    for number in range(nodes * PODS_A_NODE):
        app = f"app-{number % 997 if number % 3 else 0}"
        index.apply("ADDED", running(f"p{number}", app, f"n{number % nodes}"))
    return index


def lists(of, path=()):
    """Yield the path of every list and map in a type, by JSON names. "*" stands for an entry."""
    for each in typing.get_args(of) if typing.get_origin(of) in (types.UnionType, typing.Union) else (of,):
        origin, args = typing.get_origin(each), typing.get_args(each)
        if isinstance(each, type) and issubclass(each, msgspec.Struct):
            hints = typing.get_type_hints(each)
            for field in msgspec.structs.fields(each):
                if field.encode_name not in LEFT_OUT:
                    yield from lists(hints[field.name], (*path, field.encode_name))
        elif origin is tuple:
            yield (*path, "*")
            yield from lists(args[0], (*path, "*"))
        elif origin is collections.abc.Mapping:
            yield (*path, "{}")
            yield from lists(args[1], (*path, "{}"))


class Filling:
    """Makes values of a type. The lists in ``many`` get that many entries, all others one."""

    def __init__(self, many):
        self.many, self.number = many, 0

    def value(self, of, path=()):
        if typing.get_origin(of) in (types.UnionType, typing.Union):
            of = next(each for each in typing.get_args(of) if each is not type(None))
        origin, args = typing.get_origin(of), typing.get_args(of)
        if origin is typing.Annotated:
            return self.value(args[0], path)
        if isinstance(of, type) and issubclass(of, msgspec.Struct):
            return self.struct(of, path)
        if origin is tuple:
            return [self.value(args[0], (*path, "*")) for _ in range(self.many.get((*path, "*"), 1))]
        if origin is collections.abc.Mapping:
            here = (*path, "{}")
            return {
                f"example.com/{self.text('name')}": self.value(args[1], here) for _ in range(self.many.get(here, 1))
            }
        simple = {bool: True, int: 1}.get(of)
        return self.text(path[-2] if path[-1] in ("*", "{}") else path[-1]) if simple is None else simple

    def struct(self, of, path):
        hints = typing.get_type_hints(of, include_extras=True)
        made = {}
        for field in msgspec.structs.fields(of):
            here = (*path, field.encode_name)
            leads = any(each[: len(here)] == here for each in self.many) or field.encode_name == "key"
            simple = not any(True for _ in lists(hints[field.name]))
            if field.encode_name not in LEFT_OUT and (leads or (simple and path and path[-1] == "*")):
                made[field.encode_name] = self.value(hints[field.name], here)
        if "operator" in hints:
            self.requirement(made, of is NodeSelectorRequirement, self.many.get((*path, "values", "*"), 1))
        return made

    def requirement(self, made, of_nodes, values):
        """Return a requirement with the next operator, and with as many values as it allows."""
        self.number += 1
        operators = OPERATORS if of_nodes else OPERATORS[:4]
        made["operator"] = operators[self.number % len(operators)] if values == 1 else operators[self.number % 2]
        number = {"In": values, "NotIn": values, "Gt": 1, "Lt": 1}.get(made["operator"], 0)
        made["values"] = [self.text("values") for _ in range(number)]

    def text(self, name):
        self.number += 1
        known = TEXTS.get(name)
        return known[self.number % len(known)] if known else str(self.number) if name == "values" else f"x{self.number}"


def spec(many):
    """Return a pod spec with that many entries in each of these lists."""
    made = Filling(many).value(PodSpec)
    own = made.setdefault("topologySpreadConstraints", [])
    for constraint in own:
        constraint.setdefault("labelSelector", {"matchLabels": {"app": "app-0"}})
        constraint |= {"maxSkew": 1}
    if not own:
        chosen = {"matchLabels": {"app": "app-0"}}
        own += [
            {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": chosen}
            for key in (ZONE, HOSTNAME)
        ]
    made.setdefault("containers", [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}])
    return made


def body(kind, written):
    """Return the review of an object with this pod spec."""
    labels = {"app": "app-0"}
    if kind == "Pod":
        group, made = "", {"metadata": {"name": "new", "namespace": "bench", "labels": labels}, "spec": written}
    else:
        group, template = "apps", {"metadata": {"labels": labels}, "spec": written}
        made = {"metadata": {"name": "new", "namespace": "bench"}}
        made["spec"] = {"replicas": 50, "selector": {"matchLabels": labels}, "template": template}
    asked = {"uid": "u", "operation": "CREATE", "namespace": "bench", "object": made}
    asked["kind"] = {"group": group, "version": "v1", "kind": kind}
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}).encode()


def filled(kind, parts, kib):
    """Return a review with as many entries as fit: of a list, or equally of a list and a list nested in it."""
    empty, few = (len(body(kind, spec(dict.fromkeys(parts, number)))) for number in (1, 9))
    each = (few - empty) / (9 ** len(parts) - 1)
    number = max(2, int(((kib * 1024 - empty) / each) ** (1 / len(parts))))
    return number, body(kind, spec(dict.fromkeys(parts, number)))


class Timed(ReadOnlyIndex):
    """An index that records the processor time of its longest answer, in ms."""

    def __init__(self, index):
        super().__init__(index)
        self.longest = 0.0
        for name, view in (("nodes", Nodes), ("pods", Pods), ("volumes", Volumes), ("owners", Owners)):
            setattr(self, name, view(_TimedView(self.answer, getattr(index, name))))
        self.namespaces = Namespaces(_TimedView(self.answer, index.namespaces))

    def answer(self, asked, *of, **named):
        began = time.thread_time()
        try:
            return asked(*of, **named)
        finally:
            self.longest = max(self.longest, (time.thread_time() - began) * 1e3)


class _TimedView:
    def __init__(self, answer, view):
        self._answer, self._view = answer, view

    def __getattr__(self, query):
        return partial(self._answer, getattr(self._view, query))


class _TooLong(BaseException):  # nothing on the way may catch it
    """A review is ended."""


def _end(_number, _frame):
    raise _TooLong


def milliseconds(engine, asked, *, elsewhere=False, calls=CALLS):
    """Return the slowest of a few reviews by processor time, and its outcome. Reviews end after SECONDS."""
    found, what = [], ""
    for _ in range(calls):
        began, until = time.thread_time(), time.perf_counter() + 2
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            request = decode_review(asked)
            given = answer(
                "validate",
                request,
                engine,
                now="2026-01-01",
                budget=Budget(clock=time.perf_counter, until=until, may_search=not elsewhere),
            )
            what = "FAILED" if given.failed else ""
            costly = given.decision.costly
        except _TooLong:
            what, costly = "ENDED", False
        signal.setitimer(signal.ITIMER_REAL, 0)
        found.append((time.thread_time() - began) * 1e3)
        if what:
            break
    return max(found), "a process" if costly else what


def in_line(engine, asked):
    """Do the same as `milliseconds` for the event loop only. Also returns the longest query of any process."""
    engine.index.longest = 0.0
    took, what = milliseconds(engine, asked, elsewhere=True)
    if what == "a process":
        milliseconds(engine, asked, calls=1)
    return took, f"{engine.index.longest:7.2f} of a question  {what}", engine.index.longest


def cases():
    """Yield the lists to fill, one or two at a time."""
    for path in lists(PodSpec):
        yield (path,)
        inner = [place for place, each in enumerate(path) if each in ("*", "{}")]
        if len(inner) > 1:
            yield path[: inner[-2] + 1], path


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--in-line", action="store_true")
    parser.add_argument("--kib", type=int, nargs=1, default=KIB)
    parser.add_argument("--kind", nargs=1, default=("Pod", "Deployment"))
    parser.add_argument("nodes", type=int, nargs="?", default=NODES)
    parser.add_argument("paths", nargs="*")
    given = parser.parse_args()
    nodes, wanted = given.nodes, set(given.paths)
    signal.signal(signal.SIGALRM, _end)
    engine = Engine(policy=POLICY, version=RECORDED, index=Timed(cluster(nodes)))
    gc.freeze()
    rows, held = [], []
    for parts in cases():
        name = " x ".join(".".join(each) for each in parts)
        if wanted and name not in wanted:
            continue
        for kind in given.kind:
            for kib in given.kib:
                number, asked = filled(kind, parts, kib)
                if given.in_line:
                    took, what, longest = in_line(engine, asked)
                    held.append(longest)
                else:
                    took, what = milliseconds(engine, asked)
                rows.append((took, kind, kib, number, name, what))
                print(f"\r{len(rows):5}", end="", file=sys.stderr)
    print(f"\r{nodes:,} nodes, {nodes * PODS_A_NODE:,} pods; milliseconds of processor time, the slowest of {CALLS}")
    for took, kind, kib, number, name, what in sorted(rows, reverse=True):
        print(f"{took:9.1f}  {kind:10} {kib:4} KiB  {number:6} entries  {name}  {what}")
    if held:
        timely = sum(row[0] <= PROMISED_IN_LINE for row in rows)
        brief = sum(each <= PROMISED_OF_A_QUESTION for each in held)
        longest = max(row[0] for row in rows)
        print(f"{timely} of {len(rows)} take at most {PROMISED_IN_LINE:g} ms in line, the longest {longest:.1f}")
        print(f"{brief} of {len(rows)} questions at most {PROMISED_OF_A_QUESTION:g} ms, the longest {max(held):.2f}")


if __name__ == "__main__":
    main()
