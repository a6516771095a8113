"""Constraints in the texts of ConfigMaps and Secrets."""

import json

import pytest
import yaml

from webhook.core.json_edits import Edit, applied
from webhook.core.spelling import with_article

ITEM = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
SPEC = {"spec": {"topologySpreadConstraints": [ITEM]}}
SAID = "topologySpreadConstraints in {} of {} were not checked: {}"
AS_FILE = "check the text as a separate file"
RENDER = "check the output of the chart: helm template CHART | evenspread check -"
PATCHED = "check the patched objects"


def carrier(text, kind="ConfigMap", field="data"):
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}, field: {"a.yaml": text}}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(yaml.safe_dump(SPEC), id="YAML"),
        pytest.param(json.dumps(SPEC), id="JSON"),
        pytest.param(json.dumps(SPEC, indent=2), id="JSON in lines"),
        pytest.param("topologySpreadConstraints: # two\n# of them\n- maxSkew: 1\n", id="comments"),
        pytest.param("topologySpreadConstraints: [{maxSkew: 1}]", id="flow style"),
        pytest.param("spec:\n  topologySpreadConstraints:\n{{ toYaml .Values.spread }}\n", id="a template"),
        pytest.param("- topologySpreadConstraints:\n  - maxSkew: 1\n", id="in an item"),
    ],
)
@pytest.mark.parametrize(("kind", "field"), [("ConfigMap", "data"), ("Secret", "stringData")])
@pytest.mark.parametrize("write", [json.dumps, yaml.safe_dump], ids=["as JSON", "as YAML"])
def test_a_note_where_constraints_stand_in_a_text(run, text, kind, field, write):
    code, out, err = run("check", "-", stdin=write(carrier(text, kind, field)).encode())
    said = SAID.format(field, f"a {kind}", AS_FILE)
    assert (code, out, err.partition("note: ")[2].splitlines()[0]) == (
        0,
        "1 file, 1 object, 0 workloads: no findings\n",
        said,
    )


def test_where_the_note_stands(run, tmp_path):
    (tmp_path / "cm.yaml").write_text(yaml.safe_dump({**carrier(yaml.safe_dump(SPEC)), "data2": 1}))
    assert run("check", "cm.yaml")[2].startswith("cm.yaml:3:3: note: topologySpreadConstraints in data of a ConfigMap ")


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(carrier("# topologySpreadConstraints:\n# - maxSkew: 1\n"), id="a comment"),
        pytest.param(carrier("topologySpreadConstraints: are a list\n"), id="prose"),
        pytest.param(carrier("topologySpreadConstraints: []\n"), id="an empty list"),
        pytest.param(carrier("topologySpreadConstraints:\nnodeSelector: {}\n"), id="nothing"),
        pytest.param(carrier("a: 1\n"), id="another text"),
        pytest.param(carrier(yaml.safe_dump(SPEC), "Secret"), id="base64"),
        pytest.param({**carrier(""), "data": {"a": 1, "topologySpreadConstraints": None}}, id="no text"),
        pytest.param(
            {**carrier(""), "metadata": {"name": "a", "annotations": {"last-applied": json.dumps(SPEC)}}},
            id="an annotation",
        ),
        pytest.param({**carrier(""), "status": {"text": json.dumps(SPEC)}}, id="a status"),
        pytest.param(
            {
                **carrier(""),
                "apiVersion": "kyverno.io/v1",
                "kind": "Policy",
                "spec": {"rules": [{"validate": {"pattern": {"spec": {"=(topologySpreadConstraints)": [ITEM]}}}}]},
            },
            id="a pattern of a policy",
        ),
    ],
)
@pytest.mark.parametrize("write", [json.dumps, yaml.safe_dump], ids=["as JSON", "as YAML"])
def test_no_note_elsewhere(run, value, write):
    assert "were not checked" not in run("check", "-", stdin=write(value).encode())[2]


TEXT = yaml.safe_dump(SPEC)
APPLICATION, RELEASE = ("argoproj.io/v1alpha1", "Application"), ("helm.toolkit.fluxcd.io/v2", "HelmRelease")


def holder(kind, path, value):
    return applied({"apiVersion": kind[0], "kind": kind[1], "metadata": {"name": "a"}}, [Edit(path, value)])


