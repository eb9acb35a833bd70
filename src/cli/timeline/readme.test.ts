/** Checks the timeline in README. The timeline shows the life of a Pod from an example, and the test runs this Pod in virtual time. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { Pod } from '../../api/generated/types.ts';
import { live } from '../../simulation/pod-life.ts';
import { drawLife } from './draw.ts';

const REPOSITORY = join(import.meta.dirname, '../../..');
const read = (path: string): string => readFileSync(join(REPOSITORY, path), 'utf8');

test('README shows the timeline of worker-a in examples/02-cleanup-after-exit', async () => {
  const manifest = parseAllDocuments(read('examples/02-cleanup-after-exit/worker.yaml'))[1]?.toJS() as Pod;
  const pod: Pod = { ...manifest, metadata: { ...manifest.metadata, namespace: 'default', uid: 'u' } };
  const { transitions, now } = await live({
    pod,
    scripts: {
      acquire: [{ runMillis: 1200, exitCode: 0 }],
      // In the example, kill-app signals the app and waits until the app has exited. Here, the app ends shortly before kill-app does.
      app: [{ runMillis: 11_500, exitCode: 0 }],
      fsync: [{ runMillis: 800, exitCode: 0 }],
      'kill-app': [{ runMillis: 2000, exitCode: 0 }],
      'remove-tmp': [{ runMillis: 700, exitCode: 0 }],
      release: [
        { runMillis: 2000, exitCode: 1 },
        { runMillis: 900, exitCode: 0 },
      ],
    },
    deletions: [{ at: 10_000, graceSeconds: 60 }],
  });
  const drawn = drawLife(transitions, { width: 80, color: false, now, spec: [] });
  expect(drawn.join('\n')).toBe(/^```text\n( +╵0s[^`]*)\n```$/m.exec(read('README.md'))?.[1]);
});
