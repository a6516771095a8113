"""Reviews of random objects, as the bytes that an API server sends, beside random clusters; see `anything`.

    PYTHONPATH=tests:. python -m properties.bodies SEED SECONDS      # as make fuzz-reviews

An object is one of `anything`, with fields at their extremes, or with a part of random fields. The old object is
another one, the same, or none. Each review gets an answer with its uid, and no rule raises. A patch
applies, its object can be reviewed, and the next review of that object has no patch.
"""

import base64
import json
import random
import time
import traceback
from collections import Counter
from copy import deepcopy

import jsonpatch
import msgspec
from build import default, filled, reference
from core.review.test_plan_delivery import group, redis
from fuzzing.extremes import NUMBERS, QUANTITIES, TEXTS, drawn
from msgspec.structs import replace
from properties.anything import ODD, World, hunt, places
from properties.churn import others

from webhook.admission import Engine, answer
from webhook.admission_request import decode_review
from webhook.core.api.types import PodSpec, PodTemplate, SpreadConstraint
from webhook.core.api.version import KubernetesVersion
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.policy.defaults import Defaults
from webhook.core.workloads import built_in_objects

NOW = "2026-11-22T10:00:00Z"
MOST_SECONDS = 5.0  # of processor time, without the deadline that a server has
LEAVES = (*ODD, *QUANTITIES, *TEXTS, *NUMBERS)
USERS = (
    ("jane", ()),
    ("system:serviceaccount:kube-system:statefulset-controller", ("system:serviceaccounts:kube-system",)),
    ("system:node:n1", ("system:nodes",)),
    ("", None),
)
# Whatever is read of a kind, by the name of its class; parts of an object are drawn from these.
SHAPES = [each for name, each in vars(built_in_objects).items() if isinstance(each, type) and name.endswith("Spec")]
SEEN = Counter()  # what `hunt` prints
INFOS = [msgspec.inspect.type_info(each) for each in (*SHAPES, PodSpec, PodTemplate, SpreadConstraint)]


def extreme(value, rng):
    """The object with some of its fields at their extremes, gone, or drawn anew."""
    value = json.loads(json.dumps(value))
    for _ in range(rng.choice((0,) * 9 + (1, 1, 2, 4, 9))):
        found = [each for each in places(value, []) if each[1] not in {"apiVersion", "kind"}]
        if not found:
            break
        container, key = rng.choice(found)
        what = rng.random()
        if what < 0.5:
            container[key] = deepcopy(rng.choice(LEAVES))
        elif what < 0.8:
            container[key] = drawn(rng.choice(INFOS), rng, str(key), 2)
        elif what < 0.9:
            del container[key]
        else:
            container[key] = [container[key]] * rng.choice((0, 2, 130))
        value = json.loads(json.dumps(value))
    return value


def templates(value):
    """The pod specs of an object, each with the mapping that has it."""
    return [
        (container, key)
        for container, key in places({"": value}, [])
        if isinstance(child := container[key], dict) and "containers" in child
    ]


def pod_of(value, owner):
    """A pod of an object's first template; the object itself where it has none."""
    for container, key in templates(value):
        meta = container.get("metadata") if isinstance(container, dict) else None
        meta = {**(meta if isinstance(meta, dict) else {}), "name": "web-1", "namespace": "shop"}
        if owner is not None:
            meta["ownerReferences"] = [owner]
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": container[key]}
    return value


def redrawn(value, rng):
    """The object with random constraints, none, or a random pod spec in a template."""
    for container, key in templates(value):
        what = rng.randrange(6)
        if what == 0:
            container[key] = drawn(INFOS[-3], rng, "", 0)
        elif what == 1:
            constraints = [drawn(INFOS[-1], rng, "", 0) for _ in range(rng.choice((1, 2, 200)))]
            container[key]["topologySpreadConstraints"] = constraints
        else:
            container[key].pop("topologySpreadConstraints", None)
    return value


def scale(world, rng):
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": world.object.get("metadata"),
        "spec": {"replicas": deepcopy(rng.choice(LEAVES))},
    }


def revision(world, rng):
    spec = world.object.get("spec")
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "u", "controller": True}
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {"name": "web-1", "namespace": "shop", "ownerReferences": [owner] * rng.choice((0, 1, 1, 2))},
        "revision": 1,
        "data": {"spec": {"template": spec.get("template") if isinstance(spec, dict) else None}},
    }


