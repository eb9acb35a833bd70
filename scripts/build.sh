#!/usr/bin/env bash
# Builds dist/, which replaces src/ in the npm package: see scripts/bundle.ts. `npm run check` checks the types.
set -euo pipefail
cd "$(dirname "$0")/.."
rm -rf dist
node_modules/node/bin/node --no-wasm-tier-up scripts/bundle.ts dist
git rev-parse HEAD >dist/git-commit 2>/dev/null || rm dist/git-commit
TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd >dist/build-date 2>/dev/null || rm dist/build-date
# The owner of the checkout also owns the files that root builds, so that the next build needs no sudo.
if [ "$(id -u)" = 0 ] && [ "$(stat -c %u .)" != 0 ]; then
  chown -hR --reference=. dist || echo "build: not all files in $PWD/dist could be given to the owner of $PWD"
fi
