import json
import os
import stat
import sys

import pytest
import yaml

from webhook.cli.main import main

GOOD = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: good, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: good}}
  template:
    metadata: {labels: {app: good}}
    spec:
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: topology.kubernetes.io/zone
        whenUnsatisfiable: ScheduleAnyway
        labelSelector: {matchLabels: {app: good}}
"""
NOTHING = "not a Kubernetes object: it has no apiVersion and no kind"
TEMPLATED = "a template; check its output: helm template CHART | evenspread check -"
GO_TEXT = "a Go value, not YAML; in a Helm template write {{{{- toYaml .Values.{} | nindent {} }}}}"
CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  annotations: {a: b}
  name: webs.example.com
spec:
  group: example.com
"""
CONSTRAINT = {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}
NULL = GOOD.replace("        labelSelector: {matchLabels: {app: good}}\n", "        labelSelector:\n").replace(
    "name: good", "name: bare"
)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


def findings(out):
    return [f"{row['file']}:{row['line']}:{row['column']} {row['rule']}" for row in json.loads(out) if "file" in row]


class TestExitCodes:
    def test_fine(self, run, tmp_path):
        write(tmp_path / "a.yaml", GOOD)
        code, out, err = run("check", "a.yaml", "--rule", "selector-null")
        assert (code, out, err) == (0, "1 file, 1 object, 1 workload: no findings\n", "")

    def test_findings(self, run, tmp_path):
        write(tmp_path / "a.yaml", NULL)
        code, out, err = run("check", "a.yaml", "-o", "json", "--rule", "selector-null")
        assert (code, findings(out), err) == (1, ["a.yaml:14:9 selector-null"], "")

    @pytest.mark.parametrize(("fail_on", "code"), [("high", 1), ("low", 1), ("never", 0)])
    def test_fail_on(self, run, tmp_path, fail_on, code):
        write(tmp_path / "a.yaml", NULL)
        assert run("check", "a.yaml", "--fail-on", fail_on, "--rule", "selector-null")[0] == code

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["check"], "add the manifests to check: files, directories, patterns, or - for the standard input"),
            (["chek"], "No such command 'chek'. Did you mean 'check'?"),
            (["check", "a", "--rule", "selector-nil"], "no rule 'selector-nil'; did you mean 'selector-null'?"),
            (["check", "a", "--kube-version", "1.12"], "1.12 is not supported. Use 1.31 to 1.37, or 1.38 as"),
            (["check", "a", "-o", "xml"], "'xml' is not one of"),
        ],
        ids=lambda value: " ".join(value) if isinstance(value, list) else "",
    )
    def test_usage(self, run, arguments, message):
        code, out, err = run(*arguments)
        assert (code, out) == (2, "")
        assert message in err

    def test_a_configuration_with_faults(self, run, tmp_path):
        write(tmp_path / "a.yaml", GOOD)
        write(
            tmp_path / "policy.yaml", "apiVersion: config.evenspread.io/v1alpha1\nkind: SpreadPolicy\nceilling: warn\n"
        )
        code, out, err = run("check", "a.yaml", "--config", "policy.yaml")
        assert (code, out) == (2, "")
        assert err == 'policy.yaml:3:1: ceilling: unknown field; did you mean "ceiling"?\n'

    def test_a_configuration_from_the_environment(self, run, tmp_path, monkeypatch):
        write(tmp_path / "a.yaml", NULL)
        write(
            tmp_path / "policy.yaml",
            "apiVersion: config.evenspread.io/v1alpha1\nkind: SpreadPolicy\nrules: {selector-null: 'off'}\n",
        )
        monkeypatch.setenv("EVENSPREAD_CONFIG", "policy.yaml")
        assert run("check", "a.yaml", "--rule", "selector-null")[0] == 0

    def test_our_fault_is_one_line(self, capsys, monkeypatch):
        monkeypatch.setattr(sys, "stdin", None)
        monkeypatch.delenv("EVENSPREAD_DEBUG", raising=False)
        assert main(["check", "-"]) == 5
        assert capsys.readouterr().err == (
            "evenspread: a bug in evenspread, please report it (AttributeError: 'NoneType' object has no "
            "attribute 'buffer'); EVENSPREAD_DEBUG=1 shows where\n"
        )

    def test_nothing_to_check(self, run):
        code, out, err = run("check", "-", stdin=b"# nothing\n")
        assert (code, out) == (0, "1 file, 0 objects, 0 workloads: nothing to check\n")
        assert err == "<stdin>:1:1: note: no Kubernetes object in this file\n"

    def test_no_file_is_left(self, run, tmp_path):
        write(tmp_path / "in" / "a.yaml", GOOD)
        code, out, err = run("check", "in/*", "--ignore", "a.yaml", "-o", "json")
        assert (code, out, err) == (0, "[]\n", "evenspread: note: nothing to check: no file was read\n")

    @pytest.mark.parametrize(
        ("name", "text", "said"),
        [
            pytest.param(
                "kustomization.yaml",
                "resources: []\n",
                "a kustomization; check its output: evenspread check --kustomize DIR",
                id="a kustomization",
            ),
            pytest.param(
                "x.yaml",
                "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n",
                "a kustomization; check its output: evenspread check --kustomize DIR",
                id="one that says so",
            ),
            pytest.param(
                "values-prod.yaml",
                "replicas: 3\nreplicas: 4\n",
                "Helm values; check the output of helm template CHART",
                id="values",
            ),
            pytest.param(
                "prod.values.yml",
                "web:\n- topologySpreadConstraints: [{maxSkew: 1}]\n",
                "Helm values; check the output of helm template CHART; its topologySpreadConstraints were not checked",
                id="values with constraints",
            ),
            pytest.param(
                "values.schema.json", "{}", "Helm values; check the output of helm template CHART", id="their schema"
            ),
            pytest.param(
                "Chart.yaml",
                "apiVersion: v2\nname: web\n",
                "metadata of a Helm chart; check the output of helm template CHART",
                id="a chart",
            ),
        ],
    )
    def test_what_stands_beside_manifests_is_passed_over(self, run, tmp_path, name, text, said):
        write(tmp_path / "in" / name, text)
        code, out, err = run("check", "in")
        assert (code, out) == (0, "1 file, 0 objects, 0 workloads: nothing to check\n")
        assert err == f"in/{name}:1:1: note: skipped: {said}\n"
        write(tmp_path / "in" / "a.yaml", GOOD)
        assert run("check", "in", "--rule", "max-skew")[:2] == (0, "2 files, 1 object, 1 workload: no findings\n")

    @pytest.mark.parametrize("name", ["values-web.yaml", "Chart.yaml", "kustomization.yaml"])
    def test_an_object_is_looked_at_whatever_its_file_is_called(self, run, tmp_path, name):
        write(tmp_path / name, NULL)
        code, out, _ = run("check", name, "-o", "json", "--rule", "selector-null")
        assert (code, findings(out)) == (1, [f"{name}:14:9 selector-null"])


