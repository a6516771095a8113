"""Which workloads count each other's pods, and under which terms: asked of the scheduler's filters, one constraint at a time."""

import json
import re
from typing import NamedTuple

from conformance.claims.controller import constraints_of, pod_of
from conformance.claims.worlds import HOSTNAME, OLD_HASH

RULE = "constraints-differ-in-group"
COUNTED_WITH = re.compile(r"constraints differ from (.+?)(?: and (\d+) more)?: (.+)")
BOTH_SIDES = re.compile(r"(.+) here, (.+) there")
ONE_SIDE = re.compile(r"(.+) only (here|there)")
FIELDS = {"maxSkew": 2, "minDomains": 3, "nodeAffinityPolicy": 4, "nodeTaintsPolicy": 5}


class Terms(NamedTuple):
    """What a constraint asks for, in words; but for whom it counts."""

    key: str
    action: str
    max_skew: str
    min_domains: str
    affinity: str
    taints: str


def terms(constraint):
    soft = constraint.get("whenUnsatisfiable") == "ScheduleAnyway"
    return Terms(
        constraint["topologyKey"],
        "soft" if soft else "hard",
        str(constraint["maxSkew"]),
        str(constraint.get("minDomains", 1)),
        constraint.get("nodeAffinityPolicy", "Honor"),
        constraint.get("nodeTaintsPolicy", "Ignore"),
    )


def group(world):
    """Name -> the terms here and those there, of each workload that is counted together with the world's.

    Without those of the same controller, and those whose constraints differ in nothing but whom they count.
    """
    found, mine = {}, set(map(terms, constraints_of(world.manifest)))
    for other in others(world):
        if not one_controller(world.manifest, other) and set(map(terms, constraints_of(other))) != mine:
            here = {terms(each) for each in constraints_of(world.manifest) if is_counted(world, each, world.manifest, other)}
            there = {terms(each) for each in constraints_of(other) if is_counted(world, each, other, world.manifest)}
            if here and there:
                found[other["metadata"]["name"]] = here, there
    return found


def others(world):
    return [each for each in world.world["objects"] if each["kind"] in {"Deployment", "StatefulSet"}]


def has_late_keys(world):
    """Whether labels decide about a constraint that the pods may get later; of these the rule says nothing."""
    return any(each.get("matchLabelKeys") for one in (world.manifest, *others(world)) for each in constraints_of(one))


def one_controller(*workloads):
    above = [[each["name"] for each in one["metadata"].get("ownerReferences", ()) if each.get("controller")] for one in workloads]
    return bool(above[0]) and above[0] == above[1]


def is_counted(world, constraint, mine, other):
    """Whether two pods of the other workload keep the next of mine out of their domain, if nothing but this constraint is hard."""
    key = constraint["topologyKey"]
    lab = {name: constraint[name] for name in ("labelSelector", "matchLabelKeys") if name in constraint}
    lab |= {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
    room = {"cpu": "16", "memory": "32Gi", "pods": "110"}
    nodes = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {HOSTNAME: name, key: name}}, "status": {"allocatable": room}} for name in "ab"]
    pods = [bare(made_of(world, other, f"other-{number}"), nodeName="a") for number in range(2)]
    template = bare(made_of(world, mine, "next"))
    template["spec"]["topologySpreadConstraints"] = [lab]
    namespace = {"metadata": {"name": mine["metadata"]["namespace"]}}
    question = {"id": "lab", "nodes": nodes, "namespaces": [namespace], "pods": pods, "template": template, "replicas": 1}
    return world.referee.place(question)["first"] == ["b"]


def made_of(world, manifest, name):
    """A pod of one of the workloads; no two of them share the hash of a revision."""
    is_others = manifest is not world.manifest and manifest["kind"] == "Deployment"
    return pod_of(manifest, name, **({"labels": {"pod-template-hash": OLD_HASH}} if is_others else {}))


