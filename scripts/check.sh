#!/usr/bin/env bash
# Format, lint, types, import table and unit tests: run before every commit.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -f src/api/generated/types.ts ] || node scripts/generate-api.ts
biome check .
tsc
vitest run --project unit
