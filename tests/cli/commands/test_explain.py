"""``evenspread explain``: the page, the JSON, the exit codes, and where its pods come from."""

import json
import re
import sys
from pathlib import Path

import pytest
from cli.snapshots import HOSTNAME, node, owned, running, snapshot, waiting
from cluster.api import NOT_INSTALLED, FakeApi
from manifest import constraint, workload

ROOT = Path(__file__).parents[3]
EXAMPLE = str(ROOT / "webhook" / "example" / "cluster.jsonl")
ZONE, HOST, SOFT = "zone hard 1 app=web", "hostname hard 1 app=web", "zone soft 1 app=web"
REVISION = f"{ZONE} keys:pod-template-hash"
TAINTED = "z1: a=1 | z2: ~b=0"
EMPTY = "  only an empty domain admits it:"
EXPRESSIONS = constraint(ZONE) | {
    "labelSelector": {
        "matchExpressions": [
            {"key": "app", "operator": "In", "values": ["web"]},
            {"key": "x", "operator": "DoesNotExist"},
        ]
    }
}

PAGE = """\
Pod shop/new: no node admits it
0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 node(s) didn't match pod topology spread constraints.
cause: spread (without its DoNotSchedule constraints 2 nodes would admit it)
zone[0]: zone z2 (1 node, tainted dedicated:NoSchedule) stays at 0 pods, and
  maxSkew 1 lets no other zone have more than 1

zone[0]  DoNotSchedule, maxSkew 1  spec.topologySpreadConstraints[0]
  counts app=web
  only an empty domain admits it: minimum 0 + maxSkew 1 - 1 for this pod
  DOMAIN  PODS           ITS NODES
  z2         0  minimum   1 tainted dedicated:NoSchedule
  z1         1  too many  2 over the limit

zone[1]  ScheduleAnyway, maxSkew 1  spec.topologySpreadConstraints[1]
  counts app=web
  a preference that rejects no node; minimum 0
  DOMAIN  PODS           ITS NODES
  z2         0  minimum   1 tainted dedicated:NoSchedule
  z1         1            2 over the limit of zone[0]

NODES  FIRST FAILING FILTER
    2  PodTopologySpread: node(s) didn't match pod topology spread constraints
       a, c: over the limit of zone[0]
    1  TaintToleration: node(s) had untolerated taint(s)
       b: tainted dedicated:NoSchedule

fixes, smallest first; with each of them, a node admits this pod:
  add nodeTaintsPolicy: Honor                           2 nodes
  set maxSkew: 2                                        2 nodes
  remove zone[0]                                        2 nodes
  add toleration {key: dedicated, operator: Exists, effect: NoSchedule}  1 node
apply the first fix to Pod shop/new: the constraints of a Pod are immutable:
  delete it, then create it with the change

not evaluated: SchedulerConfiguration: disabled plugins, added node affinity,
  ignored resources, extenders
"""


@pytest.fixture
def ask(run, tmp_path):
    """Explain something of a snapshot: gives exit code, standard output, standard error."""

    def ask(state, *arguments, objects=(), manifest=None, **more):
        file = tmp_path / "snapshot.jsonl"
        file.write_bytes(snapshot(state, *objects, **more))
        documents = manifest if isinstance(manifest, list) else [manifest] if manifest else []
        stdin = "\n---\n".join(json.dumps(each) for each in documents).encode()
        return run("explain", "--snapshot", str(file), *arguments, stdin=stdin)

    return ask