def bare(pod, **spec):
    """The pod with its labels, and little else."""
    meta = {**pod["metadata"], "uid": pod["metadata"]["name"]}
    return {**pod, "metadata": meta, "spec": {"containers": [{"name": "c", "image": "x"}], **spec}, "status": {"phase": "Running"}}


def differ(world, finding):
    """The workload that it names is counted with this one, so many others are, and the terms stand where it says."""
    found = COUNTED_WITH.fullmatch(finding.summary)
    if found is None:
        yield f"not understood: {finding.summary}"
        return
    name, more, words = of_whom(finding), int(found[2] or 0), found[3]
    differing = {name: (here, there) for name, (here, there) in group(world).items() if here != there}
    if name not in differing:
        yield f"{name} is not counted with it under other terms"
        return
    if len(differing) < more + 1 or (len(differing) > more + 1 and not has_late_keys(world)):
        yield f"{len(differing)} workloads are counted with it under other terms, it says {more + 1}"
    here, there = differing[name]
    if not is_true(words, here - there, there - here):
        yield f"of {sorted(here)} here and {sorted(there)} there it says {words}"
    after = world.examine(made_alike(world, name)).findings if has_same_keys(here, there) else ()
    yield from (f"alike, the rule still says: {each.finding.summary}" for each in after if each.finding.rule == RULE and of_whom(each.finding) == name)


def is_true(words, here, there):
    """Whether this is a difference between terms that stand only here and terms that stand only there."""
    if (one := ONE_SIDE.fullmatch(words)) is not None:
        only, none = (here, there) if one[2] == "here" else (there, here)
        return not none and one[1] in named(only)
    both = BOTH_SIDES.fullmatch(words)
    if both is None:
        return False
    if (both[1], both[2]) in zip(named(here), named(there)) and both[1] != both[2]:
        return True
    key, *field = both[1].split(" ")
    place, value = (FIELDS.get(field[0], 1), field[-1]) if field else (0, None)
    return any(mine.key == other.key and short(mine.key) == key and (mine[place], other[place]) == (value, both[2]) for mine in here for other in there)


def named(several):
    """Their keys as they are called, and in full."""
    return [" and ".join(sorted({name(each.key) for each in several})) for name in (short, str, cut)]


def cut(key):
    """A long key, as messages have it."""
    return key if len(key) <= 32 else f"{key[:31]}…"


def short(key):
    return key.rpartition("/")[2]


def of_whom(finding):
    """The name of the other workload, without its kind."""
    found = COUNTED_WITH.fullmatch(finding.summary)
    return found and found[1].rpartition(" ")[2]


def has_same_keys(here, there):
    """Whether each key has one constraint on both sides, so that one can be made like the other."""
    return sorted(each.key for each in here) == sorted({each.key for each in there}) == sorted(each.key for each in there)


def made_alike(world, name):
    """The manifest with the other's terms for each key that counts both."""
    other = next(each for each in others(world) if each["metadata"]["name"] == name)
    theirs = {each["topologyKey"]: each for each in constraints_of(other) if is_counted(world, each, other, world.manifest)}
    copy = json.loads(json.dumps(world.manifest))
    for each in constraints_of(copy):
        if is_counted(world, each, world.manifest, other):
            for field in ("maxSkew", "whenUnsatisfiable", "minDomains", "nodeAffinityPolicy", "nodeTaintsPolicy"):
                each.pop(field, None)
            each.update({field: value for field, value in theirs[each["topologyKey"]].items() if field not in {"labelSelector", "matchLabelKeys"}})
    return copy


def unspoken(world):
    """What the rule leaves out, although another workload is counted with this one under other terms; None for nothing.

    Only where no label decides that is added later.
    """
    spoken = {each.rule for each in (*world.findings, *world.examined.not_evaluated)}
    if RULE in spoken or has_late_keys(world) or world.manifest["kind"] == "Pod":
        return None
    differing = [name for name, (here, there) in group(world).items() if here != there]
    return f"counted with {' and '.join(differing)} under other terms" if differing else None
