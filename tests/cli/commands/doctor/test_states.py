"""States of a cluster and the whole output about each: every line that is not ok, and the last line.

`testdata/doctor.txt` has the output of each state. Times and dates in it are masked.
"""

import itertools
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cli.commands.doctor import world as w
from cli.commands.doctor.test_doctor import both, bundle, leaf, own_authority, policy, put, webhook
from cluster.api import FakeApi

from certs.authority import issue_authority
from certs.rotation import Authorities, secret_data

FILE = Path(__file__).parents[3] / "testdata" / "doctor.txt"
CALL = 'Internal error occurred: failed calling webhook "validate.evenspread.io": failed to call webhook: '
REFUSED = {"message": f'{CALL}Post "https://evenspread-webhook.spread.svc:443/validate?timeout=2s": EOF'}
CRASHED = {
    "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container"}},
    "lastState": {"terminated": {"exitCode": 2}},
}


def down(name):
    return {**w.ready_pod(name), "status": {"phase": "Running", "containerStatuses": [CRASHED]}}


def unanswered(world):
    """What the API server does while nothing answers: by the failurePolicy that is registered."""
    (ours,) = [each for each in world[w.VALIDATING]["items"] if each["metadata"]["name"] == "evenspread"]
    fails = ours["webhooks"][0]["failurePolicy"] == "Fail"
    world[w.DRY_RUN] = (500, REFUSED) if fails else w.UNWARNED


def fails(world):
    for each in world[w.VALIDATING]["items"]:
        for registered in each.get("webhooks", ()):
            registered["failurePolicy"] = "Fail"


def no_endpoints(world):
    world |= {w.SLICES: w.items(), w.PODS: w.items(down("web-0")), w.PROXY: (503, {"message": "no endpoints"})}
    world[w.READY] = (503, {"message": "error trying to reach service: dial tcp: connect: connection refused"})
    unanswered(world)


def no_leader(world):
    world |= {
        w.LEASE: w.lease(ago=3600),
        w.CONTROLLER_PODS: w.items({**w.ready_pod("con-0"), "status": {"phase": "Running"}}),
    }
    lease = "Lease spread/evenspread-controller: 401 Unauthorized"
    world[w.CONTROLLER_READY] = (503, f"leading: {lease}\nscan: waiting for the cluster\n")
    world[w.LEASE]["spec"]["renewTime"] = "2026-11-01T10:00:00.000000Z"


def not_ready(world):
    world[w.READY] = (503, "serving: ok\nconfiguration: ok\ncertificate: ok\ncluster: waiting for nodes, pods\n")
    world |= {w.PODS: w.items({**w.ready_pod(), "status": {"phase": "Running"}}), w.SLICES: w.items()}
    world[w.PROXY] = (503, {"message": "no endpoints"})
    unanswered(world)


def lost_cluster(world):
    world[w.READY] = (
        "serving: ok\nconfiguration: ok\ncertificate: ok\ncluster: ok\ncluster pods: 301 s old: 401 Unauthorized\n"
    )


def empty_bundle(world):
    bundle(b"")(world)
    unanswered(world)


def another_bundle(world):
    bundle(w.OTHER.certificate)(world)
    unanswered(world)


def no_ca_secret(world):
    own_authority()(world)
    world[w.AUTHORITY] = None


def old_ca(world):
    made = issue_authority(datetime.now(UTC) - timedelta(days=360))
    own_authority()(world)
    bundle(made.certificate)(world)
    held = Authorities(signing=made, since=datetime.now(UTC), trusted=(made.certificate,))
    world[w.AUTHORITY] = w.secret(**secret_data(held))


def no_controller(world):
    own_authority()(world)
    world[w.DEPLOYMENTS] = w.items()


def stopped_controller(world):
    stopped = w.controller("--scan")
    stopped["spec"]["replicas"] = 0
    world |= {w.DEPLOYMENTS: w.items(stopped), w.CONTROLLER_PODS: w.items()}


def crashing_controller(world):
    world |= {
        w.CONTROLLER_PODS: w.items(down("con-0")),
        w.CONTROLLER_READY: (503, {"message": "no"}),
        w.LEASE: w.lease(""),
    }


def cert_manager(*, ready):
    def change(world):
        leaf(life=timedelta(days=1), since=-timedelta(hours=1))(world)
        world[w.SECRET]["metadata"]["annotations"] = {"cert-manager.io/certificate-name": "web"}
        renewal = (datetime.now(UTC) + timedelta(hours=15)).strftime("%Y-%m-%dT%H:%M:%SZ")
        condition = {"type": "Ready", "status": str(ready), "message": "issuer is gone"}
        world["/apis/cert-manager.io/v1/namespaces/spread/certificates/web"] = {
            "status": {"renewalTime": renewal, "conditions": [condition]}
        }

    return change


def nothing_warns(reviews):
    """A policy that gives no warning: only the replicas' counters show whether they were asked."""

    def change(world):
        policy("ceiling: audit\n")(world)
        counts = iter((0, reviews))
        world[w.METRICS] = lambda: w.metrics((w.NOW + timedelta(days=60)).timestamp(), reviews=next(counts))
        world[w.DRY_RUN] = w.UNWARNED

    return change


def nobody_else(world):
    """Neither may write: the dry run is refused by RBAC."""
    user = 'deployments.apps is forbidden: User "u" cannot create resource "deployments" in API group "apps"'
    world[w.DRY_RUN] = (403, {"message": user})


