"""The ASGI callables, called as a server calls them."""

import asyncio
import json
import logging
import threading
import time

import msgspec
import pytest
from build import cluster
from core.groups.grouped import written
from core.rules.shop import deployed, shop
from faults import Raising, unfixable
from manifest import DENY, workload
from server.conftest import review

from webhook.admission import Engine
from webhook.admission_request import MAX_REVIEW_BYTES
from webhook.cli.commands.webhook.example import CLUSTER, POLICY
from webhook.config import load_policy
from webhook.core.api.version import RECORDED
from webhook.core.budget import check_time, time_limit
from webhook.core.policy.policy import Mode, Policy
from webhook.core.review.decision import Decision
from webhook.metrics import Metrics
from webhook.server.asgi import LONG_BODY_BYTES, AdmissionApp, health_app
from webhook.server.http.request_body import BodyError, read_body
from webhook.server.review_threads import FromThread
from webhook.server.routes import create_health
from webhook.server.state import ServerState, follow_configuration, take_configuration
from webhook.server.turns import Turns
from webhook.server.wsgi_bridge import bridge
from webhook.snapshot.open_file import load_snapshot

ENGINE = Engine(policy=DENY, version=RECORDED)


@pytest.fixture
def state():
    return ServerState(ENGINE, Metrics())


class Sole:
    """A connection with room for so much of a body, that tells what was asked of it."""

    source, known = "127.0.0.1", True

    def __init__(self, room=10 * MAX_REVIEW_BYTES):
        self.room = room
        self.held = []
        self.valid = self.given_way = False

    async def hold(self, size, _seconds):
        self.held.append(size)
        return size <= self.room

    def release(self):
        self.held.append(0)

    def served(self):
        self.valid = True


def request(path="/validate", method="POST", body=b"", headers=(), query=b"timeout=2s"):
    stated = {b"content-type": b"application/json", b"content-length": str(len(body)).encode()} | dict(headers)
    return {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query,
        "http_version": "1.1",
        "scheme": "https",
        "headers": [(name, value) for name, value in stated.items() if value is not None],
        "server": ("127.0.0.1", 8443),
        "client": ("127.0.0.1", 5),
        "connection": Sole(),
    }


def call(application, scope, parts=(b"",), *, leaves=True):
    """Status, headers, body of one response; the client leaves after its body, or waits until it has been answered."""
    messages = [
        {"type": "http.request", "body": part, "more_body": number < len(parts) - 1}
        for number, part in enumerate(parts)
    ]
    sent = []

    async def receive():
        if messages:
            return messages.pop(0)
        while not (leaves or sent):  # noqa: ASYNC110 the simplest clock
            await asyncio.sleep(0.01)
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    asyncio.run(application(scope, receive, send))
    if not sent:
        return None
    start, *rest = sent
    return start["status"], dict(start["headers"]), b"".join(part["body"] for part in rest)


def nothing(_scope, _receive, _send):
    raise AssertionError("not asked for")


def test_a_review_is_answered_and_accounted_for(state):
    status, headers, body = call(AdmissionApp(state), request(body=review()), (review(),))
    assert status == 200
    assert headers[b"content-type"] == b"application/json"
    assert headers[b"content-length"] == str(len(body)).encode()
    assert json.loads(body)["response"] == {"uid": "u-1", "allowed": True}
    text = state.metrics.text().decode()
    assert 'evenspread_admission_requests_total{decision="allow",dry_run="false",route="validate"} 1.0\n' in text
    assert 'evenspread_admission_duration_seconds_count{route="validate"} 1.0\n' in text


