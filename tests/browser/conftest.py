"""A real Chromium, and the console in front of it; whatever it complains of fails the test."""

import shutil
from contextlib import contextmanager

import pytest
from playwright.sync_api import sync_playwright

# A container has no namespaces for its sandbox, and a test no business with anybody's servers.
QUIET = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"),
)
VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
"""
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}


def pytest_ignore_collect(config):
    """Only `make browser` (-m browser) runs these: the rest of the suite needs Python alone."""
    return None if config.option.markexpr == "browser" else True


def pytest_itemcollected(item):
    item.add_marker("browser")


def executable():
    """Chromium's path. It is the distribution's; a gate without it is red, not green."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    assert found, "make browser needs chromium in PATH: apt-get install chromium"
    return found


@pytest.fixture(name="chromium", scope="session")
def _chromium():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=[*QUIET])
        yield browser
        browser.close()


@pytest.fixture(name="opened")
def _opened(chromium):
    """``with opened(url, viewport=…) as page``: the page may complain of nothing, and ask for nothing elsewhere."""

    @contextmanager
    def opened(url, *, viewport=DESKTOP, **settings):
        complaints, strangers = [], []
        context = chromium.new_context(viewport=viewport, **settings)
        context.add_init_script(VIOLATIONS)
        page = context.new_page()
        page.on("console", lambda line: complaints.append(line.text) if line.type in {"error", "warning"} else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        origin = url.split("/", 3)[:3]
        page.on("request", lambda sent: strangers.append(sent.url) if sent.url.split("/", 3)[:3] != origin else None)
        page.goto(url)
        try:
            yield page
            if settings.get("java_script_enabled", True):
                complaints += page.evaluate("window.violations")
            assert (complaints, strangers) == ([], [])
        finally:
            context.close()

    return opened
