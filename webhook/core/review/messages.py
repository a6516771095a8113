"""Write the texts of a decision: one-line warnings, and denials.

The first line of a denial is complete without the others. Text from the object is cut to a maximum length, and control
characters are replaced.
"""

from collections.abc import Sequence

from webhook.core.policy.policy import Messages
from webhook.core.rules.frame.rule import WARNING_CHARS, Finding
from webhook.core.text import one_line, plural, shortened

# kubectl prints warnings above its own output. More warnings would hide that the object was accepted.
_MAX_WARNINGS = 3
# A block has up to 1.6 KB, and an answer 8,192 characters. Users fix the first problems first anyway.
_MAX_DENIAL_BLOCKS = 10
# Lists in GitOps tools cut a message after its first line, so that line stays short.
_HEADLINE_CHARS = 256
_DETAIL_CHARS = 1024  # a paragraph
_LEAST_SUMMARY = len("evenspread/: ") + 20  # 20 characters are a few words


def warnings_of(findings: Sequence[Finding]) -> tuple[str, ...]:
    """Return a line for each of the first three findings, then a line with the number of further findings."""
    lines = tuple(_warning(finding) for finding in findings[:_MAX_WARNINGS])
    more = len(findings) - len(lines)
    if not more:
        return lines
    tail = f"evenspread: {plural(more, 'more finding')}; to list all: kubectl evenspread check --cluster -f FILE"
    return (*lines, tail)


def not_read(why: str) -> tuple[str, ...]:
    """Return the warning about an admitted object that a rule in deny mode could not check."""
    return (f"evenspread: the object was not fully checked: {why}",)


def _warning(finding: Finding) -> str:
    """Return the summary and the fix in a line. Drop the fix if the line gets too long."""
    summary = f"evenspread/{finding.rule}: {finding.warning or finding.summary}"
    remedy = f"; {one_line(finding.remedy, WARNING_CHARS)}" if finding.remedy and not finding.warning else ""
    if len(summary) + len(remedy) <= WARNING_CHARS:
        return one_line(summary + remedy)
    short = shortened(summary, WARNING_CHARS - len(remedy)) if len(remedy) < WARNING_CHARS // 2 else ""
    # The summary needs a few words after the name of the rule.
    if len(short) >= len(finding.rule) + _LEAST_SUMMARY and len(short) + len(remedy) <= WARNING_CHARS:
        return short + remedy
    return shortened(summary, WARNING_CHARS)


def denial(name: str, findings: Sequence[Finding], messages: Messages) -> str:
    """Return the denial: a first line that stands alone, a block for each finding, and the command to check.

    ``name`` is the object's name in messages, for example ``Rollout shop/web``.
    """
    first = findings[0]
    headline = first.headline or (f"{first.summary}; {first.remedy}" if first.remedy else first.summary)
    count = f" (1 of {len(findings)} problems)" if len(findings) > 1 else ""
    lines = [f"{one_line(name)}: {shortened(headline, _HEADLINE_CHARS)}{count}"]
    for number, finding in enumerate(findings[:_MAX_DENIAL_BLOCKS], start=1):
        lines.append(f"  {number} {finding.rule}  {one_line(finding.path)}")
        lines.append(f"    {shortened(finding.detail or finding.summary, _DETAIL_CHARS)}")
        if finding.fix:
            lines.append(f"    fix: {one_line(finding.fix)}")
    if len(findings) > _MAX_DENIAL_BLOCKS:
        lines.append(f"  and {len(findings) - _MAX_DENIAL_BLOCKS} more")
    lines.append("  check before pushing: kubectl evenspread check -f FILE")
    if messages.docs_url:
        lines.append(f"  about {first.rule}: {messages.docs_url.rstrip('/')}/{first.rule}")
    lines.extend(f"  {line}" for line in messages.footer.splitlines())
    return "\n".join(lines)
