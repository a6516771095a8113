"""What follows of each kind, and that one new row is all that a new kind takes."""

import json
import subprocess
import sys

import pytest

from webhook.cli import target
from webhook.cluster.writing.registration import configurations
from webhook.core.apiserver import decoding
from webhook.core.policy.defaults import Defaults
from webhook.core.workloads import kinds
from webhook.core.workloads.kinds import KINDS, POD_TEMPLATE, TEMPLATED, Traits, native_version, resource_name, traits

APPS = {("apps", "Deployment"), ("apps", "ReplicaSet"), ("apps", "StatefulSet")}
KRUISE = {("apps.kruise.io", "CloneSet"), ("apps.kruise.io", "StatefulSet")}
DAEMON_SETS = {("apps", "DaemonSet"), ("apps.kruise.io", "DaemonSet")}
ROLLOUT, CONTROLLER = ("argoproj.io", "Rollout"), ("", "ReplicationController")
JOBS = {("batch", "Job"), ("batch", "CronJob")}
BUILT_IN = {("", "Pod"), CONTROLLER, *APPS, ("apps", "DaemonSet"), *JOBS}
SERVING = {*APPS, CONTROLLER, ROLLOUT, *KRUISE}
KEPT = {("apps", "ReplicaSet"), CONTROLLER}


@pytest.mark.parametrize(
    ("name", "having"),
    [
        ("built_in", BUILT_IN),
        ("selects", SERVING | DAEMON_SETS),
        ("selecting", {*KEPT, ("apps", "StatefulSet")}),
        ("in_replica_sets", {("apps", "Deployment"), ROLLOUT}),
        ("serves", SERVING),
        ("rolls", {("apps", "Deployment"), ("apps", "StatefulSet"), ROLLOUT, *KRUISE}),
        ("surges", {("apps", "Deployment")}),
        ("restarts", {("apps", "Deployment"), ("apps", "StatefulSet"), ("apps", "DaemonSet")}),
        ("replaces", {("apps", "Deployment"), *KEPT, ROLLOUT, ("apps.kruise.io", "CloneSet")}),
        ("ordered", {("apps", "StatefulSet"), ("apps.kruise.io", "StatefulSet")}),
        ("on_every_node", DAEMON_SETS),
        ("completes", JOBS),
        ("keeps_pods", KEPT),
        ("selector_first", APPS),
        ("makes", {*KINDS} - {("", "Pod"), POD_TEMPLATE, ("serving.knative.dev", "Configuration")}),
    ],
)
def test_the_kinds_that_do_so(name, having):
    assert {kind for kind, row in KINDS.items() if getattr(row, name)} == having


def test_the_kinds_that_do_not():
    alone = {("", "Pod"), POD_TEMPLATE, *DAEMON_SETS, *JOBS, ("batch.volcano.sh", "Job")}
    assert {kind for kind, row in KINDS.items() if not row.replicated} == alone
    may_keep = {("apps", "StatefulSet"), ("apps", "DaemonSet")}
    assert {kind for kind, row in KINDS.items() if row.keeps_pods is None} == may_keep
    never_more = {*KEPT, ("apps", "StatefulSet"), ("apps.kruise.io", "StatefulSet")}
    assert {kind for kind, row in KINDS.items() if row.surges is False} == never_more
    assert {*KINDS} - TEMPLATED == {POD_TEMPLATE}


def test_revision_labels():
    known = {kind: row.revision for kind, row in KINDS.items() if row.revision is not None}
    assert known == {
        ("apps", "Deployment"): "pod-template-hash",
        ("apps", "StatefulSet"): "controller-revision-hash",
        ("apps", "DaemonSet"): "controller-revision-hash",
        ROLLOUT: "rollouts-pod-template-hash",
        ("batch", "Job"): "",
        ("batch", "CronJob"): "",
    }


def test_a_kind_of_another_group_has_only_its_name_in_common():
    assert traits(("example.com", "Deployment")) == Traits(layout=kinds.Layout(()))


def test_the_decoder_names_the_kinds_of_kubernetes():
    assert {name for _, name in {*kinds.BUILT_IN_KINDS, POD_TEMPLATE}} == decoding.GO_KINDS


