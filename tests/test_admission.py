"""The wire: whole response documents, and a uid on every path."""

import base64
import gzip
import json
import logging
from pathlib import Path

import pytest
from build import cluster
from manifest import DENY, PLAIN
from msgspec.structs import replace

from webhook.admission import Engine, _encode, answer
from webhook.admission_request import ReviewError, decode_review
from webhook.core.api.version import RECORDED
from webhook.core.budget import Budget
from webhook.core.policy.policy import Mode
from webhook.core.review.decision import AdmissionRequest, Decision

REVIEWS = Path(__file__).parent / "testdata" / "reviews" / "reviews.jsonl.gz"
BROKEN = (  # the one that is denied
    "Rollout shop/broken: "
    "spec.template.spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero"
    " (1 of 2 problems)"
)
ENGINE = Engine(policy=DENY, version=RECORDED)


def recorded():
    with gzip.open(REVIEWS, "rt") as file:
        return [json.loads(line) for line in file]


def review(**request):
    """A review of a pod's creation; every keyword replaces a field of the request, None takes it away."""
    fields = {
        "uid": "e2296",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "operation": "CREATE",
        "namespace": "shop",
        "name": "web",
        "userInfo": {"username": "dev", "groups": ["system:authenticated"]},
        "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {}},
        "oldObject": None,
    } | request
    fields = {key: value for key, value in fields.items() if value is not ...}
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": fields}).encode()


def told(body, route="validate", engine=ENGINE):
    made = answer(route, decode_review(body), engine, now="2026-11-21")
    return json.loads(made.body)


def constraint(**fields):
    return {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    } | fields


def rollout(**fields):
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"topologySpreadConstraints": [constraint(**fields)]}}
    return review(
        kind={"group": "argoproj.io", "version": "v1alpha1", "kind": "Rollout"},
        resource={"group": "argoproj.io", "version": "v1alpha1", "resource": "rollouts"},
        object={
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Rollout",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template},
        },
    )


def test_an_allowed_object_has_the_shortest_answer():
    assert told(review()) == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "e2296", "allowed": True},
    }


def test_a_denial_is_forbidden_with_a_message_and_no_causes():
    said = (
        "json: cannot unmarshal string into Go struct field TopologySpreadConstraint"
        ".spec.template.spec.topologySpreadConstraints.maxSkew of type int32"
    )
    place = "spec.template.spec.topologySpreadConstraints[0].maxSkew"
    message = (
        f"Rollout shop/web: {said}\n"
        f"  1 wrong-type  {place}\n"
        f"    {said}\n"
        "    fix: maxSkew: 1\n"
        "  check before pushing: kubectl evenspread check -f FILE"
    )
    assert told(rollout(maxSkew="1"))["response"] == {
        "uid": "e2296",
        "allowed": False,
        "status": {"code": 403, "reason": "Forbidden", "message": message},
        "auditAnnotations": {"findings": "1", "finding-1": f"wrong-type deny {place}: {said}"},
    }


def test_the_same_object_one_step_away_is_allowed():
    assert told(rollout())["response"]["allowed"] is True


@pytest.mark.parametrize("route", ["validate", "mutate"])
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(review(operation="DELETE", object=None, oldObject={"kind": "Pod"}), id="a deletion"),
        pytest.param(review(operation="CONNECT", object={"kind": "PodExecOptions"}, subResource="exec"), id="an exec"),
        pytest.param(review(object=None), id="a null object"),
        pytest.param(review(object=..., oldObject=...), id="no object at all"),
        pytest.param(review(operation="UPDATE", subResource="status"), id="a status"),
        pytest.param(review(operation="CREATE", subResource="binding", object={"kind": "Binding"}), id="a binding"),
        pytest.param(
            review(
                operation="UPDATE",
                subResource="scale",
                kind={"group": "autoscaling", "version": "v1", "kind": "Scale"},
                object={"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 9}},
            ),
            id="a scale, which has no template and no labels",
        ),
        pytest.param(review(dryRun=True), id="a dry run"),
        pytest.param(review(name=..., object={"metadata": {"generateName": "web-"}, "spec": {}}), id="generateName"),
        pytest.param(review(namespace=..., kind={"group": "", "version": "v1", "kind": "Node"}), id="cluster-scoped"),
        pytest.param(review(userInfo=None, dryRun=None, subResource=None), id="nulls where fields may be absent"),
        pytest.param(review(unknown={"a": [1]}), id="fields of a later release"),
    ],
)
def test_what_holds_no_template_of_ours_is_allowed_with_its_uid(body, route):
    response = told(body, route)["response"]
    assert (response["uid"], response["allowed"]) == ("e2296", True)
    assert "patch" not in response


