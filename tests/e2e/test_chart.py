"""`helm install` of the chart as it is, in a cluster where its pods are real processes behind a real Service."""

import contextlib
import os
import re
import subprocess
import time

import pytest
from chart.rendered import CHART, INJECT, ZERO, objects
from e2e.helm import WAIT, Helm, quiet
from e2e.kubelet import Kubelet
from e2e.objects import ZONE, clean, constraint, path, pod, pod_spec, workload
from e2e.registration import GROUP
from e2e.waiting import eventually

NAMESPACE = "evenspread"
CONFIGURATIONS = ("validatingwebhookconfigurations", "mutatingwebhookconfigurations")
# Where each kind of the chart is kept.
COLLECTIONS = {
    "ValidatingWebhookConfiguration": f"{GROUP}/{CONFIGURATIONS[0]}",
    "MutatingWebhookConfiguration": f"{GROUP}/{CONFIGURATIONS[1]}",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "NetworkPolicy": f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/networkpolicies",
    "HorizontalPodAutoscaler": f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers",
    "PodDisruptionBudget": f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets",
    **{kind: path(kind, NAMESPACE) for kind in ("ConfigMap", "Deployment", "Pod", "Service")},
    "ServiceAccount": f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts",
    "Secret": f"/api/v1/namespaces/{NAMESPACE}/secrets",
    "Lease": f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases",
    "Role": f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles",
    "RoleBinding": f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings",
}
DEFAULTS = [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}]
# Two steps of docs/how-to/observe-to-deny.md at once.
DENYING_AND_INJECTING = (
    "--set",
    "config.ceiling=deny",
    "--set-json",
    f'config.defaults={{"mode":"inject","defaultConstraints":{DEFAULTS!s}}}'.replace("'", '"'),
)


def commands(heading):
    """The shell commands below a heading of the chart's README."""
    text = (CHART / "README.md").read_text().partition(f"\n## {heading}\n")[2]
    return re.search(r"```\n(.*?)```", text, re.DOTALL)[1]


@pytest.fixture(name="helm", scope="module")
def _helm(plane, tmp_path_factory):
    return Helm(plane, NAMESPACE, tmp_path_factory.mktemp("helm"))


