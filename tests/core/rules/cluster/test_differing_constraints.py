"""Workloads that count each other under different terms."""

import pytest
from build import owner
from core.groups.grouped import written
from core.rules.shop import LABELS, deployed, shop
from manifest import DENY, decide, findings_of, said, workload
from manifest import told as told_by
from msgspec.structs import replace

from webhook.core.index.objects import DeclaredTemplate
from webhook.core.policy.policy import Messages
from webhook.core.review.messages import WARNING_CHARS, warnings_of

RULE = "constraints-differ-in-group"


def stable(*constraints, **more):
    return workload("Deployment", LABELS["stable"], *constraints, selector=LABELS["stable"], **more)


def told(manifest, *owners, policy=DENY):
    return told_by(RULE, manifest, shop("a: n1 | b: n2", *owners), policy)


JOINT = "zone hard 1 app=web"


@pytest.mark.parametrize(
    ("of", "remedy"),
    [
        pytest.param({}, "use those of SpreadGroup cache", id="both are members"),
        pytest.param({"caps": ()}, "align them", id="a group without caps"),
        pytest.param({"selector": {"matchLabels": {"track": "stable"}}}, "align them", id="one is a member"),
    ],
)
def test_members_of_a_group_are_told_whose_fields_to_take(of, remedy):
    group = written(**{"selector": {"matchLabels": {"app": "web"}}} | of)
    assert told(stable(JOINT), deployed("canary", "zone hard 2 app=web"), group) == [
        f"audit constraints differ from canary: zone maxSkew 1 here, 2 there; {remedy}"
    ]


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        pytest.param([JOINT], [JOINT], None, id="the same"),
        pytest.param([JOINT], ["zone hard 2 app=web"], "zone maxSkew 1 here, 2 there", id="another maxSkew"),
        pytest.param([JOINT], ["zone soft 1 app=web"], "zone hard here, soft there", id="another action"),
        pytest.param([JOINT], [f"{JOINT} minDomains:3"], "zone minDomains 1 here, 3 there", id="another minDomains"),
        pytest.param([JOINT], [f"{JOINT} minDomains:1"], None, id="the default said"),
        pytest.param(
            [JOINT],
            [f"{JOINT} nodeTaintsPolicy:Honor"],
            "zone nodeTaintsPolicy Ignore here, Honor there",
            id="another policy for taints",
        ),
        pytest.param(
            [JOINT],
            [f"{JOINT} nodeAffinityPolicy:Ignore"],
            "zone nodeAffinityPolicy Honor here, Ignore there",
            id="another policy for affinity",
        ),
        pytest.param([JOINT], ["hostname hard 1 app=web"], "zone here, hostname there", id="another key"),
        pytest.param([JOINT], [JOINT, "hostname soft 1 app=web"], "hostname only there", id="one more there"),
        pytest.param([JOINT, "hostname soft 1 app=web"], [JOINT], "hostname only here", id="one more here"),
        pytest.param(
            [JOINT, "hostname soft 1 app=web"],
            ["rack soft 1 app=web"],
            "hostname and zone here, rack there",
            id="two here and one there",
        ),
        pytest.param(
            ["zone hard 1 app=web", "zone soft 3 app=web"],
            ["zone soft 1 app=web", "zone hard 1 app=web"],
            "zone maxSkew 3 here, 1 there",
            id="a hard and a soft one each: like with like",
        ),
        pytest.param([JOINT], ["zone hard 2 track=canary"], None, id="only one counts the other"),
        pytest.param(["zone hard 1 track=stable"], ["zone hard 2 app=web"], None, id="only the other counts the one"),
        pytest.param(
            [JOINT, "hostname hard 1 track=stable"],
            [JOINT, "hostname hard 2 track=canary"],
            None,
            id="what counts only its own pods may differ",
        ),
        pytest.param([JOINT], [], None, id="the other has none"),
        pytest.param([f"{JOINT} keys:pod-template-hash"], ["zone hard 2 app=web"], None, id="one counts its revision"),
        pytest.param([JOINT], ["zone hard 2 app=web keys:pod-template-hash"], None, id="the other counts its revision"),
        pytest.param([f"{JOINT} keys:app"], ["zone hard 2 app=web"], "zone maxSkew 1 here, 2 there", id="by a key"),
        pytest.param(["zone hard 1 {}"], ["zone hard 2 {}"], None, id="an empty selector"),
        pytest.param(["zone hard 1 app=a_"], ["zone hard 2 app=web"], None, id="a selector that cannot be read"),
        pytest.param([JOINT, "rack soft 1 app=a_"], [JOINT], None, id="another that cannot be read"),
    ],
)
def test_terms(ours, theirs, expected):
    answer = [f"audit constraints differ from canary: {expected}; align them"] if expected else []
    assert told(stable(*ours), deployed("canary", *theirs)) == answer


def test_several_that_differ_are_counted_and_the_first_is_named():
    others = (
        replace(deployed("canary", "zone hard 2 app=web"), meta=replace(deployed("canary").meta, name=name))
        for name in ("c", "b", "d")
    )
    assert told(stable(JOINT), *others) == [
        "audit constraints differ from b and 2 more: zone maxSkew 1 here, 2 there; align them"
    ]


