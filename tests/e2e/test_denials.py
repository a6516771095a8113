"""What a person reads: the API server's own refusals, ours, and our warnings."""

import json
import re

import pytest
from e2e.objects import HOST, clean, constraint, path, pod, workload
from e2e.registration import registered
from e2e.waiting import eventually

BLOCK = re.compile(r"^  \d+ (\S+)  (.*)\n    (.*)$", re.MULTILINE)


@pytest.fixture(name="hooked")
def _hooked(plane, namespace, strict):
    with registered(plane, namespace, strict.server):
        yield namespace


def told(message):
    """Path and text of each fault in a denial of ours."""
    return [(path, text) for _, path, text in BLOCK.findall(message)]


def test_a_field_fault_of_a_pod_is_the_api_servers_own_to_refuse(plane, namespace, strict):
    with registered(plane, namespace, strict.server, scope="Namespaced"):
        before = strict.reviews("mutate"), strict.reviews("validate")
        refused = plane.api.send("POST", path("Pod", namespace), pod("web", constraint(maxSkew=0)))
        after = strict.reviews("mutate"), strict.reviews("validate")

    assert (refused.status, refused.message) == (
        422,
        'Pod "web" is invalid: spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero',
    )
    assert (after[0] - before[0], after[1] - before[1]) == (1, 0)


def controlled(api_version, kind):
    reference = {"apiVersion": api_version, "kind": kind, "name": "own", "uid": "1", "controller": True}
    return {"ownerReferences": [reference]}


@pytest.mark.parametrize(
    "meta",
    [
        pytest.param({"annotations": {"kubernetes.io/config.mirror": "x"}}, id="the annotation of mirror pods"),
        pytest.param(controlled("v1", "ConfigMap"), id="an owner that makes nothing"),
        pytest.param(controlled("v1", "Pod"), id="a pod as its owner"),
        pytest.param(controlled("apps/v1", "Deployment"), id="an owner that is not there"),
        pytest.param({"deletionTimestamp": "2026-11-21T00:00:00Z"}, id="as if it were being deleted"),
        pytest.param({"annotations": {"evenspread.io/exempt": "max-skew"}}, id="our own annotation"),
        pytest.param({"annotations": {"evenspread.io/skip": "true"}}, id="our annotation against defaults"),
    ],
)
def test_nothing_that_an_author_writes_takes_a_denial_away(plane, hooked, meta):
    def created(*constraints):
        made = workload("Rollout", "web", *constraints)
        made["metadata"] |= meta
        return plane.api.send("POST", f"{path('Rollout', hooked)}?dryRun=All", made).status

    assert (created(constraint(maxSkew=0)), created(constraint())) == (403, 201)


FAULTS = [
    pytest.param([constraint(maxSkew=0)], id="maxSkew 0"),
    pytest.param([constraint(maxSkew=None)], id="no maxSkew"),
    pytest.param([constraint(topologyKey=None)], id="no topologyKey"),
    pytest.param([constraint(whenUnsatisfiable="Sometimes")], id="an unknown action"),
    pytest.param([constraint(minDomains=0)], id="minDomains 0"),
    pytest.param([constraint(minDomains=2, whenUnsatisfiable="ScheduleAnyway")], id="minDomains of a soft constraint"),
    pytest.param([constraint(nodeTaintsPolicy="Obey")], id="an unknown taints policy"),
    pytest.param([constraint(nodeAffinityPolicy="Obey")], id="an unknown affinity policy"),
    pytest.param([constraint(matchLabelKeys=["v"], labelSelector=None)], id="matchLabelKeys without a selector"),
    pytest.param([constraint(matchLabelKeys=["a b"])], id="a label key that is none"),
    pytest.param([constraint(), constraint(maxSkew=2)], id="the same constraint twice"),
    pytest.param([constraint(labelSelector={"matchLabels": {"app": "a b"}})], id="a label value that is none"),
    pytest.param(
        [constraint(labelSelector={"matchExpressions": [{"key": "app", "operator": "In"}]})], id="In without values"
    ),
    pytest.param(
        [constraint(labelSelector={"matchExpressions": [{"key": "app", "operator": "Gt"}]})], id="an unknown operator"
    ),
    pytest.param(
        [constraint(maxSkew=-1, topologyKey=""), constraint(topologyKey=HOST, maxSkew=0)], id="several faults"
    ),
]


@pytest.mark.parametrize("constraints", FAULTS)
def test_a_broken_rollout_is_refused_with_the_words_that_a_deployment_gets(plane, hooked, constraints):
    native = plane.api.send("POST", path("Deployment", hooked), workload("Deployment", "web", *constraints))
    causes = [(cause["field"], cause["message"]) for cause in native.body["details"]["causes"]]

    ours = plane.api.send("POST", path("Rollout", hooked), workload("Rollout", "web", *constraints))

    assert (native.status, ours.status, ours.body["reason"]) == (422, 403, "Forbidden")
    assert told(ours.message) == causes
    first = f'admission webhook "validate.evenspread.io" denied the request: Rollout {hooked}/web: {causes[0][0]}: '
    assert ours.message.startswith(first)


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({"maxSkew": "1"}, id="a string for a number"),
        pytest.param({"maxSkew": 1.5}, id="a fraction"),
        pytest.param({"maxSkew": 2147483648}, id="a number too large"),
        pytest.param({"labelSelector": []}, id="a list for an object"),
    ],
)
def test_a_rollout_of_the_wrong_types_is_refused_with_the_words_of_decoding(plane, hooked, broken):
    native = plane.api.send("POST", path("Deployment", hooked), workload("Deployment", "web", constraint(**broken)))
    assert native.status == 400
    words = native.message.partition("cannot be handled as a Deployment: ")[2]
    assert words.startswith("json: cannot unmarshal ")

    ours = plane.api.send("POST", path("Rollout", hooked), workload("Rollout", "web", constraint(**broken)))

    assert (ours.status, words in ours.message) == (403, True), ours.message


def test_the_audit_log_has_every_finding_of_a_refused_rollout(plane, hooked):
    plane.api.send("POST", path("Rollout", hooked), workload("Rollout", "web", constraint(maxSkew=0)))

    def logged():
        lines = map(json.loads, (plane.directory / "audit.log").read_text().splitlines())
        return [line["annotations"] for line in lines if line["objectRef"]["namespace"] == hooked]

    (annotations,) = eventually(logged)
    ours = {key.removeprefix("validate.evenspread.io/"): annotations[key] for key in annotations if "evenspread" in key}
    assert ours == {
        "findings": "2",
        "finding-1": "max-skew deny spec.template.spec.topologySpreadConstraints[0].maxSkew:"
        " Invalid value: 0: must be greater than zero",
        "finding-2": "system-defaults-lost audit spec.template.spec.topologySpreadConstraints:"
        " declaring a constraint turns off the scheduler's default spreading across nodes;"
        " add a hostname constraint with ScheduleAnyway",
    }


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Rollout"])
def test_a_clean_workload_passes_without_a_word(plane, namespace, denying, kind):
    with registered(plane, namespace, denying.server):
        created = plane.api.send("POST", path(kind, namespace), clean(kind))

    assert (created.status, created.warnings) == (201, ()), created.message
