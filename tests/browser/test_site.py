"""Every page of the documentation site in a real browser: on a desktop and a phone, by day and by night."""

import functools
import http.server
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from browser.conftest import DESKTOP, PHONE
from playwright.sync_api import expect

ROOT = Path(__file__).parents[2]
WIDER_THAN_THE_WINDOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
# Where the links of a page lead, without those to other servers.
LINKS = "[...document.querySelectorAll('a[href]')].map(link => link.href).filter(link => link.startsWith(origin))"
PAINTED = "scheme => document.body.dataset.mdColorScheme === scheme"
VIEWS = ((DESKTOP, "light"), (PHONE, "dark"))  # colours change no width


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_args):
        pass


@pytest.fixture(name="site", scope="module")
def _site(tmp_path_factory):
    """The folder of the site, built strictly with the links of a repository, and its address."""
    folder = tmp_path_factory.mktemp("site")
    environment = {**os.environ, "GITHUB_REPOSITORY": "example/evenspread", "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    assert (built.returncode, built.stdout + built.stderr) == (0, "")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield folder, f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def test_every_page_at_every_width_by_day_and_by_night(opened, site):
    """No complaint, no request elsewhere (`opened` asserts both), no horizontal scrolling, and links that resolve."""
    folder, address = site
    pages = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.html") if path.name != "404.html")
    assert len(pages) > 100
    links, wide = set(), []
    with opened(address) as page:
        for name in pages:
            page.goto(address + name)
            for size, scheme in VIEWS:
                page.set_viewport_size(size)
                page.emulate_media(color_scheme=scheme)
                page.wait_for_function(PAINTED, arg={"light": "default", "dark": "slate"}[scheme])
                if page.evaluate(WIDER_THAN_THE_WINDOW) > 0:
                    wide.append((name, size["width"]))
            links |= set(page.evaluate(f"origin => {LINKS}", address))
    assert wide == []
    broken = []
    for link in sorted(links):
        path, _, anchor = link.removeprefix(address).partition("#")
        target = folder / (path or "index.html")
        target = target / "index.html" if target.is_dir() else target
        if not target.exists() or (anchor and f'id="{anchor}"' not in target.read_text()):
            broken.append(link)
    assert broken == []


def test_every_list_is_a_list(site):
    """Python-Markdown wants a blank line where GitHub does not."""
    folder, _ = site
    lost = []
    for path in sorted(folder.rglob("*.html")):
        text = path.read_text().partition("<article")[2].partition("</article>")[0]
        text = re.sub(r"(?s)<pre\b.*?</pre>|<code>.*?</code>", "CODE", text)
        text = re.sub(r"</?(?:strong|a|em|p|li)\b[^>]*>", "", text)
        lost += [(path.name, line) for line in re.findall(r"(?m)^(?:[-*] |\d+\. |\|).*", text)]
    assert lost == []


def test_search_finds_a_rule(opened, site):
    _, address = site
    with opened(address) as page:
        page.locator(".md-search__input").click()
        page.keyboard.type("selector-not-self")
        result = page.locator(".md-search-result__item h1", has_text=re.compile("^selector-not-self$"))
        expect(result.first).to_be_visible(timeout=30_000)


def test_a_page_offers_its_source_and_another_colour(opened, site):
    _, address = site
    with opened(f"{address}runbook.html") as page:
        edit = page.locator("a[rel=edit]")
        assert edit.get_attribute("href") == "https://github.com/example/evenspread/edit/main/docs/runbook.md"
        before = page.evaluate("document.body.dataset.mdColorScheme")
        for _ in range(2):
            page.locator("label.md-header__button[for^=__palette]:visible").click()
        assert page.evaluate("document.body.dataset.mdColorScheme") != before
    with opened(f"{address}SECURITY.html") as page:
        edit = page.locator("a[rel=edit]").get_attribute("href")
        assert re.sub(r"/docs/\.\./", "/", edit) == "https://github.com/example/evenspread/edit/main/SECURITY.md"


@pytest.mark.parametrize(
    ("role", "way", "answer"),
    [
        pytest.param("developer", ["Fix a finding"], "evenspread check --fix web.yaml", id="a check fails"),
        pytest.param("developer", ["your rule", "selector-not-self"], "set matchLabels", id="a warning names a rule"),
        pytest.param("platform engineer", ["Install in a cluster"], "helm install evenspread", id="install"),
        pytest.param("platform engineer", ["from observe to deny"], "config.ceiling=deny", id="deny"),
        pytest.param("SRE", ["My pod is Pending"], "evenspread explain --pending", id="pods are Pending"),
        pytest.param(
            "SRE", ["runbook"], "kubectl delete validatingwebhookconfiguration", id="evenspread is in the way"
        ),
    ],
)
def test_a_role_finds_the_answer_from_the_start_page(opened, site, role, way, answer):
    """Two clicks at most, in the first screen of the start page."""
    _, address = site
    with opened(address) as page:
        for place, name in enumerate(way):
            link = page.locator("article").get_by_role("link", name=name, exact=True).first
            assert place or link.bounding_box()["y"] < DESKTOP["height"], role
            link.click()
            page.wait_for_load_state()
        assert answer in page.locator("article").inner_text()
