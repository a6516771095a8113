"""Takes the pictures of docs/console.md: ``make pictures``. Whoever runs it looks at each."""

import sys
from pathlib import Path

from browser.conftest import DESKTOP, PHONE, QUIET, executable
from browser.served import EXAMPLE, serving
from playwright.sync_api import sync_playwright

LEDGER = "workload?kind=Deployment&namespace=payments&name=ledger"
# Name, page, window, scheme.
TAKEN = (
    ("console-desktop-light", "", DESKTOP, "light"),
    ("console-desktop-dark", "", DESKTOP, "dark"),
    ("console-phone-light", "", PHONE, "light"),
    ("console-phone-dark", "", PHONE, "dark"),
    ("console-workload", LEDGER, DESKTOP, "light"),
    ("console-domains", "domains", DESKTOP, "dark"),
    ("console-what-if", f"{LEDGER.replace('workload', 'what-if', 1)}&lose=eu-central-1b", DESKTOP, "light"),
)


def take(folder):
    """Write each picture as a PNG."""
    folder.mkdir(exist_ok=True)
    with serving(EXAMPLE) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=[*QUIET])
        for name, path, window, scheme in TAKEN:
            page = browser.new_page(viewport=window, color_scheme=scheme)
            page.goto(url + path)
            page.screenshot(path=folder / f"{name}.png", animations="disabled")
            page.close()
        browser.close()


if __name__ == "__main__":
    take(Path(sys.argv[1]))
