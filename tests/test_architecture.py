"""The map of the code leads somewhere: every path it names exists, every room has its paragraph, and its doors."""

import re
import tomllib
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[1]
PAGES = {
    page: (ROOT / page).read_text()
    for page in (
        "docs/architecture.md",
        "docs/architecture-core.md",
        "docs/architecture-outside-core.md",
        "CONTRIBUTING.md",
    )
}
ROOMS = sorted(
    {f"{path.parent.relative_to(ROOT)}/" for path in (ROOT / "webhook").rglob("*.py")} - {"webhook/"},
)
# A paragraph about a room begins with the room's name; files in it may go by their names alone.
ROOM = r"^\*\*\[`(\S+?)`\]\(\S+\)\*\*(.*?)$(?=\n\n)"
PARAGRAPHS = dict(re.findall(ROOM, "\n\n".join(PAGES.values()), re.MULTILINE | re.DOTALL))
LINKS = [(page, link) for page, text in PAGES.items() for link in re.findall(r"\]\(([^)#:]+)\)", text)]


def named(text):
    """What looks like a path in a text: with a slash and no space, or a file of the languages that are used here."""
    code = re.findall(r"`([^`\s]+)`", text)
    path = re.compile(r"[\w.-]+(/[\w.-]+)*/|[\w.-]+(/[\w.-]+)+|[\w-]+\.(py|md|toml)")
    return {each for each in code if path.fullmatch(each) and not each.isupper()}


@pytest.mark.parametrize("page", PAGES)
def test_every_path_that_is_named_exists(page):
    inside = {path for room, text in PARAGRAPHS.items() for path in named(text) if (ROOT / room / path).exists()}
    assert [path for path in sorted(named(PAGES[page]) - inside) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize(("page", "link"), LINKS)
def test_every_link_leads_somewhere(page, link):
    assert ((ROOT / page).parent / link).exists()


def test_every_room_has_its_paragraph_and_every_paragraph_its_room():
    assert sorted(PARAGRAPHS) == ROOMS


@pytest.mark.parametrize("room", ROOMS)
def test_a_paragraph_says_where_a_room_ends(room):
    """What it leaves out, or leaves to another room: what keeps the next file from landing in the wrong room."""
    assert re.search(r"\b(never|not?|nothing|neither|only|leaves)\b", PARAGRAPHS[room], re.IGNORECASE)


# Floors of rooms, which are no rooms: what several of their rooms import is a door.
FLOORS = {"", "webhook", "webhook.core", "webhook.cli"}
# Closed as a whole: nobody imports a command, and no command another, by two contracts.
COMMANDS = "webhook.cli.commands"


def home(module, importers):
    """The smallest folder around a module and all that import it."""
    folder = module.rpartition(".")[0]
    while folder and not all(f"{importer}.".startswith(f"{folder}.") for importer in importers):
        folder = folder.rpartition(".")[0]
    return folder


def test_every_module_that_one_room_alone_imports_is_closed_and_no_other_is():
    graph = grimp.build_graph("webhook", "certs", cache_dir=None)
    files = [module for module in graph.modules if module.startswith("webhook.") and not graph.find_children(module)]
    homes = {module: home(module, graph.find_modules_that_directly_import(module)) for module in files}
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    closed = {
        module: contract["allowed_importers"]
        for contract in contracts
        if contract["name"].startswith("inside ")
        for module in contract["protected_modules"]
    }
    assert closed.pop(COMMANDS) == [COMMANDS]
    rooms = {module: room for module, room in homes.items() if not module.startswith(f"{COMMANDS}.")}
    assert closed == {module: [room] for module, room in rooms.items() if room not in FLOORS}


@pytest.mark.parametrize(
    ("importers", "expected"),
    [
        pytest.param([], "webhook.core.index", id="nobody"),
        pytest.param(["webhook.core.index.overlay"], "webhook.core.index", id="its own room"),
        pytest.param(["webhook.core.index"], "webhook.core.index", id="its own room's first file"),
        pytest.param(["webhook.core.indexing"], "webhook.core", id="a room whose name begins alike"),
        pytest.param(["webhook.core.index.overlay", "webhook.cluster.feed"], "webhook", id="another floor"),
        pytest.param(["certs.make"], "", id="another package"),
    ],
)
def test_the_home_of_a_module_is_around_all_who_import_it(importers, expected):
    assert home("webhook.core.index.node_sets", importers) == expected


def test_paths_are_told_from_other_code():
    text = "`a/b.py`, `a/`, `x.py`, `KIND/NAME`, `6/6 nodes`, `-o json`, `decode`"
    assert named(text) == {"a/b.py", "a/", "x.py"}
