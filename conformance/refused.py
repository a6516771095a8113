"""Record which pods Kubernetes refuses of workloads that it accepts.

usage: python refused.py ORACLE SEED COUNT OUT.jsonl.gz

COUNT random workloads of every kind that makes pods; what depends on the seed is only they. Each is asked about as a
create request, and where it is accepted, the pod that its controller makes of the template is asked about too: labels,
generateName and owner as in pkg/controller. Argo's Rollout, which kube-apiserver does not validate, is accepted.

Half of them have terms of pod affinity. Where kube-apiserver refuses a workload for them, they are taken out again: what
is refused at once is not looked at here.

``expected`` has ``accepted``, and for accepted workloads ``errors``: what was said of the pod's labels and constraints, and of
the keys that are merged into the selectors of pod affinity. What was said of the value of controller-revision-hash is left
out: only the controller knows that hash; and of a value in a term, which repeats what was said of the label.
"""

import gzip
import json
import random
import subprocess
import sys

HASH = "5d4f7b9c6"
JOB_UID = "0b0c9d1e-7a41-4b0e-9a34-0d3c5a1f2b11"
KINDS = (
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "ReplicaSet"),
    ("v1", "ReplicationController"),
    ("batch/v1", "Job"),
    ("batch/v1", "CronJob"),
    ("argoproj.io/v1alpha1", "Rollout"),
)
ADDED = {
    "Deployment": ["pod-template-hash"],
    "StatefulSet": ["controller-revision-hash", "apps.kubernetes.io/pod-index", "statefulset.kubernetes.io/pod-name"],
    "DaemonSet": ["controller-revision-hash", "pod-template-generation"],
    "Job": ["job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-completion-index"],
    "CronJob": ["batch.kubernetes.io/job-name", "controller-uid", "batch.kubernetes.io/job-completion-index"],
    "Rollout": ["rollouts-pod-template-hash"],
}


def constraint(rng, kind, labels, topology_key):
    own = [*labels, "absent", "topology.kubernetes.io/zone", *ADDED.get(kind, []), "pod-template-hash"]
    found = {"maxSkew": rng.choice([1, 1, 1, 2, 5]), "topologyKey": topology_key}
    found["whenUnsatisfiable"] = rng.choice(["DoNotSchedule", "ScheduleAnyway"])
    if found["whenUnsatisfiable"] == "DoNotSchedule" and rng.random() < 0.2:
        found["minDomains"] = rng.choice([1, 3])
    if rng.random() < 0.2:
        found[rng.choice(["nodeTaintsPolicy", "nodeAffinityPolicy"])] = rng.choice(["Honor", "Ignore"])
    selector = {}
    for key in rng.sample(own, rng.choice([0, 1, 1, 2])):
        selector.setdefault("matchLabels", {})[key] = labels.get(key, rng.choice(["1", "x"]))
    for key in rng.choices(own, k=rng.choice([0, 0, 0, 1, 2])):
        operator = rng.choice(["In", "In", "NotIn", "Exists", "DoesNotExist"])
        values = {"values": rng.sample(["1", "2", "x", labels.get(key, "y")], rng.choice([1, 2]))}
        part = {"key": key, "operator": operator, **(values if operator in {"In", "NotIn"} else {})}
        selector.setdefault("matchExpressions", []).append(part)
    if rng.random() < 0.97:
        found["labelSelector"] = selector
    if rng.random() < 0.8:
        found["matchLabelKeys"] = rng.choices(own, k=rng.choice([1, 1, 1, 2, 3]))
    if rng.random() < 0.03:
        found.update(rng.choice([{"maxSkew": 0}, {"minDomains": 0}, {"topologyKey": ""}, {"matchLabelKeys": ["a b"]}]))
    return found


def affinity(rng, kind, labels):
    """Terms whose keys are merged into their selectors, required and preferred."""
    found = {}
    for name in rng.choice([["podAffinity"], ["podAntiAffinity"], ["podAntiAffinity"], ["podAffinity", "podAntiAffinity"]]):
        for _ in range(rng.choice([1, 1, 2])):
            one = term(rng, kind, labels)
            if rng.random() < 0.6:
                found.setdefault(name, {}).setdefault("requiredDuringSchedulingIgnoredDuringExecution", []).append(one)
            else:
                weighted = {"weight": rng.choice([1, 50]), "podAffinityTerm": one}
                found.setdefault(name, {}).setdefault("preferredDuringSchedulingIgnoredDuringExecution", []).append(weighted)
    return found


