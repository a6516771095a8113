"""Write expressions of CEL, the expression language of kube-apiserver.

The functions take and return expressions as text. They use only functions of Kubernetes 1.30, because kube-apiserver
refuses a policy with functions that are newer than its previous release.

Source: k8s.io/apiserver pkg/cel/environment base.go; cel-go ext strings.go.
"""

import json
from collections.abc import Iterable
from string import Formatter

from webhook.core.rules.frame.rule import WARNING_CHARS

MOST_ITEMS = 16
"""The longest list with a sorted or indexed copy. CEL has no ranges, and no sorting before Kubernetes 1.34.

`make policies` measures: the most expensive sort costs 8 % of kube-apiserver's limit, with 32 items 35 %.
"""
_RANGE = f"[{', '.join(map(str, range(MOST_ITEMS)))}]"
_MOST_SORTED = 64  # labels: 8 % of the limit. Sorting 250 costs 63 %.
_LEAST_WORDS = len("evenspread/: ") + 20  # as in the messages of the webhook


def literal(value: str) -> str:
    """Return a string as a literal."""
    return json.dumps(value, ensure_ascii=False)


def literals(values: Iterable[str]) -> str:
    """Return a list of strings as a literal."""
    return json.dumps([*values], ensure_ascii=False)


def text(template: str, **parts: str) -> str:
    """Return the concatenation for a template of `str.format`.

    >>> text("{name}: use {key}", name="variables.name", key='"app"')
    '(variables.name + ": use " + "app")'
    """
    pieces = []
    for before, field, _, _ in Formatter().parse(template):
        pieces += [literal(before)] if before else []
        pieces += [parts[field]] if field else []
    return f"({' + '.join(pieces)})"


def cut(value: str, limit: int) -> str:
    """Cut a text with an ellipsis at the limit (`webhook.core.text.one_line`)."""
    return f'({value}.size() <= {limit} ? {value} : {value}.substring(0, {limit - 1}) + "…")'


def name(value: str, limit: int = 80) -> str:
    """Format a label key or value (`webhook.core.text.quoted`). Only an empty one gets quotes: others are checked."""
    return f'({value} == "" ? "\\"\\"" : {cut(value, limit)})'


def joined(values: str, separator: str, limit: int = 256) -> str:
    """Join a list of texts, and cut the result."""
    return f"[{values}.join({literal(separator)})].map(all, {cut('all', limit)})[0]"


def indexes(values: str) -> str:
    """Return the indexes of a list, of at most its first 16 items."""
    return f"{_RANGE}.filter(at, at < {values}.size())"


def in_order(values: str) -> str:
    """Return the first 16 of distinct texts, sorted. Of more than 64, return any 16."""
    # The first step compares all texts with each other. The cost grows by the square, and by the length of label keys.
    first = f"{values}.filter(x, {values}.filter(y, y < x).size() < {MOST_ITEMS})"
    sorted_ = f"{indexes('some')}.map(n, some.filter(x, some.filter(y, y < x).size() == n)[0])"
    unsorted = f"{indexes(values)}.map(n, {values}[n])"
    return f"({values}.size() <= {_MOST_SORTED} ? {with_names(sorted_, some=first)} : {unsorted})"


def distinct(values: str) -> str:
    """Return the different texts among the first 16, in order."""
    within = f"n < {values}.size() && !{_RANGE}.exists(m, m < n && {values}[m] == {values}[n])"
    return f"{_RANGE}.filter(n, {within}).map(n, {values}[n])"


def matches(requirement: str, labels: str) -> str:
    """Whether labels satisfy an entry of matchExpressions."""
    key, operator = f"{requirement}.key", f"{requirement}.operator"
    among = f"{key} in {labels} && {labels}[{key}] in {requirement}.values"
    return (
        f'({operator} == "In" ? {among} : {operator} == "NotIn" ? !({among}) : '
        f'{operator} == "Exists" ? {key} in {labels} : !({key} in {labels}))'
    )


def requirement_text(requirement: str) -> str:
    """Write an entry of matchExpressions (`webhook.core.api.selector_text.short_text`)."""
    key, operator = name(f"{requirement}.key"), f"{requirement}.operator"
    values = f'{requirement}.values.map(v, {name("v")}).join(",")'
    return (
        f'({operator} == "In" && {requirement}.values.size() == 1 ? {key} + "=" + {values} : '
        f'{operator} == "In" ? {key} + " in (" + {values} + ")" : '
        f'{operator} == "NotIn" ? {key} + " notin (" + {values} + ")" : '
        f'{operator} == "Exists" ? {key} : "!" + {key})'
    )


def shortened(value: str, limit: str) -> str:
    """Cut a sentence after a whole word (`webhook.core.text.shortened`). ``limit`` is an expression."""
    words = f'[{value}.substring(0, {limit} - 1)].map(s, s.substring(0, s.lastIndexOf(" ")))[0]'
    bare = f'[{words}].map(w, [0, 1, 2, 3].map(n, w.substring(0, w.size() - n)).filter(t, !t.matches("[ ,;:]$"))[0])[0]'
    return f'({value}.size() <= {limit} ? {value} : {bare} + " …")'


def with_names(expression: str, **values: str) -> str:
    """Give values a name in the expression. CEL has no other way to name a value."""
    for variable, value in reversed(values.items()):
        expression = f"[{value}].map({variable}, {expression})[0]"
    return expression


def warning(rule: str, summary: str, remedy: str, *lines: str) -> str:
    """Return the warning of a finding, as the webhook writes it: the first line with room, else a shortened summary.

    ``remedy`` is "" for a rule whose summary has it.
    """
    head = f"evenspread/{rule}: "
    short = shortened("whole", f"({WARNING_CHARS} - fix.size())")
    chosen = (
        f"whole.size() + fix.size() <= {WARNING_CHARS} ? whole + fix : fix.size() < {WARNING_CHARS // 2} &&"
        f" {short}.size() >= {len(rule) + _LEAST_WORDS} ? {short} + fix : {shortened('whole', str(WARNING_CHARS))}"
    )
    fix = f'"; " + {remedy}' if remedy else '""'
    chosen = with_names(chosen, whole=f"{literal(head)} + {summary}", fix=fix)
    for line in reversed(lines):
        fits = f"line.size() <= {WARNING_CHARS - len(head)} ? {literal(head)} + line : {chosen}"
        chosen = with_names(fits, line=line)
    return chosen


def one_slip(word: str) -> str:
    """Return a pattern of RE2 for words with a typing error: a letter more, less or other, or two letters swapped."""
    letters = [f"[{letter}]" if letter in ".^" else letter for letter in word]
    alternatives = "".join(letters)
    for at in reversed(range(len(letters))):
        rest = "".join(letters[at + 1 :])
        slips = [f".?{rest}", f".{letters[at]}{rest}"]
        if at + 1 < len(letters):
            slips.append(letters[at + 1] + letters[at] + "".join(letters[at + 2 :]))
        later = [f"{letters[at]}(?:{alternatives})" if at + 1 < len(letters) else f"{letters[at]}."]
        alternatives = "|".join((*slips, *later))
    return f"^(?:{alternatives})$"
