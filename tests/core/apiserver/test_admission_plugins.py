"""What kube-apiserver's admission plugins make of a pod, and why they refuse it."""

import msgspec
import pytest

from webhook.core.api.admission_objects import LimitRange, PriorityClass, RuntimeClass
from webhook.core.api.types import Pod
from webhook.core.api.version import KubernetesVersion
from webhook.core.apiserver.admission_plugins import AdmissionFacts, as_created, limit_ranges_disagree, plugin_refusals
from webhook.core.apiserver.pod_defaults import with_decoding_defaults

NOW = KubernetesVersion(1, 37)
NAME = "PriorityClass name"
COMPUTED = "must not be provided in pod spec; priority admission controller computed"
GONE = [
    {"key": f"node.kubernetes.io/{state}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for state in ("not-ready", "unreachable")
]


def read(kind, value):
    return msgspec.convert(value, kind)


def limit_range(*items, name="one"):
    written = [{"type": "Container", **each} for each in items]
    return read(LimitRange, {"metadata": {"name": name, "namespace": "shop"}, "spec": {"limits": written}})


def priority_class(name="high", value=1000, **more):
    return read(PriorityClass, {"metadata": {"name": name}, "value": value, **more})


def runtime_class(overhead=None, **scheduling):
    fixed = {} if overhead is None else {"overhead": {"podFixed": overhead}}
    return read(RuntimeClass, {"metadata": {"name": "boxed"}, **fixed, "scheduling": scheduling or None})


def pod(*containers, **spec):
    written = [{"name": f"c{number}", "resources": each} for number, each in enumerate(containers or ({},))]
    return read(Pod, {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"containers": written, **spec}})


def created(made, version=NOW, **facts):
    """The spec of the pod that the scheduler gets, as JSON without what is absent."""
    spec = as_created(made, version, AdmissionFacts(**facts)).pod_spec
    return {name: value for name, value in msgspec.to_builtins(spec).items() if value is not None}


