"""What kube-apiserver says of the pods that controllers make, with and without the defaults of this webhook."""

import json

import jsonpatch
import msgspec
import pytest
from build import NAMESPACE, defaulted, index, namespace, node, service
from hypothesis import given, settings
from hypothesis import strategies as st
from manifest import workload
from strategies import TOPOLOGY, defaults, label_texts

from webhook.core.api.types import Pod
from webhook.core.api.version import RECORDED
from webhook.core.apiserver.validation import label_errors, validate_constraints
from webhook.core.defaulting.injection import Injection
from webhook.core.pods_to_create.next_pod import PodSource, sent_pod
from webhook.core.policy.policy import Policy
from webhook.core.workloads.reading import read_workload
from webhook.core.workloads.refused_pods import refusals

KINDS = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job", "CronJob", "Rollout")
KEYS = ("app", "tier", "absent", "pod-template-hash", "apps.kubernetes.io/pod-index", "batch.kubernetes.io/job-name")
PATH = "spec.topologySpreadConstraints"

selectors = st.fixed_dictionaries(
    {},
    optional={
        "matchLabels": st.dictionaries(st.sampled_from(KEYS), st.sampled_from(["web", "a"]), max_size=2),
        "matchExpressions": st.lists(
            st.builds(lambda key: {"key": key, "operator": "Exists"}, st.sampled_from(KEYS)), max_size=2
        ),
    },
)


@st.composite
def workloads(draw):
    """A workload of any kind; its constraints have selectors, keys, both or none."""
    written = [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": draw(st.none() | selectors),
            "matchLabelKeys": draw(st.none() | st.lists(st.sampled_from(KEYS), max_size=3)),
        }
        for key in draw(st.lists(st.sampled_from(TOPOLOGY), max_size=2, unique=True))
    ]
    labels = f"app=web {draw(st.sampled_from(['', 'tier=a', 'tier=b pod-template-hash=x']))}"
    found = workload(draw(st.sampled_from(KINDS)), labels, *written)
    return read_workload(json.dumps(found).encode())


@st.composite
def surroundings(draw):
    services = [service(f"s{i}", draw(label_texts | st.just("app=web"))) for i in range(draw(st.integers(0, 2)))]
    return index(namespace(), *services, node("n1", "a"), node("n2", "b"))


def said_of(pod):
    """The API server's errors of a pod as it is sent."""
    constraints = validate_constraints(pod.pod_spec.constraints, pod.labels, PATH, RECORDED)
    return (*label_errors(pod.labels, RECORDED), *constraints)


def made(found, cluster):
    """The next pod, with its owners in the cluster."""
    made = sent_pod(PodSource(workload=found, template=found.templates[0], namespace=NAMESPACE), cluster)
    for owner in made.owners:
        cluster.apply("ADDED", owner)
    return Pod(metadata=made.template.metadata, spec=made.template.spec)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(workloads(), surroundings())
def test_refused_is_what_the_made_pod_is_refused_for(found, cluster):
    assert tuple(each.error for each in refusals(found, found.templates[0], RECORDED)) == said_of(made(found, cluster))


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(workloads(), defaults(), surroundings())
def test_defaults_make_no_pod_refused(found, configured, cluster):
    pod = made(found, cluster)
    result = defaulted(pod, Policy(defaults=configured), cluster, waited=True)
    if isinstance(result, Injection):
        raw = jsonpatch.apply_patch(json.loads(msgspec.json.encode(pod)), list(result.patch))
        assert said_of(msgspec.json.decode(json.dumps(raw), type=Pod)) == ()
