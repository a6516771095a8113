"""The pods that the compiled defaults give, and the pods of the webhook's own code for the same cluster.

`EVENSPREAD_SEED=n` sets the seed of the random workloads.
"""

import collections
import contextlib
import io
import json
import os
import random
from bisect import bisect

import msgspec
import pytest
from e2e.controlplane import flags
from e2e.controlplane.up import ControlPlane
from e2e.kubectl import Kubectl
from e2e.medians import medians
from e2e.objects import HOST, ZONE, path, pod_spec
from e2e.waiting import eventually
from msgspec.structs import replace

from webhook.cli.main import main
from webhook.config import parse_policy
from webhook.core.admission_policies.limits import why_refused
from webhook.core.admission_policies.mutating_policies import mutating_policies
from webhook.core.admission_policies.policy_objects import STATIC_SUFFIX
from webhook.core.api import gates
from webhook.core.api.selectors import compile_selector
from webhook.core.api.types import Pod
from webhook.core.api.version import RECORDED, parse_version
from webhook.core.context import Context
from webhook.core.defaulting.injection import Injection, inject, revision
from webhook.core.defaulting.record import injection_record
from webhook.snapshot.load import read_snapshot

SEED = int(os.environ.get("EVENSPREAD_SEED") or 36)
OLDER = os.environ.get("EVENSPREAD_RELEASE")
RELEASE = parse_version(OLDER) if OLDER else RECORDED
SOFT, HARD = "ScheduleAnyway", "DoNotSchedule"
SKIP, RECORD = "evenspread.io/skip", "evenspread.io/injected"
POLICY = {
    "apiVersion": "config.evenspread.io/v1alpha1",
    "kind": "SpreadPolicy",
    "domains": {ZONE: ["a", "b", "c"]},
    "schedulerNames": ["default-scheduler", "none"],
    "defaults": {
        "mode": "inject",
        "acceptNodeGrowth": True,
        "defaultConstraints": [
            {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": HARD, "hardWhenDomains": 3}
            | {"nodeTaintsPolicy": "Honor", "minDomains": 2},
            {"maxSkew": 2, "topologyKey": HOST, "whenUnsatisfiable": SOFT},
        ],
        "overrides": [
            {
                "name": "quiet",
                "namespaceSelector": {"matchLabels": {"defaults": "none"}},
                "defaultConstraints": [],
            },
            {
                "name": "large",
                "podSelector": {"matchLabels": {"size": "large"}},
                "minReplicas": 3,
                "defaultConstraints": [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": HARD}],
            },
            {
                "name": "by-version",
                "podSelector": {"matchExpressions": [{"key": "version", "operator": "Exists"}]},
                "defaultConstraints": [
                    {
                        "maxSkew": 1,
                        "topologyKey": ZONE,
                        "whenUnsatisfiable": HARD,
                        "matchLabelKeys": ["version", "app"],
                    },
                    {"maxSkew": 3, "topologyKey": HOST, "whenUnsatisfiable": SOFT, "matchLabelKeys": ["absent"]},
                ],
            },
            {
                "name": "sixteen",
                "podSelector": {"matchExpressions": [{"key": "many", "operator": "In", "values": ["yes"]}]},
                "defaultConstraints": [
                    {"maxSkew": 1, "topologyKey": f"example.com/{number}", "whenUnsatisfiable": SOFT}
                    for number in range(16)
                ],
            },
        ],
    },
}
LABELS = {
    "app": ("web", "db", ""),
    "version": ("1", "2"),
    "app.kubernetes.io/name": ("web", "db"),
    "size": ("large", "small"),
    "tier": ("front", "back"),
}
NAMESPACES = {"shop": {"team": "a"}, "calm": {"defaults": "none"}, "off": {"defaults": "none"}}
OFF = {"mode": "inject", "matchLabelKeys": "off", "defaultingType": "System", "acceptNodeGrowth": True}
LEFT_ALONE = {"StatefulSet", "ReplicationController", "Job", "DaemonSet", "Pod"}


def policy(**changes):
    return parse_policy(json.dumps(POLICY | changes), file="p", today="2026-11-28").policy


def create(plane, made, namespace):
    return plane.api.request("POST", path(made["kind"], namespace), made)


def listed(plane, kind, namespace):
    where = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers"
    where = where.replace("/shop/", f"/{namespace}/") if kind == "HorizontalPodAutoscaler" else path(kind, namespace)
    return plane.api.request("GET", where)["items"]


def applied(plane, objects):
    for made in objects:
        # A failing expression must not hide behind the policy's own Ignore.
        if "failurePolicy" in made["spec"]:
            made = made | {"spec": made["spec"] | {"failurePolicy": "Fail"}}  # noqa: PLW2901
        plural = "policies" if made["kind"] == "MutatingAdmissionPolicy" else "policybindings"
        plane.api.request("POST", f"/apis/{made['apiVersion']}/mutatingadmission{plural}", made)


def ready(plane, namespaces):
    for name, given in namespaces.items():
        made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": given}}
        plane.api.request("POST", "/api/v1/namespaces", made)
    for name in namespaces:
        where = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        eventually(lambda where=where: plane.api.send("GET", where).status == 200)


FLAGS = (
    ()
    if gates.MUTATING_POLICIES_ARE_STABLE.holds(RELEASE)
    else (
        "--feature-gates=MutatingAdmissionPolicy=true",
        "--runtime-config=admissionregistration.k8s.io/v1beta1=true",
    )
)
pytestmark = pytest.mark.skipif(not gates.HAS_MUTATING_POLICIES.holds(RELEASE), reason="needs Kubernetes 1.34")


@pytest.fixture(name="patched", scope="module")
def _patched(binaries, tmp_path_factory):
    """A control plane with the compiled defaults."""
    with ControlPlane(tmp_path_factory.mktemp("defaults"), binaries, apiserver=FLAGS) as plane:
        plane.add_nodes({"a": 1, "b": 1, "c": 1})
        ready(plane, NAMESPACES)
        applied(plane, mutating_policies(policy(), RELEASE))
        (off, binding) = mutating_policies(policy(defaults=OFF), RELEASE, suffix="-off")
        off["spec"]["matchConditions"].append({"name": "here", "expression": "request.namespace == 'off'"})
        applied(plane, (off, binding))
        for namespace in ("shop", "off"):
            eventually(lambda namespace=namespace: constraints(given(plane, of_revision(), namespace)))
        yield plane


def of_revision(labels=None, annotations=None, **spec):
    """A pod as the controller of a ReplicaSet creates it."""
    labels = {"app": "web", "pod-template-hash": "6d9f"} if labels is None else labels
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-6d9f", "uid": "u", "controller": True}
    metadata = {"name": "web", "labels": labels, "ownerReferences": [owner]}
    metadata |= {} if annotations is None else {"annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec(**spec)}


def given(plane, made, namespace="shop"):
    answered = plane.api.send("POST", f"{path('Pod', namespace)}?dryRun=All", made)
    assert answered.status == 201, answered.message[:600]
    return answered.body


def constraints(made):
    return made["spec"].get("topologySpreadConstraints", [])


# -- random workloads


def random_spec(dice):
    """Pods that nothing schedules, so that no binding adds labels."""
    spec = pod_spec(schedulerName="none")
    if dice.random() < 0.2:
        spec["nodeSelector"] = {"kubernetes.io/os": "linux"}
    if dice.random() < 0.1:
        spec["affinity"] = {"nodeAffinity": {}}
    if dice.random() < 0.1:
        spec["tolerations"] = [{"operator": "Exists"}]
    if dice.random() < 0.1:
        spec["schedulerName"] = "other"
    if dice.random() < 0.1:
        own = {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": SOFT, "labelSelector": {}}
        spec["topologySpreadConstraints"] = [own]
    return spec


def random_workload(dice, number):
    kind = dice.choice(("Deployment",) * 12 + ("StatefulSet", "ReplicationController", "Job", "DaemonSet", "Pod"))
    labels = {key: dice.choice(LABELS[key]) for key in dice.sample(sorted(LABELS), dice.randint(0, 4))}
    unique = {"unique": str(number)}
    selected = unique | dict(dice.sample(sorted(labels.items()), dice.randint(0, len(labels))))
    annotations = {SKIP: dice.choice(("true", "false"))} if dice.random() < 0.15 else {"a": "b"}
    meta = {"labels": labels | unique} | ({"annotations": annotations} if dice.random() < 0.5 else {})
    made = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": f"w-{number}"}}
    template = {"metadata": meta, "spec": random_spec(dice)}
    if kind == "Pod":
        return made | {"apiVersion": "v1", "metadata": meta | made["metadata"], "spec": template["spec"]}
    if kind == "Job":
        template["spec"]["restartPolicy"] = "Never"
        return made | {"apiVersion": "batch/v1", "spec": {"parallelism": 2, "completions": 2, "template": template}}
    spec = {"replicas": dice.choice((1, 2, 2, 3, 3)), "template": template, "selector": {"matchLabels": selected}}
    if kind == "ReplicationController":
        return made | {"apiVersion": "v1", "spec": spec | {"selector": selected}}
    if kind == "DaemonSet":
        del spec["replicas"]
    return made | {"spec": spec}


def service(number, selected):
    spec = {"selector": selected, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": f"s-{number}"}, "spec": spec}


def scaler(name, most):
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    spec = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": most}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": spec,
    }


def known_cluster(plane):
    """The cluster as the webhook knows it."""
    kinds = {**dict.fromkeys(("Service", "ReplicationController"), "v1"), "Job": "batch/v1"}
    kinds |= dict.fromkeys(("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"), "apps/v1")
    kinds["HorizontalPodAutoscaler"] = "autoscaling/v2"
    lines = [{"kind": "Snapshot", "kubernetesVersion": str(RELEASE), "takenAt": "2026-01-01T00:00:00Z"}]
    for kind, where in {"Namespace": "/api/v1/namespaces", "Node": "/api/v1/nodes"}.items():
        lines += [{"apiVersion": "v1", "kind": kind, **each} for each in plane.api.request("GET", where)["items"]]
    for kind, version in kinds.items():
        for namespace in NAMESPACES:
            lines += [{"apiVersion": version, "kind": kind, **each} for each in listed(plane, kind, namespace)]
    text = "\n".join(map(json.dumps, lines)).encode()
    return read_snapshot(io.BufferedReader(io.BytesIO(text)), "known").index


def as_created(made):
    """The pod as its controller sent it: without the patch."""
    spec = {key: value for key, value in made["spec"].items() if key != "nodeName"}
    annotations = dict(made["metadata"].get("annotations", {}))
    if annotations.pop(RECORD, None) is not None:
        del spec["topologySpreadConstraints"]
    meta = made["metadata"] | {"annotations": annotations}
    return msgspec.convert({"metadata": meta, "spec": spec}, Pod)


def counted(constraint, made, pods):
    """Names of the pods that a constraint of this pod counts."""
    selector, labels = compile_selector(constraint.selector), made["metadata"]["labels"]
    keys = [key for key in constraint.match_label_keys or () if key in labels]
    return {
        each["metadata"]["name"]
        for each in pods
        if (own := each["metadata"].get("labels", {})) is not None
        and selector.matches(own)
        and all(own.get(key) == labels[key] for key in keys)
    }


def rest(constraint):
    """All fields but the selector."""
    return replace(constraint, label_selector=None)


def kind_of(made):
    owners = made["metadata"].get("ownerReferences", [])
    return owners[0]["kind"] if owners else "Pod"


def is_left_alone(made):
    """Whether the pod is among those that the page lists as left alone, although the webhook patches them."""
    selects_nodes = "nodeSelector" in made["spec"] or "nodeAffinity" in made["spec"].get("affinity", {})
    labels = made["metadata"]["labels"]
    general = "version" not in labels
    return kind_of(made) in LEFT_ALONE or labels.get("size") == "large" or (general and selects_nodes)


def created(plane, dice, workloads):
    """Create the workloads, some Services, autoscalers and second revisions, and return the pods by namespace."""
    for number in range(8):
        selected = {key: dice.choice(LABELS[key]) for key in dice.sample(sorted(LABELS), dice.randint(1, 2))}
        create(plane, service(number, selected), dice.choice(("shop", "calm")))
    wanted = 0
    for number, each in enumerate(workloads):
        namespace, spec, name = "calm" if number % 10 == 0 else "shop", each["spec"], each["metadata"]["name"]
        create(plane, each, namespace)
        # A StatefulSet creates one pod after the other, and its first one never runs.
        only = {"DaemonSet": 3, "StatefulSet": 1}.get(each["kind"])
        wanted += only or spec.get("parallelism", spec.get("replicas", 1))
        if each["kind"] == "Deployment" and dice.random() < 0.1:
            where = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers"
            plane.api.request("POST", where, scaler(name, 5))
        if each["kind"] == "Deployment" and dice.random() < 0.3:
            change = {"spec": {"template": {"metadata": {"labels": {"revised": "yes"}}}}}
            where = path("Deployment", namespace, name)
            eventually(lambda where=where: plane.api.request("GET", where).get("status", {}).get("replicas"))
            assert plane.api.send("PATCH", where, change, "application/merge-patch+json").status == 200
            wanted += 1  # maxSurge is 25 %, and no pod ever becomes available

    def pods():
        return {namespace: listed(plane, "Pod", namespace) for namespace in NAMESPACES}

    return eventually(lambda: sum(map(len, (found := pods()).values())) >= wanted and found, 20)


def compared(made, pods, expected):
    """The outcome of a comparison with the webhook's answer."""
    has_record = RECORD in made["metadata"].get("annotations", {})
    if not isinstance(expected, Injection):
        # The policy knows no replicas, and no owner's annotations.
        assert not has_record or expected.reason == "one-replica", (made["metadata"], expected)
        return expected.reason + (": patched" if has_record else "")
    if not has_record:
        assert is_left_alone(made), made
        return "left alone"
    stored = msgspec.convert({"metadata": made["metadata"], "spec": made["spec"]}, Pod)
    record = injection_record(stored)
    assert (record.revision, record.override) == (revision(policy().defaults), expected.record.override)
    for constraints_of in (stored.pod_spec.constraints, record.constraints):
        assert list(map(rest, constraints_of)) == list(map(rest, expected.constraints))
        for theirs, ours in zip(constraints_of, expected.constraints, strict=True):
            assert counted(theirs, made, pods) == counted(ours, made, pods)
    return "equal"


def test_pods_equal_those_of_the_webhook(patched, capsys):
    dice = random.Random(SEED)  # noqa: S311 no secret
    workloads = [random_workload(dice, number) for number in range(70)]
    found = created(patched, dice, workloads)
    context = Context(policy=policy(), version=RELEASE, index=known_cluster(patched))
    counts = collections.Counter(
        compared(each, pods, inject(as_created(each), namespace, context, waited=True))
        for namespace, pods in found.items()
        for each in pods
    )
    with capsys.disabled():
        print(f"\n{counts.total()} pods of {len(workloads)} workloads, seed {SEED}: {dict(counts)}")
    assert counts["equal"] > 30
    assert counts["left alone"] > 10


# -- single pods

REVISION = {"app": "web", "pod-template-hash": "6d9f"}


@pytest.mark.parametrize(
    ("made", "namespace", "is_patched"),
    [
        pytest.param(of_revision(), "shop", True, id="the plain pod"),
        pytest.param(of_revision(annotations={}), "shop", True, id="empty annotations"),
        pytest.param(of_revision(annotations={SKIP: "false"}), "shop", True, id="skip: false"),
        pytest.param(of_revision(annotations={SKIP: "yes"}), "shop", False, id="skip: yes"),
        pytest.param(of_revision(topologySpreadConstraints=[]), "shop", True, id="an empty list of constraints"),
        pytest.param(of_revision(schedulerName="none"), "shop", True, id="a configured scheduler"),
        pytest.param(of_revision(schedulerName="other"), "shop", False, id="another scheduler"),
        pytest.param(of_revision(nodeName="node-a-0"), "shop", False, id="a node's name"),
        pytest.param(of_revision(), "calm", False, id="a namespace without defaults"),
        pytest.param(of_revision(), "kube-system", False, id="a namespace of Kubernetes"),
        pytest.param(of_revision({"app": "web", "pod-template-hash": "other"}), "shop", False, id="another hash"),
        pytest.param(of_revision({"app": "web"}), "shop", False, id="no hash"),
        pytest.param(of_revision(nodeSelector={"a": "b"}), "shop", False, id="selected nodes, with hardWhenDomains"),
        pytest.param(
            of_revision(REVISION | {"version": "1"}, nodeSelector={"a": "b"}),
            "shop",
            True,
            id="without hardWhenDomains",
        ),
        pytest.param(
            of_revision({"app": "web", "rollouts-pod-template-hash": "6d9f"}), "shop", True, id="an Argo Rollout's pod"
        ),
    ],
)
def test_which_pods_are_patched(patched, made, namespace, is_patched):
    assert bool(constraints(given(patched, made, namespace))) == is_patched


def test_the_scheduler_s_own_defaults_without_match_label_keys(patched):
    assert constraints(given(patched, of_revision(), "off")) == [
        {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": SOFT, "labelSelector": {"matchLabels": REVISION}}
        for skew, key in ((3, HOST), (5, ZONE))
    ]


def test_keys_stay_in_the_selector_if_it_would_be_empty(patched):
    made = given(patched, of_revision({"pod-template-hash": "6d9f"}))
    assert [(each["labelSelector"], each.get("matchLabelKeys")) for each in constraints(made)] == [
        ({"matchLabels": {"pod-template-hash": "6d9f"}}, None)
    ] * 2


def labels_of(count, size=63):
    prefix = "p" * 200 + ".example.com/"
    return {f"{prefix}{'k' * 50}{number}": "v" * size for number in range(count)}


@pytest.mark.parametrize(
    ("made", "is_patched"),
    [
        pytest.param(of_revision(REVISION | labels_of(62)), True, id="the most labels"),
        pytest.param(of_revision(REVISION | labels_of(63)), False, id="more labels"),
        pytest.param(of_revision(REVISION | labels_of(3000)), False, id="immense labels"),
        pytest.param(of_revision(REVISION | labels_of(61) | {"many": "yes"}), False, id="too much for the annotation"),
        pytest.param(of_revision(REVISION | labels_of(20) | {"many": "yes"}), True, id="sixteen constraints"),
        pytest.param(of_revision(annotations={"a": "b" * 250_000}), True, id="annotations with room"),
        pytest.param(of_revision(annotations={"a": "ä" * 130_900}), False, id="annotations without room"),
        pytest.param(of_revision(annotations={f"a{n}": "b" * 900 for n in range(256)}), True, id="many annotations"),
        pytest.param(of_revision(annotations={f"a{n}": "" for n in range(30_000)}), False, id="immense annotations"),
    ],
)
def test_the_largest_pods_do_not_exceed_the_cost_limit(patched, made, is_patched):
    """The API server ends an expression that takes too long. With the test's failurePolicy it would refuse the pod."""
    assert bool(constraints(given(patched, made))) == is_patched


def test_what_a_pod_pays(patched, capsys):
    """The median of a patched pod over that of a pod in a namespace that the policy does not match."""
    without, within = medians(lambda namespace: given(patched, of_revision(), namespace), "kube-public", "shop")
    with capsys.disabled():
        print(f"\nmedian of 100 creations: {without:.2f} ms without the policy, {within:.2f} ms with it")
    assert within - without < 20


def test_doctor_compares_the_objects_of_the_api_server(patched, tmp_path):
    """The policy of the namespace `off` is not compiled from this file."""
    config = tmp_path / "policy.json"
    config.write_text(json.dumps(POLICY))
    (made, _) = mutating_policies(policy(), RELEASE)
    where = f"/apis/{made['apiVersion']}/mutatingadmissionpolicies/evenspread-defaults"

    def changes():
        with contextlib.redirect_stdout(io.StringIO()) as out:
            main(["doctor", "--kubeconfig", str(patched.admin), "--config", str(config), "-o", "json"])
        lines = [each for each in json.loads(out.getvalue()) if each["check"] == "admission policies"]
        return [each["what"] for each in lines if "-off" not in each["where"]]

    assert changes() == ["spec.failurePolicy differs from the compiled object"]  # by this file
    for failure_policy, expected in ("Ignore", []), ("Fail", changes()):
        change = {"spec": {"failurePolicy": failure_policy}}
        patched.api.request("PATCH", where, change, "application/merge-patch+json")
        assert changes() == expected


def schedulers(count):
    """A policy with one long expression."""
    return policy(schedulerNames=[f"s{number}" for number in range(count)])


def different_overrides(count):
    """A policy with many expressions."""
    made = [
        {"maxSkew": 1, "topologyKey": f"example.com/{number}", "whenUnsatisfiable": SOFT} for number in range(count)
    ]
    overrides = [{"name": f"o{number}", "defaultConstraints": [each]} for number, each in enumerate(made)]
    return policy(defaults=POLICY["defaults"] | {"overrides": overrides})


@pytest.mark.parametrize(
    ("grown", "limit", "error"),
    [
        pytest.param(schedulers, "accepts 100,000", "expression code point size exceeds limit", id="an expression"),
        pytest.param(
            different_overrides, "annotation", "metadata.annotations: Too long", id="the annotation of kubectl"
        ),
    ],
)
def test_compile_and_the_api_server_accept_the_same_sizes(patched, tmp_path, grown, limit, error):
    def compiled(count):
        return next(mutating_policies(grown(count), RELEASE))

    kubectl = Kubectl(patched.binaries / "kubectl", patched.admin, tmp_path)
    more = bisect(range(20_000), 0, key=lambda count: bool(why_refused(compiled(count))))
    for count, accepted in ((more - 1, True), (more, False)):
        made = compiled(count)
        ran = kubectl("apply", "--dry-run=server", "-f", "-", stdin=made)
        assert (limit in why_refused(made), error in ran.err, ran.code == 0) == (not accepted, not accepted, accepted)


@pytest.mark.skipif(OLDER is not None, reason="Kubernetes 1.37 reads files")
def test_policies_of_files_need_no_objects(binaries, tmp_path):
    """`--target map-manifests` in the directory that the API server reads at its start."""
    objects = [*mutating_policies(policy(), RECORDED, suffix=STATIC_SUFFIX)]
    read = flags.static_policies(tmp_path, "MutatingAdmissionPolicy", objects)
    with ControlPlane(tmp_path / "plane", binaries, apiserver=read) as plane:
        made = eventually(lambda: constraints(given(plane, of_revision(), "default")))
        where = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
        assert plane.api.request("GET", where)["items"] == []
    assert [each["topologyKey"] for each in made] == [ZONE, HOST]
