#!/usr/bin/env bash
# Push the images of all architectures under one name, and print its digest.
#
#   release/publish_image.sh REGISTRY/NAME:TAG dist/release/*.oci.tar
#
# Whoever pushes has logged in (crane auth login). INSECURE=1 for a registry without TLS on this machine.
set -euo pipefail

name=$1
shift
crane="$("$(dirname "$0")/tools.sh")/crane"
flags=(${INSECURE:+--insecure})
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
manifests=()
for archive in "$@"; do
    layout=$work/$(basename "$archive")
    mkdir "$layout"
    tar -xf "$archive" -C "$layout"
    pushed=$("$crane" push "${flags[@]}" "$layout" "${name%:*}:${name##*:}-$(basename "$archive" .oci.tar | sed 's/.*-//')")
    manifests+=(-m "$pushed")
done
"$crane" index append "${flags[@]}" "${manifests[@]}" -t "$name" >/dev/null
"$crane" digest "${flags[@]}" "$name"
