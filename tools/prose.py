"""Measures how easily the English of docs, docstrings and comments reads, and keeps it from getting worse.

    python tools/prose.py              # figures, with the limit of each
    python tools/prose.py --worst 30   # the sentences to rewrite first
    python tools/prose.py --check      # exit 1 if a figure is worse than its limit
    python tools/prose.py --lower      # write today's better figures into prose-goals.toml as limits

Code, tables and headings do not count. `long` is the share of sentences over 30 words, in percent. The others are per
1,000 words: `clauses` (that, which, who …), `semi` (semicolons), `odd` (`PATTERNS`), `you` (the more the better).
"""

import argparse
import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
GOALS = Path(__file__).with_name("prose-goals.toml")
KINDS = ("docs", "docstrings", "comments")
CLAUSE = r"\b(that|which|who|whose|whom|what|whoever)\b"
# Turns of phrase that a reader has to unpack.
PATTERNS = (
    r"\bof (a|an|the) \w+ (that|which|whose)\b",
    r"\bwhoever\b",
    r"\bwhat (is|was|has|it|they|a|an|the|there|that|no|are|can|every|each|somebody|nobody|users|rules)\b",
    r"\b(nobody|somebody|anybody)\b",
    r"\bin whatever\b",
    r"\bstands?\b",
    r"\b(is|are) to (be|have)\b",
    r"\bcomes? to\b",
    r"\bthose that\b",
    r"\b(that|those) of\b",
    r"\b(of which|of whom|to which|by which|in which|with which|for which)\b",
    r"\bones?\b",
    r"\bso (much|many)\b",
    r"\b(each|it|which|what|that|there),? (it|too)\b",
    r"\bcosts that\b",
    r"\bbeside\b",
    r"\bas (kube|the|a|Go|upstream|Kubernetes)\b[^.]{0,40}\bdoes\b",
    r"\bnor\b",
    r"\bthan (those|that)\b",
    r"\bours?\b",
    r"\bwe\b",
    r"\bby itself\b",
    r"\bat the most\b",
    r"\bmost of\b",
    r"\b(is|are|was|were) (told|said|asked)\b",
)
# Plain words for these exist, and no text may use them again.
BANNED = (
    r"\bwhoever\b",
    r"\bin whatever order\b",
    r"\bcosts that\b",
    r"\bat the most\b",
    r"\bin order to\b",
    r"\bplease note\b",
    r"\bit should be noted\b",
    r"\bunder the hood\b",
    r"\bout of the box\b",
    r"\bseamless(ly)?\b",
    r"\b(utili[sz]e|leverage)s?\b",
    r"\b(obviously|basically)\b",
    r"\band/or\b",
)
LONG = 30  # words of a sentence


class Text(NamedTuple):
    """A text of people.

    Attributes:
        place: File, and the line within code.
        text: Plain text, without markup and code.
    """

    place: str
    text: str


class Figures(NamedTuple):
    words: int
    long: float
    clauses: float
    semi: float
    odd: float
    you: float


def plain(markdown: str) -> str:
    """Return the sentences of a Markdown text; inline code becomes the word CODE."""
    text = re.sub(r"(?ms)\A---\n.*?\n---\n", "", markdown)
    text = re.sub(r"(?ms)^\s*(```|~~~).*?^\s*\1\s*$", "", text)
    text = re.sub(r"(?m)^(    |\t).*$|^\s*\|.*$|^#.*$", "", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"``[^`]*``|`[^`]*`", "CODE", text)
    return re.sub(r"[*_]{1,2}", "", re.sub(r"<[^>]*>", "", text))


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a plain text. Fragments of up to three words do not count."""
    for block in re.split(r"\n\s*\n|\n\s*[-*] |\n\s*\d+\. ", text):
        line = " ".join(block.split())
        if len(line.split()) > 3:
            yield from (part for part in re.split(r"(?<=[.!?])\s+(?=[A-Z\"(])", line) if len(part.split()) > 2)


def figures(texts: list[Text]) -> Figures:
    """Return the figures of all texts together."""
    found = [sentence for each in texts for sentence in sentences(each.text)]
    lengths = [len(sentence.split()) for sentence in found]
    whole, words = "\n".join(found), sum(lengths) or 1

    def per_thousand(pattern: str, flags: re.RegexFlag = re.NOFLAG) -> float:
        return 1000 * len(re.findall(pattern, whole, flags)) / words

    return Figures(
        words,
        100 * sum(length > LONG for length in lengths) / max(1, len(lengths)),
        per_thousand(CLAUSE),
        per_thousand(";"),
        sum(per_thousand(pattern) for pattern in PATTERNS),
        per_thousand(r"\byou(r|rs)?\b", re.IGNORECASE),
    )


def collected() -> dict[str, list[Text]]:
    """Return all texts of the repository by kind."""
    docs = [path for path in _tracked("*.md") if path.name != "CHANGELOG.md" and "tests/" not in str(path)]
    code = _tracked("webhook/*.py", "certs/*.py", "evenspread/*.py")
    return {
        "docs": [Text(str(path), plain((ROOT / path).read_text())) for path in docs],
        "docstrings": [text for path in code for text in _docstrings(path)],
        "comments": [text for path in code for text in _comments(path)],
    }


def _tracked(*patterns: str) -> list[Path]:
    command = ["git", "-C", str(ROOT), "ls-files", *patterns]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603  our own repository
    return [Path(name) for name in listed.splitlines()]


def _docstrings(path: Path) -> Iterator[Text]:
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if written := ast.get_docstring(node):
            yield Text(f"{path}:{getattr(node, 'lineno', 1)}", plain(re.sub(r"(?s)Source:.*", "", written)))


def _comments(path: Path) -> Iterator[Text]:
    block: list[str] = []
    for number, line in enumerate([*(ROOT / path).read_text().splitlines(), ""], 1):
        if match := re.match(r"\s*# (.*)", line):
            block.append(match[1])
        elif block:
            yield Text(f"{path}:{number - len(block)}", plain(" ".join(block)))
            block = []


def worse(kind: str, now: Figures, goal: dict[str, float]) -> list[str]:
    """Return a line for each figure beyond its limit, in the precision of the limits."""
    return [
        f"{kind}: {name} {value}, limit {goal[name]}"
        for name, value in _rounded(now).items()
        if name in goal and (value < goal[name] if name == "you" else value > goal[name])
    ]


def lowered(now: Figures, goal: dict[str, float]) -> dict[str, float]:
    """Return the limits, moved to today's figures where these are better. The number of words is a cap, and stays."""
    values = _rounded(now)
    return {
        name: limit if name == "words" else (max if name == "you" else min)(limit, values[name])
        for name, limit in goal.items()
    }


