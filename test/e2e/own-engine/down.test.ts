import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { clearMachine, processesNaming } from '../../../src/engine/leftovers.ts';
import { dataDirReleased } from '../../../src/platform/files.ts';
import { nodePlatform } from '../../../src/platform/node-js.ts';
import { runCommand } from '../../../src/platform/processes.ts';
import { killContainerd } from '../../support/containerd.ts';
import { type LeakWatch, watchLeaks } from '../../support/leaks.ts';
import { type Lifepod, launch, scratchFolder, startLifepod } from '../../support/lifepod.ts';
import { pod, WAIT } from '../../support/manifests.ts';

const APP = pod('app', { init: [{ name: 'first', script: 'true' }], app: [{ name: 'app', script: WAIT }] });

describe('lifepod down, repeated with one engine', () => {
  const scratch = scratchFolder();
  afterAll(() => scratch.remove());
  let lifepod: Lifepod;

  test('lifepod down ends the Pods gracefully and leaves no process, mount, interface, route, table, connection, lease or record', async () => {
    lifepod = await startLifepod({ scratch });
    await lifepod.apply(APP);
    await lifepod.apply(pod('memory', { spec: { volumes: [{ name: 'm', emptyDir: { medium: 'Memory' } }] } }));
    await lifepod.wait('--for=condition=Ready', 'pod/app', 'pod/memory');
    // The query creates a connection between the Pod and the cluster DNS, which the kernel tracks.
    await lifepod.execOk('app', '--', 'nslookup', 'kubernetes.default.svc.cluster.local');
    const leaks = await watchLeaks(lifepod.dataDir);
    for (const kind of [
      /^link lp/,
      /^table inet/,
      /^link veth/,
      /^route .* dev lp/,
      /^route .* dev veth/,
      /^connection udp /,
      /^lease /,
      /^record .*-eth0$/,
      /^record .*-lo$/,
      /^process /,
      /^mount .*\/netns\/cni-/,
      /^mount .*\/rootfs$/,
    ]) {
      expect(leaks.parts).toContainEqual(expect.stringMatching(kind));
    }
    const log = lifepod.kubectlOk('logs', '-f', 'app');
    const said = await lifepod.cliOk('down');
    expect(said).toContain('default/app');
    await log.catch(() => undefined);
    expect(await leaks.left()).toEqual([]);

    expect((await lifepod.cli('down')).code).toBe(0);
    const status = await lifepod.cli('status');
    expect(status.code).toBe(1);
    expect(status.stderr + status.stdout).toContain('not running');

    await lifepod.up();
    expect(await lifepod.kubectlOk('get', 'svc', 'kubernetes', '-o', 'name')).toBe('service/kubernetes\n');
    expect((await lifepod.kubectl('get', 'pods')).stderr).toContain('No resources found');
  });

  test('lifepod down ends the Pods of workloads without replacing them, and the next engine runs the workloads again', async () => {
    for (const [kind, name, rest] of [
      ['Deployment', 'web', { replicas: 2 }],
      ['DaemonSet', 'agent', {}],
    ] as const) {
      const labels = { app: name };
      const { spec } = pod(name, { app: [{ name: 'app', script: WAIT }] });
      const template = { metadata: { labels }, spec };
      const selector = { matchLabels: labels };
      await lifepod.apply({ apiVersion: 'apps/v1', kind, metadata: { name }, spec: { ...rest, selector, template } });
      await lifepod.kubectlOk('rollout', 'status', `${kind}/${name}`, '--timeout=60s');
    }
    const leaks = await watchLeaks(lifepod.dataDir);
    const said = await lifepod.cliOk('down');
    // Each Pod is ended once: there are no replacements.
    expect(said.match(/^ending default\/(web|agent)/gm)).toHaveLength(3);
    expect(await leaks.left()).toEqual([]);

    await lifepod.up();
    for (const workload of ['deployment/web', 'daemonset/agent']) {
      await lifepod.kubectlOk('rollout', 'status', workload, '--timeout=60s');
    }
  });

  test('lifepod down waits until the containers of a Pod that was deleted by force have ended', async () => {
    const marker = '16180339';
    await lifepod.apply(pod('deaf', { app: [{ name: 'app', script: `trap "" TERM; sleep ${marker}` }] }));
    await lifepod.wait('--for=condition=Ready', 'pod/deaf');
    await lifepod.delete('pod', 'deaf', '--force', '--grace-period=0', '--wait=false');
    const { stderr } = await lifepod.cli('down');
    // If containers still ran after the end of the engine, `lifepod down` would kill them and print a warning.
    expect(stderr).toBe('');
    expect(processesNaming(marker)).toEqual([]);
  });
});

