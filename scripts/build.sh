#!/usr/bin/env bash
# Makes dist/, what the npm package has in place of src/: JavaScript, and the files that it reads beside itself.
set -euo pipefail
cd "$(dirname "$0")/.."
rm -rf dist
tsc -p tsconfig.build.json
find src -name '*.proto' -o -path 'src/api/generated/*.json' | while read -r file; do
  install -D --mode=644 "$file" "dist/${file#src/}"
done
