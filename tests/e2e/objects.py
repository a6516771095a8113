"""The objects that the tests create."""

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
GROUPS = {
    "ConfigMap": "/api/v1",
    "Job": "/apis/batch/v1",
    "JobSet": "/apis/jobset.x-k8s.io/v1alpha2",
    "Pod": "/api/v1",
    "ReplicationController": "/api/v1",
    "Rollout": "/apis/argoproj.io/v1alpha1",
    "Service": "/api/v1",
}

ROLLOUT_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "rollouts.argoproj.io"},
    "spec": {
        "group": "argoproj.io",
        "names": {"kind": "Rollout", "listKind": "RolloutList", "plural": "rollouts", "singular": "rollout"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"replicas": {"type": "integer"}},
                                "x-kubernetes-preserve-unknown-fields": True,
                            },
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                },
            }
        ],
    },
}


def constraint(**changes: object) -> dict:
    """A hard zone constraint that selects app=web; None takes a field out."""
    field = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        **changes,
    }
    return {name: value for name, value in field.items() if value is not None}


def pod_spec(*constraints: dict, **changes: object) -> dict:
    """One container of a busy box; `schedulerName: none` keeps the scheduler out of what is measured."""
    spec: dict = {"containers": [{"name": "c", "image": "busybox"}], **changes}
    if constraints:
        spec["topologySpreadConstraints"] = list(constraints)
    return spec


def pod(name: str, *constraints: dict, **changes: object) -> dict:
    metadata = {"generateName": name, "labels": {"app": "web"}}
    if not name.endswith("-"):
        metadata = {"name": name, "labels": {"app": "web"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec(*constraints, **changes)}


def workload(kind: str, name: str, *constraints: dict, replicas: int = 2) -> dict:
    """A Deployment, a Rollout or another kind of apps/v1, whose pods have app=web."""
    return {
        "apiVersion": "argoproj.io/v1alpha1" if kind == "Rollout" else "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod_spec(*constraints)},
        },
    }


def clean(kind: str, name: str = "web", replicas: int = 2) -> dict:
    """A workload that no rule objects to."""
    if kind == "DaemonSet":
        made = workload(kind, name)
        del made["spec"]["replicas"]
        return made
    keys = ["pod-template-hash"] if kind == "Deployment" else None
    zone = constraint(matchLabelKeys=keys)
    host = constraint(topologyKey=HOST, whenUnsatisfiable="ScheduleAnyway", matchLabelKeys=keys)
    return workload(kind, name, zone, host, replicas=replicas)


def costly(kind: str, *constraints: dict) -> dict:
    """A workload that takes long to look at beside a cluster; clean unless it gets constraints of its own."""
    made = workload(kind, "web", *constraints) if constraints else clean(kind)
    terms = [{"key": "size", "operator": "Gt", "values": [str(number)]} for number in range(7)]
    selected = {"nodeSelectorTerms": [{"matchExpressions": terms}] * 16 + [{"matchExpressions": [_SIZELESS]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": selected}
    made["spec"]["template"]["spec"]["affinity"] = {"nodeAffinity": required}
    return made


_SIZELESS = {"key": "size", "operator": "DoesNotExist"}


def path(kind: str, namespace: str, name: str = "") -> str:
    """Where the API server keeps such objects."""
    group = GROUPS.get(kind, "/apis/apps/v1")
    return f"{group}/namespaces/{namespace}/{kind.lower()}s" + (f"/{name}" if name else "")


def pods(plane, namespace: str) -> list[dict]:
    return plane.api.request("GET", path("Pod", namespace))["items"]


def failures(plane, namespace: str) -> list[str]:
    """What controllers report of pods that they cannot create."""
    events = plane.api.request("GET", f"/api/v1/namespaces/{namespace}/events")["items"]
    return [each["message"] for each in events if each["reason"] == "FailedCreate"]
