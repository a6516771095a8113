"""Which object a fix is written into: the patch is applied to the object, and the shell reads the command."""

import json
import shlex

import pytest
from build import cluster, constraint, declared, index, owner, pod
from msgspec.structs import replace

from webhook.core.api.types import LabelSelector, OwnerReference
from webhook.core.api.well_known import HOSTNAME
from webhook.core.changes.candidates import PodFix
from webhook.core.changes.change import Change
from webhook.core.explain.edit_target import edit_target, json_patch, patch_command
from webhook.core.explain.explanation import explain_pod
from webhook.core.scheduler.problem import take

ZONES, HOSTS = constraint(select="app=web"), constraint(HOSTNAME, select="app=web")
WIDER = PodFix((Change(0, "maxSkew", 2),), 1)


def owned(by, *constraints, uid="u"):
    made = pod("app=web", owner=by, constraints=constraints or (ZONES,))
    return replace(made, metadata=replace(made.meta, uid=uid))


def applied(document, operations):
    """RFC 6902, as far as it is used."""
    document = json.loads(json.dumps(document))
    for each in operations:
        *way, last = each["path"].strip("/").split("/")
        here = document
        for step in way:
            here = here[int(step)] if isinstance(here, list) else here[step]
        last = int(last) if isinstance(here, list) else last
        if each["op"] == "test":
            assert here[last] == each["value"]
        elif each["op"] == "remove":
            del here[last]
        else:
            here[last] = each["value"]
    return document


DEPLOYED = index(
    owner("ReplicaSet/web-1", "app=web", above="Deployment/web"),
    owner("Deployment/web", "app=web", declared("app=web", HOSTS, ZONES)),
)
TEMPLATE = {
    "spec": {
        "template": {
            "spec": {
                "topologySpreadConstraints": [
                    {"topologyKey": HOSTNAME, "maxSkew": 1, "minDomains": 2},
                    {"topologyKey": "topology.kubernetes.io/zone", "maxSkew": 1},
                ]
            }
        }
    }
}
WAY = "/spec/template/spec/topologySpreadConstraints"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param(
            [Change(0, "maxSkew", 2)],
            [TEMPLATE["spec"]["template"]["spec"]["topologySpreadConstraints"][0], {"maxSkew": 2}],
            id="another place in the template",
        ),
        pytest.param(
            [Change(0, "labelSelector", LabelSelector(match_labels={"app": "it's"}))],
            [{}, {"labelSelector": {"matchLabels": {"app": "it's"}}}],
            id="a selector",
        ),
        pytest.param(
            [Change(1, "whenUnsatisfiable", "ScheduleAnyway"), Change(1, "minDomains")],
            [{"whenUnsatisfiable": "ScheduleAnyway", "minDomains": None}, {}],
            id="a field taken out",
        ),
        pytest.param([Change(1)], [None, {}], id="a constraint taken out"),
        pytest.param([Change(0), Change(1)], [None, None], id="both taken out"),
        pytest.param([Change(1), Change(0, "maxSkew", 3)], [None, {"maxSkew": 3}], id="one out, one changed"),
    ],
)
def test_the_patch_does_to_the_template_what_the_fix_says(changes, expected):
    incoming = owned("ReplicaSet/web-1", ZONES, HOSTS)  # in another order than the template has them
    where = edit_target(incoming, DEPLOYED)
    operations = json_patch(PodFix(tuple(changes), 1), where, incoming)
    found = applied(TEMPLATE, operations)["spec"]["template"]["spec"]["topologySpreadConstraints"]
    before = TEMPLATE["spec"]["template"]["spec"]["topologySpreadConstraints"]
    wanted = [
        {name: value for name, value in {**old, **new}.items() if value is not None}
        for old, new in zip(before, expected, strict=True)
        if new is not None
    ]
    assert found == wanted
    words = shlex.split(patch_command(operations, where, " --context prod"))
    assert words[:-1] == [
        "kubectl",
        "patch",
        "deployment",
        "web",
        "-n",
        "shop",
        "--context",
        "prod",
        "--type=json",
        "-p",
    ]
    assert json.loads(words[-1]) == operations


