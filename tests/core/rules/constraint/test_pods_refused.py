"""Pods that kube-apiserver will refuse, of workloads that it takes."""

import json
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from manifest import DENY, PLAIN, RECENT, constraint, decide, examined, findings, findings_of, headline, said, workload

from webhook.core.api.version import KubernetesVersion
from webhook.core.context import Context
from webhook.core.json_edits import applied
from webhook.core.rules.constraint.pods_refused import evaluate
from webhook.core.rules.frame.rule import Finding
from webhook.core.rules.frame.subject import Subject, placed_constraints
from webhook.core.workloads.reading import read_workload
from webhook.core.workloads.refused_pods import refusals

BOTH = "exists in both matchLabelKeys and labelSelector"
NOBODY = "no pod of this workload can be created"
HASH = "pod-template-hash"
V1_33, V1_34 = KubernetesVersion(1, 33), KubernetesVersion(1, 34)
LATE = ["not evaluated: labels that controllers add to the pods"]
UNKNOWN_HASH = "hash of the template (with it the label controller-revision-hash may exceed 63 bytes)"
LABEL = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


refused = partial(findings_of, "pods-refused")


def spread(keys, labels=None, expressions=None, **fields):
    """A constraint over zones with these matchLabelKeys and this selector."""
    selector = {"matchLabels": labels, "matchExpressions": expressions}
    written = {name: value for name, value in selector.items() if value is not None}
    return {**constraint("zone hard 1"), "matchLabelKeys": keys, "labelSelector": written, **fields}


def operated(*constraints):
    meta, spec = {"name": "web", "namespace": "shop"}, {"instances": 3, "topologySpreadConstraints": [*constraints]}
    return {"apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster", "metadata": meta, "spec": spec}


TWICE = spread(["app"], {"app": "web"})


