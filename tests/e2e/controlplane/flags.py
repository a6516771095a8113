"""The flags of each process; what they are for is in README.md."""

import json
import pathlib
from collections.abc import Iterable, Mapping

HOST = "127.0.0.1"

CONTROLLERS = (
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "root-ca-certificate-publisher-controller",
    "namespace-controller",
    "garbage-collector-controller",
    "clusterrole-aggregation-controller",
    "deployment-controller",
    "replicaset-controller",
    "replicationcontroller-controller",
    "statefulset-controller",
    "daemonset-controller",
    "job-controller",
    "cronjob-controller",
    "disruption-controller",
    "endpoints-controller",
    "endpointslice-controller",
    "resourcequota-controller",
    "node-lifecycle-controller",  # puts the unschedulable taint on a cordoned node
    "taint-eviction-controller",
    "pod-garbage-collector-controller",
    "horizontal-pod-autoscaler-controller",
    "ttl-after-finished-controller",
    "persistentvolume-binder-controller",
    "ephemeral-volume-controller",
    "persistentvolumeclaim-protection-controller",
    "persistentvolume-protection-controller",
    "validatingadmissionpolicy-status-controller",
)

# The API server dials the pods behind a webhook's Service (see netns.sh) instead of its ClusterIP.
ENDPOINTS = ("--enable-aggregator-routing=true",)

PODS_AND_THE_REST = (
    {"level": "RequestResponse", "resources": [{"group": "", "resources": ["pods"]}]},
    {"level": "Metadata"},
)


def etcd(here: pathlib.Path, ports: dict[str, int]) -> list[str]:
    client = f"http://{HOST}:{ports['etcd']}"
    peer = f"http://{HOST}:{ports['peer']}"
    return [
        f"--data-dir={here}/etcd",
        "--unsafe-no-fsync",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--watch-progress-notify-interval=5s",  # else bookmarks of a quiet resource take minutes
        "--log-level=error",
    ]


def apiserver(here: pathlib.Path, ports: dict[str, int]) -> list[str]:
    return [
        f"--etcd-servers=http://{HOST}:{ports['etcd']}",
        f"--bind-address={HOST}",
        f"--secure-port={ports['api']}",
        f"--advertise-address={HOST}",
        "--endpoint-reconciler-type=none",  # an Endpoints object may not hold a loopback address
        f"--tls-cert-file={here}/apiserver.crt",
        f"--tls-private-key-file={here}/apiserver.key",
        f"--client-ca-file={here}/ca.crt",
        f"--cert-dir={here}",
        f"--requestheader-client-ca-file={here}/ca.crt",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={here}/front-proxy.crt",
        f"--proxy-client-key-file={here}/front-proxy.key",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={here}/sa.pub",
        f"--service-account-signing-key-file={here}/sa.key",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--allow-privileged=true",
        "--profiling=false",
    ]


def audit(here: pathlib.Path, rules: tuple[dict, ...] = PODS_AND_THE_REST) -> tuple[str, ...]:
    """What is asked of the API server goes to audit.log, by the rules of an audit policy."""
    here.mkdir(parents=True, exist_ok=True)
    policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": rules}
    (here / "audit.yaml").write_text(json.dumps(policy))
    return f"--audit-policy-file={here}/audit.yaml", f"--audit-log-path={here}/audit.log"


def static_policies(here: pathlib.Path, plugin: str, objects: Iterable[Mapping[str, object]]) -> tuple[str, ...]:
    """The admission plugin reads these objects from a directory at the start."""
    manifests = here / "manifests"
    manifests.mkdir()
    (manifests / "evenspread.yaml").write_text("---\n".join(json.dumps(each) + "\n" for each in objects))
    version = "apiserver.config.k8s.io/v1"
    configuration = {"apiVersion": version, "kind": f"{plugin}Configuration", "staticManifestsDir": str(manifests)}
    plugins = [{"name": plugin, "configuration": configuration}]
    given = {"apiVersion": version, "kind": "AdmissionConfiguration", "plugins": plugins}
    (here / "admission.yaml").write_text(json.dumps(given))
    return (f"--admission-control-config-file={here / 'admission.yaml'}",)


def controllers(here: pathlib.Path, ports: dict[str, int]) -> list[str]:
    return [
        *_client(here, "controllers", ports["controllers"]),
        "--use-service-account-credentials=true",  # reviews then carry replicaset-controller and so on as the user
        f"--service-account-private-key-file={here}/sa.key",
        f"--root-ca-file={here}/ca.crt",
        f"--controllers={','.join(CONTROLLERS)}",
    ]


def scheduler(here: pathlib.Path, ports: dict[str, int]) -> list[str]:
    return _client(here, "scheduler", ports["scheduler"])


def _client(here: pathlib.Path, name: str, port: int) -> list[str]:
    config = f"{here}/{name}.kubeconfig"
    return [
        f"--kubeconfig={config}",
        f"--authentication-kubeconfig={config}",
        f"--authorization-kubeconfig={config}",
        "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
        f"--bind-address={HOST}",
        f"--secure-port={port}",
        f"--cert-dir={here}/{name}",
        "--leader-elect=false",
        "--kube-api-qps=500",  # the defaults cost two seconds at start and hold rollouts at 20 pods a second;
        "--kube-api-burst=1000",  # with --config the scheduler ignores both: set clientConnection there
    ]


def kwok(here: pathlib.Path, ports: dict[str, int], binaries: pathlib.Path) -> list[str]:
    own = here / "kwok.yaml"  # Stage objects of one's own, put there before the start
    return [
        f"--kubeconfig={here}/kwok.kubeconfig",
        f"--config={own if own.exists() else binaries / 'kwok-stages.yaml'}",
        "--manage-all-nodes=true",
        "--cidr=10.64.0.0/14",
        f"--node-ip={HOST}",
        "--node-lease-duration-seconds=40",
        f"--server-address={HOST}:{ports['kwok']}",
    ]