def request_of(world, rng):
    """The request of a review, as JSON."""
    made, sub = json.loads(json.dumps(world.object)), None
    what = rng.random()
    if what < 0.08:
        sub, made = "scale", scale(world, rng)
    elif what < 0.16:
        made = revision(world, rng)
    elif what < 0.24:
        made = redis(f"redis-{rng.randrange(4)}", kind=rng.choice(("StatefulSet", "Deployment")))
    elif what < 0.7:
        owners = [
            None,
            *(reference(f"{kind}/{name}") for kind in ("ReplicaSet", "StatefulSet") for name in ("x0", "web")),
        ]
        made = pod_of(made, json.loads(msgspec.json.encode(rng.choice(owners))))
    if what > 0.16 and rng.random() < 0.5:
        made = redrawn(made, rng)
    group, _, version = made["apiVersion"].rpartition("/")
    kind = made["kind"]
    scaled = world.object if sub else made
    old = rng.choice((None, json.loads(json.dumps(made)), world.old, extreme(made, rng), extreme(world.old, rng)))
    user, groups = rng.choice(USERS)
    operation = rng.choice((*("CREATE",) * 6, *("UPDATE",) * 3, "DELETE", "CONNECT"))
    return {
        "uid": rng.choice(("u", "705ab4f5-6393-11e8-b7cc-42010a800002", "é\u2028")),
        "kind": {"group": group, "version": version, "kind": kind},
        "resource": {
            "group": scaled["apiVersion"].rpartition("/")[0],
            "version": version,
            "resource": f"{scaled['kind'].lower()}s",
        },
        "subResource": sub,
        "name": rng.choice(("web", "", None)),
        "namespace": rng.choice(("shop", "shop", "shop", "batch", None)),
        "operation": operation,
        "userInfo": {"username": user, "groups": groups},
        "object": None if operation == "DELETE" else extreme(made, rng),
        "oldObject": old if operation in {"UPDATE", "DELETE"} else None,
        "dryRun": rng.choice((True, False, None)),
    }


def engine_of(world, rng):
    defaults = Defaults(
        mode=rng.choice(("inject", "inject", "inject", "observe")),
        default_constraints=tuple(
            default(key, when=when)
            for key, when in (
                ("topology.kubernetes.io/zone", rng.choice(("DoNotSchedule", "ScheduleAnyway"))),
                ("kubernetes.io/hostname", "ScheduleAnyway"),
            )
        ),
        fill_null_selector=rng.random() < 0.5,
        fallback=rng.choice(("off", "annotation", "always")),
        accept_node_growth=rng.random() < 0.5,
    )
    index = None
    if world.values is not None:
        index = filled(ClusterIndex(KubernetesVersion(1, 37)), world.values)
        for each in [group(), *others()] if rng.random() < 0.7 else ():
            index.apply("ADDED", each)
    return Engine(policy=replace(world.policy, defaults=defaults), version=world.version, index=index)


def faults(number):
    """What is wrong with the answers to this world's review."""
    world, rng = World(number), random.Random(number)  # noqa: S311 no secret
    asked, engine = request_of(world, rng), engine_of(world, rng)
    wrong = []
    for route in ("validate", "mutate"):
        made = answered(route, asked, engine, wrong)
        if "patch" in made:
            SEEN["patches"] += 1
            after = patched(asked["object"], made, wrong)
            again = answered(route, {**asked, "object": after}, engine, wrong)
            if "patch" in again:
                wrong.append(f"the patch repeats: {base64.b64decode(made['patch'])} {base64.b64decode(again['patch'])}")
            answered("validate", {**asked, "object": after}, engine, wrong)
    return wrong and [*wrong, json.dumps(asked)]


def answered(route, asked, engine, wrong):
    body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}).encode()
    began = time.process_time()
    made = answer(route, decode_review(body), engine, now=NOW)
    if (seconds := time.process_time() - began) > MOST_SECONDS:
        wrong.append(f"{route}: {seconds:.1f} s")
    raised = [each for each in made.decision.not_evaluated if each.fault]
    wrong += [f"{each.rule}: {''.join(traceback.format_exception(each.fault))}" for each in raised]
    if made.failed and not raised:
        wrong.append(f"{route} failed: {made.decision}")
    response = json.loads(made.body)["response"]
    if response["uid"] != asked["uid"]:
        wrong.append(f"another uid: {response['uid']}")
    if route == "mutate" and not response["allowed"]:
        wrong.append(f"/mutate denies: {response}")
    return response


def patched(value, made, wrong):
    try:
        return jsonpatch.apply_patch(value, json.loads(base64.b64decode(made["patch"])))
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError) as error:
        wrong.append(f"the patch does not apply: {error}: {base64.b64decode(made['patch'])}")
        return value


if __name__ == "__main__":
    hunt(faults, "review", "with a fault", lambda: f", {SEEN['patches']:,} patches")