def test_a_rule_that_raises_is_logged_with_the_request_and_counted(caplog):
    index = shop("a: n1=cart,pay | b: n2=pay", deployed("pay"))
    document = json.loads(review())
    cart = workload("Deployment", "app=cart part=shop", "zone soft 1 part=shop", selector="app=cart")
    kind = {"group": "apps", "version": "v1", "kind": "Deployment"}
    document["request"] |= {"namespace": "shop", "name": "web", "kind": kind, "object": cart}
    policy = Policy(messages=Raising())
    state = ServerState(Engine(policy=policy, version=RECORDED, index=index), Metrics())
    body = json.dumps(document).encode()
    status, _, answered = call(AdmissionApp(state), request(body=body), (body,))
    assert (status, json.loads(answered)["response"]["allowed"]) == (200, True)
    text = state.metrics.text().decode()
    assert 'evenspread_rule_results_total{mode="",result="error",rule="selector-too-wide"} 1.0\n' in text
    assert "evenspread_admission_errors_total 0.0\n" in text
    (told,) = [
        each for each in caplog.records if each.message == "a rule failed because of a bug; the other rules answered"
    ]
    assert {key: told.fields[key] for key in ("rule", "route", "namespace", "name", "error")} == {
        "rule": "selector-too-wide",
        "route": "validate",
        "namespace": "shop",
        "name": "web",
        "error": "RuntimeError",
    }


def test_a_fix_that_raises_is_counted_and_logged_and_the_denial_stays(caplog, monkeypatch):
    unfixable(monkeypatch)
    document = json.loads(review())
    web = workload("Deployment", "app=web", "zone hard 0 app=web")
    kind = {"group": "apps", "version": "v1", "kind": "Deployment"}
    document["request"] |= {"namespace": "shop", "name": "web", "kind": kind, "object": web}
    state = ServerState(ENGINE, Metrics())
    body = json.dumps(document).encode()
    _, _, answered = call(AdmissionApp(state), request(body=body), (body,))
    response = json.loads(answered)["response"]
    assert not response["allowed"]
    assert response["status"]["message"].splitlines() == [
        (
            "Deployment shop/web: "
            "spec.template.spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero"
        ),
        "  1 max-skew  spec.template.spec.topologySpreadConstraints[0].maxSkew",
        "    Invalid value: 0: must be greater than zero",
        "    fix: set maxSkew: 1",
        "  check before pushing: kubectl evenspread check -f FILE",
    ]
    text = state.metrics.text().decode()
    assert 'evenspread_rule_results_total{mode="",result="error",rule="max-skew"} 1.0\n' in text
    assert 'evenspread_rule_results_total{mode="deny",result="fail",rule="max-skew"} 1.0\n' in text
    told = [
        each.fields
        for each in caplog.records
        if each.message == "a rule failed because of a bug; the other rules answered"
    ]
    assert ("max-skew", "RuntimeError") in {(each["rule"], each["error"]) for each in told}


@pytest.mark.parametrize("mode", ["inject", "observe"])
def test_injections_are_counted_by_mode(mode):
    policy = load_policy(POLICY).policy
    defaults = msgspec.structs.replace(policy.defaults, mode=mode)
    policy = msgspec.structs.replace(policy, defaults=defaults)
    state = ServerState(Engine(policy=policy, version=RECORDED, index=load_snapshot(str(CLUSTER)).index), Metrics())
    pod = POLICY.with_name("bare-pod.json").read_bytes()
    _, _, body = call(AdmissionApp(state), request("/mutate", body=pod), (pod,))
    assert ("patch" in json.loads(body)["response"]) is (mode == "inject")
    assert f'evenspread_injections_total{{mode="{mode}"}} 1.0\n' in state.metrics.text().decode()


def test_what_is_not_injected_is_counted_by_its_reason(state):
    call(AdmissionApp(state), request("/mutate", body=review()), (review(),))
    assert 'evenspread_injections_skipped_total{reason="cluster-unknown"} 1.0\n' in state.metrics.text().decode()


PLANNED = {
    "observedGeneration": 1,
    "revision": "7f3a",
    "conditions": [{"type": each, "status": "True"} for each in ("Planned", "Fits", "CannotGetStuck")],
    "workloads": [{"kind": "StatefulSet", "name": "redis-0", "shard": "0"}],
}


