import json

import msgspec
import pytest

from webhook.core.api.types import LabelSelector, SpreadConstraint, TypeMeta
from webhook.core.index.objects import DeclaredTemplate
from webhook.core.index.owners import owner_json
from webhook.core.index.readers import decode_object, reader
from webhook.core.workloads.custom_kinds import EmbeddedKind
from webhook.core.workloads.reading import read_workload


def decoded(text, api_version, kind):
    return decode_object(text.encode(), TypeMeta(api_version=api_version, kind=kind))


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "replicas", "selector"),
    [
        pytest.param(
            "apps/v1",
            "Deployment",
            '{"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": {}}',
            3,
            LabelSelector(match_labels={"app": "web"}),
            id="a Deployment",
        ),
        pytest.param("apps/v1", "StatefulSet", '{"replicas": 0}', 0, None, id="a StatefulSet scaled to nothing"),
        pytest.param("apps/v1", "ReplicaSet", "{}", None, None, id="a ReplicaSet whose replicas nobody wrote"),
        pytest.param(
            "v1",
            "ReplicationController",
            '{"replicas": 2, "selector": {"app": "web"}}',
            2,
            LabelSelector(match_labels={"app": "web"}),
            id="a ReplicationController's selector is a map",
        ),
        pytest.param("batch/v1", "Job", "{}", 1, None, id="a Job runs one pod unless it says more"),
        pytest.param("batch/v1", "Job", '{"parallelism": 5}', 5, None, id="a Job with parallelism"),
        pytest.param(
            "batch/v1", "Job", '{"parallelism": 5, "completions": 2}', 2, None, id="a Job with few completions"
        ),
    ],
)
def test_owners(api_version, kind, spec, replicas, selector):
    text = f'{{"apiVersion": "{api_version}", "kind": "{kind}", "metadata": {{"name": "o"}}, "spec": {spec}}}'
    owner = decoded(text, api_version, kind)
    assert (owner.api_version, owner.kind, owner.meta.name) == (api_version, kind, "o")
    assert (owner.replicas, owner.selector) == (replicas, selector)


def test_a_pod_loses_its_environment_and_foreign_annotations():
    pod = {
        "metadata": {
            "name": "p",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "secret", "evenspread.io/skip": "true"},
        },
        "spec": {"containers": [{"name": "c", "env": [{"name": "TOKEN", "value": "secret"}]}]},
    }
    kept = decoded(json.dumps(pod), "v1", "Pod")
    assert kept.meta.annotations == {"evenspread.io/skip": "true"}
    assert b"secret" not in msgspec.json.encode(kept)


GROUP = {
    "metadata": {
        "name": "cache",
        "namespace": "shop",
        "generation": 4,
        "labels": {"a": "b"},
        "annotations": {"c": "d"},
        "creationTimestamp": "2026-01-02T00:00:00Z",
    },
    "spec": {
        "selector": {"matchLabels": {"app": "redis"}},
        "shard": {"label": "shard", "neverShare": "topology.kubernetes.io/zone"},
        "expected": {"shards": 3, "podsPerShard": 2},
        "caps": [{"topologyKey": "kubernetes.io/hostname", "atMost": 5}],
    },
    "status": {
        "observedGeneration": 4,
        "revision": "7f3a",
        "conditions": [
            {"type": "Planned", "status": "True"},
            {"type": "Fits", "status": "True"},
            {"type": "CannotGetStuck", "status": "Unknown"},
        ],
        "workloads": [{"kind": "StatefulSet", "name": "redis-0", "shard": "0", "zones": ["a", "b"]}],
    },
}


def test_a_group_keeps_its_spec_and_its_stored_plan_and_none_of_its_labels():
    kept = decoded(json.dumps(GROUP), "evenspread.io/v1alpha1", "SpreadGroup")
    assert (kept.meta.labels, kept.meta.annotations, kept.generation) == (None, None, 4)
    assert (kept.spec.expected.shards, kept.spec.caps[0].at_most, kept.status.revision) == (3, 5, "7f3a")
    assert kept.status.workloads[0].zones == ("a", "b")
    assert kept.status.holds("Planned", "Fits")
    assert not kept.status.holds("Planned", "CannotGetStuck")
    gone = decoded('{"metadata": {"name": "cache"}}', "evenspread.io/v1alpha1", "SpreadGroup")
    assert (gone.spec, gone.status, gone.generation) == (None, None, 0)


