"""Hooks of MkDocs (`mkdocs.yml`): pages outside `docs/`, links and lists as on GitHub."""

import os
import posixpath
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from markdown import Markdown
from markdown.extensions import Extension
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
# Where these are in the repository is where they are in the site.
OUTSIDE = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "charts/evenspread/README.md",
    "conformance/README.md",
    "conformance/vectors/README.md",
)
# Files that people copy. The site has them too, so their links need no repository.
_COPIED = re.compile(r"^(examples|webhook/(console|config)|charts/evenspread)/[^/]*\.(yaml|json)$")
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_FENCE = re.compile(r"(?ms)^( *)(`{3,}).*?^\1\2[^\n]*$")


def repository() -> str:
    """Return the address of the repository: of GitHub Actions, or of the clone's origin, or nothing."""
    if name := os.environ.get("GITHUB_REPOSITORY"):
        return f"{os.environ.get('GITHUB_SERVER_URL', 'https://github.com')}/{name}"
    command = ["git", "-C", str(ROOT), "remote", "get-url", "origin"]
    address = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603
    address = re.sub(r"^git@([^:]+):", r"https://\1/", address).removesuffix(".git")
    return address if address.startswith("https://") else ""


class ListsAsOnGitHub(Extension):
    """GitHub nests a list at the text of its parent, not only at four spaces."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802  Python-Markdown's name
        """Count two spaces as a level. Processors read this when they are built, so build them again."""
        md.tab_length = 2
        md.build_parser()


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the rules to the navigation, and the repository for the edit links."""
    config.repo_url = repository() or None
    config.edit_uri = "edit/main/docs/" if config.repo_url else None
    config.markdown_extensions.insert(0, ListsAsOnGitHub())  # before the extensions that add processors
    for section in config.nav or ():
        _add_pages(section.get("Reference", ()), "Rules", "rules", {"README.md", "precision.md", "rollouts.md"})
        _add_pages(section.get("Explanation", ()), "Decisions", "decisions", {"README.md"})
    return config


def _add_pages(entries: Iterable[object], title: str, folder: str, others: set[str]) -> None:
    """Add all pages of a folder below a title of the navigation, except these others."""
    names = sorted(path.name for path in (ROOT / "docs" / folder).glob("*.md"))
    for entry in entries:
        if isinstance(entry, dict) and title in entry:
            entry[title] += [f"{folder}/{name}" for name in names if name not in others]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages outside `docs/`, and the files that they and `docs/` link to."""
    listed = subprocess.run(  # noqa: S603
        ["git", "-C", str(ROOT), "ls-files", "examples", "webhook", "charts"],  # noqa: S607
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    for name in (*OUTSIDE, *(name for name in listed if _COPIED.match(name))):
        added = File.generated(config, name, content=(ROOT / name).read_text())
        added.edit_uri = f"../{name}"
        files.append(added)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links at pages of the site, or at the repository."""
    outside = page.file.src_uri in OUTSIDE
    folder = posixpath.dirname(page.file.src_uri if outside else f"docs/{page.file.src_uri}")

    def rewritten(link: re.Match[str]) -> str:
        mark, text, target = link[1], _LINK.sub(rewritten, link[2]), link[3]
        path, _, anchor = target.partition("#")
        if not path or ":" in path:
            return f"{mark}[{text}]({target})"
        place = posixpath.normpath(posixpath.join(folder, path))
        uri = place.removeprefix("docs/")
        if uri in files.src_uris:
            relative = posixpath.relpath(uri, posixpath.dirname(page.file.src_uri) or ".")
            return f"{mark}[{text}]({relative}{'#' + anchor if anchor else ''})"
        if (ROOT / place).exists():
            kind = "tree" if (ROOT / place).is_dir() else "blob"
            return f"[{text}]({config.repo_url}/{kind}/main/{place})" if config.repo_url else text
        return link[0]

    parts, at = [], 0
    for code in _FENCE.finditer(markdown):
        parts += [_LINK.sub(rewritten, markdown[at : code.start()]), code[0]]
        at = code.end()
    return "".join([*parts, _LINK.sub(rewritten, markdown[at:])])
