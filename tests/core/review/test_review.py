"""Decisions about requests: what is denied, what is told, and when nobody is bothered."""

import gzip
import json
from pathlib import Path

import pytest
from build import autoscaler, index, namespace, node
from hypothesis import given
from hypothesis import strategies as st
from manifest import DENY, RECENT, TODAY, decide, examined, headline, request, web, workload
from msgspec.structs import replace

from webhook.core.context import Context
from webhook.core.policy.matching import Exemption, Match
from webhook.core.policy.policy import Annotations, Mode, NamespaceMatch, NamespaceSettings, Policy
from webhook.core.review.examination import examine
from webhook.core.review.judging import JudgedFinding, cap_on_pods
from webhook.core.review.review import review
from webhook.core.rules.frame.rule import Finding, Severity
from webhook.core.rules.rule_set import RULES, denied_from
from webhook.core.workloads.custom_kinds import EmbeddedKind

REVIEWS = Path(__file__).parents[2] / "testdata" / "reviews" / "reviews.jsonl.gz"
BROKEN = (  # the one that is denied
    "Rollout shop/broken: "
    "spec.template.spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero"
    " (1 of 2 problems)"
)
EVERYTHING = replace(DENY, rules={rule.id: Mode.DENY for rule in RULES})
WRONG = "zone hard 1 app=other"
NOT_SELF = replace(DENY, rules={"selector-not-self": Mode.DENY})


def modes(decision):
    return {each.finding.rule: str(each.mode) for each in decision.findings}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        pytest.param({"operation": "DELETE", "object": None}, "nothing to review", id="a deletion has no new object"),
        pytest.param({"operation": "CONNECT"}, "nothing to review", id="a connection"),
        pytest.param({"sub_resource": "scale"}, "nothing to review", id="scale has no template"),
        pytest.param({"sub_resource": "status"}, "nothing to review", id="status"),
        pytest.param({"object": None}, "nothing to review", id="no object"),
        pytest.param({"kind": "Thing"}, "no pod template", id="a kind without a template"),
    ],
)
def test_requests_without_anything_to_review(fields, reason):
    decision = decide(web("zone hard 0 app=other"), policy=EVERYTHING, **fields)
    assert (decision.allowed, decision.reason, decision.warnings) == (True, reason, ())


@pytest.mark.parametrize(
    ("meta", "reason"),
    [
        pytest.param({"deletionTimestamp": "2026-11-21T00:00:00Z"}, "being deleted", id="on its way out"),
    ],
)
@pytest.mark.parametrize("broken", [WRONG, {"maxSkew": "1"}], ids=["reads", "does not decode"])
def test_objects_of_which_nothing_is_said(meta, reason, broken):
    decision = decide(web(broken, meta=meta), policy=EVERYTHING)
    assert (decision.allowed, decision.reason, decision.warnings) == (True, reason, ())


def owned(kind, api_version="example.com/v1"):
    return {"ownerReferences": [{"apiVersion": api_version, "kind": kind, "name": "x", "controller": True}]}


@pytest.mark.parametrize(
    ("meta", "workloads", "warned", "denied"),
    [
        pytest.param({}, (), True, True, id="nobody owns it"),
        pytest.param(owned("Redis"), (), False, True, id="an operator's: no person reads warnings"),
        pytest.param(owned("Deployment", "apps/v1"), (), False, True, id="a Deployment makes no StatefulSet"),
        pytest.param(
            owned("Redis"),
            (EmbeddedKind(api_version="example.com/v1", kind="Redis", template_path="spec.template"),),
            False,
            True,
            id="of a kind that is configured to be reviewed, if somebody says so",
        ),
    ],
)
def test_who_owns_it_decides_who_is_told(meta, workloads, warned, denied):
    manifest = workload("StatefulSet", "app=web", WRONG, meta=meta)
    assert bool(decide(manifest, policy=Policy(workloads=workloads)).warnings) == warned
    strict = replace(DENY, rules={"selector-not-self": Mode.DENY}, workloads=workloads)
    assert decide(manifest, policy=strict).allowed != denied


