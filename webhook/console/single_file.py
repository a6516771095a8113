"""The first screen as one file: its style inside, no script, nothing loaded, so that it can be mailed and kept."""

import base64
import hashlib

from markupsafe import Markup

from webhook.console.pages.first_screen import MOST_WORST, first_screen
from webhook.console.pages.summary import wrongs
from webhook.console.pages.workload import workload_page
from webhook.console.rendering import HERE, render
from webhook.console.shown import Shown
from webhook.console.words import instant
from webhook.core.scan.scanned import ClusterScan


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
