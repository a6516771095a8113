"""Whom a constraint counts."""

import pytest
import yaml
from manifest import constraint, examined, findings, findings_of, said, workload

from webhook.core.api.version import KubernetesVersion


@pytest.mark.parametrize(
    ("pods", "constraint", "expected"),
    [
        pytest.param(
            "app=web-v2",
            "zone hard 1 app=web",
            "zone[0] counts app=web but the pods have app=web-v2, so this constraint does not spread these pods",
            id="another value",
        ),
        pytest.param(
            "tier=front",
            "zone hard 1 app=web",
            "zone[0] counts app=web but the pods have no app, so this constraint does not spread these pods",
            id="a label that the pods lack",
        ),
        pytest.param(
            "tier=front",
            "hostname hard 1 app=web tier=back",
            "hostname[0] counts app=web,tier=back but the pods have tier=front and no app,"
            " so this constraint does not spread these pods",
            id="a label that the pods lack, and another value",
        ),
        pytest.param(
            "name=x",
            "zone hard 1 app=web tier=back",
            "zone[0] counts app=web,tier=back but the pods have no app and no tier,"
            " so this constraint does not spread these pods",
            id="two labels that the pods lack",
        ),
        pytest.param(
            "app=web tier=front",
            "hostname soft 1 app=web tier=back",
            "hostname[0] counts tier=back but the pods have tier=front, so this constraint does not spread these pods",
            id="only the requirement that fails is named",
        ),
        pytest.param(
            "app=web",
            {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]}]}},
            "zone[0] counts app in (a,b) but the pods have app=web, so this constraint does not spread these pods",
            id="In",
        ),
        pytest.param(
            "app=web",
            {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}},
            "zone[0] counts app notin (web) but the pods have app=web, so this constraint does not spread these pods",
            id="NotIn",
        ),
        pytest.param(
            "app=web",
            {"labelSelector": {"matchExpressions": [{"key": "track", "operator": "Exists"}]}},
            "zone[0] counts track but the pods have no track, so this constraint does not spread these pods",
            id="Exists",
        ),
        pytest.param(
            "app=web",
            {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}},
            "zone[0] counts !app but the pods have app=web, so this constraint does not spread these pods",
            id="DoesNotExist",
        ),
    ],
)
def test_pods_that_do_not_match_their_own_selector(pods, constraint, expected):
    if isinstance(constraint, dict):
        zone = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
        constraint = {**zone, **constraint}
    assert said("selector-not-self", workload("Deployment", pods, constraint)) == [expected]


@pytest.mark.parametrize(
    "constraint",
    [
        pytest.param("zone hard 1 app=web", id="the same label"),
        pytest.param("zone hard 1 tier=front", id="a label shared with other workloads"),
        pytest.param("zone hard 1 app=web keys:pod-template-hash", id="with a revision"),
        pytest.param(
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["db"]}]},
            },
            id="NotIn of others",
        ),
    ],
)
def test_pods_that_match_their_own_selector_are_right(constraint):
    assert said("selector-not-self", workload("Deployment", "app=web tier=front", constraint)) == []


