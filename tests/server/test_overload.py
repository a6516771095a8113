"""Reviews that are not read: too long, or without room or time. Policy answers them, with their uid.

kube-apiserver takes a 413 or 429 for no answer, and failurePolicy: Ignore admits the object then.
"""

import contextlib
import json
import threading

import pytest
from server.conftest import posted, read_reply, serving

from webhook.admission_request import MAX_REVIEW_BYTES, ReviewError, decode_start

MIB = 1024 * 1024
POLICY = """
apiVersion: config.evenspread.io/v1alpha1
kind: SpreadPolicy
ceiling: deny
rules: {selector-not-self: deny, pods-refused: warn}
namespaces: [{match: {names: [warned]}, ceiling: warn}]
exemptions: [{rule: selector-not-self, match: {namespace: exempted}, reason: it was there before}]
"""
SPREAD = {
    "maxSkew": 1,
    "topologyKey": "topology.kubernetes.io/zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "other"}},
}


def deployment(characters, app="web"):
    """With a fault, unless its pods are of the app that the constraint counts."""
    labels = {"matchLabels": {"app": app}}
    container = {"name": "c", "image": "i", "args": ["<" * characters]}
    spec = {"containers": [container], "topologySpreadConstraints": [SPREAD]}
    template = {"metadata": {"labels": {"app": app}}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"replicas": 3, "selector": labels, "template": template},
    }


def sent(new, old=None, *, kind=("apps", "v1", "Deployment"), spaces=False, **fields):
    """The review as kube-apiserver writes it: in Go's order, and with six bytes for each of <, > and &."""
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": dict(zip(("group", "version", "kind"), kind, strict=True)),
        "resource": {"group": kind[0], "version": kind[1], "resource": f"{kind[2].lower()}s"},
        "name": "web",
        "namespace": "shop",
        "operation": "CREATE" if old is None else "UPDATE",
        "userInfo": {"username": "eve", "groups": ['a,"object":{', "object"], "extra": {"object": ["x"]}},
        **fields,
        "object": new,
        "oldObject": old,
        "dryRun": False,
        "options": {"kind": "CreateOptions"},
    }
    document = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
    text = json.dumps(document, separators=None if spaces else (",", ":"))
    return text.replace("<", "\\u003c").encode()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    policy = tmp_path_factory.mktemp("overload") / "policy.yaml"
    policy.write_text(POLICY)
    with serving("--config", str(policy)) as running:
        yield running


def asked(server, body, path="/validate?timeout=2s", source="127.0.0.1", **how):
    with server.connect(source=source) as connection, connection.makefile("rb") as stream:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(posted(body, path, **how))
        reply = read_reply(stream)
        assert reply.status == 200, reply
        return json.loads(reply.body)["response"]


LONG = int(1.25 * MIB)  # as characters in a field; six times as long in the review


WRONG = """\
Deployment shop/web: zone[0] counts app=other but the pods have app=web; set matchLabels app=web
  1 selector-not-self  spec.template.spec.topologySpreadConstraints[0].labelSelector
    the constraint counts app=other, but the pods have app=web, \
so it does not spread these pods and may keep them Pending
    fix: labelSelector: {matchLabels: {app: web}}
  check before pushing: kubectl evenspread check -f FILE"""
TOO_LONG = """\
Deployment shop/web: a review of more than 7 MiB: too large for selector-not-self to check; make the object smaller
  1 selector-not-self  spec
    a review of more than 7 MiB: the rule is on deny and cannot check so many, so the object is denied
    fix: remove what you do not need, or ask the admins of evenspread to exempt the object or set tooLarge: allow
  check before pushing: kubectl evenspread check -f FILE"""


