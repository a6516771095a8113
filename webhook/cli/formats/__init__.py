"""A result -> text for people or machines: one function a format, imported when it is asked for."""

import importlib
from functools import partial
from typing import cast

from webhook.cli.formats.render import Render
from webhook.report.documents import ReportApi

FORMATS = {
    "text": "webhook.cli.formats.text",
    "json": "webhook.cli.formats.json",
    "yaml": "webhook.cli.formats.yaml",
    "github": "webhook.cli.formats.github",
    "sarif": "webhook.cli.formats.sarif",
    "junit": "webhook.cli.formats.junit",
    "report": "webhook.cli.formats.report",
}


def renderer(name: str, report_api: str, *, verbose: bool = False) -> Render:
    """The function ``render(result, color)`` of a format; ``report_api`` is for reports, ``verbose`` for text."""
    render = importlib.import_module(FORMATS[name]).render
    if name == "report":
        render = partial(render, api=ReportApi(report_api))
    return cast("Render", partial(render, verbose=verbose) if name == "text" else render)
