"""What a person sees and does in a real browser: on a desktop, a phone, in the dark, without mouse or scripts."""

import itertools
import re

import pytest
from browser.conftest import DESKTOP, PHONE
from browser.served import EXAMPLE, HOSTILE, Changing, cluster_of, file_of, looked_at, serving
from console.scans import shown, spread, workload
from msgspec.structs import replace
from playwright.sync_api import expect

from webhook.core.scan.scan_results import GuardState, ScaleInState

LEDGER = "/workload?kind=Deployment&namespace=payments&name=ledger"
PAGES = ("", "workloads", "domains", "health", LEDGER.lstrip("/"))
# What the eye compares: the text of each element against the first ground behind it that is not transparent.
FAINT = """
() => {
  const linear = (part) => part <= .03928 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4;
  const channel = (value) => linear(value / 255);
  const light = ([r, g, b]) => .2126 * channel(r) + .7152 * channel(g) + .0722 * channel(b);
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const [r, g, b, a = 1] = numbers(getComputedStyle(at).backgroundColor);
      if (a === 1) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const faint = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.checkVisibility() || element.closest("svg")) continue;
    const ink = numbers(getComputedStyle(element).color);
    const [one, other] = [light(ink), light(ground(element))].sort((a, b) => b - a);
    const ratio = (one + .05) / (other + .05);
    if (ratio < 4.5) faint.push(`${element.tagName} ${element.textContent.trim().slice(0, 30)} ${ratio.toFixed(2)}`);
  }
  return faint;
}
"""
WIDER_THAN_THE_WINDOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(name="console", scope="module")
def _console():
    with serving(EXAMPLE) as url:
        yield url


def test_the_first_screen_needs_no_scrolling(opened, console):
    with opened(console, viewport={"width": 1440, "height": 900}) as page:
        assert page.evaluate("document.documentElement.scrollHeight - innerHeight") <= 0
        expect(page.locator("#zone-loss")).to_contain_text("stay Pending")
        expect(page.locator("#pending .figure")).to_have_text("4 pods")
        expect(page.locator("#pending")).to_contain_text("the oldest for")
        expect(page.locator("#above h2")).to_have_text("Above their maxSkew")
        expect(page.locator(".strip")).to_contain_text("Ceiling")
        assert page.locator(".worst tbody tr").count() == 10
        expect(page.locator(".worst tbody tr").first).to_contain_text("Pending because of spread")


def test_a_fix_is_unfolded_and_copied(opened, console):
    with opened(console, permissions=["clipboard-read", "clipboard-write"]) as page:
        row = page.locator(".worst tr", has=page.locator("details")).first
        row.locator("summary").click()
        shown = row.locator("pre").inner_text()
        row.get_by_role("button", name="Copy").click()
        expect(row.get_by_role("button", name="Copied")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()").strip() == shown.strip() != ""


def test_the_keyboard_is_enough(opened, console):
    with opened(console) as page:
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        focused = page.evaluate("document.activeElement.closest('main') !== null")
        assert focused, "the skip link leads past the navigation"
        page.goto(f"{console}workloads")
        page.keyboard.press("/")
        page.keyboard.type("ledger")
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile("q=ledger"))
        expect(page.locator("tbody tr")).to_have_count(1)
        page.locator("tbody a").focus()
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid"
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("ledger")


def test_a_workload_is_shown_with_its_domains(opened, console):
    with opened(console + LEDGER.lstrip("/")) as page:
        rows = page.locator(".domains").first.locator("tr")
        assert rows.evaluate_all("all => all.map((row) => row.innerText.trim().split(/\\s+/))") == [
            ["eu-central-1a", "2"],
            ["eu-central-1b", "2"],
            ["eu-central-1c", "1"],
        ]
        widths = rows.locator("rect.pods").evaluate_all("all => all.map((each) => Number(each.getAttribute('width')))")
        assert widths == [66.67, 66.67, 33.33], "the limit, 2, is two thirds of the width"
        expect(page.get_by_text("Skew 1 of 1 allowed")).to_be_visible()
        expect(page.get_by_role("heading", name="Pending pods")).to_be_visible()


