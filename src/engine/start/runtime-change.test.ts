/** Tests with processes that have the names and arguments of shims and of the DNS process, and that end with their standard input. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { containerdPaths } from '../../runtime/containerd/paths.ts';
import { otherRuntime } from '../engine-runtime.ts';
import { dnsSocket } from '../leftovers.ts';
import { type EngineRecord, recordOf, resolveSettings, writeEngineRecord } from '../settings.ts';
import { openDataFolder } from './first-start.ts';
import { refusal, refuseRuntimeChange } from './runtime-change.ts';

const platform = { timers: createVirtualTimers(), log: silentLog };
const children: ChildProcess[] = [];
let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'lifepod-runtime-change-'));
});
afterEach(async () => {
  for (const child of children.splice(0)) {
    const exited = once(child, 'exit');
    child.stdin?.end();
    await exited;
  }
  rmSync(dataDir, { recursive: true, force: true });
});

function startProcess(argv0: string, ...args: string[]): void {
  children.push(spawn('/bin/sh', ['-c', 'read line', ...args], { argv0, stdio: ['pipe', 'ignore', 'ignore'] }));
}
const startShim = (): void => startProcess('containerd-shim-runc-v2', '-address', containerdPaths(dataDir).socket);
const startDns = (): void => startProcess('node', '/lifepod/dns-server/main.ts', '--socket', dnsSocket(dataDir));

const silent = (name = 'none.sock'): string => `unix://${join(dataDir, name)}`;
const recordWith = (containerRuntimeEndpoint: string): EngineRecord =>
  recordOf(resolveSettings({ dataDir, containerRuntimeEndpoint }, undefined), 7000);
const change = (containerRuntimeEndpoint: string | undefined, record: EngineRecord): Promise<void> =>
  refuseRuntimeChange({ dataDir, containerRuntimeEndpoint }, record, platform);

test('another runtime than the private containerd is refused while a Pod has a shim, also if containerd is down', async () => {
  const record = recordWith('');
  await change(silent(), record);
  startShim();
  const sentence = `1 Pod of ${dataDir} runs in the private containerd, and another runtime would run it a second time: end it first with`;
  await expect(change(silent(), record)).rejects.toThrow(sentence);
  const settings = resolveSettings({ dataDir, containerRuntimeEndpoint: silent() }, record);
  writeEngineRecord(dataDir, record);
  await expect(openDataFolder(settings, record, [], platform)).rejects.toThrow(sentence);
  for (const same of [undefined, '']) await change(same, record);
  await change(silent(), { ...record, state: 'down' });
});

test('if the former runtime of the machine does not answer, another one is refused if Pods may have run since the boot', async () => {
  const record = recordWith(silent());
  startDns();
  await change('', record);
  mkdirSync(join(dataDir, 'pods/1234'), { recursive: true });
  for (const other of ['', silent('other.sock')])
    await expect(change(other, record)).rejects.toThrow(
      `the runtime at ${silent()} does not answer, and Pods of ${dataDir} may run in it, so another runtime would run them a second time: start it, `,
    );
  expect(await otherRuntime({ dataDir, containerRuntimeEndpoint: silent() })).toBeUndefined();
});

test('after a restart of the machine, a runtime that does not answer can be replaced', async () => {
  mkdirSync(join(dataDir, 'pods/1234'), { recursive: true });
  await change('', recordWith(silent()));
  expect(await otherRuntime({ dataDir, containerRuntimeEndpoint: silent() })).toContain('uses a private containerd');
});

test('another path of the same socket is not another runtime', async () => {
  mkdirSync(join(dataDir, 'pods/1234'), { recursive: true });
  symlinkSync(dataDir, join(dataDir, 'link'));
  startDns();
  await change(silent('link/none.sock'), recordWith(silent()));
  await change(join(dataDir, 'none.sock'), recordWith(silent()));
});

test('the refusal counts the Pods, and says how to end them, also if their runtime cannot be started', () => {
  const down = /^(.*): end them first with '(.*lifepod) down --data-dir \/d', or omit --container-runtime-endpoint$/;
  expect(refusal('/d', 'unix:///a.sock', { pods: 3, answers: true })).toMatch(down);
  expect(refusal('/d', 'unix:///a.sock', { pods: 3, answers: true })).toContain(
    '3 Pods of /d run in the runtime at unix:///a.sock, and another runtime would run them a second time',
  );
  const hint = () => "start it with 'systemctl start crio'";
  expect(refusal('/d', 'unix:///a.sock', { pods: 1, answers: false }, undefined, hint)).toMatch(
    /^the runtime at unix:\/\/\/a\.sock does not answer, and 1 Pod of \/d runs in it, so another runtime would run it a second time: start it with 'systemctl start crio', then end it with '.*lifepod down --data-dir \/d'; if it cannot be started, restart the machine, which ends it$/,
  );
});