def test_what_the_api_calls_them():
    assert (resource_name(ROLLOUT), native_version(CONTROLLER)) == ("rollouts", "v1")
    assert native_version(("apps", "Deployment")) == "apps/v1"


def test_every_kind_is_reviewed_or_made_by_one_that_is():
    rules = configurations("https://x", b"", Defaults())[0]["webhooks"][0]["rules"]
    reviewed = {(rule["apiGroups"][0], resource) for rule in rules for resource in rule["resources"]}
    assert {(kind[0], resource_name(kind)) for kind in KINDS} - reviewed == {
        ("", "podtemplates"),
        ("serving.knative.dev", "configurations"),
    }


def test_every_abbreviation_finds_its_kind():
    found = {row.short: target.parse_object(f"{row.short}/web", "shop") for row in KINDS.values() if row.short}
    assert {short: wanted.kind for short, wanted in found.items()} == {
        "po": "Pod",
        "rc": "ReplicationController",
        "deploy": "Deployment",
        "sts": "StatefulSet",
        "ds": "DaemonSet",
        "rs": "ReplicaSet",
        "cj": "CronJob",
    }


NEW_KIND = """
import json, sys, types
from importlib.util import find_spec

# The module with one more row, before anything else reads its tables.
spec = find_spec("webhook.core.workloads.kinds")
head = "KINDS: Mapping[GroupKind, Traits] = {"
row = '''("example.com", "Fleet"): Traits(
    layout=Layout((Site("spec.ship", "spec.ships"),)), short="fl", selects=True, serves=True, replaces=True,
    makes=(POD,), revision="fleet-revision", added=("fleet-revision", "fleet.example.com/"),
),'''
source = open(spec.origin).read()
assert source.count(head) == 1
module = types.ModuleType(spec.name)
sys.modules[spec.name] = module
exec(compile(source.replace(head, head + row), spec.origin, "exec"), vars(module))

from webhook.cli import target
from webhook.cluster.writing.registration import configurations
from webhook.core.api.types import OwnerReference, TypeMeta
from webhook.core.index.readers import decode_object
from webhook.core.policy.policy import Defaults
from webhook.core.workloads.controller_labels import may_be_added
from webhook.core.workloads.kind_fields import constraint_paths, has_template
from webhook.core.workloads.reading import read_workload

ship = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}}
fleet = {
    "apiVersion": "example.com/v2", "kind": "Fleet", "metadata": {"name": "f", "namespace": "shop"},
    "spec": {"ships": 3, "selector": {"matchLabels": {"app": "web"}}, "ship": ship},
}
workload = read_workload(fleet)
rules = configurations("https://x", b"", Defaults())[0]["webhooks"][0]
owner = decode_object(json.dumps(fleet).encode(), TypeMeta(api_version="example.com/v2", kind="Fleet"))
print(json.dumps({
    "read": [workload.templates[0].path, workload.replicas, workload.selector.match_labels],
    "traits": [workload.traits.serves, workload.traits.replaces, workload.traits.rolls, workload.traits.revision],
    "labels": [
        may_be_added(workload, key, in_template=False) for key in ("fleet-revision", "fleet.example.com/x", "y")
    ],
    "templates": [has_template("example.com/v2", "Fleet"), *constraint_paths("example.com/v2", "Fleet")],
    "index": [owner.kind, owner.replicas, len(owner.templates)],
    "found": [target.parse_object("fl/f", "shop").title, target.parse_object("fleets/f", "shop").groups[0]],
    "registered": [rule["resources"] for rule in rules["rules"] if rule["apiGroups"] == ["example.com"]],
    "owners": any("'/Pod of example.com/Fleet'" in each["expression"] for each in rules["matchConditions"]),
}))
"""


def test_a_new_kind_is_one_row():
    run = subprocess.run([sys.executable, "-c", NEW_KIND], capture_output=True, text=True, check=False)  # noqa: S603 ours
    assert run.stderr == ""
    assert json.loads(run.stdout) == {
        "read": ["spec.ship.", 3, {"app": "web"}],
        "traits": [True, True, False, "fleet-revision"],
        "labels": [True, True, False],
        "templates": [True, "spec.ship.spec.topologySpreadConstraints"],
        "index": ["Fleet", 3, 1],
        "found": ["Fleet shop/f", "example.com"],
        "registered": [["fleets"]],
        "owners": True,
    }