class TestThePage:
    def test_the_whole_of_it(self, ask):
        code, out, err = ask("z1: a=1 c | z2: ~b=0", "pod/new", "-n", "shop", objects=[waiting("new", ZONE, SOFT)])
        assert (code, err) == (1, "")
        assert out == PAGE

    def test_a_pod_that_fits(self, ask):
        code, out, _ = ask("z1: a=1 | z2: b=0", "pod/new", "-n", "shop", objects=[waiting("new", ZONE)])
        assert code == 0
        assert out.startswith("Pod shop/new: 1 of 2 nodes admits it\n\nzone[0]")
        assert "    1  none: this node admits the pod\n       b\n" in out
        assert "fix" not in out

    @pytest.mark.parametrize(
        ("state", "pod", "lines"),
        [
            pytest.param(
                "z1: a=1 | z2: b=0",
                waiting("new", ZONE, cpu="9"),
                [
                    "cause: capacity (no node the pod may use is large enough, even when empty)",
                    "changing only the pod's spread constraints does not help",
                    "  a larger node than b (needs 9 cpu, but no node has more than 4 cpu)",
                ],
                id="no node is large enough",
            ),
            pytest.param(
                "z1: a=1 | z2: ~b=0",
                waiting("new", ZONE, cpu="9"),
                [
                    "       a: short of cpu and over the limit of zone[0]",
                    "       b: tainted dedicated:NoSchedule and short of cpu",
                ],
                id="spread and room",
            ),
            pytest.param(
                "z1: ~a | z2: ~b",
                waiting("new", ZONE),
                [
                    "cause: other (without taints 2 nodes would admit it)",
                    "       a, b: tainted dedicated:NoSchedule",
                    "  add toleration {key: dedicated, operator: Exists, effect: NoSchedule}  2 nodes",
                ],
                id="taints",
            ),
            pytest.param(
                "z1: a=1 | z2: -b",
                waiting("new", ZONE),
                [
                    "zone[0]: zone z2 (1 node, cordoned) stays at 0 pods, and maxSkew 1 lets no other",
                    "  kubectl uncordon b",
                ],
                id="a cordon",
            ),
            pytest.param(
                "z1: a=1 | z2: b=1",
                waiting("new", ZONE + " minDomains:3"),
                [
                    "zone[0]: 2 zones, fewer than minDomains 3: the minimum is 0",
                    f"{EMPTY} minimum 0 (2 domains, minDomains 3) + maxSkew 1 - 1 for this pod",
                    "  z1         1  too many  1 over the limit",
                    "  set minDomains: 2                                            2 nodes",
                ],
                id="too few domains",
            ),
            pytest.param(
                "a b",
                waiting("new", ZONE),
                ["zone[0]: no node has the label zone", "  no node has the key topology.kubernetes.io/zone"],
                id="no zones",
            ),
            pytest.param(
                "z1: a | z2: b",
                waiting("new", "topology.kubernetes.io/zoen hard 1 app=web"),
                [
                    "zoen[0]: no node has the label zoen; nodes have topology.kubernetes.io/zone",
                    "  no node has the key topology.kubernetes.io/zoen; nodes have topology.kubernetes.io/zone",
                    "fixes, smallest first; with each of them, a node admits this pod:",
                    "  set topologyKey: topology.kubernetes.io/zone          2 nodes",
                ],
                id="a key that nodes have in other letters",
            ),
            pytest.param(
                "z1: a | b",
                waiting("new", "zone hard 1 app=web", "rack soft 1", nodeSelector={"kubernetes.io/hostname": "b"}),
                [
                    "zone[0]: no counted node has the label zone",
                    "  no node is eligible",
                    "  no node has the key rack",
                    "  counts nothing: no selector",
                ],
                id="no node counts",
            ),
            pytest.param(
                "z1: a=3 | z2: b=1",
                waiting("new", "zone hard 2 {}"),
                [
                    "  counts every pod",
                    "  a domain with at most 1 pod admits it: minimum 0 + maxSkew 2 - 1 for this pod",
                ],
                id="an empty selector",
            ),
            pytest.param(
                "z1: a=3 | z2: ~b=1",
                waiting("new", EXPRESSIONS),
                ["  counts app=web, no label x"],
                id="expressions",
            ),
            pytest.param(
                "z1: a=3 | z2: ~b=1",
                waiting("new", "zone hard 0 app=web"),
                ["  only an empty domain admits it: minimum 1 + maxSkew 0 - 1 for this pod"],
                id="a skew of nothing",
            ),
            pytest.param(
                "z1: a=1 | z2: ~b=0",
                waiting("new", "zone hard 1 app=db"),
                ["  a domain with at most 1 pod admits it: minimum 0 + maxSkew 1, which does not count this pod"],
                id="pods that are others",
            ),
            pytest.param(
                "z1: a | z2: ~b",
                waiting("new", "zone hard -1 app=web"),
                ["  no domain admits the pod: minimum 0 + maxSkew -1 - 1 for this pod is below 0"],
                id="a skew below nothing",
            ),
        ],
    )
    def test_what_it_says(self, ask, state, pod, lines):
        _, out, _ = ask(state, "pod/new", "-n", "shop", objects=[pod])
        for line in lines:
            assert f"{line}\n" in out

    def test_room_on_a_node_that_others_fill(self, ask):
        others = [waiting(f"on-{name}", cpu="3", nodeName=name) for name in "ab"]
        for other in others:
            other["metadata"]["labels"] = {"app": "other"}
        objects = [*others, waiting("new", ZONE, cpu="2")]
        _, out, _ = ask("z1: a=1 | z2: b=0", "pod/new", "-n", "shop", objects=objects)
        assert "cause: capacity (with free capacity 1 node would admit it)\n" in out
        assert "change the cluster:\n  free capacity on b (needs 2 cpu: 1 cpu free on b)\n" in out

    def test_many_domains_share_lines(self, ask):
        names = " ".join(f"n{number:02}=1" for number in range(30))
        _, out, _ = ask(f"z1: {names} | z2: ~x=0 ~y=0", "pod/new", "-n", "shop", objects=[waiting("new", HOST)])
        assert (
            "  x and 1 more        0  minimum   1 tainted dedicated:NoSchedule\n"
            "  n00 and 29 more     1  too many  1 over the limit\n" in out
        )
        assert (
            "   30  PodTopologySpread: node(s) didn't match pod topology spread constraints\n       n00, n01, n02, "
            in out
        )
        assert max(map(len, out.splitlines()[2:])) <= 80

    def test_many_reasons_of_one_filter_are_cut(self, ask):
        nodes = [node(f"n{number}") for number in range(10)]
        for number, each in enumerate(nodes):
            each["spec"]["taints"] = [{"key": f"k{number}", "effect": "NoSchedule"}]
        _, out, _ = ask("", "pod/new", "-n", "shop", objects=[*nodes, waiting("new")])
        assert "       n7: tainted k7:NoSchedule\n       and 2 more nodes\n" in out

    def test_what_has_no_better_name_is_not_said_twice(self, ask):
        missing = waiting("new", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}])
        _, out, _ = ask("a", "pod/new", "-n", "shop", objects=[missing])
        assert '    1  VolumeRestrictions: persistentvolumeclaim "data" not found\n       a\n' in out

    def test_a_long_table_is_cut(self, ask):
        zones = " | ".join(f"z{number:02}: n{number}={number}" for number in range(1, 26))
        _, out, _ = ask(f"{zones} | z99: ~x=0", "pod/new", "-n", "shop", objects=[waiting("new", ZONE)])
        assert "  and 6 more lines\n" in out

    def test_many_reasons_are_cut(self, ask):
        """Before 1.35 the reason names the taint."""
        nodes = [node(f"n{number}", "z1") for number in range(25)]
        for number, each in enumerate(nodes):
            each["spec"]["taints"] = [{"key": f"k{number:02}", "effect": "NoSchedule"}]
        code, out, _ = ask("", "pod/new", "-n", "shop", objects=[*nodes, waiting("new")], version="v1.34.0")
        assert code == 1
        assert (
            "    1  TaintToleration: node(s) had untolerated taint {k00: }\n       n0: tainted k00:NoSchedule\n" in out
        )
        assert "       and 5 more reasons\n" in out

    def test_names_from_outside_are_bounded_and_printable(self, ask):
        state = f"{'z' * 70}\x1b[31m: a=1 | z2: ~{'n' * 300}=0"
        _, out, _ = ask(state, "pod/new", "-n", "shop", objects=[waiting("new", ZONE)])
        assert "\x1b" not in out
        assert f"{'z' * 39}…" in out
        assert f"       {'n' * 39}…: tainted dedicated:NoSchedule\n" in out

    @pytest.mark.parametrize(
        ("more", "note"),
        [
            (
                {"schedulingGates": [{"name": "example.com/wait"}]},
                "note: scheduling gates (example.com/wait): the scheduler ignores the pod until\n  they are removed\n",
            ),
            (
                {"schedulerName": "volcano"},
                "note: volcano schedules this pod and may decide differently (see schedulerNames)\n",
            ),
            (
                {"priority": 5},
                "note: preemption is not simulated: the scheduler may evict pods of lower\n  priority for this pod\n",
            ),
        ],
        ids=["gates", "another scheduler", "priority"],
    )
    def test_what_the_answer_leaves_out_is_said(self, ask, more, note):
        _, out, _ = ask(TAINTED, "pod/new", "-n", "shop", objects=[waiting("new", ZONE, **more)])
        assert note in out

    @pytest.mark.parametrize(
        ("version", "operator", "told"),
        [
            ("v1.33.13", "DoesNotExist", False),
            ("v1.34.0", "DoesNotExist", True),
            ("v1.36.3", "DoesNotExist", True),
            ("v1.37.1", "DoesNotExist", False),
            ("v1.36.3", "Exists", False),
        ],
    )
    def test_a_release_that_widens_a_namespace_selector(self, ask, version, operator, told):
        selector = {"matchExpressions": [{"key": "team", "operator": operator}]}
        apart = {
            "topologyKey": HOSTNAME,
            "labelSelector": {"matchLabels": {"app": "web"}},
            "namespaceSelector": selector,
        }
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
        red = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"team": "red"}}}
        new = waiting("new", ZONE, affinity={"podAntiAffinity": required})
        _, out, _ = ask("z1: a=1", "pod/new", "-n", "shop", "-o", "json", objects=[red, new], version=version)
        note = (
            "podAntiAffinity[0] matches pods of every namespace: Kubernetes 1.34 to 1.36 ignores a namespaceSelector"
            " that would match a namespace without labels; list the namespaces instead (other releases match only the"
            " selected ones)"
        )
        answer = json.loads(out)
        assert answer["notes"] == [note] * told
        # The namespace has the label that the selector excludes, so its pod should count for neither.
        apart_text = "in its hostname (pod anti-affinity)"
        assert any(apart_text in each["text"] for each in answer["details"]) is (told or operator == "Exists")

    def test_a_priority_helps_nothing_where_no_pod_that_leaves_would(self, ask):
        _, out, _ = ask("z1: ~a", "pod/new", "-n", "shop", objects=[waiting("new", ZONE, priority=5)])
        assert "preemption" not in out

    def test_a_pod_on_its_way_out(self, ask):
        leaving = waiting("new", ZONE)
        leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        _, out, _ = ask(TAINTED, "pod/new", "-n", "shop", objects=[leaving])
        assert "note: the pod is being deleted: the scheduler ignores it\n" in out

    def test_a_selector_that_cannot_be_read_ends_the_attempt_without_a_sentence(self, ask):
        odd = constraint(ZONE) | {"labelSelector": {"matchLabels": {"app": "a b"}}}
        _, out, _ = ask("z1: a", "pod/new", "-n", "shop", objects=[waiting("new", odd)])
        assert out.startswith(
            "Pod shop/new: no node admits it\ncause: spread (without its DoNotSchedule constraints 1 node "
        )
        assert "no change of one field was found" not in out

    def test_colours_only_on_a_terminal(self, ask, monkeypatch):
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.setenv("TERM", "xterm")
        _, out, _ = ask(TAINTED, "pod/new", "-n", "shop", objects=[waiting("new", ZONE)])
        assert "\033[31mno node admits it\033[0m" in out