class TestTheKinds:
    @pytest.mark.parametrize(
        ("kind", "path"),
        [
            *((kind, "spec.template.") for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job")),
            *((kind, "spec.template.") for kind in ("ReplicationController", "Rollout", "CloneSet")),
            ("CronJob", "spec.jobTemplate.spec.template."),
        ],
    )
    def test_a_key_in_both(self, kind, path):
        [found] = refused(workload(kind, "app=web", TWICE))
        error = f'spec.topologySpreadConstraints[0][0]: Invalid value: "app": {BOTH}'
        assert found.summary == f"{NOBODY}: {error}"
        assert found.path == f"{path}spec.topologySpreadConstraints[0].matchLabelKeys[0]"
        assert found.detail == f"kube-apiserver accepts the {kind} but refuses all its pods: {error}"
        assert found.warning == "no pod can be created: zone[0]: app is in labelSelector and in matchLabelKeys"
        assert found.fix == "remove matchLabelKeys"

    @pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "Rollout", "CronJob"])
    def test_a_key_in_one_of_them(self, kind):
        assert refused(workload(kind, "app=web release=r1", spread(["release"], {"app": "web"}))) == []

    def test_pods_are_refused_at_once(self):
        assert refused(workload("Pod", "app=web", TWICE)) == []

    @pytest.mark.parametrize(
        ("kind", "key", "spec"),
        [
            ("Deployment", HASH, None),
            ("Rollout", "rollouts-pod-template-hash", None),
            ("StatefulSet", "controller-revision-hash", None),
            ("StatefulSet", "apps.kubernetes.io/pod-index", None),
            ("StatefulSet", "statefulset.kubernetes.io/pod-name", None),
            ("DaemonSet", "controller-revision-hash", None),
            ("DaemonSet", "pod-template-generation", None),
            ("Job", "job-name", None),
            ("Job", "batch.kubernetes.io/controller-uid", None),
            ("Job", "batch.kubernetes.io/job-completion-index", {"completionMode": "Indexed"}),
            ("CronJob", "batch.kubernetes.io/job-name", None),
        ],
    )
    def test_a_label_that_the_controller_adds(self, kind, key, spec):
        both = spread([key], {"app": "web"}, [{"key": key, "operator": "Exists"}])
        [found] = refused(workload(kind, "app=web", both, spec=spec))
        assert found.summary == f'{NOBODY}: spec.topologySpreadConstraints[0][0]: Invalid value: "{key}": {BOTH}'
        assert found.fix == "set labelSelector: {matchLabels: {app: web}}"

    @pytest.mark.parametrize(
        ("kind", "key", "spec"),
        [
            ("Deployment", "rollouts-pod-template-hash", None),
            ("ReplicaSet", HASH, None),
            ("Job", "job-name", {"manualSelector": True}),
            ("Deployment", "topology.kubernetes.io/zone", None),
        ],
    )
    def test_a_label_that_no_controller_adds(self, kind, key, spec):
        both = spread([key], {"app": "web"}, [{"key": key, "operator": "Exists"}])
        assert said("pods-refused", workload(kind, "app=web", both, spec=spec)) == []

    @pytest.mark.parametrize(
        ("kind", "keys", "expected"),
        [
            pytest.param("CloneSet", ["apps.kruise.io/cloneset-instance-id"], LATE, id="an operator's"),
            pytest.param("Deployment", ["service.istio.io/canonical-name"], LATE, id="a mesh's"),
            pytest.param("Job", ["batch.kubernetes.io/job-completion-index"], [], id="only of an Indexed Job"),
            pytest.param("Deployment", ["release"], [], id="nobody's"),
        ],
    )
    @pytest.mark.parametrize("twice", ["in both", "in the list"])
    def test_a_label_that_somebody_may_add(self, kind, keys, expected, twice):
        asked = [{"key": keys[0], "operator": "Exists"}] if twice == "in both" else None
        written = spread(keys if asked else keys * 2, {"app": "web"}, asked)
        assert said("pods-refused", workload(kind, "app=web", written)) == expected
        assert said("pods-refused", workload(kind, "app=web", spread(keys, {"app": "web"}))) == []
        assert said("pods-refused", workload(kind, "app=web", written), version=V1_33) == []

    def test_of_several_templates_the_one_is_named(self):
        head, worker = (
            {"metadata": {"labels": {"app": app}}, "spec": {"topologySpreadConstraints": [TWICE]}}
            for app in ("web", "other")
        )
        del head["spec"]["topologySpreadConstraints"][0]
        cluster = {"headGroupSpec": {"template": head}, "workerGroupSpecs": [{"template": worker, "replicas": 3}]}
        manifest = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "web"}, "spec": cluster}
        worker["spec"]["topologySpreadConstraints"] = [TWICE]
        [found] = refused(manifest)
        assert found.summary.startswith("no pod of spec.workerGroupSpecs[0].template can be created: spec.topology")


