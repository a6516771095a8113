"""Values -> HTML by the templates beside this file, and the first screen as one file. Outside text is never markup.

The one file has its style inside, no script, and loads nothing, so that it can be mailed and kept.
"""

import base64
import hashlib
from datetime import datetime
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from webhook.console.pages.first_screen import MOST_WORST, first_screen
from webhook.console.pages.summary import wrongs
from webhook.console.pages.workload import workload_page
from webhook.console.shown import Shown
from webhook.console.words import instant, written
from webhook.core.scan.scanned import ClusterScan
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


def single_file(shown: Shown, scan: ClusterScan) -> str:
    """The first screen, and below it the worst workloads with their pictures."""
    style = (HERE / "static" / "console.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    moment = instant(shown.moment)
    bad = [each for each in scan.workloads if any(True for _ in wrongs(each, moment))]
    return render(
        "file.html",
        "Audit",
        shown,
        "/",
        start=first_screen(shown, scan),
        details=[workload_page(shown, scan, each) for each in bad[:MOST_WORST]],
        main_class="start",
        style=Markup(style),  # noqa: S704 a file of ours
        style_hash=f"sha256-{digest}",
    )