@pytest.mark.parametrize(
    ("kind", "path", "value", "field", "advice"),
    [
        pytest.param(APPLICATION, "spec.source.helm.values", TEXT, None, RENDER, id="Argo CD"),
        pytest.param(APPLICATION, "spec.source.helm.valuesObject", SPEC, None, RENDER, id="Argo CD's object"),
        pytest.param(
            APPLICATION,
            "spec.sources",
            [{"helm": {"values": TEXT}}],
            "spec.sources[*].helm.values",
            RENDER,
            id="one of Argo CD's sources",
        ),
        pytest.param(
            ("argoproj.io/v1alpha1", "ApplicationSet"),
            "spec.template.spec.source.helm.values",
            f"{TEXT}\nname: {{{{ .name }}}}\n",
            None,
            RENDER,
            id="a template of an ApplicationSet",
        ),
        pytest.param(RELEASE, "spec.values.web", SPEC, "spec.values", RENDER, id="Flux"),
        pytest.param(RELEASE, "spec.values.extra", [TEXT], "spec.values", RENDER, id="a text in values"),
        pytest.param(("helm.cattle.io/v1", "HelmChart"), "spec.valuesContent", TEXT, None, RENDER, id="k3s"),
        pytest.param(("argoproj.io/v1alpha1", "Workflow"), "spec.podSpecPatch", TEXT, None, PATCHED, id="a Workflow"),
        pytest.param(
            ("argoproj.io/v1alpha1", "CronWorkflow"),
            "spec.workflowSpec.templates",
            [{"podSpecPatch": json.dumps(SPEC)}],
            "spec.workflowSpec.templates[*].podSpecPatch",
            PATCHED,
            id="a template of a CronWorkflow",
        ),
        *(
            pytest.param(
                (version, "ClusterPolicy"),
                "spec.rules",
                [{"mutate": {"patchStrategicMerge": {"spec": {key: [ITEM]}}}}],
                "spec.rules[*].mutate.patchStrategicMerge",
                PATCHED,
                id=f"{key} of {version}",
            )
            for key in ("topologySpreadConstraints", "+(topologySpreadConstraints)")
            for version in ("kyverno.io/v1", "policies.kyverno.io/v1")
        ),
        pytest.param(
            ("kustomize.toolkit.fluxcd.io/v1", "Kustomization"),
            "spec.patches",
            [{"patch": "- op: replace\n  path: /spec/template/spec/topologySpreadConstraints/0/maxSkew\n  value: 0\n"}],
            "spec.patches[*].patch",
            PATCHED,
            id="a JSON 6902 patch",
        ),
        pytest.param(("a.io/v1", "Thing"), "spec.pod", TEXT, None, AS_FILE, id="a kind that nobody knows"),
        pytest.param(
            ("a.io/v1", "Thing"),
            "spec.pod",
            "topologySpreadConstraints: |\n  - maxSkew: 1\n",
            None,
            AS_FILE,
            id="a text in a text",
        ),
    ],
)
@pytest.mark.parametrize("write", [json.dumps, yaml.safe_dump], ids=["as JSON", "as YAML"])
def test_a_note_of_every_other_text_and_of_values(run, *, kind, path, value, field, advice, write):
    code, out, err = run("check", "-", "-v", stdin=write(holder(kind, path, value)).encode())
    said = SAID.format(field or path, with_article(kind[1]), advice)
    assert (code, out, err.partition("note: ")[2]) == (0, "1 file, 1 object, 0 workloads: no findings\n", f"{said}\n")
    other = write(holder(kind, path, "" if isinstance(value, str) else {})).encode()
    assert run("check", "-", stdin=other)[2] == ""


def test_equal_notes_share_a_line(run, tmp_path):
    for name in ("web", "db"):
        text = json.dumps(holder(RELEASE, f"spec.values.{name}", SPEC))
        (tmp_path / f"{name}.json").write_text(text)
    said = SAID.format("spec.values", "a HelmRelease", RENDER)
    assert run("check", ".")[2] == f"2 files: note: {said} (-v names them)\n"


@pytest.mark.parametrize(
    "patches",
    [
        pytest.param(
            f"patches:\n- patch: |\n    {json.dumps({'kind': 'Pod', **SPEC})}\n", id="a strategic merge patch"
        ),
        pytest.param(
            'patches:\n- patch: \'[{"op": "remove", "path": "/spec/topologySpreadConstraints"}]\'\n',
            id="a JSON 6902 patch in JSON",
        ),
        pytest.param(
            "patchesStrategicMerge:\n- |\n  kind: Pod\n  spec:\n    topologySpreadConstraints:\n    - maxSkew: 1\n",
            id="the old field",
        ),
        pytest.param("helmCharts:\n- valuesInline: {topologySpreadConstraints: [{maxSkew: 1}]}\n", id="inline values"),
    ],
)
def test_patches_inside_a_kustomization_are_read(run, tmp_path, patches):
    """Only where kustomize finds the file by its name: test_json_patches.py has what is judged."""
    left = "; its topologySpreadConstraints were not checked\n"
    text = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n" + patches
    (tmp_path / "kustomization.yaml").write_text(text)
    err = run("check", "kustomization.yaml")[2]
    assert ("skipped: a kustomization" in err, left in err) == (True, False)
    (tmp_path / "other.yaml").write_text(text)
    assert run("check", "other.yaml")[2].endswith(left)


