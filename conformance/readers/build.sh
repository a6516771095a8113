#!/usr/bin/env bash
# build.sh NAME: builds the program that asks karpenter or the descheduler unless its sources are unchanged, and prints where it
# is: in the user's cache folder.
set -euo pipefail
name=$1
here=$(cd "$(dirname "$0")" && pwd)
asked=$(awk '$1 == "go" { print $2; exit }' "$here/go.mod")
if ! command -v go >/dev/null || ! (cd "$here" && go list -m >/dev/null 2>&1); then
  echo "make readers builds the code of $name, which needs Go $asked or later (https://go.dev/dl)" >&2
  exit 1
fi
cache=${XDG_CACHE_HOME:-$HOME/.cache}/evenspread
key=$({ cd "$here" && go version && cat "$name/main.go" go.mod go.sum; } | sha256sum | cut -c1-16)
program=$cache/$name-$key
if [ ! -x "$program" ]; then
  echo "building $name, once: some minutes of CPU when cold" >&2
  mkdir -p "$cache"
  (cd "$here" && CGO_ENABLED=0 go build -p 2 -trimpath -ldflags='-s -w' -o "$program.$$" "./$name")
  mv "$program.$$" "$program"
fi
echo "$program"
