"""A result -> text for people or machines: one function a format, imported when it is asked for."""

import importlib
from collections.abc import Iterator
from functools import partial
from typing import Protocol, cast

from webhook.cli.checking.results import RunResult
from webhook.cli.terminal import harmless
from webhook.report.documents import ReportApi

FORMATS = ("text", "json", "yaml", "github", "sarif", "junit", "report")


class Render(Protocol):
    """A result as text, piece by piece; ``color`` allows terminal colours."""

    def __call__(self, result: RunResult, *, color: bool) -> Iterator[str]: ...


def renderer(name: str, report_api: str, *, verbose: bool = False) -> Render:
    """The function ``render(result, color)`` of a format; ``report_api`` is for reports, ``verbose`` for text."""
    room = importlib.import_module(f"{__name__}.{'json' if name == 'yaml' else name}")
    render = room.render_yaml if name == "yaml" else room.render
    if name == "report":
        render = partial(render, api=ReportApi(report_api))
    if name == "text":
        render = partial(render, verbose=verbose)
    if name in {"text", "junit"}:
        return lambda result, *, color: map(harmless, render(result, color=color))
    return cast("Render", render)
