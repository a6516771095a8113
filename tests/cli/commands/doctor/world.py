"""An installation as the API has it: what the chart makes, in short; tests break one thing of it."""

import base64
import copy
from datetime import UTC, datetime, timedelta

from certs.authority import issue_authority, issue_leaf

NOW = datetime.now(UTC)
CA = issue_authority(NOW)
OTHER = issue_authority(NOW)
NAME = "evenspread-webhook"
HOST = f"{NAME}.spread.svc"
LEAF = issue_leaf(CA, (HOST,), NOW, life=timedelta(days=90))
CORE, APPS = "/api/v1/namespaces/spread", "/apis/apps/v1/namespaces/spread"
REGISTRATIONS = "/apis/admissionregistration.k8s.io/v1"
VALIDATING = f"{REGISTRATIONS}/validatingwebhookconfigurations"
MUTATING = f"{REGISTRATIONS}/mutatingwebhookconfigurations"
COMPILED = f"{REGISTRATIONS}/validatingadmissionpolicies"
COMPILED_BINDINGS = f"{REGISTRATIONS}/validatingadmissionpolicybindings"
COMPILED_DEFAULTS = f"{REGISTRATIONS}/mutatingadmissionpolicies"
COMPILED_DEFAULTS_BINDINGS = f"{REGISTRATIONS}/mutatingadmissionpolicybindings"
DEPLOYMENT, DEPLOYMENTS = f"{APPS}/deployments/{NAME}", f"{APPS}/deployments"
SERVICE = f"{CORE}/services/{NAME}"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/spread/endpointslices"
PODS = f"{CORE}/pods"
BUDGETS = "/apis/policy/v1/namespaces/spread/poddisruptionbudgets"
NETWORK = "/apis/networking.k8s.io/v1/namespaces/spread/networkpolicies"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
SECRET = f"{CORE}/secrets/{NAME}-tls"
AUTHORITY = f"{CORE}/secrets/evenspread-ca"
POLICY = f"{CORE}/configmaps/{NAME}"
PROXY = f"{CORE}/services/https:{NAME}:443/proxy/validate"
METRICS = f"{CORE}/pods/http:web-0:10251/proxy/metrics"
READY = f"{CORE}/pods/http:web-0:10251/proxy/readyz"
CONTROLLER_PODS, CONTROLLER_READY = f"{PODS}#controller", f"{CORE}/pods/http:con-0:10251/proxy/readyz"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/spread/leases/evenspread-controller"
DRY_RUN = "/apis/apps/v1/namespaces/default/deployments"
OPEN_REPORTS, POLICY_REPORTS = "/apis/openreports.io/v1alpha1", "/apis/wgpolicyk8s.io/v1alpha2"
WARNED = (201, {}, {"Warning": '299 - "evenspread/selector-not-self: zone[0] does not match"'})
UNWARNED = (201, {})
LABELS = {"app.kubernetes.io/component": "webhook", "app.kubernetes.io/instance": "prod"}
ALL = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}


def base64_of(data):
    return base64.b64encode(data).decode()


def secret(**data):
    return {"metadata": {"name": f"{NAME}-tls"}, "data": {key: base64_of(value) for key, value in data.items()}}


def registered(name="validate.evenspread.io", **changes):
    excluded = ["kube-system", "kube-public", "kube-node-lease", "spread"]
    expression = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": excluded}
    client = {"service": {"namespace": "spread", "name": NAME, "port": 443}, "caBundle": base64_of(CA.certificate)}
    return {
        "name": name,
        "clientConfig": client,
        "failurePolicy": "Ignore",
        "timeoutSeconds": 2,
        "namespaceSelector": {"matchExpressions": [expression]},
        **changes,
    }


def ready_pod(name="web-0"):
    ports = [{"name": "webhook", "containerPort": 10250}, {"name": "health", "containerPort": 10251}]
    conditions = [{"type": "Ready", "status": "True"}]
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"ports": ports}]},
        "status": {"phase": "Running", "conditions": conditions},
    }


def metrics(ends, valid=1, begins=None, reviews=0):
    begins = ends - 90 * 86400 if begins is None else begins
    return (
        f"# HELP x\nevenspread_certificate_expiry_timestamp_seconds {ends}\nevenspread_config_valid {valid}\n"
        f"evenspread_certificate_not_before_timestamp_seconds {begins}\n"
        f'evenspread_admission_requests_total{{decision="allow",dry_run="true",route="validate"}} {reviews}\n'
    )