@pytest.mark.parametrize(
    ("old", "new", "allowed", "warned"),
    [
        pytest.param(None, [WRONG], False, False, id="new"),
        pytest.param([WRONG], [WRONG], True, False, id="unchanged"),
        pytest.param(["zone hard 1 app=web"], [WRONG], False, False, id="it was right before"),
        pytest.param(
            [WRONG], ["hostname soft 1 app=web", WRONG], True, True, id="it was wrong before, at another place"
        ),
        pytest.param([WRONG], ["zone hard 1 app=third"], False, False, id="wrong in another way"),
        pytest.param([WRONG], ["zone hard 1 app=web"], True, False, id="mended"),
        pytest.param([], [WRONG], False, False, id="it had none before"),
        pytest.param(["zone hard 0 app=web"], ["zone hard 0 app=web"], True, False, id="refused by API, unchanged"),
        pytest.param([{"maxSkew": "1"}], [{"maxSkew": "1"}], True, False, id="undecodable, unchanged"),
        pytest.param(["zone hard 1 app=web"], [{"maxSkew": "1"}], False, False, id="undecodable now"),
        pytest.param([{"maxSkew": "1"}], [WRONG], False, False, id="undecodable before, wrong now"),
    ],
)
def test_what_the_old_object_had_is_not_denied(old, new, allowed, warned):
    before = workload("Rollout", "app=web", *old) if old is not None else None
    decision = decide(workload("Rollout", "app=web", *new), before, policy=NOT_SELF)
    told = any("selector-not-self" in warning or "max-skew" in warning for warning in decision.warnings)
    assert (decision.allowed, told) == (allowed, warned)


ALONE = ("zone soft 1 app=web",)
BESIDE = (*ALONE, "kubernetes.io/hostname soft 1 app=web")


@pytest.mark.parametrize(
    ("old", "new", "allowed"),
    [
        pytest.param(None, ALONE, True, id="a note"),
        pytest.param(None, BESIDE, False, id="denied"),
        pytest.param(ALONE, BESIDE, False, id="a note becomes a denial"),
        pytest.param(BESIDE, BESIDE, True, id="it was denied before"),
        pytest.param(BESIDE, ALONE, True, id="a denial becomes a note"),
    ],
)
def test_a_note_about_the_old_object_excuses_no_denial(old, new, allowed):
    """Without zones, a soft constraint over zones is harmless alone, and takes the effect of one over hosts."""
    policy = Policy(ceiling=Mode.DENY, deny_from="high", capacity="fixed")
    before = web(*old) if old else None
    after = web(*new, selector="app=web track=a")
    assert decide(after, before, policy=policy, index=index(node("a"), node("b"))).allowed is allowed


@pytest.mark.parametrize("broken", [WRONG, {"maxSkew": "1"}], ids=["reads", "does not decode"])
def test_what_an_owner_leaves_behind_is_not_denied(broken):
    """`kubectl delete deployment --cascade=orphan`: denied, the Deployment could never be deleted."""
    before = workload("ReplicaSet", "app=web", broken, meta=owned("Deployment", "apps/v1"))
    decision = decide(workload("ReplicaSet", "app=web", broken), before, policy=EVERYTHING)
    assert (decision.allowed, [w for w in decision.warnings if "selector-not-self" in w]) == (True, [])


def test_what_becomes_of_a_violation_that_was_there():
    before = workload("Rollout", "app=web", WRONG)
    (found,) = [
        each
        for each in decide(workload("Rollout", "app=web", WRONG, replicas=5), before, policy=NOT_SELF).findings
        if each.finding.rule == "selector-not-self"
    ]
    assert (found.mode, found.configured, found.waived) == (
        Mode.WARN,
        Mode.DENY,
        "the object had this finding before the update",
    )


