import json
from pathlib import Path

import pytest
import yaml

from webhook.manifests.editing import atomic_write

POLICY = """\
apiVersion: config.evenspread.io/v1alpha1
kind: SpreadPolicy
defaults:
  mode: observe
  defaultConstraints:
  - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}
"""
WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: web}
"""
ADDED = """\
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: topology.kubernetes.io/zone
        whenUnsatisfiable: ScheduleAnyway
        labelSelector:
          matchLabels:
            app: web
        matchLabelKeys:
        - pod-template-hash
"""
FIXED = WEB.replace("    spec:\n", f"    spec:\n{ADDED}")
FLOW = (
    "---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\n"
    "spec: {replicas: 2, selector: {matchLabels: {app: db}}, "
    "template: {metadata: {labels: {app: db}}, spec: {containers: []}}}\n"
)
DAEMON = "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: log}\nspec: {template: {spec: {}}}\n"


@pytest.fixture
def add(check, tmp_path):
    """Runs check with the policy in a directory that holds web.yaml."""
    (tmp_path / "policy").write_text(POLICY)

    def add(*arguments, web=WEB, stdin=b""):
        return check("--config", "policy", *arguments, web=web, stdin=stdin)

    return add


class TestDiff:
    def test_a_diff(self, add, tmp_path):
        code, out, err = add("--add-defaults", "web.yaml")
        assert code == 1
        assert err == "constraints can be added to 1 workload\n"
        assert out == "--- web.yaml\n+++ web.yaml\n@@ -7,5 +7,14 @@\n" + "".join(
            f"{'+' if line in ADDED else ' '}{line}" for line in FIXED.splitlines(keepends=True)[6:]
        )
        assert (tmp_path / "web.yaml").read_text() == WEB

    def test_without_a_line_end_at_the_end(self, add):
        _, out, _ = add("--add-defaults", "web.yaml", web=WEB.rstrip("\n"))
        assert out.endswith("       - {name: web, image: web}\n\\ No newline at end of file\n")

    def test_the_standard_input(self, add):
        code, out, _ = add("--add-defaults", "-", stdin=WEB.encode())
        assert (code, out.splitlines()[:2]) == (1, ["--- <stdin>", "+++ <stdin>"])

    def test_nothing_to_do(self, add):
        assert add("--add-defaults", "web.yaml", web=FIXED) == (
            0,
            "",
            "constraints can be added to 0 workloads; skipped: 1 own-constraints\n",
        )

    def test_is_what_the_page_shows(self, add):
        _, out, err = add("--add-defaults", "web.yaml")
        page = Path(__file__).parents[4] / "docs" / "cli" / "fixes.md"
        assert f"$ evenspread check --add-defaults --config policy.yaml web.yaml\n{out}{err}```\n" in page.read_text()


BROKEN = "---\napiVersion: v1\nkind: X\na: [\n"


class TestWrite:
    def test_once(self, add, run, tmp_path):
        code, out, err = add("--add-defaults", "--write", "web.yaml", web=WEB + DAEMON)
        assert (code, out) == (0, "web.yaml:9: Deployment shop/web: zone[0]\n")
        assert err == "constraints added to 1 workload; skipped: 1 daemon-set\n"
        assert (tmp_path / "web.yaml").read_text() == FIXED + DAEMON
        code, out, _ = run("check", "--config", "policy", "--add-defaults", "--write", "web.yaml")
        assert (code, out) == (0, "")
        assert (tmp_path / "web.yaml").read_text() == FIXED + DAEMON

    def test_what_the_text_cannot_take(self, add, tmp_path):
        code, out, err = add("--add-defaults", "--write", "web.yaml", web=WEB + FLOW)
        assert (code, out) == (1, "web.yaml:9: Deployment shop/web: zone[0]\n")
        assert err == (
            "web.yaml:16:99: error: StatefulSet db: zone[0] not added: the pod spec is written in flow style ({…})\n"
            "constraints added to 1 workload\n"
        )
        assert (tmp_path / "web.yaml").read_text() == FIXED + FLOW

    def test_what_cannot_be_read(self, add, tmp_path):
        code, out, _ = add("--add-defaults", "--write", "web.yaml", web=WEB + BROKEN)
        assert (code, out) == (3, "web.yaml:9: Deployment shop/web: zone[0]\n")
        assert (tmp_path / "web.yaml").read_text() == FIXED + BROKEN

    def test_what_cannot_be_decoded(self, add):
        _, _, err = add("--add-defaults", "--write", "web.yaml", web=WEB.replace("replicas: 3", "replicas: three"))
        assert err == "constraints added to 0 workloads; skipped: 1 unreadable\n"

    def test_what_cannot_be_written(self, add, monkeypatch):
        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(atomic_write, "replace_file", full)
        code, out, err = add("--add-defaults", "--write", "web.yaml")
        assert (code, out) == (1, "")
        assert err == ("web.yaml: error: not written: no space left on device\nconstraints added to 0 workloads\n")

    def test_a_directory(self, add, tmp_path):
        (tmp_path / "more").mkdir()
        (tmp_path / "more" / "web.json").write_text(json.dumps(yaml.safe_load(WEB)))
        code, out, _ = add("--add-defaults", "--write", ".")
        assert (code, out.splitlines()) == (
            0,
            ["./web.yaml:9: Deployment shop/web: zone[0]", "./more/web.json:1: Deployment shop/web: zone[0]"],
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--write", "a"), "--write needs --fix or --add-defaults"),
        (
            ("--fix", "--add-defaults", "a"),
            "--fix and --add-defaults may change the same lines: run one first, then the other",
        ),
        (("--fix", "-o", "json", "a"), "--fix prints a diff: remove -o"),
        (("--add-defaults", "-o", "json", "a"), "--add-defaults prints a diff: remove -o"),
        (("--fix", "--write", "-"), "--write needs files: remove it to print the changes of the standard input"),
        (
            ("--config", "off", "--add-defaults", "-"),
            "add --config FILE with defaults.defaultConstraints and a defaults.mode other than off",
        ),
        (
            ("--config", "none", "--add-defaults", "--write", "a"),
            "add --config FILE with defaults.defaultConstraints and a defaults.mode other than off",
        ),
    ],
)
def test_usage(add, tmp_path, arguments, message):
    (tmp_path / "off").write_text(POLICY.replace("observe", '"off"'))
    (tmp_path / "none").write_text("\n".join(POLICY.splitlines()[:2]))
    code, out, err = add(*arguments)
    assert (code, out) == (2, "")
    assert message in " ".join(err.split())


@pytest.mark.parametrize(
    ("defaults", "told"),
    [
        (
            "hardWhenDomains: 3",
            "nodes-unknown: the defaults depend on the nodes of the cluster; add --cluster or --snapshot FILE\n",
        ),
        (
            "topologyKey: kubernetes.io/hostname",
            "In a cluster with Karpenter, the webhook omits constraints over kubernetes.io/hostname\n",
        ),
    ],
)
def test_what_only_a_cluster_knows(add, tmp_path, defaults, told):
    name, _, value = defaults.partition(": ")
    policy = yaml.safe_load(POLICY)
    policy["defaults"]["defaultConstraints"][0][name] = int(value) if value.isdigit() else value
    (tmp_path / "other").write_text(json.dumps(policy))
    assert add("--config", "other", "--add-defaults", "web.yaml")[2].endswith(told)
    policy["defaults"]["acceptNodeGrowth"] = True
    (tmp_path / "other").write_text(json.dumps(policy))
    assert ("hostname:" in add("--config", "other", "--add-defaults", "web.yaml")[2]) is False
    node = "---\napiVersion: v1\nkind: Node\nmetadata: {name: ZONE, labels: {topology.kubernetes.io/zone: ZONE}}\n"
    nodes = "".join(node.replace("ZONE", zone) for zone in "abc")
    assert (
        add("--config", "other", "--add-defaults", "web.yaml", web=WEB + nodes)[2]
        == "constraints can be added to 1 workload\n"
    )


@pytest.mark.parametrize(
    ("namespace", "arguments", "selected"),
    [
        ("shop", (), {"app": "web", "tier": "front"}),
        ("other", (), {"app": "web"}),
        ("", (), {"app": "web"}),
        ("", ("-n", "shop"), {"app": "web", "tier": "front"}),
    ],
)
def test_services_of_the_same_namespace_count(add, namespace, arguments, selected, tmp_path):
    web = WEB.replace("metadata: {labels: {app: web}}", "metadata: {labels: {app: web, tier: front}}")
    service = f'---\napiVersion: v1\nkind: Service\nmetadata: {{name: web, namespace: "{namespace}"}}\n'
    add("--add-defaults", "--write", "web.yaml", *arguments, web=f"{web}{service}spec: {{selector: {{tier: front}}}}\n")
    [deployment, _] = yaml.safe_load_all((tmp_path / "web.yaml").read_text())
    [constraint] = deployment["spec"]["template"]["spec"]["topologySpreadConstraints"]
    assert constraint["labelSelector"]["matchLabels"] == selected


HARD = """\
apiVersion: config.evenspread.io/v1alpha1
kind: SpreadPolicy
capacity: fixed
messages: {detail: own-namespace}
defaults:
  defaultConstraints:
  - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}
