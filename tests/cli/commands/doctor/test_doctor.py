"""Each thing that can be wrong with an installation has its line, why it matters, and a fix; nothing else has one."""

from datetime import timedelta

import pytest
from cli.commands.doctor import world as w

from certs.authority import issue_leaf
from certs.rotation import Lifetimes, secret_data, usable_authorities
from webhook.cluster.resources import watched
from webhook.core.policy.policy import Policy


def test_doctor_finds_nothing_wrong_in_a_right_installation(doctor, api):
    assert doctor(w.right()) == []
    assert {each.query.get("watch") for each in api.requests} == {None}


def webhook(**changes):
    def breaking(world):
        world[w.VALIDATING] = w.items({"metadata": {"name": "evenspread"}, "webhooks": [w.registered(**changes)]})

    return breaking


def put(path, value):
    def breaking(world):
        world[path] = value

    return breaking


def both(*breaking):
    def broken(world):
        for each in breaking:
            each(world)

    return broken


def bundle(pem):
    return webhook(clientConfig={"service": {"namespace": "spread", "name": w.NAME}, "caBundle": w.base64_of(pem)})


def leaf(*, name=w.HOST, since=timedelta(0), life=timedelta(days=90), **changes):
    made = issue_leaf(w.CA, (name,), w.NOW + since, life=life)
    return put(w.SECRET, w.secret(**{"tls.crt": made.certificate, "tls.key": made.key, **changes}))


def written_by(manager, operation="Update", fields=("f:timeoutSeconds",)):
    below = {'k:{"name":"validate.evenspread.io"}': {".": {}, **{each: {} for each in fields}}}
    entry = {
        "manager": manager,
        "operation": operation,
        "time": "2026-11-22T10:00:00Z",
        "fieldsV1": {"f:webhooks": below, "f:metadata": {"f:labels": {"f:a": {}}}},
    }
    made = {"metadata": {"name": "evenspread", "managedFields": [entry]}, "webhooks": [w.registered()]}
    return put(w.VALIDATING, w.items(made))


def peers(*from_, ports=({"port": 10250},)):
    spec = {"podSelector": {}, "ingress": [{"from": list(from_), "ports": list(ports)}]}
    return put(w.NETWORK, w.items({"metadata": {"name": "tight"}, "spec": spec}))


def unready(**status):
    pod = {**w.ready_pod("web-1"), "status": {"phase": "Pending", **status}}
    one = {"endpoints": [{"addresses": ["10.0.0.1"]}, {"addresses": ["10.0.0.2"], "conditions": {"ready": False}}]}
    return both(put(w.SLICES, w.items(one)), put(w.PODS, w.items(w.ready_pod(), pod)))


def role(**changes):
    """Of the webhook's account; the controller's may do all."""
    roles = put(
        w.ROLES,
        w.items(
            {"metadata": {"name": "reader"}, "rules": [{**w.ALL, **changes}]},
            {"metadata": {"name": "all"}, "rules": [w.ALL]},
        ),
    )
    return both(roles, put(w.BINDINGS, w.items(w.bound("reader"), w.bound("all", "evenspread-controller"))))


POLICY_HEAD = "apiVersion: config.evenspread.io/v1alpha1\nkind: SpreadPolicy\n"


def policy(text):
    return put(w.POLICY, {"data": {"policy.yaml": POLICY_HEAD + text}})


def own_authority(pem=None):
    """The chart's `self` mode: a CA in a Secret, and a leaf that no Secret holds."""
    held = usable_authorities(None, w.NOW, Lifetimes())
    secret = w.secret(**secret_data(held)) if pem is None else w.secret(**pem)
    made = w.deployment("webhook", "--ca-secret=spread/evenspread-ca")
    made["spec"]["template"]["spec"]["volumes"] = []
    return both(bundle(held.bundle), put(w.DEPLOYMENT, made), put(w.AUTHORITY, secret))