def term(rng, kind, labels):
    own = [*labels, "absent", *ADDED.get(kind, []), "pod-template-hash"]
    selector = {}
    for key in rng.sample(own, rng.choice([0, 1, 1, 2])):
        selector.setdefault("matchLabels", {})[key] = labels.get(key, rng.choice(["1", "x"]))
    for key in rng.choices(own, k=rng.choice([0, 0, 1, 2])):
        operator = rng.choice(["In", "NotIn", "Exists", "DoesNotExist"])
        values = {"values": ["1", labels.get(key, "y")]} if operator in {"In", "NotIn"} else {}
        selector.setdefault("matchExpressions", []).append({"key": key, "operator": operator, **values})
    found = {"topologyKey": rng.choice(["topology.kubernetes.io/zone", "kubernetes.io/hostname"])}
    if rng.random() < 0.95:
        found["labelSelector"] = selector
    keys = rng.choices(own, k=rng.choice([0, 1, 1, 2, 3]))
    others = [key for key in rng.choices(own, k=rng.choice([0, 0, 1, 2])) if key not in keys]
    if keys:
        found["matchLabelKeys"] = keys
    if others:
        found["mismatchLabelKeys"] = others
    if rng.random() < 0.2:
        found["namespaceSelector"] = {}
    return found


def workload(rng):
    api_version, kind = rng.choice(KINDS)
    labels = {"app": "web"} | {key: rng.choice(["1", "2"]) for key in rng.sample(["v", "tier", "a.example/x"], rng.choice([0, 1, 2]))}
    if kind == "Rollout" and rng.random() < 0.1:
        labels["v"] = rng.choice(["a b", "-", "y" * 64])
    keys = rng.sample(["topology.kubernetes.io/zone", "kubernetes.io/hostname", "rack"], rng.choice([1, 1, 2, 3]))
    spec = {"containers": [{"name": "c", "image": "i"}]}
    spec["topologySpreadConstraints"] = [constraint(rng, kind, labels, key) for key in keys]
    template = {"metadata": {"labels": labels}, "spec": spec}
    if rng.random() < 0.1 and kind != "Rollout":
        labels.update({key: rng.choice(["own", "1"]) for key in ADDED.get(kind, [])[:1] if "job" not in key})
    name = "web"
    if kind == "StatefulSet" and rng.random() < 0.1:
        name = "w" * rng.choice([52, 62, 63])
    body = {"template": template}
    if kind in {"Job", "CronJob"}:
        spec["restartPolicy"] = "Never"
        if rng.random() < 0.3:
            body |= {"completionMode": "Indexed", "completions": 2, "parallelism": 2}
        if kind == "Job" and rng.random() < 0.2:
            body |= {"manualSelector": True, "selector": {"matchLabels": {"app": "web"}}}
    elif kind == "ReplicationController":
        body |= {"replicas": 2, "selector": {"app": "web"}}
    else:
        body["selector"] = {"matchLabels": {"app": "web"}}
        if kind != "DaemonSet":
            body["replicas"] = 2
    if kind == "CronJob":
        body = {"schedule": "0 3 * * *", "jobTemplate": {"spec": body}}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "shop"}, "spec": body}


def with_affinity(rng, found):
    """The workload with terms that draw from numbers of their own: without them it is what it was."""
    if rng.random() < 0.5:
        template = template_of(found)
        template["spec"]["affinity"] = affinity(rng, found["kind"], template["metadata"]["labels"])
    return found


def template_of(found):
    return (found["spec"]["jobTemplate"]["spec"] if found["kind"] == "CronJob" else found["spec"])["template"]


