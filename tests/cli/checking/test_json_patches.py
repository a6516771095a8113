"""JSON 6902 patches, and patches in the text of a kustomization: judged by what they say."""

import json
import textwrap

import pytest

AT = "/spec/template/spec/topologySpreadConstraints"
ITEM = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}
ZERO = {**ITEM, "maxSkew": 0}
MERGE = (
    "kind: {kind}\nmetadata: {{name: web}}\nspec:\n  template:\n    spec:\n      topologySpreadConstraints:\n"
    "      - {{topologyKey: topology.kubernetes.io/zone, maxSkew: {skew}}}\n"
)


def op(path, value=None, verb="replace"):
    """One operation."""
    return {"op": verb, "path": path, **({} if verb == "remove" else {"value": value})}


def in_list(operations):
    """As YAML in block style."""
    lines = [f"- op: {each['op']}\n  path: {each['path']}\n" for each in operations]
    values = [f"  value: {json.dumps(each['value'])}\n" if "value" in each else "" for each in operations]
    return "".join(f"{line}{value}" for line, value in zip(lines, values, strict=True))


def block(text):
    """A kustomization with a patch as a block of text."""
    return f"patches:\n- target: {{kind: Deployment}}\n  patch: |-\n{textwrap.indent(text, '    ')}"


@pytest.fixture
def found(run, tmp_path):
    """Rule and line of each finding of high severity about these files."""

    def found(**files):
        for name, text in files.items():
            (tmp_path / name.replace("_", ".")).write_text(text)
        code, out, err = run("check", ".", "-o", "json")
        rows = [row for row in json.loads(out) if row.get("severity") == "high"]
        assert code == (1 if rows else 0), err
        return [(row["rule"], row["line"]) for row in rows]

    return found


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        pytest.param([op(f"{AT}/0/maxSkew", 0)], ["max-skew"], id="a field"),
        pytest.param([op(f"{AT}/0/maxSkew", 2)], [], id="a right field"),
        pytest.param([op(f"{AT}/7/maxSkew", 0)], ["max-skew"], id="a field of a later constraint"),
        pytest.param([op(f"{AT}/0/maxSkew", "1")], ["wrong-type"], id="a text"),
        pytest.param([op(f"{AT}/0/maxskew", 1)], ["unknown-field"], id="a misspelt field"),
        pytest.param([op(f"{AT}/0/whenUnsatisfiable", "Maybe")], ["when-unsatisfiable"], id="a wrong value"),
        pytest.param([op(f"{AT}/0/whenUnsatisfiable", "DoNotSchedule")], [], id="a right value"),
        pytest.param([op(f"{AT}/0/minDomains", 2, "add")], [], id="the base says whether it is hard"),
        pytest.param([op(f"{AT}/0/minDomains", 0, "add")], ["min-domains"], id="never right"),
        pytest.param([op(f"{AT}/-", ZERO, "add")], ["max-skew"], id="an item"),
        pytest.param([op(f"{AT}/-", ITEM, "add")], [], id="a right item"),
        pytest.param([op(f"{AT}/0", ZERO, "add")], ["max-skew"], id="an item in front"),
        pytest.param(
            [op(f"{AT}/-", {"maxSkew": 1, "topologyKey": "a"}, "add")], ["when-unsatisfiable"], id="a whole one"
        ),
        pytest.param([op(AT, [ITEM, ZERO])], ["duplicate-constraint", "max-skew"], id="a list"),
        pytest.param([op(AT, [ITEM], "add")], [], id="a right list"),
        pytest.param([op(AT, "text", "add")], ["wrong-type"], id="a list that is text"),
        pytest.param([op(f"{AT}/-", ITEM, "add"), op(f"{AT}/-", ITEM, "add")], [], id="where they go is the base's"),
        pytest.param([op("/spec/template/spec", {"topologySpreadConstraints": [ZERO]})], ["max-skew"], id="above it"),
        pytest.param([op(f"{AT}/0", verb="remove")], [], id="an item that is removed"),
        pytest.param([op(AT, verb="remove")], [], id="a list that is removed"),
        pytest.param([op(f"{AT}/0/maxSkew", 0), op(f"{AT}/0/maxSkew", 1)], [], id="the last one counts"),
        pytest.param([op(f"{AT}/0", ZERO, "add"), op(f"{AT}/0", ITEM, "add")], ["max-skew"], id="both are added"),
        pytest.param([op("/spec/replicas", 2)], [], id="another field"),
        pytest.param([op("/metadata/annotations/a~1b", "c", "add")], [], id="an escaped key"),
        pytest.param([op(f"{AT}/{'9' * 5000}/maxSkew", 0)], [], id="an index without a list"),
        pytest.param([op("/a" * 5000, 0)], [], id="a path without an object"),
    ],
)
@pytest.mark.parametrize(
    "files",
    [
        pytest.param(lambda ops: {"patch_yaml": in_list(ops)}, id="recognised"),
        pytest.param(lambda ops: {"patch_json": json.dumps(ops, indent=2)}, id="json"),
        pytest.param(
            lambda ops: {
                "patch_yaml": in_list(ops),
                "kustomization_yaml": "patches: [{path: patch.yaml, target: {kind: Deployment}}]\n",
            },
            id="named",
        ),
        pytest.param(
            lambda ops: {
                "patch_json": json.dumps(ops),
                "kustomization_yaml": "patchesJson6902: [{path: patch.json, target: {kind: Deployment}}]\n",
            },
            id="patchesJson6902",
        ),
        pytest.param(lambda ops: {"kustomization_yaml": block(in_list(ops))}, id="inline"),
        pytest.param(lambda ops: {"kustomization_yaml": block(json.dumps(ops, indent=1))}, id="inline json"),
        pytest.param(
            lambda ops: {"kustomization_yaml": f"patches:\n- patch: '{json.dumps(ops)}'\n"}, id="a text in quotes"
        ),
        pytest.param(
            lambda ops: {"kustomization_yaml": f"patches:\n- patch: {json.dumps(json.dumps(ops))}\n"}, id="escapes"
        ),
    ],
)
def test_a_json_patch(found, operations, expected, files):
    assert sorted(rule for rule, _ in found(**files(operations))) == expected


