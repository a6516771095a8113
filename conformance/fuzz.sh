#!/usr/bin/env bash
# fuzz.sh SEED COUNT EVENSPREAD PYTHON: COUNT fresh scheduling scenarios of each profile, and as many made odd, decided
# by Kubernetes' own code and by EVENSPREAD; and whether what `explain` offers in COUNT of them helps. A scenario has
# eight nodes on average.
set -euo pipefail
seed=$1 count=$2 evenspread=$3 python=$4
here=$(cd "$(dirname "$0")" && pwd)
oracle=${EVENSPREAD_ORACLE:-$("$here/build.sh")}

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
echo "seed $seed (make fuzz SEED=$seed COUNT=$count repeats it), Kubernetes $("$oracle" version)"
for profile in spread filters defaults; do
  "$oracle" record --kind verdict --profile "$profile" --seed "$seed" --count "$count" --out "$out/$profile.jsonl"
done
"$here/odd.sh" "$oracle" "$python" "$seed" "$count" "$out"
for profile in spread filters; do
  "$python" "$here/fixed.py" "$oracle" "$profile" "$seed" "$count"
done
cd "$out"
cat ./*.jsonl | "$python" -c 'import json, sys; print(sum(len(json.loads(line)["expected"]["nodes"]) for line in sys.stdin), "verdicts on nodes")'
"$evenspread" conformance ./*.jsonl