def test_constraints_that_shards_have_alike_are_kept_once():
    """A process that judges costly objects gets all groups of a namespace, while others wait."""

    def entry(number, skew):
        constraint = {"maxSkew": skew, "topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "redis"}}}
        return {"shard": str(number), "topologySpreadConstraints": [constraint]}

    status = GROUP["status"] | {"workloads": [entry(0, 1), entry(1, 1), entry(2, 2)]}
    kept = decoded(json.dumps(GROUP | {"status": status}), "evenspread.io/v1alpha1", "SpreadGroup").status.workloads
    one, same, other = (each.topology_spread_constraints for each in kept)
    assert one is same
    assert [each.max_skew for each in (*one, *other)] == [1, 2]


def test_a_group_with_more_caps_than_its_definition_allows_is_not_read():
    spec = GROUP["spec"] | {"caps": GROUP["spec"]["caps"] * 9}
    with pytest.raises(msgspec.ValidationError, match=r"Expected `array` of length <= 8 - at `\$.spec.caps`"):
        decoded(json.dumps(GROUP | {"spec": spec}), "evenspread.io/v1alpha1", "SpreadGroup")


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        pytest.param("v1", "Secret", id="a kind that no answer depends on"),
        pytest.param("example.com/v1", "Deployment", id="a kind of that name of somebody else"),
        pytest.param(None, None, id="no kind at all"),
    ],
)
def test_other_kinds_have_no_value(api_version, kind):
    assert decoded("{}", api_version, kind) is None


CUSTOM = EmbeddedKind(
    api_version="example.com/v1",
    kind="Thing",
    template_path="spec.pod",
    replicas_path="spec.size",
    selector_path="spec.select",
)


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "replicas", "selector"),
    [
        pytest.param(
            "argoproj.io/v1alpha1",
            "Rollout",
            '{"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": {}}',
            3,
            LabelSelector(match_labels={"app": "web"}),
            id="a custom kind that is known",
        ),
        pytest.param(
            "argoproj.io/v1alpha1",
            "Rollout",
            '{"replicas": 3, "template": {"spec": {"topologySpreadConstraints": "x"}}}',
            None,
            None,
            id="nobody checked its template: only its name is sure",
        ),
        pytest.param(
            "example.com/v1",
            "Thing",
            '{"size": 4, "select": {"matchLabels": {"a": "b"}}, "pod": {}}',
            4,
            LabelSelector(match_labels={"a": "b"}),
            id="a configured kind",
        ),
    ],
)
def test_custom_owners(api_version, kind, spec, replicas, selector):
    text = f'{{"apiVersion": "{api_version}", "kind": "{kind}", "metadata": {{"name": "o"}}, "spec": {spec}}}'
    owner = decode_object(text.encode(), TypeMeta(api_version=api_version, kind=kind), (CUSTOM,))
    assert (owner.meta.name, owner.replicas, owner.selector) == ("o", replicas, selector)


ZONE = '{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}'
CONSTRAINT = SpreadConstraint(max_skew=1, topology_key="zone", when_unsatisfiable="DoNotSchedule")
TEMPLATE = (
    '{"metadata": {"labels": {"app": "web"}},'
    f' "spec": {{"topologySpreadConstraints": [{ZONE}], "containers": [{{"env": "secret"}}]}}}}'
)
WEB = DeclaredTemplate({"app": "web"}, (CONSTRAINT,))
OWNED = '"ownerReferences": [{"kind": "Deployment", "name": "web", "controller": true}],'


