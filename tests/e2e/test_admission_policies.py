"""What the API server answers with the compiled policies, and what the rules of the webhook answer.

`ADMISSION_OBJECTS=n` sets the number of random objects, `EVENSPREAD_SEED=n` the seed. `ADMISSION_STEP=n` compares every
nth of the recorded objects.
"""

import collections
import contextlib
import gzip
import io
import itertools
import json
import os
import pathlib
import random
import re
import ssl

import pytest
from e2e.controlplane import flags
from e2e.controlplane.api import Api
from e2e.controlplane.up import ControlPlane
from e2e.medians import medians
from e2e.objects import path
from e2e.registration import registered
from e2e.served import certified, serving
from e2e.waiting import eventually
from msgspec.structs import replace

from conformance.policies.largest import largest_objects
from webhook.admission import Engine, answer
from webhook.admission_request import decode_review
from webhook.cli.main import main
from webhook.config import parse_policy
from webhook.core.admission_policies.policies import admission_policies
from webhook.core.admission_policies.policy_objects import STATIC_SUFFIX
from webhook.core.admission_policies.static_rules import static_rules
from webhook.core.api.version import RECORDED, parse_version
from webhook.core.api.well_known import JOB_LABELS, POD_INDEX, POD_NAME
from webhook.core.policy.policy import Mode, Policy
from webhook.core.review.messages import denial, warnings_of
from webhook.core.rules.rule_set import RULES

OBJECTS = int(os.environ.get("ADMISSION_OBJECTS") or 400)
STEP = int(os.environ.get("ADMISSION_STEP") or 10)
SEED = int(os.environ.get("EVENSPREAD_SEED") or 36)
VECTORS = pathlib.Path(__file__).parents[2] / "conformance" / "vectors"
GROUP = "/apis/admissionregistration.k8s.io/v1"
IN_PART = ("evenspread/pods-refused:", "evenspread/selector-not-self:")
UNMATCHED = "kube-public"
"""A namespace that the policies leave out, as all of Kubernetes' own."""
TODAY = "2026-11-28"
OLDER = os.environ.get("EVENSPREAD_RELEASE")
RELEASE = parse_version(OLDER) if OLDER else RECORDED
COMPILED = {each.rule.id for each in static_rules(Policy(), RELEASE)[1]}
# The webhook may deny only what the policies may deny.
OTHERS = {rule.id: "audit" for rule in RULES if rule.id not in COMPILED and not rule.of_api}
POLICY = {
    "apiVersion": "config.evenspread.io/v1alpha1",
    "kind": "SpreadPolicy",
    "rules": {"spread-required": "warn", "topology-key-typo": "warn", **OTHERS},
    "denyFrom": "low",
    "domains": {"example.com/rack": ["a"]},
    "exemptions": [{"rule": "selector-empty", "match": {"selector": {"matchLabels": {"old": "yes"}}}, "reason": "old"}],
    "namespaces": [
        {"match": {"names": ["denied", "both", UNMATCHED]}, "ceiling": "deny"},
        {"match": {"namespaceSelector": {"matchLabels": {"tier": "bare"}}}, "ceiling": "off"},
    ],
}
NAMESPACES = {"warned": {}, "denied": {}, "both": {}, "bare": {"tier": "bare"}}
KINDS = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job", "CronJob", "Pod")
VALUES = ("web", "db", "", "x")
ZONE = "topology.kubernetes.io/zone"
KEYS = (
    *(
        ZONE,
        ZONE,
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zome",
        "topology.kubernetes.io/regionx",
        "zone",
        "AZ",
    ),
    *("kubernetes.io/zone", "k8s.io/Hostname", "example.com/rack", "failure-domain.beta.kubernetes.io/zone", "a b"),
    *("topology.kubernetes.io/zone2", "kubernetes.io/hstname", "kubernetes.io/hostnaem", "node", "x" * 300),
)
NAMES = ("app", "tier", "pod-template-hash", "controller-revision-hash", "app.kubernetes.io/name", "service.istio.io/x")
UID = re.compile(r"(?<=controller-uid=)[0-9a-f-]+")
PREFIX = re.compile(r"Validation failed for ValidatingAdmissionPolicy '[a-z0-9.-]+' with binding '[a-z0-9.-]+': ")
DENIED = re.compile(r".*ValidatingAdmissionPolicy '[a-z0-9.-]+' with binding '[a-z0-9.-]+' denied request: ")


