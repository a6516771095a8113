#!/usr/bin/env bash
# Put what several machines have made into one folder. What all of them make has to be the same.
#
#   release/gather.sh INTO FROM...
set -euo pipefail

into=$1
shift
mkdir -p "$into"
for from in "$@"; do
    for file in "$from"/*; do
        name=${file##*/}
        [ "$name" = SHA256SUMS ] && continue
        if [ -e "$into/$name" ] && ! cmp -s "$file" "$into/$name"; then
            echo "$file is not what another machine has made of the same commit" >&2
            exit 1
        fi
        cp "$file" "$into/$name"
    done
done
(cd "$into" && sha256sum -- * >SHA256SUMS)
