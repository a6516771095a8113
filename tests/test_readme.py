"""The README shows what the commands really print, and the first screen of it is what a stranger needs."""

import re
import subprocess
import sys

import pytest
import yaml
from chart.recorded import RELEASES
from manifest import decide
from msgspec.structs import replace
from readme import PAGE, ROOT, SHOWN, with_outputs

from webhook.config import parse_policy
from webhook.config.schema_checks import fields
from webhook.core.api.version import ANNOUNCED, OLDEST, RECORDED, SUPPORTED
from webhook.core.policy.policy import Policy

README = PAGE.read_text()
LINES = README.splitlines()
COMMANDS = [shown.group("command", "out", "code") for shown in SHOWN.finditer(README)]


def test_a_rejected_a_warned_and_a_clean_example_are_shown():
    assert [(command, code) for command, _, code in COMMANDS] == [
        ("check examples/rejected.yaml", "1"),
        ("check examples/warned.yaml", "1"),
        ("check examples/clean.yaml", "0"),
    ]


@pytest.mark.parametrize(("command", "printed", "code"), COMMANDS, ids=[command for command, _, _ in COMMANDS])
def test_the_example_prints_what_the_readme_shows(command, printed, code):
    program = [sys.executable, "-c", "from webhook.cli.main import run; run()", *command.split()]
    done = subprocess.run(  # noqa: S603  the command stands in our own README
        program, cwd=ROOT, capture_output=True, text=True, check=False, timeout=30
    )
    assert (done.stdout + done.stderr, str(done.returncode)) == (printed, code), "run: make docs"


def test_what_is_written_anew_is_what_the_commands_print():
    older = README.replace("1 finding (1 high)", "9 findings").replace("$ echo $?\n0\n", "$ echo $?\n7\n")
    assert older != README
    assert with_outputs(older) == README


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#]+)\)", README))))
def test_every_link_leads_somewhere(link):
    assert (ROOT / link).exists(), link


def test_first_comes_what_it_stops_and_what_it_does_not():
    said = " ".join(LINES[2:4])
    assert (LINES[0], LINES[1], LINES[4], LINES[5]) == ("# evenspread", "", "", "```console")
    assert said.count(". ") == 1
    assert said.endswith("denies nothing until you say so.")


def test_the_readme_shows_a_pod_and_the_message_it_gets():
    pod = (ROOT / "examples" / "pod.yaml").read_text()
    [warning] = decide(yaml.safe_load(pod), policy=Policy()).warnings
    shown = f"$ cat examples/pod.yaml\n{pod}$ kubectl apply -f examples/pod.yaml\nWarning: {warning}\npod/web created\n"
    assert "\n".join(LINES[6:20]) + "\n" == shown
    assert pod.count("\n") == 10


def test_the_step_that_denies_refuses_the_pod_with_these_words():
    """From observe to deny, step 4, shows what kubectl prints of the README's first example."""
    steps = (ROOT / "docs" / "how-to" / "observe-to-deny.md").read_text()
    shown = re.search(r"Error from server \(Forbidden\): .*?denied the request: (.*?)\n *```", steps, re.DOTALL)[1]
    shown = re.sub("^   ", "", shown, flags=re.MULTILINE)  # in a list
    step = parse_policy(
        "{apiVersion: config.evenspread.io/v1alpha1, kind: SpreadPolicy, ceiling: deny, denyFrom: high}"
    )
    pod = yaml.safe_load((ROOT / "examples" / "pod.yaml").read_text())
    denied, warned = (
        decide(pod, policy=policy, namespace="default")
        for policy in (step.policy, replace(step.policy, deny_from="none"))
    )
    assert (denied.allowed, warned.allowed) == (False, True)
    assert denied.message == shown
    assert "--set config.ceiling=deny --set config.denyFrom=high" in steps


def test_the_readme_shows_three_commands():
    commands = [line.partition("#")[0].strip() for line in LINES[21:31] if line.startswith("$ ")]
    assert commands == ["$ make install", "$ .venv/bin/evenspread check examples/pod.yaml", "$ make run"]
    targets = re.findall(r"^(\w+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {"install", "run"} <= set(targets)


def test_the_readme_shows_five_settings_with_their_defaults():
    rows = [re.match(r"\| `([\w.]+)` \| `(.*?)` \|", line) for line in LINES[31:41]]
    shown = {row[1]: yaml.safe_load(row[2]) for row in rows if row}
    defaults = {path: part.get("default") for path, part in fields()}
    assert len(shown) == 5
    assert shown == {name: defaults[name] for name in shown}


def test_the_readme_says_what_it_is_not_before_its_only_picture():
    first = next(line for line in LINES if line.startswith("## "))
    assert first == "## What it is not"
    assert LINES.index(first) < 50
    assert re.findall(r"!\[.*?\]\((.*?)\)", README) == ["docs/pictures/console-desktop-light.png"]
    assert README.index("![") > README.index(first)


def test_the_readme_is_short():
    assert len(LINES) < 120


PAGES = [PAGE, *(ROOT / "docs").glob("**/*.md"), *(ROOT / "charts").glob("**/*.md")]


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_every_page_claims_the_same_releases(page):
    claimed = set(re.findall(rf"\b{OLDEST} to 1\.\d+\b(?!\.)", page.read_text()))
    assert claimed <= {SUPPORTED} | ({f"{OLDEST} to 1.33"} if page.name == "pods-refused.md" else set())


def test_supported_are_the_releases_that_were_compared():
    releases, chart = (ROOT / "docs" / "releases.md").read_text(), ROOT / "charts" / "evenspread"
    compared = re.findall(r"^\| (1\.\d+) \| 1\.\d+\.\d+, ", releases, re.MULTILINE)
    assert compared == [f"1.{minor}" for minor in range(OLDEST.minor, RECORDED.minor + 1)]
    assert f"Kubernetes {SUPPORTED} are supported" in README
    assert f"evenspread supports Kubernetes {SUPPORTED}." in releases
    assert f"Kubernetes {SUPPORTED}; {ANNOUNCED} as announced" in (ROOT / "docs" / "image.md").read_text()
    assert yaml.safe_load((chart / "Chart.yaml").read_text())["kubeVersion"] == f">={OLDEST}.0-0"
    assert RELEASES[0].startswith(f"{OLDEST}.")
    assert RELEASES[-1].startswith(f"{RECORDED}.")