DELETE = "kubectl delete pod web-0 -n shop"
MAY_STAY = f"if the pod does not change, delete it, so that its controller creates another: {DELETE}"
IMMUTABLE = "the template of a Job is immutable: delete the Job, then create it with the change"
UNKNOWN = "evenspread does not know the constraints field of Redis"


@pytest.mark.parametrize(
    ("chain", "path", "note"),
    [
        ("Deployment/web", "spec.template.", ""),
        ("Rollout/web", "spec.template.", ""),
        (
            "StatefulSet/web",
            "spec.template.",
            MAY_STAY,
        ),
        ("DaemonSet/web", "spec.template.", MAY_STAY),
        ("ReplicaSet/web", "spec.template.", f"then delete the pod, so that its controller creates another: {DELETE}"),
        (
            "ReplicationController/web",
            "spec.template.",
            f"then delete the pod, so that its controller creates another: {DELETE}",
        ),
        ("Job/web", None, IMMUTABLE),
        ("Redis/web", None, UNKNOWN),
        ("ReplicaSet/web-1 Deployment/web", "spec.template.", ""),
        ("StatefulSet/web-1 Redis/web", None, f"Redis creates StatefulSet web-1: {UNKNOWN}"),
    ],
)
def test_what_to_edit(chain, path, note):
    first, *above = chain.split()
    incoming = owned(first)
    found = edit_target(incoming, index(*(owner(first, "app=web", above=each) for each in above)))
    assert (found.title, found.path, found.note) == (f"{chain.split()[-1].split('/')[0]} shop/web", path, note)
    assert (json_patch(WIDER, found, incoming) is None) == (path is None)
    assert edit_target(owned(first, uid=""), index()).note.find("kubectl") < 0  # a pod that is yet to be made


def test_a_cron_job_has_its_template_deeper():
    reference = OwnerReference(api_version="batch/v1", kind="CronJob", name="web", controller=True)
    incoming = owned("Job/web-1")
    job = owner("Job/web-1")
    known = index(replace(job, meta=replace(job.meta, owner_references=(reference,))))
    where = edit_target(incoming, known)
    assert where.note == "the change applies to the next Job, not to the waiting Job"
    assert [each["path"] for each in json_patch(WIDER, where, incoming)] == [
        "/spec/jobTemplate/spec/template/spec/topologySpreadConstraints/0/topologyKey",
        "/spec/jobTemplate/spec/template/spec/topologySpreadConstraints/0/maxSkew",
    ]
    assert patch_command([], where).startswith("kubectl patch cronjob web -n shop --type=json -p ")


def test_custom_resources_are_named_with_their_group():
    assert patch_command([], edit_target(owned("Rollout/web"), index())).startswith(
        "kubectl patch rollout.argoproj.io web "
    )


def test_a_pod_that_nobody_controls():
    found = edit_target(pod("app=web", constraints=(ZONES,)), index())
    assert (found.title, found.path) == ("Pod shop/web-0", None)
    assert found.note == "the constraints of a Pod are immutable: delete it, then create it with the change"


def test_constraints_that_the_template_does_not_have():
    known = index(owner("StatefulSet/web", "app=web", declared("app=web")))
    found = edit_target(owned("StatefulSet/web"), known)
    assert (found.path, found.note) == (
        None,
        "its template lacks the constraints: another program adds them to the pods",
    )
    partly = index(owner("StatefulSet/web", "app=web", declared("app=web", HOSTS)))
    incoming = owned("StatefulSet/web", ZONES, HOSTS)
    where = edit_target(incoming, partly)
    assert json_patch(WIDER, where, incoming) is None
    assert json_patch(PodFix((Change(1, "maxSkew", 2),), 1), where, incoming)[1]["path"] == f"{WAY}/0/maxSkew"


def test_fixes_as_they_are_found():
    state = cluster("z1: a=1 | z2: ~b=0")
    incoming = owned("StatefulSet/web")
    [first, *_] = explain_pod(take(state, incoming)).fixes
    assert json_patch(first, edit_target(incoming, state), incoming) == [
        {"op": "test", "path": f"{WAY}/0/topologyKey", "value": "topology.kubernetes.io/zone"},
        {"op": "add", "path": f"{WAY}/0/nodeTaintsPolicy", "value": "Honor"},
    ]
