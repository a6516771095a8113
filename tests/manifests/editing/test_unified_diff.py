import re
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.manifests.editing.document_text import TextEdit
from webhook.manifests.editing.unified_diff import line_diff

TEN = b"".join(b"%d\n" % number for number in range(10))


def diffed(data, *edits):
    return "".join(line_diff("f", data, [TextEdit(start, end, text) for start, end, text in edits]))


@pytest.mark.parametrize(
    ("data", "edits", "expected"),
    [
        pytest.param(TEN, [(9, 9, b"\nx")], "@@ -3,6 +3,7 @@\n 2\n 3\n 4\n+x\n 5\n 6\n 7\n", id="a line more"),
        pytest.param(b"a\n", [(0, 0, b"x")], "@@ -1 +1 @@\n-a\n+xa\n", id="a line otherwise"),
        pytest.param(b"a\nb\n", [(0, 2, b"")], "@@ -1,2 +1 @@\n-a\n b\n", id="a line less"),
        pytest.param(
            b"a",
            [(1, 1, b"\nx")],
            "@@ -1 +1,2 @@\n-a\n\\ No newline at end of file\n+a\n+x\n\\ No newline at end of file\n",
            id="at the end of a file without line end",
        ),
        pytest.param(
            TEN,
            [(1, 1, b"\nx"), (13, 13, b"\ny")],
            "@@ -1,10 +1,12 @@\n 0\n+x\n 1\n 2\n 3\n 4\n 5\n 6\n+y\n 7\n 8\n 9\n",
            id="near changes in one hunk",
        ),
        pytest.param(
            TEN,
            [(1, 1, b"\nx"), (15, 15, b"\ny")],
            "@@ -1,4 +1,5 @@\n 0\n+x\n 1\n 2\n 3\n@@ -6,5 +7,6 @@\n 5\n 6\n 7\n+y\n 8\n 9\n",
            id="far ones in two",
        ),
        pytest.param(b"abc\n", [(0, 1, b"x"), (2, 3, b"z")], "@@ -1 +1 @@\n-abc\n+xbz\n", id="two in one line"),
        pytest.param(b"a\r\n", [(1, 1, b"\r\nx")], "@@ -1 +1,2 @@\n a\r\n+x\r\n", id="Windows line ends"),
    ],
)
def test_hunks(data, edits, expected):
    assert diffed(data, *edits) == f"--- f\n+++ f\n{expected}"


def patched(text, diff):
    """The text after the diff, as patch(1) applies it; lines that differ from it are an error."""
    lines, made, at, last = re.findall(r"[^\n]*\n|[^\n]+", text), [], 0, ""
    for line in re.findall(r"[^\n]*\n", diff)[2:]:
        if hunk := re.fullmatch(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@\n", line):
            made += lines[at : int(hunk[1]) - 1]
            at = int(hunk[1]) - 1
            assert len(made) == int(hunk[2]) - 1
        elif line.startswith("\\"):
            made[-1:] = [made[-1].removesuffix("\n")] if last in " +" else made[-1:]
        else:
            last = line[0]
            if last in " -":
                assert lines[at].rstrip("\n") == line[1:].rstrip("\n")
                at += 1
            made += [line[1:]] if last in " +" else []
    return "".join(made + lines[at:])


@st.composite
def edited(draw):
    text = draw(st.text("ab\n", min_size=1, max_size=60))
    cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=6)))
    pairs = zip(cuts[::2], cuts[1::2], strict=False)
    return text, [(start, end, draw(st.text("xa\n", max_size=5))) for start, end in pairs]


@given(edited())
def test_applied_it_gives_the_edited_text(case):
    text, edits = case
    after, at = "", 0
    for start, end, new in edits:
        after, at = f"{after}{text[at:start]}{new}", end
    diff = diffed(text.encode(), *((start, end, new.encode()) for start, end, new in edits))
    assert patched(text, diff) == after + text[at:]


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("./a b.yaml", "./a b.yaml"),
        ("./é.yaml", "./é.yaml"),
        ("a\n::error::x", '"a\\012::error::x"'),
        ('\x1b[31m"\\', '"\\033[31m\\"\\\\"'),
        ("\udcff.yaml", '"\\377.yaml"'),
        ("\u202e.yaml", '"\\342\\200\\256.yaml"'),
    ],
)
def test_a_name_stays_in_its_line(name, written):
    head = next(line_diff(name, b"a: 1\n", [TextEdit(3, 4, b"2")]))
    assert head == f"--- {written}\n+++ {written}\n"


def test_patch_finds_a_file_whose_name_has_a_line_break(tmp_path):
    git = shutil.which("git")
    if git is None:
        pytest.skip("git is not installed")
    name = "a\n::error::x.yaml"
    (tmp_path / name).write_text("a: 1\n")
    change = "".join(line_diff(name, b"a: 1\n", [TextEdit(3, 4, b"2")]))
    subprocess.run([git, "apply", "-p0"], cwd=tmp_path, input=change.encode(), check=True)  # noqa: S603 git
    assert (tmp_path / name).read_text() == "a: 2\n"