test('lifepod down after kill -9 of the engine ends the Pods and leaves nothing behind', async () => {
  const scratch = scratchFolder();
  try {
    const lifepod = await startLifepod({ scratch });
    await lifepod.apply(APP);
    await lifepod.wait('--for=condition=Ready', 'pod/app');
    const leaks = await watchLeaks(lifepod.dataDir);
    await lifepod.kill('SIGKILL');
    await lifepod.cliOk('down');
    expect(await leaks.left()).toEqual([]);

    const runAgain = async (): Promise<LeakWatch> => {
      await lifepod.up();
      await lifepod.apply(APP);
      await lifepod.wait('--for=condition=Ready', 'pod/app');
      return watchLeaks(lifepod.dataDir);
    };
    // After the engine and containerd have been killed, a new engine and a new containerd detach the sandbox.
    await runAgain();
    await lifepod.kill('SIGKILL');
    killContainerd(lifepod);
    const restarted = await runAgain();
    await lifepod.delete('pod', 'app', '--now');
    const attached = async () => (await restarted.left()).filter((part) => /^(record|lease|link veth)/.test(part));
    expect(await attached()).toEqual([]);

    // Now not even containerd detaches the sandbox.
    await lifepod.kill('SIGKILL');
    const again = await runAgain();
    await lifepod.kill('SIGKILL');
    killContainerd(lifepod);
    await clearMachine(lifepod.dataDir, nodePlatform('error'), new AbortController().signal);
    expect(again.parts).toContainEqual(expect.stringMatching(/^record .*-lo$/));
    expect(await again.left()).toEqual([]);
  } finally {
    await scratch.remove();
  }
});

test('commands say that the data folder was deleted while its engine ran, a start is refused, and lifepod down ends what is left', async () => {
  const scratch = scratchFolder();
  try {
    const lifepod = await startLifepod({ scratch });
    const { dataDir } = lifepod;
    // lifepod down cannot read the addresses of the network from the deleted folder, so tracked connections remain until they expire.
    const left = async ({ left: parts }: LeakWatch) =>
      (await parts()).filter((part) => !part.startsWith('connection '));
    const deleteFolder = () => runCommand('rm', ['-rf', dataDir]);
    const refused = async (when: string, what: string, commands: string[][]): Promise<void> => {
      const results = commands.map(async ([command = '', ...args]) => ({
        command,
        ...(await lifepod.cli(command, ...args)),
      }));
      for (const result of await Promise.all(results)) {
        expect(result).toMatchObject({ code: 1 });
        expect(result.stderr).toContain(`lifepod: the data folder ${dataDir} was deleted ${when}: '`);
        expect(result.stderr).toContain(
          ` down --data-dir ${dataDir}' ends ${what}, and its Pods without their grace periods`,
        );
      }
      for (const name of ['lock', 'engine.json', 'lifepod.log']) expect(existsSync(join(dataDir, name))).toBe(false);
    };
    await lifepod.apply(APP);
    await lifepod.wait('--for=condition=Ready', 'pod/app');
    const leaks = await watchLeaks(dataDir);
    const engine = lifepod.pid();
    await deleteFolder();
    await refused('while its engine ran', `the engine (PID ${engine})`, [
      ['status'],
      ['why', 'app'],
      ['up', '--detach', ...lifepod.options],
      ['up', ...lifepod.options],
    ]);
    expect(processesNaming(dataDir).some(({ pid }) => pid === engine)).toBe(true);
    expect(await lifepod.cliOk('down')).toBe(
      `the data folder ${dataDir} was deleted while its engine ran: ending the engine (PID ${engine}), and its Pods without their grace periods\n` +
        `nothing from ${dataDir} is running or mounted any more\n`,
    );
    expect(await left(leaks)).toEqual([]);

    await lifepod.up();
    const again = await watchLeaks(dataDir);
    await lifepod.kill('SIGKILL');
    await deleteFolder();
    await refused('or moved while processes of its engine ran', 'what it has left', [
      ['status'],
      ['up', '--detach', ...lifepod.options],
    ]);
    await lifepod.cliOk('down');
    expect(await left(again)).toEqual([]);
  } finally {
    await scratch.remove();
  }
});

test("lifepod down fails if the machine's runtime does not answer, and reports that containers may remain", async () => {
  const scratch = scratchFolder();
  try {
    const containerRuntimeEndpoint = `unix://${scratch.path}/none.sock`;
    const record = { containerRuntimeEndpoint, state: 'down' };
    const path = join(scratch.path, 'engine.json');
    writeFileSync(path, JSON.stringify(record));
    const { code, stdout, stderr } = await launch(['down', '--data-dir', scratch.path]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(`lifepod: some containers may remain in the runtime at ${containerRuntimeEndpoint}: `);
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual(record);
  } finally {
    await scratch.remove();
  }
});

describe('two engines with different data folders and networks', () => {
  let engines: Lifepod[] = [];
  beforeAll(async () => {
    for (let count = 0; count < 2; count++) engines.push(await startLifepod());
  });
  afterAll(async () => {
    for (const engine of engines) await engine.stop();
  });

  test('two engines run Pods of the same name at the same time', async () => {
    await Promise.all(
      engines.map(async (lifepod) => {
        await lifepod.apply(APP);
        await lifepod.wait('--for=condition=Ready', 'pod/app');
      }),
    );
  });

  test('an engine keeps its data folder locked until it has closed its files and exits, and the other one runs on', async () => {
    const [first, second] = engines as [Lifepod, Lifepod];
    const released = dataDirReleased(second.dataDir, AbortSignal.timeout(60_000));
    const engine = second.pid();
    const runsAfterRelease = released.then(() => processesNaming(second.dataDir).some(({ pid }) => pid === engine));
    process.kill(engine, 'SIGTERM');
    expect(await runsAfterRelease).toBe(false);
    await second.stop();
    engines = [first];
    expect(await first.kubectlOk('get', 'pod', 'app')).toMatch(/^app +1\/1 +Running +0 /m);
  });
});