def test_the_place_of_each_finding(found):
    operations = in_list([op(f"{AT}/0/minDomains", 0), op("/spec/replicas", 1), op(f"{AT}/1/maxSkew", 0)])
    assert sorted(found(patch_yaml=operations)) == [("max-skew", 9), ("min-domains", 3)]
    assert sorted(found(patch_yaml="", kustomization_yaml=block(operations))) == [("max-skew", 12), ("min-domains", 6)]
    text = f"a: 1\npatches:\n- patch: {json.dumps(json.dumps([op(f'{AT}/0/maxSkew', 0)]))}\n"
    assert found(kustomization_yaml=text) == [("max-skew", 3)]


@pytest.mark.parametrize(
    ("target", "path", "expected"),
    [
        pytest.param("kind: CronJob", "/spec/jobTemplate/spec/template/spec", ["max-skew"], id="a CronJob"),
        pytest.param("kind: CronJob", "/spec/template/spec", ["unread-constraints"], id="not a place of a CronJob"),
        pytest.param("kind: Deployment", "/spec", ["unread-constraints"], id="not a place of a Deployment"),
        pytest.param("kind: Pod", "/spec", ["max-skew"], id="a Pod"),
        pytest.param("kind: Rollout, group: argoproj.io", "/spec/template/spec", ["max-skew"], id="a Rollout"),
        pytest.param("kind: Deployment|StatefulSet", "/spec/template/spec", ["max-skew"], id="an expression"),
        pytest.param("labelSelector: a=b", "/spec/jobTemplate/spec/template/spec", ["max-skew"], id="no kind"),
        pytest.param("kind: Service", "/spec", [], id="no workload"),
    ],
)
def test_the_kind_of_the_target(found, target, path, expected):
    operation = in_list([op(f"{path}/topologySpreadConstraints", [ZERO])])
    rows = found(patch_yaml=operation, kustomization_yaml=f"patches: [{{path: patch.yaml, target: {{{target}}}}}]\n")
    assert [rule for rule, _ in rows] == expected


@pytest.mark.parametrize("skew", [0, 1])
@pytest.mark.parametrize(
    ("kind", "target"),
    [
        pytest.param("ignored", "{kind: Deployment}", id="a placeholder"),
        pytest.param("ignored", "{kind: .*}", id="a placeholder, and no kind"),
        pytest.param("StatefulSet", "{kind: Rollout, group: argoproj.io, version: v1alpha1}", id="another kind"),
        pytest.param("Deployment", "{name: web}", id="its own kind"),
    ],
)
@pytest.mark.parametrize(
    ("head", "inline"),
    [("", True), ("", False), ("apiVersion: apps/v1\n", True), ("apiVersion: apps/v1\n", False)],
)
def test_a_merge_patch_with_a_target(found, kind, target, skew, head, inline):  # noqa: PLR0917 one parameter a choice
    text = head + MERGE.format(kind=kind, skew=skew)
    files = (
        {"kustomization_yaml": block(text).replace("{kind: Deployment}", target)}
        if inline
        else {"patch_yaml": text, "kustomization_yaml": f"patches: [{{path: patch.yaml, target: {target}}}]\n"}
    )
    assert [rule for rule, _ in found(**files)] == ([] if skew else ["max-skew"])