@pytest.fixture(name="shell", scope="module")
def _shell(plane, tmp_path_factory):
    """Commands as a page prints them."""
    folder = tmp_path_factory.mktemp("shell")
    environment = os.environ | {
        "HOME": str(folder),
        "KUBECONFIG": str(plane.admin),
        "PATH": f"{plane.binaries}:{os.environ['PATH']}",
    }

    def run(script):
        return subprocess.run(
            ["bash", "-euc", script],  # noqa: S607  that of the machine, as the page's reader has it
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


@pytest.fixture(name="release", scope="module")
def _release(plane, helm, pod_addresses_are_local, tmp_path_factory):
    """Zero values, and nothing else; each test leaves it as it was."""
    if not pod_addresses_are_local:
        pytest.skip("not in a network namespace: netns.sh says why")
    where = f"/api/v1/namespaces/{NAMESPACE}"
    plane.api.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    eventually(lambda: plane.api.send("GET", f"{where}/serviceaccounts/default").status == 200)
    kubelet = Kubelet(plane, NAMESPACE, tmp_path_factory.mktemp("kubelet"))
    try:
        confine(plane, "restricted")
        with kubelet.at_work():
            installed = helm("install", "evenspread", *WAIT)
        confine(plane, None)
        assert (installed.returncode, quiet(installed.stderr)) == (0, "")
        kubelet.sync()
        yield kubelet
    finally:
        kubelet.stop()
        helm("uninstall", "evenspread")
        plane.api.send("DELETE", f"/api/v1/namespaces/{NAMESPACE}")


def confine(plane, level):
    """Only pods that Pod Security's level admits are made in the chart's namespace."""
    labels = {"pod-security.kubernetes.io/enforce": level}
    patched(plane, f"/api/v1/namespaces/{NAMESPACE}", {"metadata": {"labels": labels}})


@contextlib.contextmanager
def asked(kubelet, *, validate=0, mutate=0):
    """So many reviews are sent in the block, no more and no fewer."""
    before = [kubelet.reviews(route) for route in ("validate", "mutate")]
    yield
    after = [kubelet.reviews(route) for route in ("validate", "mutate")]
    assert [late - early for late, early in zip(after, before, strict=True)] == [validate, mutate]


def configurations(plane):
    """What is registered: `kind/name`."""
    found = {kind: plane.api.request("GET", f"{GROUP}/{kind}")["items"] for kind in CONFIGURATIONS}
    return [f"{kind}/{item['metadata']['name']}" for kind, items in found.items() for item in items]


def trusted(plane):
    """Whether the API server knows the CA in every configuration."""
    found = [item for kind in CONFIGURATIONS for item in plane.api.request("GET", f"{GROUP}/{kind}")["items"]]
    return all(each["clientConfig"].get("caBundle") for item in found for each in item["webhooks"])


def running(plane, namespace, count):
    """The pods of a namespace, once so many run."""

    def found():
        pods = plane.api.request("GET", path("Pod", namespace))["items"]
        live = [each for each in pods if "deletionTimestamp" not in each["metadata"]]
        return live if sum(each["status"].get("phase") == "Running" for each in live) == len(live) == count else None

    return eventually(found)


def settled(plane, where):
    """Until a Deployment's controller lets it be: a patch, and its review, is repeated if a status comes before it."""
    versions = []

    def same():
        found = plane.api.request("GET", where)
        versions.append(found["metadata"]["resourceVersion"] if has_come_up(found) else f"not yet {len(versions)}")
        return len(versions) >= 5 and len({*versions[-5:]}) == 1

    eventually(same, every=0.1)


def has_come_up(deployment):
    """Whether its controller has said so, as `kubectl rollout status` asks."""
    meta, status, replicas = deployment["metadata"], deployment.get("status", {}), deployment["spec"]["replicas"]
    counted = [status.get(name) for name in ("replicas", "updatedReplicas", "availableReplicas")]
    return status.get("observedGeneration") == meta["generation"] and counted == [replicas] * 3


def patched(plane, where, change):
    return plane.api.request("PATCH", where, change, "application/merge-patch+json")


# -- zero values


def test_without_a_certificate_helm_says_what_to_do_and_leaves_nothing(plane, namespace, helm):
    refused = helm("install", "spread", "--set", "certificates.mode=existingSecret", namespace=namespace)

    assert refused.returncode == 1
    assert f"In namespace {namespace} Helm sees no Secret spread-evenspread-webhook-tls. Choose one:" in refused.stderr
    assert "--set certificates.mode=certManager" in refused.stderr
    assert configurations(plane) == []
    assert plane.api.request("GET", path("Deployment", namespace))["items"] == []


@pytest.mark.usefixtures("release")
def test_a_secret_that_is_made_as_the_readme_says_is_taken(plane, helm, shell):
    made = shell(commands("The certificate").replace(f"kubectl create namespace {NAMESPACE}\n", ""))
    upgraded = helm("upgrade", "evenspread", "--dry-run=server", "--set", "certificates.mode=existingSecret")
    plane.api.request("DELETE", f"{COLLECTIONS['Secret']}/evenspread-webhook-tls")

    assert (made.returncode, upgraded.returncode) == (0, 0), made.stderr + upgraded.stderr
    assert "certificate from Secret evenspread-webhook-tls." in upgraded.stdout


def test_two_replicas_know_the_cluster_by_the_account_of_the_chart(release):
    pages = [each.get("/readyz") for each in release.containers]

    assert [status for status, _ in pages] == [200, 200]
    for _, text in pages:
        lines = [line for line in text.splitlines() if line.startswith("cluster")]
        assert lines == ["cluster: ok"], text  # nothing was forbidden


def test_zero_values_deny_nothing_and_patch_nothing(plane, namespace, release):
    wrong = constraint(labelSelector={"matchLabels": {"app": "other"}})
    with asked(release, validate=2):
        rollout = plane.api.send("POST", path("Rollout", namespace), workload("Rollout", "web", constraint(maxSkew=0)))
        deployment = plane.api.send("POST", path("Deployment", namespace), workload("Deployment", "web", wrong))
        pods = running(plane, namespace, 2)

    assert (rollout.status, deployment.status) == (201, 201)
    assert [text.partition(":")[0] for text in deployment.warnings] == ["evenspread/selector-not-self"]
    assert [text.partition(":")[0] for text in rollout.warnings] == ["evenspread/max-skew"]
    assert configurations(plane) == ["validatingwebhookconfigurations/evenspread"]
    for each in pods:
        assert [own["maxSkew"] for own in each["spec"]["topologySpreadConstraints"]] == [1]
        assert "annotations" not in each["metadata"]


def test_nobody_waits_who_changes_no_spec(plane, namespace, release):
    where = path("Deployment", namespace, "web")
    with asked(release, validate=1):
        plane.api.request("POST", path("Deployment", namespace), clean("Deployment"))
        running(plane, namespace, 2)
        settled(plane, where)
    with asked(release):
        patched(plane, where, {"metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}}})
        settled(plane, where)
    with asked(release, validate=1):
        patched(plane, f"{where}/scale", {"spec": {"replicas": 12}})
    with asked(release):
        running(plane, namespace, 12)
        plane.api.request("DELETE", f"{path('Pod', namespace)}/{running(plane, namespace, 12)[0]['metadata']['name']}")
        running(plane, namespace, 12)
        settled(plane, where)
    with asked(release, validate=1):
        patched(plane, where, {"spec": {"template": {"metadata": {"labels": {"version": "2"}}}}})
        eventually(lambda: all("version" in each["metadata"]["labels"] for each in running(plane, namespace, 12)))
        settled(plane, where)
    with asked(release):
        plane.api.request("DELETE", where, {"propagationPolicy": "Foreground"})
        eventually(lambda: plane.api.send("GET", where).status == 404)


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet", "ReplicaSet"])
def test_pods_of_a_controller_are_never_sent(plane, namespace, release, kind):
    with asked(release, validate=1):
        plane.api.request("POST", path(kind, namespace), clean(kind))
        running(plane, namespace, 6 if kind == "DaemonSet" else 2)


def test_jobs_of_a_cron_job_are_sent_only_by_others_than_its_controller(plane, kubectl, namespace, release):
    """An owner reference is its author's word."""
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": "1", "controller": True}
    template = {"template": {"spec": pod_spec(restartPolicy="Never")}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "one"}, "spec": template}
    where = f"/apis/batch/v1/namespaces/{namespace}/jobs?dryRun=All"
    owned = {**job, "metadata": {"name": "one", "ownerReferences": [owner]}}
    with asked(release):
        account = "--as=system:serviceaccount:kube-system:cronjob-controller"
        ran = kubectl("-n", namespace, account, "create", "--dry-run=server", "-f", "-", stdin=owned)
        assert (ran.code, ran.err) == (0, "")
    with asked(release, validate=1):
        plane.api.request("POST", where, owned)
    with asked(release, validate=1):
        plane.api.request("POST", where, job)


@pytest.mark.parametrize("excluded", ["kube-system", "kube-public", NAMESPACE])
def test_system_namespaces_and_its_own_are_left_alone(plane, release, excluded):
    eventually(lambda: plane.api.send("GET", f"/api/v1/namespaces/{excluded}/serviceaccounts/default").status == 200)
    with asked(release):
        plane.api.request("POST", f"{path('Pod', excluded)}?dryRun=All", pod("web", constraint()))
        plane.api.request("POST", f"{path('Deployment', excluded)}?dryRun=All", workload("Deployment", "web"))


def test_a_large_object_is_compared_as_well(plane, namespace, release):
    """What CEL costs is bounded: beyond it the API server would not ask."""
    large = workload("Rollout", "web")
    environment = [{"name": f"V{number}", "value": "x" * 100} for number in range(5000)]
    large["spec"]["template"]["spec"]["containers"][0]["env"] = environment
    where = path("Rollout", namespace, "web")
    with asked(release, validate=1):
        plane.api.request("POST", path("Rollout", namespace), large)
    with asked(release):
        patched(plane, where, {"metadata": {"labels": {"a": "b"}}})
    with asked(release, validate=1):
        patched(plane, where, {"spec": {"replicas": 3}})


@pytest.mark.usefixtures("release")
def test_the_notes_show_how_to_see_that_it_answers(helm, shell):
    notes = helm("upgrade", "evenspread", "--dry-run=server").stdout
    script = notes.partition("nothing is created):")[2].partition("Take it out")[0]
    ran = shell(script.replace("\n  ", "\n"))

    assert (ran.returncode, ran.stderr.count("\n")) == (0, 1), ran.stderr
    assert ran.stderr.startswith("Warning: evenspread/selector-not-self: zone[0] counts app=wbe but ")
    assert ran.stdout.splitlines()[-1] == "pod/try created (server dry run)"


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(ZERO, id="zero"),
        pytest.param(INJECT, id="inject"),
        pytest.param({**INJECT, "config": {"defaults": {"mode": "inject", "fillNullSelector": True}}}, id="filling"),
        pytest.param({**ZERO, "hostNetwork": True, "ports": {"webhook": 9443}, "dnsPolicy": "ClusterFirst"}, id="host"),
        pytest.param(
            {
                **ZERO,
                "webhook": {
                    "failurePolicy": "Fail",
                    "excludedNamespaces": ["a"],
                    "objectSelector": {"matchLabels": {"a": "b"}},
                    "matchConditions": [{"name": "own", "expression": "request.userInfo.username != 'a'"}],
                    "extraResources": [{"apiGroup": "example.com", "resources": ["things"]}],
                },
                "podAnnotations": {"a": "b"},
                "commonLabels": {"team": "a"},
                "imagePullSecrets": [{"name": "registry"}],
                "networkPolicy": {"healthFrom": [{"namespaceSelector": {"matchLabels": {"a": "b"}}}]},
                "podSecurityContext": {"runAsUser": None},
                "autoscaling": {"enabled": True},
                "extraVolumes": [{"name": "trust", "configMap": {"name": "trust"}}],
                "extraVolumeMounts": [{"name": "trust", "mountPath": "/etc/ssl/certs"}],
                "grafanaDashboard": {"enabled": True, "annotations": {"grafana_folder": "a"}},
                "tests": {"enabled": True},
            },
            id="much",
        ),
    ],
)
@pytest.mark.usefixtures("release")
def test_every_object_is_taken_to_the_last_field(plane, values):
    """Conditions in CEL are compiled by the API server as well."""
    for made in objects(values, name="other", namespace=NAMESPACE):
        answer = plane.api.send("POST", f"{COLLECTIONS[made['kind']]}?dryRun=All&fieldValidation=Strict", made)
        assert (answer.status, answer.warnings) == (201, ()), f"{made['kind']}: {answer.message}"


