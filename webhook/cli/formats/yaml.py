"""``-o yaml``: the entries of ``-o json`` as YAML."""

from collections.abc import Iterator

import yaml

from webhook.cli.checking.results import RunResult
from webhook.cli.formats.json import as_values


def render(result: RunResult, *, color: bool) -> Iterator[str]:  # noqa: ARG001 every format has this signature
    """A list, keys in the order of the promise."""
    yield yaml.dump(as_values(result), Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=100)
