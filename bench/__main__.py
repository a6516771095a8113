"""Print all figures with a goal as one table: python -m bench [MODULE ...]

`make bench` runs it. Each row has the command of its bench. Without Go, the comparisons with Go programs are skipped.
The exit code is 1 if a goal is missed.
"""

import importlib
import shutil
import sys
import time

MODULES = ("command_line", "bytecodes", "static_review", "placement", "growth")
BESIDE_GO = ("verdict", "serve", "events")
COLUMNS = "{:52} {:>24} {:>12} {:5} {}"


def rows(module):
    """Print the figures of a module. Returns whether all meet their goals."""
    figures = [*importlib.import_module(f"bench.{module}").figures()]
    for figure in figures:
        measured = f"{figure.measured:,.2f}" if figure.measured < 100 else f"{figure.measured:,.0f}"
        holds = "yes" if figure.holds else "no"
        print(COLUMNS.format(figure.name, figure.goal, measured, holds, f"python -m bench.{module}"), flush=True)
    return all(figure.holds for figure in figures)


def main():
    began, go = time.monotonic(), shutil.which("go") and shutil.which("taskset")
    chosen = sys.argv[1:] or [*MODULES, *(BESIDE_GO if go else ())]
    print(COLUMNS.format("figure", "goal", "measured", "holds", "command"))
    results = [rows(module) for module in chosen]
    if not go and not sys.argv[1:]:
        print(f"Skipped without Go and taskset: {', '.join(BESIDE_GO)}.")
    print(f"{time.monotonic() - began:.0f} s")
    sys.exit(not all(results))


if __name__ == "__main__":
    main()
