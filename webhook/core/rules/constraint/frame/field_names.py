"""Which field of a constraint a name was meant to be."""

from webhook.core.api.types import LabelSelector, LabelSelectorRequirement, SpreadConstraint
from webhook.core.text import nearest
from webhook.core.workloads.custom_kinds import CONSTRAINTS

_FIELDS = (
    *(CONSTRAINTS, *SpreadConstraint.__struct_encode_fields__),
    *(*LabelSelector.__struct_encode_fields__, *LabelSelectorRequirement.__struct_encode_fields__),
)
_SLIPS = 2  # letters that a misspelt name may be off; cases do not count
# Shorter names are skipped: two wrong letters leave too little to recognise.
_BY_LETTERS = {each.lower(): each for each in _FIELDS if len(each) // 2 > _SLIPS}
# No longer name is near to one of ours; comparing takes time for each letter, and whoever writes it chooses how many.
_MAX_COMPARED_LETTERS = 2 * len(CONSTRAINTS)


def meant(name: str) -> str:
    """The field that an unknown one was probably meant to be; empty where none is near."""
    written = name.lower()
    if len(written) > _MAX_COMPARED_LETTERS:
        return ""
    near = nearest(written, _BY_LETTERS, _SLIPS)
    return "" if near is None else _BY_LETTERS[near]
