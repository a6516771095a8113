"""What the descheduler evicts run after run, while kube-scheduler places the evicted pods again.

A cluster's course is a generator that yields what it asks, so that many go side by side and each program is asked once for all.
"""

ROUNDS = 10
SPREAD = "PodTopologySpread"
VERDICT, EVICTED = "verdict", "evicted"  # what a course asks: kube-scheduler, and the descheduler


def course(asked):
    """Yields ``(VERDICT or EVICTED, question)``, is sent the answer, and returns what came of it."""
    nodes, pods = asked["nodes"], list(asked["pods"])
    out_of_place = yield from misplaced(nodes, pods)
    rounds, waiting, made = [], [], 0
    for _ in range(ROUNDS):
        answer = yield EVICTED, {"id": asked["id"], "nodes": nodes, "pods": pods}
        rounds.append(answer["evicted"])
        if not rounds[-1]:
            break
        waiting += [each for each in pods if each["metadata"]["name"] in rounds[-1]]
        pods = [each for each in pods if each["metadata"]["name"] not in rounds[-1]]
        left = []
        for gone in waiting:
            made += 1
            again = without_node(gone, f"again-{made}")
            answer = yield VERDICT, scenario(nodes, pods, again)
            if answer.get("best"):
                pods.append({**again, "spec": {**again["spec"], "nodeName": answer["best"][0]}, "status": {"phase": "Running"}})
            else:
                left.append(gone)
        waiting = left
    still = yield from misplaced(nodes, pods)
    evicted = [len(each) for each in rounds]
    return {"outOfPlace": out_of_place, "first": rounds[0], "evicted": evicted, "pending": len(waiting), "still": len(still)}


def misplaced(nodes, pods):
    """The pods that kube-scheduler would not put where they are, for their constraints."""
    found = []
    for pod in pods:
        if pod["spec"].get("topologySpreadConstraints"):
            others = [each for each in pods if each is not pod]
            answer = yield VERDICT, scenario(nodes, others, without_node(pod, pod["metadata"]["name"]))
            if answer["nodes"][pod["spec"]["nodeName"]].get("plugin") == SPREAD:
                found.append(pod["metadata"]["name"])
    return found


def scenario(nodes, pods, pod):
    """The question to `oracle verdict`; the pod is one that was stored already."""
    return {"id": "", "nodes": nodes, "pods": pods, "pod": pod, "podTopologySpreadArgs": None, "raw": True, "plugin": "Scores"}


def without_node(pod, name):
    """A pod with the same template, not yet on a node."""
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    return {**pod, "metadata": {**pod["metadata"], "name": name, "uid": f"uid-{name}"}, "spec": spec, "status": {"phase": "Pending"}}


def together(courses, programs):
    """What each course returns; ``programs`` answer a list of questions, by what a course asks."""
    results = [None] * len(courses)
    waiting = [(number, each, next(each)) for number, each in enumerate(courses)]
    while waiting:
        answers = {}
        for program, ask in programs.items():
            mine = [(number, question) for number, _, (wanted, question) in waiting if wanted == program]
            if mine:
                answers |= zip((number for number, _ in mine), ask([question for _, question in mine]))
        going = []
        for number, each, _ in waiting:
            try:
                going.append((number, each, each.send(answers[number])))
            except StopIteration as end:
                results[number] = end.value
        waiting = going
    return results
