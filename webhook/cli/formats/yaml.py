"""``-o yaml``: the entries of ``-o json`` as YAML."""

from collections.abc import Iterator

from webhook.cli.checking.results import RunResult
from webhook.cli.formats.json import as_values
from webhook.core.yaml_block import block


def render(result: RunResult, *, color: bool) -> Iterator[str]:  # noqa: ARG001 every format has this signature
    """A list, keys in the order of the promise."""
    yield block(as_values(result))
