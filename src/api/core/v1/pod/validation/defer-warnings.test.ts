import { describe, expect, it } from 'vitest';
import type { DeferContainer, PodSpec } from '../../../../generated/types.ts';
import { podKind } from '../index.ts';
import { defaulted, deferOf, podOf } from '../pod-fixtures.ts';

const warningsOf = (entries: DeferContainer[], more: Partial<PodSpec> = {}): string[] =>
  podKind.warnings?.(defaulted(podOf({ deferContainers: entries, ...more }))) ?? [];

const bounded = (more: Partial<DeferContainer> = {}) => deferOf('entry', { timeoutSeconds: 5, ...more });
const timeout = 'spec.deferContainers[0].timeoutSeconds';
const hangs = `${timeout}: not set; an entry with trigger PreExit that hangs leaves the app containers 2 s to stop`;
const retried = (policy: string): string =>
  `${timeout}: not set; with restartPolicy ${policy} a failing entry is retried until its stage ends`;

describe('warnings about defer containers', () => {
  it.each<[string, DeferContainer[], Partial<PodSpec>, ...string[]]>([
    ['an entry with a timeout', [bounded()], {}],
    ['a PostExit entry without a timeout', [deferOf('entry', { trigger: 'PostExit' })], {}],
    ['a PreExit entry without a timeout', [deferOf('entry')], {}, hangs],
    [
      'a PostExit entry that is retried without a timeout',
      [deferOf('entry', { trigger: 'PostExit', restartPolicy: 'OnFailure' })],
      {},
      retried('OnFailure'),
    ],
    [
      'a PreExit entry that is retried without a timeout',
      [deferOf('entry', { restartPolicy: 'Always' })],
      {},
      retried('Always'),
      hangs,
    ],
    ['a timeout as long as the grace period', [bounded({ timeoutSeconds: 30 })], {}],
    [
      'a timeout longer than the grace period',
      [bounded({ timeoutSeconds: 31 })],
      {},
      `${timeout}: longer than the grace period of 30 s, which ends the entry earlier`,
    ],
    ['a reserve that leaves 10 s', [bounded()], { postExitGracePeriodSeconds: 20 }],
    [
      'a reserve that leaves 9 s',
      [bounded()],
      { postExitGracePeriodSeconds: 21 },
      'spec.postExitGracePeriodSeconds: leaves 9 s of the grace period to entries with trigger PreExit and to app containers; at least 10 s are recommended',
    ],
    [
      'a grace period of 0',
      [deferOf('entry', { trigger: 'PostExit' })],
      { terminationGracePeriodSeconds: 0 },
      'spec.terminationGracePeriodSeconds: with a grace period of 0 defer container entries will not run on delete',
    ],
    ['a grace period of 0 without entries', [], { terminationGracePeriodSeconds: 0 }],
    ['a reserve without entries', [], { postExitGracePeriodSeconds: 29 }],
  ])('warnings about defer containers: %s', (_, entries, more, ...expected) => {
    expect(warningsOf(entries, more)).toEqual(expected);
  });

  it('warnings about defer containers are returned only on create', () => {
    const pod = defaulted(podOf({ deferContainers: [deferOf('entry')] }));
    expect(podKind.warnings?.(pod)).toEqual([hangs]);
    expect(podKind.warnings?.(pod, pod)).toEqual([]);
  });
});
