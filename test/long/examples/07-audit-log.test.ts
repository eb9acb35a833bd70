/** test/e2e/own-engine/audit.test.ts tests the audit log itself. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommand } from '../../../src/platform/processes.ts';
import { type Example, startExample } from '../../support/example.ts';

let example: Example;
beforeAll(async () => {
  example = await startExample('07-audit-log');
  // The first command of the README starts an engine.
  await example.lifepod.kill('SIGTERM');
});
afterAll(() => example?.stop());

/** The README prints the log with jq(1), which lifepod itself does not need. */
const { code: withoutJq } = await runCommand('sh', ['-c', 'command -v jq']);

test.skipIf(withoutJq !== 0)('07-audit-log: the log shows who created and who was refused what', async () => {
  await example.step('up --detach');
  await example.step('kubectl run hello');
  await example.step('jq -r');
  expect(example.rest()).toEqual([]);
});
