"""The output formats of findings: a module with a ``render`` function for each, imported when needed."""

import importlib
from collections.abc import Callable, Iterator
from functools import partial

from webhook.cli.checking.fleet import Fleet, combined
from webhook.cli.checking.results import RunResult
from webhook.cli.output.terminal import disarm
from webhook.report.documents import ReportApi

FORMATS = ("text", "json", "yaml", "github", "gitlab", "sarif", "junit", "report")


def renderer(name: str, report_api: str, *, verbose: bool = False) -> Callable[[RunResult], Iterator[str]]:
    """Return the render function of an output format.

    ``report_api`` is for the format ``report``, ``verbose`` for the format ``text``.
    """
    module = importlib.import_module(f"{__name__}.{'json' if name == 'yaml' else name}")
    render: Callable[..., Iterator[str]] = module.render_yaml if name == "yaml" else module.render
    if name == "report":
        render = partial(render, api=ReportApi(report_api))
    if name == "text":
        render = partial(render, verbose=verbose)
    if name in {"text", "junit"}:
        return lambda result: map(disarm, render(result))
    return render


def fleet_renderer(name: str, report_api: str) -> Callable[[Fleet], Iterator[str]]:
    """Return the render function of a format for several clusters.

    JSON and YAML compare the clusters. Other formats list the findings of all clusters.
    """
    if name in {"json", "yaml"}:
        module = importlib.import_module(f"{__name__}.json")
        return partial(module.render_fleet, output=name)
    render = renderer(name, report_api)
    return lambda fleet: render(combined(fleet))