# -- deny and inject, and out again


@pytest.fixture(name="injecting", scope="module")
def _injecting(plane, release, helm):
    """The release, upgraded: changed defaults replace the webhook's pods, and `--wait` ends once they are trusted."""
    replaced = {each.process.pid for each in release.containers}
    with release.at_work():
        upgraded = helm("upgrade", "evenspread", *DENYING_AND_INJECTING, *WAIT)
    assert (upgraded.returncode, quiet(upgraded.stderr)) == (0, "")
    release.sync()
    assert not replaced & {each.process.pid for each in release.containers}
    assert trusted(plane)
    return release


def test_defaults_are_injected_and_the_scheduler_spreads_by_them(plane, namespace, injecting):
    assert configurations(plane) == [f"{kind}/evenspread" for kind in CONFIGURATIONS]
    plane.api.request("POST", path("Deployment", namespace), workload("Deployment", "web", replicas=6))
    pods = running(plane, namespace, 6)

    zones = sorted(each["spec"]["nodeName"].split("-")[1] for each in pods)
    assert zones == ["a", "a", "b", "b", "c", "c"]
    for each in pods:
        (own,) = each["spec"]["topologySpreadConstraints"]
        assert (own["topologyKey"], own["matchLabelKeys"]) == (ZONE, ["pod-template-hash"])
        assert "evenspread.io/injected" in each["metadata"]["annotations"]
    assert injecting.reviews("mutate") >= 6