INJECT = "defaults: {mode: inject}\n"
WAITING = [{"state": {"waiting": {"reason": "CreateContainerConfigError", "message": 'secret "a" not found'}}}]
HELM = "helm upgrade prod charts/evenspread -n spread --reset-then-reuse-values"
PROBLEMS = {
    "another CA": (
        bundle(w.OTHER.certificate),
        "caBundle",
        "did not sign the served certificate",
        f"{HELM} --force-conflicts",
    ),
    "no CA": (bundle(b""), "caBundle", "is empty", f"{HELM} --force-conflicts"),
    "a CA that is none": (bundle(b"x"), "caBundle", "is not a certificate", f"{HELM} --force-conflicts"),
    "ended": (leaf(since=-timedelta(days=100)), "certificate", "expired at", "kubectl -n spread create secret generic"),
    "ends": (leaf(since=-timedelta(days=89)), "certificate", "expires at", "kubectl -n spread create secret generic"),
    "begins": (
        leaf(since=timedelta(days=2)),
        "certificate",
        "is not valid before",
        "kubectl -n spread create secret generic",
    ),
    "another name": (leaf(name="a.b.svc"), "certificate", f"is not for {w.HOST}", "--from-file=tls.crt"),
    "another key": (
        leaf(**{"tls.key": w.CA.key}),
        "certificate",
        "the private key does not belong to the certificate",
        f"# issue a certificate for {w.HOST}",
    ),
    "no key": (leaf(**{"tls.key": b""}), "certificate", "has no tls.key", "create secret"),
    "served to its end": (
        put(w.METRICS, w.metrics((w.NOW - timedelta(days=1)).timestamp())),
        "served certificate",
        "its certificate expired at",
        "kubectl -n spread rollout restart deployment/evenspread-webhook",
    ),
    "served near its end": (
        put(w.METRICS, w.metrics((w.NOW + timedelta(days=1)).timestamp())),
        "served certificate",
        "its certificate expires at",
        "kubectl -n spread rollout restart deployment/evenspread-webhook",
    ),
    "nothing registered": (
        put(w.VALIDATING, w.items()),
        "registration",
        "evenspread has none",
        f"{HELM} --set webhook.enabled=true",
    ),
    "a long timeout": (webhook(timeoutSeconds=10), "timeout", "timeoutSeconds is 10", "--set webhook.timeoutSeconds=2"),
    "no exclusions": (
        webhook(namespaceSelector=None),
        "exclusions",
        "namespaceSelector does not exclude kube-system, kube-public, kube-node-lease and spread",
        f"{HELM} --force-conflicts",
    ),
    "Fail alone": (
        both(webhook(failurePolicy="Fail"), put(w.DEPLOYMENT, w.deployment(replicas=1)), put(w.BUDGETS, w.items())),
        "availability",
        "failurePolicy is Fail, with 1 replica and no PodDisruptionBudget",
        "--set replicas=2 --set podDisruptionBudget.enabled=true",
    ),
    "by hand": (
        written_by("kubectl-edit"),
        "drift",
        "timeoutSeconds: changed by kubectl-edit at 2026-11-22T10:00:00Z",
        f"{HELM} --force-conflicts",
    ),
    "inject without a webhook": (
        policy(INJECT),
        "registration",
        "evenspread has none, but defaults.mode is inject",
        "--set config.defaults.mode=inject",
    ),
    "no Service": (put(w.SERVICE, None), "endpoints", "does not exist, but the webhook configurations name it", HELM),
    "another port": (
        put(w.SERVICE, {"spec": {"selector": w.LABELS, "ports": [{"port": 8443}]}}),
        "endpoints",
        "has no port 443, but the webhook configurations name it",
        HELM,
    ),
    "one of two": (
        unready(containerStatuses=WAITING),
        "endpoints",
        '1 of 2 replicas are ready; web-1: CreateContainerConfigError secret "a" not found',
        "kubectl -n spread describe pods",
    ),
    "unscheduled": (
        unready(conditions=[{"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}]),
        "endpoints",
        "1 of 2 replicas are ready; web-1: 0/3 nodes are available",
        "kubectl -n spread logs deployment/evenspread-webhook",
    ),
    "no word": (unready(), "endpoints", "1 of 2 replicas are ready; web-1: Pending", "kubectl -n spread describe pods"),
    "none wanted": (
        both(put(w.SLICES, w.items()), put(w.DEPLOYMENT, w.deployment(replicas=0))),
        "endpoints",
        "0 of 0 replicas are ready",
        "kubectl -n spread scale deployment/evenspread-webhook --replicas=2",
    ),
    "none selected": (
        both(put(w.SLICES, w.items()), put(w.PODS, w.items())),
        "endpoints",
        "0 of 2 replicas are ready; the Service's selector matches no pod",
        f"{HELM} --force-conflicts",
    ),
    "a NetworkPolicy": (
        peers({"podSelector": {}}),
        "network",
        "does not admit all addresses to port 10250",
        "--set networkPolicy.enabled=true",
    ),
    "another port is open": (
        peers(ports=[{"port": "metrics"}, {"port": 443, "endPort": 9000}]),
        "network",
        "does not admit all addresses to port 10250",
        "--set networkPolicy.enabled=true",
    ),
    "not reached": (
        both(put(w.PROXY, (503, {"message": "no endpoints available"})), put(w.DRY_RUN, w.UNWARNED)),
        "reachable",
        "the API server's proxy could not reach the Service: it returned 503 Service Unavailable",
        "kubectl -n spread get endpointslices",
    ),
    "no role": (
        put(w.BINDINGS, w.items(w.bound("reader", "evenspread-controller"))),
        "permissions",
        "may not list and watch nodes, namespaces,",
        "--set rbac.create=true",
    ),
    "a role for one": (
        role(resourceNames=["a"]),
        "permissions",
        "may not list and watch nodes, namespaces,",
        "--set rbac.create=true",
    ),
    "no policy": (put(w.POLICY, None), "policy", "does not exist", HELM),
    "a policy with faults": (
        policy("ceilng: warn\n"),
        "policy",
        "policy.yaml:3:1: ceilng: unknown field; did you",
        HELM,
    ),
    "a policy not taken": (put(w.METRICS, w.metrics(2e10, 0)), "policy", "was not loaded by web-0", HELM),
    "another release": (
        put(w.DEPLOYMENT, w.deployment(**{"app.kubernetes.io/version": "0.9.2"})),
        "version",
        "runs evenspread 0.9.2; this command is 0.1.0",
        "pip install 'evenspread[webhook]==0.9.2'",
    ),
    "an odd release": (
        put(w.DEPLOYMENT, w.deployment(**{"app.kubernetes.io/version": "main"})),
        "version",
        "runs evenspread main; this command is 0.1.0",
        "pip install",
    ),
}


@pytest.mark.parametrize("case", PROBLEMS)
def test_what_is_wrong_has_its_line_and_its_fix(doctor, case):
    breaking, check, what, fix = PROBLEMS[case]
    world = w.right()
    breaking(world)

    lines = [each for each in doctor(world) if each["check"] == check]

    (line,) = lines
    assert line["state"] == "problem"
    assert line["what"].startswith(what)
    assert fix in line["fix"]
    assert line["where"]
    assert line["why"]


@pytest.mark.parametrize(
    "harmless",
    [
        pytest.param(leaf(name="*.spread.svc"), id="a certificate for the whole namespace"),
        pytest.param(written_by("helm", "Update"), id="written by Helm"),
        pytest.param(written_by("whoever", "Apply"), id="applied by whoever"),
        pytest.param(written_by("injector", fields=("f:clientConfig", "f:caBundle")[1:]), id="a CA that was injected"),
        pytest.param(peers({"ipBlock": {"cidr": "0.0.0.0/0"}}), id="open to all addresses"),
        pytest.param(peers(ports=[]), id="open on all ports"),
        pytest.param(peers(ports=[{"port": 10000, "endPort": 11000}]), id="open on a range"),
        pytest.param(put(w.NETWORK, w.items()), id="no NetworkPolicy"),
        pytest.param(webhook(failurePolicy="Fail"), id="Fail with two replicas and a budget"),
        pytest.param(own_authority(), id="our own CA"),
        pytest.param(
            put(
                w.BINDINGS,
                w.items(
                    {"roleRef": {"name": "reader"}, "subjects": [{"kind": "Group", "name": "system:serviceaccounts"}]}
                ),
            ),
            id="a role of a group",
        ),
        pytest.param(
            put(
                w.BINDINGS,
                w.items(
                    {
                        "roleRef": {"name": "reader"},
                        "subjects": [{"kind": "User", "name": f"system:serviceaccount:spread:{w.NAME}"}],
                    },
                    w.bound("reader", "evenspread-controller"),
                ),
            ),
            id="a role of a user",
        ),
        pytest.param(
            both(put(w.PROXY, (502, {})), put(w.DEPLOYMENT, w.deployment("--client-ca=ca.crt"))),
            id="callers show certificates",
        ),
        pytest.param(policy("schedulerConfiguration: /etc/scheduler.yaml\n"), id="a file that is elsewhere"),
        pytest.param(leaf(life=timedelta(days=1)), id="a fresh certificate of 24 h"),
        pytest.param(leaf(life=timedelta(days=1), since=-timedelta(hours=16)), id="one of 24 h that is renewed now"),
        pytest.param(put(w.METRICS, w.metrics(w.NOW.timestamp() + 3000, begins=w.NOW.timestamp() - 600)), id="of 1 h"),
        pytest.param(put(w.METRICS, "nothing_of_ours 1\n"), id="a replica that says nothing"),
        pytest.param(
            both(
                policy(INJECT),
                put(
                    w.MUTATING, w.items({"metadata": {"name": "m"}, "webhooks": [w.registered("mutate.evenspread.io")]})
                ),
            ),
            id="injecting",
        ),
    ],
)
def test_what_is_not_wrong_has_no_line(doctor, harmless):
    world = w.right()
    harmless(world)
    assert doctor(world) == []


@pytest.mark.parametrize(
    ("release", "state", "why"),
    [
        ("v1.20.3", "problem", "evenspread supports 1.31 to 1.37 and behaves as in 1.37"),
        ("v1.30.14", "problem", "evenspread supports 1.31 to 1.37 and behaves as in 1.37"),
        ("v1.38.0-alpha.1", "note", "evenspread supports 1.31 to 1.37 and behaves as announced for 1.38"),
        ("v1.39.0", "problem", "evenspread supports 1.31 to 1.37 and behaves as in 1.37"),
    ],
)
def test_a_release_of_kubernetes_that_was_not_compared(doctor, release, state, why):
    (line,) = doctor(w.right(), version=release)
    assert (line["check"], line["what"], line["state"], line["why"]) == ("Kubernetes", release, state, why)


@pytest.mark.parametrize("release", ["v1.31.0", "v1.37.1"])
def test_a_supported_release_of_kubernetes(doctor, release):
    assert doctor(w.right(), version=release) == []


def test_without_an_api_for_reports_there_is_a_note(doctor):
    (line,) = doctor(w.right() | {w.OPEN_REPORTS: None})
    assert (line["check"], line["state"]) == ("reports", "note")


FORBIDDEN = (403, {"kind": "Status", "message": "no"})


@pytest.mark.parametrize(
    ("path", "checks"),
    [
        pytest.param(w.MUTATING, ["registration", "admission"], id="webhook configurations"),
        pytest.param(w.COMPILED, ["admission policies"], id="admission policies"),
        pytest.param(w.COMPILED_BINDINGS, ["admission policies"], id="bindings of admission policies"),
        pytest.param(w.COMPILED_DEFAULTS, ["admission policies"], id="policies of defaults"),
        pytest.param(w.DEPLOYMENT, ["version", "caBundle"], id="the Deployment"),
        pytest.param(w.DEPLOYMENTS, ["controller", "permissions"], id="the controller's Deployment"),
        pytest.param(w.SERVICE, ["endpoints"], id="the Service"),
        pytest.param(w.SLICES, ["endpoints"], id="its addresses"),
        pytest.param(w.NETWORK, ["network"], id="NetworkPolicies"),
        pytest.param(w.ROLES, ["permissions"] * 2, id="roles"),
        pytest.param(w.BINDINGS, ["permissions"] * 2, id="bindings"),
        pytest.param(w.SECRET, ["caBundle", "certificate"], id="the certificate"),
        pytest.param(w.POLICY, ["policy"], id="the policy"),
        pytest.param(w.METRICS, [], id="metrics"),
        pytest.param(w.OPEN_REPORTS, ["reports"], id="report APIs"),
        pytest.param(w.LEASE, ["leader"], id="the Lease"),
        pytest.param(w.READY, ["health"], id="readyz"),
        pytest.param(w.CONTROLLER_PODS, ["controller"], id="the controller's pods"),
        pytest.param(w.PODS, [], id="pods of a Service that has enough"),
        pytest.param(w.BUDGETS, [], id="budgets that nobody needs"),
    ],
)
def test_what_may_not_be_read_is_unknown_and_hides_nothing_else(doctor, path, checks):
    lines = doctor(w.right() | {path: FORBIDDEN})
    assert [(each["check"], each["state"]) for each in lines] == [(check, "unknown") for check in checks]
    assert all(each["what"].startswith(("could not be read: ", "was not checked: ")) for each in lines)


def test_not_ready_and_pods_may_not_be_read(doctor):
    lines = doctor(w.right() | {w.SLICES: w.items(), w.PODS: FORBIDDEN})
    assert [each["what"] for each in lines] == ["0 of 2 replicas are ready; pods: 403 Forbidden"]


def test_our_own_authority_that_nobody_trusts(doctor):
    world = w.right()
    own_authority()(world)
    bundle(w.OTHER.certificate)(world)
    (line,) = doctor(world)
    assert line["what"] == "does not contain the signing CA"
    assert line["fix"] == "kubectl -n spread rollout restart deployment -l app.kubernetes.io/component=controller"


def test_our_own_authority_that_is_not_there_yet(doctor):
    world = w.right()
    own_authority(pem={})(world)
    trust, held = doctor(world)
    assert (trust["state"], trust["what"]) == ("unknown", "could not be read: the Secret contains no CA yet")
    assert (held["state"], held["what"]) == ("problem", "contains no CA yet; the first webhook pod creates it")


def test_cert_manager_is_named_where_it_issues(doctor):
    world = w.right()
    leaf(since=-timedelta(days=100))(world)
    annotated = {"name": "evenspread", "annotations": {"cert-manager.io/inject-ca-from": "spread/x"}}
    client = {"service": {"namespace": "spread", "name": w.NAME}, "caBundle": ""}
    world[w.VALIDATING] = w.items({"metadata": annotated, "webhooks": [w.registered(clientConfig=client)]})
    assert [each["fix"] for each in doctor(world)] == [
        "kubectl -n cert-manager rollout restart deployment/cert-manager-cainjector",
        "kubectl -n spread delete secret evenspread-webhook-tls  # cert-manager issues it again",
    ]


REGISTERED = (w.VALIDATING, w.MUTATING, w.COMPILED, w.COMPILED_BINDINGS)


def test_nothing_is_installed(doctor):
    world = {path: w.items() for path in (*REGISTERED, "/apis/apps/v1/deployments")}
    lines = doctor(world | {w.OPEN_REPORTS: w.report_api()})
    (line,) = lines
    assert line["fix"] == "helm install evenspread charts/evenspread -n evenspread --create-namespace"


def test_it_is_found_by_its_deployment_where_nothing_is_registered(doctor):
    deployments = w.items({"metadata": {"name": "other"}}, w.deployment())
    world = w.right() | {w.VALIDATING: w.items(), w.DEPLOYMENTS: deployments}
    assert [each["check"] for each in doctor(world, "-n", "spread")] == ["registration"]
    assert [each["check"] for each in doctor(world | {w.DEPLOYMENTS: FORBIDDEN}, "-n", "spread")] == [
        "version",
        "registration",
    ]


READING = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["list", "watch"]}
REPORTING = {"apiGroups": ["openreports.io"], "resources": ["reports"], "verbs": ["list", "create", "patch", "delete"]}
EVENTS = {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]}
WATCHED = {**READING, "resources": [each.name for each in watched(Policy())]}


@pytest.mark.parametrize(
    ("arguments", "rules", "said"),
    [
        pytest.param(("--scan",), [READING, REPORTING, EVENTS], "", id="all"),
        pytest.param((), [], "", id="no scan"),
        pytest.param(("--scan", "--no-reports", "--no-events"), [READING], "", id="nothing is told"),
        pytest.param(
            ("--scan",),
            [READING],
            "may not list, create, patch and delete reports; create and patch events",
            id="what tells",
        ),
        pytest.param(
            ("--scan", "--no-reports"), [WATCHED, EVENTS], "may not list daemonsets, jobs and cronjobs", id="kinds"
        ),
    ],
)
def test_the_controllers_account_is_asked_about_too(doctor, arguments, rules, said):
    world = w.right() | {w.DEPLOYMENTS: w.items(w.controller(*arguments))}
    world[w.ROLES] = w.items(
        {"metadata": {"name": "reader"}, "rules": [w.ALL]}, {"metadata": {"name": "own"}, "rules": rules}
    )
    world[w.BINDINGS] = w.items(w.bound("reader"), w.bound("own", "evenspread-controller"))
    lines = doctor(world)
    assert [each["what"] for each in lines] == ([said] if said else [])
    assert {each["where"] for each in lines} <= {"ServiceAccount spread/evenspread-controller"}
    assert {each["why"][:10] for each in lines} <= {"Scans skip"}


def test_without_a_role_the_controller_knows_nothing(doctor):
    lines = doctor(w.right() | {w.BINDINGS: w.items(w.bound("reader"))})
    assert [each["why"] for each in lines] == ["No scan starts"]


def test_an_api_for_reports_that_the_cluster_lacks_needs_no_permission(doctor):
    world = w.right() | {w.OPEN_REPORTS: None, w.POLICY_REPORTS: w.report_api("PolicyReport")}
    world[w.ROLES] = w.items({"metadata": {"name": "reader"}, "rules": [READING, EVENTS]})
    lines = doctor(world)
    assert [each["what"] for each in lines] == ["may not list, create, patch and delete policyreports"]


def test_lists_are_read_page_by_page(doctor):
    world = w.right()
    pages = [{"items": [], "metadata": {"continue": "more"}}, world[w.BINDINGS]]
    assert doctor(world | {w.BINDINGS: lambda: pages.pop(0)}) == []
    assert pages == []


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param({"data": {"tls.crt": "%"}}, id="a value that is no base64"),
        pytest.param({"data": None}, id="no data"),
    ],
)
def test_an_odd_secret_is_told_of(doctor, odd):
    lines = doctor(w.right() | {w.SECRET: odd})
    assert {each["check"] for each in lines} == {"caBundle", "certificate"}


def test_the_page_has_a_line_why_and_what_to_do(api, run, tmp_path, doctor):
    world = w.right() | {w.NETWORK: FORBIDDEN}
    webhook(timeoutSeconds=30)(world)
    doctor(world)
    code, out, _ = run("doctor", "--kubeconfig", api.kubeconfig(tmp_path))
    lines = out.splitlines()

    assert code == 1
    assert lines[0] == "ok       Kubernetes          API server: v1.37.1"
    where = "ValidatingWebhookConfiguration evenspread, validate.evenspread.io"
    place = lines.index(f"problem  timeout             {where}: timeoutSeconds is 30")
    assert lines[place + 1].strip().startswith("If the webhook does not answer, each write waits")
    assert lines[place + 2].strip() == f"$ {HELM} --set webhook.timeoutSeconds=2 --force-conflicts"
    assert lines[-1] == "15 ok, 1 problem, 1 unknown: writes are reviewed"


def test_a_snapshot_holds_no_installation(run):
    assert run("doctor", "--snapshot", "x")[0] == 2


def test_a_cluster_that_is_not_there(run, tmp_path):
    code, _, err = run("doctor", "--kubeconfig", str(tmp_path / "none"))
    assert (code, err.count("\n")) == (4, 1)
