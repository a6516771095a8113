#!/usr/bin/env bash
# Build the peer unless its sources are unchanged, and print where it is. Needs Go.
set -euo pipefail
cd "$(dirname "$0")"

cache=${XDG_CACHE_HOME:-$HOME/.cache}/evenspread
peer=$cache/peer-$({ go version; cat ./*.go go.mod; } | sha256sum | cut -c1-16)
if [ ! -x "$peer" ]; then
    echo "building the peer into $peer" >&2
    mkdir -p "$cache"
    CGO_ENABLED=0 go build -o "$peer.$$" .
    mv "$peer.$$" "$peer"
fi
echo "$peer"
