import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runCommandOk } from '../../platform/processes.ts';
import { hasLink } from './links.ts';

test('an interface is found by its name', () => {
  expect([hasLink('lo'), hasLink('lifepod-none')]).toEqual([true, false]);
});

const ADD = 'ip link add lifepod-test type bridge';
const mayAdd = spawnSync('unshare', ['--net', 'sh', '-c', ADD]).status === 0;

test.runIf(mayAdd)(
  'an interface is found in the network namespace of the process, although /sys shows another',
  async () => {
    const module = JSON.stringify(join(import.meta.dirname, 'links.ts'));
    const code = `import { hasLink } from ${module}; console.log(hasLink('lifepod-test'), hasLink('lifepod-none'));`;
    const command = [`${ADD} && exec "$0" --input-type=module --eval "$1"`, process.execPath, code];
    expect(await runCommandOk('unshare', ['--net', 'sh', '-c', ...command])).toBe('true false\n');
    expect(hasLink('lifepod-test')).toBe(false);
  },
);
