"""Check claims: python -m conformance.claims ORACLE ...

    SEED COUNT                  so many fresh worlds
    --world FILE...             worlds that were written before: all that is said of them
    --record SEED COUNT FILE... the cases of the offline test: worlds in which a rule speaks, and these

Prints the table of docs/exactness-workloads.md. Exit code 1 for a contradiction, whose smallest world is written to
CLAIMS_OUT (a directory, default: the current one).
"""

import json
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from conformance.claims.referee import Recording, Referee, write_cases
from conformance.claims.readings import READINGS
from conformance.claims.shrink import shrink
from conformance.claims.verdicts import LEFT_OUT, Inspection, contradictions
from conformance.claims.worlds import world

MOST_SHRUNK = 3  # of each rule
CHUNK = 50


def look_at(of, referee):
    """Findings by rule, fixes by rule, contradictions, the reason for silence, fixes by rule after which there is a note."""
    inspected = Inspection(of, referee)
    wrong = list(contradictions(inspected))
    found = Counter(each.rule for each in inspected.findings if each.rule not in LEFT_OUT)
    fixes = Counter(each.rule for each in inspected.findings if each.edits and each.rule not in LEFT_OUT)
    return found, fixes, wrong, inspected.silence, Counter(inspected.notes)


def look_at_some(oracle, seed, numbers):
    found, fixes, wrong, silent, notes = Counter(), Counter(), [], Counter(), Counter()
    with Referee(oracle) as referee:
        for number in numbers:
            try:
                one = look_at(world(seed, number), referee)
            except Exception as error:
                raise RuntimeError(f"world {seed}/{number}: {error!r}") from error
            found += one[0]
            fixes += one[1]
            wrong += [(number, *each) for each in one[2]]
            silent[one[3]] += 1
            notes += one[4]
    return len(numbers), found, fixes, wrong, silent, notes


def kind_of(fault):
    """What is wrong, without its numbers."""
    return "".join(" " if each.isdigit() else each for each in fault).split(":")[0]


def smallest(oracle, of, rule, fault):
    with Referee(oracle) as referee:

        def stays(candidate):
            try:
                wrong = contradictions(Inspection(candidate, referee))
                return any(each[0] == rule and kind_of(each[2]) == kind_of(fault) for each in wrong)
            except Exception:  # the candidate is no world any more
                return False

        small = shrink(of, stays)
        claim = next(each for each in contradictions(Inspection(small, referee)) if each[0] == rule)
    return small, claim


def at_a_glance(of):
    """A world in a few lines."""
    lines = []
    for each in of["objects"]:
        name = each["metadata"]["name"]
        if each["kind"] == "Node":
            labels = {key.rpartition("/")[2]: value for key, value in each["metadata"]["labels"].items()}
            rest = {key: value for key, value in each["spec"].items() if value}
            lines.append(f"  Node {name} {labels} cpu {each['status']['allocatable']['cpu']}{f' {rest}' if rest else ''}")
        elif each["kind"] == "Pod":
            lines.append(f"  Pod {name} {each['metadata']['labels']} on {each['spec'].get('nodeName')}")
        elif each["kind"] != "Namespace":
            lines.append(f"  {each['kind']} {name}")
    return "\n".join([*lines, f"  {json.dumps(of['workload'])}"])


def report(oracle, of, rule, claim, fault):
    out = Path(os.environ.get("CLAIMS_OUT", "."))
    small, (rule, claim, fault) = smallest(oracle, of, rule, fault)
    name = out / f"claims-{rule}-{of['id'].replace('/', '-')}.json"
    out.mkdir(parents=True, exist_ok=True)
    name.write_text(json.dumps(small, indent=1))
    print(f"\n{rule}: {claim}\n  but {fault}\n  smallest world: {name}\n{at_a_glance(small)}")


