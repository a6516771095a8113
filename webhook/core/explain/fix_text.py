"""Fixes of one pod in words, in the grammar of `core.rules.frame.edits`."""

from collections.abc import Sequence

import msgspec

from webhook.core.api.types import SpreadConstraint
from webhook.core.changes.change import Change
from webhook.core.changes.one_pod import PodFix
from webhook.core.explain.explanation import Balance
from webhook.core.text import together
from webhook.core.yaml_flow import one_field


def fix_text(fix: PodFix, balances: Sequence[Balance]) -> str:
    """A fix as people say it: ``set maxSkew: 2``; ``set maxSkew: 2 in zone[0]`` where another constraint is hard."""
    hard = {each.index: each for each in balances if each.hard}
    parts: dict[str, list[str]] = {}
    for change in fix.changes:
        balance = hard.get(change.index)
        name = balance.name if balance else f"[{change.index}]"
        parts.setdefault(_verb(change, balance.written if balance else None, name), []).append(name)
    texts = [*parts]
    if len(hard) == 1:
        return together(texts)
    by_names: dict[tuple[str, ...], list[str]] = {}
    for text, names in parts.items():
        by_names.setdefault(() if text.startswith("remove ") and "[" in text else tuple(names), []).append(text)
    return together(f"{together(said)}{f' in {together(names)}' if names else ''}" for names, said in by_names.items())


def _verb(change: Change, written: SpreadConstraint | None, name: str) -> str:
    if not change.field:
        return f"remove {name}"
    if change.value is None:
        return f"remove {change.field}"
    there = written is None or change.field in msgspec.to_builtins(written)
    return f"{'set' if there else 'add'} {one_field(change.field, change.value)}"