"""


def nodes(*zones):
    """A node of each zone; one of them tainted where a ~ stands before it."""
    for number, zone in enumerate(zones):
        labels = {"topology.kubernetes.io/zone": zone.lstrip("~"), "kubernetes.io/hostname": f"n{number}"}
        taints = [{"key": "only", "value": "x", "effect": "NoSchedule"}] if zone.startswith("~") else []
        status = {"allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"}}
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n{number}", "labels": labels},
            "spec": {"taints": taints},
            "status": status,
        }


@pytest.mark.parametrize(
    ("zones", "told"),
    [
        pytest.param(["a", "b", "c"], [], id="all fit"),
        pytest.param(
            ["a", "b", "~c"],
            [
                (
                    "web.yaml:9: warning: Deployment shop/web: with the added constraints at most 2 of 3 fit: "
                    "tainted zone c stays at 0"
                )
            ],
            id="one zone takes no pod",
        ),
        pytest.param(
            [],
            [
                (
                    "note: DoNotSchedule can leave pods Pending. This was not checked (no nodes known); "
                    "add --cluster or --snapshot FILE"
                ),
            ],
            id="no cluster",
        ),
    ],
)
def test_what_hard_defaults_do_to_the_pods(run, tmp_path, zones, told):
    (tmp_path / "policy").write_text(HARD)
    (tmp_path / "web.yaml").write_text(WEB)
    header = {"kind": "Snapshot", "kubernetesVersion": "v1.37.1", "takenAt": "2026-11-21T00:00:00Z"}
    (tmp_path / "cluster").write_text("\n".join(map(json.dumps, [header, *nodes(*zones)])))
    cluster = ("--snapshot", "cluster") if zones else ()
    _, _, err = run("check", "--config", "policy", *cluster, "--add-defaults", "web.yaml")
    assert [line for line in err.splitlines() if "warning:" in line or "note: Do" in line] == told
