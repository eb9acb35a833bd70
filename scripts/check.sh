#!/usr/bin/env bash
# Subjects of new commits, format, lint, types, import table and unit tests: run before every commit.
set -euo pipefail
cd "$(dirname "$0")/.."

MOST_CHARACTERS=72
# The commits that origin/main does not have; without a remote, the last 20.
new_commits() {
  local range=(-n 20 HEAD)
  if git rev-parse --quiet --verify origin/main >/dev/null; then range=(origin/main..HEAD); fi
  git log --no-merges --format='%h %s' "${range[@]}"
}
too_long=$(new_commits | (
  LC_ALL=C.UTF-8 # so that characters are counted, not bytes
  while read -r hash subject; do
    [ "${#subject}" -le "$MOST_CHARACTERS" ] || echo "  $hash $subject (${#subject} characters)"
  done
))
if [ -n "$too_long" ]; then
  echo "check: the subject of a commit may have at most $MOST_CHARACTERS characters. Shorten these ('git commit --amend', 'git rebase -i'):" >&2
  echo "$too_long" >&2
  exit 1
fi

[ -f src/api/generated/types.ts ] || node scripts/generate-api.ts
biome check .
tsc
vitest run --project unit