@pytest.mark.parametrize(
    ("of", "outcome"),
    [
        pytest.param(written(delivery="inject", status=PLANNED), "delivered", id="a plan"),
        pytest.param(written(delivery="inject"), "not-delivered", id="no plan yet"),
        pytest.param(written(), "no-group", id="nothing to deliver"),
    ],
)
def test_deliveries_are_counted_by_their_outcome_and_not_among_pods(of, outcome):
    found = cluster("a: n1 | b: n2")
    found.apply("ADDED", of)
    state = ServerState(Engine(policy=Policy(), version=RECORDED, index=found), Metrics())
    document = json.loads(review())
    made = workload("StatefulSet", "app=redis shard=0", replicas=2)
    document["request"] |= {"object": made, "kind": {"group": "apps", "version": "v1", "kind": "StatefulSet"}}
    document["request"] |= {"namespace": "shop", "name": "redis-0"}
    body = json.dumps(document).encode()
    call(AdmissionApp(state), request("/mutate", body=body), (body,))
    text = state.metrics.text().decode()
    assert f'evenspread_deliveries_total{{outcome="{outcome}"}} 1.0\n' in text
    assert "evenspread_injections_skipped_total{" not in text


@pytest.mark.parametrize(
    ("nodes", "age", "expected"),
    [
        pytest.param("a: n1=1 | b: n2", 0.0, 'cause="",verdict="fits"', id="a place"),
        pytest.param("a: n1=1 | b: ~n2", 0.0, 'cause="spread",verdict="does-not-fit"', id="no place"),
        pytest.param("a: n1=1 | b: ~n2", 61.0, 'cause="",verdict="unknown"', id="an old copy of the cluster"),
    ],
)
def test_dry_runs_are_counted_and_tell_the_user_only_what_is_known(nodes, age, expected):
    state = ServerState(Engine(policy=Policy(), version=RECORDED, index=cluster(nodes), age=lambda: age), Metrics())
    document = json.loads(review())
    document["request"]["object"] = workload("Pod", "app=web", "zone hard 1 app=web")
    body = json.dumps(document).encode()
    _, _, answer = call(AdmissionApp(state), request(body=body), (body,))
    response = json.loads(answer)["response"]
    assert response["allowed"]
    assert ("warnings" in response) is ("spread" in expected)
    assert ("feasibility" in response.get("auditAnnotations", {})) is ("unknown" in expected)
    assert f"evenspread_feasibility_total{{{expected}}} 1.0\n" in state.metrics.text().decode()


class Noting:
    """An index that notes which threads ask it, and is asked in vain by a thread without time."""

    def __init__(self, known):
        self.known, self.threads = known, []

    def __getattr__(self, name):
        check_time()
        self.threads.append(threading.get_ident())
        return getattr(self.known, name)


@pytest.mark.parametrize("length", [pytest.param(0, id="a short one"), pytest.param(LONG_BODY_BYTES, id="a long one")])
def test_the_index_is_asked_in_the_event_loop_alone(length):
    noting = Noting(cluster("a: n1=1 | b: ~n2"))
    state = ServerState(Engine(policy=Policy(), version=RECORDED, index=noting), Metrics())
    document = json.loads(review())
    document["request"]["object"] = made = workload("Pod", "app=web", "zone hard 1 app=web")
    made["metadata"]["annotations"] = {"long": "x" * length}
    body = json.dumps(document).encode()
    call(AdmissionApp(state), request(body=body), (body,))
    assert set(noting.threads) == {threading.get_ident()}
    assert 'evenspread_feasibility_total{cause="spread",verdict="does-not-fit"} 1.0\n' in state.metrics.text().decode()


def test_the_time_limit_of_a_thread_is_none_of_the_loops():
    async def run():
        asking = FromThread(Noting(cluster("a: n1=1 | b: n2")))

        def ask():
            with time_limit(lambda: True):
                return asking.all([("nodes.get", ("n1",), {}), ("lacking", (), {})])

        return await asyncio.to_thread(ask)

    _, [node, lacking] = asyncio.run(run())
    assert (node.name, lacking) == ("n1", {})


