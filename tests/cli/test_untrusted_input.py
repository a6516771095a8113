"""Files of strangers, as in pull requests: what they cost, what they reach, and what they make the output say."""

import gzip
import json
import os

import pytest
from cli.confined import confined

from webhook.cli.exit_codes import Exit
from webhook.manifests.reading.files import LEADS_OUT

# A run without findings takes a third of a second and 35 MiB. Without bounds, these took up to 50 s and 7 GiB.
SECONDS, MIB = 12, 250  # It takes four seconds on two free cores, and up to twice as long beside other tests.
WRONG = {
    "maxSkew": 0,
    "topologyKey": "zone",
    "whenUnsatisfiable": "Never",
    "labelSelector": {"matchLabels": {"app": "x"}},
}
RIGHT = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}


def pod(constraints, labels=(), **spec):
    return {
        "metadata": {"labels": {"app": "web", **dict(labels)}},
        "spec": {"containers": [{"name": "a", "image": "a"}], "topologySpreadConstraints": constraints, **spec},
    }


def web(constraints, labels=(), *, top=(), **spec):
    template = pod(constraints, labels, **spec)
    own = {"selector": {"matchLabels": {"app": "web"}}, "template": template, **dict(top)}
    return json.dumps({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": own})


def jobs(number):
    own = [{"name": f"j{each}", "template": {"spec": {"template": pod([WRONG])}}} for each in range(number)]
    head = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "jobs"}}
    return json.dumps({**head, "spec": {"replicatedJobs": own}})


def selected(**selector):
    return {**RIGHT, "labelSelector": selector}


MANY = "more than 128 constraints: all rules skipped this object"
KEYS = "more than 1,024 labels, values and keys in constraints: all rules skipped this object"
BOMB = "not YAML: aliases repeat more than 4,000,000 characters"
HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
ALIASES = f"{HEAD}a: &a {'x' * 1_000_000}\nb: [{', '.join(['*a'] * 5000)}]\n"
LISTS = f"{HEAD}a: &a [{'x' * 100_000}]\nb: &b [{', '.join(['*a'] * 100)}]\nc: [{', '.join(['*b'] * 90)}]\n"
MERGED = f"{HEAD}a: &a {{k: {'x' * 1_000_000}}}\nb:\n" + "- {<<: *a}\n" * 500
TEXTS = HEAD + "data:\n" + "".join(f'  k{each}: "topologySpreadConstraints: [a]"\n' for each in range(5000))
COSTLY = {
    "129 wrong constraints": (web([WRONG] * 129), Exit.UNREADABLE, MANY),
    "20,000 empty constraints": (web([{}] * 20_000), Exit.UNREADABLE, MANY),
    "20,000 empty expressions": (web([selected(matchExpressions=[{}] * 20_000)]), Exit.UNREADABLE, KEYS),
    "20,000 values": (
        web([selected(matchExpressions=[{"key": "app", "operator": "In", "values": ["x"] * 20_000}])]),
        Exit.UNREADABLE,
        KEYS,
    ),
    "3,000 templates with a wrong one": (jobs(3000), Exit.UNREADABLE, MANY),
    "60 templates with a wrong one": (jobs(60), Exit.FINDINGS, "whenUnsatisfiable"),
    "128 wrong constraints": (web([WRONG] * 128), Exit.FINDINGS, "whenUnsatisfiable"),
    "20,000 labels": (
        web(
            [selected(matchLabels={"app": f"x{each}"}) for each in range(100)],
            {f"l{each}": "x" for each in range(20_000)}.items(),
        ),
        Exit.FINDINGS,
        "app",
    ),
    "20,000 unknown fields": (
        web([WRONG], top={f"topologySpreadConstraint{each}": 1 for each in range(20_000)}.items()),
        Exit.FINDINGS,
        "unknown field",
    ),
    "5,000 texts with constraints": (TEXTS, Exit.FINE, "in data of a ConfigMap"),
    "a long text and 5,000 aliases": (ALIASES, Exit.UNREADABLE, BOMB),
    "lists of lists by aliases": (LISTS, Exit.UNREADABLE, BOMB),
    "a long text merged 500 times": (MERGED, Exit.UNREADABLE, BOMB),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COSTLY)
