/** The length of functions. biome counts lines of code, so it lists the candidates, and their first and last lines are compared here. */
import { spawnSync } from 'node:child_process';
import { join, relative } from 'node:path';
import { expect, test } from 'vitest';
import { REPOSITORY } from './sources.ts';

const MOST_LINES = 70;

/** Longer functions, by file: this list may only shrink. */
const LONGER: Readonly<Record<string, number>> = {
  'src/apiserver/http/bounds/outgoing.ts': 2,
  'src/apiserver/server-fixture.ts': 1,
  'src/apiserver/streaming/spdy/spdy-connection.ts': 1,
  'src/cli/logs/follow-pod.ts': 1,
  'src/client/events.ts': 1,
  'src/client/informer.ts': 1,
  'src/client/testing.ts': 1,
  'src/controllers/namespace/namespace.ts': 1,
  'src/controllers/persistent-volumes/persistent-volumes.ts': 1,
  'src/controllers/record-limits/record-limits.ts': 1,
  'src/controllers/taint-eviction/taint-eviction.ts': 1,
  'src/engine/engine.ts': 1,
  'src/node/admission/admission.ts': 1,
  'src/node/container/configuration-source.ts': 1,
  'src/node/ending/node-ending.ts': 1,
  'src/node/eviction/eviction.ts': 1,
  'src/node/images/garbage-collection.ts': 1,
  'src/node/images/puller.ts': 1,
  'src/node/pod/executor.ts': 1,
  'src/node/pod/kept-references.ts': 1,
  'src/node/pod/run-lookup.ts': 1,
  'src/node/pod/worker.ts': 1,
  'src/node/record/recorder.ts': 1,
  'src/node/resources/pod-cgroups.ts': 1,
  'src/node/status/node-status.ts': 1,
  'src/node/usage/reports.ts': 1,
  'src/node/usage/resource-metrics.ts': 1,
  'src/node/volumes/volume-manager.ts': 1,
  'src/runtime/containerd/containerd.ts': 1,
  'src/runtime/cri/connection.ts': 1,
  'src/runtime/cri/observer.ts': 1,
  'src/runtime/simulated/records.ts': 1,
  'src/runtime/simulated/simulated-runtime.ts': 1,
  'src/scheduler/scheduler.ts': 1,
  'src/simulation/simulated-agent.ts': 1,
  'src/store/memory/memory-store.ts': 1,
  'test/contract/runtime-contract.ts': 3,
  'test/support/pods.ts': 1,
};

interface LongFunction {
  path: string;
  lines: number;
}

function longFunctions(): LongFunction[] {
  const rule = 'complexity/noExcessiveLinesPerFunction';
  const config = join(import.meta.dirname, 'functions.biome.json');
  const options = [`--config-path=${config}`, `--only=${rule}`, '--reporter=github', '--max-diagnostics=none'];
  const { stdout } = spawnSync(
    join(REPOSITORY, 'node_modules/.bin/biome'),
    ['lint', ...options, 'src', 'test', 'bench', 'scripts'],
    { cwd: REPOSITORY, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 },
  );
  const found = [...stdout.matchAll(/^::error title=lint\/[^,]*,file=([^,]*),line=(\d+),endLine=(\d+)/gm)];
  return found
    .map(([, file = '', line, endLine]) => ({
      path: relative(REPOSITORY, file),
      lines: Number(endLine) - Number(line) + 1,
    }))
    .filter(({ path, lines }) => lines > MOST_LINES && !path.endsWith('.test.ts'));
}

test(`only the functions on the list have more than ${MOST_LINES} lines, and the list is not longer than needed`, () => {
  const counts: Record<string, number> = {};
  for (const { path } of longFunctions()) counts[path] = (counts[path] ?? 0) + 1;
  expect(counts).toEqual(LONGER);
});