def misspelt(key):
    told = f"{key} looks like a misspelt topologySpreadConstraints, and Helm drops unused values"
    return "unread-constraints", "medium", told


@pytest.mark.parametrize(
    "key",
    [
        "topologySpreadconstraints",
        "TopologySpreadConstraints",
        "topologyspreadconstraints",
        "topologySpreadConstraint",
        "topologySpreadContraints",
        "topology_spread_constraints",
        "topolgySpreadConstraints",
    ],
)
@pytest.mark.parametrize("value", [[ITEM], yaml.safe_dump([ITEM])], ids=["a list", "a text"])
def test_a_misspelt_name_in_values_is_a_finding(run, tmp_path, key, value):
    for name, text in {
        "values-prod.yaml": yaml.safe_dump({"web": {key: value}}),
        "a.yaml": yaml.safe_dump(holder(RELEASE, "spec.values.web", {key: value})),
        "b.yaml": yaml.safe_dump(holder(APPLICATION, "spec.source.helm.values", yaml.safe_dump({key: value}))),
        "c.json": json.dumps(holder(APPLICATION, "spec.sources", [{"helm": {"valuesObject": {key: value}}}])),
    }.items():
        file = tmp_path / name
        file.write_text(text)
        [found] = json.loads(run("check", name, "-o", "json", "--rule", "unread-constraints")[1])
        assert (found["rule"], found["severity"], found["message"]) == misspelt(key)
        assert found["fix"] == f"rename it to topologySpreadConstraints, unless the chart uses {key}"
        assert found["path"].endswith(key)
        file.write_text(text.replace(key, "topologySpreadConstraints"))
        code, out, err = run("check", name, "-o", "json", "--rule", "unread-constraints")
        assert (code, out) == (0, "[]\n")
        assert "not checked" in err


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"topologySpread": [ITEM]}, id="a name of the chart's own"),
        pytest.param({"serverTopologySpreadConstraints": [ITEM]}, id="a part of the chart"),
        pytest.param({"topologySpreadconstraints": []}, id="an empty list"),
        pytest.param({"topologySpreadconstraints": {"enabled": True}}, id="something else"),
        pytest.param({"topologySpreadconstraints": "see the docs"}, id="prose"),
        pytest.param({"kind": "DaemonSet", "spec": {"template": {}}}, id="a kind of the chart's own"),
    ],
)
def test_other_names_in_values_are_no_finding(run, tmp_path, values):
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(values))
    code, out, _ = run("check", "values.yaml")
    assert (code, out) == (0, "1 file, 0 objects, 0 workloads: nothing to check\n")


@pytest.mark.parametrize("name", ["values.json", "values/prod.yaml", "prod-values.yml"])
def test_values_files_of_other_names(run, tmp_path, name):
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"web": {"topologySpreadconstraints": [ITEM]}}))
    [found] = json.loads(run("check", ".", "-o", "json", "--rule", "unread-constraints")[1])
    assert (found["rule"], found["severity"], found["message"]) == misspelt("topologySpreadconstraints")
    assert (found["line"], found["column"]) == (1, 10)
    file.write_text(json.dumps(SPEC))
    code, out, err = run("check", ".")
    assert (code, out) == (0, "1 file, 0 objects, 0 workloads: nothing to check\n")
    assert err.endswith(
        "Helm values; check the output of helm template CHART; its topologySpreadConstraints were not checked\n"
    )


def test_a_workload_in_a_directory_of_values_is_none_of_them(run, tmp_path):
    (tmp_path / "values").mkdir()
    (tmp_path / "values" / "web.yaml").write_text("kind: Deployment\nspec: {template: {}}\n")
    assert run("check", ".")[0] == 3


