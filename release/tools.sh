#!/usr/bin/env bash
# Build crane (go.mod has its version) and print the folder that holds it. Needs Go.
set -euo pipefail
cd "$(dirname "$0")"

folder=${XDG_CACHE_HOME:-$HOME/.cache}/evenspread/release-$(cat go.mod go.sum | sha256sum | cut -c1-16)
if [ ! -x "$folder/crane" ]; then
    echo "building crane into $folder" >&2
    CGO_ENABLED=0 GOWORK=off GOFLAGS="-mod=readonly -buildvcs=false" \
        go build -ldflags "-s -w" -o "$folder/" github.com/google/go-containerregistry/cmd/crane >&2
fi
echo "$folder"