class TestAnOperatorsPods:
    """Constraints outside of a pod template, and labels as far as the operator is known to give them."""

    @pytest.mark.parametrize(
        ("constraint", "expected"),
        [
            pytest.param(
                spread(["cnpg.io/cluster"], {"cnpg.io/cluster": "web"}), ["remove matchLabelKeys"], id="its label"
            ),
            pytest.param(
                spread(["cnpg.io/cluster"], None, [{"key": "cnpg.io/cluster", "operator": "Exists"}]),
                ["use cnpg.io/cluster in matchLabelKeys or in labelSelector, not in both"],
                id="more open",
            ),
            pytest.param(spread(["cnpg.io/podRole"], {"cnpg.io/cluster": "web"}), [], id="in one of them"),
        ],
    )
    def test_the_constraint_is_given_to_every_pod(self, constraint, expected):
        found = refused(operated(constraint))
        assert [each.fix for each in found] == expected
        for each in found:
            root = "spec.topologySpreadConstraints[0]"
            assert each.path == f"{root}.matchLabelKeys[0]"
            assert each.summary == f'{NOBODY}: {root}[0]: Invalid value: "cnpg.io/cluster": {BOTH}'
            assert not each.edits or refused(applied(operated(constraint), each.edits)) == []

    def test_a_label_that_it_may_add(self):
        assert said("pods-refused", operated(spread(["x"], {"x": "1"}))) == LATE

    def test_names_that_are_no_labels_are_its_own_matter(self):
        manifest = operated(spread(["x"], {"cnpg.io/cluster": "web"}))
        assert refused({**manifest, "metadata": {"name": "w" * 64}}) == []

    def test_a_template_that_nobody_uses(self):
        template = workload("Deployment", "app=web", TWICE)["spec"]["template"]
        assert (
            refused({"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "w"}, "template": template}) == []
        )


class TestTheFault:
    @pytest.mark.parametrize(
        ("constraint", "paths"),
        [
            pytest.param(spread(["v", "v"], {"app": "web"}), ["matchLabelKeys[1]"], id="a key twice in the list"),
            pytest.param(
                spread(["v", "app", "v"], {"app": "web"}), ["matchLabelKeys[1]", "matchLabelKeys[2]"], id="both"
            ),
            pytest.param(spread(["x", "x"], {"app": "web"}), [], id="a key that the pods do not have is ignored"),
            pytest.param(spread(["x"], {"app": "web", "x": "1"}), [], id="or waited for in vain"),
        ],
    )
    def test_where_it_stands(self, constraint, paths):
        found = refused(workload("Deployment", "app=web v=1", constraint))
        assert [each.path.removeprefix("spec.template.spec.topologySpreadConstraints[0].") for each in found] == paths

    def test_what_the_template_is_refused_for_is_said_once(self):
        both = spread(["app", "v"], {"app": "web", "v": "1"}, [{"key": "app", "operator": "Exists"}])
        rules = [
            (rule, text) for rule, mode, text, _ in findings(workload("Rollout", "app=web v=1", both)) if mode == "deny"
        ]
        root = "spec.topologySpreadConstraints[0]"
        assert rules == [
            ("match-label-keys", f'spec.template.{root}[0]: Invalid value: "app": {BOTH}'),
            ("pods-refused", f'{NOBODY}: {root}[1]: Invalid value: "v": {BOTH}'),
        ]

    def test_a_selector_of_its_own_that_has_a_fault_comes_first(self):
        manifest = workload("Deployment", "app=web", TWICE, selector="app=-")
        missing = "not evaluated: template (kube-apiserver does not validate it while spec.selector is invalid)"
        assert said("pods-refused", manifest) == [missing]

    def test_before_1_34_the_template_was_refused(self):
        rules = [rule for rule, mode, _, _ in findings(workload("Deployment", "app=web", TWICE), version=V1_33)]
        assert "match-label-keys" in rules
        assert "pods-refused" not in rules

    def test_before_1_34_a_stateful_set_might_hold_any_selector(self):
        asked = [{"key": "app", "operator": "In", "values": ["a b"]}]
        [found] = refused(workload("StatefulSet", "app=web", spread([], None, asked)), version=V1_33)
        path = "spec.topologySpreadConstraints[0].labelSelector.matchExpressions[0].values[0]"
        assert found.path == f"spec.template.{path}"
        assert found.summary == f'{NOBODY}: {path}: Invalid value: "a b": {LABEL}'

    def test_before_1_34_a_stateful_set_might_hold_anything(self):
        manifest = workload("StatefulSet", "app=web", {**TWICE, "maxSkew": 0})
        root = "spec.topologySpreadConstraints[0]"
        [skew, key] = refused(manifest, version=V1_33)
        assert skew.summary == f"{NOBODY}: {root}.maxSkew: Invalid value: 0: must be greater than zero"
        assert skew.path == f"spec.template.{root}.maxSkew"
        assert skew.warning == "no pod can be created: zone[0].maxSkew: Invalid value: 0: must be greater than zero"
        assert key.summary == f'{NOBODY}: {root}.matchLabelKeys[0]: Invalid value: "app": {BOTH}'
        denied = {rule for rule, mode, _, _ in findings(manifest, version=V1_33) if mode == "deny"}
        assert denied == {"pods-refused"}
        denied = {rule for rule, mode, _, _ in findings(manifest, version=V1_34) if mode == "deny"}
        assert denied == {"max-skew", "pods-refused"}

    @pytest.mark.parametrize(
        ("length", "expected"),
        [
            (62, [f'{NOBODY}: metadata.labels: Invalid value: "{"x" * 62}-0": must be no more than 63 bytes']),
            (
                61,
                [f"not evaluated: {UNKNOWN_HASH}"],
            ),
            (52, []),
        ],
    )
    def test_the_name_of_a_stateful_set_is_part_of_labels(self, length, expected):
        manifest = workload("StatefulSet", "app=web", meta={"name": "x" * length})
        assert said("pods-refused", manifest) == expected
        assert said("pods-refused", workload("Deployment", "app=web", meta={"name": "x" * length})) == []

    def test_the_name_is_to_be_shorter(self):
        [found] = refused(workload("StatefulSet", "app=web", meta={"name": "x" * 62}))
        assert (found.path, found.fix) == (
            "metadata.name",
            "use a name of at most 52 characters, because pod labels contain it",
        )
        assert found.warning == "no pod can be created: the name is too long for a label"

    def test_labels_of_a_custom_resource_are_looked_at_by_nobody(self):
        manifest = workload("Rollout", "", spread(["app"], {"v": "1"}))
        manifest["spec"]["template"]["metadata"]["labels"] = {"app": "a b", "v": "1"}
        found = refused(manifest)
        assert [(each.path, each.summary) for each in found] == [
            ("spec.template.metadata.labels", f'{NOBODY}: metadata.labels: Invalid value: "a b": {LABEL}'),
        ]
        assert refused({**manifest, "apiVersion": "apps/v1", "kind": "Deployment"}) == []


class TestTheFix:
    @pytest.mark.parametrize(
        ("constraint", "fix"),
        [
            pytest.param(
                spread([HASH, "app"], {"app": "web"}),
                f"set matchLabelKeys: [{HASH}]",
                id="the selector has the one value",
            ),
            pytest.param(spread(["v", "v"], {"app": "web"}), "set matchLabelKeys: [v]", id="once in the list"),
            pytest.param(
                spread(["v"], {"app": "web"}, [{"key": "v", "operator": "In", "values": ["1", "2"]}]),
                "set labelSelector: {matchLabels: {app: web}}",
                id="the selector leaves it more open",
            ),
            pytest.param(
                spread(["v"], {"app": "web"}, [{"key": "v", "operator": "In", "values": ["1"]}]),
                "remove matchLabelKeys",
                id="as the API server merges it",
            ),
            pytest.param(
                spread(["v"], {"v": "2", "app": "web"}),
                "set labelSelector: {matchLabels: {app: web}}",
                id="the pods do not have the selector's value",
            ),
            pytest.param(
                spread([HASH], {"app": "web"}, [{"key": HASH, "operator": "In", "values": ["5d4"]}]),
                "set labelSelector: {matchLabels: {app: web}}",
                id="copied from a pod that runs",
            ),
            pytest.param(
                spread([HASH], None, [{"key": HASH, "operator": "Exists"}]),
                "set labelSelector: {}",
                id="nothing else is asked for",
            ),
            pytest.param(
                spread(
                    ["v", HASH],
                    {HASH: "1"},
                    [{"key": "x", "operator": "DoesNotExist"}, {"key": "v", "operator": "In", "values": ["1"]}],
                ),
                (
                    "set labelSelector: {matchExpressions: [{key: x, operator: DoesNotExist}, "
                    '{key: v, operator: In, values: ["1"]}]} and set matchLabelKeys: [pod-template-hash]'
                ),
                id="two keys",
            ),
        ],
    )
    def test_the_key_stays_where_it_says_what_was_asked_for(self, constraint, fix):
        manifest = workload("Deployment", "app=web v=1", constraint)
        before = examined(manifest)
        mine = [each.finding for each in before.findings if each.finding.rule == "pods-refused"]
        assert {each.fix for each in mine} == {fix}
        for each in mine:
            after = findings(applied(manifest, each.edits))
            assert "pods-refused" not in {rule for rule, *_ in after}
            assert {rule for rule, *_ in after} <= {each.finding.rule for each in before.findings}


class TestAdmission:
    def test_it_denies_like_an_api_rule(self):
        assert headline(decide(workload("Deployment", "app=web", TWICE))) == (
            f'Deployment shop/web: {NOBODY}: spec.topologySpreadConstraints[0][0]: Invalid value: "app": {BOTH};'
            " remove matchLabelKeys"
        )
        assert decide(workload("Deployment", "app=web", spread(None, {"app": "web"}))).allowed

    def test_under_the_usual_ceiling_it_warns(self):
        decision = decide(workload("Deployment", "app=web", TWICE), policy=PLAIN)
        assert decision.allowed
        assert decision.warnings == (
            "evenspread/pods-refused: no pod can be created: zone[0]: app is in labelSelector and in matchLabelKeys",
        )

    def test_what_the_old_object_had_is_no_reason_to_deny(self):
        old = workload("Deployment", "app=web", TWICE)
        new = workload("Deployment", "app=web", constraint("hostname soft 2 app=web"), TWICE, replicas=4)
        assert decide(new, old, DENY).allowed
        another = workload("Deployment", "app=web", "zone hard 1 app=web")
        assert headline(decide(new, another, DENY)) == (
            f'Deployment shop/web: {NOBODY}: spec.topologySpreadConstraints[1][0]: Invalid value: "app": {BOTH};'
            " remove matchLabelKeys"
        )


KEYS = st.lists(st.sampled_from(["app", "v", "w", HASH]), max_size=3)
EXPRESSIONS = st.lists(
    st.sampled_from(
        [
            *({"key": key, "operator": "In", "values": ["1"]} for key in ("v", "w", HASH)),
            {"key": "v", "operator": "In", "values": ["1", "2"]},
            {"key": "w", "operator": "NotIn", "values": ["1"]},
            {"key": "v", "operator": "Exists"},
            {"key": HASH, "operator": "Exists"},
        ]
    ),
    max_size=2,
)
LABELS = st.dictionaries(st.sampled_from(["app", "v", HASH]), st.sampled_from(["web", "1"]), max_size=2)


@settings(deadline=None)
@given(KEYS, LABELS, EXPRESSIONS, st.sampled_from(["Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job"]))
def test_a_first_look_overlooks_nothing(keys, labels, expressions, kind):
    found = read_workload(json.dumps(workload(kind, "app=web v=1", spread(keys, labels, expressions))).encode())
    late = [each for each in refusals(found, found.templates[0], RECENT) if each.late]
    subject = Subject(workload=found, placed=placed_constraints(found), context=Context(policy=DENY, version=RECENT))
    assert len(late) == len([each for each in evaluate(subject) if isinstance(each, Finding)])


@pytest.mark.slow
@settings(deadline=None)
@given(KEYS, LABELS, EXPRESSIONS, st.sampled_from(["Deployment", "StatefulSet", "Rollout", "CronJob"]))
def test_every_fix_makes_the_pods_be_accepted(keys, labels, expressions, kind):
    manifest = workload(kind, "app=web v=1", spread(keys, labels, expressions))
    before = {each.finding.rule for each in examined(manifest).findings}
    for each in refused(manifest):
        mended = applied(manifest, each.edits)
        assert refused(mended) == []
        # A template that is refused for another fault is not there to be mended here.
        if "match-label-keys" not in before:
            high = {rule for rule, mode, *_ in findings(mended) if mode == "deny"}
            assert high <= before, mended


SPREADS = st.sampled_from(["zone hard 1", "hostname hard 1", "zone soft 1", "topology.kubernetes.io/hostname hard 1"])


@pytest.mark.slow
@settings(deadline=None)
@given(KEYS, LABELS, EXPRESSIONS, st.sampled_from(["Deployment", "StatefulSet", "Rollout"]), SPREADS)
def test_no_fix_of_another_rule_makes_pods_be_refused(keys, labels, expressions, kind, text):
    written = {**spread([*keys, "controller-revision-hash"], labels, expressions), **constraint(text)}
    manifest = workload(kind, "app=web v=1", written, replicas=6)
    for each in examined(manifest).findings if not refused(manifest) else ():
        if each.finding.edits:
            assert refused(applied(manifest, each.finding.edits)) == [], each.finding
