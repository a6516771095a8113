"""Faults around the scale-in guard: writes stay within the budget, change one annotation, and all end with the opt-out.

The API server's audit log is the referee. `SCALE_IN_FAULTS=full` guards 1,000 workloads, and `-s` prints the figures.
"""

import collections
import contextlib
import datetime as dt
import http.client
import json
import os
import random
import ssl
import threading
import time

import pytest
from e2e.controlplane import flags
from e2e.controlplane.api import Api
from e2e.controlplane.up import ControlPlane
from e2e.objects import constraint, path, workload
from e2e.scanning import NAME, NAMESPACE, RBAC, scanning
from e2e.test_scale_in import COST, MODE, _account  # noqa: F401 a fixture
from e2e.waiting import eventually

FULL = os.environ.get("SCALE_IN_FAULTS") == "full"
WORKLOADS, REPLICAS, NODES = (1000, 10, 36) if FULL else (20, 5, 2)
IN = range(10) if FULL else (1, 2, 0, 0, 0)  # the namespaces of workloads, in turn
PODS = WORKLOADS * REPLICAS
LONG = 3600 if FULL else 60  # seconds of an idle machine
EVERY = 5 if FULL else 0.2  # between two lists of all pods
USER = f"system:serviceaccount:{NAMESPACE}:{NAME}"
MANAGER = "evenspread-scale-in"
TOUCHED = "example.com/touched"
# The most requests in any so many seconds. The short form checks the burst, of which a request may arrive late.
MOST = {1: 60 + 9 + 1, 60: 600}
MOST_IN_NAMESPACE = {3: 30 + 14 + 1, 60: 300}
FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
THROTTLED, OK = 429, 200
MERGE = "application/merge-patch+json"
# How long the controller lists everything again, if it misses no event.
RARE = ("--scan-full-interval", "10m", "--scan-interval", "10m") if FULL else ()


@pytest.fixture(name="plane", scope="module")
def _plane(binaries, tmp_path_factory):
    """A control plane of its own, since its API server is killed. It logs what the account writes to pods."""
    folder = tmp_path_factory.mktemp("plane")
    pods = [{"group": "", "resources": ["pods", "pods/*"]}]
    writes = ["create", "update", "patch", "delete", "deletecollection"]
    rules = ({"level": "Request", "users": [USER], "verbs": writes, "resources": pods}, {"level": "None"})
    with ControlPlane(folder, binaries, apiserver=flags.audit(folder, rules)) as plane:
        plane.add_nodes(dict.fromkeys("abc", NODES))
        plane.await_nodes()
        yield plane


class Written:
    """The requests of the audit log, read as they come: time, status, pod, body."""

    def __init__(self, plane):
        self._log, self._read = plane.directory / "audit.log", 0
        self.requests = []

    def read(self):
        with self._log.open("rb") as log:
            log.seek(self._read)
            *lines, rest = log.read().split(b"\n")
            self._read = log.tell() - len(rest)
        for line in lines:
            event = json.loads(line)
            of, at = event["objectRef"], dt.datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp()
            assert (event["verb"], of.get("subresource")) == ("patch", None)
            code = event.get("responseStatus", {}).get("code")
            self.requests.append((at, code, (of["namespace"], of["name"]), event.get("requestObject")))
        return self

    def count(self, code=OK):
        return sum(answered == code for _, answered, _, _ in self.read().requests)

    def most(self, seconds, namespaces=IN):
        """The most requests in any so many seconds, whatever the answer."""
        names, window, most = {f"faults-{number}" for number in namespaces}, collections.deque(), 0
        for at in sorted(at for at, _, (namespace, _), _ in self.read().requests if namespace in names):
            window.append(at)
            while window[0] <= at - seconds:
                window.popleft()
            most = max(most, len(window))
        return most

    def bodies(self):
        """The different sets of fields that were sent. Requests that a fault cuts off have none."""
        return {_fields(body) for _, code, _, body in self.read().requests if body or code == OK}


def _fields(body):
    meta = body["metadata"]
    return tuple(sorted(body)), tuple(sorted(meta)), tuple(meta.get("annotations", ()))


ALONE = ("apiVersion", "kind", "metadata")
WRITE = ALONE, ("annotations", "name", "namespace", "uid"), (COST,)
REMOVAL = ALONE, ("name", "namespace", "uid"), ()


def named(number):
    """The namespace and the name of a workload."""
    return f"faults-{IN[number % len(IN)]}", f"web-{number}"


