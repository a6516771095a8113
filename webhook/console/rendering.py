"""Render values to HTML with the templates, and the first screen as one file. Foreign text never becomes markup.

The single file contains its style, has no script and loads nothing. You can mail and archive it.
"""

import base64
import hashlib
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from webhook.answers.fleet import FleetCluster, FleetWorkload, UnreadCluster
from webhook.console.pages.first_screen import MOST_WORST, first_screen
from webhook.console.pages.fleet import fleet_page
from webhook.console.pages.summary import wrongs
from webhook.console.pages.workload import workload_page
from webhook.console.shown import Health, Shown
from webhook.console.words import instant, written
from webhook.core.scan.scan_results import ClusterScan
from webhook.core.text import one_line, plural

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
    """Render a page with these values of its template.

    ``address`` is the path of the navigation entry to mark as current. The value ``once`` turns off the page's
    automatic refresh.
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
    """Render the first screen and the worst workloads with their pictures as one file."""
    moment = instant(shown.moment)
    bad = [workload for workload in scan.workloads if any(True for _ in wrongs(workload, moment))]
    start, details = first_screen(shown, scan), [workload_page(shown, scan, workload) for workload in bad[:MOST_WORST]]
    return _as_file("file.html", shown, start=start, details=details, main_class="start")


def fleet_file(clusters: Sequence[FleetCluster | UnreadCluster], workloads: Sequence[FleetWorkload]) -> str:
    """Render several clusters, side by side, as one file."""
    shown = Shown(scan=None, source=plural(len(clusters), "cluster"), health=Health(ceiling="", defaults_mode=""))
    return _as_file("fleet.html", shown, fleet=fleet_page(clusters, workloads))


def _as_file(template: str, shown: Shown, /, **values: object) -> str:
    """Render a page that contains its style. A browser loads nothing else."""
    style = (HERE / "static" / "console.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return render(
        template,
        "Audit",
        shown,
        "/",
        **values,
        style=Markup(style),  # noqa: S704 a file of ours
        style_hash=f"sha256-{digest}",
    )