def pod_of(found):
    """The pod that the kind's controller sends."""
    kind, name, spec = found["kind"], found["metadata"]["name"], found["spec"]
    if kind == "CronJob":
        spec, name = spec["jobTemplate"]["spec"], f"{name}-29384720"
    template = json.loads(json.dumps(spec["template"]))
    labels = template["metadata"]["labels"]
    owner, meta = {"apiVersion": found["apiVersion"], "kind": kind, "name": name}, {"generateName": f"{name}-"}
    if kind in {"Deployment", "Rollout"}:
        labels["pod-template-hash" if kind == "Deployment" else "rollouts-pod-template-hash"] = HASH
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{name}-{HASH}"}
        meta = {"generateName": f"{name}-{HASH}-"}
    elif kind == "StatefulSet":
        labels["controller-revision-hash"] = f"{name}-{HASH}"
        labels["statefulset.kubernetes.io/pod-name"] = f"{name}-0"
        labels["apps.kubernetes.io/pod-index"] = "0"
        meta = {"name": f"{name}-0"}
    elif kind == "DaemonSet":
        labels["controller-revision-hash"] = HASH
        labels["pod-template-generation"] = "1"
    elif kind in {"Job", "CronJob"}:
        owner |= {"apiVersion": "batch/v1", "kind": "Job"}
        if not spec.get("manualSelector"):
            for prefix in ("", "batch.kubernetes.io/"):
                labels.setdefault(f"{prefix}job-name", name)
                labels.setdefault(f"{prefix}controller-uid", JOB_UID)
        if spec.get("completionMode") == "Indexed":
            labels["batch.kubernetes.io/job-completion-index"] = "0"
            meta = {"generateName": f"{name}-0-"}
    owner |= {"uid": JOB_UID, "controller": True, "blockOwnerDeletion": True}
    metadata = {**meta, "namespace": "shop", "labels": labels, "ownerReferences": [owner]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def ask(oracle, objects):
    text = "".join(json.dumps({"id": str(place), "object": each}) + "\n" for place, each in enumerate(objects))
    done = subprocess.run([oracle, "validate"], input=text, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def is_known(error, pod):
    """Whether the error is about what any reader of the workload can know, and says what no other says."""
    if ".affinity." in error["field"] and error["field"].rpartition(".")[2].startswith("values["):
        return False
    return error.get("badValue", "") != pod["metadata"]["labels"].get("controller-revision-hash", "none")


def has_refused_terms(oracle, workloads):
    """Of each whether its terms are refused in the template already; a Rollout and a StatefulSet, whose template older releases leave alone, are asked about as Deployments."""
    as_known = [each | {"apiVersion": "apps/v1", "kind": "Deployment"} if each["kind"] in {"Rollout", "StatefulSet"} else each for each in workloads]
    return [any(".affinity." in error["field"] for error in answer["errors"]) for answer in ask(oracle, as_known)]


def main(oracle, seed, count, out):
    workloads = []
    for number in range(int(count)):
        found = workload(random.Random(f"refused-{seed}-{number}"))
        workloads.append(with_affinity(random.Random(f"refused-{seed}-{number}-affinity"), found))
    for each, is_refused in zip(workloads, has_refused_terms(oracle, workloads)):
        if is_refused:
            del template_of(each)["spec"]["affinity"]
    validated = [each for each in workloads if each["kind"] != "Rollout"]
    answers = iter(ask(oracle, validated))
    accepted = [each["kind"] == "Rollout" or not (answer := next(answers))["errors"] and "decodeError" not in answer for each in workloads]
    pods = [pod_of(each) for each in workloads]
    said = ask(oracle, pods)
    refused = 0
    with gzip.GzipFile(out, "wb", mtime=0) as file:
        for number, (each, taken, pod, answer) in enumerate(zip(workloads, accepted, pods, said)):
            id_ = f"refused-{seed}-{number}"
            expected = {"id": id_, "accepted": taken}
            if taken:
                # Before 1.37 a cause may be repeated; what is refused is the same.
                each_once = {error["text"]: error for error in answer["errors"]}.values()
                expected["errors"] = [error for error in each_once if is_known(error, pod)]
                refused += bool(expected["errors"])
                other = [error["text"] for error in answer["errors"] if not error["field"].startswith(("metadata.labels", "spec.topologySpreadConstraints", "spec.affinity.pod"))]
                assert not other, (each, other)
            file.write(json.dumps({"scenario": {"id": id_, "workload": each}, "expected": expected}).encode() + b"\n")
    print(f"{sum(accepted)} of {len(workloads)} workloads accepted, the pods of {refused} of them refused", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
