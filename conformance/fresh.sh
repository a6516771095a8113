#!/usr/bin/env bash
# fresh.sh SEED EVENSPREAD PYTHON: builds the oracle, records vectors of a seed with it, and compares them with what
# EVENSPREAD says, also of the pods of workloads; and asks it whether pods with injected defaults, and workloads that declare them, are accepted, and
# whether such pods are judged as by the scheduler's own.
# The binary is kept in the user's cache folder.
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
"$python" "$here/refused.py" "$oracle" "$seed" 2000 "$out/refused.jsonl.gz"
"$python" "$here/injected.py" "$oracle" "$seed" 1000
EVENSPREAD_ORACLE=$oracle "$python" -m pytest -q -p no:cacheprovider --hypothesis-seed="$seed" "$here"/../tests/properties/test_{defaulting,adoption}.py
cd "$out"
"$evenspread" conformance ./*.jsonl.gz
