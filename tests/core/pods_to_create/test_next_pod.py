"""The next pod of a template: what its controller adds, and what this webhook would."""

import msgspec
import pytest
from build import NAMESPACE, constraint, index, namespace, node, owner, pod, policy, running

from webhook.core.api.version import RECORDED
from webhook.core.api.well_known import SKIP_ANNOTATION
from webhook.core.context import Context
from webhook.core.defaulting.injection import Injection, Skip, SkipReason
from webhook.core.pods_to_create.next_pod import PodSource, after_admission, sent_pod, unknown_labels
from webhook.core.policy.policy import Policy
from webhook.core.workloads.labels_at_creation import NOT_YET_KNOWN, is_placeholder, labels_at_creation
from webhook.core.workloads.reading import read_workload
from webhook.core.workloads.workload import namespace_of

HASH = "pod-template-hash"
API = {"Rollout": "argoproj.io/v1alpha1", "Job": "batch/v1", "Pod": "v1", "CronJob": "batch/v1"}


class _MadeUp:
    """Equal to any made-up value."""

    def __eq__(self, other):
        return is_placeholder(other)

    __hash__ = None


MADE_UP = _MadeUp()


def written(kind, *, keys=None, ordinals=None, **meta):
    """An object of namespace shop, named web, with one constraint."""
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": keys}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"topologySpreadConstraints": [spread]}}
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template, "ordinals": ordinals}
    if kind == "CronJob":
        spec = {"jobTemplate": {"spec": {"template": template}}}
    metadata = {"name": "web", "namespace": NAMESPACE} | meta
    raw = {"apiVersion": API.get(kind, "apps/v1"), "kind": kind, "metadata": metadata, "spec": spec}
    return read_workload(msgspec.json.encode(raw))


def made(kind, cluster=None, *, applied=False, **more):
    workload = written(kind, **more)
    return sent_pod(source(workload, applied=applied), cluster or index())


def source(workload, *, applied=False):
    return PodSource(workload=workload, template=workload.templates[0], namespace=NAMESPACE, applied=applied)


def beside(cluster, policy):
    return Context(policy=policy, version=RECORDED, index=cluster)


@pytest.mark.parametrize(
    ("kind", "name", "added", "owned"),
    [
        (
            "Deployment",
            f"web-{NOT_YET_KNOWN}-{NOT_YET_KNOWN}",
            {HASH: MADE_UP},
            ("ReplicaSet", f"web-{NOT_YET_KNOWN}"),
        ),
        (
            "Rollout",
            f"web-{NOT_YET_KNOWN}-{NOT_YET_KNOWN}",
            {"rollouts-pod-template-hash": MADE_UP},
            ("ReplicaSet", f"web-{NOT_YET_KNOWN}"),
        ),
        ("ReplicaSet", f"web-{NOT_YET_KNOWN}", {}, ("ReplicaSet", "web")),
        (
            "DaemonSet",
            f"web-{NOT_YET_KNOWN}",
            {"controller-revision-hash": MADE_UP, "pod-template-generation": MADE_UP},
            ("DaemonSet", "web"),
        ),
        (
            "CronJob",
            f"web-{NOT_YET_KNOWN}-{NOT_YET_KNOWN}",
            {
                "batch.kubernetes.io/job-name": f"web-{NOT_YET_KNOWN}",
                "batch.kubernetes.io/controller-uid": MADE_UP,
                "job-name": f"web-{NOT_YET_KNOWN}",
                "controller-uid": MADE_UP,
            },
            ("Job", f"web-{NOT_YET_KNOWN}"),
        ),
        (
            "StatefulSet",
            "web-0",
            {
                "statefulset.kubernetes.io/pod-name": "web-0",
                "apps.kubernetes.io/pod-index": "0",
                "controller-revision-hash": MADE_UP,
            },
            ("StatefulSet", "web"),
        ),
        (
            "Job",
            f"web-{NOT_YET_KNOWN}",
            {
                "batch.kubernetes.io/job-name": "web",
                "batch.kubernetes.io/controller-uid": MADE_UP,
                "job-name": "web",
                "controller-uid": MADE_UP,
            },
            ("Job", "web"),
        ),
    ],
)
def test_what_a_controller_adds(kind, name, added, owned):
    template = made(kind).template
    assert (template.meta.name, template.meta.namespace) == (name, NAMESPACE)
    assert template.labels == {"app": "web", **added}
    controller = template.meta.controller
    assert (controller.kind, controller.name) == owned
    assert template.pod_spec.constraints[0].topology_key == "zone"


