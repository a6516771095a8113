#!/usr/bin/env bash
# Everything that a release publishes, into dist/release: wheel, source archive, the command line as one file for each
# platform, its archives, manifests for krew and Homebrew, manual page, chart, image with what is in it and what made it, checksums. The same
# commit gives the same bytes.
#
#   release/make.sh [PLATFORM...]     what `make dist` runs, after `make image`; linux-amd64 for a single platform's file
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -nE 's/^version = "(.+)"$/\1/p' pyproject.toml)
architecture=$(.venv/bin/python -c 'import platform; print({"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()])')
seconds=${SOURCE_DATE_EPOCH:-$(date -d "$(sed -n 's/^date //p' image/packages.lock)" +%s)}
made=dist/release
rm -rf "$made" && mkdir -p "$made"

# What tar writes beside the files themselves, the same everywhere.
plain=(--format=ustar --sort=name --mtime="@$seconds" --owner=0 --group=0 --numeric-owner --mode=a=rX,u+w)

cp dist/wheel/*.whl "$made" # the one that is in the image
.venv/bin/python -m hatchling build -t sdist -d "$made" >/dev/null
tar "${plain[@]}" -cf - -C charts evenspread | gzip -9n >"$made/evenspread-$version.tgz"
.venv/bin/python -m release.pyz.build dist/wheel/*.whl "$made" "$@"
image=$made/evenspread-$version-image-$architecture
tar "${plain[@]}" -cf "$image.oci.tar" -C dist/image/layout .
cp dist/image/sbom.spdx.json "$image.spdx.json"
cp dist/image/provenance.json "$image.provenance.json"
(cd "$made" && sha256sum -- * >SHA256SUMS)
cat "$made/SHA256SUMS"
