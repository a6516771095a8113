"""Pages keep what they promise: links, anchors and commands lead somewhere, and no page is too long."""

import importlib.util
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import click
import pytest
import yaml

from examples import PAGES as REPLAYED
from examples import SHOWN
from webhook.cli.main import evenspread, main

ROOT = Path(__file__).parents[1]
TRACKED = subprocess.run(
    ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],  # noqa: S607
    cwd=ROOT,
    capture_output=True,
    text=True,
    check=True,
).stdout.split()
PAGES = [ROOT / name for name in TRACKED if (ROOT / name).exists()]
README = ROOT / "README.md"  # tests/test_readme.py runs its commands
FENCED = re.compile(r"^(?P<space> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=space)```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]*)\)")
# Says who runs the blocks below it, up to the next mark: a file of tests, or why nobody can.
MARK = re.compile(r"<!-- (?:run by: (?P<test>\S+)|not run: (?P<reason>[^>]+)) -->")
MAKE = set(re.findall(r"^([a-z0-9/-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
PROGRAMS = re.compile(
    r"(?:\$ )?(?P<program>(?:[A-Z]+=\S+ )*(?:\S*/)?(?:evenspread|kubectl|helm|make|python3?|pip|pipx|git|openssl|flux"
    r"|kustomize|oracle|crane|skopeo|docker|pytest|netns\.sh|build\.sh|record\.sh|echo|cat|sed|head|export|source"
    r"|printf|go))\s"
)


def ids(page):
    return str(page.relative_to(ROOT))


def prose(text):
    return FENCED.sub("", text)


def anchors(page):
    """The anchors of a page, as GitHub makes them."""
    text, found = page.read_text(), {}
    for heading in re.findall(r"^#+ +(.*?) *$", prose(text), re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)|<[^>]*>", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found[name] = found.get(name, -1) + 1
        if found[name]:
            found[f"{name}-{found[name]}"] = 0
    return found.keys() | set(re.findall(r'<a id="([^"]+)"', text))


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_every_link_and_anchor_leads_somewhere(page):
    broken = []
    for link in LINK.findall(prose(page.read_text())):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if ":" in path:
            continue
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=ids)
def test_no_page_is_longer_than_250_lines(page):
    written = re.sub(r"(?ms)^<!-- \w+: .*?^<!-- end -->$", "", page.read_text())
    assert written.count("\n") <= 250


def test_the_site_has_every_page():
    """The rules and the decisions come by themselves (`tools/mkdocs_hooks.py`)."""

    class Loader(yaml.SafeLoader):
        """Skips what names a Python function."""

    Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda _loader, suffix, _node: suffix)
    told = str(yaml.load((ROOT / "mkdocs.yml").read_text(), Loader)["nav"])  # noqa: S506  a safe loader
    docs = ROOT / "docs"
    others = [page.relative_to(docs) for page in docs.rglob("*.md")]
    missing = [str(page) for page in others if page.parent.name not in {"rules", "decisions"} and str(page) not in told]
    assert missing == []


class Block(NamedTuple):
    page: Path
    line: int
    lines: list[str]
    mark: re.Match | None
    replayed: bool


def blocks():
    """The blocks of all pages that hold commands."""
    for page in PAGES:
        text = page.read_text()
        marks = list(MARK.finditer(text))
        for block in FENCED.finditer(text):
            lines = re.sub(r"\\\n\s*", "", block["text"]).splitlines()
            prompted = [line.strip()[2:] for line in lines if line.strip().startswith("$ ")]
            typed = prompted or [line.strip() for line in lines if PROGRAMS.match(f"{line.strip()} ")]
            shell = block["language"] in {"console", "sh"} or (block["language"] == "" and (prompted or _typed(lines)))
            if "<!-- help: " in text[max(0, block.start() - 60) : block.start()] or not (shell and typed):
                continue
            mark = next((each for each in reversed(marks) if each.end() <= block.start()), None)
            replayed = page == README or (page in REPLAYED and bool(SHOWN.search(block[0] + "\n")))
            yield Block(page, text[: block.start()].count("\n") + 1, typed, mark, replayed)


def _typed(lines):
    return bool(lines) and bool(PROGRAMS.match(f"{lines[0].strip()} "))


BLOCKS = list(blocks())


@pytest.mark.parametrize("block", BLOCKS, ids=[f"{ids(block.page)}:{block.line}" for block in BLOCKS])
def test_every_command_is_run_or_marked(block):
    """What tests do not run has to be known here: options of evenspread, targets of make, modules and files."""
    if block.replayed:
        return
    unknown = [line for line in block.lines if not known(line.partition("  #")[0].strip())]
    if unknown:
        assert block.mark, f"no test runs {unknown}: write <!-- run by: tests/… --> or <!-- not run: why --> above it"
    if block.mark and block.mark["test"]:
        assert (ROOT / block.mark["test"]).exists()


