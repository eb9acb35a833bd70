#!/usr/bin/env bash
# Writes FOLDER/package.tar, which contains the npm package as `npm install` installs it, and the images in FOLDER/images.
# usage: build-package.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$1
bash scripts/build.sh
npm pack --silent --ignore-scripts --pack-destination "$folder" >/dev/null
npm install --silent --omit=dev --no-audit --no-fund --prefix "$folder/package" "$folder"/lifepod-*.tgz >/dev/null
tar -cf "$folder/package.tar" -C "$folder" package images
rm -rf "$folder/package" "$folder"/lifepod-*.tgz
