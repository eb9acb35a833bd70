#!/usr/bin/env bash
# Checks the subjects of new commits, format, lint, types and unit tests, including the import table. Run this script before every commit.
set -euo pipefail
cd "$(dirname "$0")/.."

MOST_CHARACTERS=72
# Prints the hash and subject of the last 20 commits, and of all commits that origin/main (main if there is no origin) does not contain,
# without merges. The last 20 commits are included because origin/main of a fresh clone contains all commits.
new_commits() {
  git log --no-merges --format='%h %s' -n 20 HEAD
  local base
  for base in origin/main main; do
    if git rev-parse --quiet --verify "$base" >/dev/null; then
      git log --no-merges --format='%h %s' "$base..HEAD"
      break
    fi
  done
}
too_long=$(new_commits | sort --unique | (
  LC_ALL=C.UTF-8 # Makes ${#subject} count characters, not bytes.
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