def add(api):
    for number in {*IN}:
        api.request("POST", "/api/v1/namespaces", {"metadata": {"name": f"faults-{number}"}})
    for number in range(WORKLOADS):
        namespace, name = named(number)
        labels = {"app": name}
        made = workload("Deployment", name, constraint(labelSelector={"matchLabels": labels}), replicas=REPLICAS)
        made["metadata"]["annotations"] = {MODE: "guard"}
        made["spec"]["selector"]["matchLabels"] = made["spec"]["template"]["metadata"]["labels"] = labels
        api.request("POST", path("Deployment", namespace), made)


def listed(api):
    """All pods by namespace and name, without those that are ending."""
    items, more = [], ""
    while more is not None:
        page = api.request("GET", f"/api/v1/pods?limit=2000&continue={more}")
        items += page["items"]
        more = page["metadata"].get("continue")
    found = ((each["metadata"], each) for each in items)
    return {(meta["namespace"], meta["name"]): pod for meta, pod in found if "deletionTimestamp" not in meta}


def ready(pods):
    conditions = (pod["status"].get("conditions", ()) for pod in pods.values())
    states = [{each["type"]: each["status"] for each in found} for found in conditions]
    return len(states) >= PODS and all(state.get("Ready") == "True" for state in states)


def costs(pods):
    annotations = ((name, pod["metadata"].get("annotations") or {}) for name, pod in pods.items())
    return {name: found[COST] for name, found in annotations if COST in found}


def without(pod):
    """All of a pod but the annotations in question and what each write changes."""
    meta = {name: value for name, value in pod["metadata"].items() if name not in {"resourceVersion", "managedFields"}}
    annotations = meta.pop("annotations", None) or {}
    meta["annotations"] = {name: value for name, value in annotations.items() if name not in {COST, TOUCHED}}
    return pod | {"metadata": meta}


def annotate(api, where, **annotations):
    patch = {"metadata": {"annotations": annotations}}
    return api.send("PATCH", path("Pod", *where), patch, MERGE).status


@contextlib.contextmanager
def somebody(plane, touched, contested):
    """Somebody changes these pods, and gives the contested one a cost and takes it away, ten times a second."""
    choose, ended, done = random.Random(1), threading.Event(), collections.Counter()  # noqa: S311 cases, not secrets

    def run():
        with contextlib.closing(plane.connect()) as api:
            while not ended.wait(0.1):
                with contextlib.suppress(OSError, http.client.HTTPException):  # while the API server is gone
                    done[annotate(api, choose.choice(touched), **{TOUCHED: str(done.total())})] += 1
                    done[annotate(api, contested, **{COST: choose.choice(["1", None])})] += 1
            eventually(lambda: annotate(api, contested, **{COST: None}) == OK)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield done
    finally:
        ended.set()
        thread.join(60)