def test_the_map_shows_where_pods_stand(opened, console):
    with opened(f"{console}domains") as page:
        catalog = page.locator("tr", has=page.get_by_role("link", name="catalog", exact=True))
        assert catalog.locator("td").all_inner_texts() == ["0", "3", "0"]
        page.select_option("#key", "kubernetes.io/hostname")
        page.get_by_role("button", name="Show").click()
        expect(page.locator("thead")).to_contain_text("gpu-c1")


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
def test_what_if_is_answered(opened, console, scripts):
    with opened(console + LEDGER.lstrip("/"), java_script_enabled=scripts) as page:
        page.fill("#replicas", "5")
        page.set_default_timeout(120_000)
        page.get_by_role("button", name="Try it").click()
        expect(page.locator("#answer h2")).to_have_text(re.compile("^Deployment payments/ledger fits"), timeout=120_000)
        assert "replicas=5" in page.url
        page.fill("#replicas", "")
        page.select_option("#lose", "eu-central-1b")
        page.get_by_role("button", name="Try it").click()
        expect(page.locator("#answer h2")).to_have_count(2, timeout=120_000)
        expect(page.locator("#answer")).to_contain_text("cannot be reached")
        expect(page.locator("#answer")).to_contain_text("is gone")


def test_the_whole_command_is_copied_and_the_button_lies_on_none_of_it(opened, console):
    asked = f"{console}{LEDGER.lstrip('/').replace('workload', 'what-if', 1)}&lose=eu-central-1b"
    with opened(asked, permissions=["clipboard-read", "clipboard-write"]) as page:
        place = page.locator("#what-if .paste")
        shown = place.locator("pre").inner_text().strip()
        place.get_by_role("button", name="Copy").click()
        assert page.evaluate("navigator.clipboard.readText()").strip() == shown
        assert shown.startswith("evenspread simulate")
        assert "--lose" in shown
        boxes = page.evaluate(
            """() => {
                const range = document.createRange(), pre = document.querySelector("#what-if .paste pre");
                range.selectNodeContents(pre);
                const button = document.querySelector("#what-if .copy").getBoundingClientRect();
                return [...range.getClientRects()].map(each => [each.right, button.left]);
            }"""
        )
        assert boxes
        assert all(right <= left for right, left in boxes)


def test_a_question_that_makes_no_sense_is_answered_too(opened, console):
    with opened(f"{console}what-if?{LEDGER.partition('?')[2]}&drain=nowhere") as page:
        expect(page.locator("#answer")).to_contain_text("the cluster has no node nowhere")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_can_be_read(opened, console, scheme):
    """WCAG 2.2, 1.4.3: a contrast of 4.5 to 1."""
    with opened(console, color_scheme=scheme) as page:
        for path in PAGES:
            page.goto(console + path)
            assert page.evaluate(FAINT) == [], path


@pytest.mark.parametrize(
    "viewport",
    [pytest.param(PHONE, id="a phone"), pytest.param({"width": 640, "height": 400}, id="200 % zoom on a desktop")],
)
def test_nothing_is_cut_off_where_it_is_narrow(opened, console, viewport):
    with opened(console, viewport=viewport) as page:
        for path in PAGES:
            page.goto(console + path)
            assert page.evaluate(WIDER_THAN_THE_WINDOW) <= 0, path