class TestJson:
    def test_the_shape_that_is_promised(self, ask):
        code, out, err = ask(TAINTED, "pod/new", "-n", "shop", "-o", "json", objects=[waiting("new", ZONE, SOFT)])
        assert (code, err) == (1, "")
        assert json.loads(out) == {
            "message": "0/2 nodes are available: 1 node(s) didn't match pod topology spread constraints, "
            "1 node(s) had untolerated taint(s).",
            "cause": "spread",
            "nodes": {
                "a": {
                    "code": "Unschedulable",
                    "plugin": "PodTopologySpread",
                    "reasons": ["node(s) didn't match pod topology spread constraints"],
                },
                "b": {
                    "code": "UnschedulableAndUnresolvable",
                    "plugin": "TaintToleration",
                    "reasons": ["node(s) had untolerated taint(s)"],
                },
            },
            "constraints": [
                {
                    "topologyKey": "topology.kubernetes.io/zone",
                    "whenUnsatisfiable": when,
                    "maxSkew": 1,
                    "minDomains": None,
                    "domains": {"z1": 1, "z2": 0},
                    "globalMinimum": 0,
                    "name": f"zone[{place}]",
                    "meant": None,
                    "counted": 1,
                    "foreign": None,
                }
                for place, when in enumerate(("DoNotSchedule", "ScheduleAnyway"))
            ],
            "notEvaluated": [
                "SchedulerConfiguration: disabled plugins, added node affinity, ignored resources, extenders"
            ],
            "title": "Pod shop/new",
            "pod": {"namespace": "shop", "name": "new", "exists": True},
            "notes": [],
            "details": [
                {"plugin": "TaintToleration", "text": "tainted dedicated:NoSchedule", "nodes": ["b"]},
                {"plugin": "PodTopologySpread", "text": "over the limit of zone[0]", "nodes": ["a"]},
            ],
            "ways": [],
            "fixes": [
                {
                    "text": text,
                    "nodes": ["a"],
                    "changes": [{"path": f"spec.topologySpreadConstraints[0]{field}", "value": value}],
                    "fits": None,
                    "patch": None,
                    "command": None,
                }
                for text, field, value in (
                    ("add nodeTaintsPolicy: Honor", ".nodeTaintsPolicy", "Honor"),
                    ("set maxSkew: 2", ".maxSkew", 2),
                    ("remove zone[0]", "", None),
                )
            ],
            "reliefs": [
                {
                    "what": "toleration",
                    "text": "add toleration {key: dedicated, operator: Exists, effect: NoSchedule}",
                    "nodes": ["b"],
                    "tolerations": [{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}],
                }
            ],
            "edit": {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": "shop",
                "name": "new",
                "path": None,
                "note": "the constraints of a Pod are immutable: delete it, then create it with the change",
            },
        }

    def test_a_node_that_admits_the_pod(self, ask):
        code, out, _ = ask("z1: a", "pod/new", "-n", "shop", "-o", "json", objects=[waiting("new")])
        found = json.loads(out)
        assert (code, found["cause"], found["message"]) == (0, None, "")
        assert found["nodes"] == {"a": {"code": "Success", "plugin": "", "reasons": []}}

    def test_several_pods_are_a_list_and_yaml_has_no_anchors(self, ask):
        manifests = [workload("Deployment", "app=web", ZONE), workload("Pod", "app=web")]
        code, out, _ = ask(TAINTED, "-", "-o", "json", manifest=manifests)
        assert (code, [each["cause"] for each in json.loads(out)]) == (1, ["spread", None])
        _, out, _ = ask("z1: a=1 c | z2: ~b=0", "-", "-o", "yaml", manifest=manifests[0])
        assert out.startswith("message: ")
        assert "&id" not in out

    def test_the_pods_that_wait_by_group(self, ask):
        pods = [waiting(name, ZONE) for name in ("x", "y")]
        code, out, _ = ask(TAINTED, "--pending", "-o", "json", objects=pods)
        [group] = json.loads(out)
        assert (code, group["pods"], group["cause"]) == (1, ["shop/x", "shop/y"], "spread")
        assert group["fixes"][0]["text"] == "add nodeTaintsPolicy: Honor"