class TestInputs:
    @pytest.fixture
    def tree(self, tmp_path):
        for name in ("b.yaml", "a.yml", "deep/c.json", "deep/x.txt", ".hidden/d.yaml", "deep/.e.yaml", "skip/f.yaml"):
            text = NULL.replace("bare", name[0])
            write(tmp_path / "tree" / name, text)
        write(
            tmp_path / "tree" / "deep" / "c.json",
            json.dumps({"apiVersion": "v1", "kind": "Pod", "spec": {"topologySpreadConstraints": [CONSTRAINT]}}),
        )
        (tmp_path / "tree" / "loop").symlink_to(tmp_path / "tree")
        return tmp_path / "tree"

    @pytest.mark.parametrize(
        ("arguments", "files"),
        [
            pytest.param(
                ["tree"], ["tree/a.yml", "tree/b.yaml", "tree/deep/c.json", "tree/skip/f.yaml"], id="a directory"
            ),
            pytest.param(
                ["tree/"], ["tree/a.yml", "tree/b.yaml", "tree/deep/c.json", "tree/skip/f.yaml"], id="with a slash"
            ),
            pytest.param(
                ["tree", "tree/a.yml"],
                ["tree/a.yml", "tree/b.yaml", "tree/deep/c.json", "tree/skip/f.yaml"],
                id="each file once",
            ),
            pytest.param(
                ["tree", "--ignore", "skip"],
                ["tree/a.yml", "tree/b.yaml", "tree/deep/c.json"],
                id="a directory ignored by name",
            ),
            pytest.param(
                ["tree", "--ignore", "tree/*.yaml"], ["tree/a.yml", "tree/deep/c.json"], id="files ignored by path"
            ),
            pytest.param(["tree/*.y*ml"], ["tree/a.yml", "tree/b.yaml"], id="a pattern"),
            pytest.param(["tree/d*/**"], ["tree/deep/c.json"], id="a pattern in all depths"),
            pytest.param(["-f", "tree/a.yml"], ["tree/a.yml"], id="as kubectl"),
            pytest.param(["tree/.hidden"], ["tree/.hidden/d.yaml"], id="a hidden directory that is named"),
            pytest.param(["tree/deep/.e.yaml"], ["tree/deep/.e.yaml"], id="a hidden file that is named"),
        ],
    )
    def test_files(self, run, tree, arguments, files):
        if "**" in arguments[0]:
            (tree / "deep" / "x.txt").unlink()
        _, out, err = run("check", *arguments, "-o", "json", "--rule", "selector-null")
        assert [line.split(":")[0] for line in findings(out)] == files
        assert "error" not in err

    def test_hidden_files_with_constraints_are_named(self, run, tree):
        write(tree / ".hidden" / "deep" / ".f.json", '{"topologySpreadConstraints": []}')
        write(tree / ".hidden" / "g.yaml", "a: 1\n")
        write(tree / ".hidden" / "x.txt", NULL)
        write(tree / ".git" / "h.yaml", NULL)
        said = "skipped: hidden file or directory with topologySpreadConstraints"
        named = [line.partition(": note: ") for line in run("check", "tree", "-v")[2].splitlines() if said in line]
        assert sorted(name for name, _, _ in named) == [
            "tree/.hidden/d.yaml",
            "tree/.hidden/deep/.f.json",
            "tree/deep/.e.yaml",
        ]
        assert said not in run("check", "tree", "--ignore", ".*")[2]
        assert run("check", "tree", "tree/.hidden", "-v")[2].count(said) == 2

    def test_standard_input(self, run):
        code, out, _ = run("check", "-", "-o", "json", "--rule", "selector-null", stdin=NULL.encode())
        assert (code, findings(out)) == (1, ["<stdin>:14:9 selector-null"])

    def test_an_object_in_a_list(self, run, tmp_path):
        items = "".join("- " + text.replace("\n", "\n  ").rstrip() + "\n" for text in (GOOD, NULL))
        write(tmp_path / "a.yaml", f"apiVersion: v1\nkind: List\nitems:\n{items}")
        _, out, _ = run("check", "a.yaml", "-o", "json", "--rule", "selector-null")
        assert findings(out) == ["a.yaml:31:11 selector-null"]


