import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { afterAll, expect, test } from 'vitest';
import { kubeconfigPath } from '../../engine/settings.ts';
import { followKubectl } from './plugin-folder.ts';

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'lifepod-plugin-')));
writeFileSync(kubeconfigPath(folder), '{}');
writeFileSync(join(folder, 'engine.json'), '{}');
afterAll(() => rmSync(folder, { recursive: true }));

const KUBECONFIG = kubeconfigPath(folder);
const PLUGIN = { LIFEPOD_KUBECTL_PLUGIN: '1' };

async function folderUsed(env: NodeJS.ProcessEnv, args: string[] = []): Promise<string | undefined> {
  const program = new Command();
  let used: string | undefined;
  program
    .command('down')
    .option('--data-dir <folder>', '', '/default')
    .action(({ dataDir }: { dataDir: string }) => {
      used = dataDir;
    });
  followKubectl(program, env);
  await program.parseAsync(['down', ...args], { from: 'user' });
  return used;
}

test.each<[string, NodeJS.ProcessEnv, string[], string]>([
  ['kubectl lifepod uses the folder of the engine in KUBECONFIG', { ...PLUGIN, KUBECONFIG }, [], folder],
  ['kubectl lifepod uses the folder in --data-dir', { ...PLUGIN, KUBECONFIG }, ['--data-dir', '/own'], '/own'],
  ['kubectl lifepod uses the default folder without a kubeconfig', { ...PLUGIN, HOME: folder }, [], '/default'],
  ['lifepod uses the default folder', { KUBECONFIG }, [], '/default'],
])('%s', async (_, env, args, expected) => {
  expect(await folderUsed(env, args)).toBe(expected);
});

test('kubectl lifepod without --data-dir fails if kubectl uses the server of another machine, or several kubeconfigs', async () => {
  const other = join(folder, 'other');
  await expect(folderUsed({ ...PLUGIN, KUBECONFIG: other })).rejects.toThrow(
    `kubectl uses the kubeconfig ${other}, which does not show the data folder of an engine on this machine: give --data-dir FOLDER`,
  );
  await expect(folderUsed({ ...PLUGIN, KUBECONFIG: `${KUBECONFIG}:${other}` })).rejects.toThrow('give --data-dir');
});