def test_a_finding_is_counted_with_the_mode_that_held_and_logged_with_its_request(state, caplog):
    rollout = POLICY.with_name("denied-rollout.json").read_bytes()
    with caplog.at_level(logging.INFO):
        call(AdmissionApp(state), request(body=rollout), (rollout,))
    text = state.metrics.text().decode()
    assert 'evenspread_rule_results_total{mode="deny",result="fail",rule="max-skew"} 1.0\n' in text
    assert 'evenspread_rule_results_total{mode="",result="not-evaluated",rule="topology-key-unknown"} 1.0\n' in text
    assert 'evenspread_admission_requests_total{decision="deny",dry_run="false",route="validate"} 1.0\n' in text
    fields = next(record for record in caplog.records if record.name == "webhook.decisions").fields
    assert fields | {"milliseconds": 0} == {
        "route": "validate",
        "uid": "0b6c7a52-6f0e-4b0d-9a5f-1c1d5a1f0001",
        "operation": "CREATE",
        "kind": "Rollout",
        "subResource": "",
        "namespace": "shop",
        "name": "web",
        "user": "dev@example.com",
        "dryRun": False,
        "reason": "",
        "findings": ["max-skew deny", "system-defaults-lost audit"],
        "patchOperations": 0,
        "milliseconds": 0,
    }


def test_metrics_say_nothing_that_a_request_says_and_the_log_nothing_of_its_object(state, caplog):
    """Whoever reads metrics need not be allowed to list pods, and pods hold secrets."""
    document = json.loads(POLICY.with_name("denied-rollout.json").read_bytes())
    document["request"] |= {"namespace": "said-hush", "name": "said-hush", "userInfo": {"username": "said-hush"}}
    pods = document["request"]["object"]["spec"]["template"]
    pods["metadata"]["labels"]["held"] = "held-hush"
    pods["spec"]["containers"] = [{"name": "c", "image": "i", "env": [{"name": "A", "value": "held-hush"}]}]
    body = json.dumps(document).encode()
    with caplog.at_level(logging.DEBUG):
        call(AdmissionApp(state), request(body=body), (body,))
    logged = "\n".join(f"{record.getMessage()} {vars(record).get('fields')}" for record in caplog.records)
    assert 'result="fail",rule="max-skew"' in state.metrics.text().decode()
    assert "hush" not in state.metrics.text().decode()
    assert "said-hush" in logged
    assert "held-hush" not in logged


def test_the_short_way_and_the_callable_give_the_same_response(state):
    app = AdmissionApp(state)
    for body in (review(), POLICY.with_name("denied-rollout.json").read_bytes()):
        scope = request(body=body)
        direct, _ = app.direct(b"/validate?timeout=2s", scope["headers"], body)
        head, _, direct_body = direct.partition(b"\r\n\r\n")
        _, headers, usual = call(app, scope, (body,))
        assert direct_body == usual
        lines = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:])
        assert set(lines) - {b"date"} == set(headers)
        assert {name: lines[name] for name in headers} == headers


@pytest.mark.parametrize(
    ("target", "headers", "body"),
    [
        pytest.param(b"/elsewhere", [(b"content-type", b"application/json")], review(), id="another path"),
        pytest.param(b"/validate", [(b"content-type", b"text/plain")], review(), id="another type"),
        pytest.param(b"/validate", [], review(), id="no type"),
        pytest.param(b"/validate", [(b"content-type", b"application/json")], b"{}", id="no review"),
        pytest.param(b"/validate", [(b"content-type", b"application/json")], review(size=300_000), id="a long one"),
    ],
)
def test_the_short_way_leaves_the_rest_to_the_callable(state, target, headers, body):
    assert AdmissionApp(state).direct(target, headers, body) is None


def broken_clock():
    raise RuntimeError("broken on purpose")


