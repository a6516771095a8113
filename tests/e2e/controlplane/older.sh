#!/bin/sh
# Print a folder like build.sh's, with kube-apiserver, kube-controller-manager and kube-scheduler of an older release.
#
#   tests/e2e/controlplane/older.sh 1.34
set -eu

release=$1
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
mod=$here/releases/$release.mod
[ -f "$mod" ] || {
    echo "there is no older control plane of Kubernetes $release: RELEASE is one of" "$(cd "$here/releases" && ls | sed -n 's/\.mod$//p' | xargs)" >&2
    exit 2
}
newest=$("$here/build.sh")

CGO_ENABLED=0
GOFLAGS="-mod=readonly -buildvcs=false"
GOWORK=off
export CGO_ENABLED GOFLAGS GOWORK

kube=$(awk '$1 == "require" && $2 == "k8s.io/kubernetes" { print $3; exit }' "$mod")
minor=${release#1.}
stamped=""
for p in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    stamped="$stamped -X $p.gitVersion=$kube -X $p.gitMajor=1 -X $p.gitMinor=$minor -X $p.gitTreeState=clean"
done
ldflags="-s -w$stamped"
hash=$({ cat "$mod" "${mod%.mod}.sum"; echo "$(cd "$here" && go env GOVERSION) $ldflags $newest"; } | sha256sum | cut -c1-16)
dir=${XDG_CACHE_HOME:-${HOME:?}/.cache}/evenspread/controlplane-$release-$hash
mkdir -p "$dir"
for name in etcd kubectl kwok helm kwok-stages.yaml; do
    ln -sf "$newest/$name" "$dir/$name"
done
for name in kube-apiserver kube-controller-manager kube-scheduler; do
    [ -x "$dir/$name" ] && continue
    echo "$name $kube: building" >&2
    (cd "$here" && go build -p 2 -modfile="$mod" -trimpath -ldflags "$ldflags" -o "$dir/$name.$$" "k8s.io/kubernetes/cmd/$name") >&2
    mv -f "$dir/$name.$$" "$dir/$name"
done
echo "$dir"
