#!/usr/bin/env bash
# Whether a tag may be released: it is the version of the package and of the chart, and the changelog speaks of it.
#
#   release/check.sh v0.1.0
set -euo pipefail
cd "$(dirname "$0")/.."

tag=$1
version=${tag#v}
wrong=0
says() { # what, its version
    [ "$2" = "$version" ] || { echo "$1 says $2, the tag $tag" >&2; wrong=1; }
}
says pyproject.toml "$(sed -nE 's/^version = "(.+)"$/\1/p' pyproject.toml)"
says webhook/__init__.py "$(sed -nE 's/^__version__ = "(.+)"$/\1/p' webhook/__init__.py)"
says "Chart.yaml's version" "$(sed -nE 's/^version: (.+)$/\1/p' charts/evenspread/Chart.yaml)"
says "Chart.yaml's appVersion" "$(sed -nE 's/^appVersion: "(.+)"$/\1/p' charts/evenspread/Chart.yaml)"
grep -q "^## $version\b" CHANGELOG.md || { echo "CHANGELOG.md has no section $version" >&2; wrong=1; }
exit "$wrong"
