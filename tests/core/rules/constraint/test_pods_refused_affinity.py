"""Pods that kube-apiserver refuses for a key that stands twice in the selector of a pod affinity term."""

import json
from functools import partial

import pytest
from manifest import examined, findings_of, said, workload

from webhook.core.api.version import RECORDED, KubernetesVersion
from webhook.core.json_edits import applied
from webhook.core.workloads.reading import read_workload
from webhook.core.workloads.refused_pods import refusals

BOTH = "exists in both matchLabelKeys and labelSelector"
NOBODY = "no pod of this workload can be created"
LATER = "DuringSchedulingIgnoredDuringExecution"
REQUIRED = f"spec.affinity.podAntiAffinity.required{LATER}[0]"
PREFERRED = f"spec.affinity.podAffinity.preferred{LATER}[0].podAffinityTerm"
HASH = "pod-template-hash"
WEB = {"matchLabels": {"app": "web"}}
LATE = "not evaluated: labels that controllers add to the pods"


refused = partial(findings_of, "pods-refused")


def term(keys, selector=WEB, **fields):
    return {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector, "matchLabelKeys": keys, **fields}


def apart(*terms, kind="Deployment"):
    return workload(kind, "app=web v=1", affinity={"podAntiAffinity": {f"required{LATER}": [*terms]}})


def asked(key, operator="Exists", *values):
    return {"key": key, "operator": operator, **({"values": [*values]} if values else {})}


class TestWhatIsRefused:
    """Expected as kube-apiserver 1.37 answers to the workload and to the pod that its controller makes."""

    @pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "Job", "Rollout"])
    def test_a_key_in_both(self, kind):
        [found] = refused(apart(term(["app"]), kind=kind))
        assert found.summary == f'{NOBODY}: {REQUIRED}[0]: Invalid value: "app": {BOTH}'
        assert found.path == f"spec.template.{REQUIRED}.matchLabelKeys[0]"
        assert found.warning == "no pod can be created: podAntiAffinity: app is in labelSelector and in matchLabelKeys"
        assert refused(apart(term(["v", HASH]), kind=kind)) == []

    def test_a_preferred_term(self):
        weighted = [{"weight": 1, "podAffinityTerm": term(["v", "v", "v"])}, {"weight": 2}]
        [found] = refused(workload("CronJob", "v=1", affinity={"podAffinity": {f"preferred{LATER}": weighted}}))
        assert found.summary == f'{NOBODY}: {PREFERRED}[2]: Invalid value: "v": {BOTH}'
        assert found.path == f"spec.jobTemplate.spec.template.{PREFERRED}.matchLabelKeys[2]"
        assert found.warning == "no pod can be created: podAffinity: matchLabelKeys has v twice"
        assert found.fix == "set matchLabelKeys: [v]"

    @pytest.mark.parametrize(
        ("one", "count"),
        [
            pytest.param(term([HASH], {"matchExpressions": [asked(HASH)]}), 1, id="the controller's label"),
            pytest.param(term(["nope", "nope"]), 0, id="twice, but no label of the pods"),
            pytest.param(term(["nope"], {"matchLabels": {"nope": "1"}}), 0, id="in both, but no label of the pods"),
            pytest.param(term(None, mismatchLabelKeys=["app"]), 0, id="mismatchLabelKeys may"),
            pytest.param(term(["app"], None), 0, id="no selector: refused at once"),
            pytest.param(term(["app"], mismatchLabelKeys=["app"]), 0, id="in both lists: refused at once"),
            pytest.param(
                term(["nope"], {"matchLabels": {"nope": "1"}, "matchExpressions": [asked("nope")]}),
                0,
                id="twice in the selector: refused at once",
            ),
        ],
    )
    def test_a_label_that_the_pods_have_or_not(self, one, count):
        assert len(refused(apart(one))) == count

    def test_what_is_refused_at_once_is_no_fault_of_the_pods_alone(self):
        assert refused(apart(term(["app"]), term(["v"], mismatchLabelKeys=["v"]))) == []

    @pytest.mark.parametrize(("version", "count"), [((1, 31), 1), ((1, 33), 1)])
    def test_since_keys_of_terms_are_merged(self, version, count):
        assert len(refused(apart(term(["app"])), version=KubernetesVersion(*version))) == count

    def test_a_label_that_somebody_may_add(self):
        mesh = "service.istio.io/canonical-name"
        assert said("pods-refused", apart(term([mesh, mesh]))) == [LATE]
        assert said("pods-refused", apart(term([mesh]))) == []

    def test_a_pod_is_told_too(self):
        pod = workload("Pod", "app=web", affinity={"podAntiAffinity": {f"required{LATER}": [term(["app"])]}})
        found = read_workload(json.dumps(pod).encode())
        assert [each.path for each in refusals(found, found.templates[0], RECORDED)] == [
            f"{REQUIRED}.matchLabelKeys[0]"
        ]


@pytest.mark.parametrize(
    ("one", "fix"),
    [
        pytest.param(term(["app"]), "remove matchLabelKeys", id="the selector has the one value"),
        pytest.param(term([HASH, "app"]), f"set matchLabelKeys: [{HASH}]", id="one of several keys"),
        pytest.param(
            term(["v"], {"matchExpressions": [asked("app", "In", "web"), asked("v", "In", "1", "2")]}),
            "set labelSelector: {matchExpressions: [{key: app, operator: In, values: [web]}]}",
            id="the selector leaves it more open",
        ),
        pytest.param(
            term(["v", "app", "app"], {"matchLabels": {"v": "2", "app": "web"}}),
            "set labelSelector: {matchLabels: {app: web}} and set matchLabelKeys: [v]",
            id="two keys",
        ),
    ],
)
def test_the_fix(one, fix):
    manifest = apart(one)
    found = refused(manifest)
    assert {each.fix for each in found} == {fix}
    assert all(examined(applied(manifest, each.edits)).findings == () for each in found)
