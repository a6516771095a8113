"""An object of very many values is not decoded where others wait, and is no way round a rule on deny."""

import json
import time

import msgspec
import pytest
from manifest import DENY, RECENT, decide, headline, request, workload
from msgspec.structs import replace

from webhook.core.budget import OutOfTimeError, time_limit
from webhook.core.context import Context
from webhook.core.policy.policy import Mode, Policy
from webhook.core.review.mutation import mutate
from webhook.core.review.review import review
from webhook.core.rules.object_cost import MAX_VALUES

NOT_SELF = Policy(ceiling=Mode.DENY, rules={"selector-not-self": Mode.DENY})
RIGHT = "zone hard 1 app=web"
SIZE = int(2.9 * 2**20)
CONTROLLER = "system:serviceaccount:kube-system:replicaset-controller"


def with_values(count, kind="Deployment", constraint=RIGHT, meta=None):
    """So many more values than the object has without, in a field that nothing reads."""
    made = workload(kind, "app=web", constraint, meta=meta)
    return {**made, "status": {"conditions": [{}] * count}}


def values(manifest):
    text = json.dumps(manifest)
    return sum(text.count(each) for each in ",[{")


MOST = MAX_VALUES - values(with_values(1)) + 2  # each value is {} and a comma
FEW, MANY = with_values(MOST // 2), with_values(MOST)


TOO_LARGE = (
    "Deployment shop/web: more than 65,536 values: too large for pods-refused to check; make the object smaller "
    "(1 of 2 problems)"
)


@pytest.mark.parametrize(
    ("new", "old", "policy", "denied"),
    [
        pytest.param(MANY, None, NOT_SELF, TOO_LARGE, id="created"),
        pytest.param(FEW, None, NOT_SELF, None, id="as many as are read"),
        pytest.param(
            with_values(MOST // 2, constraint="zone hard 1 app=other"),
            None,
            NOT_SELF,
            "Deployment shop/web: zone[0] counts app=other but the pods have app=web; set matchLabels app=web",
            id="read",
        ),
        pytest.param(MANY, FEW, NOT_SELF, TOO_LARGE, id="it grew"),
        pytest.param(MANY, MANY, NOT_SELF, None, id="it had as many before"),
        pytest.param(FEW, MANY, NOT_SELF, None, id="it shrank"),
        pytest.param(MANY, None, replace(NOT_SELF, too_large="allow"), None, id="the policy allows it"),
        pytest.param(MANY, None, replace(NOT_SELF, ceiling=Mode.WARN), None, id="under a ceiling"),
        pytest.param({**MANY, "kind": "ConfigMap", "apiVersion": "v1"}, None, NOT_SELF, None, id="no pod template"),
        pytest.param(
            workload("Deployment", "app=web", RIGHT, meta={"annotations": {"list": "[{}," * 10**6}}),
            None,
            NOT_SELF,
            None,
            id="text is one value",
        ),
    ],
)
def test_what_is_answered(new, old, policy, denied):
    decision = decide(new, old, policy=policy)
    assert headline(decision) == denied


def test_a_controllers_object_is_let_in():
    assert decide(MANY, policy=NOT_SELF, user=CONTROLLER).allowed
    other = decide(MANY, policy=NOT_SELF, user="system:serviceaccount:shop:replicaset-controller")
    assert headline(other) == TOO_LARGE


def of(text):
    return text + f",{text}" * (SIZE // (len(text) + 1))


OWN_KEYS = ",".join(f'"{number:x}":1' for number in range(SIZE // 9))
SHAPES = {
    "lists": "[" + of("[]") + "]",
    "maps": "[" + of("{}") + "]",
    "one-byte keys": "{" + of('"a":1') + "}",
    "own keys": "{" + OWN_KEYS + "}",
    "empty texts": "{" + OWN_KEYS.replace(":1", ':""') + "}",
    "numbers": "[" + of("1") + "]",
}
SKIPPING = msgspec.json.Decoder(msgspec.Raw)
PLACES = {
    "a template": ("apps", "Deployment", '{"spec":{"replicas":"x","template":%s}}'),
    "a custom resource's template": ("argoproj.io", "Rollout", '{"spec":{"template":%s}}'),
    "constraints": ("", "Pod", '{"spec":{"topologySpreadConstraints":%s,"containers":3}}'),
    "labels": ("", "Pod", '{"metadata":{"labels":%s},"spec":{}}'),
    "a revision's owners": ("apps", "ControllerRevision", '{"metadata":{"ownerReferences":%s}}'),
    "a revision's labels": ("apps", "ControllerRevision", '{"metadata":{"labels":%s}}'),
    "a revision": ("apps", "ControllerRevision", '{"data":{"spec":{"template":{"$patch":"replace","spec":%s}}}}'),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("route", [review, mutate])
@pytest.mark.sampled
def test_how_long_others_wait(place, shape, route):
    """A few times as long as it takes to find the end of the text; Go's rules took a hundred times as long."""
    group, kind, around = PLACES[place]
    text = (around % SHAPES[shape]).encode()
    asked = request(workload("Pod", "app=web"), group=group, version="v1", kind=kind, object=text)
    here = Context(policy=DENY, version=RECENT)

    def once():
        return processor_time(lambda: route(asked, here)) / processor_time(lambda: SKIPPING.decode(text))

    assert any(once() < 20 for _ in range(3))


def processor_time(run):
    began = time.thread_time()
    run()
    return time.thread_time() - began


@pytest.mark.parametrize("template", ['{"spec":{"containers":1}}', "{}"])
def test_a_process_reads_an_object_of_thousands_of_templates(template):
    """2,000 whose type is wrong, in 64 KiB, took 13 to 20 ms of the event loop."""
    text = '{"spec":{"tasks":[%s]}}' % ",".join(['{"template":%s}' % template] * 2000)  # noqa: UP031 braces
    asked = request(
        workload("Pod", "app=web"), group="batch.volcano.sh", version="v1", kind="Job", object=text.encode()
    )
    read = []

    def is_over():
        read.append(1)
        return len(read) > 100

    with time_limit(is_over), pytest.raises(OutOfTimeError):
        review(asked, Context(policy=DENY, version=RECENT))