TYPED = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: DoNotSchedule
        labelSelector: {matchLabels: {app: web}}
      containers: [{name: a, image: a, resources: {requests: {cpu: 100m}}}]
"""


class TestBadFiles:
    """One line each; the files around them are still checked."""

    @pytest.fixture
    def around(self, tmp_path):
        write(tmp_path / "in" / "0.yaml", NULL)
        write(tmp_path / "in" / "9.yaml", NULL)
        return tmp_path / "in"

    def check(self, run, *arguments, code=3):
        got, out, err = run("check", "in", *arguments, "-o", "json", "--rule", "selector-null")
        assert findings(out) == ["in/0.yaml:14:9 selector-null", "in/9.yaml:14:9 selector-null"]
        assert "Traceback" not in err
        assert got == code
        return err

    @pytest.mark.parametrize(
        ("data", "line"),
        [
            pytest.param(
                "apiVersion: v1\nkind: X\na: b: c\n",
                "5.yaml:3:5: error: not YAML: mapping values are not allowed in this context",
                id="not YAML",
            ),
            pytest.param(
                b"apiVersion: v1\nkind: X\na: \xff\n",
                "5.yaml:3:4: error: not YAML: invalid leading UTF-8 octet",
                id="invalid UTF-8",
            ),
            pytest.param(
                "'apiVersion': v1\n\"kind\": X\na:\n\tb: c\n",
                "5.yaml:4:1: error: not YAML: a tab character; YAML is indented with spaces",
                id="a tab",
            ),
            pytest.param(
                "apiVersion: v1\nkind: X\nspec:\n  spread: [map[maxSkew:1 topologyKey:zone] map[maxSkew:2]]\n",
                f"5.yaml:4:15: error: not YAML: {GO_TEXT.format('spread', 4)}",
                id="what Go prints",
            ),
            pytest.param(
                "apiVersion: v1\nkind: X\nspec:\n  a:\n  - spread:\n      [map[a.b/c:1]]\n",
                f"5.yaml:6:11: error: not YAML: {GO_TEXT.format('spread', 6)}",
                id="what Go prints, on a line of its own",
            ),
            pytest.param(
                "apiVersion: v1\nkind: X\nspec: [{a: map[b:c]}]\n",
                f"5.yaml:3:15: error: not YAML: {GO_TEXT.format('x', 2)}",
                id="what Go prints, in flow style",
            ),
            pytest.param(
                "apiVersion: v1\nkind: X\nspec: [map[i]]\n",
                "5.yaml:3:11: error: not YAML: did not find expected ',' or ']' while parsing a flow sequence",
                id="an index",
            ),
            pytest.param(
                '{"apiVersion": "v1",\n"kind": "Pod", "a": ]}\n',
                "5.yaml:2:21: error: not JSON: invalid character",
                id="not JSON",
            ),
            pytest.param(
                "kind: x\nkind: X\napiVersion: v1\n",
                "5.yaml:2:1: error: duplicate key 'kind': kubectl takes the last one, kustomize and Flux refuse it",
                id="a key twice that decides what is looked at",
            ),
            pytest.param(
                "kind: Deployment\nmetadata: {name: a}\nspec: {template: {}}\n",
                "5.yaml:1:1: error: not a Kubernetes object: it has no apiVersion",
                id="a workload without apiVersion",
            ),
            pytest.param(
                "metadata: {name: a}\nspec: {template: {}}\n",
                "5.yaml:1:1: error: not a Kubernetes object: it has no apiVersion and no kind",
                id="a workload without its first lines",
            ),
            pytest.param(
                "apiVersion: v1\nkind: X\na: [\nx: " + "[" * 10_000,
                "5.yaml:4:401: error: not YAML: nested more than 400 levels deep",
                id="10,000 brackets",
            ),
        ],
    )
    def test_content(self, run, around, data, line):
        write(around / "5.yaml", data)
        assert self.check(run) == f"in/{line}\n"

    @pytest.mark.parametrize(
        ("name", "data", "line"),
        [
            pytest.param(
                "5.yaml",
                "a: b: c\n",
                "1:5: note: not YAML: mapping values are not allowed in this context",
                id="not YAML",
            ),
            pytest.param(
                "5.yaml", b"\x89PNG\r\n\x1a\n\0\0", "1:1: note: not YAML: invalid leading UTF-8 octet", id="an image"
            ),
            pytest.param(
                "5.json",
                '{\n// b\n"a": 1}',
                "2:1: note: not JSON: invalid character '/' looking for beginning of object key string"
                "; JSON has no comments: remove them",
                id="JSON with comments",
            ),
            pytest.param("5.yaml", "replicas: 3\n", f"1:1: note: {NOTHING}", id="another file"),
            pytest.param("5.yaml", "x: a\n" * 10_000, f"1:1: note: {NOTHING}", id="another file, which is large"),
            pytest.param("5.json", '{"replicas": 3}\n', f"1:1: note: {NOTHING}", id="another file in JSON"),
            pytest.param(
                "5.yaml", "- a\n", "1:1: note: not a Kubernetes object: a list instead of a mapping", id="a list"
            ),
            pytest.param("5.yaml", "items:\n- a: 1\n", f"1:1: note: {NOTHING}", id="items of another kind"),
            pytest.param(
                "5.json", '{"items": [{"a": 1}]}\n', f"1:1: note: {NOTHING}", id="items of another kind in JSON"
            ),
            pytest.param(
                "5.yaml",
                "type: array\nitems: {type: string}\n",
                f"1:1: note: {NOTHING}",
                id="a schema's items",
            ),
            pytest.param(
                "5.yaml",
                "# x\n\nkind: Addons\nspec: {addons: []}\n",
                "3:1: note: not a Kubernetes object: it has no apiVersion",
                id="another kind",
            ),
            pytest.param(
                "5.yaml",
                "apiVersion: v1\nentries: {}\n",
                "1:1: note: not a Kubernetes object: it has no kind",
                id="a chart repository",
            ),
            pytest.param(
                "5.yaml", "services:\n  web: {image: a}\n", "1:1: note: skipped: a Compose file", id="Compose"
            ),
            pytest.param("5.yaml", "services: [{name: a}]\n", f"1:1: note: {NOTHING}", id="a list of services"),
            pytest.param("5.yaml", "services: {x: {id: UA-1}}\n", f"1:1: note: {NOTHING}", id="services of a website"),
            pytest.param(
                "5.yaml",
                "deployment:\n  topologySpreadConstraints: [{maxSkew: 0}]\n",
                f"1:1: note: {NOTHING}; its topologySpreadConstraints were not checked",
                id="values by another name",
            ),
            pytest.param(
                "5.json",
                '{"topologySpreadConstraints": [{"maxSkew": 0}]}',
                f"1:1: note: {NOTHING}; its topologySpreadConstraints were not checked",
                id="values by another name, in JSON",
            ),
            pytest.param(
                "5.yaml", "topologySpreadConstraints: []\n", f"1:1: note: {NOTHING}", id="values without constraints"
            ),
            pytest.param(
                "5.json",
                '{"$schema": "https://json-schema.org/draft-07/schema#"}',
                "1:1: note: skipped: a JSON schema, or a file with a $schema",
                id="a JSON schema",
            ),
            pytest.param("5.yaml", "swagger: '2.0'\n", "1:1: note: skipped: an OpenAPI document", id="Swagger"),
            pytest.param(
                "5.yaml",
                "suite: web\ntests: [{it: works}]\n",
                "1:1: note: skipped: a helm-unittest suite; check the output of helm template CHART",
                id="helm-unittest",
            ),
            pytest.param(
                "values.yaml",
                "kind: DaemonSet\nspec: {template: {}}\n",
                "1:1: note: skipped: Helm values; check the output of helm template CHART",
                id="values with a kind",
            ),
            pytest.param(
                "values.yaml",
                "kind: DaemonSet\napiVersion: apps/v1\n",
                "1:1: note: skipped: Helm values; check the output of helm template CHART",
                id="values with a kind and an apiVersion",
            ),
            pytest.param(
                "5.yaml",
                "apiVersion: v1\nkind: X\nmetadata:\n{{- toYaml .Values.m | nindent 2 }}\n",
                f"5:1: note: {TEMPLATED}",
                id="a chart template",
            ),
            pytest.param(
                "5.yaml",
                "apiVersion: v1\nkind: X\nspec:\n  replicas: {{ .Values.n }}\n",
                f"4:26: note: {TEMPLATED}",
                id="a value in a template",
            ),
            pytest.param(
                "5.yaml", "apiVersion: v1\nkind: X\nspec: %s\n", f"3:7: note: {TEMPLATED}", id="a placeholder"
            ),
            pytest.param(
                "5.yaml",
                "apiVersion: v1\nkind: X\nmetadata: {}\nstatus: {}\nstatus: {}\n",
                "5:1: note: duplicate key 'status': kubectl takes the last one, kustomize and Flux refuse it",
                id="a key twice that nothing reads",
            ),
        ],
    )
    def test_what_claims_to_be_no_object_is_a_note(self, run, around, name, data, line):
        write(around / name, data)
        assert self.check(run, code=1) == f"in/{name}:{line}\n"

    @pytest.mark.parametrize("data", [b"a: b: c\n", b"replicas: 3\n", b"- a\n", b"a: {{ .Values.a }}\n"])
    def test_what_is_piped_in_is_meant_as_manifests(self, run, data):
        code, _, err = run("check", "-", stdin=data)
        assert (code, err.count(": error: ")) == (3, 1)

    def test_a_template_is_no_excuse_for_a_broken_manifest(self, run, around):
        write(around / "5.yaml", "apiVersion: v1\nkind: X\nmetadata:\n  note: '{{ .a }}'\n  b: c: d\nx:\n\ty: 1\n")
        assert self.check(run).startswith("in/5.yaml:5:7: error: not YAML")

    @pytest.mark.parametrize(
        ("old", "new", "line"),
        [
            ("replicas: 3", "replicas: '{{ replicas }}'", 5),
            ("maxSkew: 1", 'maxSkew: "{{ .skew }}"', 11),
            ("cpu: 100m", "cpu: '{{ or .CPU \"100m\" }}'", 15),
        ],
    )
    def test_an_action_in_quotes_makes_a_template(self, run, around, old, new, line):
        data = TYPED.replace(old, new)
        write(around / "5.yaml", data)
        code, out, err = run("check", "in/5.yaml")
        assert (code, out) == (0, "1 file, 1 object, 1 workload: no findings\n")
        assert err.startswith(f"in/5.yaml:{line}:")
        assert err.endswith(f": note: {TEMPLATED}\n")
        # What is piped in is rendered, or should be; and a value of another kind is no template.
        code, out, _ = run("check", "-", "-o", "json", stdin=data.encode())
        assert (code, [each.split()[1] for each in findings(out)]) == (1, ["wrong-type"])
        write(around / "5.yaml", TYPED.replace(old, f"{old.partition(':')[0]}: text"))
        code, out, _ = run("check", "in/5.yaml", "-o", "json")
        assert (code, [each.split()[1] for each in findings(out)]) == (1, ["wrong-type"])

    def test_equal_notes_are_counted(self, run, around):
        for name in ("a", "b", "c"):
            write(around / f"{name}.yaml", f"{name}: 1\n")
        assert self.check(run, code=1) == f"3 files: note: {NOTHING} (-v names them)\n"
        assert self.check(run, "-v", code=1) == "".join(f"in/{name}.yaml:1:1: note: {NOTHING}\n" for name in "abc")

    def test_the_schema_of_a_definition_is_not_read(self, run, around):
        write(around / "5.yaml", f"{CRD}  a: [\n---\n{GOOD}")
        code, out, err = run("check", "in/5.yaml", "--rule", "max-skew")
        assert (code, out, err) == (0, "1 file, 2 objects, 1 workload: no findings\n", "")

    @pytest.mark.parametrize("second", [GOOD, "kind: Deployment\n"], ids=["a second object", "a second kind"])
    def test_a_definition_hides_nothing(self, run, around, second):
        write(around / "5.yaml", CRD + second)
        assert "duplicate key 'kind'" in self.check(run)

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
    @pytest.mark.parametrize("line_break", ["\n", "\r\n"])
    def test_a_byte_order_mark(self, run, around, encoding, line_break):
        """kubectl reads UTF-16 with a mark, from files and from a pipe."""
        mark = "" if encoding in {"utf-16", "utf-8-sig"} else "\ufeff"
        text = f"{mark}# Spreizung für 日本 🚀\n{NULL}---\n{GOOD}".replace("\n", line_break)
        data = text.encode(encoding)
        write(around / "5.yaml", data)
        code, out, err = run("check", "in/5.yaml", "-o", "json", "--rule", "selector-null")
        assert (code, findings(out), err) == (1, ["in/5.yaml:15:9 selector-null"], "")
        code, out, err = run("check", "-", "-o", "json", "--rule", "selector-null", stdin=data)
        assert (code, findings(out), err) == (1, ["<stdin>:15:9 selector-null"], "")
        code, out, err = run("check", "in/5.yaml", "--fix", "--write", "--rule", "selector-null")
        if encoding == "utf-8-sig":
            assert "fixed selector-null" in out
            return
        assert "in/5.yaml: error: not written: the file is UTF-16 text; save it as UTF-8\n" in err
        assert "; fix (by hand: the file was not written): labelSelector:" in err
        assert (around / "5.yaml").read_bytes() == data

    @pytest.mark.parametrize(
        ("make", "what"),
        [
            pytest.param(lambda path: path.symlink_to("nowhere"), "a broken link", id="a broken link"),
            pytest.param(lambda path: path.symlink_to(path), "a broken link", id="a link to itself"),
            pytest.param(os.mkfifo, "a named pipe, not a file", id="a named pipe"),
            pytest.param(lambda path: os.mknod(path, stat.S_IFSOCK | 0o600), "a socket, not a file", id="a socket"),
        ],
    )
    def test_what_is_no_file(self, run, around, make, what):
        """A note in a directory, an error where you name it."""
        make(around / "5.yaml")
        assert self.check(run, code=1) == f"in/5.yaml: note: {what}\n"
        assert run("check", "in/5.yaml")[0::2] == (3, f"in/5.yaml: error: {what}\n")

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_an_unreadable_file(self, run, around):
        write(around / "5.yaml", GOOD)
        (around / "5.yaml").chmod(0)
        assert self.check(run) == "in/5.yaml: error: permission denied\n"

    @pytest.mark.usefixtures("around")
    def test_a_file_that_is_not_there(self, run):
        assert self.check(run, "nowhere.yaml", "*.nope") == (
            "nowhere.yaml: error: no such file or directory\n*.nope: error: no file matches\n"
        )

    @pytest.mark.usefixtures("around")
    def test_a_directory_without_manifests(self, run, tmp_path):
        (tmp_path / "empty").mkdir()
        assert self.check(run, "empty") == "empty: error: no .yaml, .yml, .json file in this directory\n"

    def test_an_empty_file_is_worth_a_note_only(self, run, around):
        write(around / "5.yaml", "# nothing here yet\n")
        code, out, err = run("check", "in", "-o", "json", "--rule", "selector-null")
        assert (code, len(findings(out))) == (1, 2)
        assert err == "in/5.yaml:1:1: note: no Kubernetes object in this file\n"

    @pytest.mark.parametrize(
        ("old", "new", "line"),
        [
            ("replicas: 3", "replicas: ${REPLICAS:=3}", 5),
            ("replicas: 3", "replicas: '${REPLICAS}'", 5),
            ("maxSkew: 1", "maxSkew: ${SKEW}", 11),
            ("cpu: 100m", "cpu: '${CPU}'", 15),
            ("cpu: 100m", "nvidia.com/gpu: '${GPUS}'", 15),
        ],
    )
    def test_a_placeholder_is_worth_a_note(self, run, around, old, new, line):
        """envsubst and Flux fill it in before an API server sees the object."""
        write(around / "5.yaml", TYPED.replace(old, new))
        code, out, err = run("check", "in/5.yaml")
        assert (code, out) == (0, "1 file, 1 object, 1 workload: no findings\n")
        assert err.startswith(f"in/5.yaml:{line}:")
        assert "note: an unfilled placeholder ${…}; check the output of envsubst" in err

    def test_a_placeholder_in_what_is_piped_in_is_a_finding(self, run):
        manifest = b"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: ${REPLICAS}\n"
        code, out, err = run("check", "-", stdin=manifest)
        assert code == 1
        assert "wrong-type" in out
        assert err == (
            "<stdin>:5:3: note: an unfilled placeholder ${…}; "
            "check the output of envsubst, kustomize or helm template instead\n"
        )

    def test_a_name_that_is_no_text(self, run, around):
        write(around / os.fsdecode(b"5\xff.yaml"), "a: b\n")
        assert "not a Kubernetes object" in self.check(run, code=1)


class TestLargeInput:
    @pytest.mark.slow
    @pytest.mark.parametrize(("constraints", "expected"), [(128, (1, 128)), (129, (3, 0)), (5000, (3, 0))])
    def test_many_constraints(self, run, constraints, expected):
        pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"topologySpreadConstraints": [CONSTRAINT] * constraints}}
        code, out, _ = run("check", "-", "-o", "json", "--rule", "selector-null", stdin=json.dumps(pod).encode())
        assert (code, len(findings(out))) == expected

    @pytest.mark.parametrize(
        ("many", "fix"),
        [
            (17, f"remove {' and '.join(f'z[{number}]' for number in range(1, 17))}"),
            (18, "keep the first of these constraints and remove the others"),
        ],
    )
    def test_many_duplicates(self, run, many, fix):
        pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"topologySpreadConstraints": [CONSTRAINT] * many}}
        _, out, _ = run("check", "-", "-o", "json", "--rule", "duplicate-constraint", stdin=json.dumps(pod).encode())
        found = [row["fix"] for row in json.loads(out) if "severity" in row]
        assert (len(found), {*found}) == (many - 1, {fix})

    def test_a_selector_of_1000_terms(self, run):
        terms = "".join(f"            k{number}: v\n" for number in range(1000))
        selector = f"labelSelector:\n          matchLabels:\n{terms}"
        text = GOOD.replace("labelSelector: {matchLabels: {app: good}}", selector)
        code, _, err = run("check", "-", "--rule", "selector-null", stdin=text.encode())
        assert (code, err) == (0, "")

    @pytest.mark.slow
    def test_a_file_of_50_mib_is_refused_where_it_is_one_document(self, run, tmp_path):
        write(tmp_path / "a.yaml", b"apiVersion: v1\nkind: X\n" + b"a: b\n" * 10 * 2**20)
        code, _, err = run("check", "a.yaml")
        assert code == 3
        assert err == "a.yaml:1:1: error: the YAML document has 50.0 MiB; the limit is 8 MiB, and JSON has no limit\n"


class TestText:
    def test_a_block(self, run, tmp_path):
        write(tmp_path / "a.yaml", NULL)
        _, out, _ = run("check", "a.yaml", "--rule", "selector-null")
        lines = out.splitlines()
        assert lines[:4] == [
            "a.yaml:14:9: high selector-null (the webhook warns)",
            "  Deployment shop/bare  spec.template.spec.topologySpreadConstraints[0].labelSelector",
            "   14 |         labelSelector:",
            "      |         ^~~~~~~~~~~~~~",
        ]
        assert lines[-1] == "1 file, 1 object, 1 workload: 1 finding (1 high)"

    def test_control_characters_do_not_reach_the_terminal(self, run, tmp_path):
        write(tmp_path / "a.yaml", NULL.replace("bare", '"\\e[31mred"'))
        _, out, _ = run("check", "a.yaml", "--rule", "selector-null")
        assert "\x1b" not in out

    def test_github_annotations(self, run, tmp_path):
        write(tmp_path / "a,b.yaml", NULL)
        _, out, _ = run("check", "a,b.yaml", "-o", "github", "--rule", "selector-null")
        assert out.startswith(
            "::error file=a%2Cb.yaml,line=14,col=9,title=evenspread/selector-null::Deployment shop/bare: "
        )

    def test_helm_output_names_the_template(self, run):
        stdin = b"---\n# Source: web/templates/deployment.yaml\n" + NULL.encode()
        _, out, _ = run("check", "-", "--rule", "selector-null", stdin=stdin)
        assert "Deployment shop/bare  (web/templates/deployment.yaml)" in out
        _, out, _ = run("check", "-", "-o", "github", "--rule", "selector-null", stdin=stdin)
        assert out.startswith("::error file=web/templates/deployment.yaml,title=")

    def test_yaml_has_the_entries_of_json(self, run, tmp_path):
        write(tmp_path / "a.yaml", NULL)
        _, as_json, _ = run("check", "a.yaml", "-o", "json")
        _, as_yaml, _ = run("check", "a.yaml", "-o", "yaml")
        assert yaml.safe_load(as_yaml) == json.loads(as_json)

    def test_yaml_quotes_what_kubectl_would_read_as_a_number(self, run):
        _, out, _ = run("check", "-", "-o", "yaml", stdin=NULL.replace("namespace: shop", 'namespace: "1e3"').encode())
        assert 'namespace: "1e3"\n' in out
