"""The texts of a decision: warnings of one short line, and denials whose first line is complete by itself.

Text from the object is bounded, and control characters are replaced.
"""

from collections.abc import Sequence

from webhook.core.policy.policy import Messages
from webhook.core.rules.frame.rule import WARNING_CHARS, Finding
from webhook.core.text import one_line, plural, shortened

# kubectl prints them above its own line, among those of other webhooks: more of them hide that the object was accepted.
MAX_WARNINGS = 3
# Each of up to 1.6 KB: an answer has room for 8,192 characters, and whoever has so many mends the first ones first.
MAX_DENIAL_BLOCKS = 10
_LEAST_SAID = len("evenspread/: ") + 20  # 20 characters: a few words


def warnings_of(findings: Sequence[Finding]) -> tuple[str, ...]:
    """A line for each of the first three findings, and one that says how many more there are."""
    told = tuple(_warning(finding) for finding in findings[:MAX_WARNINGS])
    more = len(findings) - len(told)
    if not more:
        return told
    tail = f"evenspread: {plural(more, 'more finding')}; all of them: kubectl evenspread check --cluster -f FILE"
    return (*told, tail)


def not_read(why: str) -> tuple[str, ...]:
    """The warning about an object that was admitted though not all rules that may deny could look at it."""
    return (f"evenspread: the object was not fully checked: {why}",)


def _warning(finding: Finding) -> str:
    """What is wrong, and the fix, which is left out if it leaves too little room for what is wrong."""
    said = f"evenspread/{finding.rule}: {finding.warning or finding.summary}"
    remedy = f"; {one_line(finding.remedy, WARNING_CHARS)}" if finding.remedy and not finding.warning else ""
    if len(said) + len(remedy) <= WARNING_CHARS:
        return one_line(said + remedy)
    short = shortened(said, WARNING_CHARS - len(remedy)) if len(remedy) < WARNING_CHARS // 2 else ""
    # What is wrong needs a few words after the name of the rule.
    if len(short) >= len(finding.rule) + _LEAST_SAID and len(short) + len(remedy) <= WARNING_CHARS:
        return short + remedy
    return shortened(said, WARNING_CHARS)


def denial(name: str, findings: Sequence[Finding], messages: Messages) -> str:
    """The denial: a first line that is complete by itself, a block for each finding, how to check before pushing.

    Shape: ``name`` is the object's name in messages: ``Rollout shop/web``.
    """
    first = findings[0]
    headline = first.headline or (f"{first.summary}; {first.remedy}" if first.remedy else first.summary)
    count = f" (1 of {len(findings)} problems)" if len(findings) > 1 else ""
    lines = [f"{one_line(name)}: {shortened(headline, 256)}{count}"]
    for number, finding in enumerate(findings[:MAX_DENIAL_BLOCKS], start=1):
        lines.append(f"  {number} {finding.rule}  {one_line(finding.path)}")
        lines.append(f"    {shortened(finding.detail or finding.summary, 1024)}")
        if finding.fix:
            lines.append(f"    fix: {one_line(finding.fix)}")
    if len(findings) > MAX_DENIAL_BLOCKS:
        lines.append(f"  and {len(findings) - MAX_DENIAL_BLOCKS} more")
    lines.append("  check before pushing: kubectl evenspread check -f FILE")
    if messages.docs_url:
        lines.append(f"  about {first.rule}: {messages.docs_url.rstrip('/')}/{first.rule}")
    lines.extend(f"  {line}" for line in messages.footer.splitlines())
    return "\n".join(lines)