class TestWhatAFixDoesToAllReplicas:
    FITS = "    all 3 replicas then fit in every order"

    def below(self, out):
        """What stands below the fixes, by the first word that tells them apart."""
        lines = out.splitlines()
        start = next(number for number, line in enumerate(lines) if line.startswith("fixes, smallest first"))
        return [line for line in lines[start:] if line.startswith("    ") and "replicas" in line]

    def test_of_a_manifest(self, ask):
        _, out, _ = ask(TAINTED, "-", manifest=workload("Deployment", "app=web", ZONE, replicas=3))
        assert self.below(out) == [self.FITS, "    2 of 3 replicas then fit", self.FITS]

    def test_of_a_pod_that_waits(self, ask):
        deployment = workload("Deployment", "app=web", ZONE, replicas=3)
        objects = [
            deployment,
            owned("ReplicaSet", "web-1", "Deployment/web"),
            waiting("new", ZONE, owner="ReplicaSet/web-1"),
        ]
        _, out, _ = ask(TAINTED, "pod/new", "-n", "shop", objects=objects)
        assert self.below(out) == [self.FITS, "    2 of 3 replicas then fit", self.FITS]
        _, out, _ = ask(TAINTED, "pod/new", "-n", "shop", "-o", "json", objects=objects)
        assert [each["fits"] for each in json.loads(out)["fixes"]] == [
            {"min": 3, "max": 3, "wanted": 3},
            {"min": 2, "max": 2, "wanted": 3},
            {"min": 3, "max": 3, "wanted": 3},
        ]

    @pytest.mark.parametrize(
        "manifest",
        [
            pytest.param(workload("Deployment", "app=web", ZONE, replicas=1), id="a single pod"),
            pytest.param(workload("Deployment", "app=web", ZONE, selector=""), id="pods that nobody selects"),
            pytest.param(
                workload(
                    "StatefulSet",
                    "app=web",
                    ZONE,
                    spec={"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {}}]},
                ),
                id="volumes that are not known",
            ),
        ],
    )
    def test_is_not_said_where_it_is_not_known(self, ask, manifest):
        assert self.below(ask(TAINTED, "-", manifest=manifest)[1]) == []


class TestManifests:
    def test_a_workloads_next_pod(self, ask):
        code, out, err = ask(TAINTED, "-", manifest=workload("Deployment", "app=web", ZONE))
        assert (code, err) == (1, "")
        assert out.startswith("the next pod of Deployment shop/web: no node admits it\n")
        assert "DoNotSchedule, maxSkew 1  spec.template.spec.topologySpreadConstraints[0]\n" in out
        assert "AdmissionPlugins: " in out

    def test_what_admission_adds_is_judged_and_what_it_refuses_is_said(self, ask):
        of = {"namespace": "shop"}
        item = {"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}, "max": {"cpu": "3"}}
        ranges = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small", **of}}
        high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 7}
        known = [{**ranges, "spec": {"limits": [item]}}, high]
        manifest = workload("Deployment", "app=web")
        spec = manifest["spec"]["template"]["spec"]
        spec |= {"containers": [{"name": "c"}], "priorityClassName": "high"}
        code, out, _ = ask("z1: a=0", "-", manifest=manifest, objects=known, cpu="500m")
        assert (code, "cause: capacity" in out, "PriorityClass: " in out) == (1, True, False)
        code, out, _ = ask("z1: a=0", "-", "-o", "json", manifest=manifest, objects=known[:1], cpu="4")
        told = json.loads(out)
        assert (code, told["refused"][0]["message"]) == (1, "forbidden: no PriorityClass with name high was found")
        assert [line for line in told["notEvaluated"] if line.startswith(("LimitRange", "PriorityClass"))] == [
            "PriorityClass: priority and preemption of a new pod"
        ]
        spec["containers"] = [{"name": "c", "resources": {"limits": {"cpu": "4"}}}]
        code, out, _ = ask("z1: a=0", "-", manifest=manifest, objects=known, cpu="9")
        assert (code, "maximum cpu usage per Container is 3, but limit is 4" in " ".join(out.split())) == (1, True)

    def test_a_file(self, ask, tmp_path):
        file = tmp_path / "pod.yaml"
        file.write_text(json.dumps(workload("Pod", "app=web", ZONE)))
        code, out, _ = ask(TAINTED, str(file))
        assert (code, out.splitlines()[0]) == (1, "Pod shop/web: no node admits it")

    def test_a_namespace_from_the_option(self, ask):
        manifest = workload("Pod", "app=web", ZONE, meta={"namespace": ""})
        assert ask(TAINTED, "-", "-n", "shop", manifest=manifest)[0] == 1
        code, out, _ = ask(TAINTED, "-", manifest=manifest)
        assert (code, out.splitlines()[0]) == (0, "Pod default/web: 1 of 2 nodes admits it")

    @pytest.mark.parametrize(
        ("template", "fits"),
        [
            pytest.param(("app=web", REVISION), False, id="of the running revision"),
            pytest.param(("app=web tier=front", REVISION), True, id="another label"),
            pytest.param(("app=web", f"{REVISION} nodeTaintsPolicy:Ignore"), True, id="another constraint"),
        ],
    )
    def test_is_a_new_revision_only_if_it_changes(self, ask, run, tmp_path, template, fits):
        """`simulate` says the same: one pod of the running revision is in zone z1, and z2 takes none."""
        made = running("web-1-x", "a")
        made["metadata"]["labels"]["pod-template-hash"] = "1"
        selector = {"matchLabels": {"app": "web", "pod-template-hash": "1"}}
        objects = [
            made,
            workload("Deployment", "app=web", REVISION, replicas=2),
            owned("ReplicaSet", "web-1", "Deployment/web", replicas=1, selector=selector),
        ]
        manifest = workload("Deployment", *template, replicas=2)
        assert ask("z1: a | z2: ~b", "-", manifest=manifest, objects=objects)[0] == (not fits)
        (tmp_path / "s.jsonl").write_bytes(snapshot("z1: a | z2: ~b", *objects))
        arguments = ("simulate", "-", "--snapshot", str(tmp_path / "s.jsonl"))
        assert run(*arguments, stdin=json.dumps(manifest).encode())[0] == (not fits)

    def test_several_objects_one_after_the_other(self, ask):
        code, out, _ = ask(TAINTED, "-", manifest=[workload("Pod", "app=web", ZONE), workload("Job", "app=web")])
        assert code == 1
        assert "\n\nthe next pod of Job shop/web: 1 of 2 nodes admits it\n" in out

    @pytest.mark.parametrize(
        ("manifest", "code", "told"),
        [
            (
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}},
                3,
                "no pod and no workload in this file",
            ),
            ({"kind": "Pod"}, 3, "not a Kubernetes object: it has no apiVersion"),
            (workload("Pod", "app=web", ZONE) | {"spec": {"containers": 7}}, 3, "cannot be handled as a Pod"),
        ],
        ids=["no workload", "no object", "another type"],
    )
    def test_what_cannot_be_judged(self, ask, manifest, code, told):
        for output in ("text", "json"):
            found, out, err = ask(TAINTED, "-", "-o", output, manifest=manifest)
            assert (found, out) == (code, "")
            assert told in err

    def test_a_part_that_cannot_be_read_outweighs_the_rest(self, ask):
        code, out, err = ask("z1: a", "-", manifest=[workload("Pod", "app=web"), {"kind": "Pod"}])
        assert code == 3
        assert out.startswith("Pod shop/web: 1 of 1 node admit")
        assert "no apiVersion" in err


