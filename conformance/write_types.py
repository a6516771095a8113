"""Write webhook/core/apiserver/go_types.txt from what `oracle types` of each release prints.

usage: python write_types.py MINOR=FILE...       writes the table from the types of each minor release
       python write_types.py --check MINOR       whether the table says the same as standard input
"""

import pathlib
import sys
import textwrap

TARGET = pathlib.Path(__file__).parent.parent / "webhook" / "core" / "apiserver" / "go_types.txt"
HEAD = """\
# The Go types below the kinds with a pod template: what the JSON decoder of Kubernetes knows of them.
# Written by `python conformance/write_types.py` from `oracle types`; do not edit. Read by go_json.py.
#
#   name = type                  a named scalar, map or list
#   name { field:type ... }      a struct; `Embedded/field` is a field of an embedded struct, because errors name it so
#   field:type@33 or @33-35      known since Kubernetes 1.33, or from 1.33 to 1.35; in all releases otherwise
"""


def read(text):
    """Type name -> its entries: ["=", type] or ["{", field:type, ..., "}"]."""
    return {name: entries for name, *entries in (line.split() for line in text.splitlines())}


def merged(tables):
    """One table of all releases: each entry, and which releases have it where others do not."""
    for name in sorted({name for table in tables.values() for name in table}):
        having = [minor for minor in sorted(tables, reverse=True) if name in tables[minor]]
        entries = {entry: None for minor in having for entry in tables[minor][name]}
        entries.pop("}", None)
        spans = {entry: [minor for minor in having if entry in tables[minor][name]] for entry in entries}
        closing = ["}"] if "{" in entries else []
        yield " ".join([name, *(entry + suffix(minors, having) for entry, minors in spans.items()), *closing])


def suffix(minors, having):
    since, until = min(minors), max(minors)
    assert len(minors) == until - since + 1, "a field that went and came back needs another format"
    if until < max(having):
        return f"@{since}-{until}"
    return f"@{since}" if since > min(having) else ""


def written(tables):
    folded = [textwrap.wrap(line, 120, break_long_words=False, break_on_hyphens=False, subsequent_indent=" ") for line in merged(tables)]
    return HEAD + f"newest {max(tables)}, oldest {min(tables)}\n" + "".join(f"{each}\n" for line in folded for each in line)


def main(arguments):
    if arguments[:1] == ["--check"]:
        sys.path.insert(0, str(TARGET.parents[3]))
        from webhook.core.apiserver.go_json import declared_entries

        minor, printed = int(arguments[1]), read(sys.stdin.read())
        different = [name for name, entries in printed.items() if sorted(declared_entries(name, minor)) != sorted(entries)]
        if different:
            print(f"{TARGET.name} differs from the oracle of 1.{minor}: {', '.join(different[:9])}")
        return bool(different)
    pairs = (each.split("=", 1) for each in arguments)
    TARGET.write_text(written({int(minor): read(pathlib.Path(file).read_text()) for minor, file in pairs}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
