"""Apply each fix of each finding in files: ``PYTHONPATH=tests python tests/core/rules/fixes_of_files.py PATH...``.

One fix at a time, as text. It holds if the finding is gone, no constraint that the fix does not name has changed, and
strict decoding refuses nothing that it accepted before. With ``ORACLE`` set to the program that `conformance/build.sh`
prints, Kubernetes' own strict decoder judges the objects; else ours does, which is compared with it elsewhere.
"""

import json
import os
import re
import subprocess
import sys
from collections import Counter

from webhook.cli.checking.run import CheckRun
from webhook.cli.frame import Frame
from webhook.core.json_edits import applied, marked, without_gone
from webhook.core.policy.policy import Policy
from webhook.core.workloads.kinds import BUILT_IN_KINDS, group_of
from webhook.manifests.editing.document_text import UneditableError
from webhook.manifests.editing.proven_edits import ObjectChange, edited, proven, value_of
from webhook.manifests.editing.rewriting import rewritten
from webhook.manifests.reading.files import File, read_files
from webhook.manifests.reading.manifest import Manifest, read_manifests

_CONSTRAINT = re.compile(r"(.*?topologySpreadConstraints)\[(\d+)\]")
# A fix of these takes out constraints that say what another says, or nothing.
REMOVING = {"duplicate-constraint", "spread-without-effect"}


def constraints(value, path=""):
    """Every list of constraints of an object, by its path."""
    if isinstance(value, dict):
        for key, each in value.items():
            here = f"{path}.{key}".removeprefix(".")
            if key == "topologySpreadConstraints" and isinstance(each, list):
                yield here, each
            else:
                yield from constraints(each, here)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from constraints(each, f"{path}[{number}]")


def is_said_twice(before, finding):
    """Whether each constraint that a fix removes equals another one, but for the field that the finding is about."""
    gone = [edit for edit in finding.edits if edit.value is None and _CONSTRAINT.fullmatch(edit.path)]
    fixed = dict(constraints(applied(before, [edit for edit in finding.edits if edit not in gone])))
    for edit in gone:
        path, number = _CONSTRAINT.fullmatch(edit.path).groups()
        field = finding.path.removeprefix(f"{edit.path}.")
        listed = [{key: value for key, value in each.items() if key != field} for each in fixed[path]]
        if listed.count(listed[int(number)]) < 2:
            return False
    return bool(gone)


def touched(before, after, finding):
    """The constraints that a fix changes or removes although it is not about them."""
    named = {found.groups() for edit in finding.edits if (found := _CONSTRAINT.match(edit.path))}
    moved = {edit.path for edit in finding.edits if edit.value is None}
    now = dict(constraints(after))
    for path, listed in constraints(before):
        if any(path == each or path.startswith(f"{each}.") for each in moved):
            continue
        left = list(now.get(path, ()))
        if len(left) < len(listed) and finding.rule not in REMOVING and not is_said_twice(before, finding):
            yield f"{path}: a constraint is gone"
        for number, each in enumerate(listed):
            if (path, str(number)) not in named:
                if each not in left:
                    yield f"{path}[{number}] has changed"
                else:
                    left.remove(each)


def checked(value, frame):
    """The findings of an object, and what strict decoding says of it."""
    seen = CheckRun()
    [manifest] = read_manifests("it.json", json.dumps(value).encode())
    examined = seen.examine(manifest, frame)
    return [row.judged.finding for row in seen.rows], {each for each in examined.warnings if "field" in each}


def refused_by_kubernetes(value):
    """What Kubernetes' own strict decoder says of an object."""
    line = json.dumps({"id": "it", "object": value})
    done = subprocess.run(  # noqa: S603
        [os.environ["ORACLE"], "validate"], input=line, capture_output=True, text=True, check=False
    )
    if done.returncode:
        return None  # of a kind that the oracle does not decode
    answer = json.loads(done.stdout)
    return {*answer.get("strictWarnings", ()), *filter(None, [answer.get("decodeError")])}


def faults_of(before, after, finding, frame):
    """What is wrong with a fix: nothing of a good one."""
    found, strict = checked(after, frame)
    said, known = checked(before, frame)
    same = [(each.rule, each.key) for each in found].count((finding.rule, finding.key))
    if same and same >= [(each.rule, each.key) for each in said].count((finding.rule, finding.key)):
        yield "the finding stays"
    yield from touched(before, after, finding)
    kind = before.get("kind"), before.get("apiVersion")
    if os.environ.get("ORACLE") and (group_of(str(kind[1])), kind[0]) in BUILT_IN_KINDS:
        theirs = refused_by_kubernetes(after), refused_by_kubernetes(before)
        strict, known = (strict, known) if None in theirs else theirs
    yield from (f"strict decoding: {each}" for each in sorted(strict - known))


def each_fix(file, frame):
    """Each fix of a file: its finding, the object before and after, or why the text cannot take it."""
    content = [*read_manifests(file.name, file.data)]
    for number, manifest in enumerate(content):
        if not isinstance(manifest, Manifest):
            continue
        seen, before = CheckRun(), value_of(manifest)
        seen.examine(manifest, frame)
        for row in seen.rows:
            finding = row.judged.finding
            if not finding.edits:
                yield finding, before, None, finding.by_hand or "no edits"
                continue
            try:
                after = marked(before, finding.edits)
                edits = tuple(rewritten(file.data, manifest, before, after))
            except (UneditableError, LookupError) as error:
                yield finding, before, None, str(error)
                continue
            change = ObjectChange(number, without_gone(after), edits)
            if not proven(file, content, [change]):
                yield finding, before, None, "read again, the file differs in more than the fix"
                continue
            again = [*read_manifests(file.name, edited(file.data, [change]))]
            yield finding, before, value_of(again[number]), ""


def main():
    """Print what is wrong, and how many fixes were applied by rule."""
    frame, counts, wrong = Frame(policy=Policy(), today="2026-01-01"), Counter(), 0
    for file in read_files(sys.argv[1:], ()):
        if not isinstance(file, File):
            continue
        for finding, before, after, reason in each_fix(file, frame):
            counts[finding.rule, "applied" if after is not None else "by hand"] += 1
            if after is None:
                sys.stdout.write(f"{file.name}: {finding.rule}: not applied: {reason}\n")
                continue
            for fault in faults_of(before, after, finding, frame):
                wrong += 1
                sys.stdout.write(f"{file.name}: {finding.rule}: {fault}\n")
    for (rule, what), count in sorted(counts.items()):
        sys.stdout.write(f"{rule} {what}: {count}\n")
    sys.stdout.write(f"{wrong} wrong\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
