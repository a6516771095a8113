#!/bin/sh
# Build a real control plane from Go modules and print the folder that holds it.
#
#   tests/e2e/controlplane/build.sh [name ...]
#
# Without names everything is built:
#   etcd kube-apiserver kube-controller-manager kube-scheduler kubectl kwok helm
# The folder is ${XDG_CACHE_HOME:-~/.cache}/evenspread/controlplane-HASH, where HASH stands for the modules, the
# flags and the Go version. A binary is skipped when it was built from the same. Progress goes to stderr.
# When KUBEBUILDER_ASSETS is set, a binary there that reports the wanted version is linked instead of being built.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
assets=${KUBEBUILDER_ASSETS:-}
names=${*:-etcd kube-apiserver kube-controller-manager kube-scheduler kubectl kwok helm}

CGO_ENABLED=0 # static binaries: no C compiler needed, they run in any container
GOFLAGS="-mod=readonly -buildvcs=false"
GOWORK=off
export CGO_ENABLED GOFLAGS GOWORK

say() { echo "$*" >&2; }
asked=$(awk '$1 == "go" { print $2; exit }' "$here/go.mod")
if ! command -v go >/dev/null 2>&1; then
    say "the end-to-end tests build kube-apiserver and need Go $asked or later: https://go.dev/dl/"
    exit 3
fi
if ! goversion=$(cd "$here" && go env GOVERSION 2>/dev/null) || ! (cd "$here" && go list -m >/dev/null 2>&1); then
    say "the end-to-end tests build kube-apiserver and need Go $asked or later; this is $(GOTOOLCHAIN=local go env GOVERSION)"
    exit 3
fi

version_in() { # module, go.mod: the version that go.mod asks for
    awk -v m="$1" '$1 == m && $2 != "=>" { print $2; exit }' "$2"
}
kube=$(version_in k8s.io/kubernetes "$here/go.mod")
etcd=$(version_in go.etcd.io/etcd/server/v3 "$here/go.mod")
kwok=$(version_in sigs.k8s.io/kwok "$here/go.mod")
helm=$(version_in helm.sh/helm/v4 "$here/helm/go.mod")

minor=${kube#v1.}
minor=${minor%%.*}
stamped=""
for p in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    stamped="$stamped -X $p.gitVersion=$kube -X $p.gitMajor=1 -X $p.gitMinor=$minor -X $p.gitTreeState=clean"
done
ldflags="-s -w$stamped -X helm.sh/helm/v4/internal/version.version=$helm"

hash=$({
    cat "$here/go.mod" "$here/go.sum" "$here/helm/go.mod" "$here/helm/go.sum"
    echo "$goversion $ldflags cgo=0"
} | sha256sum | cut -c1-16)
dir=${XDG_CACHE_HOME:-${HOME:?}/.cache}/evenspread/controlplane-$hash
mkdir -p "$dir/.stamps"

package_of() {
    case $1 in
    etcd) echo go.etcd.io/etcd/server/v3 ;;
    kwok) echo sigs.k8s.io/kwok/cmd/kwok ;;
    helm) echo helm.sh/helm/v4/cmd/helm ;;
    kube-apiserver | kube-controller-manager | kube-scheduler | kubectl) echo "k8s.io/kubernetes/cmd/$1" ;;
    *) say "build.sh: unknown binary '$1'"; exit 2 ;;
    esac
}

reports() { # binary path, name: the line that carries its version
    case $2 in
    etcd) "$1" --version 2>/dev/null | head -n 1 ;;
    kubectl) "$1" version --client 2>/dev/null | head -n 1 ;;
    helm) "$1" version --short 2>/dev/null ;;
    *) "$1" --version 2>/dev/null ;;
    esac
}

wanted() { # name: the version it must report
    case $1 in
    etcd) echo "${etcd#v}" ;;
    kwok) echo "$kwok" ;;
    helm) echo "$helm" ;;
    *) echo "$kube" ;;
    esac
}

for name in $names; do
    package=$(package_of "$name")
    module=$here
    [ "$name" = helm ] && module=$here/helm
    target=$dir/$name
    stamp=$dir/.stamps/$name
    key=$({ cat "$module/go.mod" "$module/go.sum"; echo "$goversion $package $ldflags cgo=0"; } | sha256sum | cut -d' ' -f1)

    [ -x "$target" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$key" ] && continue
    if [ -n "$assets" ] && [ -x "$assets/$name" ]; then
        case $(reports "$assets/$name" "$name") in
        *"$(wanted "$name")"*)
            ln -sf "$(CDPATH='' cd -- "$assets" && pwd)/$name" "$target"
            say "$name $(wanted "$name"): taken from KUBEBUILDER_ASSETS"
            continue
            ;;
        esac
    fi
    say "$name $(wanted "$name"): building"
    began=$(date +%s)
    (cd "$module" && go build -trimpath -ldflags "$ldflags" -o "$target.$$" "$package") >&2
    mv -f "$target.$$" "$target"
    echo "$key" >"$stamp"
    say "$name $(wanted "$name"): built in $(($(date +%s) - began)) s"
done

# kwok has no stages of its own: without Stage objects it ends with "no stages found".
case " $names " in
*" kwok "*)
    if [ ! -s "$dir/kwok-stages.yaml" ]; then
        (cd "$here" && go mod download sigs.k8s.io/kwok) >&2
        stages=$(cd "$here" && go list -m -f '{{.Dir}}' sigs.k8s.io/kwok)/kustomize/stage
        for file in "$stages"/node/fast/node-initialize.yaml \
            "$stages"/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml \
            "$stages"/pod/fast/pod-ready.yaml "$stages"/pod/fast/pod-complete.yaml "$stages"/pod/fast/pod-delete.yaml; do
            echo "---"
            cat "$file"
        done >"$dir/kwok-stages.yaml.$$"
        mv -f "$dir/kwok-stages.yaml.$$" "$dir/kwok-stages.yaml"
    fi
    ;;
esac
echo "$dir"