@pytest.mark.parametrize(
    ("change", "warned"),
    [
        pytest.param({"meta": {"labels": {"x": "y"}}}, False, id="a label"),
        pytest.param({"meta": {"annotations": {"x": "y"}}}, False, id="an annotation"),
        pytest.param({"replicas": 5}, True, id="replicas"),
        pytest.param({"nodeSelector": {"disk": "ssd"}}, True, id="the pods' node selector"),
        pytest.param({"spec": {"strategy": {"type": "Recreate"}}}, True, id="the strategy"),
        pytest.param({"spec": {"revisionHistoryLimit": 3}}, False, id="a field that has nothing to do with it"),
    ],
)
def test_an_update_is_warned_of_only_where_it_matters(change, warned):
    decision = decide(web(WRONG, **change), web(WRONG), policy=Policy())
    assert bool(decision.warnings) == warned


DENY_EMPTY = replace(DENY, rules={"selector-empty": Mode.DENY})
SELECTS_ALL = "zone hard 1 {}"


@pytest.mark.parametrize(
    ("policy", "manifest", "old", "expected"),
    [
        pytest.param(Policy(), web(SELECTS_ALL), None, {}, id="a warning"),
        pytest.param(Policy(ceiling=Mode.AUDIT), web(SELECTS_ALL), None, {}, id="an audit"),
        pytest.param(Policy(), web(WRONG), None, {"selector-not-self": "warn"}, id="a rule compiled in part"),
        pytest.param(DENY_EMPTY, web(SELECTS_ALL), None, {"selector-empty": "deny"}, id="denials stay"),
        pytest.param(
            DENY_EMPTY, web(SELECTS_ALL, replicas=4), web(SELECTS_ALL), {}, id="what the old object had, which warns"
        ),
        pytest.param(
            Policy(),
            workload("Rollout", "app=web", SELECTS_ALL),
            None,
            {"selector-empty": "warn"},
            id="a kind that policies do not match",
        ),
    ],
)
def test_policies_of_the_api_server_warn_instead(policy, manifest, old, expected):
    context = Context(policy=policy, version=RECENT, now=TODAY, warned_by_policies=frozenset({"selector-empty"}))
    decision = review(request(manifest, old), context)
    of_selectors = {rule: mode for rule, mode in modes(decision).items() if rule.startswith("selector")}
    assert (of_selectors, len(decision.warnings)) == (expected, list(expected.values()).count("warn"))


@pytest.mark.parametrize(
    ("policy", "labels", "expected"),
    [
        pytest.param(Policy(), "", "warn", id="the chart's ceiling"),
        pytest.param(DENY, "", "warn", id="its own mode below the ceiling"),
        pytest.param(NOT_SELF, "", "deny", id="configured"),
        pytest.param(Policy(rules={"selector-not-self": Mode.DENY}), "", "warn", id="configured above the ceiling"),
        pytest.param(Policy(ceiling=Mode.AUDIT), "", "audit", id="a low ceiling"),
        pytest.param(Policy(ceiling=Mode.OFF), "", None, id="the kill switch"),
        pytest.param(Policy(rules={"selector-not-self": Mode.OFF}), "", None, id="the rule is off"),
        pytest.param(
            Policy(
                rules={"selector-not-self": Mode.DENY},
                namespaces=(NamespaceSettings(match=NamespaceMatch(names=("shop",)), ceiling=Mode.DENY),),
            ),
            "",
            "deny",
            id="the namespace may be denied",
        ),
        pytest.param(NOT_SELF, "evenspread.io/ceiling=audit", "deny", id="the label lowers no denial"),
        pytest.param(
            replace(NOT_SELF, namespace_label="any"), "evenspread.io/ceiling=audit", "audit", id="unless it may"
        ),
        pytest.param(replace(NOT_SELF, ceiling=Mode.WARN), "evenspread.io/ceiling=deny", "deny", id="the label raises"),
        pytest.param(Policy(rules_version="0.9"), "", "audit", id="a rule newer than the rules version"),
    ],
)
def test_modes_and_ceilings(policy, labels, expected):
    decision = decide(web(WRONG), policy=policy, index=index(namespace("shop", labels)))
    assert modes(decision).get("selector-not-self") == expected
    assert decision.allowed == (expected != "deny")
    assert any("selector-not-self" in warning for warning in decision.warnings) == (expected == "warn")


