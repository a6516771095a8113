#!/usr/bin/env bash
# fresh.sh SEED EVENSPREAD PYTHON: builds the oracle, records vectors of a seed with it, and compares them with what
# EVENSPREAD says. The binary and the vectors are kept in the user's cache folder.
set -euo pipefail
seed=$1 evenspread=$2 python=$3
here=$(cd "$(dirname "$0")" && pwd)

oracle=$("$here/build.sh")

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
