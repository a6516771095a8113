#!/usr/bin/env bash
# fresh.sh SEED EVENSPREAD PYTHON: builds the oracle, records vectors of a seed with it, and compares them with what
# EVENSPREAD says. The binary and the vectors are kept in the user's cache folder.
set -euo pipefail
seed=$1 evenspread=$2 python=$3
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

"$oracle" types | "$python" "$here/write_types.py" --check

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
echo "seed $seed (make conformance SEED=$seed repeats it), Kubernetes $("$oracle" version)"
"$here/record.sh" "$oracle" "$out" "$seed" 1 >&2
for kind in validate args; do
  "$python" "$here/mutate.py" "$oracle" "$kind" "$seed" 1000 "$out/mutated-$kind.jsonl.gz"
done
cd "$out"
"$evenspread" conformance ./*.jsonl.gz