@pytest.fixture(name="holder")
def _holder(plane):
    """A user who shares the API server's only seat for patches of pods with the account. Patches in turn all pass."""
    limited = {
        "nominalConcurrencyShares": 0,
        "lendablePercent": 0,
        "borrowingLimitPercent": 0,
        "limitResponse": {"type": "Reject"},
    }
    ours = {"kind": "ServiceAccount", "serviceAccount": {"namespace": NAMESPACE, "name": NAME}}
    patches = {"verbs": ["patch"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["*"]}
    subjects = [ours, {"kind": "User", "user": {"name": "holder"}}]
    spec = {
        "priorityLevelConfiguration": {"name": "seat"},
        "matchingPrecedence": 2,
        "rules": [{"subjects": subjects, "resourceRules": [patches]}],
    }
    group = "rbac.authorization.k8s.io"
    bound = {
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": NAME},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "holder"}],
    }
    for where, made in (
        (f"{FLOW}/prioritylevelconfigurations", {"spec": {"type": "Limited", "limited": limited}}),
        (f"{FLOW}/flowschemas", {"spec": spec}),
        (f"{RBAC}/clusterrolebindings", bound),
    ):
        plane.api.request("POST", where, {"metadata": {"name": "seat"}, **made})
    plane.kubeconfig("holder", "holder")
    context = ssl.create_default_context(cadata=plane.authority.pem.decode())
    context.load_cert_chain(plane.directory / "holder.crt", plane.directory / "holder.key")
    return context


@contextlib.contextmanager
def throttled(plane, holder, where):
    """The API server waits for the body of another request in the only seat, and answers 429 to the account."""
    url = plane.url.removeprefix("https://")
    with (
        contextlib.closing(http.client.HTTPSConnection(url, context=holder)) as seat,
        contextlib.closing(Api(plane.url, holder)) as other,
    ):
        seat.putrequest("PATCH", path("Pod", *where))
        for name, value in (("Content-Type", MERGE), ("Content-Length", "2")):
            seat.putheader(name, value)
        seat.endheaders()
        eventually(lambda: other.send("PATCH", path("Pod", *where), {}, MERGE).status == THROTTLED)
        yield


def opt_out(api):
    for number in range(WORKLOADS):
        api.request("PATCH", path("Deployment", *named(number)), {"metadata": {"annotations": {MODE: None}}}, MERGE)


def writes_on(written, more):
    """Wait for so many more writes."""
    target = written.count() + more
    eventually(lambda: written.count() >= target, LONG, 0.05)


def throttle(plane, holder, written, where):
    """The guard writes nothing while it is throttled."""
    before = written.count(THROTTLED)
    with throttled(plane, holder, where):
        eventually(lambda: written.count(THROTTLED) > before, 30, 0.05)
        stopped = written.count()
        eventually(lambda: written.count(THROTTLED) > before + 1, 30, 0.05)
        assert written.count() == stopped


def test_faults_exceed_no_budget_and_leave_nothing(plane, account, holder, tmp_path):
    api, figures = plane.api, {}
    add(api)
    before = eventually(lambda: pods if ready(pods := listed(api)) else None, LONG, EVERY)
    names = sorted(before)
    taken, seized, contested, *others = (
        [name for name in names if name[0] == where[0] and name[1].startswith(f"{where[1]}-")]
        for where in map(named, range(WORKLOADS))
    )
    assert annotate(api, taken[0], **{COST: "7"}) == OK  # a workload with costs of somebody else
    written, began, flags_ = Written(plane), time.monotonic(), ("--guard-scale-in", *RARE)
    with (
        somebody(plane, [name for group in others for name in group], contested[0]) as touches,
        scanning(tmp_path / "two", account, *flags_) as two,
        scanning(tmp_path / "one", account, *flags_) as one,
    ):
        writes_on(written, PODS // 10)
        leader, heir = (one, two) if one.metric("evenspread_leader") else (two, one)
        leader.process.kill()
        eventually(lambda: heir.metric("evenspread_leader") == 1, 40, 0.2)
        throttle(plane, holder, written, contested[1])
        writes_on(written, PODS // 10)
        plane.kill("kube-apiserver")
        time.sleep(1)
        plane.revive("kube-apiserver")
        writes_on(written, PODS // 20)
        gone = [group[0] for group in others[:3]]
        for name in gone:
            api.request("DELETE", path("Pod", *name))
        assert annotate(api, seized[0], **{COST: "8"}) == OK
        # The guard leaves the taken workload and the seized one, and sometimes the contested one.
        eventually(lambda: heir.metric("evenspread_scale_in_guarded") >= WORKLOADS - 3, LONG, EVERY)
        figures["minutes until guarded"] = (time.monotonic() - began) / 60
        eventually(lambda: len(costs(listed(api))) >= PODS - 3 * REPLICAS, LONG, EVERY)
        figures["conflicts"] = heir.metric("evenspread_scale_in_writes_total", 'outcome="conflict"')
        isolated, labels = others[3][0], {"metadata": {"labels": {"app": "isolated"}}}
        api.request("PATCH", path("Pod", *isolated), labels, MERGE)  # its ReplicaSet replaces it
        began = time.monotonic()
        opt_out(api)
        throttle(plane, holder, written, contested[1])
        kept = {taken[0]: "7", seized[0]: "8"}
        eventually(lambda: {**costs(listed(api)), contested[0]: ""} == {**kept, contested[0]: ""}, LONG, EVERY)
        figures["minutes until gone"] = (time.monotonic() - began) / 60
    after = eventually(lambda: pods if ready(pods := listed(api)) else None, 60, EVERY)
    figures |= {f"most in {seconds} s": written.most(seconds) for seconds in MOST}
    figures |= {
        f"most of one in {seconds} s": max(written.most(seconds, [number]) for number in {*IN})
        for seconds in MOST_IN_NAMESPACE
    }
    figures |= {
        f"answered {code}": count for code, count in collections.Counter(r[1] for r in written.requests).items()
    }
    figures["touches"] = touches.total()
    print("\n".join(f"{name:24} {value:g}" for name, value in figures.items()))
    assert costs(after) == kept
    assert MANAGER not in json.dumps([*after.values()])
    assert written.bodies() == {WRITE, REMOVAL}
    assert before.keys() - after.keys() == {*gone}
    both = (before.keys() & after.keys()) - {isolated}
    assert [name for name in both if without(before[name]) != without(after[name])] == []
    assert [seconds for seconds, most in MOST.items() if figures[f"most in {seconds} s"] > most] == []
    limits = MOST_IN_NAMESPACE.items()
    assert [seconds for seconds, most in limits if figures[f"most of one in {seconds} s"] > most] == []
