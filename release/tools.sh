#!/usr/bin/env bash
# Build crane and krew (their go.mod files have the versions) and print the folder that holds them. Needs Go.
set -euo pipefail
cd "$(dirname "$0")"

folder=${XDG_CACHE_HOME:-$HOME/.cache}/evenspread/release-$(cat {.,krew}/go.{mod,sum} | sha256sum | cut -c1-16)
build() { # the folder of a go.mod, and a command
    (cd "$1" && CGO_ENABLED=0 GOWORK=off GOFLAGS="-mod=readonly -buildvcs=false" go build -ldflags "-s -w" -o "$folder/" "$2" >&2)
}
if [ ! -x "$folder/krew" ]; then
    echo "building crane and krew into $folder" >&2
    build . github.com/google/go-containerregistry/cmd/crane
    build krew sigs.k8s.io/krew/cmd/krew
fi
echo "$folder"
