"""Every order in which the pods of a small group find nodes, by trying them all: quick, and without the engine's code.

Reads the fields of pods as the API has them, as far as groups have any: hard constraints over zones and nodes that
count the whole group, anti-affinity within a shard, zones that a shard is pinned to.
"""

from collections import Counter, defaultdict
from fractions import Fraction

import msgspec

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HOST = "kubernetes.io/hostname"


class Orders:
    """A state has the nodes of each shard's pods, sorted; ``hosts`` are names with their zones, None for no label.

    ``nameless`` nodes have no hostname label.

    With ``alike``, all shards have equal fields, all zones as many nodes, and a turn goes by no numbers of shards:
    states that differ by names only are one.
    """

    def __init__(self, hosts, pods, shards, *, alike=False, nameless=()):
        self.alike, self.nameless = alike, frozenset(nameless)
        self.zones = hosts
        self.pods = pods
        self.shards = [read(msgspec.to_builtins(each)) for each in shards]
        self.start = ((),) * len(shards)

    def ends(self, turn=None, *, even=False):
        """How probable each end is: each step takes a shard that has a node, and one of its nodes.

        With a ``turn`` it says whose pod comes next; ``even`` takes the emptiest nodes, of these those in the emptiest
        zones.
        """
        layer, ends = {self.start: Fraction(1)}, {}
        while layer:
            following = defaultdict(Fraction)
            for state, chance in layer.items():
                numbers = range(len(state)) if turn is None else turn(state, self.pods)
                moves = {number: found for number in numbers if (found := self.open(state, number))}
                if even:
                    moves = {number: self.emptiest(state, found) for number, found in moves.items()}
                if not moves:
                    ends[state] = chance
                for number, found in moves.items():
                    for host in found:
                        after = (*state[:number], tuple(sorted((*state[number], host))), *state[number + 1 :])
                        following[self.first_of(after)] += chance / len(moves) / len(found)
            layer = following
        return ends

    def first_of(self, state):
        """One state for many that differ by names: not for all, which costs time and no truth."""
        if not self.alike:
            return state
        signs = {host: [] for host in self.zones}
        for each in state:
            for host in each:
                signs[host].append(len(each))
        of_zones = {zone: [] for zone in self.zones.values()}
        for host, zone in self.zones.items():
            of_zones[zone].append((sorted(signs[host]), host))
        by_sign = sorted((sorted(each) for each in of_zones.values()), key=signs_of)
        names = [host for zone in sorted(of_zones) for host in self.zones if self.zones[host] == zone]
        renamed = dict(zip((host for zone in by_sign for _, host in zone), names, strict=True))
        return tuple(sorted(tuple(sorted(renamed[host] for host in each)) for each in state))

    def stuck(self, turn=None, *, even=False):
        """How probable an end with a pod missing is."""
        wanted = self.pods * len(self.start)
        ends = self.ends(turn, even=even).items()
        return sum(chance for state, chance in ends if sum(map(len, state)) < wanted)

    def emptiest(self, state, found):
        hosts = Counter(host for each in state for host in each)
        zones = Counter(self.zones[host] for each in state for host in each)
        found = [each for each in found if hosts[each] == min(hosts[one] for one in found)]
        return [each for each in found if zones[self.zones[each]] == min(zones[self.zones[one]] for one in found)]

    def open(self, state, number):
        if len(state[number]) == self.pods:
            return []
        constraints, apart, pinned = self.shards[number]
        held = [host for each in state for host in each]
        return [
            host
            for host, zone in self.zones.items()
            if (pinned is None or zone in pinned)
            and not (HOST in apart and host in state[number] and host not in self.nameless)
            and not (len(apart) > (HOST in apart) and zone and zone in {self.zones[other] for other in state[number]})
            and self.has_keys(host, constraints)
            and all(self.admits(each, host, held, pinned, constraints) for each in constraints)
        ]

    def has_keys(self, host, constraints):
        """Whether the node has the keys of all hard constraints."""
        return all(
            host not in self.nameless if each["topologyKey"] == HOST else self.zones[host] for each in constraints
        )

    def admits(self, constraint, host, held, pinned, constraints):
        """Only nodes that the pod may use, and that have the keys of all its hard constraints, count."""
        on_hosts = constraint["topologyKey"] == HOST
        counting = {
            each: zone
            for each, zone in self.zones.items()
            if (pinned is None or zone in pinned) and self.has_keys(each, constraints)
        }
        counts = Counter({(each if on_hosts else zone): 0 for each, zone in counting.items()})
        for each in held:
            if each in counting:
                counts[each if on_hosts else self.zones[each]] += 1
        lowest = 0 if len(counts) < constraint.get("minDomains", 1) else min(counts.values())
        return counts[host if on_hosts else self.zones[host]] + 1 - lowest <= constraint["maxSkew"]

    def most(self, state, key):
        """The pods of the fullest domain."""
        return max(Counter(host if key == HOST else self.zones[host] for each in state for host in each).values())


def signs_of(zone):
    """What a zone's nodes hold, without their names."""
    return [sign for sign, _ in zone]


def ordinal_by_ordinal(state, pods):
    """The first pod of each shard, then the second of each."""
    lacking = [number for number, each in enumerate(state) if len(each) < pods]
    return [min(lacking, key=lambda number: len(state[number]))] if lacking else []


def fewest_first(state, pods):
    """The first pod of each shard, the shards in any order, then the second of each, in any order again."""
    fewest = min(map(len, state))
    return [number for number, each in enumerate(state) if len(each) == fewest < pods]


def shard_by_shard(state, pods):
    """All pods of the first shard, then those of the second."""
    return [number for number, each in enumerate(state) if len(each) < pods][:1]


def read(fields):
    affinity = fields["affinity"] or {}
    apart = [each["topologyKey"] for each in affinity.get("podAntiAffinity", {}).get(REQUIRED, ())]
    nodes = affinity.get("nodeAffinity", {}).get(REQUIRED)
    pinned = None if nodes is None else nodes["nodeSelectorTerms"][0]["matchExpressions"][0]["values"]
    hard = [each for each in fields["constraints"] if each["whenUnsatisfiable"] == "DoNotSchedule"]
    return hard, apart, pinned


def hosts_of(text):
    """``a: a0=0 a1=0 | b: b0=0`` as nodes with their zones."""
    parts = (part.rpartition(":") for part in text.split("|"))
    return {entry.split("=")[0]: zone.strip() or None for zone, _, written in parts for entry in written.split()}