def deployment(*args, replicas=2, **labels):
    ports = ready_pod()["spec"]["containers"][0]["ports"]
    return {
        "metadata": {
            "name": NAME,
            "namespace": "spread",
            "labels": LABELS | {"app.kubernetes.io/version": "0.1.0", "helm.sh/chart": "evenspread-0.1.0"} | labels,
        },
        "spec": {
            "replicas": replicas,
            "template": {
                "metadata": {"labels": LABELS},
                "spec": {
                    "serviceAccountName": NAME,
                    "containers": [{"args": list(args), "ports": ports}],
                    "volumes": [{"name": "tmp"}, {"name": "tls", "secret": {"secretName": f"{NAME}-tls"}}],
                },
            },
        },
    }


def controller(*args):
    """The Deployment of the other role; its account is its own."""
    given = ["controller", *args, "--lease=spread/evenspread-controller"]
    spec = {"serviceAccountName": "evenspread-controller", "containers": [{"args": given}]}
    labels = LABELS | {"app.kubernetes.io/component": "controller"}
    template = {"selector": {"matchLabels": labels}, "template": {"spec": spec}}
    return {"metadata": {"name": "evenspread-controller", "labels": labels}, "spec": template}


def lease(holder="con-0_1", ago=0):
    renewed = (datetime.now(UTC) - timedelta(seconds=ago)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {"spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed}}


def report_api(kind="Report", verbs=("create", "delete", "get", "list", "patch", "update", "watch")):
    plural = f"{kind.lower()}s"
    resources = [
        {"name": f"{plural}/status", "kind": kind, "verbs": []},
        {"name": plural, "kind": kind, "verbs": [*verbs]},
    ]
    return {"resources": resources if kind else []}


def bound(role, account=NAME):
    subject = {"kind": "ServiceAccount", "name": account, "namespace": "spread"}
    return {"roleRef": {"name": role}, "subjects": [subject]}


def items(*objects):
    return {"items": list(objects)}


_RIGHT = {
    VALIDATING: items(
        {"metadata": {"name": "other"}}, {"metadata": {"name": "evenspread"}, "webhooks": [registered()]}
    ),
    MUTATING: items(),
    COMPILED: items(),
    COMPILED_BINDINGS: items(),
    OPEN_REPORTS: report_api(),
    DRY_RUN: WARNED,
    CONTROLLER_PODS: items(ready_pod("con-0")),
    CONTROLLER_READY: "leading: yes\nscan: 12 workloads scanned 3 s ago\nreports: openreports.io/v1alpha1\n",
    READY: "serving: ok\nconfiguration: ok\ncertificate: ok\ncluster: ok\n",
    LEASE: lease,
    DEPLOYMENT: deployment(),
    DEPLOYMENTS: items({"metadata": {"name": "other"}}, controller("--scan")),
    "/apis/apps/v1/deployments": items(deployment()),
    SERVICE: {
        "metadata": {"name": NAME},
        "spec": {"selector": LABELS, "ports": [{"port": 443, "targetPort": "webhook"}]},
    },
    SLICES: items(
        {"endpoints": [{"addresses": ["10.0.0.1"]}, {"addresses": ["10.0.0.2"], "conditions": {"ready": True}}]},
        {"endpoints": None},
    ),
    PODS: items(ready_pod()),
    BUDGETS: items({"metadata": {"name": NAME}, "spec": {"selector": {"matchLabels": LABELS}}}),
    NETWORK: items(
        {
            "metadata": {"name": NAME},
            "spec": {"podSelector": {"matchLabels": LABELS}, "ingress": [{"ports": [{"port": "webhook"}]}]},
        },
        {"metadata": {"name": "others"}, "spec": {"podSelector": {"matchLabels": {"app": "db"}}}},
    ),
    ROLES: items({"metadata": {"name": "reader"}, "rules": [ALL]}, {"metadata": {"name": "aggregated"}, "rules": None}),
    BINDINGS: items(
        bound("reader"),
        bound("reader", "evenspread-controller"),
        {"roleRef": {"name": "aggregated"}, "subjects": None},
    ),
    SECRET: secret(**{"tls.crt": LEAF.certificate, "tls.key": LEAF.key, "ca.crt": CA.certificate}),
    POLICY: {"data": {"policy.yaml": "apiVersion: config.evenspread.io/v1alpha1\nkind: SpreadPolicy\n"}},
    PROXY: (405, {}),
    METRICS: metrics((NOW + timedelta(days=60)).timestamp()),
}


def right():
    """Path -> object, text of a page, or status and object."""
    return copy.deepcopy(_RIGHT)
