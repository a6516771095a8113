"""Whatever style a manifest is written in: a fix changes what it says, and every other reader sees the same."""

import json

import pytest
import yaml
from core.rules.test_fixes import CONSTRAINTS, MISFITS, objects
from hypothesis import given, settings
from hypothesis import strategies as st
from properties.test_amendment import lines

from webhook.cli.checking.levels import Level
from webhook.cli.checking.mending import mend
from webhook.cli.checking.run import examine_files
from webhook.cli.frame import Frame
from webhook.core.policy.policy import Policy
from webhook.manifests.editing.proven_edits import value_of
from webhook.manifests.reading.files import File
from webhook.manifests.reading.manifest import read_manifests

FRAME = Frame(policy=Policy(), today="2026-11-21")


class Blocks(yaml.SafeDumper):
    """Writes text of several lines as a block, and no anchors."""

    def ignore_aliases(self, _):
        return True


Blocks.add_representer(
    str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, "|" if "\n" in text else None)
)


@st.composite
def with_text(draw, of=None):
    """An object with a text of several lines, and the same as YAML with the text as a block."""
    found = draw(objects() if of is None else of)
    note = draw(st.sampled_from(["a\nb", "a\nb\n", "a\n\n  b: [\n", "# a\n- b\n\n", " a\nb\n\n\n"]))
    field = draw(st.sampled_from([name for name, value in found.items() if isinstance(value, dict)]))
    found = {**found, field: {**found[field], "note": note}}
    return found, yaml.dump(found, Dumper=Blocks, sort_keys=draw(st.booleans()))


@st.composite
def styled(draw):
    """An object with faults, as YAML or JSON of some style."""
    found = draw(objects(st.builds(lambda right, wrong: {**right, **wrong}, CONSTRAINTS, st.just({}) | MISFITS)))
    style = draw(st.sampled_from(["block", "text", "lines", "json", "tight", "flow"]))
    if style == "text":
        return draw(with_text(st.just(found)))
    if style == "json":
        return found, json.dumps(found, indent=draw(st.sampled_from([None, 2])))
    if style == "tight":
        return found, json.dumps(found, separators=(",", ":"))
    if style == "lines":
        return found, "\n".join(lines(draw, found, (draw(st.sampled_from([2, 4])), draw(st.sampled_from([0, 2])))))
    return found, yaml.safe_dump(found, default_flow_style=style == "flow", sort_keys=False)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(styled())
def test_what_is_mended_is_read_the_same_by_others(case):
    before, text = case
    [mended] = mend([File("f", text.encode())], FRAME, lowest=Level.AUDIT).files
    after = yaml.safe_load(mended.after)
    [manifest] = read_manifests("f", mended.after)
    assert value_of(manifest) == after
    assert bool(mended.rows) is (mended.after != text.encode())
    assert after.keys() == before.keys()
    [again] = mend([File("f", mended.after)], FRAME, lowest=Level.AUDIT).files
    assert again.after == mended.after


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(objects())
def test_of_plain_json_nothing_is_refused(manifest):
    mending = mend([File("f", json.dumps(manifest).encode())], FRAME, lowest=Level.AUDIT)
    assert mending.refused == ()
    left = examine_files([File("f", mending.files[0].after)], FRAME)
    assert [row.judged.finding for row in left.rows if row.judged.finding.edits] == []


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(with_text())
def test_beside_a_block_of_text_nothing_is_refused(case):
    _, text = case
    assert mend([File("f", text.encode())], FRAME, lowest=Level.AUDIT).refused == ()