@pytest.mark.parametrize(
    ("pods", "applied", "revision"),
    [
        pytest.param({}, True, MADE_UP, id="none runs"),
        pytest.param({"web-0": "web-1a"}, True, "web-1a", id="one"),
        pytest.param({"web-1": "web-1a", "web-2": "web-1a"}, True, "web-1a", id="of all that run"),
        pytest.param({"web-0": "web-1a", "web-2": "web-2b"}, True, None, id="two, of which it may be either"),
        pytest.param({"web-3": "web-1a", "db-0": "db-1"}, True, MADE_UP, id="none of its ordinals"),
        pytest.param({"web-0": "web-1a"}, False, MADE_UP, id="a new one"),
    ],
)
def test_the_revision_of_a_set_is_the_one_that_runs(pods, applied, revision):
    cluster = index(node("n"))
    for name, value in pods.items():
        cluster.apply("ADDED", running(name, "n", f"app=web controller-revision-hash={value}"))
    labels = made("StatefulSet", cluster, applied=applied).template.labels
    assert labels.get("controller-revision-hash") == revision


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        *((kind, {}) for kind in ("Deployment", "Rollout", "StatefulSet", "Job", "CronJob")),
        pytest.param("Job", {"name": "", "generateName": "web-"}, id="a Job whose name is generated"),
    ],
)
def test_what_is_made_up_differs_between_workloads_and_stays_for_each(kind, given):
    """Labels, names and uids: of two workloads none is the same, whatever constraints select on."""
    pods = {}
    for other in ({}, {"name": "api"}, {"namespace": "other"}, {"uid": "u2"}):
        found = [made(kind, **{**given, **other}) for _ in range(2)]
        assert found[0] == found[1]
        pods[str(other)] = found[0]
    added = [
        {key: value for key, value in each.template.labels.items() if "revision-hash" in key or "template-hash" in key}
        or {"job": each.template.labels["controller-uid"]}
        for each in pods.values()
    ]
    values = [value for each in added for value in each.values()]
    assert len({*values}) == len(values) == 4
    assert len({each.owners[-1].meta.uid for each in pods.values()}) == 4


def test_what_is_made_up_within_a_workload_differs():
    uids = [each.meta.uid for each in made("Deployment").owners]
    assert len({*uids, made("Deployment").template.labels[HASH]}) == 3


def test_a_pod_is_its_own_template():
    raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one", "labels": {"app": "web"}}}
    workload = read_workload(msgspec.json.encode(raw))
    found = sent_pod(source(workload), index())
    assert (found.template, found.owners) == (workload.templates[0].pod, ())


def test_the_ordinal_is_the_lowest_that_is_free():
    cluster = index(node("n"), running("web-0", "n"), running("web-2", "n"))
    assert made("StatefulSet", cluster).template.meta.name == "web-1"


@pytest.mark.parametrize(
    ("ordinals", "first"),
    [
        pytest.param({"start": 5}, 5, id="begin at five"),
        pytest.param({"start": 0}, 0, id="begin at nought"),
        pytest.param({}, 0, id="begin nowhere"),
        pytest.param(None, 0, id="are not named"),
    ],
)
def test_ordinals_begin_where_the_set_says(ordinals, first):
    workload = written("StatefulSet", ordinals=ordinals)
    cluster = index(node("n"), running("web-0", "n"), running(f"web-{first}", "n"))
    for pods, number in ((index(), first), (cluster, first + 1)):
        template = sent_pod(source(workload), pods).template
        assert template.meta.name == f"web-{number}"
        assert template.labels["statefulset.kubernetes.io/pod-name"] == f"web-{number}"
        assert template.labels["apps.kubernetes.io/pod-index"] == str(number)
    assert labels_at_creation(workload, workload.templates[0].pod)["apps.kubernetes.io/pod-index"] == str(first)


def test_an_applied_deployment_makes_pods_of_its_largest_replicaset():
    cluster = index(
        owner("ReplicaSet/web-old", f"app=web {HASH}=old", replicas=1, above="Deployment/web"),
        owner("ReplicaSet/web-new", f"app=web {HASH}=new", replicas=2, above="Deployment/web"),
        owner("ReplicaSet/db-1", f"app=db {HASH}=1", replicas=9, above="Deployment/db"),
        owner("ReplicaSet/bare", "app=web", replicas=9),
    )
    template = made("Deployment", cluster, applied=True).template
    assert (template.labels[HASH], template.meta.controller.name) == ("new", "web-new")
    assert made("Deployment", cluster).template.labels[HASH] == MADE_UP
    assert made("Deployment", index(), applied=True).template.labels[HASH] == MADE_UP


