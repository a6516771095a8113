import pytest
import yaml
from cluster.api import FakeApi


def test_objects_for_kubectl(run):
    code, out, err = run("compile", "--no-config")
    assert (code, err) == (0, "")
    objects = [*yaml.load_all(out, yaml.CSafeLoader)]
    assert [(each["kind"], each["metadata"]["name"]) for each in objects] == [
        (kind, f"evenspread-{mode}")
        for mode in ("deny", "warn", "audit")
        for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
    ]


def test_a_file_for_the_api_server(run):
    objects = [*yaml.load_all(run("compile", "--no-config", "--target", "manifests")[1], yaml.CSafeLoader)]
    assert {each["metadata"]["name"].partition(".")[2] for each in objects} == {"static.k8s.io"}


def test_the_policy_decides(run, tmp_path):
    config = tmp_path / "p.yaml"
    config.write_text("apiVersion: config.evenspread.io/v1alpha1\nkind: SpreadPolicy\nceiling: 'off'\n")
    assert "no-rule-has-this-mode" in run("compile", "--config", str(config))[1]
    assert "no-rule-has-this-mode" not in run("compile", "--no-config")[1]


def test_what_is_compiled(run):
    lines = run("compile", "--no-config", "--explain", "--kube-version", "1.33")[1].splitlines()
    assert "selector-empty                   all" in lines
    assert "pods-refused                     none  not in this release of Kubernetes" in lines


def test_the_release_of_a_cluster(run, tmp_path):
    with FakeApi(tls=False) as api:
        api.strike("any", lambda handler, _: handler.json(200, {"gitVersion": "v1.33.4"}) or True, times=9)
        arguments = ("compile", "--no-config", "--kubeconfig", api.kubeconfig(tmp_path), "--explain")
        assert "pods-refused                     none  not in this" in run(*arguments)[1]
        assert "pods-refused                     part" in run(*arguments, "--kube-version", "1.37")[1]


def test_a_snapshot_has_nothing_to_compile(run):
    code, _, err = run("compile", "--snapshot", "x")
    assert (code, "compile reads no snapshot" in err) == (2, True)


DEFAULTS = """\
apiVersion: config.evenspread.io/v1alpha1
kind: SpreadPolicy
defaults:
  mode: inject
  defaultConstraints:
  - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}
"""


@pytest.mark.parametrize(
    ("target", "name"),
    [
        pytest.param("map", "evenspread-defaults", id="objects"),
        pytest.param("map-manifests", "evenspread-defaults.static.k8s.io", id="a file"),
    ],
)
def test_defaults(run, tmp_path, target, name):
    (tmp_path / "p.yaml").write_text(DEFAULTS)
    code, out, err = run("compile", "--target", target, "--config", str(tmp_path / "p.yaml"))
    assert (code, err) == (0, "")
    assert [(each["kind"], each["metadata"]["name"]) for each in yaml.load_all(out, yaml.CSafeLoader)] == [
        ("MutatingAdmissionPolicy", name),
        ("MutatingAdmissionPolicyBinding", name),
    ]
    assert "no-default-is-compiled" not in out


@pytest.mark.parametrize(
    ("target", "version", "error"),
    [
        pytest.param("map", "1.34", "", id="the first release"),
        pytest.param("map", "1.33", "--target map needs Kubernetes 1.34 or later, not 1.33", id="before"),
        pytest.param("map-manifests", "1.36", "", id="the first release that reads files"),
        pytest.param(
            *("map-manifests", "1.35", "--target map-manifests needs Kubernetes 1.36 or later, not 1.35"),
            id="before it reads files",
        ),
    ],
)
def test_the_release_of_the_api_server(run, target, version, error):
    code, _, err = run("compile", "--no-config", "--target", target, "--kube-version", version)
    assert (code, error in err) == (2 if error else 0, True)


def test_no_default_is_compiled(run):
    code, out, err = run("compile", "--no-config", "--target", "map")
    assert (code, err) == (0, "note: no defaults are compiled. Use --explain for the reasons\n")
    assert "no-default-is-compiled" in out


def test_which_defaults_are_compiled(run, tmp_path):
    (tmp_path / "p.yaml").write_text(DEFAULTS)
    out = run("compile", "--target", "map", "--explain", "--config", str(tmp_path / "p.yaml"))[1]
    assert out.splitlines() == [
        "defaultConstraints  all",
        "owners              part  only ReplicaSets of Deployments and Argo Rollouts",
        "one-replica         none  replicas and autoscalers are unknown; a single pod gets defaults too",
        "evenspread.io/skip  part  only of pods; annotate the pod template instead of its owner",
        "fallback            none  nodes and other pods are unknown",
    ]


@pytest.mark.parametrize(
    ("count", "error"),
    [
        pytest.param(1_000, "", id="accepted"),
        pytest.param(
            1_500,
            "defaults.overrides is too large: the expression chosen of evenspread-defaults has 102,410 characters, and"
            " kube-apiserver accepts 100,000",
            id="refused",
        ),
    ],
)
def test_a_policy_that_the_api_server_refuses_is_not_printed(run, tmp_path, count, error):
    entries = "".join(
        f"  - {{name: o{n}, podSelector: {{matchLabels: {{app: a{n}}}}}, defaultConstraints: []}}\n"
        for n in range(count)
    )
    (tmp_path / "p.yaml").write_text(f"{DEFAULTS}  overrides:\n{entries}")
    code, out, err = run("compile", "--target", "map", "--config", str(tmp_path / "p.yaml"))
    assert (code, bool(out), error in err) == (2 if error else 0, not error, True)
