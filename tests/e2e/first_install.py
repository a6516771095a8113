"""Does what docs/install.md and the runbook say, in a cluster that has never seen evenspread, and writes it down.

`make transcript` writes docs/first-install.md; nothing in it is by hand. Commands run as a person would type them.
"""

import pytest
from e2e.objects import path, workload
from e2e.terminal import PAGES, open_namespaces, with_kubelet
from e2e.test_switches import DENIED, NAMESPACE, SWITCHES
from e2e.waiting import eventually

HEAD = """\
# A first install

<!-- run by: tests/e2e/first_install.py -->
`make transcript` runs these commands in a new cluster. The control plane is real, and evenspread's pods are processes
from the image. `…` replaces repeated output. [Install](install.md) and the [runbook](runbook.md) explain each step.
"""
MANIFEST = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: web}]
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule,
         labelSelector: {matchLabels: {app: wbe}}}
"""
TRY = "kubectl -n shop apply --dry-run=server -f web.yaml"


@pytest.fixture(name="terminal")
def _terminal(plane, tmp_path):
    open_namespaces(plane, NAMESPACE, "shop")
    (tmp_path / "web.yaml").write_text(MANIFEST)
    yield from with_kubelet(plane, NAMESPACE, tmp_path, HEAD)


@pytest.mark.usefixtures("pod_addresses")  # the Service is dialled
def test_a_first_install(plane, terminal):
    tried = f"{path('Deployment', 'shop')}?dryRun=All"

    def answered(status):
        made = workload("Deployment", "web", DENIED)
        # Each replica follows its ConfigMap in its own time.
        often = range(20)
        eventually(lambda: all(plane.api.send("POST", tried, made).status == status for _ in often), 30, every=0.2)

    terminal.say("## Install it")
    terminal.type(
        "helm install evenspread charts/evenspread -n evenspread --create-namespace --wait",
        "kubectl -n evenspread get deployments,services,secrets",
        "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations",
    )
    terminal.say(
        "## Make a mistake while evenspread observes\n\n`web.yaml` counts `app: wbe`, but its pods have `app:"
        " web`. kubectl prints a warning:"
    )
    terminal.type("cat web.yaml", TRY)
    terminal.say("## Deny the mistake")
    terminal.type(
        "helm upgrade evenspread charts/evenspread -n evenspread --reset-then-reuse-values --set config.ceiling=deny"
        " --set config.rules.selector-not-self=deny"
    )
    answered(403)
    terminal.type(TRY)
    terminal.say(
        "## Use the five switches\n\nEach [switch](runbook.md#five-switches) stops the denial. Each undo command"
        " brings it back."
    )
    for number, name, switch, undo in SWITCHES:
        terminal.say(f"### Switch {number}: {name}")
        terminal.type(switch.strip())
        answered(201)
        terminal.type(TRY)
        terminal.say("Undo it:")
        terminal.type(undo.strip())
        answered(403)
    terminal.say("## Uninstall it")
    terminal.type(
        "helm uninstall evenspread -n evenspread",
        "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations,clusterroles,clusterrolebindings"
        " -l app.kubernetes.io/name=evenspread",
        TRY,
    )
    terminal.write(PAGES / "first-install.md")
