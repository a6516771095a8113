"""Helm charts on disk: whether a chart's templates read a value of this name."""

import re
from functools import cache
from pathlib import Path

from webhook.manifests.reading.files import leads_out

_CHART = "Chart.yaml"
# A chart's templates are small; of a larger file the first part is read.
_MAX_TEMPLATE_BYTES = 2**20


def chart_reads(values_file: str, name: str) -> bool:
    """Whether the chart around a values file, or a chart inside it, has a template with this name as a word."""
    chart = next((each for each in Path(values_file).absolute().parents if (each / _CHART).is_file()), None)
    return chart is not None and name in _words(chart)


@cache
def _words(chart: Path) -> frozenset[str]:
    words = set[str]()
    for path in chart.rglob("templates/**/*"):
        if path.is_file() and not leads_out(str(path)):
            with path.open("rb") as file:
                words.update(re.findall(r"\w+", file.read(_MAX_TEMPLATE_BYTES).decode("utf-8", "replace")))
    return frozenset(words)