@pytest.mark.parametrize("skew", [0, 1])
def test_text_in_patches_strategic_merge(found, skew):
    text = "apiVersion: apps/v1\n" + MERGE.format(kind="Deployment", skew=skew)
    kustomization = f"patchesStrategicMerge:\n- |-\n{textwrap.indent(text, '  ')}- other.yaml\n"
    assert found(kustomization_yaml=kustomization) == ([] if skew else [("max-skew", 10)])


BROKEN = "not a JSON 6902 patch: operation [1] has {}, so kustomize refuses it"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("- {op: remove, path: /spec/x}\n- {path: /spec/y}\n", BROKEN.format("no op"), id="no verb"),
        pytest.param(
            f"- {{op: remove, path: /spec/x}}\n- {{op: {AT}, value: []}}\n",
            BROKEN.format(f"op '{AT}'"),
            id="the path as the verb",
        ),
        pytest.param("- {op: remove, path: /spec/x}\n- {op: add, value: 1}\n", BROKEN.format("no path"), id="no path"),
        pytest.param("- {op: put, path: /spec/x}\n", "not a Kubernetes object: a list", id="no operation at all"),
        pytest.param("- {op: add, value: 1}\n", "not a Kubernetes object: a list", id="another list"),
        pytest.param("[]\n", "not a Kubernetes object: a list", id="an empty list"),
    ],
)
def test_another_list_is_a_note(run, tmp_path, text, said):
    (tmp_path / "list.yaml").write_text(text)
    code, _, err = run("check", ".")
    assert (code, f"note: {said}" in err) == (0, True), err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("- {op: put, path: /spec/x}\n", "operation [0] has op 'put'", id="another verb"),
        pytest.param("- {op: add, value: 1}\n", "operation [0] has no path", id="no path"),
    ],
)
def test_a_broken_operation_in_a_kustomization(run, tmp_path, text, said):
    (tmp_path / "kustomization.yaml").write_text(block(text))
    code, _, err = run("check", ".")
    assert (code, f"kustomization.yaml:4:5: note: not a JSON 6902 patch: {said}" in err) == (0, True), err


def test_an_action_of_a_template_in_a_patch(run, tmp_path):
    container = "/spec/template/spec/containers/0/resources/requests/cpu"
    (tmp_path / "kustomization.yaml").write_text(block(in_list([op(container, '{{ or .CPU "1" }}')])))
    code, out, err = run("check", ".", "-o", "json")
    assert (code, json.loads(out)) == (0, [])
    assert "kustomization.yaml:6:7: note: a template" in err


def test_an_inline_patch_that_cannot_be_read_is_a_note(run, tmp_path):
    (tmp_path / "kustomization.yaml").write_text(block("kind: Deployment\n  a: b\n"))
    code, _, err = run("check", ".")
    assert (code, "kustomization.yaml:5:8: note: not YAML" in err) == (0, True), err


@pytest.mark.parametrize("option", ["--fix", "--add-defaults"])
def test_nothing_is_written(run, tmp_path, option):
    config = "apiVersion: config.evenspread.io/v1alpha1\nkind: SpreadPolicy\ndefaults:\n  mode: inject\n"
    config += f"  defaultConstraints: [{json.dumps(ITEM)}]\n"
    whole = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  template:\n    spec:\n"
    files = {
        "patch.yaml": in_list([op(f"{AT}/0/maxSkew", 0)]),
        "replicas.yaml": whole + "      containers:\n      - {name: a, image: a}\n",
        "kustomization.yaml": block(MERGE.format(kind="Deployment", skew=0)) + "- path: replicas.yaml\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "policy").write_text(config)
    _, out, err = run("check", option, "--write", "--config", "policy", ".")
    assert {name: (tmp_path / name).read_text() for name in files} == files
    assert not out
    expected = "does not edit JSON 6902 patches" if option == "--fix" else "skipped: 2 kustomize-patch\n"
    assert expected in err


def test_the_twin_of_the_patch_gets_defaults(run, tmp_path):
    config = "apiVersion: config.evenspread.io/v1alpha1\nkind: SpreadPolicy\ndefaults:\n  mode: inject\n"
    (tmp_path / "policy").write_text(f"{config}  defaultConstraints: [{json.dumps(ITEM)}]\n")
    (tmp_path / "web.yaml").write_text(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 3\n"
        "  selector: {matchLabels: {a: b}}\n"
        "  template:\n    metadata: {labels: {a: b}}\n    spec:\n      containers:\n      - {name: a, image: a}\n"
    )
    _, out, _ = run("check", "--add-defaults", "--config", "policy", ".")
    assert "+      topologySpreadConstraints:" in out
