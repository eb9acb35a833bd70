import { expect, test } from 'vitest';
import { read, typeScript } from './sources.ts';

/** Files whose output has colors, is read by a program, or was made printable before. */
const RAW = [
  'src/cli/completion/complete.ts',
  'src/cli/describe/describe.ts',
  'src/cli/kubeconfig/kubeconfig.ts',
  'src/cli/kubeconfig/own-kubeconfig.ts',
  'src/cli/main.ts',
  'src/cli/secrets/discard.ts',
  'src/cli/secrets/rotate-key.ts',
  'src/cli/timeline/timeline.ts',
];

test('commands print lines with printLine() and printError(), which escape control characters of clients', () => {
  const commands = typeScript.filter(
    (path) =>
      path.startsWith('src/cli/') &&
      !path.startsWith('src/cli/progress/') &&
      !path.endsWith('.test.ts') &&
      !RAW.includes(path),
  );
  expect(commands.filter((path) => /\bprocess\.std(?:out|err)\.write\(/.test(read(path)))).toEqual([]);
});
