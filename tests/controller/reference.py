"""Writes the table of the scan's metrics into docs/reports.md: ``python tests/controller/reference.py``."""

import re
from pathlib import Path

from controller.test_figures import whole

PAGE = Path(__file__).parents[2] / "docs" / "reports.md"
_BLOCK = re.compile(r"(<!-- metrics: written by tests/controller/reference.py -->\n).*?(<!-- end -->)", re.DOTALL)


def with_table(text):
    rows = []
    for family in whole().collect():
        name = family.name + ("_total" if family.type == "counter" else "")
        labels = ",".join(family.samples[0].labels) if family.samples else ""
        rows.append(f"| `{name}{f'{{{labels}}}' if labels else ''}` | {family.documentation} |\n")
    table = "".join(["| metric | meaning |\n", "|---|---|\n", *rows])
    text, found = _BLOCK.subn(lambda block: block[1] + table + block[2], text)
    assert found == 1
    return text


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
