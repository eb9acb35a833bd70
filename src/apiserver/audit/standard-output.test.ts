import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';

const folder = mkdtempSync(join(tmpdir(), 'lifepod-audit-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Writes the result of append() to standard error. */
const PROGRAM = `
  import { standardOutput } from ${JSON.stringify(join(import.meta.dirname, 'standard-output.ts'))};
  process.stdout.on('error', () => undefined);
  const { written, error } = await standardOutput().append([Buffer.from('a\\n'), Buffer.from('b\\n')]);
  console.error(JSON.stringify({ written, code: error?.code }));
`;
const run = (stdout: 'pipe' | number) =>
  spawn(process.execPath, ['--input-type=module', '--eval', PROGRAM], { stdio: ['ignore', stdout, 'pipe'] });

const textOf = async (stream: AsyncIterable<Buffer> | null): Promise<string> => {
  let text = '';
  for await (const chunk of stream ?? []) text += chunk;
  return text;
};

test('audit lines are written to a pipe', async () => {
  const child = run('pipe');
  const [output, result] = await Promise.all([textOf(child.stdout), textOf(child.stderr)]);
  expect([output, JSON.parse(result)]).toEqual(['a\nb\n', { written: 2 }]);
});

test('audit lines are appended to a file', async () => {
  const path = join(folder, 'file');
  const child = run(openSync(path, 'a'));
  expect(JSON.parse(await textOf(child.stderr))).toEqual({ written: 2 });
  expect(readFileSync(path, 'utf8')).toBe('a\nb\n');
});

test('a pipe without a reader is a failure, which does not end the process', async () => {
  const child = run('pipe');
  child.stdout?.destroy();
  const ended = once(child, 'exit');
  expect(JSON.parse(await textOf(child.stderr))).toEqual({ written: 0, code: 'EPIPE' });
  expect(await ended).toEqual([0, null]);
});
