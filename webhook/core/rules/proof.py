"""Which edits help: after them every rule is asked again; the finding must be gone, and nothing new be said."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec.structs import replace

from webhook.core.kinds import parsed
from webhook.core.rules.edits import Fix, Json, applied, in_words
from webhook.core.rules.finding import Finding

# Each is an evaluation of the whole object.
_MOST_PROVEN = 8

_Again = Callable[[Mapping[str, object]], Sequence[Finding]]


def only_helpful(
    findings: Sequence[Finding],
    rules: Collection[str],
    raw: bytes | Mapping[str, object],
    again: _Again,
    *,
    warns: Callable[[Finding], bool] | None = None,
) -> tuple[Finding, ...]:
    """The findings, those of these rules without edits that do not help or that nobody had the time to try.

    Shape: ``again`` tells all findings of a changed object. With ``warns``, whether anybody is told of a finding, notes
    that the fault had hidden do not speak against a fix; what does is said behind it.
    """
    tried = [each for each in findings if each.rule in rules and each.edits]
    if not tried:
        return tuple(findings)
    value, before = parsed(raw), Counter(map(_key, findings))

    def proven(finding: Finding) -> Finding:
        left = _left(value, finding, again)
        stays = left is not None and Counter(map(_key, left))[_key(finding)] >= before[_key(finding)]
        new = [each for each in left or () if _key(each) not in before]
        if warns is None:
            return replace(finding, edits=()) if left is None or stays or new else finding
        told = next((each for each in new if each.rule == finding.rule or warns(each)), None)
        if left is not None and not stays and told is None:
            return finding
        fix = in_words(Fix(finding.fix)).text
        return replace(finding, edits=(), fix=f"{fix}; after that, {told.rule}: {told.summary}" if told else fix)

    known = {id(each): proven(each) for each in tried[:_MOST_PROVEN]}
    for each in tried[_MOST_PROVEN:]:
        known[id(each)] = replace(each, edits=(), fix=each.fix if warns is None else in_words(Fix(each.fix)).text)
    return tuple(known.get(id(each), each) for each in findings)


def _left(value: Json, finding: Finding, again: _Again) -> Sequence[Finding] | None:
    """What is to be said after the edits; None where they cannot be made, or what they make cannot be read."""
    try:
        return again(applied(value, finding.edits))
    except Exception:  # noqa: BLE001 a fix that cannot be tried is for people; the finding, and all others, stay
        return None


def _key(finding: Finding) -> tuple[str, str]:
    return (finding.rule, finding.key)