@pytest.mark.parametrize(
    ("written", "items", "requests", "limits"),
    [
        pytest.param({}, [{"default": {"cpu": "2"}}], {"cpu": "2"}, {"cpu": "2"}, id="a limit is requested too"),
        pytest.param(
            *({}, [{"default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}}]),
            *({"cpu": "1"}, {"cpu": "2"}),
            id="a request of its own",
        ),
        pytest.param({}, [{"max": {"cpu": "4"}}], {"cpu": "4"}, {"cpu": "4"}, id="the most is the limit"),
        pytest.param({}, [{"min": {"cpu": "10m"}}], {"cpu": "10m"}, {}, id="the least is requested"),
        pytest.param({}, [{"defaultRequest": {"cpu": "1"}}], {"cpu": "1"}, {}, id="a request alone"),
        pytest.param(
            *({"requests": {"cpu": "3"}}, [{"default": {"cpu": "2"}}]),
            *({"cpu": "3"}, {"cpu": "2"}),
            id="what is written stays, and may exceed the limit",
        ),
        pytest.param(
            *({"limits": {"cpu": "3"}}, [{"defaultRequest": {"cpu": "1"}}]),
            *({"cpu": "3"}, {"cpu": "3"}),
            id="a written limit is requested before",
        ),
        pytest.param(
            *({}, [{"defaultRequest": {"cpu": "1"}}, {"defaultRequest": {"cpu": "2"}}]),
            *({"cpu": "2"}, {}),
            id="the last of one range",
        ),
        pytest.param({}, [{"type": "Pod", "max": {"cpu": "1"}}], {}, {}, id="what is said of pods gives nothing"),
    ],
)
def test_limit_ranges_fill_in_what_containers_lack(written, items, requests, limits):
    made = pod(written, initContainers=[{"name": "i", "resources": written}])
    spec = created(made, limit_ranges=(limit_range(*items),))
    for each in (*spec["containers"], *spec["initContainers"]):
        has = each["resources"] or {}
        assert (has.get("requests") or {}, has.get("limits") or {}) == (requests, limits)


def test_the_first_of_two_ranges_gives_what_the_other_does_not():
    ranges = limit_range({"default": {"cpu": "1"}}, name="a"), limit_range({"default": {"memory": "1Gi"}}, name="b")
    spec = created(pod(), limit_ranges=ranges)
    assert spec["containers"][0]["resources"]["limits"] == {"cpu": "1", "memory": "1Gi"}
    assert not limit_ranges_disagree(ranges)
    assert limit_ranges_disagree((*ranges, limit_range({"default": {"memory": "2Gi"}}, name="c")))


@pytest.mark.parametrize(
    ("version", "cpu"), [pytest.param((1, 37), "0.5", id="1.37"), pytest.param((1, 36), None, id="1.36")]
)
def test_pod_level_requests_are_those_of_containers_with_their_defaults_since_1_37(version, cpu):
    made = pod({}, resources={"limits": {"memory": "1Gi"}})
    spec = created(made, KubernetesVersion(*version), limit_ranges=(limit_range({"defaultRequest": {"cpu": "500m"}}),))
    assert spec["resources"]["requests"].get("cpu") == (None if cpu is None else "500000000n")


@pytest.mark.parametrize(
    ("named", "known", "name", "priority", "policy"),
    [
        pytest.param({}, None, None, 0, "PreemptLowerPriority", id="no class and no default"),
        pytest.param({}, priority_class("usual", 5), "usual", 5, "PreemptLowerPriority", id="the default class"),
        pytest.param(
            *({"priorityClassName": "high"}, priority_class(preemptionPolicy="Never")),
            *("high", 1000, "Never"),
            id="the class that it names",
        ),
    ],
)
def test_priority_follows_from_the_class(named, known, name, priority, policy):
    spec = created(pod(**named), priority_class=known)
    assert (spec.get("priorityClassName"), spec["priority"], spec["preemptionPolicy"]) == (name, priority, policy)


def test_what_is_not_known_gives_nothing():
    spec = created(pod(priorityClassName="high"), unknown=("PriorityClass",))
    assert "priority" not in spec


@pytest.mark.parametrize(
    ("written", "given"),
    [
        pytest.param([], GONE, id="neither"),
        pytest.param([{"key": "a", "operator": "Exists"}], [{"key": "a", "operator": "Exists"}, *GONE], id="another"),
        pytest.param([GONE[1]], [GONE[1], GONE[0]], id="one of them"),
        pytest.param([{"operator": "Exists"}], [{"operator": "Exists"}], id="all"),
        pytest.param(
            *([{"operator": "Exists", "effect": "NoSchedule"}],),
            [{"operator": "Exists", "effect": "NoSchedule"}, *GONE],
            id="all of another effect",
        ),
    ],
)
def test_nodes_that_are_gone_are_tolerated_for_five_minutes(written, given):
    told = [{name: value for name, value in each.items() if value is not None} for each in tolerations(written)]
    assert told == given


def tolerations(written, **facts):
    return created(pod(tolerations=written), **facts)["tolerations"]


SPOT = {"key": "spot", "operator": "Exists"}


@pytest.mark.parametrize(
    ("written", "added", "kept"),
    [
        pytest.param([], [SPOT], 3, id="added"),
        pytest.param([SPOT], [SPOT], 3, id="the same once"),
        pytest.param([{**SPOT, "effect": "NoSchedule"}], [SPOT], 3, id="a wider one instead"),
        pytest.param([SPOT], [{**SPOT, "effect": "NoSchedule"}], 3, id="a narrower one not"),
        pytest.param(
            [{"key": "spot", "operator": "Equal", "value": "a"}], [{**SPOT, "operator": "Equal"}], 4, id="other values"
        ),
        pytest.param(
            *([{"key": "spot", "operator": "Equal", "value": "a", "effect": "NoSchedule"}],),
            [{"key": "spot", "value": "a"}],
            3,
            id="equal is the usual operator",
        ),
        pytest.param([{**SPOT, "operator": "Gt", "value": "1"}], [{**SPOT, "operator": "Lt"}], 4, id="compared"),
        pytest.param([], [{"operator": "Exists"}], 1, id="everything"),
        pytest.param([], [{**GONE[0], "tolerationSeconds": 60}], 2, id="a shorter time"),
        pytest.param([], [{**GONE[0], "tolerationSeconds": None}], 2, id="for ever, which includes any time"),
    ],
)
def test_tolerations_of_a_runtime_are_merged(written, added, kept):
    assert len(tolerations(written, runtime_class=runtime_class(tolerations=added))) == kept


def test_a_runtime_adds_overhead_and_chooses_nodes():
    spec = created(pod(nodeSelector={"a": "1"}), runtime_class=runtime_class({"cpu": "1"}, nodeSelector={"b": "2"}))
    assert (spec["overhead"], spec["nodeSelector"]) == ({"cpu": "1"}, {"a": "1", "b": "2"})
    assert "nodeSelector" not in created(pod(), runtime_class=runtime_class({"cpu": "1"}, tolerations=[SPOT]))


@pytest.mark.parametrize(
    ("whole", "containers", "limit"),
    [
        pytest.param({"requests": {"cpu": "6"}}, [{"cpu": "2"}], "6", id="no lower than the request"),
        pytest.param(
            {"requests": {"cpu": "1"}}, [{"cpu": "2"}, {"cpu": "500m"}], "2500000000n", id="what the containers have"
        ),
        pytest.param({"requests": {"cpu": "6"}}, [{"cpu": "2"}, {}], None, id="a container without"),
        pytest.param({"limits": {"cpu": "7"}}, [{"cpu": "2"}], "7", id="written"),
    ],
)
def test_the_limits_of_the_pod_as_a_whole_since_1_37(whole, containers, limit):
    made = pod(*({"limits": each} for each in containers), resources=whole)
    found = {version: as_created(made, KubernetesVersion(1, version)).pod_spec.resources.limits for version in (36, 37)}
    assert (found[37] or {}).get("cpu") == limit
    assert (found[36] or {}).get("cpu") == whole.get("limits", {}).get("cpu")


def test_a_range_of_pods_looks_at_what_was_filled_in():
    made = pod({"limits": {"cpu": "2"}}, resources={"requests": {"cpu": "6"}})
    assert refused(made, limit_ranges=(limit_range({"type": "Pod", "min": {"cpu": "3"}}),)) == []
    [text] = refused(made, limit_ranges=(limit_range({"type": "Pod", "min": {"cpu": "7"}}),))
    assert text == "minimum cpu usage per Pod is 7, but request is 6"


def refused(made, **facts):
    return list(plugin_refusals(with_decoding_defaults(made, NOW), AdmissionFacts(**facts), NOW))


@pytest.mark.parametrize(
    ("written", "item", "text"),
    [
        (
            {"requests": {"cpu": "50m"}},
            {"min": {"cpu": "0.1"}},
            "minimum cpu usage per Container is 0.1, but request is 50m",
        ),
        (
            {"requests": {"cpu": "1"}, "limits": {"cpu": "50m"}},
            {"min": {"cpu": "0.1"}},
            "minimum cpu usage per Container is 0.1, but limit is 50m",
        ),
        ({}, {"type": "Pod", "min": {"cpu": "1"}}, "minimum cpu usage per Pod is 1.  No request is specified"),
        ({"limits": {"cpu": "3"}}, {"max": {"cpu": "2"}}, "maximum cpu usage per Container is 2, but limit is 3"),
        (
            {"requests": {"cpu": "3"}, "limits": {"cpu": "1"}},
            {"max": {"cpu": "2"}},
            "maximum cpu usage per Container is 2, but request is 3",
        ),
        ({}, {"type": "Pod", "max": {"cpu": "1"}}, "maximum cpu usage per Pod is 1.  No limit is specified"),
        (
            {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}},
            {"maxLimitRequestRatio": {"cpu": "2"}},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
        ),
        (
            {},
            {"maxLimitRequestRatio": {"cpu": "2"}},
            "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
        ),
        (
            {"requests": {"cpu": "1"}},
            {"maxLimitRequestRatio": {"cpu": "2"}},
            "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0",
        ),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)  # fmt: skip
def test_what_exceeds_a_limit_range_is_refused(written, item, text):
    assert refused(pod(written), limit_ranges=(limit_range(item),)) == [text]


@pytest.mark.parametrize(
    ("resources", "text"),
    [
        pytest.param(None, "maximum cpu usage per Pod is 1, but limit is 1500m", id="the sum"),
        pytest.param({"limits": {"cpu": "2"}}, "maximum cpu usage per Pod is 1, but limit is 2", id="the whole"),
        pytest.param({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}, "", id="enough"),
    ],
)
def test_pods_are_limited_as_a_whole(resources, text):
    made = pod({"limits": {"cpu": "1"}}, {"limits": {"cpu": "500m"}}, resources=resources)
    found = refused(made, limit_ranges=(limit_range({"type": "Pod", "max": {"cpu": "1"}}),))
    assert found == ([text] if text else [])


def test_sums_in_whole_units():
    made = pod({"requests": {"cpu": "1"}}, {"requests": {"cpu": "1"}})
    [text] = refused(made, limit_ranges=(limit_range({"type": "Pod", "min": {"cpu": "3"}}),))
    assert text == "minimum cpu usage per Pod is 3, but request is 2"


@pytest.mark.parametrize(
    ("spec", "facts", "text"),
    [
        (
            {"priority": 5},
            {},
            f"the integer value of priority (5) {COMPUTED} 0 from the given {NAME}",
        ),
        (
            {"preemptionPolicy": "Never"},
            {"priority_class": priority_class()},
            f"the string value of PreemptionPolicy (Never) {COMPUTED} PreemptLowerPriority from the given {NAME}",
        ),
        (
            {"priorityClassName": "gone"},
            {"unknown": ("PriorityClass",), "missing": ("PriorityClass",)},
            "no PriorityClass with name gone was found",
        ),
        (
            {"runtimeClassName": "gone"},
            {"unknown": ("RuntimeClass",), "missing": ("RuntimeClass",)},
            'pod rejected: RuntimeClass "gone" not found',
        ),
        (
            {"overhead": {"cpu": "1"}},
            {},
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
        (
            {"overhead": {"cpu": "1"}},
            {"runtime_class": runtime_class({"cpu": "2"})},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            {"nodeSelector": {"a": "1"}},
            {"runtime_class": runtime_class(nodeSelector={"a": "2", "b": "3"})},
            "conflict: runtimeClass.scheduling.nodeSelector[a] = 2; pod.spec.nodeSelector[a] = 1",
        ),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_contradicts_a_class_is_refused(spec, facts, text):
    assert refused(pod(**spec), **facts) == [text]


def test_what_agrees_is_not_refused():
    facts = {"runtime_class": runtime_class({"cpu": "2"}, nodeSelector={"a": "1"}), "priority_class": priority_class()}
    spec = {"overhead": {"cpu": "2000m"}, "nodeSelector": {"a": "1"}, "priority": 1000}
    assert refused(pod(**spec), **facts) == []
    within = {"min": {"cpu": "1"}, "max": {"cpu": "4"}, "maxLimitRequestRatio": {"cpu": "2"}}
    made = pod({"requests": {"cpu": "2"}, "limits": {"cpu": "4"}})
    assert refused(made, limit_ranges=(limit_range(within),)) == []
    assert refused(pod(overhead={"cpu": "1"}), unknown=("RuntimeClass",)) == []
