"""Every order in which the pods of a small world (`conformance.placing.worlds`) find nodes, by trying them all.

Written from Kubernetes' documentation of its filters, to judge `webhook.core.placement` by: it shares no code with it,
asks each filter anew for each node, and takes no two states for one but those with the same pods on the same nodes.
"""

from collections import Counter
from fractions import Fraction

ZONE = "topology.kubernetes.io/zone"
CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
MILLI = {"m": 1, "": 1000}


class World:
    """A state is a sorted tuple of (node, kind of pod), for the pods that were placed or may still be deleted."""

    def __init__(self, world):
        self.nodes = {each["metadata"]["name"]: each for each in world["nodes"]}
        self.rollout = world.get("rollout")
        leaving = set() if self.rollout is None else {*self.rollout["leaving"]}
        names = {f"shop/{each['metadata']['name']}": each for each in world["pods"]}
        self.staying = [(each["spec"]["nodeName"], each) for name, each in names.items() if name not in leaving]
        self.ordered = world.get("ordered", False)
        self.kinds, self.wanted = [world.get("template")], [world.get("replicas")]
        if "ordinals" in world:
            told = [(each["metadata"]["labels"], each["spec"]) for each in world["ordinals"]]
            first = [number for number, each in enumerate(told) if self.ordered or told.index(each) == number]
            self.kinds = [world["ordinals"][number] for number in first]
            self.wanted = [1 if self.ordered else told.count(told[number]) for number in first]
        self.start = ()
        if leaving:
            old = [names[name] for name in leaving]
            self.kinds, self.wanted = [*self.kinds, old[0]], [*self.wanted, 0]
            self.start = tuple(sorted((each["spec"]["nodeName"], 1) for each in old))
        self.volumes = {each["metadata"]["name"]: each for each in world.get("persistentVolumes", ())}
        self.claims = {each["metadata"]["name"]: each for each in world.get("persistentVolumeClaims", ())}
        self.classes = {each["metadata"]["name"]: each for each in world.get("storageClasses", ())}
        self.attachable = {
            (each["metadata"]["name"], driver["name"]): driver["allocatable"]["count"]
            for each in world.get("csiNodes", ())
            for driver in each["spec"]["drivers"]
        }
        self.known = {}

    def outcomes(self, state=None):
        """How probable each terminal state is: each step takes a pod that has a node, and one of its nodes."""
        state = self.start if state is None else state
        if state not in self.known:
            chances, moves = Counter(), self.moves(state)
            for following in moves.values():
                for after in following:
                    for end, chance in self.outcomes(after).items():
                        chances[end] += chance / len(moves) / len(following)
            self.known[state] = chances if moves else {state: Fraction(1)}
        return self.known[state]

    def moves(self, state):
        """What may happen next to each pod: the states that follow."""
        found = {}
        for kind, waiting in self.waiting(state):
            after = [tuple(sorted((*state, (name, kind)))) for name in self.nodes if self.admits(name, kind, state)]
            if after:
                found |= {(kind, number): after for number in range(waiting)}
        if self.rollout is not None and self.may_delete(state):
            found["deletion"] = [
                (*state[:number], *state[number + 1 :]) for number, (_, kind) in enumerate(state) if kind == 1
            ]
        return found

    def waiting(self, state):
        placed = Counter(kind for _, kind in state)
        missing = [(kind, wanted - placed[kind]) for kind, wanted in enumerate(self.wanted) if wanted > placed[kind]]
        if self.rollout is not None and missing:
            room = self.wanted[0] + self.rollout["surge"] - len(state)
            return [(0, min(missing[0][1], room))] if room > 0 else []
        return missing[:1] if self.ordered else missing

    def may_delete(self, state):
        old = sum(kind == 1 for _, kind in state)
        return old and len(state) - 1 >= self.wanted[0] - self.rollout["unavailable"]

    def admits(self, name, kind, state):
        node, pod = self.nodes[name], self.kinds[kind]
        there = [*self.staying, *((place, self.kinds[other]) for place, other in state)]
        return (
            tolerated(node, pod)
            and selected(node, pod)
            and self.has_volumes(node, pod)
            and self.attaches(name, pod, [each for place, each in there if place == name])
            and has_room(node, pod, [each for place, each in there if place == name])
            and self.neighbours_fit(node, pod, there)
            and all(self.spread_fits(node, pod, each, there) for each in constraints(pod))
        )

    def has_volumes(self, node, pod):
        names = [each["persistentVolumeClaim"]["claimName"] for each in pod["spec"].get("volumes", ())]
        return all(name in self.claims and self.reaches(node, self.claims[name]) for name in names)

    def reaches(self, node, claim):
        if "volumeName" in claim["spec"]:
            wanted = self.volumes[claim["spec"]["volumeName"]]["spec"]["nodeAffinity"]["required"]
            return zone_of(node) in wanted["nodeSelectorTerms"][0]["matchExpressions"][0]["values"]
        found = self.classes[claim["spec"]["storageClassName"]]
        within = found.get("allowedTopologies")
        known = within is None or zone_of(node) in within[0]["matchLabelExpressions"][0]["values"]
        return found["volumeBindingMode"] == "WaitForFirstConsumer" and known

    def attaches(self, name, pod, there):
        every = {found for each in (*there, pod) for found in self.attached(each)}
        used = Counter(driver for driver, _ in every)
        return all(
            used[driver] <= self.attachable.get((name, driver), used[driver]) for driver, _ in self.attached(pod)
        )

    def attached(self, pod):
        """The driver and the volume of each claim of the pod, apart from local volumes."""
        for each in pod["spec"].get("volumes", ()):
            claim = self.claims[each["persistentVolumeClaim"]["claimName"]]
            if "volumeName" not in claim["spec"]:
                provisioner = self.classes[claim["spec"]["storageClassName"]]["provisioner"]
                yield provisioner, claim["metadata"]["name"]
            elif "csi" in (spec := self.volumes[claim["spec"]["volumeName"]]["spec"]):
                yield spec["csi"]["driver"], spec["csi"]["volumeHandle"]

    def neighbours_fit(self, node, pod, there):
        for place, other in there:
            for term in terms(pod, "podAntiAffinity"):
                if matches(term, other) and together(node, self.nodes[place], term):
                    return False
            for term in terms(other, "podAntiAffinity"):
                if matches(term, pod) and together(node, self.nodes[place], term):
                    return False
        wanted = terms(pod, "podAffinity")
        if not all(term["topologyKey"] in labels_of(node) for term in wanted):
            return False
        friends = [self.nodes[place] for place, other in there if all(matches(term, other) for term in wanted)]
        first = not any(term["topologyKey"] in labels_of(friend) for term in wanted for friend in friends)
        if first and all(matches(term, pod) for term in wanted):
            return True
        return all(any(together(node, friend, term) for friend in friends) for term in wanted)

    def spread_fits(self, node, pod, constraint, there):
        key = constraint["topologyKey"]
        if key not in labels_of(node):
            return False
        counts = Counter({labels_of(each)[key]: 0 for each in self.nodes.values() if counted(each, pod, constraint)})
        for place, other in there:
            home = self.nodes[place]
            if counted(home, pod, constraint) and counts_pod(constraint, pod, other):
                counts[labels_of(home)[key]] += 1
        lowest = min(counts.values(), default=2**31 - 1)
        if len(counts) < constraint.get("minDomains", 1):
            lowest = 0
        own = counts_pod(constraint, pod, pod)
        return counts[labels_of(node)[key]] + own - lowest <= constraint["maxSkew"]


