import { expect, test } from 'vitest';
import type { Pod } from '../../../api/generated/types.ts';
import { hearSignals, processEvidence } from './pid-one.ts';

const podOf = (...command: string[]): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p' },
  spec: { containers: [{ name: 'app', image: 'x', command }] },
});

test.each([
  [['sh', '-c', "trap '' TERM; sleep 9"], true],
  [['/bin/bash', '-c', 'trap "echo bye" EXIT SIGTERM\nsleep 9'], true],
  [['sh', '-c', 'trap "echo bye" EXIT; sleep 9'], false],
  [['sleep', 'trap', 'TERM'], false],
])('the evidence about %j that does not end says that it traps TERM: %s', (command, traps) => {
  const lines = processEvidence(podOf(...command), 'app').join('\n');
  expect(lines.includes('it traps TERM')).toBe(traps);
  expect(lines.includes('installs no handler')).toBe(!traps);
  expect(hearSignals(podOf(...command), 'app').description.includes('make the trap end the shell')).toBe(traps);
});