def test_no_file_takes_long(tmp_path, name):
    text, code, told = COSTLY[name]
    (tmp_path / "a.yaml").write_text(text)
    ran = confined(tmp_path, "check", "a.yaml")
    assert (ran.code, told in ran.output + ran.errors) == (code, True), (ran.output + ran.errors)[-2000:]
    assert ran.seconds < SECONDS, ran.seconds
    assert ran.mib < MIB, ran.mib


@pytest.mark.slow
def test_fixes_and_patches_do_not_take_long_either(tmp_path):
    operation = "{op: add, path: /spec/template/spec/topologySpreadConstraints, value: [{maxSkew: 0}]}"
    patch = f'- patch: "- {operation}"\n  target: {{kind: Deployment}}\n'
    (tmp_path / "kustomization.yaml").write_text(f"patches:\n{patch * 1500}")
    (tmp_path / "a.yaml").write_text(web([WRONG] * 128))
    for arguments in (("kustomization.yaml",), ("a.yaml", "--fix")):
        ran = confined(tmp_path, "check", *arguments)
        assert (ran.code, ran.seconds < SECONDS, ran.mib < MIB) == (Exit.FINDINGS, True, True), ran.errors[-500:]


@pytest.mark.slow
def test_as_many_constraints_as_admission_takes_are_examined(tmp_path):
    (tmp_path / "a.yaml").write_text(web([{**RIGHT, "topologyKey": f"k{each}"} for each in range(128)]))
    ran = confined(tmp_path, "check", "a.yaml", "--fail-on", "never")
    assert (ran.code, ran.errors) == (Exit.FINE, "")


@pytest.mark.parametrize("output", ["text", "json", "github", "gitlab", "junit", "sarif"])
@pytest.mark.sampled
def test_every_format_says_what_was_too_large(tmp_path, output):
    (tmp_path / "a.yaml").write_text(web([{}] * 129))
    ran = confined(tmp_path, "check", "a.yaml", "-o", output)
    assert ran.code == Exit.UNREADABLE
    assert MANY in (ran.errors if output in {"text", "json"} else ran.output)


def test_a_policy_that_allows_large_objects_makes_it_a_note(tmp_path):
    (tmp_path / "a.yaml").write_text(web([{}] * 129))
    (tmp_path / "policy.yaml").write_text(
        "apiVersion: config.evenspread.io/v1alpha1\nkind: SpreadPolicy\ntooLarge: allow\n"
    )
    ran = confined(tmp_path, "check", "a.yaml", "--config", "policy.yaml")
    assert (ran.code, f"note: Deployment web: {MANY}" in ran.errors) == (Exit.FINE, True), ran.errors


MARK = "hunter2"
BAD = web([WRONG])


def linked(tmp_path, link, target):
    """A working folder with a link, and outside of it what it leads to."""
    work, outside = tmp_path / "work", tmp_path / "outside"
    (outside / "sub").mkdir(parents=True)
    for name in ("a.yaml", "sub/a.yaml"):
        (outside / name).write_text(BAD)
    (outside / "secret.yaml").write_text(f"--- {MARK}\n{MARK}: *{MARK}\n")
    (work / "real").mkdir(parents=True)
    (work / "real" / "b.yaml").write_text(BAD)
    (work / link).parent.mkdir(exist_ok=True)
    (work / link).symlink_to(os.path.relpath(outside / target, (work / link).parent))
    return work, outside


@pytest.mark.parametrize("options", [(), ("--fix",), ("--fix", "--write")], ids=" ".join)
@pytest.mark.parametrize(
    ("link", "target", "given"),
    [
        pytest.param("dir", ".", "dir", id="the directory that is given"),
        pytest.param("dir", ".", "dir/", id="with a slash"),
        pytest.param("dir", ".", "./real/../dir", id="behind two dots"),
        pytest.param("dir", "sub", "dir/../a.yaml", id="the folder above the target of a link"),
        pytest.param("dir", ".", "dir/sub", id="in the middle of a path"),
        pytest.param("dir", ".", "dir/a.yaml", id="in the middle of a file's path"),
        pytest.param("dir", ".", "*/*.yaml", id="matched by a pattern"),
        pytest.param("dir", ".", "**/a.yaml", id="below a pattern"),
        pytest.param("a.yaml", "a.yaml", "a.yaml", id="the file that is given"),
        pytest.param("x/a.yaml", "a.yaml", "x", id="a file in the directory"),
        pytest.param("x/a.yaml", "a.yaml", ".", id="a file in the working folder"),
        pytest.param("x/a.yaml", "secret.yaml", ".", id="text that is no manifest"),
    ],
)
@pytest.mark.sampled
def test_a_link_out_of_the_working_folder_is_not_followed(tmp_path, link, target, given, options):
    work, outside = linked(tmp_path, link, target)
    ran = confined(work, "check", given, *options)
    assert (ran.code, LEADS_OUT in ran.errors) == (Exit.UNREADABLE, True), ran.errors
    assert MARK not in ran.output + ran.errors
    assert "outside" not in ran.output + ran.errors
    assert [(outside / name).read_text() for name in ("a.yaml", "sub/a.yaml")] == [BAD, BAD]