class TestObjectsOfTheCluster:
    def test_a_workload_with_pending_pods_is_its_oldest(self, ask):
        objects = [
            owned("Deployment", "web"),
            owned("ReplicaSet", "web-1", "Deployment/web"),
            waiting("late", ZONE, owner="ReplicaSet/web-1", since="2026-01-02T00:00:00Z"),
            waiting("early", ZONE, owner="ReplicaSet/web-1", since="2026-01-01T00:00:00Z"),
            waiting("other", ZONE, owner="ReplicaSet/db-1", since="2025-01-01T00:00:00Z"),
        ]
        for name in ("deployment/web", "deploy/web", "rs/web-1", "deployments.apps/web"):
            code, out, _ = ask(TAINTED, name, "-n", "shop", objects=objects)
            assert code == 1
            assert out.startswith("Pod shop/early (1 of 2 pending pods of ")

    def test_a_workload_without_is_its_next_pod(self, ask):
        deployment = workload("Deployment", "app=web", ZONE)
        code, out, _ = ask(TAINTED, "deployment/web", "-n", "shop", objects=[deployment])
        assert (code, out.splitlines()[0]) == (1, "the next pod of Deployment shop/web: no node admits it")

    def test_a_pod_that_runs_has_nothing_to_explain(self, ask):
        code, out, _ = ask(TAINTED, "pod/a-0", "-n", "shop")
        assert (code, out) == (0, "Pod shop/a-0: bound to a\n")

    @pytest.mark.parametrize(
        ("arguments", "told"),
        [
            (("pod/absent", "-n", "shop"), "no Pod shop/absent"),
            (("pod/absent",), "no Pod default/absent; use -n for another namespace"),
            (("sts/absent", "-n", "shop"), "no StatefulSet shop/absent"),
        ],
    )
    def test_what_is_not_there(self, ask, arguments, told):
        code, out, err = ask(TAINTED, *arguments)
        assert (code, out) == (3, "")
        assert err.rstrip().endswith(f"snapshot.jsonl: {told}")

    def test_a_broken_object(self, ask):
        broken = workload("Rollout", "app=web", {"maxSkew": "x"})
        code, _, err = ask(TAINTED, "rollout/web", "-n", "shop", objects=[broken])
        assert code == 3
        assert "Rollout shop/web: " in err

    def test_the_bundled_example(self, run):
        code, out, err = run("explain", "--snapshot", EXAMPLE, "deploy/ledger", "-n", "payments")
        assert (code, err) == (1, "")
        told = (
            "zone[0]: zone eu-central-1c (1 cordoned, 1 short of cpu, 1 tainted\n"
            "  dedicated=gpu:NoSchedule) stays at 1 pod, and maxSkew 1 lets no other zone\n  have more than 2\n"
        )
        assert told in out


