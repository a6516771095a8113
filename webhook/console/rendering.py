"""Values -> HTML: the templates beside this file. Whatever comes from outside is text in them, never markup."""

from datetime import datetime
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from webhook.console.shown import Shown
from webhook.console.words import instant, written
from webhook.core.text import one_line

HERE = Path(__file__).parent

_TEMPLATES = Environment(
    loader=FileSystemLoader(HERE / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
)
_TEMPLATES.filters["one_line"] = one_line


def render(template: str, title: str, shown: Shown, address: str, /, **values: object) -> str:
    """A page.

    Shape: ``address`` is its entry in the navigation; ``values`` are its template's, and ``once`` of a page that is not
    to be asked for again by itself.
    """
    moment = instant(shown.moment)
    page = {
        "source": one_line(shown.source),
        "live": shown.live,
        "waiting": one_line(shown.waiting),
        "moment": written(moment),
        "moment_iso": moment.isoformat() if isinstance(moment, datetime) else "",
        "address": address,
    }
    given = {"style": "", "style_hash": "", "main_class": "", "once": False, **values}
    return _TEMPLATES.get_template(template).render(title=title, page=page, **given)
