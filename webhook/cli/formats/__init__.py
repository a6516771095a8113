"""An outcome -> text for people or machines: one function a format, imported when it is asked for."""

import importlib
from typing import cast

from webhook.cli.formats.shape import Render

FORMATS = {
    "text": "webhook.cli.formats.as_text",
    "json": "webhook.cli.formats.as_json",
    "yaml": "webhook.cli.formats.as_yaml",
    "github": "webhook.cli.formats.as_github",
    "sarif": "webhook.cli.formats.as_sarif",
    "junit": "webhook.cli.formats.as_junit",
}


def renderer(name: str) -> Render:
    """The function ``render(outcome, color)`` of a format."""
    return cast("Render", importlib.import_module(FORMATS[name]).render)
