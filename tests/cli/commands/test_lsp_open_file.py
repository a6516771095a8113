"""An open file while somebody types: what is remembered never changes an answer, and saves most of the work."""

import json
import statistics
import time

import pytest
import yaml
from cli.checking.test_same_file import WIDE, deployed
from cli.editor import Editor

from bench import keystrokes
from webhook.cli.checking.levels import Level
from webhook.cli.cluster_source import read_snapshot
from webhook.cli.commands.lsp.open_file import OpenFile
from webhook.cli.frame import Frame
from webhook.core.policy.policy import Policy
from webhook.manifests.reading.files import File

FRAME = Frame(policy=Policy(), today="2026-11-28")
OTHER, ALIKE = deployed("worker", "app=job part=worker"), deployed("worker", "app=web part=worker")


def found(opened):
    """Where each finding and fault is, and its text."""
    rows = [(row.place.line, row.place.column, row.place.width, row.judged.finding) for row in opened.result.rows]
    return rows, opened.result.faults, opened.result.failures


def checked(opened, text):
    opened.check(File("web.yaml", text.encode()))
    return found(opened)


def fresh(text):
    return checked(OpenFile(FRAME, Level.AUDIT), text)


def text_of(*objects):
    return yaml.safe_dump_all(objects)


def test_other_objects_follow_after_a_pause():
    opened, before, after = OpenFile(FRAME, Level.AUDIT), text_of(WIDE, OTHER), text_of(WIDE, ALIKE)
    checked(opened, before)
    rules = [row.judged.finding.rule for row in opened.result.rows]
    checked(opened, after)
    assert [row.judged.finding.rule for row in opened.result.rows] == rules
    assert len(list(opened.renew())) == 1  # the unchanged object
    assert [row.judged.finding.rule for row in opened.result.rows] == ["selector-too-wide", *rules]
    assert found(opened) == fresh(after)
    assert list(opened.renew()) == []


@pytest.mark.slow
def test_the_editor_is_shown_what_follows_after_a_pause(tmp_path):
    with Editor(tmp_path, "--level", "audit") as editor:
        editor.open(text_of(WIDE, OTHER))
        first = [each.code for each in editor.type(text_of(WIDE, ALIKE))]
        assert [each.code for each in editor.pause()] == ["selector-too-wide", *first]


def test_unrelated_changes_examine_nothing_again():
    opened, text = OpenFile(FRAME, Level.AUDIT), text_of(WIDE)
    checked(opened, text)
    checked(opened, f"# a comment\n\n{text}")
    assert list(opened.renew()) == []
    assert found(opened) == fresh(f"# a comment\n\n{text}")


def test_each_half_typed_text_is_checked_as_a_new_one():
    whole = text_of(WIDE, ALIKE, {"apiVersion": "v1", "kind": "List", "items": [OTHER, WIDE]})
    opened = OpenFile(FRAME, Level.AUDIT)
    for length in (*range(0, len(whole), 83), len(whole)):
        text = whole[:length] + "\n---\n" + text_of(OTHER)
        checked(opened, text)
        list(opened.renew())
        assert found(opened) == fresh(text), text


@pytest.mark.slow
def test_a_keystroke_costs_a_small_part_of_a_whole_check(tmp_path):
    """In a file of 1,000 lines beside 5,000 nodes. `python -m bench.keystrokes` measures the time."""
    cluster = tmp_path / "cluster.jsonl"
    cluster.write_text("".join(json.dumps(line) + "\n" for line in keystrokes.snapshot()))
    index = read_snapshot(str(cluster), FRAME.policy, None).index
    opened, documents = (
        OpenFile(Frame(policy=Policy(), today=FRAME.today, index=index), Level.LOW),
        keystrokes.manifests(),
    )

    def spent(text):
        start = time.process_time()
        checked(opened, text)
        return time.process_time() - start

    whole = spent("".join(documents))
    assert statistics.median(map(spent, keystrokes.typed(documents, 20))) < whole / 4