def test_an_absolute_path_by_another_name_of_the_working_folder(tmp_path):
    work, outside = linked(tmp_path, "dir", ".")
    (tmp_path / "alias").symlink_to(work)
    ran = confined(work, "check", str(tmp_path / "alias" / "dir"), "--fix", "--write")
    assert (ran.code, LEADS_OUT in ran.errors) == (Exit.UNREADABLE, True), ran.errors
    assert (outside / "a.yaml").read_text() == BAD


def test_links_that_whoever_runs_it_has_are_followed(tmp_path):
    work, outside = linked(tmp_path, "dir", ".")
    (tmp_path / "alias").symlink_to(outside / "sub")
    ran = confined(work, "check", str(tmp_path / "alias"), "--fix", "--write")
    assert ((outside / "sub" / "a.yaml").read_text() != BAD, "1 file" in ran.errors) == (True, True), ran.errors


@pytest.mark.parametrize("given", ["real", ".", "real/c.yaml", "in"])
def test_links_within_the_working_folder_are_followed(tmp_path, given):
    work, _ = linked(tmp_path, "dir", ".")
    (work / "dir").unlink()
    (work / "real" / "c.yaml").symlink_to("b.yaml")
    (work / "in").symlink_to("real")
    assert confined(work, "check", given, "--fix", "--write").code == Exit.FINDINGS
    assert (work / "real" / "b.yaml").read_text() != BAD
    assert (work / "real" / "c.yaml").is_symlink()


@pytest.mark.parametrize("text", [f"--- {MARK}\n", f"a: *{MARK}\n", f"{MARK}: 1\n{MARK}: 2\n"])
@pytest.mark.slow
def test_text_behind_a_link_is_not_quoted(tmp_path, text):
    (tmp_path / ".env").write_text(text)
    (tmp_path / "a.yaml").symlink_to(".env")
    (tmp_path / "b.yaml").write_text(text)
    ran = confined(tmp_path, "check", "a.yaml", "-v")
    assert MARK not in ran.output + ran.errors
    assert MARK in confined(tmp_path, "check", "b.yaml", "-v").errors


@pytest.mark.slow
def test_a_snapshot_behind_a_link(tmp_path):
    work, _ = linked(tmp_path, "cluster.yaml", "secret.yaml")
    for arguments in (("audit", "cluster.yaml"), ("check", "real", "--snapshot", "cluster.yaml")):
        ran = confined(work, *arguments)
        assert (ran.code, LEADS_OUT in ran.errors, MARK in ran.errors) == (ran.code, True, False), ran.errors
        assert ran.code != Exit.FINE


def test_bases_that_name_each_other_are_read_once(tmp_path):
    for name, other in (("a", "b"), ("b", "a")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "kustomization.yaml").write_text(f"resources: [{', '.join([f'../{other}'] * 100)}]\n")
    ran = confined(tmp_path, "check", "--kustomize", "a")
    assert (ran.code, ran.seconds < SECONDS) == (Exit.UNREADABLE, True)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        pytest.param("dir", LEADS_OUT, id="the directory"),
        pytest.param("real", "cannot be read, or is empty", id="its kustomization"),
    ],
)
def test_what_a_link_of_a_kustomization_leads_to_is_not_built(tmp_path, given, told):
    work, outside = linked(tmp_path, "dir", ".")
    (outside / "kustomization.yaml").write_text(f"resources: [{MARK}]\n")
    (work / "real" / "kustomization.yaml").symlink_to("../../outside/kustomization.yaml")
    ran = confined(work, "check", "--kustomize", given)
    assert (ran.code, told in ran.errors, MARK in ran.errors) == (Exit.UNREADABLE, True, False), ran.errors


