#!/usr/bin/env bash
# build.sh: builds the oracle unless its sources are unchanged, and prints where it is: in the user's cache folder.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

command -v go >/dev/null || {
  echo "make conformance needs Go 1.26 or later to build Kubernetes' own code (https://go.dev/dl); nothing else here does" >&2
  exit 1
}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/evenspread
key=$({ go version; cat "$here"/*.go "$here"/go.mod "$here"/go.sum; } | sha256sum | cut -c1-16)
oracle=$cache/oracle-$key
if [ ! -x "$oracle" ]; then
  echo "building the oracle, once: five minutes of CPU when cold" >&2
  mkdir -p "$cache"
  (cd "$here" && CGO_ENABLED=0 go build -p 2 -trimpath -ldflags='-s -w' -o "$oracle.$$" .)
  mv "$oracle.$$" "$oracle"
fi
echo "$oracle"
