#!/bin/sh
# odd.sh ORACLE PYTHON SEED COUNT OUT: writes COUNT scheduling scenarios of each of three profiles, made odd, with their answers.
set -eu
oracle=$1 python=$2 seed=$3 count=$4 out=$5
here=$(cd "$(dirname "$0")" && pwd)
for profile in spread filters defaults; do
  "$oracle" generate --kind verdict --profile "$profile" --seed "$((seed + 1))" --count "$count" |
    "$python" "$here/odd.py" mutate "$seed" >"$out/asked"
  "$oracle" verdict <"$out/asked" >"$out/answered"
  "$python" "$here/odd.py" join "$out/asked" "$out/answered" >"$out/odd-$profile.jsonl"
  rm "$out/asked" "$out/answered"
done