def test_a_requirement_that_kube_apiserver_refuses_is_not_judged_twice():
    refused = {"matchExpressions": [{"key": "app", "operator": "Gt", "values": ["1"]}, {"key": "app"}]}
    constraint = {"maxSkew": 1, "topologyKey": "x", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": refused}
    found = findings(workload("Deployment", "app=web", constraint))
    assert [rule for rule, mode, *_ in found if mode == "deny"] == ["label-selector"] * 2
    assert said("selector-not-self", workload("Deployment", "app=web", constraint)) == []


def test_a_selector_that_does_not_exist_is_written_as_it_is():
    absent = {"matchExpressions": [{"key": "web", "operator": "DoesNotExist"}]}
    constraint = {"maxSkew": 1, "topologyKey": "x", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": absent}
    assert said("selector-not-self", workload("Deployment", "app=web", constraint)) == []


OPEN = ["not evaluated: labels that controllers add to the pods"]


@pytest.mark.parametrize(
    ("kind", "key", "expected"),
    [
        pytest.param("Deployment", "pod-template-hash", OPEN, id="a Deployment's revision"),
        pytest.param("DaemonSet", "controller-revision-hash", OPEN, id="a DaemonSet's revision"),
        pytest.param("CronJob", "batch.kubernetes.io/job-name", OPEN, id="a CronJob's Job"),
        pytest.param("Rollout", "rollouts-pod-template-hash", OPEN, id="a Rollout's revision"),
        pytest.param("RayCluster", "ray.io/cluster", OPEN, id="Ray's cluster"),
        pytest.param("PyTorchJob", "training.kubeflow.org/job-name", OPEN, id="a training job's name"),
        pytest.param("Deployment", "topology.kubernetes.io/zone", OPEN, id="the zone of a bound pod"),
        pytest.param("Deployment", "service.istio.io/canonical-name", OPEN, id="what a mesh adds"),
        pytest.param(
            "Deployment",
            "controller-revision-hash",
            [("zone[0] counts controller-revision-hash=1 but the pods have no controller-revision-hash,"
             " so this constraint does not spread these pods")],
            id="another kind's label stays wrong",
        ),
        pytest.param(
            "Pod",
            "pod-template-hash",
            [("zone[0] counts pod-template-hash=1 but this pod has no pod-template-hash,"
             " so this constraint does not spread this pod")],
            id="a Pod has its labels",
        ),
    ],
)  # fmt: skip
def test_labels_that_come_after_the_template_are_not_called_wrong(kind, key, expected):
    manifest = workload(kind, "app=web", f"zone hard 1 app=web {key}=1")
    if kind in {"RayCluster", "PyTorchJob"}:
        pod = manifest["spec"].pop("template")
        group = {"RayCluster": "headGroupSpec", "PyTorchJob": "pytorchReplicaSpecs"}[kind]
        manifest["spec"] = {group: {"template": pod} if kind == "RayCluster" else {"Worker": {"template": pod}}}
    assert said("selector-not-self", manifest) == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        pytest.param(
            "Deployment",
            ["not evaluated: labels of the pods (a patch or an excerpt omits them)"],
            id="a Deployment that kube-apiserver would refuse as it stands",
        ),
        pytest.param(
            "Pod",
            ["zone[0] counts app=web but this pod has no app, so this constraint does not spread this pod"],
            id="a Pod",
        ),
        pytest.param(
            "CronJob",
            ["zone[0] counts app=web but the pods have no app, so this constraint does not spread these pods"],
            id="a CronJob",
        ),
    ],
)
def test_a_template_without_labels_may_be_a_part_of_an_object(kind, expected):
    assert said("selector-not-self", workload(kind, "", "zone hard 1 app=web")) == expected


def test_the_fix_of_one_label_keeps_the_others():
    found = examined(workload("Deployment", "app=web tier=front", "zone hard 1 app=web tier=back")).findings
    assert [(each.finding.remedy, each.finding.fix) for each in found if each.finding.rule == "selector-not-self"] == [
        ("use tier=front", "labelSelector: {matchLabels: {app: web, tier: front}}")
    ]


def test_a_wrong_label_is_wrong_whatever_comes_later():
    manifest = workload("Deployment", "app=web-v2", "zone hard 1 app=web pod-template-hash=1")
    assert said("selector-not-self", manifest) == [
        "zone[0] counts app=web but the pods have app=web-v2, so this constraint does not spread these pods"
    ]


def test_a_rollout_may_label_its_canaries():
    canary = {"strategy": {"canary": {"canaryMetadata": {"labels": {"role": "canary"}}}}}
    manifest = workload("Rollout", "app=web", "zone hard 1 app=web role=canary", spec=canary)
    assert said("selector-not-self", manifest) == OPEN


@pytest.mark.parametrize(
    ("kind", "pods", "expected"),
    [
        pytest.param("Deployment", "app=web x=y", "use app=web", id="the workload's own selector"),
        pytest.param(
            "Pod", "app.kubernetes.io/name=web x=y", "use app.kubernetes.io/name=web", id="the label that names it"
        ),
        pytest.param("Pod", "x=y", "use the pods' own labels", id="nothing to go by"),
        pytest.param("Pod", "", "use a label you add to the pods", id="no label at all"),
    ],
)
def test_the_fix_of_a_missing_selector(kind, pods, expected):
    found = findings(workload(kind, pods, "zone hard 1 null"))
    assert ("selector-null", "warn", "zone[0] has no labelSelector, so it counts no pods", expected) in found