def table(worlds, found, fixes, wrong, silent, notes):
    print("\n| rule | findings checked | fixes applied | of these, another rule then has a note | contradictions |\n|---|---|---|---|---|")
    faults = Counter(each[1] for each in wrong)
    for rule in sorted(found):
        print(f"| `{rule}` | {found[rule]:,} | {fixes[rule]:,} | {notes[rule]:,} | {faults[rule] or 'none'} |")
    unlucky = sum(number for reason, number in silent.items() if reason is not None)
    print(f"\n| pods without a place because of spread | worlds of {worlds:,} | share |\n|---|---|---|")
    for reason, number in silent.most_common():
        if reason is not None:
            print(f"| {reason} | {number:,} | {number / max(unlucky, 1):.0%} |")


def run(oracle, seed, count):
    started, found, fixes, wrong, silent, notes, worlds = time.monotonic(), Counter(), Counter(), [], Counter(), Counter(), 0
    chunks = [range(first, min(first + CHUNK, count)) for first in range(0, count, CHUNK)]
    with ProcessPoolExecutor(min(os.cpu_count() or 1, 2), initializer=os.nice, initargs=(10,)) as pool:
        for one in pool.map(look_at_some, [oracle] * len(chunks), [seed] * len(chunks), chunks):
            worlds, found, fixes, wrong = worlds + one[0], found + one[1], fixes + one[2], wrong + one[3]
            silent, notes = silent + one[4], notes + one[5]
            if sys.stderr.isatty():
                rate = worlds / (time.monotonic() - started)
                print(f"\r{worlds:,} of {count:,} worlds, {rate:.0f}/s, {len(wrong)} contradictions", end="", file=sys.stderr)
    shown = Counter()
    for number, rule, claim, fault in wrong:
        kind = rule, kind_of(fault)
        shown[kind] += 1
        if shown[kind] <= MOST_SHRUNK:
            report(oracle, world(seed, number), rule, claim, fault)
    table(worlds, found, fixes, wrong, silent, notes)
    print(f"\n{worlds:,} worlds of seed {seed}, {sum(found.values()):,} findings, {len(wrong)} contradictions, {time.monotonic() - started:.0f} s")
    for (rule, kind), number in shown.most_common() if wrong else ():
        print(f"{number:6} {rule}: {kind.strip()}")
    return 1 if wrong or not found else 0


def again(oracle, names):
    """The contradictions of worlds that were written before."""
    left = 0
    with Referee(oracle) as referee:
        for name in names:
            inspected = Inspection(json.loads(Path(name).read_text()), referee)
            print(f"{name}\n{at_a_glance(inspected.world)}")
            for finding in inspected.findings:
                print(f"  says {finding.rule}: {finding.summary}; {finding.fix}")
            for rule, claim, fault in contradictions(inspected):
                left += 1
                print(f"  WRONG {rule}: {claim}\n    but {fault}")
    return 1 if left else 0


RECORDED = Path(__file__).parent / "recorded.jsonl.gz"


def record(oracle, seed, count, names):
    """Write down what the referee says of worlds in which a rule of ours speaks, and of smallest worlds of before."""
    cases, left = [], 0
    worlds = [json.loads(Path(name).read_text()) for name in sorted(names)]
    with Referee(oracle) as referee:
        for of in [*worlds, *(world(seed, number) for number in range(count))]:
            recording = Recording(referee)
            found, _, wrong, *_ = look_at(of, recording)
            left += bool(wrong)
            if not wrong and found.keys() & READINGS.keys():
                cases.append((of, recording.answers))
    write_cases(RECORDED, cases)
    print(f"{len(cases)} worlds in {RECORDED}; {left} left out, in which a claim does not hold")
    return 1 if left else 0


def main():
    oracle, first, *rest = sys.argv[1:]
    if first == "--record":
        return record(oracle, rest[0], int(rest[1]), rest[2:])
    return again(oracle, rest) if first == "--world" else run(oracle, first, int(rest[0]))


if __name__ == "__main__":
    sys.exit(main())