DENY_HIGH = replace(DENY, deny_from="high")
ABSENT = "match-label-key-absent"
NO_SUCH_KEY = {
    "maxSkew": 1,
    "topologyKey": "topology.kubernetes.io/zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
    "matchLabelKeys": ["absent"],
}


@pytest.mark.parametrize(
    ("policy", "constraint", "expected"),
    [
        pytest.param(DENY, WRONG, {"selector-not-self": "warn"}, id="the ceiling alone turns no warning into a denial"),
        pytest.param(DENY_HIGH, WRONG, {"selector-not-self": "deny"}, id="high, and it warns"),
        pytest.param(replace(DENY, deny_from="low"), WRONG, {"selector-not-self": "deny"}, id="from low on"),
        pytest.param(DENY_HIGH, NO_SUCH_KEY, {ABSENT: "warn"}, id="medium"),
        pytest.param(replace(DENY, deny_from="medium"), NO_SUCH_KEY, {ABSENT: "deny"}, id="medium, from medium on"),
        pytest.param(
            replace(DENY_HIGH, ceiling=Mode.WARN), WRONG, {"selector-not-self": "warn"}, id="below the ceiling"
        ),
        pytest.param(
            replace(DENY_HIGH, rules={"selector-not-self": Mode.WARN}), WRONG, {"selector-not-self": "warn"}, id="named"
        ),
        pytest.param(
            replace(DENY_HIGH, rules={"selector-not-self": Mode.AUDIT}),
            WRONG,
            {"selector-not-self": "audit"},
            id="less",
        ),
    ],
)
def test_a_severity_from_which_warnings_are_denials(policy, constraint, expected):
    decision = decide(web(constraint), policy=policy)
    found = {rule: mode for rule, mode in modes(decision).items() if rule in expected}
    assert found == expected
    assert decision.allowed is ("deny" not in expected.values())


def test_what_a_rule_only_audits_is_never_denied_by_its_severity():
    lowest = replace(DENY, deny_from="low")
    raised = {rule.id for rule in RULES if denied_from(lowest, rule)}
    assert raised == {rule.id for rule in RULES if rule.mode is Mode.WARN}
    assert raised > {rule.id for rule in RULES if denied_from(DENY_HIGH, rule)} >= {"selector-not-self"}
    assert not [rule for rule in RULES if denied_from(DENY, rule)]


def exempt(**fields):
    rule = {"rule": "selector-not-self", "match": Match(namespace="shop"), "reason": "chart pinned"}
    return replace(DENY, rules=NOT_SELF.rules, exemptions=(Exemption(**{**rule, **fields}),))


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        pytest.param(exempt(), ("audit", "exempted: chart pinned"), id="exempted"),
        pytest.param(exempt(expires=TODAY), ("audit", "exempted: chart pinned"), id="on its last day"),
        pytest.param(exempt(expires="2026-11-20"), ("deny", ""), id="expired"),
        pytest.param(exempt(match=Match(namespace="other")), ("deny", ""), id="of another namespace"),
        pytest.param(exempt(match=Match(kind="Rollout")), ("deny", ""), id="of another kind"),
        pytest.param(exempt(rule="selector-null"), ("deny", ""), id="of another rule"),
    ],
)
def test_exemptions_of_the_configuration(policy, expected):
    decision = decide(web(WRONG), policy=policy)
    (found,) = [each for each in decision.findings if each.finding.rule == "selector-not-self"]
    assert (str(found.mode), found.waived) == expected
    assert decision.allowed == (expected[0] != "deny")


