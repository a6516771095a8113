"""Attach limits of volumes hold for all pods on a node together, whatever else tells the pods apart."""

import random

import pytest
from brute_force import World

from conformance.placing.ours import simulated
from conformance.placing.worlds import (
    HOSTNAME,
    ZONE,
    controller,
    labelled,
    named_by,
    node,
    on,
    pod,
    spread,
    storage_class,
    volume_in,
)

DISKS, FILES = "csi.example.com", "files.example.com"


def csi_node(name, **limits):
    drivers = {"disks": DISKS, "files": FILES}
    found = [{"name": drivers[each], "nodeID": name, "allocatable": {"count": most}} for each, most in limits.items()]
    return {"metadata": {"name": name}, "spec": {"drivers": found}}


def world(nodes, limits):
    return {
        "nodes": nodes,
        "pods": [],
        "persistentVolumes": [],
        "persistentVolumeClaims": [],
        "storageClasses": [
            storage_class("late", "WaitForFirstConsumer"),
            storage_class("files", "WaitForFirstConsumer") | {"provisioner": FILES},
        ],
        "csiNodes": [csi_node(name, **most) for name, most in limits.items()],
        "ordinals": [],
        "ordered": False,
        "manifests": [],
    }


def claim(of, name, storage, pinned, *, local):
    """A claim: bound to a volume in the zone ``pinned``, or not yet bound."""
    found = {"metadata": {"name": name, "namespace": "shop"}, "status": {"phase": "Bound" if pinned else "Pending"}}
    found["spec"] = {"accessModes": ["ReadWriteOnce"], "storageClassName": storage}
    if pinned:
        found["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        found["spec"]["volumeName"] = f"pv-{name}"
        volume = volume_in(pinned, f"pv-{name}", name)
        volume["spec"]["csi"]["driver"] = DISKS if storage == "late" else FILES
        if local:
            volume["spec"]["local"] = {"path": volume["spec"].pop("csi")["volumeHandle"]}
        of["persistentVolumes"].append(volume)
    of["persistentVolumeClaims"].append(found)
    return {"name": name.partition("-")[0], "persistentVolumeClaim": {"claimName": name}}


def stateful_set(of, name, pins, template, *, storage=("late",), runs=(), local=()):
    """Add a StatefulSet. ``pins`` has the zone of each pod's volumes, or nothing."""
    for number, zone in enumerate(pins):
        made = labelled(template, f"{name}-{number}", **named_by(name, number))
        volumes = [claim(of, f"{each}-{name}-{number}", each, zone, local=number in local) for each in storage]
        made = {**made, "spec": {**made["spec"], "volumes": volumes}}
        if number < len(runs):
            of["pods"].append(on({"metadata": {"name": runs[number]}}, made, "StatefulSet", name))
        else:
            of["ordinals"].append(made)
    templates = [{"metadata": {"name": each}, "spec": {"storageClassName": each}} for each in storage]
    policy = {} if of["ordered"] else {"podManagementPolicy": "Parallel"}
    of["manifests"].append(
        controller("StatefulSet", name, template, len(pins), volumeClaimTemplates=templates, **policy)
    )


def both(of):
    """The fewest and the most pods placed: ours, and by trying every order."""
    said = simulated(of)
    assert not said["why"]
    ends = [len(end) for end in World(of).outcomes()]
    return (said["fewest"], said["most"]), (min(ends), max(ends))


def two_nodes(**limits):
    return world([node("a0", "a"), node("b0", "b")], dict.fromkeys(("a0", "b0"), limits))


WEB = pod("w", {"app": "web"})


@pytest.mark.parametrize(("most", "placed"), [(1, 2), (2, 3)])
def test_of_pinned_pods_and_others(most, placed):
    of = two_nodes(disks=most)
    stateful_set(of, "web", ["a", "", ""], WEB)
    ours, tried = both(of)
    assert ours == tried
    assert tried[1] == placed


def test_of_pods_of_several_workloads():
    of = two_nodes(disks=1)
    stateful_set(of, "web", ["", ""], WEB)
    stateful_set(of, "db", [""], pod("w", {"app": "db"}))
    assert both(of) == ((2, 2), (2, 2))


def test_each_driver_has_its_own_limit():
    of = two_nodes(disks=1, files=1)
    stateful_set(of, "web", ["", ""], WEB)
    stateful_set(of, "db", ["", ""], pod("w", {"app": "db"}), storage=("files",))
    assert both(of) == ((4, 4), (4, 4))


def test_local_volumes_count_for_no_limit():
    of = two_nodes(disks=1)
    stateful_set(of, "web", ["a", "", ""], WEB, local={0})
    assert both(of) == ((3, 3), (3, 3))


def drawn(number):
    rng = random.Random(f"attach/{number}")  # noqa: S311 no secret
    names = [f"{zone}{each}" for zone in "abc"[: rng.randint(1, 3)] for each in range(rng.randint(1, 2))]
    limits = {
        name: {driver: rng.randint(0, 2) for driver in ("disks", "files") if rng.random() < 0.7} for name in names
    }
    of = world([node(name, name[0], cpu=rng.choice(["16", "1"])) for name in names], limits)
    of["ordered"] = rng.random() < 0.4
    for name in ("web",) if of["ordered"] else rng.choice([("web",), ("web", "db")]):
        given = spread(rng, (), (ZONE,), (HOSTNAME,), labels={"app": name})
        template = pod("w", {"app": name}, given, cpu=rng.choice(["100m", "600m"]))
        pins = [rng.choice(names)[0] if rng.random() < 0.4 else "" for _ in range(rng.randint(2, 3))]
        runs = [rng.choice(names)] if pins[0] == "" and rng.random() < 0.3 else []
        storage = rng.choice([("late",), ("late",), ("files",), ("late", "files")])
        stateful_set(of, name, pins, template, storage=storage, runs=runs, local={rng.randint(0, 9)})
    return of


@pytest.mark.sampled
@pytest.mark.parametrize("number", range(60))
def test_random_worlds(number):
    ours, tried = both(drawn(number))
    assert ours == tried
