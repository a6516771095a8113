"""The chart's admission.static: from mode to mode, back and out, while somebody writes wrong workloads."""

import contextlib
import os
import signal

import pytest
from e2e.helm import WAIT, Helm, quiet
from e2e.kubelet import Kubelet
from e2e.load import writing
from e2e.objects import clean, constraint, path, workload
from e2e.registration import GROUP
from e2e.waiting import eventually

NAMESPACE, RELEASE = "static-rules", "evenspread"
POLICIES = f"{GROUP}/validatingadmissionpolicies"
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

    def versions(self):
        return {name: each["metadata"]["generation"] for name, each in self.policies().items() if name in OURS}

    def warnings(self):
        """How many warnings of each rule a user gets: of the policies, and of the webhook."""
        where = f"{path('Deployment', self.namespace)}?dryRun=All"
        texts = self.plane.api.send("POST", where, WARNED).warnings
        of_rules = {rule: [each for each in texts if f"evenspread/{rule}: " in each] for rule in RULES}
        return {
            rule: (sum("Policy" in each for each in found), sum("Policy" not in each for each in found))
            for rule, found in of_rules.items()
        }

    def await_mode(self, policies, whole, part):
        """Until the policies are these, and a user gets so many warnings of a whole rule and of one in part."""
        eventually(lambda: self.policies().keys() == policies)
        expected = dict(zip(RULES, (whole, part), strict=True))
        eventually(lambda: self.warnings() == expected)


@pytest.fixture(name="shop")
def _shop(plane, namespace):
    return Shop(plane, namespace)


@pytest.mark.parametrize("failure_policy", ["Ignore", "Fail"])
def test_no_wrong_object_gets_in_from_mode_to_mode(shop, helm, kubelet, failure_policy, capsys):
    plane, namespace = shop.plane, shop.namespace
    before, opens = {*shop.policies()}, failure_policy == "Ignore"
    upgrade = ("upgrade", "--reset-then-reuse-values", "--set")
    with contextlib.ExitStack() as streams:
        wrong = streams.enter_context(writing(plane, namespace, WRONG))
        # With Fail, a right object is refused while the replicas are dead.
        right = streams.enter_context(writing(plane, namespace, clean("Deployment"))) if opens else []
        with kubelet.at_work():
            helm("install", *VALUES, "--set", f"webhook.failurePolicy={failure_policy}")
            eventually(lambda: wrong[-1].status == 403)
            shop.await_mode(before, (0, 1), (0, 1))

            helm(*upgrade, "admission.static=policies")
            shop.await_mode(before | OURS, (1, 0), (0, 1))
            eventually(lambda: BY_POLICY in wrong[-1].message)
            for each in kubelet.containers:
                os.killpg(each.process.pid, signal.SIGKILL)
            eventually(lambda: not any(each.get("/readyz")[0] for each in kubelet.containers))
            reached = len(wrong)
            eventually(lambda: len(wrong) > reached + 50)
            alone = wrong[reached:]

            helm(*upgrade, "admission.static=both")
            shop.await_mode(before | OURS, (1, 1), (1, 1))
            # Who leads now has compared each policy, and has written those that differ: their warnings.
            eventually(lambda: shop.versions() == {"evenspread-deny": 1, "evenspread-warn": 2, "evenspread-audit": 2})

            helm(*upgrade, "admission.static=webhook")
            shop.await_mode(before, (0, 1), (0, 1))
            eventually(lambda: BY_WEBHOOK in wrong[-1].message)

            helm("rollback", "2")
            shop.await_mode(before | OURS, (1, 0), (0, 1))
            eventually(lambda: BY_POLICY in wrong[-1].message)
            end = len(wrong)
        helm("uninstall")
        eventually(lambda: shop.policies().keys() == before)
        eventually(lambda: wrong[-1].status == 201)
    first = next(number for number, each in enumerate(wrong) if each.status == 403)
    answers = wrong[first:end]
    with capsys.disabled():
        by = {name: sum(name in each.message for each in answers) for name in (BY_POLICY, BY_WEBHOOK)}
        print(f"\n{failure_policy}: {len(answers)} wrong objects: {by}; {len(alone)} without the webhook")

    assert [each for each in answers if each.status != 403] == []
    assert all(BY_POLICY in each.message for each in alone)
    assert [each for each in right if each.status != 201] == []
    assert len(right) > 100 or not opens
    bindings = plane.api.request("GET", f"{GROUP}/validatingadmissionpolicybindings")["items"]
    assert OURS.isdisjoint(each["metadata"]["name"] for each in bindings)