class TestALiveCluster:
    def test_pods_that_wait(self, run, tmp_path):
        with FakeApi() as api:
            for name, zone, taints in (("n1", "a", []), ("n2", "b", [{"key": "x", "effect": "NoSchedule"}])):
                labels = {"topology.kubernetes.io/zone": zone}
                allocatable = {"cpu": "4", "memory": "8Gi", "pods": "110"}
                api.put(
                    "nodes",
                    name,
                    metadata={"labels": labels},
                    spec={"taints": taints},
                    status={"allocatable": allocatable},
                )
            pod = workload("Pod", "app=web", ZONE)
            api.put("pods", "one", "shop", metadata={"labels": {"app": "web"}}, spec={"nodeName": "n1"})
            api.put("pods", "two", "shop", metadata={"labels": {"app": "web"}}, spec=pod["spec"])
            file = api.kubeconfig(tmp_path)
            code, out, err = run("explain", "--kubeconfig", file, "--pending", "-A")
            assert (code, err) == (1, NOT_INSTALLED)
            assert out.startswith("1 Pending pod in all namespaces: 1 blocked by spread constraints\n")
            # Pasted as it stands it asks the same cluster, as the same user.
            assert out.endswith(f"details of a pod: evenspread explain pod/two -n shop --kubeconfig {file}\n")
            _, out, _ = run("explain", "--kubeconfig", file, "--context", "x", "--as", "a b", "--pending", "-A")
            assert out.endswith(f" -n shop --kubeconfig {file} --context x --as 'a b'\n")
            code, out, _ = run("explain", "--kubeconfig", file, "pod/two", "-n", "shop")
            assert (code, out.splitlines()[0]) == (1, "Pod shop/two: no node admits it")
            code, _, err = run("explain", "--kubeconfig", file, "pod/absent", "-n", "shop")
            assert (code, err) == (3, f"{NOT_INSTALLED}evenspread: cluster x: no Pod shop/absent\n")
            _, _, err = run("explain", "--kubeconfig", file, "pod/two")
            assert err == f"{NOT_INSTALLED}evenspread: cluster x: no Pod default/two; use -n for another namespace\n"

    @pytest.mark.parametrize("waits", [False, True])
    def test_a_workload_of_a_list(self, run, tmp_path, waits):
        """Items of a list have no kind of their own."""
        made, owner = workload("Deployment", "app=web", ZONE), {"apiVersion": "apps/v1", "controller": True, "uid": "u"}
        with FakeApi() as api:
            zone = {"labels": {"topology.kubernetes.io/zone": "a"}}
            api.put("nodes", "n1", metadata=zone, status={"allocatable": {"pods": "9"}})
            api.put("deployments", "web", "shop", spec=made["spec"])
            if waits:
                above, between = ({**owner, "kind": kind, "name": "web"} for kind in ("Deployment", "ReplicaSet"))
                api.put("replicasets", "web", "shop", metadata={"ownerReferences": [above]})
                api.put("pods", "web-x", "shop", metadata={"ownerReferences": [between]}, spec={})
            code, out, err = run("explain", "--kubeconfig", api.kubeconfig(tmp_path), "deployment/web", "-n", "shop")
        title = "Pod shop/web-x (1 of 1 pending pods of {})" if waits else "the next pod of {}"
        assert (code, err) == (0, NOT_INSTALLED)
        assert out.startswith(f"{title.format('Deployment shop/web')}: 1 of 1 node admits it\n")

    def test_nodes_that_may_not_be_read_are_no_verdict(self, run, tmp_path):
        with FakeApi() as api:
            api.forbidden.add("nodes")
            file = api.kubeconfig(tmp_path)
            code, out, err = run("explain", "--kubeconfig", file, "--pending")
        assert (code, out) == (4, "")
        assert "cluster x: nodes: 403 Forbidden: explain needs them\n" in err

    def test_what_else_may_not_be_read_is_not_evaluated(self, run, tmp_path):
        with FakeApi() as api:
            api.put("nodes", "n1", status={"allocatable": {"pods": "9"}})
            api.put("pods", "two", "shop", spec={})
            api.forbidden.add("services")
            file = api.kubeconfig(tmp_path)
            code, out, _ = run("explain", "--kubeconfig", file, "pod/two", "-n", "shop", "-o", "json")
        assert code == 0
        assert any(each.startswith("services: 403 Forbidden: ") for each in json.loads(out)["notEvaluated"])


def test_the_schedulers_configuration_counts(ask, tmp_path):
    scheduler = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"filter": {"disabled": [{"name": "TaintToleration"}]}}}],
    }
    policy = {
        "apiVersion": "config.evenspread.io/v1alpha1",
        "kind": "SpreadPolicy",
        "schedulerConfiguration": "scheduler.yaml",
    }
    (tmp_path / "scheduler.yaml").write_text(json.dumps(scheduler))
    (tmp_path / "policy.yaml").write_text(json.dumps(policy))
    for arguments, code in ((("pod/new",), 0), (("--pending",), 0)):
        more = ("-n", "shop", "--config", str(tmp_path / "policy.yaml"))
        found, out, err = ask(TAINTED, *arguments, *more, objects=[waiting("new", ZONE)])
        assert (found, err) == (code, "")
    assert "1 pod with a fitting node: Pod shop/new" in out


def test_a_constraint_of_the_cluster_is_named_as_such(ask, tmp_path):
    args = {"defaultingType": "List", "defaultConstraints": [{**constraint("zone hard 1"), "labelSelector": None}]}
    del args["defaultConstraints"][0]["labelSelector"]
    scheduler = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [{"name": "PodTopologySpread", "args": args}]}],
    }
    policy = {
        "apiVersion": "config.evenspread.io/v1alpha1",
        "kind": "SpreadPolicy",
        "schedulerConfiguration": "scheduler.yaml",
    }
    (tmp_path / "scheduler.yaml").write_text(json.dumps(scheduler))
    (tmp_path / "policy.yaml").write_text(json.dumps(policy))
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"}}
    service["spec"] = {"selector": {"app": "web"}}
    more = ("-n", "shop", "--config", str(tmp_path / "policy.yaml"))
    code, out, _ = ask(TAINTED, "pod/new", *more, objects=[service, waiting("new")])
    assert code == 1
    assert "zone  DoNotSchedule, maxSkew 1  one of the cluster's defaults\n" in out
    assert "  add nodeTaintsPolicy: Honor" not in out
    assert "  add toleration {key: dedicated, operator: Exists, effect: NoSchedule}  1 node\n" in out
    assert "not evaluated: SchedulerExtenders: " in out