@pytest.mark.parametrize(
    ("allows", "mode", "expected"),
    [
        ("none", Mode.WARN, "warn"),
        ("warnings", Mode.WARN, "audit"),
        ("warnings", Mode.DENY, "deny"),
        ("denials", Mode.DENY, "audit"),
    ],
)
@pytest.mark.parametrize("place", ["object", "template"])
def test_the_annotation_exempts_as_far_as_it_may(allows, mode, expected, place):
    policy = replace(DENY, rules={"selector-not-self": mode}, annotations=Annotations(exempt=allows))
    manifest = web(WRONG)
    annotations = {"annotations": {"evenspread.io/exempt": "selector-null, selector-not-self"}}
    (manifest if place == "object" else manifest["spec"]["template"])["metadata"].update(annotations)
    assert modes(decide(manifest, policy=policy))["selector-not-self"] == expected


def test_api_rules_are_denied_only_up_to_the_ceiling():
    manifest = workload("Rollout", "app=web", "zone hard 0 app=web")
    assert headline(decide(manifest)) == (
        "Rollout shop/web: spec.template.spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater"
        " than zero"
    )
    assert decide(manifest, policy=Policy()).warnings[0] == (
        "evenspread/max-skew: zone[0].maxSkew: Invalid value: 0: must be greater than zero"
    )


def test_kube_apiserver_warns_of_its_own_kinds_itself():
    assert decide(web("zone hard 1 null"), policy=Policy()).warnings == ()
    assert len(decide(workload("Rollout", "app=web", "zone hard 1 null"), policy=Policy()).warnings) == 1
    found = examined(web("zone hard 1 null"))
    assert "selector-null" in {each.finding.rule for each in found.findings}
    path = "spec.template.spec.topologySpreadConstraints[0].labelSelector"
    assert found.warnings == (f"{path}: a null labelSelector results in matching no pod",)


def test_a_pod_that_was_merged_is_not_called_twice_keyed():
    pod = workload("Pod", "app=web v=1", "zone hard 1 app=web keys:v")
    merged = pod["spec"]["topologySpreadConstraints"][0]["labelSelector"]
    merged["matchExpressions"] = [{"key": "v", "operator": "In", "values": ["1"]}]
    assert decide(pod, policy=EVERYTHING).allowed


def test_what_the_api_server_would_say_comes_first_and_in_its_order():
    broken = [{"maxSkew": -1, "topologyKey": ""}, {"maxSkew": 0, "topologyKey": "zone"}]
    found = decide(workload("Rollout", "app=web", *broken), policy=EVERYTHING).findings
    paths = [each.finding.path.rpartition("Constraints")[2] for each in found]
    assert paths[:5] == [
        "[0].maxSkew",
        "[0].topologyKey",
        "[0].whenUnsatisfiable",
        "[1].maxSkew",
        "[1].whenUnsatisfiable",
    ]


def test_audit_annotations_are_few_short_and_have_qualified_keys():
    decision = decide(workload("Rollout", "app=web", *[f"k{n} hard 0 app=x" for n in range(20)]))
    assert decision.audit["finding-1"] == (
        "max-skew deny spec.template.spec.topologySpreadConstraints[0].maxSkew:"
        " Invalid value: 0: must be greater than zero"
    )
    assert decision.audit["findings"] == str(len(decision.findings))
    assert len(decision.audit) == 9
    assert all(len(value) <= 1024 for value in decision.audit.values())


def test_an_examination_looks_past_owners_and_deletion():
    manifest = web(WRONG, meta={"deletionTimestamp": "2026-11-21T00:00:00Z", **owned("Deployment", "apps/v1")})
    assert "selector-not-self" in {each.finding.rule for each in examined(manifest).findings}


def test_an_examination_of_another_kind_is_empty():
    found = examined({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}})
    assert (found.workload, found.findings, found.not_evaluated) == (None, (), ())


@pytest.mark.parametrize("rule", sorted(rule.id for rule in RULES if rule.highest_on_pods is not Mode.DENY))
def test_a_pod_is_never_denied_for_want_of_a_place(rule):
    finding = Finding(rule=rule, path="spec", summary="2 of 7 fit")
    judged = JudgedFinding(finding=finding, severity=Severity.HIGH, mode=Mode.DENY, configured=Mode.DENY)
    assert cap_on_pods(judged).mode is Mode.WARN


