"""The leader writes the admission policies, and keeps them."""

import pytest
from cluster.stored import silent
from cluster.writing.test_admission_policies import GROUP, binding, stored_bindings

from webhook.controller.admission_policies import PolicyUpkeep
from webhook.core.policy.policy import Mode, Policy

PATHS = [f"{GROUP}/validatingadmissionpolicies/even-{mode}" for mode in ("deny", "warn", "audit")]


class Upkeep:
    """An upkeep on a clock of our own, with a policy that the test changes."""

    def __init__(self, version="v1.37.1", **replaced):
        self.api = stored_bindings(**replaced)
        self.api.put("/version", {"gitVersion": version})
        self.policy, self.now = Policy(), 1_000_000.0
        self.upkeep = PolicyUpkeep(self.api, "even", lambda: self.policy, clock=lambda: self.now)

    def passes(self, seconds=0.0):
        """The paths written in a turn after these seconds."""
        self.now += seconds
        before = len(self.api.writes())
        self.upkeep.turn()
        return [each.partition("?")[0] for each in self.api.writes()[before:]]

    def conditions(self, path):
        return [each["name"] for each in self.api.objects[path]["spec"]["matchConditions"]]


@pytest.fixture(name="upkeep")
def _upkeep():
    return Upkeep()


def test_it_writes_all_policies_at_its_start(upkeep):
    assert upkeep.upkeep.fault == "not checked yet"
    assert upkeep.passes() == PATHS
    assert upkeep.upkeep.fault == ""
    assert upkeep.passes(59) == upkeep.passes(1) == []


def test_it_follows_the_policy_file_at_once(upkeep):
    upkeep.passes()
    upkeep.policy = Policy(ceiling=Mode.OFF)
    assert upkeep.passes(1) == PATHS
    assert upkeep.conditions(PATHS[0]) == ["no-rule-has-this-mode"]


@pytest.mark.parametrize("change", ["deleted", "changed"])
def test_it_repairs_what_others_change(upkeep, change):
    upkeep.passes()
    if change == "deleted":
        del upkeep.api.objects[PATHS[1]]
    else:
        upkeep.api.objects[PATHS[1]]["spec"]["failurePolicy"] = "Ignore"
    assert upkeep.passes(59) == []
    assert upkeep.passes(1) == PATHS[1:2]


def test_a_fault_is_told_and_tried_again(upkeep, caplog):
    upkeep.api.before = silent
    for _ in range(2):
        assert upkeep.passes(10) == []
    assert upkeep.upkeep.fault == "https://api: no answer in time"
    assert [each.message for each in caplog.records] == [
        "the admission policies cannot be written: https://api: no answer in time"
    ]
    upkeep.api.before = lambda *_: None
    assert upkeep.passes(9) == []
    assert upkeep.passes(1) == PATHS
    assert upkeep.upkeep.fault == ""


@pytest.mark.parametrize(
    ("deny", "fault"),
    [
        (binding("deny", "Deny", "mine"), "ValidatingAdmissionPolicyBinding even-deny is not of the chart"),
        (None, "404 ValidatingAdmissionPolicyBinding even-deny: says 404"),
    ],
    ids=["of others", "missing"],
)
def test_a_binding_without_a_policy_stops_no_other(deny, fault):
    upkeep = Upkeep(deny=deny)
    assert upkeep.passes() == PATHS[1:]
    assert upkeep.upkeep.fault == fault


def test_a_bug_stops_nothing_else(upkeep):
    upkeep.api.before = lambda *_: 1 / 0
    assert upkeep.passes() == []
    assert upkeep.upkeep.fault == "failed because of a bug: ZeroDivisionError"


def test_a_new_leader_checks_again(upkeep):
    upkeep.passes()
    del upkeep.api.objects[PATHS[0]]
    upkeep.upkeep.forget()
    assert upkeep.passes() == PATHS[:1]


@pytest.mark.parametrize(
    ("version", "refused"), [("v1.33.2", False), ("v1.37.1", True), ("v1.99.0", True)], ids=["old", "known", "newer"]
)
def test_rules_of_the_release(version, refused):
    upkeep = Upkeep(version=version)
    upkeep.passes()
    rules = [each["message"] for each in upkeep.api.objects[PATHS[1]]["spec"]["validations"]]
    assert any("pods-refused" in each for each in rules) is refused
