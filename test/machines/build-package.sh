#!/usr/bin/env bash
# Makes FOLDER/package.tar: what `npm install` of the npm package gives a user, and the images that tests load (FOLDER/images).
# usage: build-package.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$1
bash scripts/build.sh
npm pack --silent --ignore-scripts --pack-destination "$folder" >/dev/null
npm install --silent --omit=dev --no-audit --no-fund --prefix "$folder/package" "$folder"/lifepod-*.tgz >/dev/null
tar -cf "$folder/package.tar" -C "$folder" package images
rm -rf "$folder/package" "$folder"/lifepod-*.tgz