@pytest.mark.parametrize(
    ("body", "room", "told"),
    [
        pytest.param(review(), MAX_REVIEW_BYTES, None, id="a short review"),
        pytest.param(review(size=300_000), MAX_REVIEW_BYTES, None, id="a long review, in a thread"),
        pytest.param(review(size=300_000), 1000, b"close", id="a review that is not read"),
    ],
)
def test_a_bug_on_any_path_allows_the_review_with_its_uid(body, room, told, caplog):
    state = ServerState(ENGINE, Metrics(), clock=broken_clock)
    app = AdmissionApp(state)
    assert app.direct(b"/validate", [(b"content-type", b"application/json")], body) is None
    scope = request(body=body) | {"connection": Sole(room=room)}
    status, headers, answer = call(app, scope, (body,))
    assert (status, headers.get(b"connection")) == (200, told)
    allowed = {"uid": "u-1", "allowed": True, "auditAnnotations": {"error": "internal"}}
    assert json.loads(answer)["response"] == allowed
    assert "a review failed because of a bug; the request is allowed" in caplog.text
    assert "evenspread_admission_errors_total 1.0" in state.metrics.text().decode()


class Broken(Sole):
    """A connection with a bug in its memory."""

    async def hold(self, *_):
        broken_clock()


def test_a_bug_before_the_body_is_read_is_answered_with_the_uid(state):
    scope = request(body=review()) | {"connection": Broken()}
    assert json.loads(call(AdmissionApp(state), scope, (review(),))[2])["response"]["uid"] == "u-1"


def test_a_bug_without_an_envelope_is_raised(state):
    with pytest.raises(RuntimeError, match=r"^broken on purpose$"):
        call(AdmissionApp(state), request() | {"connection": Broken()}, (b"{}",))


def test_a_review_is_counted_after_its_response(state):
    _, account = AdmissionApp(state).direct(b"/validate", [(b"content-type", b"application/json")], review())
    counted = 'evenspread_admission_requests_total{decision="allow",dry_run="false",route="validate"} 1.0'
    assert counted not in state.metrics.text().decode()
    account()
    assert counted in state.metrics.text().decode()


class Unaccountable(ServerState):
    """A state with a bug in its accounting."""

    def account(self, *_):
        raise RuntimeError("broken on purpose")


def test_a_bug_in_the_accounting_leaves_the_response():
    app, sent = AdmissionApp(Unaccountable(ENGINE, Metrics())), []

    async def receive():
        return {"type": "http.request", "body": review(), "more_body": False}

    async def send(message):
        sent.append(message)

    with pytest.raises(RuntimeError, match=r"^broken on purpose$"):
        asyncio.run(app(request(body=review()), receive, send))
    assert json.loads(sent[1]["body"])["response"]["uid"] == "u-1"


def test_a_body_may_come_in_pieces(state):
    body = review()
    parts = [body[at : at + 7] for at in range(0, len(body), 7)]
    assert call(AdmissionApp(state), request(body=body), parts)[0] == 200


@pytest.mark.parametrize(
    ("scope", "parts", "status", "told"),
    [
        pytest.param(
            request(headers={b"content-type": b"text/plain"}),
            (b"x",),
            415,
            b"Content-Type is 'text/plain'; it must be application/json\n",
            id="another type",
        ),
        pytest.param(
            request(headers={b"content-type": None}),
            (b"x",),
            415,
            b"Content-Type is ''; it must be application/json\n",
            id="no type",
        ),
        pytest.param(
            request(headers={b"content-length": b"7340033"}),
            (b"",),
            413,
            b"the body has 7340033 bytes; the limit is 7340032\n",
            id="a byte too much, by its length",
        ),
        pytest.param(
            request(headers={b"content-length": None}),
            (b"x" * 4_000_000, b"x" * 4_000_000),
            413,
            b"the body has more than 7340032 bytes\n",
            id="too much, without a length",
        ),
        pytest.param(request(), (b"[]",), 400, b"not an admission.k8s.io/v1 AdmissionReview: ", id="no review"),
    ],
)
def test_refusals(state, scope, parts, status, told):
    answered, headers, body = call(AdmissionApp(state), scope, parts)
    assert answered == status
    assert body.startswith(told)
    assert b"retry-after" not in headers
    assert f'evenspread_admission_refusals_total{{status="{status}"}} 1.0\n' in state.metrics.text().decode()
    connection = scope["connection"]
    assert not connection.valid
    assert connection.held[-1:] in ([], [0])