class TestUsage:
    @pytest.mark.parametrize(
        ("arguments", "told"),
        [
            ((), "use one of FILE, KIND/NAME and --pending"),
            (("pod/x", "--pending"), "use only one of FILE, KIND/NAME and --pending"),
            (("pod/x", "-A"), "-A needs --pending"),
            (("absent.yaml",), "'absent.yaml' is neither a file nor a workload such as deployment/web"),
            (("configmap/x",), "'configmap/x' is neither a file nor"),
            (("pod/x/y",), "'pod/x/y' is neither a file nor"),
            (("pod", "x", "y"), "one object at a time"),
        ],
    )
    def test_what_is_asked_wrongly(self, ask, arguments, told):
        code, _, err = ask(TAINTED, *arguments)
        assert code == 2
        assert told in err

    def test_a_file_that_is_not_there_is_said_before_a_cluster_that_is_not(self, run):
        code, _, err = run("explain", "absent.yaml", "--kubeconfig", "absent")
        assert code == 2
        assert "'absent.yaml' is neither a file nor a workload" in err
        code, _, err = run("explain", "pod/x", "--kubeconfig", "absent")
        assert (code, err.partition(";")[0]) == (4, "evenspread: absent: no such kubeconfig")

    def test_kind_and_name_as_two_words(self, ask):
        objects = [waiting("new", ZONE)]
        assert ask(TAINTED, "pod", "new", "-n", "shop", objects=objects) == ask(
            TAINTED, "pod/new", "-n", "shop", objects=objects
        )

    def test_a_snapshot_without_nodes(self, ask):
        code, _, err = ask("", "--pending")
        assert code == 3
        assert "snapshot.jsonl: no nodes known: explain needs them\n" in err

    def test_without_a_cluster_the_kubeconfigs_is_asked(self, run, monkeypatch, tmp_path):
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.delenv("KUBECONFIG", raising=False)
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
        code, _, err = run("explain", "--pending")
        assert code == 4
        assert "no such kubeconfig; add --kubeconfig FILE, or read a file with --snapshot FILE" in err


def test_the_page_shows_what_it_prints(run, monkeypatch):
    """docs/explain.md runs on the bundled example from the root of the repository."""
    page = (ROOT / "docs" / "explain.md").read_text()
    shown = re.findall(r"```\n\$ evenspread ([^\n]*)\n(.*?)```", page, re.DOTALL)
    assert len(shown) == 2
    monkeypatch.chdir(ROOT)
    for command, printed in shown:
        assert run(*command.split())[1] == printed


class TestWhatToEdit:
    """A Deployment whose selector counts the pods of another: the page has the narrower one, and the command."""

    WIDE, OTHER = "app=web tier=front", "app=web tier=api"
    PATCH = (
        '[{"op":"test","path":"/spec/template/spec/topologySpreadConstraints/0/topologyKey",'
        '"value":"topology.kubernetes.io/zone"},{"op":"add","path":"/spec/template/spec/topologySpreadConstraints/0/'
        'labelSelector","value":{"matchLabels":{"app":"web","tier":"front"}}}]'
    )

    def objects(self):
        pod = waiting("new", ZONE, owner="ReplicaSet/web-1")
        pod["metadata"]["labels"] = {"app": "web", "tier": "front"}
        return [
            workload("Deployment", self.WIDE, ZONE, selector=self.WIDE),
            workload("Deployment", self.OTHER, selector=self.OTHER, meta={"name": "api"}),
            owned("ReplicaSet", "web-1", "Deployment/web", selector={"matchLabels": {"app": "web", "tier": "front"}}),
            pod,
        ]

    def test_the_page(self, ask):
        code, out, _ = ask("z1: a=3 | z2: ~b", "pod/new", "-n", "shop", objects=self.objects())
        assert code == 1
        assert (
            "zone[0]: zone z2 (1 node, tainted dedicated:NoSchedule) stays at 0 pods, and\n"
            "  maxSkew 1 lets no other zone have more than 1; 3 of 3 counted pods are not\n  from this workload\n"
        ) in out
        assert "  counts app=web\n  3 of 3 counted pods are not from this workload: Deployment api\n" in out
        assert (
            "fixes, smallest first; with each of them, a node admits this pod:\n"
            "  set labelSelector: {matchLabels: {app: web, tier: front}}  1 node\n"
        ) in out
        assert (
            f"to apply the first fix to Deployment shop/web:\n  kubectl patch deployment web -n shop --type=json -p "
            f"'{self.PATCH}'\n"
        ) in out

    def test_the_json_for_programs(self, ask):
        _, out, _ = ask("z1: a=3 | z2: ~b", "pod/new", "-n", "shop", "-o", "json", objects=self.objects())
        found = json.loads(out)
        assert (found["constraints"][0]["counted"], found["constraints"][0]["foreign"]) == (3, 3)
        assert found["edit"] == {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "namespace": "shop",
            "name": "web",
            "path": "spec.template.spec.topologySpreadConstraints",
            "note": "",
        }
        first = found["fixes"][0]
        assert first["patch"] == json.loads(self.PATCH)
        assert first["command"] == f"kubectl patch deployment web -n shop --type=json -p '{self.PATCH}'"

    def test_a_manifest_is_itself_what_to_edit(self, ask):
        _, out, _ = ask("z1: a=3 | z2: ~b", "-", manifest=self.objects()[0])
        assert "  set labelSelector: {matchLabels: {app: web, tier: front}}  1 node\n" in out
        assert "kubectl patch" not in out

    def test_a_stateful_set_may_keep_its_pod(self, ask):
        objects = [waiting("web-0", ZONE, owner="StatefulSet/web")]
        _, out, _ = ask(TAINTED, "pod/web-0", "-n", "shop", objects=objects)
        assert (
            "  if the pod does not change, delete it, so that its controller creates another:\n"
            "    kubectl delete pod web-0 -n shop\n"
        ) in out

    def test_one_pod_of_another(self, ask):
        _, out, _ = ask("z1: a=1 | z2: ~b", "pod/new", "-n", "shop", objects=self.objects())
        assert "  the 1 counted pod is not from this workload: Deployment api\n" in out


