#!/usr/bin/env bash
# Writes FOLDER/package.tar, which contains the npm package and the package node, as `npm install` installs them, and the images in
# FOLDER/images.
# usage: build-package.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$1
bash scripts/build.sh
npm pack --silent --ignore-scripts --pack-destination "$folder" >/dev/null
# The package node is included because the machines have no Node.js.
node=node@$(node_modules/node/bin/node --version)
npm install --silent --omit=dev --no-audit --no-fund --prefix "$folder/package" "$folder"/lifepod-*.tgz "${node/@v/@}" >/dev/null
tar -cf "$folder/package.tar" -C "$folder" package images
rm -rf "$folder/package" "$folder"/lifepod-*.tgz
