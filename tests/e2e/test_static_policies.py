"""The chart's admission.static: from mode to mode, back and out, while somebody writes wrong workloads."""

import contextlib
import io
import os
import signal

import pytest
from e2e.helm import WAIT, Helm, quiet
from e2e.kubelet import Kubelet
from e2e.load import writing
from e2e.objects import clean, constraint, path, workload
from e2e.registration import GROUP
from e2e.waiting import eventually

from webhook.cli.main import main

NAMESPACE, RELEASE = "static-rules", "evenspread"
POLICIES, BINDINGS = f"{GROUP}/validatingadmissionpolicies", f"{GROUP}/validatingadmissionpolicybindings"
VALUES = (
    *("--set", "config.ceiling=deny", "--set", "config.rules.selector-empty=deny", "--set", "drainSeconds=2"),
    *("--set", "controller.scan.enabled=false"),
)
WRONG = workload("Deployment", "wrong", constraint(labelSelector={}))
# A whole rule, and a rule compiled in part. Both only warn.
WARNED = workload(
    "Deployment", "warned", constraint(matchLabelKeys=["rev"], labelSelector={"matchLabels": {"app": "x"}})
)
RULES = ("match-label-key-absent", "selector-not-self")
BY_POLICY, BY_WEBHOOK = "ValidatingAdmissionPolicy 'evenspread-deny'", 'admission webhook "validate.evenspread.io"'
OURS = {"evenspread-audit", "evenspread-deny", "evenspread-warn"}


@pytest.fixture(name="helm", scope="module")
def _helm(plane, pod_addresses_are_local, tmp_path_factory):
    if not pod_addresses_are_local:
        pytest.skip("not in a network namespace: netns.sh says why")
    helm = Helm(plane, NAMESPACE, tmp_path_factory.mktemp("helm"))

    def run(command, *arguments):
        ran = helm(command, RELEASE, *arguments, *WAIT)
        assert (ran.returncode, quiet(ran.stderr)) == (0, ""), ran.stderr

    return run


@pytest.fixture(name="kubelet")
def _kubelet(plane, tmp_path):
    plane.api.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    kubelet = Kubelet(plane, NAMESPACE, tmp_path)
    try:
        yield kubelet
    finally:
        kubelet.stop()
        plane.api.send("DELETE", f"/api/v1/namespaces/{NAMESPACE}")
        eventually(lambda: plane.api.send("GET", f"/api/v1/namespaces/{NAMESPACE}").status == 404)


class Shop:
    """A namespace in which somebody creates workloads."""

    def __init__(self, plane, namespace):
        self.plane, self.namespace = plane, namespace

    def policies(self):
        return {each["metadata"]["name"]: each for each in self.plane.api.request("GET", POLICIES)["items"]}

    def bindings(self):
        return {each["metadata"]["name"] for each in self.plane.api.request("GET", BINDINGS)["items"]}

    def versions(self):
        found = self.policies()
        return tuple(found[f"evenspread-{mode}"]["metadata"]["generation"] for mode in ("deny", "warn", "audit"))

    def warnings(self):
        """How many warnings of each rule a user gets: of the policies, and of the webhook."""
        where = f"{path('Deployment', self.namespace)}?dryRun=All"
        texts = self.plane.api.send("POST", where, WARNED).warnings
        of_rules = {rule: [each for each in texts if f"evenspread/{rule}: " in each] for rule in RULES}
        return {
            rule: (sum("Policy" in each for each in found), sum("Policy" not in each for each in found))
            for rule, found in of_rules.items()
        }

    def doctor(self):
        """The lines of `evenspread doctor` about the policies."""
        with contextlib.redirect_stdout(io.StringIO()) as out:
            main(["doctor", "--kubeconfig", str(self.plane.admin), "-n", NAMESPACE])
        return [line for line in out.getvalue().splitlines() if "admission policies" in line]

    def await_mode(self, policies, whole, part):
        """Until the policies are these, and a user gets so many warnings of a whole rule and of one in part."""
        eventually(lambda: self.policies().keys() == policies)
        expected = dict(zip(RULES, (whole, part), strict=True))
        eventually(lambda: self.warnings() == expected)


# What a user gets of a whole rule and of one in part in each mode: warnings of policies, and of the webhook.
WARNINGS = {"webhook": ((0, 1), (0, 1)), "policies": ((1, 0), (0, 1)), "both": ((1, 1), (1, 1))}


@pytest.fixture(name="shop")
def _shop(plane, namespace):
    return Shop(plane, namespace)


MODES = {"Ignore": ("webhook", "policies", "both", "webhook"), "Fail": ("policies", "webhook")}


@pytest.mark.parametrize("failure_policy", MODES)
def test_no_wrong_object_gets_in_from_mode_to_mode(shop, helm, kubelet, failure_policy, capsys):
    """Then back to the policies, and out. In the mode policies, all replicas of the webhook die."""
    modes, opens, before = MODES[failure_policy], failure_policy == "Ignore", {*shop.policies()}
    with contextlib.ExitStack() as streams:
        wrong = streams.enter_context(writing(shop.plane, shop.namespace, WRONG))
        # With Fail, a right object is refused while the replicas are dead.
        right = streams.enter_context(writing(shop.plane, shop.namespace, clean("Deployment"))) if opens else []
        with kubelet.at_work():
            for number, mode in enumerate(modes):
                value = f"admission.static={mode}"
                if number:
                    helm("upgrade", "--reset-then-reuse-values", "--set", value)
                else:
                    helm("install", *VALUES, "--set", value, "--set", f"webhook.failurePolicy={failure_policy}")
                shop.await_mode(before | (set() if mode == "webhook" else OURS), *WARNINGS[mode])
                eventually(lambda by=BY_WEBHOOK if mode == "webhook" else BY_POLICY: by in wrong[-1].message)
                if mode == "policies":
                    told, alone = shop.doctor(), without_replicas(kubelet, wrong)
                if mode == "both":
                    # Who leads now has compared each policy, and has written those that differ: of the warnings.
                    eventually(lambda: shop.versions() == (1, 2, 2))
            helm("rollback", str(modes.index("policies") + 1))
            shop.await_mode(before | OURS, *WARNINGS["policies"])
            eventually(lambda: BY_POLICY in wrong[-1].message)
            end = len(wrong)
        helm("uninstall")
        eventually(lambda: shop.policies().keys() == before)
        eventually(lambda: wrong[-1].status == 201)
    answers = wrong[next(number for number, each in enumerate(wrong) if each.status == 403) : end]
    with capsys.disabled():
        by = {name: sum(name in each.message for each in answers) for name in (BY_POLICY, BY_WEBHOOK)}
        print(f"\n{failure_policy}: {len(answers)} wrong objects: {by}; {len(alone)} without the webhook")

    # With Fail, 500 is a refusal too: the policies are gone before the dead replicas are replaced.
    assert {each.status for each in answers} <= ({403} if opens else {403, 500})
    assert [each for each in alone if BY_POLICY not in each.message] == []
    assert len(told) == 1
    assert "are as compiled for" in told[0]
    assert [each for each in right if each.status != 201] == []
    assert len(right) > 100 or not opens
    assert OURS.isdisjoint(shop.bindings())


def without_replicas(kubelet, wrong):
    """Kill all replicas of the webhook, and return the answers to the next wrong objects."""
    for each in kubelet.containers:
        os.killpg(each.process.pid, signal.SIGKILL)
    eventually(lambda: not any(each.get("/readyz")[0] for each in kubelet.containers))
    reached = len(wrong)
    eventually(lambda: len(wrong) > reached + 50)
    return wrong[reached:]
