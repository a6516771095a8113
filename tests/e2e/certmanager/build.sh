#!/bin/sh
# Build cert-manager's controllers as one program and print its path; nothing is done where it is up to date.
# Cold this takes several minutes on two cores, which is why no test of `make e2e` needs it: `make e2e-cert-manager`.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
CGO_ENABLED=0
GOFLAGS="-mod=readonly -buildvcs=false"
GOWORK=off
export CGO_ENABLED GOFLAGS GOWORK

hash=$({ cat "$here/go.mod" "$here/go.sum" "$here/main.go"; cd "$here" && go env GOVERSION; } | sha256sum | cut -c1-16)
dir=${XDG_CACHE_HOME:-${HOME:?}/.cache}/evenspread/cert-manager-$hash
if [ ! -x "$dir/cert-manager" ]; then
    echo "cert-manager: building" >&2
    mkdir -p "$dir"
    (cd "$here" && go build -trimpath -ldflags "-s -w" -o "$dir/cert-manager.$$" .) >&2
    # Its definitions stand in its module.
    cp "$(cd "$here" && go list -m -f '{{.Dir}}' github.com/cert-manager/cert-manager)"/deploy/crds/cert-manager.io_*.yaml "$dir"
    chmod u+w "$dir"/*.yaml
    mv -f "$dir/cert-manager.$$" "$dir/cert-manager"
fi
echo "$dir"