class TestDaemonSets:
    def agent(self):
        asking = [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]
        return workload("DaemonSet", "app=agent", selector="app=agent", meta={"name": "agent"}, containers=asking)

    def running(self, on):
        pod = waiting(f"agent-{on}", nodeName=on)
        pod["metadata"]["labels"] = {"app": "agent"}
        return pod

    def pending(self, on):
        field = {"key": "metadata.name", "operator": "In", "values": [on]}
        required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        pod = waiting("agent-x", owner="DaemonSet/agent", cpu="3", affinity=affinity)
        pod["metadata"]["labels"] = {"app": "agent"}
        return pod

    def filling(self, on):
        pod = waiting(f"big-{on}", cpu="2", nodeName=on)
        pod["metadata"]["labels"] = {"app": "big"}
        return pod

    def test_each_node_that_should_run_it_and_does_not(self, ask):
        objects = [self.agent(), self.running("a"), self.pending("b"), *map(self.filling, "bcd")]
        code, out, err = ask("a b c d e ~f -g", "daemonset/agent", "-n", "shop", objects=objects)
        assert (code, err) == (1, "")
        pages = re.split(r"\n\n(?=the pod of|Pod )", out)
        count = "note: 5 of 6 nodes that should run it have no running pod"
        assert [page.splitlines()[0] for page in pages] == [
            "Pod shop/agent-x for node b: no node admits it",
            "the pod of DaemonSet shop/agent for node c: no node admits it",
            "the pod of DaemonSet shop/agent for node e: 1 of 7 nodes admits it",
        ]
        assert (
            "cause: capacity (with free capacity 1 node would admit it)\n"
            f"in the way: needs 3 cpu: 2 cpu free on b\n{count}\n" in pages[0]
        )
        assert "same result for 1 more: d " in " ".join(pages[1].split())
        assert "same result for 1 more: g " in " ".join(pages[2].split())
        assert "    6  NodeAffinity: node(s) didn't satisfy plugin(s) [NodeAffinity]\n" in pages[0]

    def test_of_very_many_nodes_the_first_are_asked(self, ask):
        names = " ".join(f"n{number:03}" for number in range(201))
        _, out, _ = ask(names, "ds/agent", "-n", "shop", objects=[self.agent()])
        told = "201 of 201 nodes that should run it have no running pod; only the first 200 were checked; "
        assert f"{told}same result for 199 more: n001, n002" in " ".join(out.split())

    def test_every_node_has_its_pod(self, ask):
        objects = [self.agent(), self.running("a"), self.running("b")]
        for state, told in (
            ("a b", "all 2 nodes that should run it already have its pod"),
            ("a ~c", "the node that should run it already has its pod"),
        ):
            found = ask(state, "ds/agent", "-n", "shop", objects=objects)
            assert found == (0, f"DaemonSet shop/agent: {told}\n", "")
        _, out, _ = ask("a b", "ds/agent", "-n", "shop", "-o", "json", objects=objects)
        found = json.loads(out)
        assert (found["message"], found["cause"]) == ("all 2 nodes that should run it already have its pod", None)

    def test_no_node_should_run_it(self, ask):
        _, out, _ = ask("~a", "ds/agent", "-n", "shop", objects=[self.agent()])
        assert (
            "note: no node should run a pod of the DaemonSet, so none is created; the\n  explanation covers all nodes\n"
        ) in out

    def test_where_it_cannot_be_read_its_pending_pods_are_asked(self, ask):
        _, out, _ = ask("a b", "ds/agent", "-n", "shop", objects=[self.pending("b"), self.filling("b")])
        assert out.startswith(
            "Pod shop/agent-x for node b (1 of 1 pending pods of DaemonSet shop/agent): no node admits it\n"
        )

    def test_a_selector_that_cannot_be_read_selects_nothing(self, ask):
        odd = self.agent()
        odd["spec"]["selector"] = {"matchLabels": {"app": "a b"}}
        code, out, _ = ask("a", "ds/agent", "-n", "shop", objects=[odd, self.running("a")])
        assert (code, out.splitlines()[0]) == (0, "the pod of DaemonSet shop/agent for node a: 1 of 1 node admits it")


@pytest.mark.parametrize(
    ("state", "pod", "lines"),
    [
        pytest.param(
            "z1: ~a c | ~b",
            waiting("new", nodeSelector={"disk": "ssd"}),
            [
                "cause: other (without its node selector and affinity 1 node would admit it)",
                "in the way: not selected (wants disk=ssd, which no node has)",
                "       a, b: tainted dedicated:NoSchedule and not selected (wants disk=ssd,",
                "         which no node has)",
                "       c: not selected (wants disk=ssd, which no node has)",
            ],
            id="a node that two things keep out has both",
        ),
        pytest.param(
            "z1: a | z2: b",
            waiting("new", cpu="9"),
            [
                "cause: capacity (no node the pod may use is large enough, even when empty)",
                "in the way: needs 9 cpu, but no node has more than 4 cpu",
                "  a larger node than a, b (needs 9 cpu, but no node has more than 4 cpu)",
            ],
            id="room in numbers",
        ),
        pytest.param(
            "-a -b",
            waiting("new"),
            ["cause: other (without cordons 2 nodes would admit it)", "  uncordon one of a, b"],
            id="cordons",
        ),
    ],
)
def test_other_causes_have_names(ask, state, pod, lines):
    _, out, _ = ask(state, "pod/new", "-n", "shop", objects=[pod])
    for line in lines:
        assert f"{line}\n" in out


def test_nodes_that_are_gone_for_now_are_called_that(ask):
    nodes = [node("a"), node("b")]
    for each, state in zip(nodes, ("unreachable", "not-ready"), strict=True):
        taints = [{"key": f"node.kubernetes.io/{state}", "effect": effect} for effect in ("NoSchedule", "NoExecute")]
        each["spec"]["taints"] = taints
    _, out, _ = ask("", "pod/new", "-n", "shop", objects=[*nodes, waiting("new")])
    assert "cause: other (with unreachable or not ready nodes back 2 nodes would admit it)\n" in out
    assert "       b: not ready\n       a: unreachable\n" in out
    assert "toleration" not in out
