#!/usr/bin/env bash
# build.sh: builds the what-if peer unless its sources are unchanged, and prints where it is: in the user's cache folder.
# The checksum database has no entry for scheduler-library; go.sum has its hash.
set -euo pipefail
cd "$(dirname "$0")"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/evenspread
peer=$cache/what-if-$({ go version; cat ./*.go go.mod go.sum; } | sha256sum | cut -c1-16)
if [ ! -x "$peer" ]; then
  mkdir -p "$cache"
  CGO_ENABLED=0 GONOSUMDB=sigs.k8s.io/scheduler-library go build -p 2 -trimpath -ldflags='-s -w' -o "$peer.$$" .
  mv "$peer.$$" "$peer"
fi
echo "$peer"