CHUNKED = {b"content-length": None, b"transfer-encoding": b"chunked"}


@pytest.mark.parametrize(
    ("body", "headers", "read"),
    [
        pytest.param(review(size=300_000), {}, False, id="a long one"),
        pytest.param(review(), CHUNKED, False, id="one that may become long"),
        pytest.param(review(), {}, True, id="a short one"),
    ],
)
def test_what_has_no_room_is_answered_by_policy(state, body, headers, read):
    connection = Sole(room=1000)
    scope = request(body=body, headers=headers) | {"connection": connection}
    answered, told, answer = call(AdmissionApp(state), scope, (body,))
    assert answered == 200
    response = json.loads(answer)["response"]
    assert (response["uid"], response["allowed"]) == ("u-1", read)
    assert told.get(b"connection") == (None if read else b"close")
    assert connection.valid is read
    assert connection.held == ([len(body), 0] if read else [MAX_REVIEW_BYTES if headers else len(body)])
    counted = 'evenspread_admission_refusals_total{status="429"} 1.0' in state.metrics.text().decode()
    assert counted is not read


def test_a_costly_review_without_a_turn_is_answered_in_time(state):
    """Its body has come whole: nothing is read, or waited for, any more."""
    app = AdmissionApp(state)
    app._pool._turns = Turns()  # all threads are taken
    kept = app._judge
    app._judge = lambda *of, **named: msgspec.structs.replace(kept(*of, **named), decision=Decision(costly=True))
    began = time.monotonic()
    status, _, answer = call(app, request(body=review(), query=b"timeout=1s"), (review(),), leaves=False)
    assert (status, json.loads(answer)["response"]["uid"]) == (200, "u-1")
    assert time.monotonic() - began < 1


def test_a_client_that_leaves_is_not_answered(state):
    assert call(AdmissionApp(state), request(body=review()), ()) is None


@pytest.mark.parametrize(
    ("query", "least", "most"),
    [
        pytest.param(b"timeout=2s", 1.5, 1.75, id="what the API server still waits, less a margin"),
        pytest.param(b"a=b&timeout=10s&c", 9.5, 9.75, id="among others"),
        pytest.param(b"", 9.5, 9.75, id="Kubernetes' default"),
        pytest.param(b"timeout=999s", 29.5, 29.75, id="no caller waits longer than 30 s"),
        pytest.param(b"timeout=nonsense", 9.5, 9.75, id="nonsense is the default"),
    ],
)
def test_the_deadline_is_the_callers(state, query, least, most):
    seen = []

    app = AdmissionApp(state)
    kept = app._judge

    def judge(route, body, deadline, **more):
        seen.append(deadline - time.perf_counter())
        return kept(route, body, deadline, **more)

    app._judge = judge
    call(app, request(body=review(), query=query), (review(),))
    assert least < seen[0] <= most


def test_health_is_answered_without_flask(state):
    app = health_app(state, nothing)
    assert call(app, request("/healthz", "GET"))[::2] == (200, b"ok\n")
    assert call(app, request("/readyz", "GET"))[::2] == (
        200,
        b"serving: ok\nconfiguration: ok\ncertificate: ok\ncluster: none known\n",
    )
    state.draining = True
    assert call(app, request("/readyz", "GET"))[0] == 503


