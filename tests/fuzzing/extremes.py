"""Objects of every kind that the index reads, with any field at its extreme: ``python -m fuzzing.extremes SEED COUNT``.

The fields come from the decoders, so that a new field is drawn as soon as the index reads it. The events of an object
are additions, changes and deletions in any order. Whatever they say, `ClusterIndex.apply` leaves no object out, answers
questions, and is empty once all objects are deleted.
"""

import itertools
import json
import random
import sys

import msgspec

from bench.index_memory import weight
from webhook.core.api.selectors import compile_selector
from webhook.core.api.types import LabelSelector, TypeMeta
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.readers import _KINDS as KINDS
from webhook.core.index.readers import decode_object, decoded_type

NAMES = ("a", "b", "c")
NODES = ("n0", "n1", "gone", "")
QUANTITIES = (
    *("0", "1", "1m", "100m", "1Gi", "1Ei", "16Ei", "-1", "-1e999", "1n", "0.5n", "1e-999", "1E", "9" * 19, "9" * 999),
    *(
        "1e999",
        "1e18",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775809",
        "0." + "9" * 900,
        "1e2147483647",
    ),
    *(0, 1, -1, 2**63, 0.5, 1e300, "not a quantity", "", "1e", "." * 40),
)
TEXTS = (
    "",
    "a",
    "x" * 300,
    "a/b/c",
    "é" * 64,
    "\u202e",
    "\x00",
    "topology.kubernetes.io/zone",
    "kubernetes.io/hostname",
)
NUMBERS = (0, 1, -1, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63))
TIMES = (None, "2026-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "not a time")
CHOICES = {
    "phase": ("Running", "Pending", "Succeeded", "Failed", "Bound", ""),
    "operator": ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Equal", "", "Odd"),
    "effect": ("NoSchedule", "NoExecute", "PreferNoSchedule", ""),
    "whenUnsatisfiable": ("DoNotSchedule", "ScheduleAnyway", "Odd"),
    "restartPolicy": ("Always", "Never", None),
    "nodeName": NODES,
    "name": NAMES,
    "namespace": ("shop", "batch", ""),
    "uid": ("1", "2", ""),
    "type": ("PodResizePending", "Ready", "Container", "Pod", "PersistentVolumeClaim"),
    "reason": ("Infeasible", "Deferred", ""),
    "deletionTimestamp": TIMES,
    "creationTimestamp": TIMES,
}
AMOUNTS = frozenset({"requests", "limits", "allocatable", "capacity", "overhead", "allocatedResources", "podFixed"})
RESOURCES = ("cpu", "memory", "pods", "ephemeral-storage", "e.io/gpu", "hugepages-2Mi", "requests.cpu", "x" * 300, "")
DEEPEST = 9  # levels; anything deeper is left out


def drawn(info, rng, name="", depth=0):
    """A value of this type, some extreme."""
    kinds = msgspec.inspect
    if isinstance(info, (kinds.Metadata, kinds.UnionType)):
        types = (info.type,) if isinstance(info, kinds.Metadata) else info.types
        said = [each for each in types if not isinstance(each, kinds.NoneType)]
        return drawn(rng.choice(said if rng.random() < 0.85 else types), rng, name, depth)
    if isinstance(info, kinds.StructType):
        often = 0.75 if depth < 4 else 0.4
        fields = [each for each in info.fields if depth < DEEPEST and (each.required or rng.random() < often)]
        return {each.encode_name: drawn(each.type, rng, each.encode_name, depth + 1) for each in fields}
    if isinstance(info, (kinds.VarTupleType, kinds.ListType)):
        return [drawn(info.item_type, rng, name, depth + 1) for _ in range(rng.choice((0, 1, 1, 2, 3)))]
    if isinstance(info, kinds.DictType):
        keys = [rng.choice(RESOURCES if name in AMOUNTS else TEXTS) for _ in range(rng.choice((0, 1, 2, 4)))]
        of = (
            (lambda: rng.choice(QUANTITIES))
            if name in AMOUNTS
            else (lambda: drawn(info.value_type, rng, name, depth + 1))
        )
        return {key: of() for key in keys}
    return _leaf(info, rng, name)


def _leaf(info, rng, name):
    kinds = msgspec.inspect
    if isinstance(info, kinds.StrType):
        return rng.choice(CHOICES.get(name, TEXTS))
    if isinstance(info, kinds.IntType):
        least, most = -(2**63) if info.ge is None else info.ge, 2**63 - 1 if info.le is None else info.le
        return rng.choice([each for each in NUMBERS if least <= each <= most])
    leaves = {kinds.BoolType: (True, False), kinds.FloatType: (0.0, -0.5, 1e300), kinds.NoneType: (None,)}
    return rng.choice(leaves.get(type(info), (None, "", 0, [], {}, {"a": []}, "1e999")))


def objects(rng):
    """One object after the other: its kind, and its JSON."""
    infos = {kind: msgspec.inspect.type_info(decoded_type(TypeMeta(*kind))) for kind in KINDS}
    for kind in itertools.cycle((*KINDS, ("v1", "Pod"), ("v1", "Pod"), ("v1", "Node"))):
        made = drawn(infos[kind], rng)
        metadata = {
            **(made.get("metadata") or {}),
            "name": rng.choice(NAMES),
            "namespace": rng.choice(("shop", "batch")),
        }
        yield TypeMeta(*kind), {**made, "metadata": metadata}


def ask(index):
    """Questions that read every table."""
    index.nodes.view()
    for namespace in ("shop", "batch"):
        for select in (LabelSelector(), LabelSelector(match_labels={"a": "a"})):
            index.pods.count(namespace, compile_selector(select))
        index.owners.matching(namespace, compile_selector(LabelSelector()), 9)
        index.namespaces.groups(namespace)
        index.pods.waiting(namespace)
    index.nodes.amounts("cpu")
    index.nodes.short_of((("cpu", 1), ("e.io/gpu", 1)))
    index.pods.terms_matching("shop", {"a": "a"})
    index.pods.lower(0)
    index.volumes.attach_limits()
    index.volumes.attachments()


def run(seed, count):
    """Apply this many events; returns how many objects could be decoded. Raises with the object that is at fault."""
    rng = random.Random(seed)  # noqa: S311 no secret
    index, alive, decoded = ClusterIndex(scoring=bool(seed % 2)), {}, 0
    empty = weight(index)
    for number, (of, made) in enumerate(itertools.islice(objects(rng), count)):
        raw = json.dumps(made).encode()
        try:
            value = decode_object(raw, of)
        except (msgspec.DecodeError, ValueError):
            continue
        decoded += 1
        at = (of.api_version, of.kind, made["metadata"]["namespace"], made["metadata"]["name"])
        event = rng.choice(("ADDED", "ADDED", "MODIFIED", "DELETED"))
        why = index.apply(event, value)
        assert not why, f"{why}: {event} {raw.decode()}"
        if event == "DELETED":
            alive.pop(at, None)
        else:
            alive[at] = value
        if number % 50 == 0:
            ask(index)
    for value in alive.values():
        index.apply("DELETED", value)
    return decoded, weight(index) - empty


def main():
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    decoded, left = run(seed, count)
    print(f"{decoded:,} of {count:,} events applied, none left out; {left:,} bytes stay; seed {seed}")  # noqa: T201


if __name__ == "__main__":
    main()
