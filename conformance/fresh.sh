#!/usr/bin/env bash
# fresh.sh SEED EVENSPREAD PYTHON [RELEASE [EACH]]: builds the oracle of a release, records vectors of a seed with it, as
# they are generated, broken and made odd, and compares them with what EVENSPREAD says of that release, also of the pods of
# workloads. The newest is also asked whether pods with injected defaults, and workloads that declare them, are accepted, and
# whether such pods are judged as by the scheduler's own.
# The binary is kept in the user's cache folder. EACH is how many there are to be of each kind (scheduling scenarios, create
# requests, pods of workloads, pods after admission, args); without it there are 13,900 in all.
set -euo pipefail
seed=$1 evenspread=$2 python=$3 release=${4:-1.37} each=${5:-}
here=$(cd "$(dirname "$0")" && pwd)

oracle=$("$here/build.sh" "$release")
version=$("$oracle" version)

"$oracle" types | "$python" "$here/write_types.py" --check "${release#1.}"

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
recorded="1500 1500 500 1000 600 2000 1000 300" mutated=1000 refused=2000 odd=500
if [ -n "$each" ]; then
  recorded="$((each / 5)) $((each / 5)) $((each / 10)) $((each / 10)) $((each / 10)) $((each / 2)) $each $((each / 2))"
  mutated=$((each / 2)) refused=$each odd=$((each / 10))
fi
echo "seed $seed (make conformance RELEASE=$release SEED=$seed${each:+ EACH=$each} repeats it), Kubernetes $version"
# shellcheck disable=SC2086  # one word each
"$here/record.sh" "$oracle" "$out" "$seed" $recorded >&2
for kind in validate args; do
  "$python" "$here/mutate.py" "$oracle" "$kind" "$seed" $mutated "$out/mutated-$kind.jsonl.gz"
done
"$python" "$here/refused.py" "$oracle" "$seed" $refused "$out/refused.jsonl.gz"
"$here/odd.sh" "$oracle" "$python" "$seed" $odd "$out"
if [ "$release" = 1.37 ]; then
  "$python" "$here/injected.py" "$oracle" "$seed" 1000
  EVENSPREAD_ORACLE=$oracle "$python" -m pytest -q -p no:cacheprovider --hypothesis-seed="$seed" "$here"/../tests/properties/test_{defaulting,adoption}.py
fi
cd "$out"
"$evenspread" conformance --kube-version "$version" ./*.jsonl*