@pytest.mark.parametrize(
    ("written", "type_"),
    [
        pytest.param([], "array", id="a list"),
        pytest.param("text", "string", id="a text"),
        pytest.param(True, "bool", id="as long as null"),
        pytest.param(1, "number", id="a number"),
    ],
)
def test_an_object_of_another_type_is_denied_and_never_patched(written, type_):
    reply = told(review(object=written))["response"]
    assert (reply["uid"], reply["allowed"], reply["status"]["code"]) == ("e2296", False, 403)
    assert reply["status"]["message"].splitlines()[0] == (
        'Pod shop/web: Pod in version "v1" cannot be handled as a Pod: '
        f"json: cannot unmarshal {type_} into Go value of type v1.Pod"
    )
    assert told(review(object=written), "mutate")["response"] == {"uid": "e2296", "allowed": True}


def broken(**fields):
    envelope = json.loads(review()) | fields
    return json.dumps({key: value for key, value in envelope.items() if value is not ...}).encode()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(b"", "the body is not JSON: Input data was truncated", id="nothing"),
        pytest.param(b"\xff\xfe", "the body is not JSON: JSON is malformed: invalid character (byte 0)", id="bytes"),
        pytest.param(b"[]", "not an admission.k8s.io/v1 AdmissionReview: Expected `object`, got `array`", id="a list"),
        pytest.param(
            b'{"apiVersion":"\xff","kind":"AdmissionReview"}',
            "the body is not JSON: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
            id="invalid UTF-8",
        ),
        pytest.param(
            b"{}",
            "not an admission.k8s.io/v1 AdmissionReview: Object missing required field `apiVersion`",
            id="an empty object",
        ),
        pytest.param(
            broken(kind="Pod"), "not an admission.k8s.io/v1 AdmissionReview but admission.k8s.io/v1 Pod", id="a Pod"
        ),
        pytest.param(
            broken(apiVersion="admission.k8s.io/v1beta1"),
            "not an admission.k8s.io/v1 AdmissionReview but admission.k8s.io/v1beta1 AdmissionReview",
            id="v1beta1",
        ),
        pytest.param(broken(request=...), "the AdmissionReview has no request", id="a response"),
        pytest.param(review(uid=""), "request.uid must have 1 to 256 characters", id="no uid"),
        pytest.param(review(uid="u" * 257), "request.uid must have 1 to 256 characters", id="a long uid"),
        pytest.param(
            review(kind="Pod"),
            "not an admission.k8s.io/v1 AdmissionReview: Expected `object`, got `str` - at `$.request.kind`",
            id="a wrong type",
        ),
        pytest.param(review().replace(b'"spec": {}', b'"spec": NaN'), "the body is not JSON: ", id="NaN"),
        pytest.param(
            b'{"request":{"object":' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
            "not an admission.k8s.io/v1 AdmissionReview: ",
            id="a hundred thousand brackets",
        ),
    ],
)
def test_what_is_no_review_is_a_bad_request(body, message):
    with pytest.raises(ReviewError) as caught:
        decode_review(body)
    assert caught.value.message.startswith(message)
    assert caught.value.status == 400
    assert len(caught.value.message) < 512


def test_the_last_of_two_equal_keys_counts():
    body = review().replace(b'"uid": "e2296"', b'"uid": "first", "uid": "e2296"')
    assert told(body)["response"]["uid"] == "e2296"


def test_an_object_with_huge_numbers_is_answered():
    body = review().replace(b'"spec": {}', b'"spec": {"priority": ' + b"9" * 4000 + b', "x": 1e999}')
    assert told(body)["response"]["uid"] == "e2296"


REQUEST = AdmissionRequest(uid="u", operation="CREATE", group="", version="v1", kind="Pod")


def encoded(**decision):
    return json.loads(_encode(REQUEST, Decision(**decision)))["response"]


@pytest.mark.parametrize(
    ("texts", "delivered"),
    [
        pytest.param(("a", "b"), ["a", "b"], id="in their order"),
        pytest.param(("a", "a"), ["a"], id="once"),
        pytest.param(("", " "), None, id="an empty one is none"),
        pytest.param(("two\nlines\tand\x7fmore\u2028",), ["two lines and more"], id="control characters become spaces"),
        pytest.param(("ä" * 300,), ["ä" * 256], id="counted in characters, not bytes"),
        pytest.param(
            tuple(f"{n:03}" + "x" * 253 for n in range(20)),
            [f"{n:03}" + "x" * 253 for n in range(16)],
            id="4,096 characters in all",
        ),
    ],
)
def test_warnings_are_what_kubernetes_delivers(texts, delivered):
    assert encoded(warnings=texts).get("warnings") == delivered