@pytest.mark.parametrize("guard", [*GuardState])
def test_the_worst_scale_in_can_be_read_everywhere(opened, guard):
    state = ScaleInState(worst_skew=3, above=guard is not GuardState.GUARDED, guard=guard)
    live = replace(shown(workload("web", spread("a=3 b=3 c=3"), scale_in=state)), live=True)
    with serving(EXAMPLE, lambda: live) as url:
        page_url = f"{url}workload?kind=Deployment&namespace=shop&name=web"
        for viewport, scheme in itertools.product((DESKTOP, PHONE), ("light", "dark")):
            with opened(page_url, viewport=viewport, color_scheme=scheme) as page:
                panel = page.locator(".panel", has=page.get_by_role("heading", name="After a scale-in"))
                expect(panel).to_contain_text("Skew up to 3")
                expect(panel).to_contain_text("Guarded." if guard is GuardState.GUARDED else "Not guarded")
                assert page.evaluate(FAINT) == []
                assert page.evaluate(WIDER_THAN_THE_WINDOW) <= 0


def test_on_a_phone_the_name_of_a_workload_takes_the_width(opened, console):
    with opened(console, viewport=PHONE) as page:
        first = page.locator(".worst tbody tr").first
        assert first.locator("th").bounding_box()["width"] == first.locator(".why").bounding_box()["width"] > 300


def test_it_works_without_scripts(opened, console):
    with opened(console, java_script_enabled=False) as page:
        page.get_by_role("link", name="Workloads", exact=True).click()
        page.select_option("#only", "pending")
        page.get_by_role("button", name="Show").click()
        expect(page.locator("tbody tr")).to_have_count(2)
        page.get_by_role("link", name="Workload", exact=True).click()
        assert "only=pending" in page.url
        assert "sort=name" in page.url


def test_hostile_names_are_text(opened, tmp_path):
    with serving(cluster_of(HOSTILE, tmp_path)) as url, opened(url) as page:
        for path in ("", "workloads", "domains", "health"):
            page.goto(url + path)
            assert page.evaluate("window.hacked") is None, path
            assert page.locator("main img, main script, [onmouseover]").count() == 0, path
        page.goto(f"{url}workloads")
        for name in HOSTILE[:4]:
            expect(page.locator("tbody")).to_contain_text(name)
        for number in range(len(HOSTILE)):
            page.goto(f"{url}workloads")
            page.locator("tbody a").nth(number).click()
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            assert page.evaluate("window.hacked") is None


def test_a_thousand_workloads_come_a_page_at_a_time(opened):
    many = shown(*(workload(f"app-{number:04}", spread("a=2 b=1 c=1")) for number in range(1000)))
    with serving(EXAMPLE, lambda: many) as url, opened(f"{url}workloads?sort=name") as page:
        expect(page.get_by_text("1,000 workloads", exact=True)).to_be_visible()
        assert page.locator("tbody tr").count() == 50
        page.get_by_role("link", name="Next").click()
        expect(page.locator("tbody tr").first).to_contain_text("app-0050")
        assert "page=2" in page.url
        page.fill("#q", "app-0999")
        page.keyboard.press("Enter")
        expect(page.locator("tbody tr")).to_have_count(1)


def test_pages_follow_the_cluster_and_keep_what_was_unfolded(opened):
    cluster = Changing(looked_at(EXAMPLE))
    with serving(EXAMPLE, cluster) as url, opened(url) as page:
        page.clock.install()
        page.reload()
        page.locator(".worst summary").first.click()
        unfolded = page.locator("details[open]").first.get_attribute("id")
        cluster.change()
        page.clock.run_for(11_000)
        expect(page.locator(".seen")).to_contain_text("another cluster")
        assert page.locator("details[open]").first.get_attribute("id") == unfolded


def test_the_file_of_an_audit_needs_nothing_else(opened, tmp_path):
    made = tmp_path / "audit.html"
    made.write_text(file_of(EXAMPLE))
    with opened(made.as_uri(), java_script_enabled=True) as page:
        assert page.locator(".worst tbody tr").count() == 10
        page.locator(".worst a").first.click()
        assert page.locator("svg.bar").count() > 3
        assert page.evaluate("getComputedStyle(document.querySelector('.tiles')).display") == "grid", (
            "its style applies"
        )
        assert page.evaluate(WIDER_THAN_THE_WINDOW) <= 0
