"""What LimitRanges and classes make of pods in a real API server is what we say of them before they are created."""

import contextlib
import json
import subprocess

import msgspec
import pytest
from e2e.objects import path, pods, workload
from e2e.served import PROGRAM
from e2e.waiting import eventually

from webhook.cluster.connection import ApiServer
from webhook.cluster.credentials import Account
from webhook.cluster.feed import Feed
from webhook.cluster.resources import BUILT_IN_RESOURCES
from webhook.conformance.admit_cases import as_recorded
from webhook.core.api.types import Pod
from webhook.core.context import Context
from webhook.core.pods_to_create.next_pod import PodSource, after_admission, sent_pod
from webhook.core.policy.policy import Policy
from webhook.core.workloads.reading import read_workload

CLASSES = {
    "/apis/scheduling.k8s.io/v1/priorityclasses": [
        {"metadata": {"name": "forecast-high"}, "value": 1000},
        {"metadata": {"name": "forecast-polite"}, "value": 500, "preemptionPolicy": "Never"},
        {"metadata": {"name": "forecast-usual"}, "value": 7, "globalDefault": True},
    ],
    "/apis/node.k8s.io/v1/runtimeclasses": [
        {
            "metadata": {"name": "forecast-boxed"},
            "handler": "boxed",
            "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}},
            "scheduling": {
                "nodeSelector": {"runtime": "boxed"},
                "tolerations": [{"key": "boxed", "operator": "Exists", "effect": "NoSchedule"}],
            },
        }
    ],
}
RANGE = [
    {
        "type": "Container",
        "default": {"cpu": "2", "memory": "1Gi"},
        "defaultRequest": {"cpu": "0.1"},
        "min": {"cpu": "10m"},
        "max": {"cpu": "4"},
        "maxLimitRequestRatio": {"cpu": "20"},
    },
    {"type": "Pod", "max": {"memory": "8Gi"}},
]
TOLERATION = {"key": "node.kubernetes.io/not-ready", "operator": "Exists"}


@pytest.fixture(name="classes", scope="module")
def _classes(plane):
    for where, objects in CLASSES.items():
        for each in objects:
            plane.api.request("POST", where, each)
    yield
    for where, objects in CLASSES.items():
        for each in objects:
            plane.api.request("DELETE", f"{where}/{each['metadata']['name']}")


@pytest.fixture(name="limited")
def _limited(plane, namespace, classes):  # noqa: ARG001 they exist meanwhile
    """A namespace with a LimitRange."""
    plane.api.request(
        "POST",
        f"/api/v1/namespaces/{namespace}/limitranges",
        {"metadata": {"name": "usual"}, "spec": {"limits": RANGE}},
    )
    return namespace


@pytest.fixture(name="known")
def _known(plane, limited):  # noqa: ARG001 it is listed
    """What the webhook knows of the cluster."""
    feed = Feed(ApiServer(Account(kubeconfig=str(plane.admin))), BUILT_IN_RESOURCES)
    feed.start()
    with contextlib.closing(plane.api):
        try:
            eventually(lambda: feed.synced and feed.version, 30)
            yield feed
        finally:
            feed.stop()


def asking(kind, containers=({},), **spec):
    made = workload(kind, "web")
    template = made["spec"]["template"]["spec"]
    template["containers"] = [
        {"name": f"c{number}", "image": "busybox", "resources": each} for number, each in enumerate(containers)
    ]
    template.update(spec)
    return made