@pytest.mark.parametrize(
    ("api_version", "kind", "meta", "template", "templates"),
    [
        pytest.param("apps/v1", "Deployment", "", TEMPLATE, (WEB,), id="a Deployment"),
        pytest.param("apps/v1", "StatefulSet", "", TEMPLATE, (WEB,), id="a StatefulSet"),
        pytest.param("v1", "ReplicationController", "", TEMPLATE, (WEB,), id="a ReplicationController"),
        pytest.param("apps/v1", "ReplicaSet", "", TEMPLATE, (WEB,), id="a ReplicaSet of nobody's"),
        pytest.param("apps/v1", "ReplicaSet", OWNED, TEMPLATE, None, id="a ReplicaSet's is its Deployment's"),
        pytest.param("apps/v1", "Deployment", "", "{}", (DeclaredTemplate({}, ()),), id="a template that says nothing"),
        pytest.param("apps/v1", "Deployment", "", "null", None, id="no template, which only a file can say"),
        pytest.param(
            "apps/v1", "Deployment", "", '{"metadata": {"labels": 1}}', None, id="a template that no API server accepts"
        ),
        pytest.param("batch/v1", "Job", "", TEMPLATE, None, id="a Job's is not kept"),
        pytest.param("argoproj.io/v1alpha1", "Rollout", "", TEMPLATE, (WEB,), id="a custom kind"),
        pytest.param(
            "argoproj.io/v1alpha1",
            "Rollout",
            "",
            '{"spec": {"topologySpreadConstraints": 1}}',
            None,
            id="a custom kind whose template is broken",
        ),
        pytest.param("argoproj.io/v1alpha1", "Rollout", "", "null", (), id="a custom kind without its template"),
    ],
)
def test_owners_keep_what_their_templates_say_of_spreading(api_version, kind, meta, template, templates):
    text = f'{{"metadata": {{{meta} "name": "o"}}, "spec": {{"template": {template}}}}}'
    assert decoded(text, api_version, kind).templates == templates


def test_an_owner_without_a_template_field_has_an_unknown_one():
    assert decoded('{"spec": {}}', "apps/v1", "Deployment").templates is None


SET = {
    "replicas": 2,
    "selector": {"matchLabels": {"app": "web"}},
    "podManagementPolicy": "Parallel",
    "ordinals": {"start": 3},
    "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}},
    "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"storageClassName": "late"}}],
    "template": json.loads(TEMPLATE),
}
ROLLED = {"strategy": {"rollingUpdate": {"maxSurge": "30%"}}, "template": json.loads(TEMPLATE)}


@pytest.mark.parametrize(
    ("kind", "spec"), [("StatefulSet", SET), ("Deployment", ROLLED), ("ReplicaSet", {"template": json.loads(TEMPLATE)})]
)
def test_a_workload_is_known_as_far_as_it_is_read(kind, spec):
    meta = {"name": "web", "namespace": "shop"}
    owner = decoded(json.dumps({"metadata": meta, "spec": spec}), "apps/v1", kind)
    written = {"metadata": meta, "spec": {**spec, "replicas": 9}}
    assert read_workload(owner_json(owner, 9), api_version="apps/v1", kind=kind) == read_workload(
        written, api_version="apps/v1", kind=kind
    )
    assert b"env" not in owner.spec


@pytest.mark.parametrize(
    ("meta", "spec"),
    [
        pytest.param({}, {"template": {"spec": {"priority": "high"}}}, id="broken"),
        pytest.param({}, {"template": {"spec": {"nodeSelector": {"a": "b" * 9000}}}}, id="immense"),
        pytest.param(json.loads(f'{{{OWNED} "name": "web"}}'), ROLLED, id="a revision of a Deployment"),
    ],
)
def test_others_are_not(meta, spec):
    owner = decoded(json.dumps({"metadata": meta, "spec": spec}), "apps/v1", "ReplicaSet")
    assert owner_json(owner, 9) is None


def test_a_wrong_type_is_an_error():
    with pytest.raises(msgspec.ValidationError, match=r"Expected `int \| null`, got `str` - at `\$.spec.replicas`"):
        decoded('{"spec": {"replicas": "3"}}', "apps/v1", "Deployment")


def test_a_page_and_a_line_of_a_watch():
    read = reader(TypeMeta(api_version="v1", kind="Node"))
    page = read.page(b'{"metadata": {"resourceVersion": "7", "continue": "x"}, "items": [{"metadata": {"name": "a"}}]}')
    assert ([node.name for node in page.values], page.version, page.more) == (["a"], "7", "x")
    assert read.page(b'{"items": null}').values == ()
    change = read.change(b'{"type": "ADDED", "object": {"metadata": {"name": "b"}}}')
    assert (change.type, change.value.name) == ("ADDED", "b")


def test_of_a_template_s_annotations_few_are_kept():
    meta = {"annotations": {"evenspread.io/exempt": "x", "checksum/config": "secret"}}
    text = json.dumps({"metadata": {"name": "web"}, "spec": {"template": {"metadata": meta}}})
    assert decoded(text, "apps/v1", "Deployment").spec == (
        b'{"template":{"metadata":{"annotations":{"evenspread.io/exempt":"x"}}}}'
    )