def _rounded(now: Figures) -> dict[str, float]:
    return {name: round(value, 1) for name, value in now._asdict().items()}


def main(arguments: list[str]) -> int:
    """Print the figures and what else the arguments ask for; the exit code is 1 for a figure beyond its limit."""
    parser = argparse.ArgumentParser(description="Figures of the project's English")
    parser.add_argument("--worst", type=int, default=0, metavar="N", help="print the N hardest sentences")
    parser.add_argument("--check", action="store_true", help="exit 1 if a figure is worse than its limit")
    parser.add_argument("--lower", action="store_true", help="make today's better figures the limits")
    parser.add_argument("--only", choices=KINDS)
    options = parser.parse_args(arguments)
    goals = tomllib.loads(GOALS.read_text())
    texts = {kind: found for kind, found in collected().items() if options.only in (None, kind)}
    found = {kind: figures(found) for kind, found in texts.items()}
    faults = [line for kind, now in found.items() for line in worse(kind, now, goals[kind])]
    faults += [f"{place}: {phrase!r} is banned" for found_in in texts.values() for place, phrase in banned(found_in)]
    _print(found, goals)
    for place, sentence in hardest(texts)[: options.worst]:
        sys.stdout.write(f"{place}: {sentence}\n")
    if options.lower:
        _write(goals | {kind: lowered(now, goals[kind]) for kind, now in found.items()})
    sys.stdout.writelines(f"{line}\n" for line in faults)
    return 1 if options.check and faults else 0


def banned(texts: list[Text]) -> list[tuple[str, str]]:
    """Return the place and the words of each banned phrase."""
    matches = ((each.place, re.search(pattern, each.text, re.IGNORECASE)) for each in texts for pattern in BANNED)
    return [(place, match[0]) for place, match in matches if match]


def hardest(texts: dict[str, list[Text]]) -> list[tuple[str, str]]:
    """Return all sentences with their place, the hardest to read first."""
    every = [(each.place, part) for parts in texts.values() for each in parts for part in sentences(each.text)]
    return sorted(every, key=lambda row: _weight(row[1]), reverse=True)


def _write(goals: dict[str, dict[str, float]]) -> None:
    head = GOALS.read_text().partition("[")[0]
    tables = [f"[{kind}]\n" + "".join(f"{name} = {limit}\n" for name, limit in goals[kind].items()) for kind in KINDS]
    GOALS.write_text(head + "\n".join(tables))


def _weight(sentence: str) -> float:
    marks = sum(len(re.findall(pattern, sentence)) for pattern in (*PATTERNS, CLAUSE, ";"))
    return marks / (len(sentence.split()) + 6)


def _print(found: dict[str, Figures], goals: dict[str, dict[str, float]]) -> None:
    sys.stdout.write(f"{'':12}" + "".join(f"{name:>9}" for name in Figures._fields) + "\n")
    for kind, now in found.items():
        rows = {kind: _rounded(now), "  limit": goals[kind]}
        for title, row in rows.items():
            sys.stdout.write(f"{title:12}" + "".join(f"{row.get(name, ''):>9}" for name in Figures._fields) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