def forecast(made, known, namespace):
    read = read_workload(json.dumps(made).encode())
    with known.lock:
        index = known.index
        source = PodSource(workload=read, template=read.templates[0], namespace=namespace)
        within = Context(policy=Policy(), version=index.version, index=index)
        return after_admission(sent_pod(source, index).template, namespace, within)


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(asking("Deployment"), id="nothing written"),
        pytest.param(asking("StatefulSet", ({"limits": {"cpu": "1"}}, {"requests": {"cpu": "1"}})), id="some written"),
        pytest.param(asking("ReplicaSet", priorityClassName="forecast-high"), id="a priority"),
        pytest.param(asking("Deployment", priorityClassName="forecast-polite"), id="one that never preempts"),
        pytest.param(asking("Deployment", runtimeClassName="forecast-boxed"), id="a runtime"),
        pytest.param(
            asking(
                "Deployment",
                *[({"requests": {"cpu": "1"}},)],
                runtimeClassName="forecast-boxed",
                nodeSelector={"disk": "ssd", "runtime": "boxed"},
                tolerations=[TOLERATION, {"key": "boxed", "operator": "Exists"}],
                priorityClassName="forecast-high",
            ),
            id="all of it",
        ),
        pytest.param(
            asking(
                "Deployment",
                initContainers=[
                    {"name": "side", "image": "busybox", "restartPolicy": "Always"},
                    {"name": "first", "image": "busybox", "resources": {"requests": {"cpu": "500m"}}},
                ],
                resources={"limits": {"cpu": "3", "memory": "2Gi"}},
            ),
            id="init containers, and the pod as a whole",
        ),
    ],
)
def test_the_pod_is_the_one_that_was_foreseen(plane, limited, known, made):
    said = forecast(made, known, limited)
    assert said.unknown == ()
    plane.api.request("POST", path(made["kind"], limited), made)
    first, *_ = eventually(lambda: pods(plane, limited))
    real = msgspec.json.decode(json.dumps(first), type=Pod)
    assert as_recorded(said.pod.pod_spec) == as_recorded(real.pod_spec)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        pytest.param(
            asking("Deployment", ({"limits": {"cpu": "5"}},)),
            "maximum cpu usage per Container is 4, but limit is 5",
            id="more than the most",
        ),
        pytest.param(
            asking("Deployment", ({"requests": {"cpu": "50m"}, "limits": {"cpu": "2"}},)),
            "cpu max limit to request ratio per Container is 20, but provided ratio is 40.000000",
            id="a ratio",
        ),
        pytest.param(
            asking("Deployment", ({"limits": {"memory": "5Gi"}}, {"limits": {"memory": "4Gi"}})),
            "maximum memory usage per Pod is 8Gi, but limit is 9",  # 9Gi; we say it in bytes
            id="all containers",
        ),
        pytest.param(
            asking("Deployment", priorityClassName="forecast-gone"),
            "no PriorityClass with name forecast-gone was found",
            id="no such class",
        ),
        pytest.param(
            asking("Deployment", runtimeClassName="forecast-boxed", nodeSelector={"runtime": "bare"}),
            "conflict: runtimeClass.scheduling.nodeSelector[runtime] = boxed; pod.spec.nodeSelector[runtime] = bare",
            id="another node",
        ),
    ],
)
def test_a_pod_that_is_refused_was_said_to_be(plane, limited, made, words):
    plane.api.request("POST", path("Deployment", limited), made)

    def refusals():
        events = plane.api.request("GET", f"/api/v1/namespaces/{limited}/events")["items"]
        return [each["message"] for each in events if each["reason"] == "FailedCreate"]

    assert all(words in message for message in eventually(refusals)), words
    command = [PROGRAM, "explain", "--kubeconfig", plane.admin, "deployment/web", "-n", limited, "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    [refused] = json.loads(done.stdout)["refused"]
    assert refused["message"].startswith(f"forbidden: {words}")


def test_what_may_not_be_read_is_named(plane, limited):
    """As somebody with the role ``view`` who may read nodes: of classes nothing is known."""
    rbac, of = "/apis/rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io"
    rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]}]
    plane.api.request("POST", f"{rbac}/clusterroles", {"metadata": {"name": "forecast-nodes"}, "rules": rules})
    for name in ("forecast-nodes", "view"):
        body = {
            "metadata": {"name": f"{limited}-{name}"},
            "roleRef": {"apiGroup": of, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "User", "name": "forecast-viewer", "apiGroup": of}],
        }
        plane.api.request("POST", f"{rbac}/clusterrolebindings", body)
    made = json.dumps(asking("Deployment", runtimeClassName="forecast-boxed"))
    command = [PROGRAM, "explain", "-", "--kubeconfig", plane.admin, "-n", limited, "-o", "json"]

    def unknown(*more):
        command_line = [*command, *more]
        done = subprocess.run(command_line, input=made, capture_output=True, text=True, timeout=60, check=False)
        told = json.loads(done.stdout)["notEvaluated"]
        return [line.partition(":")[0] for line in told if "a new pod" in line]

    assert unknown() == ["AdmissionPlugins"]
    assert unknown("--as", "forecast-viewer") == ["PriorityClass", "RuntimeClass", "AdmissionPlugins"]