DENIED = (403, {"message": 'admission webhook "validate.evenspread.io" denied the request: Deployment default/x: no'})
OTHERS = (400, {"message": 'admission webhook "other.example.com" denied the request: no'})
OWN = {"matchConditions": [{"name": "mine", "expression": "true"}]}
STATES = {
    "all is well": lambda _: None,
    "all is well, Fail": fails,
    "no endpoints": no_endpoints,
    "no endpoints, Fail": both(fails, no_endpoints),
    "no leader, 401": no_leader,
    "no leader, 401, Fail": both(fails, no_leader),
    "readyz 503": not_ready,
    "readyz 503, Fail": both(fails, not_ready),
    "cluster lost, 401": lost_cluster,
    "caBundle empty": empty_bundle,
    "caBundle empty, Fail": both(webhook(failurePolicy="Fail"), bundle(b""), fails, unanswered),
    "caBundle of another CA": another_bundle,
    "CA Secret deleted": no_ca_secret,
    "CA Secret deleted, Fail": both(no_ca_secret, fails),
    "CA at its end": old_ca,
    "certificate Secret deleted": put(w.SECRET, None),
    "certificate of 24 h, fresh": leaf(life=timedelta(days=1)),
    "certificate of 24 h, renewed": leaf(life=timedelta(days=1), since=-timedelta(hours=16)),
    "certificate of 24 h, not renewed": leaf(life=timedelta(days=1), since=-timedelta(hours=22)),
    "certificate of 24 h, by cert-manager": cert_manager(ready=True),
    "certificate of 24 h, which cert-manager cannot renew": cert_manager(ready=False),
    "report API without its resource": put(w.OPEN_REPORTS, w.report_api("")),
    "report API that is read-only": put(w.OPEN_REPORTS, w.report_api(verbs=("get", "list"))),
    "report API of the other kind": both(
        put(w.OPEN_REPORTS, w.report_api("")), put(w.POLICY_REPORTS, w.report_api("PolicyReport"))
    ),
    "no RBAC": put(w.BINDINGS, w.items()),
    "no controller, though it has to keep the CA": no_controller,
    "no controller, and none is needed": put(w.DEPLOYMENTS, w.items()),
    "controller scaled to 0": stopped_controller,
    "controller crash looping": crashing_controller,
    "no Lease": put(w.LEASE, None),
    "webhook configuration deleted": put(w.VALIDATING, w.items()),
    "policy refused": policy("ceilng: warn\n"),
    "denied by evenspread": put(w.DRY_RUN, DENIED),
    "refused by another webhook": put(w.DRY_RUN, OTHERS),
    "dry run forbidden": nobody_else,
    "dry run forbidden, Fail": both(fails, nobody_else),
    "a policy without warnings, asked": nothing_warns(1),
    "a policy without warnings, not asked": nothing_warns(0),
    "a policy without warnings, not known": both(
        policy("ceiling: 'off'\n"), put(w.DRY_RUN, w.UNWARNED), put(w.METRICS, "")
    ),
    "a condition of the user's own": webhook(**OWN),
    "a namespace that is left out": webhook(namespaceSelector={"matchLabels": {"team": "a"}}),
}


@pytest.fixture(name="page")
def _page(run, tmp_path):
    def page(world):
        def answer(handler, _):
            path, _, query = handler.path.partition("?")
            role = "#controller" if path == w.PODS and "controller" in query else ""
            found = {"/version": {"gitVersion": "v1.37.1"}, **world}.get(path + role)
            found = found() if callable(found) else found
            status, body, *headers = found if isinstance(found, tuple) else (200 if found is not None else 404, found)
            if isinstance(body, str):
                handler.send_response(status)
                handler.send_header("Content-Length", str(len(body)))
                handler.end_headers()
                handler.wfile.write(body.encode())
            else:
                handler.json(status, body or {}, *headers)
            return True

        with FakeApi(tls=False) as api:
            api.strike("any", answer, times=10_000)
            code, out, err = run("doctor", "--kubeconfig", api.kubeconfig(tmp_path))
        assert err == ""
        return code, out

    return page


def shown(out):
    """Its lines but those that are ok, without times."""
    kept, keep = [], False
    for line in re.sub(r"(?<=pires at |pired at )[\d-]+ [\d:]+", "TIME", out).splitlines():
        if not line.startswith(" "):
            keep = bool(line) and not line.startswith("ok ")
        kept += [" ".join(line.split())] if keep else []
    return kept


def sections():
    found, name = {}, ""
    for line in FILE.read_text().splitlines():
        if line.startswith("== "):
            name = line.removeprefix("== ")
            found[name] = []
        elif line:
            found[name].append(line)
    return found


@pytest.mark.parametrize("state", STATES)
def test_each_state_has_its_lines(page, state):
    world = w.right()
    STATES[state](world)
    code, out = page(world)
    lines = shown(out)
    assert lines == sections()[state]
    assert code == any(line.startswith("problem ") for line in lines)


def test_no_state_contradicts_itself():
    """No state says what another failurePolicy does; a problem has a command; "ok" alone means no problem."""
    assert [*sections()] == [*STATES]
    for state, lines in sections().items():
        other = "(failurePolicy Ignore)" if state.endswith("Fail") else "(failurePolicy Fail)"
        assert not any(other in line for line in lines), state
        starts = [number for number, line in enumerate(lines) if line.startswith("problem ")]
        for begin, end in itertools.pairwise([*starts, len(lines)]):
            assert any(line.startswith("$ ") for line in lines[begin:end]), (state, lines[begin])
        *_, summary = lines
        asked = {"was admitted without a review": "writes are admitted", "was refused: ": "writes are refused"}
        asked["was not checked: "] = "could not check whether writes are reviewed"
        admission = next((line for line in lines if line[:9] != "admission" and " admission dry run" in line), "")
        expected = [said for words, said in asked.items() if words in admission] or ["writes are "]
        assert expected[0] in summary, state