def labels_of(node):
    return node["metadata"]["labels"]


def zone_of(node):
    return labels_of(node)[ZONE]


def constraints(pod):
    return pod["spec"].get("topologySpreadConstraints", ())


def terms(pod, kind):
    return pod["spec"].get("affinity", {}).get(kind, {}).get("requiredDuringSchedulingIgnoredDuringExecution", ())


def matches(selecting, pod):
    wanted, own = selecting["labelSelector"]["matchLabels"], pod["metadata"]["labels"]
    return wanted.items() <= own.items()


def counts_pod(constraint, pod, other):
    """A key of matchLabelKeys has to have the incoming pod's value."""
    keys, own = constraint.get("matchLabelKeys", ()), pod["metadata"]["labels"]
    return matches(constraint, other) and all(other["metadata"]["labels"].get(key) == own[key] for key in keys)


def together(node, other, term):
    key = term["topologyKey"]
    return key in labels_of(node) and labels_of(node)[key] == labels_of(other).get(key)


def tolerated(node, pod):
    return tolerates(pod, [*node["spec"].get("taints", ()), *([CORDON] if node["spec"].get("unschedulable") else ())])


def tolerates(pod, taints):
    return all(any(each["key"] == taint["key"] for each in pod["spec"].get("tolerations", ())) for taint in taints)


def selected(node, pod):
    return pod["spec"].get("nodeSelector", {}).items() <= labels_of(node).items()


def counted(node, pod, constraint):
    """Whether the node's domain counts for the constraint."""
    has_keys = all(each["topologyKey"] in labels_of(node) for each in constraints(pod))
    wanted = constraint.get("nodeAffinityPolicy", "Honor") == "Ignore" or selected(node, pod)
    # A cordon counts as the taint that Kubernetes adds to it, and not without it.
    clean = constraint.get("nodeTaintsPolicy", "Ignore") == "Ignore" or tolerates(pod, node["spec"].get("taints", ()))
    return has_keys and wanted and clean


def has_room(node, pod, there):
    room = node["status"]["allocatable"]
    cpu = sum(map(cpu_of, there)) + cpu_of(pod)
    free_ports = not (ports_of(pod) and any(map(ports_of, there)))
    return len(there) < int(room["pods"]) and cpu <= milli(room["cpu"]) and free_ports


def cpu_of(pod):
    return milli(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])


def ports_of(pod):
    return pod["spec"]["containers"][0].get("ports")


def milli(written):
    unit = written.lstrip("0123456789")
    return int(written.removesuffix(unit)) * MILLI[unit]
