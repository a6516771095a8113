#!/usr/bin/env bash
# claims.sh SEED COUNT PYTHON: what our rules say of COUNT random clusters, against Kubernetes' own filters placing pod after pod.
set -euo pipefail
seed=$1 count=$2 python=$3
here=$(cd "$(dirname "$0")" && pwd)
oracle=${EVENSPREAD_ORACLE:-$("$here/build.sh")}

echo "seed $seed (make claims SEED=$seed COUNT=$count repeats it), Kubernetes $("$oracle" version)"
cd "$here/.."
"$python" -m conformance.claims "$oracle" "$seed" "$count"
