#!/usr/bin/env bash
# fresh.sh SEED EVENSPREAD PYTHON [RELEASE [FACTOR]]: builds the oracle of a release, records vectors of a seed with it, as
# they are generated, broken and made odd, and compares them with what EVENSPREAD says of that release, also of the pods of
# workloads. The newest is also asked whether pods with injected defaults, and workloads that declare them, are accepted, and
# whether such pods are judged as by the scheduler's own.
# The binary is kept in the user's cache folder. FACTOR multiplies how many are recorded.
set -euo pipefail
seed=$1 evenspread=$2 python=$3 release=${4:-1.37} factor=${5:-1}
here=$(cd "$(dirname "$0")" && pwd)

oracle=$("$here/build.sh" "$release")
version=$("$oracle" version)

"$oracle" types | "$python" "$here/write_types.py" --check "${release#1.}"

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
echo "seed $seed (make conformance RELEASE=$release SEED=$seed repeats it), Kubernetes $version"
"$here/record.sh" "$oracle" "$out" "$seed" "$factor" >&2
for kind in validate args; do
  "$python" "$here/mutate.py" "$oracle" "$kind" "$seed" $((1000 * factor)) "$out/mutated-$kind.jsonl.gz"
done
"$python" "$here/refused.py" "$oracle" "$seed" $((2000 * factor)) "$out/refused.jsonl.gz"
"$here/odd.sh" "$oracle" "$python" "$seed" $((500 * factor)) "$out"
if [ "$release" = 1.37 ]; then
  "$python" "$here/injected.py" "$oracle" "$seed" 1000
  EVENSPREAD_ORACLE=$oracle "$python" -m pytest -q -p no:cacheprovider --hypothesis-seed="$seed" "$here"/../tests/properties/test_{defaulting,adoption}.py
fi
cd "$out"
"$evenspread" conformance --kube-version "$version" ./*.jsonl*