def known(line):
    """Whether each command of a line exists, with its options."""
    for command in re.split(r" \| | && |; ", line):
        try:
            words = shlex.split(re.sub(r" >\S+| > \S+", "", command), comments=True)
        except ValueError:  # a quotation over several lines
            return False
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            words.pop(0)
        if words[:2] == ["kubectl", "evenspread"]:
            words.pop(0)
        if not words or not _exists(words):
            return False
    return True


def _exists(words):  # noqa: C901, PLR0911  a table
    match words:
        case ["export" | "source" | "echo" | "sed" | "tail" | "head" | "tr", *_]:
            return True
        case ["pytest" | "cat", *paths]:
            return all((ROOT / path).exists() for path in paths if not path.startswith("-"))
        case ["make", *targets]:
            return {target for target in targets if "=" not in target} <= MAKE
        case ["helm", "template", *_] | ["kustomize", "build", *_] | ["kubectl", "kustomize", *_]:
            return True  # as people render their own files
        case ["helm", ("install" | "upgrade" | "uninstall" | "rollback"), "evenspread", *_]:
            return True  # tests/chart/test_pages.py reads their settings
        case [program, "-m", "pytest", *paths] | [program, *paths] if program.endswith(("pytest", "netns.sh")):
            return all(
                (ROOT / path).exists() for path in paths if path.startswith("tests/") and not path.endswith(".sh")
            )
        case [program, "-m", module, *_] if "python" in program:
            return importlib.util.find_spec(module) is not None
        case [program, file, *_] if "python" in program:
            return (ROOT / file).exists()
        case [program, name, *arguments] if program.endswith("evenspread"):
            return _has_options(name, arguments)
        case [program, *_] if program.endswith("evenspread"):
            return True
    return False


def _has_options(name, arguments):
    command = evenspread.get_command(click.Context(evenspread), name)
    options = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
    given = {argument.partition("=")[0] for argument in arguments if re.match(r"--?[a-zA-Z]", argument)}
    return given <= options | {"-h", "--help"}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("evenspread check --fix --write web.yaml", True, id="options that there are"),
        pytest.param("evenspread check --fixx web.yaml", False, id="an option that there is not"),
        pytest.param("helm template web ./chart | evenspread check -", True, id="a pipe"),
        pytest.param("make test", True, id="a target"),
        pytest.param("make tests", False, id="a target that there is not"),
        pytest.param("python -m bench.memory", True, id="a module"),
        pytest.param("python -m bench.memories", False, id="a module that there is not"),
        pytest.param("kubectl get pods", False, id="a command that needs a cluster"),
    ],
)
def test_a_command_is_known(line, expected):
    assert known(line) is expected


EXAMPLE = ROOT / "webhook" / "example" / "cluster.jsonl"


def commands(block):
    """The commands of a block, each with the output below it. Only a block with ``$`` has output."""
    if not block.lines[0].startswith("$ "):
        return [(line, []) for line in block.lines]
    command, *output = block.lines
    return [(command.removeprefix("$ "), output)]


READS_A_CLUSTER = {"explain", "simulate", "audit", "snapshot", "skew"}
TYPED = [
    pytest.param([line.partition(" >")[0], *output], id=f"{block.page.stem}: {line}")
    for block in BLOCKS
    if block.page.parent.name in {"how-to", "start"}
    for line, output in commands(block)
    if re.match(r"evenspread (check|explain|simulate|audit|snapshot|skew|version)\b", line)
]


@pytest.mark.parametrize("shown", TYPED)
def test_a_command_of_a_guide_runs(shown, tmp_path, monkeypatch, capsys):
    """With the bundled example as the cluster, and a folder with the named files. Lines of output may be left out."""
    command, *output = shown
    words = shlex.split(command)[1:]
    if words[0] in READS_A_CLUSTER or "--cluster" in words:
        words = [word for word in words if word != "--cluster"] + ["--snapshot", str(EXAMPLE)]
    manifest = (ROOT / "examples" / "warned.yaml").read_text()
    policy = (ROOT / "docs" / "example-policy.yaml").read_text()
    for name, text in {"web.yaml": manifest, "manifests/web.yaml": manifest, "policy.yaml": policy}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    assert main(words) in {0, 1}, capsys.readouterr().err
    printed = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert [line for line in output if line.strip() not in {"…", *printed}] == []


def test_the_guides_show_commands():
    assert len(TYPED) > 10
