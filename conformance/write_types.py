"""Write webhook/core/apiserver/go_types.py from `oracle types` on standard input; with --check, say whether it is that already."""

import pathlib
import sys
import textwrap

TARGET = pathlib.Path(__file__).parent.parent / "webhook" / "core" / "apiserver/go_types.py"
HEAD = '''"""The Go types behind the kinds with a pod template: what the JSON decoder of Kubernetes 1.37.1 knows of them.

Made by `oracle types | python conformance/write_types.py`; not edited by hand. Read by `webhook.core.apiserver.go_json`.

Shape: ``name = underlying`` for a named scalar, map or list; ``name { field:type ... }`` for a struct. A field of
an embedded struct is written ``Embedded/field``, because an error names it so.
"""

TABLE = """
'''


def main() -> int:
    lines = []
    for line in sys.stdin.read().splitlines():
        lines += textwrap.wrap(line, 120, break_long_words=False, break_on_hyphens=False, subsequent_indent=" ")
    text = HEAD + "\n".join(lines) + '\n"""\n'
    if sys.argv[1:] != ["--check"]:
        TARGET.write_text(text)
    elif TARGET.read_text() != text:
        print("webhook/core/apiserver/go_types.py is not what the oracle prints: pipe `oracle types` into write_types.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
