"""Groups beside the scheduler's own filters: python -m conformance.placing.groups ORACLE

Every plan that `webhook.core.groups` derives for the shapes below is given to `oracle place`, which places the pods with
the real plugins: in every order where those are few, else in 200 orders. All of them have to place all pods. Exit code
1 for a plan with which some order does not.

    --record     the answers that `make test` compares without Go
"""

import sys
import time
from fractions import Fraction
from pathlib import Path

import msgspec

from conformance.claims.referee import Recording, Referee, write_cases
from conformance.placing.ours import index_of
from conformance.placing.worlds import HOSTNAME, ZONE, node, pod
from webhook.core.api.types import LabelSelector, Pod
from webhook.core.api.version import RECORDED as RELEASE
from webhook.core.apiserver.admission_plugins import as_created
from webhook.core.context import Context
from webhook.core.groups.caps import Cap
from webhook.core.groups.derive import derive_plan
from webhook.core.groups.group import with_fields
from webhook.core.groups.group import Group, PlanInput, Shard
from webhook.core.placement.placement_verdict import PlacementVerdict
from webhook.core.policy.policy import Policy

RECORDED = Path(__file__).parent / "groups.jsonl.gz"
STATES, ORDERS = 4_000, 200
BARE = "bare"  # the node without the label
THIRD = Cap(topology_key=HOSTNAME, amount=Fraction(1, 3), of_pods=True, strict=True)
HALF = Cap(topology_key=ZONE, amount=Fraction(1, 2), of_pods=True, strict=True)
EVEN = Cap(topology_key=ZONE, amount=Fraction(1, 2), of_pods=True)
FIVE = Cap(topology_key=HOSTNAME, amount=Fraction(5))
EIGHT = Cap(topology_key=ZONE, amount=Fraction(8))

THREE = Cap(topology_key=ZONE, amount=Fraction(3))
TWO = Cap(topology_key=HOSTNAME, amount=Fraction(2))

# Shards, pods of each, nodes of each zone, caps, the key that a shard's pods do not share, and the label that one node
# more lacks.
SHAPES = [
    *((shards, 2, nodes, (THIRD, HALF), ZONE) for shards in (3, 4, 5, 6, 9, 10, 12) for nodes in ((2, 2, 2), (3, 3, 3), (4, 4, 4))),
    *((shards, 2, nodes, (THIRD, HALF), ZONE) for shards in (4, 6, 9) for nodes in ((2, 3, 4), (3, 3, 3, 3), (2, 2, 2, 2, 2))),
    *((shards, 2, (3, 3), (THIRD, EVEN), ZONE) for shards in (4, 6, 9)),
    *((shards, 2, (nodes,), (THIRD,), HOSTNAME) for shards, nodes in ((3, 6), (6, 8), (9, 6), (9, 8))),
    *((shards, 3, nodes, (THIRD, HALF), ZONE) for shards in (3, 6) for nodes in ((3, 3, 3), (2, 2, 2, 2))),
    (9, 2, (3, 3, 3), (FIVE, EIGHT), ZONE),
    (9, 2, (4, 4, 4), (FIVE, EIGHT), ZONE),
    (9, 2, (2, 2, 2), (FIVE, EIGHT), ZONE),
    *((3, 2, nodes, caps, ZONE, ZONE) for nodes in ((2, 2), (2, 2, 2)) for caps in ((), (THREE,), (THREE, TWO), (EVEN,))),
    (3, 2, (2, 2, 2), (THIRD, HALF), ZONE, ZONE),
    *((shards, 2, (4,), caps, HOSTNAME, HOSTNAME) for shards in (2, 3) for caps in ((), (TWO,))),
    (3, 2, (2, 2, 2), (THIRD, HALF), ZONE, HOSTNAME),
]


def name_of(shape):
    shards, pods, nodes, caps, apart, *lacking = shape
    told = ", ".join(f"{each.topology_key.rpartition('/')[2]} {each.text}" for each in caps)
    return f"{shards} x {pods} on {' '.join(map(str, nodes))}: {told}; no shared {apart.rpartition('/')[2]}" + "".join(f"; a node without {key.rpartition('/')[2]}" for key in lacking)


def evades_on(shape):
    """The node that no pod may get; pods that share no zone share no node either, whatever label it lacks."""
    return BARE if shape[4] in shape[5:] else None


def planned(shape):
    """The world with the pods of the derived plan; None where nothing was found that fits for certain."""
    shards, pods, nodes, caps, apart, *lacking = shape
    cluster = {"nodes": [node(f"{zone}{each}", zone) for zone, many in zip("abcdef", nodes) for each in range(many)], "pods": []}
    for key in lacking:
        cluster["nodes"].append(node(BARE, "a"))
        del cluster["nodes"][-1]["metadata"]["labels"][key]
    group = Group(
        name="cache", namespace="shop", selector=LabelSelector(match_labels={"app": "redis"}), shard_label="shard",
        never_share=(apart,), shards=shards, pods_per_shard=pods, plan_for=shards, caps=caps,
    )  # fmt: skip
    made = [pod(f"redis-{number}", {"app": "redis", "shard": str(number)}) for number in range(shards)]
    decoded = [as_created(msgspec.convert(each, Pod), RELEASE) for each in made]
    of = [Shard(name=f"redis-{number}", value=str(number), pod=each) for number, each in enumerate(decoded)]
    within = Context(policy=Policy(), version=RELEASE, index=index_of(cluster))
    found = derive_plan(PlanInput(group=group, shards=tuple(of), context=within)).plan
    if found is None or found.verdict is not PlacementVerdict.FITS:
        return None
    ordinals = []
    for manifest, shard in zip(made, of):
        spec = msgspec.to_builtins(with_fields(shard.pod, found.fields[shard.name]).pod_spec)
        given = {field: spec[field] for field in ("topologySpreadConstraints", "affinity") if field in spec}
        for number in range(pods):
            meta = manifest["metadata"] | {"name": f"{shard.name}-{number}"}
            ordinals.append(manifest | {"metadata": meta, "spec": manifest["spec"] | given})
    return {"id": name_of(shape), **cluster, "ordinals": ordinals, "ordered": False, "states": STATES, "samples": ORDERS, "seed": 1}


def is_kept(world, referee, evades=None):
    """Whether every order that was tried places all pods, none on the node where caps count none, and whether those were all orders."""
    said = referee.place(world)
    return said["fewest"] == said["most"] == len(world["ordinals"]) and evades not in said["first"], said["exact"]


def main():
    oracle, *options = sys.argv[1:]
    began, wrong, exact, none, cases = time.monotonic(), [], 0, [], []
    with Referee(oracle) as referee:
        for shape in SHAPES:
            world = planned(shape)
            if world is None:
                none.append(name_of(shape))
                continue
            recording = Recording(referee)
            kept, every = is_kept(world, recording, evades_on(shape))
            cases.append(({"id": world["id"]}, recording.answers))
            exact += every
            wrong += [] if kept else [world["id"]]
    for each in wrong:
        print(f"some order does not place all pods: {each}")
    sampled = len(cases) - exact
    print(f"{len(cases)} plans of {len(SHAPES)} groups: {len(wrong)} get stuck; every order of {exact}, {ORDERS} orders of {sampled}; {time.monotonic() - began:.0f} s")
    print("\n".join(f"no plan: {each}" for each in none))
    if "--record" in options:
        write_cases(RECORDED, cases)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
