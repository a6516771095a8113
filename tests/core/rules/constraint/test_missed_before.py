"""Selectors on one pod or another Job, bare topology keys, and soft constraints that a hard one implies."""

import pytest
from build import cluster
from manifest import PLAIN, judged_by
from msgspec.structs import replace

from webhook.core.policy.policy import Mode

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
WEB = {"matchLabels": {"app": "web"}}
SOFT = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": WEB}
HARD = SOFT | {"whenUnsatisfiable": "DoNotSchedule"}
POD_NAME = "statefulset.kubernetes.io/pod-name"
JOB_NAME = "batch.kubernetes.io/job-name"
POD_INDEX = "apps.kubernetes.io/pod-index"


def workload(kind, *constraints, **spec):
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"topologySpreadConstraints": [*constraints]}}
    version = "batch/v1" if kind in {"Job", "CronJob"} else "apps/v1"
    body = {"template": template, **spec}
    if kind == "CronJob":
        body = {"schedule": "@daily", "jobTemplate": {"spec": body}}
    elif kind != "Job":
        body |= {"selector": WEB, "replicas": spec.get("replicas", 3)}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "web"}, "spec": body}


def found(rule, value, index=None, policy=PLAIN):
    return judged_by(rule, value, policy, index=index)


def counting(key, *values, operator="In"):
    requirement = {"key": key, "operator": operator}
    return SOFT | {"labelSelector": {"matchExpressions": [requirement | ({"values": [*values]} if values else {})]}}


@pytest.mark.parametrize(
    ("kind", "constraint", "spec", "have"),
    [
        pytest.param("StatefulSet", counting(POD_NAME, "web-0"), {}, f"{POD_NAME}=web-0 to web-2", id="one of three"),
        pytest.param("StatefulSet", counting(POD_NAME, "web-0"), {"replicas": 1}, "", id="the only pod"),
        pytest.param("StatefulSet", counting(POD_NAME, "web-0", "web-1", "web-2"), {}, "", id="all of them"),
        pytest.param("StatefulSet", counting(POD_NAME, operator="Exists"), {}, "", id="every pod of a StatefulSet"),
        pytest.param(
            "StatefulSet", counting(POD_NAME, "db-0"), {"replicas": 1}, f"{POD_NAME}=web-0", id="a pod of another"
        ),
        pytest.param("StatefulSet", counting(POD_INDEX, "0"), {}, f"{POD_INDEX}=0 to 2", id="one ordinal"),
        pytest.param("StatefulSet", counting(POD_INDEX, "7", operator="NotIn"), {}, "", id="another ordinal left out"),
        pytest.param(
            "StatefulSet",
            counting(POD_NAME, "web-0"),
            {"ordinals": {"start": 5}, "replicas": 2},
            f"{POD_NAME}=web-5 to web-6",
            id="ordinals that begin later",
        ),
        pytest.param("Job", counting("job-name", "other"), {}, "job-name=web", id="another Job"),
        pytest.param(
            "Job", counting(JOB_NAME, "other"), {}, f"{JOB_NAME}=web", id="by the new label"
        ),
        pytest.param("Job", counting("job-name", "web"), {}, "", id="its own name"),
        pytest.param("Job", counting("job-name", "x"), {"manualSelector": True, "selector": WEB}, "", id="none given"),
        pytest.param("CronJob", counting("job-name", "web-28"), {}, "", id="a Job whose name is not known"),
    ],
)  # fmt: skip
def test_a_selector_on_the_name_of_one_pod_or_job(kind, constraint, spec, have):
    told = [each.finding for each in found("selector-not-self", workload(kind, constraint, **spec))]
    assert [have in each.summary for each in told] == ([True] if have else [])
    assert all("labelSelector" in each.fix for each in told if each.edits)


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        *(("zone", ZONE), ("Zone", ZONE), ("zones", ZONE), ("az", ZONE), ("availability-zone", ZONE)),
        *(("hostname", HOST), ("host", HOST), ("node", HOST), ("region", "topology.kubernetes.io/region")),
        *((ZONE, None), (HOST, None), ("rack", None), ("example.com/zone", None), ("topology.gke.io/zone", None)),
    ],
)
@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_a_bare_key(kind, key, meant):
    told = found("topology-key-typo", workload(kind, HARD | {"topologyKey": key}))
    assert [(each.severity, each.mode, each.finding.edits) for each in told] == (
        [("medium", Mode.AUDIT, ())] if meant else []
    )
    assert all(meant in each.finding.fix and each.finding.by_hand for each in told)


def test_a_bare_key_that_the_cluster_knows_is_not_called_wrong():
    value = workload("Deployment", HARD | {"topologyKey": "zone"})
    assert found("topology-key-typo", value, policy=replace(PLAIN, domains={"zone": ("a", "b")})) == []
    assert found("topology-key-typo", value, index=cluster("a: n1 | b: n2")) == []
    assert len(found("topology-key-unknown", value, index=cluster("a: n1 | b: n2"))) == 1


@pytest.mark.parametrize(
    ("constraints", "named"),
    [
        pytest.param([HARD, SOFT], [1], id="the same over the same key"),
        pytest.param([HARD, SOFT | {"maxSkew": 5}], [1], id="with a larger maxSkew"),
        pytest.param([SOFT, HARD], [0], id="before it"),
        pytest.param([HARD, SOFT | {"nodeTaintsPolicy": "Ignore"}], [1], id="a policy that is the default"),
        pytest.param([HARD, SOFT, SOFT | {"topologyKey": HOST}], [1], id="beside another soft one"),
        pytest.param(
            [each | {"matchLabelKeys": ["pod-template-hash"]} for each in (HARD, SOFT)], [1], id="of one revision"
        ),
        pytest.param([HARD | {"minDomains": 2}, SOFT], [1], id="minDomains leaves only empty domains, or none"),
        pytest.param([HARD | {"maxSkew": 2}, SOFT], [], id="the hard one leaves a choice"),
        pytest.param([HARD, SOFT | {"topologyKey": HOST}], [], id="another key"),
        pytest.param([HARD, SOFT | {"labelSelector": {"matchLabels": {"tier": "x"}}}], [], id="other pods"),
        pytest.param([HARD, SOFT | {"matchLabelKeys": ["pod-template-hash"]}], [], id="one revision of them"),
        pytest.param([HARD, SOFT | {"nodeTaintsPolicy": "Honor"}], [], id="other nodes"),
        pytest.param([HARD, HARD | {"topologyKey": "rack"}, SOFT], [], id="nodes without a third key"),
        pytest.param([SOFT, SOFT | {"topologyKey": HOST}], [], id="no hard one"),
    ],
)
def test_a_soft_constraint_that_a_hard_one_implies(constraints, named):
    told = [each.finding for each in found("spread-without-effect", workload("Deployment", *constraints))]
    path = "spec.template.spec.topologySpreadConstraints"
    assert [each.path for each in told] == [f"{path}[{number}]" for number in named]
    assert all(each.fix == "remove the constraint" and each.edits for each in told)