@pytest.mark.parametrize(
    ("notes", "delivered"),
    [
        pytest.param({"findings": "2"}, {"findings": "2"}, id="a note"),
        pytest.param({"not a name": "x", "-x": "x", "k" * 64: "x"}, None, id="keys that are no qualified names"),
        pytest.param({"a": "x\ny"}, {"a": "x y"}, id="one line"),
        pytest.param({"a": "x" * 20_000}, {"a": "x" * 10_240}, id="a long value"),
        pytest.param({f"n{n}": "" for n in range(30)}, {f"n{n}": "" for n in range(20)}, id="too many"),
    ],
)
def test_audit_annotations_are_what_kubernetes_keeps(notes, delivered):
    assert encoded(audit=notes).get("auditAnnotations") == delivered


def test_a_patch_and_its_type_come_together():
    operations = ({"op": "add", "path": "/metadata/annotations", "value": {"ä": "1"}},)
    response = encoded(patch=operations)
    assert response["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(response["patch"])) == list(operations)


def test_a_denial_carries_no_patch():
    assert encoded(allowed=False, message="no", patch=({"op": "add", "path": "/x", "value": 1},)).keys() == {
        "uid",
        "allowed",
        "status",
    }


def test_a_long_denial_is_cut_at_a_line():
    message = "\n".join(["first"] + ["line" * 25] * 200)
    cut = encoded(allowed=False, message=message)["status"]["message"]
    assert len(cut) < 8192 + 100
    assert cut.startswith("first\nline")
    assert cut.endswith("line\n  … (message cut; list all findings: kubectl evenspread check -f FILE)")


class Broken:
    """An index that fails whenever it is asked."""

    def __getattr__(self, name):
        raise KeyError(name)


def test_a_bug_is_logged_with_the_requests_fields_and_allowed(caplog):
    engine = Engine(policy=DENY, version=RECORDED, index=Broken())
    faulty = decode_review(rollout(maxSkew="1"))
    with caplog.at_level(logging.ERROR):
        made = answer("validate", faulty, engine, now="2026-11-21")
    assert made.failed
    assert json.loads(made.body)["response"] == {
        "uid": "e2296",
        "allowed": True,
        "auditAnnotations": {"error": "internal"},
    }
    fields = caplog.records[0].fields
    assert fields["uid"] == "e2296"
    assert fields["error"] == "KeyError"
    assert any(frame.endswith("__getattr__") for frame in fields["frames"])


def test_every_recorded_review_is_answered_and_only_the_broken_rollout_denied():
    denied = []
    lines = recorded()
    for line in lines:
        route = "validate" if line["path"].startswith("/validate") else "mutate"
        request = line["review"]["request"]
        reply = told(json.dumps(line["review"]).encode(), route)
        assert (reply["apiVersion"], reply["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
        assert reply["response"]["uid"] == request["uid"]
        if not reply["response"]["allowed"]:
            denied.append((route, request["operation"], reply["response"]["status"]["message"].splitlines()[0]))
    assert len(lines) == 231
    assert denied == [("validate", "CREATE", BROKEN)]


LOSS = "zone-loss-strands-pods"


@pytest.mark.parametrize(
    ("policies_warn", "rules"),
    [(False, set()), (True, {"selector-empty", "match-label-key-absent", "match-label-key-wrong-kind"})],
    ids=["the webhook warns", "policies warn"],
)
def test_the_engine_leaves_warnings_to_policies(policies_warn, rules):
    engine = Engine(policy=PLAIN, version=RECORDED, policies_warn=policies_warn)
    assert engine.context("2026-11-28", Budget()).warned_by_policies == rules


@pytest.mark.parametrize(
    ("scanned", "mode", "told"),
    [
        pytest.param(False, Mode.AUDIT, True, id="nobody else tells"),
        pytest.param(True, Mode.AUDIT, False, id="a scan tells"),
        pytest.param(True, Mode.WARN, True, id="the user is told"),
    ],
)
def test_the_engine_leaves_what_is_only_audited_to_a_scan(scanned, mode, told):
    """As its policy says now: a configuration that is loaded later counts at once."""
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c"}], "topologySpreadConstraints": [constraint()]},
    }
    spec = {"replicas": 6, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    body = review(kind={"group": "apps", "version": "v1", "kind": "Deployment"}, object=web)
    engine = Engine(policy=PLAIN, version=RECORDED, index=cluster("a: n1 n2 | b: n3 n4 | c: n5 n6"), scanned=scanned)
    assert any(LOSS in note for note in notes(body, engine)) is not scanned
    engine = replace(engine, policy=replace(PLAIN, rules={LOSS: mode}))
    assert any(LOSS in note for note in notes(body, engine)) is told


def notes(body, engine):
    """The audit annotations' texts."""
    return told(body, engine=engine)["response"].get("auditAnnotations", {}).values()