def test_where_the_misspelt_name_stands(run, tmp_path):
    (tmp_path / "values.yaml").write_text("web:\n  topologySpreadconstraints:\n  - maxSkew: 1\n")
    code, out, _ = run("check", "values.yaml")
    assert code == 0
    assert out.startswith("values.yaml:2:3: medium unread-constraints ")
    assert out.endswith("\n1 file, 0 objects, 0 workloads: 1 finding (1 medium)\n")
    assert run("check", "values.yaml", "--fail-on", "medium")[0] == 1
    assert run("check", "values.yaml", "-o", "report")[1] == "", "no cluster has such an object"
    assert "left unread-constraints: " in run("check", "values.yaml", "--fix")[2]
    (tmp_path / "app.yaml").write_text(
        yaml.safe_dump(holder(APPLICATION, "spec.source.helm.values", "topologySpreadconstraints: [{maxSkew: 1}]\n"))
    )
    assert run("check", "app.yaml")[1].startswith("app.yaml:8:7: medium ")


@pytest.mark.parametrize("read", ["topologySpreadconstraints", "topologySpreadConstraints"])
@pytest.mark.parametrize("place", ["templates/web.yaml", "charts/sub/templates/_pod.tpl"])
def test_a_name_that_the_charts_templates_read_is_none_misspelt(run, tmp_path, place, read):
    template = tmp_path / "chart" / place
    template.parent.mkdir(parents=True)
    template.write_text(f"{{{{ toYaml .Values.{read} }}}}\n")
    (tmp_path / "chart" / "Chart.yaml").write_text("name: web\n")
    (tmp_path / "chart" / "ci").mkdir()
    (tmp_path / "chart" / "ci" / "a-values.yaml").write_text("topologySpreadconstraints: [{maxSkew: 1}]\n")
    found = json.loads(run("check", "chart/ci", "-o", "json", "--rule", "unread-constraints")[1])
    assert len(found) == (read == "topologySpreadConstraints")


GANG = {"topology": [{"key": "topology.kubernetes.io/rack"}]}


def of_scheduling(kind, spec, version="scheduling.k8s.io/v1beta1"):
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, "spec": spec}


@pytest.mark.parametrize(
    ("value", "field"),
    [
        pytest.param(of_scheduling("PodGroup", {"schedulingConstraints": GANG}), "spec", id="a PodGroup"),
        pytest.param(
            of_scheduling("CompositePodGroup", {"schedulingConstraints": GANG}), "spec", id="a composite PodGroup"
        ),
        pytest.param(
            of_scheduling("Workload", {"podGroupTemplates": [{"name": "a"}, {"schedulingConstraints": GANG}]}),
            "spec.podGroupTemplates[*]",
            id="a template of a Workload",
        ),
        pytest.param(
            of_scheduling("PodGroup", {"schedulingConstraints": GANG}, "scheduling.k8s.io/v1alpha2"),
            "spec",
            id="an older version",
        ),
        pytest.param(
            of_scheduling("Job", {"scheduling": {"schedulingConstraints": GANG}, "template": {}}, "batch/v1"),
            "spec.scheduling",
            id="a Job",
        ),
        pytest.param(
            of_scheduling(
                "CronJob",
                {"jobTemplate": {"spec": {"scheduling": {"schedulingConstraints": GANG}, "template": {}}}},
                "batch/v1",
            ),
            "spec.jobTemplate.spec.scheduling",
            id="a CronJob",
        ),
    ],
)
@pytest.mark.parametrize("write", [json.dumps, yaml.safe_dump], ids=["as JSON", "as YAML"])
def test_a_note_about_the_topology_of_a_pod_group(run, value, field, write):
    _, _, err = run("check", "-", stdin=write(value).encode())
    of = with_article(value["kind"])
    said = f"{field}.schedulingConstraints of {of} were not checked: no rule judges the topology of a PodGroup"
    assert [line.partition("note: ")[2] for line in err.splitlines() if "note: " in line] == [said]


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(of_scheduling("PodGroup", {"schedulingPolicy": {"gang": {"minCount": 2}}}), id="no topology"),
        pytest.param(of_scheduling("PodGroup", {"schedulingConstraints": {}}), id="an empty one"),
        pytest.param(of_scheduling("PodGroup", {"schedulingConstraints": None}), id="null"),
        pytest.param(
            of_scheduling("PodGroup", {"schedulingConstraints": GANG}, "scheduling.volcano.sh/v1"),
            id="another project's PodGroup",
        ),
        pytest.param(of_scheduling("Workload", ["schedulingConstraints"]), id="a spec of another type"),
    ],
)
def test_no_note_about_other_pod_groups(run, value):
    assert "were not checked" not in run("check", "-", stdin=json.dumps(value).encode())[2]