@pytest.mark.parametrize(
    ("kind", "constraint", "remedy", "fix"),
    [
        pytest.param(
            "Pod", "zone hard 1 app=web", "label this pod app=web", "add {app: web} to metadata.labels", id="a pod"
        ),
        pytest.param(
            "CronJob",
            "zone hard 1 app=web tier=1",
            "label the pods app=web,tier=1",
            'add {app: web, tier: "1"} to spec.jobTemplate.spec.template.metadata.labels',
            id="a template, two labels",
        ),
        pytest.param(
            "Pod",
            {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]}]}},
            "label this pod app in (a,b)",
            "add {app: a} to metadata.labels",
            id="one of several values",
        ),
        pytest.param(
            "Pod",
            {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}},
            "label this pod app",
            'add {app: ""} to metadata.labels',
            id="any value",
        ),
    ],
)
def test_pods_without_labels_need_labels(kind, constraint, remedy, fix):
    if isinstance(constraint, dict):
        constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **constraint}
    [wrong] = findings_of("selector-not-self", workload(kind, "", constraint))
    assert (wrong.remedy, wrong.fix) == (remedy, fix)
    assert wrong.headline.endswith(f"; {remedy}")


@pytest.mark.parametrize(
    ("version", "counts"),
    [((1, 37), "no existing pod"), ((1, 31), "no existing pod"), ((1, 38), "every pod in the namespace")],
    ids=["today", "long ago", "from 1.38"],
)
def test_an_empty_selector_means_something_else_in_each_release(version, counts):
    manifest = workload("Deployment", "app=web", "zone hard 1 {}")
    text = f"zone[0]: labelSelector {{}} counts {counts} (Kubernetes {version[0]}.{version[1]})"
    assert said("selector-empty", manifest, version=KubernetesVersion(*version)) == [text]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        pytest.param("pod-template-hash", [], id="the controller adds it"),
        pytest.param("app", [], id="the pods have it"),
        pytest.param(
            "nope", ["zone[0]: labelSelector {} counts no existing pod (Kubernetes 1.37)"], id="nobody has it"
        ),
    ],
)
def test_match_label_keys_make_a_selector_of_an_empty_one(keys, expected):
    assert said("selector-empty", workload("Deployment", "app=web", f"zone hard 1 {{}} keys:{keys}")) == expected


@pytest.mark.parametrize(
    ("value", "written"),
    [("web", "web"), ("1", '"1"'), ("true", '"true"'), ("No", '"No"'), ("1.4.2", '"1.4.2"'), ("", '""'), ("n1", "n1")],
)
def test_what_is_to_be_written_is_a_text_in_yaml_too(value, written):
    [wrong] = findings_of("selector-not-self", workload("Deployment", f"app={value} tier=front", "zone hard 1 app=x"))
    assert wrong.fix == f"labelSelector: {{matchLabels: {{app: {written}}}}}"
    assert yaml.safe_load(wrong.fix) == {"labelSelector": {"matchLabels": {"app": value}}}


@pytest.mark.parametrize(
    ("pods", "given", "fix"),
    [
        pytest.param(
            "app=x_ tier=a",
            "zone soft 1 app=web",
            "change the pods' labels to values Kubernetes accepts",
            id="the pods' own value is wrong",
        ),
        pytest.param(
            "app=x_",
            "zone soft 1 name=web",
            "set matchLabels to labels that all these pods have",
            id="so is what names them",
        ),
        pytest.param("", "zone soft 1 app=_", 'add {app: "_"} to metadata.labels', id="the selector asks for one"),
        pytest.param(
            "app=web tier=a",
            {**constraint("zone soft 1"), "matchLabelKeys": ["app"], "labelSelector": {"matchLabels": {"x": "y"}}},
            "set matchLabels to labels that all these pods have",
            id="a key of matchLabelKeys must not be selected",
        ),
    ],
)
def test_no_label_is_written_that_kubernetes_refuses(pods, given, fix):
    [wrong] = findings_of("selector-not-self", workload("Pod", pods, given))
    assert (wrong.fix, wrong.edits) == (fix, ())