@pytest.mark.parametrize(
    ("method", "path", "answer", "allowed"),
    [
        pytest.param("GET", "/nowhere", (404, b"404 Not Found\n"), None, id="another path"),
        pytest.param("POST", "/metrics", (404, b"404 Not Found\n"), None, id="a path of the other port"),
        pytest.param("GET", "/validate", (405, b"405 Method Not Allowed\n"), b"POST", id="another method"),
    ],
)
def test_the_admission_port_refuses_every_other_request(state, method, path, answer, allowed):
    status, headers, body = call(AdmissionApp(state), request(path, method))
    assert (status, body) == answer
    assert (headers.get(b"allow"), headers[b"connection"]) == (allowed, b"close")


def test_the_health_port_leaves_the_metrics_to_flask(state):
    app = health_app(state, bridge(lambda: create_health(state)))
    assert b"evenspread_build_info" in call(app, request("/metrics", "GET"))[2]
    assert call(app, request("/validate", "POST", review()), (review(),))[::2] == (404, b"404 Not Found\n")
    status, headers, body = call(app, request("/metrics", "POST"))
    assert (status, body) == (405, b"405 Method Not Allowed\n")
    assert set(headers[b"allow"].split(b", ")) == {b"GET", b"HEAD", b"OPTIONS"}


def test_sixteen_handlers_run_at_once():
    def slow(_environ, start):
        time.sleep(0.1)
        start("200 OK", [("X-Twice", "a"), ("X-Twice", "b")])
        return [b"a", b"b"]

    application = bridge(lambda: slow)

    async def ask():
        sent = []

        async def receive():
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message):
            sent.append(message)

        await application(request("/", "GET"), receive, send)
        return sent

    async def all_of_them():
        began = time.monotonic()
        answers = await asyncio.gather(*(ask() for _ in range(16)))
        return time.monotonic() - began, answers

    took, answers = asyncio.run(all_of_them())
    assert took < 1.0
    assert answers[0][0]["headers"] == [(b"x-twice", b"a"), (b"x-twice", b"b"), (b"content-length", b"2")]
    assert answers[0][1]["body"] == b"ab"


def test_a_body_that_does_not_come_is_a_408(monkeypatch):
    monkeypatch.setattr("webhook.server.http.request_body._BODY_SECONDS", 0.05)
    parts = [{"type": "http.request", "body": b"x", "more_body": True}]

    async def receive():
        if not parts:
            await asyncio.sleep(5)
        return parts.pop()

    with pytest.raises(BodyError) as caught:
        asyncio.run(read_body(request(), receive, 100, bytearray()))
    assert caught.value.status == 408


GOOD = "apiVersion: config.evenspread.io/v1alpha1\nkind: SpreadPolicy\n"


def test_a_changed_configuration_is_taken_and_a_bad_one_is_not(tmp_path, state):
    file = tmp_path / "policy.yaml"
    file.write_text(GOOD)
    loaded = load_policy(file)
    file.write_text(GOOD + "ceiling: audit\n")

    async def watch(until):
        task = asyncio.create_task(follow_configuration(state, loaded))
        deadline = time.monotonic() + 30
        while not until() and time.monotonic() < deadline:  # noqa: ASYNC110 nobody tells when it is done
            await asyncio.sleep(0.05)
        task.cancel()

    asyncio.run(watch(lambda: state.engine.policy.ceiling is Mode.AUDIT))
    assert state.engine.policy.ceiling is Mode.AUDIT

    file.write_text(GOOD + "ceiling: nonsense\n")
    asyncio.run(watch(lambda: state.config_fault))
    assert state.engine.policy.ceiling is Mode.AUDIT
    assert state.config_fault.startswith(f"invalid; the last good version stays in use: {file}:3:")
    assert "evenspread_config_valid 0.0\n" in state.metrics.text().decode()
    ready, text = state.readiness()
    assert ready
    assert "configuration: invalid" in text

    take_configuration(state, loaded)
    assert state.config_fault == ""
    assert "evenspread_config_valid 1.0\n" in state.metrics.text().decode()


def test_now_is_an_iso_time():
    assert ServerState(ENGINE, Metrics(), clock=lambda: 1.9).now() == "1970-01-01T00:00:01Z"
