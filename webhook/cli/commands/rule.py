"""``evenspread rule``: the pages of the rules, offline."""

import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import click
from msgspec import UNSET, UnsetType

from webhook.answers.audited import RuleEntry
from webhook.answers.document import with_fields_of
from webhook.cli.checking.finding_text import rule_url
from webhook.cli.options import RULE_ID, output_option
from webhook.cli.output.page import BOLD, DIM, paint
from webhook.cli.output.terminal import print_results, print_values
from webhook.core.rules.frame.rule import Rule
from webhook.core.rules.rule_set import BY_ID

# A wheel has the pages beside the commands (pyproject.toml). A clone has them in docs.
_IN_WHEEL = "rule_pages"
_IN_CLONE = Path(__file__).parents[3] / "docs" / "rules"
_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")


@click.command(short_help="Explain a rule, or list all rules.", epilog="Exit code: 0, or 2 for wrong usage.")
@click.argument("rule_id", metavar="[ID]", type=RULE_ID, required=False)
@output_option("text", "json", "yaml")
def rule(*, rule_id: str | None, output: str) -> None:
    """Print a rule's page: a failing manifest, the effect, the fix, and exceptions.

    Without ID, list all rules with severity, default mode and title.
    """
    chosen = None if rule_id is None else BY_ID[rule_id]
    if output != "text":
        entries = [_entry(each) for each in BY_ID.values()]
        print_values(entries if chosen is None else _entry(chosen, page=_page(chosen.id)), output)
    else:
        print_results(_listed() if chosen is None else _as_text(chosen))


def _entry(described: Rule, page: str | UnsetType = UNSET) -> RuleEntry:
    return with_fields_of(described, RuleEntry, url=rule_url(described.id), page=page)


def _listed() -> Iterator[str]:
    """Yield a line for each rule, in the order of reports."""
    width = max(map(len, BY_ID))
    for each in BY_ID.values():
        yield f"{paint(each.id.ljust(width), BOLD)}  {each.severity:6}  {each.mode:5}  {each.title}\n"


def _as_text(described: Rule) -> Iterator[str]:
    """Yield a rule's page for the terminal: headings in bold, links as text, and its address at the end."""
    in_block = False
    for line in _page(described.id).splitlines():
        if line.startswith("```"):
            in_block = not in_block
        elif in_block:
            yield f"    {line}".rstrip() + "\n"
        elif line.startswith("#"):
            yield paint(line.lstrip("# "), BOLD) + "\n"
        elif not line.startswith("|--"):
            yield _LINK.sub(r"\1", line) + "\n"
    yield f"\n{paint(rule_url(described.id), DIM)}\n"


def _page(rule_id: str) -> str:
    """The Markdown of a rule's page."""
    packaged = resources.files("webhook.cli") / _IN_WHEEL / f"{rule_id}.md"
    page = packaged if packaged.is_file() else _IN_CLONE / f"{rule_id}.md"
    return page.read_text(encoding="utf-8")