@pytest.mark.usefixtures("injecting")
def test_the_label_of_a_namespace_does_not_hold_back_what_the_release_denies(plane, namespace):
    """Its editor can set it. `test_switches.py` lowers the ceiling as the runbook says."""

    def created():
        rollout = workload("Rollout", "web", constraint(maxSkew=0))
        return plane.api.send("POST", f"{path('Rollout', namespace)}?dryRun=All", rollout)

    denied = created()
    patched(plane, f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": {"evenspread.io/ceiling": "warn"}}})

    assert (denied.status, denied.body["reason"]) == (403, "Forbidden")
    assert denied.message.startswith('admission webhook "validate.evenspread.io" denied the request: Rollout ')
    time.sleep(2)  # the watch brings the label within some milliseconds
    assert created().status == 403


@pytest.mark.parametrize(
    ("changes", "sent"),
    [
        pytest.param({}, 1, id="a bare pod"),
        pytest.param({"spec": {"topologySpreadConstraints": [constraint()]}}, 0, id="it declares a constraint"),
        pytest.param({"spec": {"topologySpreadConstraints": []}}, 1, id="an empty list"),
        pytest.param({"spec": {"nodeName": "node-a-0"}}, 0, id="it has a node"),
        pytest.param({"metadata": {"annotations": {"evenspread.io/skip": "true"}}}, 0, id="skipped"),
        pytest.param({"metadata": {"annotations": {"evenspread.io/skip": "false"}}}, 1, id="not skipped"),
        pytest.param({"metadata": {"annotations": {"other": "x"}}}, 1, id="another annotation"),
        pytest.param({"metadata": {"ownerReferences": ["apps/v1 DaemonSet"]}}, 0, id="of a DaemonSet"),
        pytest.param({"metadata": {"ownerReferences": ["apps/v1 StatefulSet"]}}, 1, id="of a StatefulSet"),
        pytest.param({"metadata": {"ownerReferences": ["example.com/v1 DaemonSet"]}}, 1, id="of another DaemonSet"),
    ],
)
def test_only_pods_that_could_get_something_are_sent(plane, namespace, injecting, changes, sent):
    made = pod("web", schedulerName="none")
    for part, fields in changes.items():
        made[part] |= fields
    owners = made["metadata"].pop("ownerReferences", [])
    for api_version, kind in map(str.split, owners):
        owner = {"apiVersion": api_version, "kind": kind, "name": "own", "uid": "1", "controller": True}
        made["metadata"]["ownerReferences"] = [owner]
    with asked(injecting, validate=1, mutate=sent):
        plane.api.request("POST", f"{path('Pod', namespace)}?dryRun=All", made)


ODD = {
    "no spec": {"spec": None},
    "a spec that is a list": {"spec": []},
    "no owner that controls": {"owner": {}},
    "an owner that says so": {"owner": {"controller": False}},
    "an owner of no group": {"owner": {"apiVersion": "v1", "kind": "Pod", "controller": True}},
    "annotations without ours": {"annotations": {"a": "b"}},
}


@pytest.mark.usefixtures("injecting")
def test_a_condition_never_fails_on_what_an_object_lacks(plane, namespace, helm):
    """Under Fail the API server would refuse the object, and say `resulted in error`."""
    closed = helm("upgrade", "evenspread", "--reset-then-reuse-values", "--set", "webhook.failurePolicy=Fail")
    try:
        said = [
            plane.api.send("POST", f"{path(kind, namespace)}?dryRun=All", odd_object(kind, **ODD[what])).message
            for kind in ("Rollout", "ReplicaSet", "Pod")
            for what in ODD
        ]
        plane.api.request("POST", path("Rollout", namespace), odd_object("Rollout", **ODD["no spec"]))
        with_spec = patched(plane, path("Rollout", namespace, "web"), {"spec": {"replicas": 1}})
        without = patched(plane, path("Rollout", namespace, "web"), {"spec": None})
    finally:
        opened = helm("upgrade", "evenspread", "--reset-then-reuse-values", "--set", "webhook.failurePolicy=Ignore")

    assert (closed.returncode, opened.returncode) == (0, 0)
    assert [text for text in said if "resulted in error" in text] == []
    assert said.count("") >= 10  # the API server itself refuses Pods and ReplicaSets without a spec
    assert ("spec" in with_spec, "spec" in without) == (True, False)


def odd_object(kind, owner=None, **changes):
    made = pod("web", schedulerName="none") if kind == "Pod" else workload(kind, "web")
    made |= {name: value for name, value in changes.items() if name != "annotations"}
    made["metadata"]["annotations"] = changes.get("annotations", {})
    if owner is not None:
        made["metadata"]["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": "X", "name": "own", "uid": "1"} | owner
        ]
    return made


