"""What the pages and messages tell people to type is taken by Helm."""

import re
import textwrap

import helm_python
import pytest
import yaml
from chart.rendered import CA, CHART, ZERO, files, names, refusal

ROOT = CHART.parents[1]
STEPS = ROOT / "docs" / "how-to" / "observe-to-deny.md"
PAGES = [*(ROOT / "docs").rglob("*.md"), CHART / "README.md", CHART / "templates" / "_helpers.tpl"]
SETTING = re.compile(r"""--set(-string|-json|-file)? (?:'([^']*)'|([^\s`'"(,;]+))""")
PARSERS = {
    "": helm_python.parse_set_string,
    "-string": helm_python.parse_set_string_values,
    "-json": helm_python.parse_set_json,
    "-file": lambda text: helm_python.parse_set_string(f"{text.partition('=')[0]}=-----BEGIN CERTIFICATE-----"),
}
SETTINGS = sorted(
    {
        (how, quoted or plain)
        for page in PAGES
        for how, quoted, plain in SETTING.findall(page.read_text())
        if "=" in quoted + plain
    }
)


def merged(*values):
    found = {}
    for each in values:
        for name, value in each.items():
            old = found.get(name)
            found[name] = merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return found


def test_many_settings_were_found():
    assert len(SETTINGS) > 15


@pytest.mark.parametrize(("how", "text"), SETTINGS, ids=[text[:40] for _, text in SETTINGS])
def test_a_setting_that_is_shown_is_taken(how, text):
    values = merged({"certificates": {"caBundle": CA}, "ports": {"webhook": 9443}}, PARSERS[how](text))
    assert refusal(values) == ""


VALUES = {
    "managed-clusters.md": lambda shown: shown,
    "gitops.md, Argo CD": lambda shown: shown["spec"]["source"]["helm"]["valuesObject"],
    "gitops.md, Flux": lambda shown: shown["spec"]["values"],
}


@pytest.mark.parametrize("place", VALUES)
def test_values_that_are_shown_are_taken(place):
    page, _, title = place.partition(", ")
    text = (ROOT / "docs" / "how-to" / page).read_text().partition(f"## {title}\n" if title else "\n")[2]
    shown = yaml.safe_load(textwrap.dedent(re.search(r"( *)```yaml\n(.*?) *```", text, re.DOTALL)[2]))
    assert refusal(merged(ZERO, VALUES[place](shown))) == ""


def test_the_steps_add_up():
    """All numbered steps from observe to deny, one after the other."""
    steps = STEPS.read_text().partition("\n1. **")[2]
    given = [PARSERS[how](quoted or plain) for how, quoted, plain in SETTING.findall(steps)]
    values = merged(ZERO, *given)
    assert "MutatingWebhookConfiguration/evenspread" in names(values)
    assert "refuses what it cannot send" in files(values)["NOTES.txt"]


def test_what_is_said_of_zero_values_is_what_they_do():
    notes = files(ZERO)["NOTES.txt"]
    page = (ROOT / "docs" / "install.md").read_text()
    for line in notes.splitlines():
        if re.match(r"  (denies|patches|sees|if down) ", line):
            assert line in page