def test_a_replicaset_without_its_hash_is_taken_for_none():
    cluster = index(owner("ReplicaSet/web-1", "app=web", replicas=1, above="Deployment/web"))
    assert made("Deployment", cluster, applied=True).template.labels[HASH] == MADE_UP


def test_owners_that_may_not_exist_yet():
    above, replica_set = made("Deployment").owners
    assert (above.kind, above.replicas, above.meta.uid) == ("Deployment", 3, MADE_UP)
    assert replica_set.selector.match_labels == {"app": "web", HASH: MADE_UP}
    assert [each.kind for each in made("StatefulSet", uid="u1").owners] == ["StatefulSet"]


@pytest.mark.parametrize(
    ("keys", "expected"), [(None, ()), ([HASH], (HASH,)), (["app"], ())], ids=["none asked", "the hash", "another"]
)
def test_labels_that_constraints_ask_for_and_nobody_knows(keys, expected):
    template = made("Deployment", keys=keys).template
    assert unknown_labels(after_admission(template, NAMESPACE, beside(index(), Policy())).pod) == expected


def test_a_selector_may_ask_for_an_unknown_label():
    incoming = pod(
        f"app=web {HASH}={NOT_YET_KNOWN} job-name={NOT_YET_KNOWN}", constraints=(constraint(select=f"app=web {HASH}"),)
    )
    assert unknown_labels(incoming) == (HASH,)
    null = pod(f"app=web {HASH}={NOT_YET_KNOWN}", constraints=(constraint(),))
    assert unknown_labels(null) == ()


class TestPosted:
    def test_nothing_is_injected_where_the_configuration_only_observes(self):
        found = after_admission(pod(), NAMESPACE, beside(index(namespace()), policy(mode="observe")))
        assert (found.injected, found.pod.pod_spec.constraints) == (None, ())

    def test_what_is_injected_counts(self):
        cluster = index(namespace())
        template = made("Deployment", cluster)
        for each in template.owners:
            cluster.apply("ADDED", each)
        found = after_admission(
            msgspec.structs.replace(template.template, spec=None), NAMESPACE, beside(cluster, policy())
        )
        assert isinstance(found.injected, Injection)
        [mine] = found.pod.pod_spec.constraints
        assert mine.match_label_keys == (HASH,)
        assert unknown_labels(found.pod) == (HASH,)

    def test_a_deployment_that_opts_out_does_so_for_its_pods(self):
        cluster = index(namespace())
        template = made("Deployment", cluster, annotations={SKIP_ANNOTATION: "true"})
        for each in template.owners:
            cluster.apply("ADDED", each)
        found = after_admission(
            msgspec.structs.replace(template.template, spec=None), NAMESPACE, beside(cluster, policy())
        )
        assert found.injected == Skip(SkipReason.OPTED_OUT)

    def test_why_nothing_is_injected(self):
        found = after_admission(pod(constraints=(constraint(),)), NAMESPACE, beside(index(), policy()))
        assert found.injected == Skip(SkipReason.OWN_CONSTRAINTS)
        unknown = after_admission(pod(owner="ReplicaSet/web-1"), NAMESPACE, beside(index(), policy()))
        assert unknown.injected == Skip(SkipReason.OWNER_UNKNOWN)

    def test_the_namespace_is_the_callers_where_none_is_written(self):
        bare = msgspec.structs.replace(pod(), metadata=msgspec.structs.replace(pod().meta, namespace=""))
        assert after_admission(bare, "here", beside(index(), Policy())).pod.meta.namespace == "here"
        assert after_admission(pod(), "here", beside(index(), Policy())).pod.meta.namespace == NAMESPACE

    def test_a_created_pod_has_no_uid_yet(self):
        old = msgspec.structs.replace(pod(), metadata=msgspec.structs.replace(pod().meta, uid="u1"))
        assert after_admission(old, NAMESPACE, beside(index(), Policy())).pod.meta.uid == ""
        assert after_admission(old, NAMESPACE, beside(index(), Policy()), posted=False).pod.meta.uid == "u1"


@pytest.mark.parametrize(("own", "given", "expected"), [("shop", "x", "shop"), ("", "x", "x"), ("", "", "default")])
def test_where_pods_go(own, given, expected):
    assert namespace_of(own, given) == expected