def recorded():
    with gzip.open(REVIEWS, "rt") as lines:
        for line in lines:
            posted = json.loads(line)
            if not posted["path"].startswith("/validate"):
                continue
            wire = posted["review"]["request"]
            kind, group = wire["kind"]["kind"], wire["kind"]["group"]
            new, old = ({**each} if each else None for each in (wire["object"], wire.get("oldObject")))
            yield request(
                new or {"apiVersion": "v1", "kind": kind, "metadata": {}},
                old,
                operation=wire["operation"],
                group=group,
                kind=kind,
                version=wire["kind"]["version"],
                sub_resource=wire.get("subResource", ""),
                namespace=wire["namespace"],
                name=wire.get("name", ""),
                object=json.dumps(new).encode() if new else None,
            )


def test_of_all_recorded_requests_only_the_broken_rollout_is_denied():
    context = Context(policy=DENY, version=RECENT, now=TODAY)
    assert {headline(review(asked, context)) for asked in recorded()} == {
        None,
        BROKEN,
    }


def test_nothing_recorded_that_was_there_before_is_ever_denied():
    for asked in recorded():
        if asked.old_object is not None and asked.object is not None:
            unchanged = request(None, json.loads(asked.old_object), object=asked.old_object)
            decision = review(unchanged, Context(policy=EVERYTHING, version=RECENT, now=TODAY))
            assert decision.allowed
            assert decision.warnings == ()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = (
    *("maxSkew", "topologyKey", "whenUnsatisfiable", "labelSelector", "minDomains", "matchLabelKeys"),
    *("nodeAffinityPolicy", "nodeTaintsPolicy", "matchLabels", "matchExpressions", "key", "operator", "values"),
    *("metadata", "spec", "template", "labels", "annotations", "topologySpreadConstraints", "affinity", "replicas"),
    *("selector", "strategy", "rollingUpdate", "maxSurge", "jobTemplate", "ownerReferences", "tasks"),
)
SHAPED = st.recursive(
    JSON | st.sampled_from(["DoNotSchedule", "ScheduleAnyway", "app", "In", "topology.kubernetes.io/zone", "{}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=20,
)
KINDS = st.sampled_from(
    [
        ("v1", "Pod"),
        ("v1", "ReplicationController"),
        ("apps/v1", "Deployment"),
        ("batch/v1", "CronJob"),
        ("argoproj.io/v1alpha1", "Rollout"),
        ("batch.volcano.sh/v1alpha1", "Job"),
        ("ray.io/v1", "RayCluster"),
    ]
)


def shaped(kind, template, meta, more):
    api_version, name = kind
    spec = {"template": template, **more} if name != "Pod" else template
    return {"apiVersion": api_version, "kind": name, "metadata": meta, "spec": spec}


OBJECTS = st.builds(shaped, KINDS, SHAPED, SHAPED, st.dictionaries(st.sampled_from(FIELDS), SHAPED, max_size=3))


class TestProperties:
    """What holds of every object whatever."""

    @pytest.mark.slow
    @given(OBJECTS)
    def test_a_review_and_an_examination_never_raise_and_always_repeat(self, manifest):
        """An object is a value: the same one gets the same answer, and no object breaks the engine."""
        manifest["metadata"] = {"name": "x", "labels": manifest["metadata"]}
        assert decide(manifest, policy=EVERYTHING) == decide(manifest, policy=EVERYTHING)
        one, other = (examine(manifest, Context(policy=EVERYTHING, version=RECENT, now=TODAY)) for _ in range(2))
        assert one.findings == other.findings

    @pytest.mark.slow
    @given(OBJECTS)
    def test_an_unchanged_object_is_never_denied_nor_warned_of(self, manifest):
        """Whatever is stored can still be labelled, scaled elsewhere, and deleted."""
        decision = decide(manifest, manifest, policy=EVERYTHING)
        assert decision.allowed
        assert decision.warnings == ()

    @pytest.mark.slow
    @given(OBJECTS)
    def test_all_words_are_printable_and_bounded(self, manifest):
        """kube-apiserver drops a warning with a control character, and cuts long ones."""
        decision = decide(manifest, policy=EVERYTHING)
        told = decide(manifest, policy=Policy())
        assert all(text.isprintable() and len(text) <= 120 for text in (*decision.warnings, *told.warnings))
        assert all(line.isprintable() for line in decision.message.splitlines())
        assert len(told.warnings) <= 4


@pytest.mark.parametrize(
    ("spec", "path", "text"),
    [
        pytest.param(
            {"containers": [{"name": "c", "image": 5}]},
            "spec.template.spec.containers[0].image",
            "json: cannot unmarshal number into Go struct field Container.spec.template.spec.containers.image "
            "of type string",
            id="a field that no rule reads",
        ),
        pytest.param(
            {"topologySpreadConstraints": [{"maxSkew": "1"}]},
            "spec.template.spec.topologySpreadConstraints[0].maxSkew",
            "json: cannot unmarshal string into Go struct field "
            "TopologySpreadConstraint.spec.template.spec.topologySpreadConstraints.maxSkew of type int32",
            id="a constraint",
        ),
    ],
)
def test_an_examination_finds_the_wrong_type_that_kube_apiserver_would(spec, path, text):
    manifest = web("zone hard 1 app=web")
    manifest["spec"]["template"]["spec"].update(spec)
    found = examined(manifest)
    assert (found.decode_error.path, found.decode_error.text) == (path, text)
    assert [each.finding.rule for each in found.findings] == ["wrong-type"]


def test_an_examination_has_the_warnings_of_strict_decoding_first():
    manifest = web("zone hard 1 null")
    manifest["spec"]["template"]["spec"]["topologySpreadConstraints"][0]["maxskew"] = 1
    path = "spec.template.spec.topologySpreadConstraints[0]"
    assert examined(manifest).warnings == (
        f'unknown field "{path}.maxskew"',
        f"{path}.labelSelector: a null labelSelector results in matching no pod",
    )


@pytest.mark.parametrize(("where", "spoken"), [("shop", False), ("elsewhere", True)])
def test_what_names_no_namespace_is_looked_for_where_it_would_be_created(where, spoken):
    manifest = workload("StatefulSet", "app=web", "hostname soft 1 app=web", replicas=1, meta={"namespace": None})
    known = index(autoscaler("StatefulSet/web", 10), node("n1"), node("n2"))
    found = examine(manifest, Context(policy=EVERYTHING, index=known, version=RECENT, now=TODAY, namespace=where))
    assert ("spread-without-effect" in {each.finding.rule for each in found.findings}) is spoken


def test_a_custom_resource_is_examined_as_it_is():
    manifest = workload("Rollout", "app=web", "zone hard 1 app=web") | {"anything": 1}
    assert (examined(manifest).warnings, examined(manifest).decode_error) == ((), None)


LACKING = index()
LACKING.mark_missing("namespaces", "403 Forbidden")


@pytest.mark.parametrize(
    ("manifest", "given", "awaits"),
    [
        pytest.param(web(WRONG), {"index": index()}, True, id="a finding in a namespace that is not there yet"),
        pytest.param(web(), {"index": index()}, False, id="nothing was found"),
        pytest.param(web(WRONG), {"index": index(namespace("shop", ""))}, False, id="it is there"),
        pytest.param(web(WRONG), {"index": LACKING}, False, id="namespaces cannot be read"),
        pytest.param(web(WRONG), {}, False, id="no cluster"),
        pytest.param(web(WRONG), {"index": index(), "namespace": ""}, False, id="of no namespace"),
        pytest.param(web(WRONG), {"index": index(), "policy": Policy(ceiling=Mode.OFF)}, False, id="the kill switch"),
    ],
)
def test_what_becomes_of_a_finding_may_wait_for_its_namespace(manifest, given, awaits):
    """Its label may be `ceiling: deny`, and the watch a few milliseconds behind."""
    decision = decide(manifest, waited=False, **given)
    assert (decision.awaits is not None) == awaits
    assert decide(manifest, **given).awaits is None
