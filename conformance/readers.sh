#!/usr/bin/env bash
# readers.sh SEED COUNT PYTHON [FILE]: where Karpenter takes COUNT random constraints of each family otherwise than kube-scheduler.
set -euo pipefail
seed=$1 count=$2 python=$3 file=${4:-}
here=$(cd "$(dirname "$0")" && pwd)
oracle=$("$here/build.sh")
karpenter=$("$here/readers/build.sh")

echo "seed $seed (make readers SEED=$seed EACH=$count repeats it), Kubernetes $("$oracle" version), Karpenter $("$karpenter" version)"
cd "$here/.."
"$python" -m conformance.readers "$oracle" "$karpenter" "$seed" "$count" ${file:+"$file"}
