import { expect, test } from 'vitest';
import { restartReason, type ServiceChange } from './restart-reason.ts';

const installed = { gitVersion: 'v1.33.0+lifepod.0.1.0', gitCommit: 'a'.repeat(40) };
const same: ServiceChange = { units: false, options: [], running: installed, installed };

test.each<[string, Partial<ServiceChange>, string | undefined]>([
  ['nothing has changed', {}, undefined],
  ['the engine does not answer, and nothing else has changed', { running: undefined }, undefined],
  ['a unit has changed', { units: true }, 'its units have changed'],
  [
    'options have changed',
    { options: ['--port', '--max-pods'], units: true },
    'the engine ran with another value of --port, --max-pods',
  ],
  [
    'another commit is installed',
    { running: { ...installed, gitCommit: 'b'.repeat(40) } },
    'the engine ran with v1.33.0+lifepod.0.1.0 (commit bbbbbbbbbbbb), and v1.33.0+lifepod.0.1.0 (commit aaaaaaaaaaaa) is installed',
  ],
  [
    'another version is installed, and the commit of the engine is not known',
    { running: { gitVersion: 'v1.33.0+lifepod.0.0.9', gitCommit: '' } },
    'the engine ran with v1.33.0+lifepod.0.0.9, and v1.33.0+lifepod.0.1.0 (commit aaaaaaaaaaaa) is installed',
  ],
])('if %s, a repeated installation of the service knows whether to restart it', (_, change, reason) => {
  expect(restartReason({ ...same, ...change })).toBe(reason);
});