@pytest.mark.parametrize(
    ("body", "allowed"),
    [
        pytest.param(sent(deployment(LONG)), False, id="1.25 MiB of characters that take six bytes"),
        pytest.param(sent(deployment(LONG), spaces=True), False, id="with blanks"),
        pytest.param(sent(deployment(3 * MIB)), False, id="the longest that an API server accepts"),
        pytest.param(sent(deployment(3 * MIB), deployment(LONG)), False, id="the longest update"),
        pytest.param(sent(deployment(MIB * 2 // 3), deployment(MIB * 2 // 3)), False, id="two objects"),
        pytest.param(sent(deployment(10), deployment(LONG)), False, id="only the old object is long"),
        pytest.param(sent(deployment(LONG), operation="DELETE"), True, id="a deletion"),
        pytest.param(sent(deployment(LONG), namespace="warned"), True, id="where no rule denies"),
        pytest.param(sent(deployment(LONG), namespace="exempted"), True, id="an exemption"),
        pytest.param(sent(deployment(LONG), kind=("", "v1", "ConfigMap")), True, id="no pod template"),
        pytest.param(
            sent(deployment(LONG), deployment(LONG), userInfo={"username": "system:kube-controller-manager"}),
            True,
            id="an update by a controller",
        ),
        pytest.param(sent(deployment(MIB, app="other")), True, id="a right one below the limit"),
        pytest.param(sent(deployment(MIB)), False, id="a wrong one below the limit"),
    ],
)
def test_a_review_that_is_too_long_is_answered_by_policy(server, body, allowed):
    response = asked(server, body)
    assert (response["uid"], response["allowed"]) == ("705ab4f5-6393-11e8-b7cc-42010a800002", allowed)
    if not allowed:
        assert response["status"]["message"] == (TOO_LONG if len(body) > MAX_REVIEW_BYTES else WRONG)


def test_it_is_logged(server):
    asked(server, sent(deployment(LONG), name="logged"))
    asked(server, sent(deployment(LONG), name="logged", namespace="warned"))
    lines = [json.loads(line) for line in server.lines if '"logged"' in line]
    assert [(line["message"], line["reason"]) for line in lines] == [
        ("deny", "a review of more than 7 MiB"),
        ("allow", "a review of more than 7 MiB"),
    ]


@pytest.mark.slow
def test_too_large_may_be_allowed(tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY + "tooLarge: allow\n")
    with serving("--config", str(policy)) as server:
        response = asked(server, sent(deployment(LONG)))
    assert response["allowed"]
    assert response["warnings"] == ["evenspread: the object was not fully checked: a review of more than 7 MiB"]


def test_the_mutating_route_patches_nothing(server):
    response = asked(server, sent(deployment(LONG), kind=("", "v1", "Pod")), "/mutate?timeout=2s")
    assert response["allowed"]
    assert "patch" not in response


@pytest.mark.parametrize(("app", "allowed"), [("web", False), ("other", True)])
def test_many_long_reviews_at_once(server, app, allowed):
    bodies = sent(deployment(MIB, app))
    told = []
    threads = [threading.Thread(target=lambda: told.append(asked(server, bodies)["allowed"])) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert told == [allowed] * 8


def test_what_gives_way_is_answered(server):
    """A neighbour with more connections takes the room of a body that is arriving."""
    body = sent(deployment(MIB))
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(server.connect()) for _ in range(5)]
        for each in held:
            each.sendall(posted(body)[:-1])
        for number in range(4):
            other = stack.enter_context(server.connect(source=f"127.0.0.{number + 2}"))
            other.sendall(posted(body)[:-1])
        answers = []
        for each in held:
            each.sendall(b"}")
            with each.makefile("rb") as stream:
                answers.append(json.loads(read_reply(stream).body)["response"]["allowed"])
    assert answers == [False] * 5


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"', id="no request"),
        pytest.param(b'{"object":{"kind":"AdmissionReview"', id="the object first"),
        pytest.param(b"\xff" * 100, id="no text"),
    ],
)
def test_a_start_without_its_envelope_is_no_review(body):
    with pytest.raises(ReviewError):
        decode_start(body)


@pytest.mark.slow
def test_callers_that_leave_take_their_bodies_with_them(server):
    """Else each leaves a body that waits for a thread for as long as it said it would wait itself."""
    body = posted(sent(deployment(MIB)), "/validate?timeout=30s")
    before = server.resident()
    for _ in range(60):
        with server.connect() as connection:
            connection.sendall(body)
    assert server.resident() < before + 100
    assert asked(server, sent(deployment(MIB)))["status"]["message"] == WRONG
