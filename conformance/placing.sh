#!/usr/bin/env bash
# placing.sh SEED COUNT PYTHON: what our search of all orders says of COUNT random workloads of each family, against Kubernetes' own filters.
set -euo pipefail
seed=$1 count=$2 python=$3
here=$(cd "$(dirname "$0")" && pwd)
oracle=${EVENSPREAD_ORACLE:-$("$here/build.sh")}

echo "seed $seed (make placing SEED=$seed COUNT=$count repeats it), Kubernetes $("$oracle" version)"
cd "$here/.."
"$python" -m conformance.placing "$oracle" "$seed" "$count"
"$python" -m conformance.placing.at_scale "$oracle" "$seed" "$(((count + 9) / 10))"
# The plans of groups are the same each time; they take minutes, and `make test` compares what was recorded.
[ "$count" -lt 100 ] || "$python" -m conformance.placing.groups "$oracle"