def labels(dice, most=3):
    return {name: dice.choice(VALUES) for name in dice.sample(NAMES, dice.randint(0, most))}


def entry(dice):
    operator = dice.choice(("In", "In", "NotIn", "Exists", "DoesNotExist"))
    values = dice.sample(VALUES, dice.randint(1, 3)) if operator in {"In", "NotIn"} else None
    return {"key": dice.choice(NAMES), "operator": operator, **({"values": values} if values else {})}


def selector(dice, own):
    match dice.randrange(8):
        case 0:
            return {}
        case 1:
            return None
        case 2 | 3:
            return {"matchLabels": own}
        case 4:
            return {"matchLabels": labels(dice)}
        case 5:
            return {"matchLabels": own | labels(dice, 2)}
        case _:
            return {
                "matchLabels": labels(dice, 1),
                "matchExpressions": [entry(dice) for _ in range(dice.randint(1, 3))],
            }


def constraint(dice, own):
    made = {
        "maxSkew": dice.choice((1, 1, 2)),
        "topologyKey": dice.choice(KEYS),
        "whenUnsatisfiable": dice.choice(("DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": selector(dice, own),
    }
    if dice.random() < 0.4:
        made["matchLabelKeys"] = dice.choices(
            ("app", "tier", "rev", "pod-template-hash", "controller-revision-hash"), k=dice.randint(1, 2)
        )
    return {name: value for name, value in made.items() if value is not None}


def random_object(dice, number):
    """An object of any built-in kind, mostly valid, with any fault of the compiled rules."""
    kind, own = dice.choice(KINDS), labels(dice)
    spec = {"containers": [{"name": "web", "image": "web"}]}
    if dice.random() < 0.9:
        spec["topologySpreadConstraints"] = [constraint(dice, own) for _ in range(dice.randint(1, 3))]
    if dice.random() < 0.1:
        term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": own}}
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    metadata = {"name": f"w-{number}"}
    if dice.random() < 0.1:
        metadata["annotations"] = {"evenspread.io/exempt": "selector-empty, topology-key-typo"}
    metadata["labels"] = {"old": dice.choice(("yes", "no", "no"))}
    if kind == "Pod":
        metadata["labels"] |= own
        return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec}
    template = {"metadata": {"labels": own}, "spec": spec}
    if kind in {"Job", "CronJob"}:
        spec["restartPolicy"] = "Never"
        job = {"template": template}
        made = job if kind == "Job" else {"schedule": "@daily", "jobTemplate": {"spec": job}}
        return {"apiVersion": "batch/v1", "kind": kind, "metadata": metadata, "spec": made}
    own.setdefault("app", "web")
    made = {"template": template, "selector": own if kind == "ReplicationController" else {"matchLabels": own}}
    made |= {} if kind == "DaemonSet" else {"replicas": dice.choice((1, 2, 3, 1200))}
    made |= {"serviceName": "web"} if kind == "StatefulSet" else {}
    version = "v1" if kind == "ReplicationController" else "apps/v1"
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": made}


POLICIES = {"ValidatingAdmissionPolicy": "policies", "ValidatingAdmissionPolicyBinding": "policybindings"}


@pytest.fixture(name="guarded", scope="module")
def _guarded(binaries, tmp_path_factory):
    """A control plane with the compiled policies."""
    with ControlPlane(tmp_path_factory.mktemp("policies"), binaries) as plane:
        for name, given in NAMESPACES.items():
            made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": given}}
            plane.api.request("POST", "/api/v1/namespaces", made)
        for name in NAMESPACES:
            where = f"/api/v1/namespaces/{name}/serviceaccounts/default"
            eventually(lambda where=where: plane.api.send("GET", where).status == 200)
        for made in admission_policies(policy(), RELEASE, TODAY):
            plane.api.request("POST", f"{GROUP}/validatingadmission{POLICIES[made['kind']]}", made)
        eventually(lambda: len(created(plane, wrong_pod(), "warned").warnings) == 2)
        eventually(lambda: created(plane, wrong_pod(), "denied").status == 403)
        eventually(lambda: not created(plane, wrong_pod(), "bare").warnings)
        yield plane


def policy():
    return parse_policy(json.dumps(POLICY), file="p", today=TODAY).policy


def wrong_pod():
    wrong = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zome", "whenUnsatisfiable": "DoNotSchedule"}
    spec = {"containers": [{"name": "w", "image": "w"}], "topologySpreadConstraints": [wrong | {"labelSelector": {}}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "w"}, "spec": spec}


def created(plane, made, namespace):
    return plane.api.send("POST", f"{path(made['kind'], namespace)}?dryRun=All", made)


def ours(made, namespace, engine, known):
    """The webhook's answer about an object as the API server has it, for the first finding of each compiled rule."""
    metadata = made["metadata"] | {"namespace": namespace}
    group, _, version = made["apiVersion"].rpartition("/")
    request = {
        "uid": "1",
        "kind": {"group": group, "version": version, "kind": made["kind"]},
        "operation": "CREATE",
        "namespace": namespace,
        "name": metadata["name"],
        "object": made | {"metadata": metadata},
    }
    body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()
    decision = answer("validate", decode_review(body), engine, now=f"{TODAY}T00:00:00Z").decision
    first = {}
    for judged in decision.findings:
        if judged.finding.rule in known:
            first.setdefault(judged.finding.rule, judged)
    warned = [warnings_of([each.finding])[0] for each in first.values() if each.mode is Mode.WARN]
    denied = [each.finding for each in first.values() if each.mode is Mode.DENY]
    if not denied:
        return 201, warned, ""
    (finding, *_), name = denied, f"{made['kind']} {namespace}/{metadata['name']}"
    if finding.rule == "pods-refused":
        finding = replace(finding, headline=finding.warning)
    return 403, warned, denial(name, [finding], engine.policy.messages).split("\n")[0]


def without_uid(answered):
    """The labels of a Job have its uid, which differs in each request."""
    status, warned, denied = answered
    return status, [UID.sub("UID", each) for each in warned], UID.sub("UID", denied)


def heard(answer):
    """Status, warnings and denial of the API server, without the names of the policies."""
    warnings = [each.encode("latin-1").decode() for each in answer.warnings]
    message = DENIED.sub("", answer.message) if answer.status != 201 else ""
    return answer.status, [PREFIX.sub("", each) for each in warnings if PREFIX.match(each)], message


def compared(plane, objects):
    """Count the outcomes, and list the objects with different answers."""
    loaded = policy()
    engine = Engine(policy=loaded, version=RELEASE)
    counts, different = collections.Counter(), []
    for made in objects:
        stored = created(plane, made, "bare")
        if stored.status != 201:
            counts["refused by Kubernetes"] += 1
            continue
        full = {"apiVersion": made["apiVersion"], "kind": made["kind"], **stored.body}
        for name in ("warned", "denied"):
            theirs = without_uid(heard(created(plane, made, name)))
            expected = without_uid(ours(full, name, engine, COMPILED))
            counts["denied" if theirs[0] != 201 else "warned" if theirs[1] else "right"] += 1
            different += [(full, theirs, expected)] if theirs != expected else []
    return counts, different


def random_objects():
    dice = random.Random(SEED)  # noqa: S311 no secret
    return [random_object(dice, number) for number in range(OBJECTS)]


def test_the_api_server_says_what_the_webhook_says(guarded, capsys):
    counts, different = compared(guarded, random_objects())
    with capsys.disabled():
        print(f"\n{OBJECTS} objects in 2 namespaces, seed {SEED}: {dict(counts)}; {len(different)} different")
    assert different == []
    assert min(counts["denied"], counts["warned"], counts["right"]) > OBJECTS / 10


def recorded_objects():
    """Yield the built-in objects of the recorded create requests, without their namespaces."""
    fields = {"validate": "object", "validate-7": "object", "mutated-validate-7": "object", "admit": "create"}
    fields |= {"refused-7": "workload", "refused-8": "workload"}
    for name, field in fields.items():
        with gzip.open(VECTORS / f"{name}.jsonl.gz") as lines:
            for line in itertools.islice(lines, 0, None, STEP):
                made = json.loads(line)["scenario"][field]
                if made.get("kind") in KINDS and isinstance(made.get("metadata"), dict):
                    made["metadata"].pop("namespace", None)
                    yield made


def is_large(constraints):
    return len(constraints) > 16 or any(len(each["topologyKey"]) > 317 for each in constraints)


def is_published(made, *answers):
    """Whether the page lists the difference: the object is too large, or a rule compiled in part differs."""
    spec = made["spec"]
    spec = spec["jobTemplate"]["spec"] if made["kind"] == "CronJob" else spec
    spec = spec if made["kind"] == "Pod" else spec["template"]["spec"]
    constraints = spec.get("topologySpreadConstraints") or ()
    if is_large(constraints):
        return True
    parts_of_pods = (POD_INDEX, POD_NAME, *JOB_LABELS)
    has_part = (
        any(label in json.dumps(constraints) for label in parts_of_pods)
        or "abelKeys" in json.dumps(spec.get("affinity"))
        or len(made["metadata"]["name"]) > 52
    )
    of_others = [[each for each in warned if not each.startswith(IN_PART)] for _, warned, _ in answers]
    return has_part and of_others[0] == of_others[1]


def test_recorded_create_requests(guarded, capsys):
    counts, found = compared(guarded, recorded_objects())
    different = [each for each in found if not is_published(*each)]
    counts["published difference"] = len(found) - len(different)
    with capsys.disabled():
        print(f"\nrecorded objects, every {STEP}th, in 2 namespaces: {dict(counts)}; {len(different)} different")
    assert different == []
    assert min(counts["denied"], counts["right"]) > 500 / STEP
    assert counts["published difference"] < (counts["denied"] + counts["warned"] + counts["right"]) / 5


def test_the_webhook_and_the_policies_deny_the_same(guarded, tmp_path, capsys):
    """The policies alone, the webhook alone, and both, for the same objects."""
    counts, different = collections.Counter(), []
    release = guarded.api.request("GET", "/version")["gitVersion"]
    arguments = (f"--kube-version={release}", *certified(tmp_path, guarded.authority))
    with (
        serving(tmp_path, POLICY, *arguments) as webhook,
        registered(guarded, UNMATCHED, webhook.server, routes=("validate",)),
        registered(guarded, "both", webhook.server, routes=("validate",)),
    ):
        for made in random_objects():
            if created(guarded, made, "bare").status != 201:
                counts["refused by Kubernetes"] += 1
                continue
            alone, webhook_alone, both = (created(guarded, made, each).status for each in ("denied", UNMATCHED, "both"))
            counts["denied" if both == 403 else "admitted"] += 1
            different += [(made, alone, webhook_alone, both)] if not alone == webhook_alone == both else []
    with capsys.disabled():
        print(f"\n{OBJECTS} objects, seed {SEED}: {dict(counts)}; {len(different)} denied by one only")
    assert different == []
    assert min(counts["denied"], counts["admitted"]) > OBJECTS / 10


def test_doctor_compares_the_objects_of_the_api_server(guarded, tmp_path):
    config = tmp_path / "policy.json"
    config.write_text(json.dumps(POLICY))

    def lines():
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            main(["doctor", "--kubeconfig", str(guarded.admin), "--config", str(config), "-o", "json"])
        return [each for each in json.loads(out.getvalue()) if each["check"] == "admission policies"]

    (line,) = lines()
    assert line["state"] == "ok"
    where = f"{GROUP}/validatingadmissionpolicies/evenspread-audit"
    before = guarded.api.request("GET", where)["spec"]
    guarded.api.request("PATCH", where, {"spec": {"failurePolicy": "Ignore"}}, "application/merge-patch+json")
    (line,) = lines()
    assert line["what"] == "spec.failurePolicy differs from the compiled object"
    guarded.api.request("PATCH", where, {"spec": before}, "application/merge-patch+json")
    (line,) = lines()
    assert line["state"] == "ok"


WRONG = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
NUMBERS = itertools.count(1)
REPLICA_SETS = "system:serviceaccount:kube-system:replicaset-controller"


def stored(plane, name, **pod_spec):
    """Create a Deployment with these fields of its pods. Its label exempts it from selector-empty."""
    template = {"metadata": {"labels": {"app": "web"}}}
    template["spec"] = {"containers": [{"name": "web", "image": "web"}], **pod_spec}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    metadata = {"name": name, "labels": {"old": "yes"}}
    made = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
    return plane.api.request("POST", path("Deployment", "denied"), made)


@pytest.mark.parametrize(
    ("change", "status"),
    [
        pytest.param({"metadata": {"annotations": {"a": "b"}}}, 200, id="an annotation: not evaluated"),
        pytest.param({"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}}, 200, id="a restart"),
        pytest.param({"metadata": {"labels": {"old": "no"}}}, 403, id="the label of its exemption"),
        pytest.param({"spec": {"replicas": 3}}, 200, id="more replicas of an exempted object"),
    ],
)
def test_updates(guarded, change, status):
    name = f"w-{next(NUMBERS)}"
    stored(guarded, name, topologySpreadConstraints=[WRONG])
    where = f"{path('Deployment', 'denied', name)}?dryRun=All"
    assert guarded.api.send("PATCH", where, change, "application/merge-patch+json").status == status


def test_an_update_cannot_remove_what_a_rule_requires(guarded):
    term = {"weight": 1, "podAffinityTerm": {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "web"}}}}
    apart = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
    stored(guarded, "apart", affinity=apart)
    change = {"spec": {"template": {"spec": {"affinity": None}}}}
    where = f"{path('Deployment', 'denied', 'apart')}?dryRun=All"
    answered = guarded.api.send("PATCH", where, change, "application/merge-patch+json")
    assert answered.status == 200
    (warned,) = answered.warnings
    assert PREFIX.sub("", warned).startswith("evenspread/spread-required: 2 replicas declare neither spread")


@pytest.mark.parametrize(
    ("user", "owner", "status"),
    [
        pytest.param("jane", "apps/v1/ReplicaSet", 403, id="a person"),
        pytest.param(REPLICA_SETS, "apps/v1/ReplicaSet", 201, id="the controller"),
        pytest.param("system:serviceaccount:db:operator", "db.example.com/v1/Db", 403, id="of a custom resource"),
    ],
)
def test_only_controllers_may_name_an_owner(guarded, user, owner, status):
    version, _, kind = owner.rpartition("/")
    made = wrong_pod()
    made["metadata"]["ownerReferences"] = [
        {"apiVersion": version, "kind": kind, "name": "x", "uid": "u", "controller": True}
    ]
    name = f"user-{next(NUMBERS)}"
    guarded.kubeconfig(name, user, ("system:masters",))
    context = ssl.create_default_context(cadata=guarded.authority.pem.decode())
    context.load_cert_chain(guarded.directory / f"{name}.crt", guarded.directory / f"{name}.key")
    with contextlib.closing(Api(guarded.url, context)) as api:
        assert api.send("POST", f"{path('Pod', 'denied')}?dryRun=All", made).status == status


@pytest.mark.parametrize("kind", ["Deployment", "Pod"])
def test_the_largest_objects_do_not_exceed_the_cost_limit(guarded, kind):
    """The API server ends an expression that takes too long, and then the object would be refused without a reason."""
    for made in largest_objects(kind):
        status, warnings, message = heard(created(guarded, made, "denied"))
        assert "cost" not in message + "".join(warnings), message[:600]
        assert status in {201, 403, 422}, message[:600]  # 422: invalid in Kubernetes too
        assert not [each for each in (message, *warnings) if "failed" in each or "expression" in each]


def test_what_an_object_pays(guarded, capsys):
    """A right Deployment: the median of the policies' namespace over that of a namespace without them."""
    own = {"app": "web"}
    zone = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": own},
    }
    spec = {"containers": [{"name": "web", "image": "web"}], "topologySpreadConstraints": [zone]}
    made = {"replicas": 3, "selector": {"matchLabels": own}, "template": {"metadata": {"labels": own}, "spec": spec}}
    right = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": made}

    def create(namespace):
        assert heard(created(guarded, right, namespace)) == (201, [], "")

    without, within = medians(create, "kube-public", "warned")
    with capsys.disabled():
        print(f"\nmedian of 100 creations: {without:.2f} ms without policies, {within:.2f} ms with them")
    assert within - without < 20


@pytest.mark.skipif(OLDER is not None, reason="Kubernetes 1.37 reads files")
def test_policies_of_files_need_no_objects(binaries, tmp_path):
    """`--target manifests` in the directory that the API server reads at its start."""
    objects = [*admission_policies(policy(), RECORDED, TODAY, suffix=STATIC_SUFFIX)]
    read = flags.static_policies(tmp_path, "ValidatingAdmissionPolicy", objects)
    with ControlPlane(tmp_path / "plane", binaries, apiserver=read) as plane:
        eventually(lambda: created(plane, wrong_pod(), "default").warnings)
        status, warned, _ = heard(created(plane, wrong_pod(), "default"))
        assert plane.api.request("GET", f"{GROUP}/validatingadmissionpolicies")["items"] == []
    assert (status, [each.partition(":")[0] for each in warned]) == (
        201,
        ["evenspread/selector-empty", "evenspread/topology-key-typo"],
    )
