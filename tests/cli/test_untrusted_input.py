"""Files of strangers, as in pull requests: what they cost, what they reach, and what they make the output say."""

import json

import pytest
from cli.confined import confined

from webhook.cli.exit_codes import Exit

# A run without findings takes a third of a second and 35 MiB. Without bounds, these took up to 50 s and 7 GiB.
SECONDS, MIB = 6, 250
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


@pytest.mark.parametrize("name", COSTLY)
def test_no_file_takes_long(tmp_path, name):
    text, code, told = COSTLY[name]
    (tmp_path / "a.yaml").write_text(text)
    ran = confined(tmp_path, "check", "a.yaml")
    assert (ran.code, told in ran.output + ran.errors) == (code, True), (ran.output + ran.errors)[-2000:]
    assert ran.seconds < SECONDS, ran.seconds
    assert ran.mib < MIB, ran.mib


def test_as_many_constraints_as_admission_takes_are_examined(tmp_path):
    (tmp_path / "a.yaml").write_text(web([{**RIGHT, "topologyKey": f"k{each}"} for each in range(128)]))
    ran = confined(tmp_path, "check", "a.yaml", "--fail-on", "never")
    assert (ran.code, ran.errors) == (Exit.FINE, "")


@pytest.mark.parametrize("output", ["text", "json", "github", "junit", "sarif"])
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
