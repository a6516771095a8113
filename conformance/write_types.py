"""Write go_types.py and older_go_types.py in webhook/core/apiserver from what `oracle types` of each release prints.

usage: python write_types.py MINOR=FILE...       writes the table of the newest release, and how older ones differ
       python write_types.py --check MINOR       whether they say the same as standard input
"""

import importlib.util
import pathlib
import re
import sys
import textwrap

TARGET = pathlib.Path(__file__).parent.parent / "webhook" / "core" / "apiserver/go_types.py"
OLDER = TARGET.with_name("older_go_types.py")
HEAD = '''"""The Go types behind the kinds with a pod template: what the JSON decoder of Kubernetes knows of them.

Made by `python conformance/write_types.py` of `oracle types`; not edited by hand. Read by
`webhook.core.apiserver.go_json`.

Shape: ``name = underlying`` for a named scalar, map or list; ``name {{ field:type ... }}`` for a struct. A field of
an embedded struct is written ``Embedded/field``, because an error names it so. ``TABLE`` is of 1.{newest}.
"""

NEWEST = {newest}

TABLE = """
'''
OLDER_HEAD = '''"""What is otherwise in older releases in the table of `webhook.core.apiserver.go_types`.

Made by `python conformance/write_types.py` of `oracle types`; not edited by hand.

Shape: by minor release, the lines that differ from those of the next one.
"""

from collections.abc import Mapping

OLDER: Mapping[int, str] = {
'''


def read(text):
    """Type name -> its whole line."""
    return {line.split(" ", 1)[0]: line for line in text.splitlines()}


def wrapped(lines):
    """The lines as they stand in the module."""
    folded = [textwrap.wrap(line, 120, break_long_words=False, break_on_hyphens=False, subsequent_indent=" ") for line in lines]
    return "".join(f"{each}\n" for line in folded for each in line)


def write(tables):
    newest, *older = sorted(tables, reverse=True)
    TARGET.write_text(HEAD.format(newest=newest) + wrapped(tables[newest].values()) + '"""\n')
    text = OLDER_HEAD
    for minor in older:
        after = tables[minor + 1]
        differ = [line for name, line in tables[minor].items() if after.get(name) != line]
        text += f'    {minor}: """\n{wrapped(differ)}""",\n'
    OLDER.write_text(text + "}\n")


def loaded(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def known(minor):
    """The lines that the modules have for a release."""
    lines, older = {}, loaded(OLDER).OLDER
    for text in (loaded(TARGET).TABLE, *(older[each] for each in sorted(older, reverse=True) if each >= minor)):
        lines |= read(re.sub(r"\n ", " ", text.strip()))
    return lines


def main(arguments):
    if arguments[:1] == ["--check"]:
        have, printed = known(int(arguments[1])), read(sys.stdin.read())
        different = [name for name, line in printed.items() if have.get(name) != line]
        if different:
            print(f"webhook/core/apiserver/go_types.py differs from the oracle of 1.{arguments[1]}: {', '.join(different[:9])}")
        return bool(different)
    pairs = (each.split("=", 1) for each in arguments)
    write({int(minor): read(pathlib.Path(file).read_text()) for minor, file in pairs})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
