"""Measure the index's memory for hostile objects, and the memory left after their deletion, for every field.

    python -m bench.index_memory [--nodes 500] [--kind Pod] [--bytes 16384]

For each decoded list, map and text, the objects repeat it as often as fits, with unique values. The fields come from
the decoder, so new fields are included. MiB are those of Python objects in the index, for each MiB of JSON. Pods are
measured without a node and on a node.
"""

import argparse
import json
from collections.abc import Mapping
from itertools import count
from sys import getsizeof

import msgspec

from webhook.core.api.types import Node, NodeStatus, ObjectMeta, TypeMeta
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.readers import decode_object, decoded_type

KINDS = (
    ("v1", "Pod"),
    ("v1", "Node"),
    ("v1", "Namespace"),
    ("v1", "Service"),
    ("v1", "PersistentVolumeClaim"),
    ("v1", "PersistentVolume"),
    ("storage.k8s.io/v1", "StorageClass"),
    ("storage.k8s.io/v1", "CSINode"),
    ("storage.k8s.io/v1", "CSIDriver"),
    ("storage.k8s.io/v1", "CSIStorageCapacity"),
    ("storage.k8s.io/v1", "VolumeAttachment"),
    ("v1", "LimitRange"),
    ("scheduling.k8s.io/v1", "PriorityClass"),
    ("node.k8s.io/v1", "RuntimeClass"),
    ("v1", "ReplicationController"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("batch/v1", "Job"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
)
# What a field must say for an object to be read on; every other text is one that nothing else has.
_SAID = {
    "operator": "In",
    "whenUnsatisfiable": "DoNotSchedule",
    "phase": "Running",
    "restartPolicy": "Always",
    "effect": "NoSchedule",
    "controller": True,
    "hostIP": "10.0.0.1",
    "protocol": "TCP",
    "deletionTimestamp": None,
}
_AMOUNTS = frozenset({"requests", "limits", "allocatable", "capacity", "overhead", "allocatedResources"})
_numbers = count()


def fields(api_version, kind):
    """Return the paths of all lists, maps and texts of a kind, as tuples of JSON names."""
    return list(_fields(msgspec.inspect.type_info(_type(api_version, kind)), ()))


def _type(api_version, kind):
    return decoded_type(TypeMeta(api_version=api_version, kind=kind))


def _plain(info):
    """Return the type without None, and a quantity's type without its number."""
    kinds = msgspec.inspect
    if isinstance(info, kinds.UnionType):
        info = next((each for each in info.types if isinstance(each, kinds.StrType)), None) or next(
            each for each in info.types if not isinstance(each, kinds.NoneType)
        )
    return _plain(info.type) if isinstance(info, kinds.Metadata) else info


def _fields(info, path):
    kinds, info = msgspec.inspect, _plain(info)
    if isinstance(info, kinds.StructType):
        for field in info.fields:
            yield from _fields(field.type, (*path, field.encode_name))
    elif isinstance(info, kinds.VarTupleType):
        yield path
        yield from _fields(info.item_type, (*path, 0))
    elif isinstance(info, (kinds.DictType, kinds.StrType)):
        yield path


def hostile(api_version, kind, path, size, **fixed):
    """Return the JSON of an object of about ``size`` bytes, nearly all of them in one field.

    ``fixed`` is the object's metadata. ``node`` in it is spec.nodeName.
    """
    node = fixed.pop("node", None)
    made = _along(_type(api_version, kind), path, size)
    made["metadata"] = {**made.get("metadata", {}), "namespace": "shop", **fixed}
    if kind == "Pod":
        made["spec"] = {**made.get("spec", {}), **({"nodeName": node} if node else {})}
        made["spec"].setdefault("containers", [{"name": "c"}])
    return json.dumps(made, separators=(",", ":")).encode()


def _along(info, path, size):
    kinds = msgspec.inspect
    info = _plain(info if isinstance(info, kinds.Type) else kinds.type_info(info))
    if not path:
        return _repeated(info, size)
    if path[0] == 0:
        return [_along(info.item_type, path[1:], size)]
    field = next(each for each in info.fields if each.encode_name == path[0])
    made = _filled(info) if len(path) > 1 or isinstance(_plain(field.type), kinds.StrType) else {}
    if len(path) == 1 and isinstance(_plain(field.type), kinds.DictType) and path[0] in _AMOUNTS:
        return {path[0]: dict(_until(lambda: (f"e.io/{_new()}", "1"), size))}
    return {**made, path[0]: _along(field.type, path[1:], size)}


def _repeated(info, size):
    kinds = msgspec.inspect
    if isinstance(info, kinds.StrType):
        return _new() + "x" * size
    if isinstance(info, kinds.DictType):
        return dict(_until(lambda: (_new(), _filled(info.value_type)), size))
    return _until(lambda: _filled(info.item_type), size)


def _until(make, size):
    made, left = [], size
    while left > 0:
        made.append(make())
        left -= len(json.dumps(made[-1], separators=(",", ":"))) + 1
    return made


def _filled(info):
    """Return a value with unique texts. Nested lists and maps are empty, or have a single label or value."""
    kinds, info = msgspec.inspect, _plain(info)
    if isinstance(info, kinds.StructType):
        return {
            field.encode_name: value
            for field in info.fields
            if (value := _SAID.get(field.encode_name, ...)) is not ... or (value := _filled(field.type)) is not None
            if value is not None
        }
    if isinstance(info, kinds.VarTupleType):
        return [_new()] if isinstance(_plain(info.item_type), kinds.StrType) else None
    if isinstance(info, kinds.DictType):
        return {_new(): "1"} if isinstance(_plain(info.value_type), kinds.StrType) else None
    if isinstance(info, kinds.IntType):
        return next(_numbers) % 60_000 + 1
    return _new() if isinstance(info, kinds.StrType) else None


def _new():
    return f"{next(_numbers):x}"


def weight(value):
    """Return the bytes of a value and of all referenced values, each once, without types and functions."""
    seen, left, total = set(), [value], 0
    while left:
        one = left.pop()
        if id(one) in seen or isinstance(one, type) or callable(one):
            continue
        seen.add(id(one))
        total += getsizeof(one)
        if isinstance(one, Mapping):
            left += [*one, *one.values()]
        elif isinstance(one, (list, tuple, set, frozenset)):
            left += one
        slots = getattr(type(one), "__slots__", ())
        left += [getattr(one, name) for name in slots if name != "__weakref__" and hasattr(one, name)]
        left += [getattr(one, name) for name in getattr(one, "__struct_fields__", ())]
        left += getattr(one, "__dict__", {}).values()
    return total


def cluster(nodes):
    """Return an index with this many equal nodes."""
    index = ClusterIndex()
    for number in range(nodes):
        status = NodeStatus(allocatable={"cpu": "4", "memory": "8Gi", "pods": "110"})
        index.apply("ADDED", Node(metadata=ObjectMeta(name=f"node-{number}", labels={"zone": "a"}), status=status))
    return index


def objects(api_version, kind, path, size, *, bound=False):
    """Return two decoded hostile objects, and the length of their JSON."""
    of, node = TypeMeta(api_version=api_version, kind=kind), "node-1" if bound else None
    written = [
        hostile(api_version, kind, path, size, **({} if path[0] == "metadata" else {"name": name}), node=node)
        for name in ("a", "b")
    ]
    return [decode_object(each, of) for each in written], sum(map(len, written))


def measured(index, made):
    """Return the added bytes of the index with the objects, and after their deletion."""
    before = weight(index)
    for each in made:
        index.apply("ADDED", each)
    held = weight(index) - before
    for each in made:
        index.apply("DELETED", each)
    return held, weight(index) - before


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--nodes", type=int, default=500)
    options.add_argument("--bytes", type=int, default=16_384)
    options.add_argument("--kind")
    asked = options.parse_args()
    index, rows = cluster(asked.nodes), []
    for api_version, kind in KINDS:
        for path in fields(api_version, kind) if asked.kind in {None, kind} else ():
            for bound in (False, True) if kind == "Pod" else (False,):
                made, size = objects(api_version, kind, path, asked.bytes, bound=bound)
                held, left = measured(index, made)
                rows.append((held / size, left, f"{kind}{' on a node' * bound}: {'.'.join(map(str, path))}"))
    print("MiB held per MiB of objects | bytes left afterwards | field")
    for held, left, field in sorted(rows, reverse=True)[:20]:
        print(f"{held:6.1f} {left:8} {field}")
    print(f"fields: {len(rows)}, most left by any: {max(left for _, left, _ in rows)} bytes")


if __name__ == "__main__":
    main()