def test_the_kill_switch_takes_the_configurations_out(plane, helm, injecting):
    off = helm("upgrade", "evenspread", "--reset-then-reuse-values", "--set", "webhook.enabled=false")
    gone = configurations(plane)
    on = helm("upgrade", "evenspread", "--reset-then-reuse-values", "--set", "webhook.enabled=true")
    injecting.sync()

    assert (off.returncode, gone, on.returncode) == (0, [], 0)
    assert len(configurations(plane)) == 2


def test_a_dead_webhook_stops_nobody(plane, namespace, injecting):
    injecting.stop()
    created = plane.api.send("POST", path("Deployment", namespace), workload("Deployment", "web"))

    assert (created.status, created.warnings) == (201, ())
    for each in running(plane, namespace, 2):
        assert "topologySpreadConstraints" not in each["spec"]


@pytest.mark.usefixtures("injecting")
def test_uninstalled_it_leaves_nothing(plane, namespace, helm):
    removed = helm("uninstall", "evenspread", *WAIT)
    left = [
        f"{kind} {item['metadata']['name']}"
        for kind, where in COLLECTIONS.items()
        for item in plane.api.request("GET", f"{where}?labelSelector=app.kubernetes.io/instance=evenspread")["items"]
    ]

    assert (removed.returncode, removed.stderr, left) == (0, "", [])
    assert plane.api.send("POST", path("Pod", namespace), pod("web")).status == 201
