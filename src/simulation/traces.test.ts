/**
 * What happens in a sample of lives, step for step, is what traces.txt says: what is added for other Pods changes nothing of these.
 * LIFEPOD_RECORD_TRACES=1 writes the file, for a change that is meant to be seen in it.
 */
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { lives } from './lives.ts';
import { live } from './pod-life.ts';

const file = join(import.meta.dirname, 'traces.txt');
const sample = fc.sample(lives, { seed: 20_170_301, numRuns: 1000 });

it('the lives of the sample go as they always went', async () => {
  const digests: string[] = [];
  for (const life of sample) {
    const { trace, events, statuses, actions, probes, hooks, goneAt, removedAt } = await live(life);
    const all = JSON.stringify({ trace, events, statuses, actions, probes, hooks, goneAt, removedAt });
    digests.push(createHash('sha256').update(all).digest('hex').slice(0, 8));
  }
  if (process.env['LIFEPOD_RECORD_TRACES'] !== undefined) writeFileSync(file, `${digests.join('\n')}\n`);
  const recorded = readFileSync(file, 'utf8').trim().split('\n');
  const changed = sample.filter((_, index) => digests[index] !== recorded[index]);
  expect(
    JSON.stringify(changed[0]),
    `${changed.length} of ${sample.length} lives changed; the first is`,
  ).toBeUndefined();
  expect(recorded.length).toBe(sample.length);
});