@pytest.mark.parametrize(
    ("kind", "keys", "expected"),
    [
        pytest.param("StatefulSet", "pod-template-hash", "hostname only there", id="a key that its pods never have"),
        pytest.param("Deployment", "pod-template-hash", "zone here, hostname there", id="the key of its revision"),
        pytest.param("Job", "pod-template-hash", "hostname only there", id="a built-in kind that adds others"),
        pytest.param("Deployment", "topology.istio.io/network", None, id="a key that a mesh may add"),
        pytest.param("Thing", "pod-template-hash", "zone here, hostname there", id="a kind that may add a revision"),
        pytest.param("Rollout", "pod-template-hash", "hostname only there", id="a known kind that adds another"),
    ],
)
def test_a_label_that_may_come_later(kind, keys, expected):
    theirs = deployed("canary", f"{JOINT} keys:{keys}", "hostname hard 2 app=web", kind=kind)
    answer = [f"audit constraints differ from canary: {expected}; align them"] if expected else []
    assert told(stable(JOINT), theirs) == answer


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        pytest.param("absent", "zone maxSkew 1 here, 2 there", id="by nobody"),
        pytest.param("topology.istio.io/network", None, id="by a mesh"),
    ],
)
def test_a_label_of_these_pods_that_may_come_later(key, expected):
    ours = stable(f"{JOINT} keys:{key}", "rack hard 1 app=web")
    answer = [f"audit constraints differ from canary: {expected}; align them"] if expected else []
    assert told(ours, deployed("canary", "zone hard 2 app=web", "rack hard 1 app=web")) == answer


def test_keys_with_one_short_name_are_written_out():
    other = deployed("canary", "example.com/rack hard 1 app=web")
    assert told(stable("rack hard 1 app=web"), other) == [
        "audit constraints differ from canary: rack here, example.com/rack there; align them"
    ]
    assert told(stable(JOINT), other) == ["audit constraints differ from canary: zone here, rack there; align them"]


def test_each_template_is_compared():
    pair = replace(
        owner("Thing/pair", None),
        templates=(DeclaredTemplate({"app": "other"}, ()), *deployed("canary", "zone hard 2 app=web").templates),
    )
    assert told(stable(JOINT), pair) == ["audit constraints differ from pair: zone maxSkew 1 here, 2 there; align them"]


@pytest.mark.parametrize(
    ("manifest", "other"),
    [
        pytest.param(
            stable(JOINT, meta={"name": "canary"}), deployed("canary", "zone hard 2 app=web"), id="its own older state"
        ),
        pytest.param(
            stable(JOINT), deployed("stable", "zone hard 2 app=web", kind="Rollout"), id="the same pods by two names"
        ),
        pytest.param(
            stable(JOINT, meta={"ownerReferences": [{"kind": "Redis", "name": "cache", "controller": True}]}),
            deployed("canary", "zone hard 2 app=web", above="Redis/cache"),
            id="an operator's shards",
        ),
        pytest.param(workload("Pod", LABELS["stable"], JOINT), deployed("canary", "zone hard 2 app=web"), id="a pod"),
        pytest.param(stable(JOINT), owner("Deployment/canary", LABELS["canary"]), id="a template that is not known"),
        pytest.param(stable(), deployed("canary", "zone hard 2 app=web"), id="nothing declared here"),
    ],
)
def test_whom_it_does_not_compare(manifest, other):
    assert told(manifest, other) == []


def test_what_is_missing():
    assert said(RULE, stable(JOINT)) == ["not evaluated: no cluster"]
    found = shop("", deployed("canary", "zone hard 2 app=web"))
    found.mark_missing("statefulsets", "403 Forbidden")
    assert said(RULE, stable(JOINT), index=found) == ["constraints differ from canary: zone maxSkew 1 here, 2 there"]
    assert said(RULE, stable("zone hard 2 app=web"), index=found) == ["not evaluated: statefulsets: 403 Forbidden"]


def test_the_words():
    found = shop("", deployed("canary", "zone soft 1 app=web"))
    [differ] = findings_of(RULE, stable(JOINT), index=found)
    assert (
        differ.detail
        == "this workload and canary count each other's pods under different constraints: zone hard here, soft there"
    )
    assert differ.path == "spec.template.spec.topologySpreadConstraints"
    [warning] = warnings_of([differ])
    assert warning == (
        "evenspread/constraints-differ-in-group: constraints differ from canary: zone hard here, soft there; align them"
    )
    assert len(warning) <= WARNING_CHARS


def test_with_minimal_detail_nobody_is_named():
    minimal = replace(DENY, messages=Messages(detail="minimal"))
    assert told(stable(JOINT), deployed("canary", "zone hard 2 app=web"), policy=minimal) == [
        "audit constraints differ from another workload: zone maxSkew 1 here, 2 there; align them"
    ]


@pytest.mark.parametrize(
    ("detail", "others", "expected"),
    [
        pytest.param("own-namespace", ["canary"], "another workload", id="one, by default"),
        pytest.param("own-namespace", ["canary", "blue"], "other workloads", id="two, by default"),
        pytest.param("full", ["canary"], "canary", id="one"),
        pytest.param("full", ["canary", "blue"], "blue and 1 more", id="two"),
    ],
)
def test_who_asks_the_webhook_hears_of_others_as_the_policy_says(detail, others, expected):
    policy = replace(DENY, messages=Messages(detail=detail))
    canary = deployed("canary", "zone hard 2 app=web")
    cluster = shop("a: n1", *(replace(canary, meta=replace(canary.meta, name=name)) for name in others))
    [differ] = [
        each.finding
        for each in decide(stable(JOINT), policy=policy, index=cluster).findings
        if each.finding.rule == RULE
    ]
    assert differ.summary == f"constraints differ from {expected}: zone maxSkew 1 here, 2 there"
