#!/usr/bin/env bash
# build.sh [RELEASE [FOLDER]]: builds the oracle of a release (1.33 to 1.37, which is the default), or the program of a
# folder, unless its sources are unchanged. Prints where it is: in the user's cache folder.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
newest=37 release=${1:-1.37} name=${2:-oracle}
package=. sources=("$here"/*.go "$here"/fwk/*.go)
[ "$name" = oracle ] || package=./$name sources=("$here/$name"/*.go)
minor=${release#1.} mod=$here/go.mod tags=
[ "$minor" = $newest ] || mod=$here/releases/$release.mod
[ -f "$mod" ] || {
  echo "there is no oracle of Kubernetes $release: 1.$newest, or one of $(cd "$here/releases" && echo *.mod)" >&2
  exit 2
}
for ((each = minor + 1; each <= newest; each++)); do tags+=before1$each,; done

command -v go >/dev/null || {
  echo "make conformance needs Go 1.26 or later to build Kubernetes' own code (https://go.dev/dl); nothing else here does" >&2
  exit 1
}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/evenspread
key=$({ go version; echo "$tags"; cat "${sources[@]}" "$mod" "${mod%.mod}.sum"; } | sha256sum | cut -c1-16)
program=$cache/$name-$key
if [ ! -x "$program" ]; then
  echo "building the code of Kubernetes $release, once: five minutes of CPU when cold" >&2
  mkdir -p "$cache"
  (cd "$here" && CGO_ENABLED=0 go build -p 2 -trimpath -ldflags='-s -w' -modfile="$mod" -tags="$tags" -o "$program.$$" "$package")
  mv "$program.$$" "$program"
fi
echo "$program"
