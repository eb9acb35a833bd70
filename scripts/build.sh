#!/usr/bin/env bash
# Builds dist/, which replaces src/ in the npm package. It contains JavaScript and the data files that lifepod reads at run time.
set -euo pipefail
cd "$(dirname "$0")/.."
rm -rf dist
modules=$(mktemp -d)
trap 'rm -rf "$modules"' EXIT
node_modules/.bin/tsc -p tsconfig.build.json --outDir "$modules"
node_modules/node/bin/node --no-wasm-tier-up scripts/bundle.ts "$modules" dist
git rev-parse HEAD >dist/git-commit 2>/dev/null || rm dist/git-commit
TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd >dist/build-date 2>/dev/null || rm dist/build-date
find src -name '*.proto' -o -path 'src/cli/completion/completion.*' -o -path 'src/api/generated/*.json' -o -path 'src/api/facts/*.json' | while read -r file; do
  install -D --mode=644 "$file" "dist/${file#src/}"
done
