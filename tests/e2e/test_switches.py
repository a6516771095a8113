"""The runbook's five switches, one by one, as it prints them: what each stops, how soon, and that it can be undone."""

import os
import re
import subprocess
import time
from pathlib import Path

import pytest
from chart.rendered import CHART
from e2e.objects import constraint, path, workload
from e2e.released import released
from e2e.waiting import eventually

NAMESPACE = "evenspread"
RUNBOOK = (Path(__file__).parents[2] / "docs" / "runbook.md").read_text()
SWITCHES = re.findall(r"^### (\d)\. ([^\n]*)\n.*?```\n(.*?)```.*?```\n(.*?)```", RUNBOOK, re.MULTILINE | re.DOTALL)
DENIED = constraint(labelSelector={"matchLabels": {"app": "other"}})


@pytest.fixture(name="release", scope="module")
def _release(plane, pod_addresses_are_local, tmp_path_factory):
    """The chart in a namespace of its own, with a rule that denies."""
    if not pod_addresses_are_local:
        pytest.skip("not in a network namespace: netns.sh says why")
    denying = ("--set", "config.ceiling=deny", "--set", "config.rules.selector-not-self=deny")
    with released(plane, NAMESPACE, tmp_path_factory.mktemp("switched"), *denying):
        yield


@pytest.fixture(name="shell")
def _shell(plane, namespace, tmp_path):
    (tmp_path / "charts").symlink_to(CHART.parent)
    environment = {"HOME": str(tmp_path), "KUBECONFIG": str(plane.admin), "NAMESPACE": namespace}
    environment["PATH"] = f"{plane.binaries}:{os.environ['PATH']}"

    def run(script):
        command = ["bash", "-euc", script]
        ran = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert ran.returncode == 0, f"{script}\n{ran.stderr}"

    return run


@pytest.mark.parametrize("number", range(1, 6))
@pytest.mark.usefixtures("release")
def test_a_switch_stops_what_it_says_and_can_be_undone(plane, namespace, shell, number):
    (_, _, switch, undo) = SWITCHES[number - 1]

    def created():
        made = workload("Deployment", "web", DENIED)
        return plane.api.send("POST", f"{path('Deployment', namespace)}?dryRun=All", made).status

    eventually(lambda: created() == 403, 30)
    shell(switch)
    began = time.monotonic()
    eventually(lambda: created() == 201, 30)
    took = time.monotonic() - began
    shell(undo)
    began = time.monotonic()
    eventually(lambda: created() == 403, 30)
    print(f"switch {number}: after {took:.1f} s, undone after {time.monotonic() - began:.1f} s")  # with -s


LABELLED = re.findall(r"```\n(kubectl label namespace .*?)```", RUNBOOK, re.DOTALL)


@pytest.mark.usefixtures("release")
def test_the_label_lowers_a_ceiling_once_the_policy_lets_it(plane, namespace, shell):
    label, undo = LABELLED

    def created():
        made = workload("Deployment", "web", DENIED)
        return plane.api.send("POST", f"{path('Deployment', namespace)}?dryRun=All", made).status

    eventually(lambda: created() == 403, 30)
    shell(label)
    time.sleep(2)  # the watch brings the label within some milliseconds
    assert created() == 403
    upgrade = (
        "helm upgrade evenspread charts/evenspread -n evenspread --reset-then-reuse-values --set config.namespaceLabel="
    )
    shell(f"{upgrade}any")
    eventually(lambda: created() == 201, 30)
    shell(undo)
    eventually(lambda: created() == 403, 30)
    shell(f"{upgrade}raise")


def test_there_are_five():
    assert [number for number, *_ in SWITCHES] == ["1", "2", "3", "4", "5"]


@pytest.mark.usefixtures("release")
def test_after_a_change_by_hand_a_switch_needs_the_flag_that_the_runbook_names(plane, shell):
    """``kubectl edit`` makes another manager own the policy's field."""
    assert "`--force-conflicts`" in RUNBOOK
    (_, _, switch, undo) = SWITCHES[2]
    name = f"/api/v1/namespaces/{NAMESPACE}/configmaps/evenspread-webhook"

    def policy():
        return plane.api.request("GET", name)["data"]["policy.yaml"]

    edit = "sed -i 's/ceiling: deny/ceiling: warn/'"
    shell(f'EDITOR="{edit}" kubectl -n {NAMESPACE} edit configmap evenspread-webhook')
    assert "ceiling: warn" in policy()
    with pytest.raises(AssertionError, match="conflict"):
        shell(switch)
    assert "ceiling: warn" in policy()
    shell(f"{switch.rstrip()} --force-conflicts")
    assert "ceiling: audit" in policy()
    shell(f"{undo.rstrip()} --force-conflicts")
    assert "ceiling: deny" in policy()