HEADER = b'{"kind": "Snapshot", "kubernetesVersion": "v1.37.1"}\n'
LIST = b'{"apiVersion": "v1", "kind": "PodList", "items": ['
PACKED = {
    "a list of blanks": (LIST + b" " * 2**28 + b"]}", "bytes in one JSON document"),
    "blank lines": (HEADER + (b" " * 1000 + b"\n") * 2**18, "more than"),
    "empty items": (LIST + b"{}" + b",{}" * 8_000_000 + b"]}", "more than 1,000,000 items"),
    "many objects": (HEADER + b'{"apiVersion":"v1","kind":"K"}\n' * 1_000_001, "more than 1,000,000 objects"),
    "text": (LIST + b'{"x":"' + b"x" * 2**28 + b'"}]}', "bytes in one JSON document"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PACKED)
def test_no_snapshot_unpacks_to_much_more_than_its_size(tmp_path, name):
    content, told = PACKED[name]
    (tmp_path / "s.gz").write_bytes(gzip.compress(content, 1))
    (tmp_path / "a.yaml").write_text(BAD)
    ran = confined(tmp_path, "check", "a.yaml", "--snapshot", "s.gz")
    assert told in ran.errors
    assert ran.code not in {Exit.FINE, Exit.FINDINGS}
    assert (ran.seconds < SECONDS, ran.mib < 400) == (True, True), ran


@pytest.mark.slow
def test_a_packed_audit_is_bounded_too(tmp_path):
    (tmp_path / "s.gz").write_bytes(gzip.compress(PACKED["blank lines"][0]))
    ran = confined(tmp_path, "audit", "s.gz")
    assert (ran.code, "unpacks to more than" in ran.errors) == (Exit.UNREADABLE, True), ran.errors
    assert ran.mib < MIB, ran


NAMES = (
    "::error::x",
    "##[add-matcher]m.json",
    "a\n::stop-commands::x",
    "\x1b[31m\x9b2J\u202e",
    "\u00a0::set-output name=x::",
)


@pytest.mark.parametrize(
    "options", [(), ("-v",), ("-o", "github"), ("-o", "junit"), ("-o", "sarif"), ("--fix", "--write")]
)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sampled
def test_names_command_neither_github_nor_a_terminal(tmp_path, name, options):
    value = json.loads(web([{**WRONG, "topologyKey": name}]))
    value["metadata"].update(name=name, namespace=name)
    file = name.replace("/", "")
    (tmp_path / f"{file}.json").write_text(json.dumps(value))
    (tmp_path / f"{file}2.json").write_text(json.dumps({**value, "kind": name}))
    (tmp_path / f"{file}3.yaml").write_text("a: *x\napiVersion: v1\nkind: Pod\n")
    ran = confined(tmp_path, "check", *sorted(each.name for each in tmp_path.iterdir()), *options)
    assert ran.code in {Exit.FINDINGS, Exit.UNREADABLE}
    for line in (ran.output + ran.errors).split("\n"):
        assert line.isprintable(), line
        own = "github" in options and line.startswith(("::error file=", "::warning file=", "::notice file="))
        assert own or not line.strip().startswith("::"), line
        assert own or "sarif" in options or "##[" not in line, line


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sampled
def test_an_audit_of_a_strangers_snapshot_prints_no_command(tmp_path, name):
    value = json.loads(web([{**WRONG, "topologyKey": name}]))
    value["metadata"].update(name=name, namespace=name)
    (tmp_path / "s.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [value]}))
    ran = confined(tmp_path, "audit", "s.json", "-v")
    assert "WORST NAMESPACES" in ran.output, ran.errors
    for line in (ran.output + ran.errors).split("\n"):
        assert line.isprintable(), line
        assert not line.strip().startswith("::"), line
        assert "##[" not in line, line


@pytest.mark.parametrize("output", ["text", "json", "yaml", "github", "gitlab", "sarif", "junit", "report"])
@pytest.mark.sampled
def test_a_name_that_is_no_text_stops_no_format(tmp_path, output):
    name = os.fsdecode(b"a\xff.json")
    (tmp_path / name).write_text(web([WRONG]))
    ran = confined(tmp_path, "check", name, "-o", output)
    assert (ran.code, ran.errors) == (Exit.FINDINGS, "")
    assert "selector-not-self" in ran.output
