"""Read the parameters of a URL. Every value is bounded, and unknown values are ignored."""

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar
from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import asdict, replace

_LONGEST = 256  # characters; names in Kubernetes have 253 at most
_LAST_PAGE = 100_000  # far more than the workloads of any cluster fill
_Choice = TypeVar("_Choice", bound=StrEnum)


class Only(StrEnum):
    """The filter of a list of workloads."""

    ALL = "all"
    PENDING = "pending"
    SKEWED = "skewed"
    FINDINGS = "findings"
    REFUSED = "refused"


class Sort(StrEnum):
    """The order of a list of workloads."""

    WORST = "worst"
    NAME = "name"
    PODS = "pods"
    PENDING = "pending"
    SKEW = "skew"
    LOSS = "loss"


class Query(Struct, frozen=True, kw_only=True):
    """The URL parameters of the console's lists.

    Attributes:
        key: The topologyKey of the heat map. Empty for the zone key.
        page: The number of the page, from 1.
    """

    text: str = ""
    only: Only = Only.ALL
    sort: Sort = Sort.WORST
    page: int = 1
    key: str = ""


_NAMES = {"text": "q"}


def read_query(given: Mapping[str, str]) -> Query:
    """Read the parameters. Invalid values fall back to defaults."""
    return Query(
        text=given.get("q", "")[:_LONGEST].strip(),
        only=_one_of(Only, given.get("only", ""), Only.ALL),
        sort=_one_of(Sort, given.get("sort", ""), Sort.WORST),
        page=number(given.get("page", ""), most=_LAST_PAGE) or 1,
        key=given.get("key", "")[:_LONGEST],
    )


def address(path: str, query: Query, **changes: object) -> str:
    """Return the URL of a list for this query, with ``changes`` applied. Parameters with default values are omitted."""
    plain = asdict(Query())
    values = asdict(replace(query, **changes))
    return link(path, {_NAMES.get(name, name): str(value) for name, value in values.items() if value != plain[name]})


def link(path: str, parameters: Mapping[str, str]) -> str:
    """Return a path with encoded parameters."""
    return f"{path}?{urlencode(parameters)}" if parameters else path


def number(text: str, *, most: int) -> int | None:
    """Parse a whole number from 0 to ``most``. None for any other text."""
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(most))):
        return None
    return int(text) if int(text) <= most else None


def _one_of(choices: type[_Choice], text: str, otherwise: _Choice) -> _Choice:
    return choices(text) if text in {*choices} else otherwise
