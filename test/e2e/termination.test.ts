/** deletion.test.ts has the basic cases. */
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import type { Pod } from '../../src/api/generated/types.ts';
import { type CommandResult, findProgram } from '../../src/platform/processes.ts';
import { writeImageArchive } from '../../src/runtime/images/archive-writer.ts';
import { pod, SHARED, WAIT } from '../support/manifests.ts';
import { condition, ended, inPhase, isReady, runs, statusOf } from '../support/pods.ts';
import { lifepod, record, testInFileNamespace as test } from '../support/shared-engine.ts';

const servers: Server[] = [];
test.afterAll(async () => {
  for (const server of servers) server.close();
});

const DEAF = 'trap "" TERM; while :; do sleep 1; done';
const finished = (name: string): Promise<void> => lifepod.delete('pod', name, '--now', '--wait=false');
/** The test reads the files of the hostPath volume after the Pod is deleted. */
const outliving = (name: string): Record<string, unknown> => ({
  volumes: [{ name: 'work', hostPath: { path: join(lifepod.dataDir, name), type: 'DirectoryOrCreate' } }],
});
const logOf = (name: string): string => readFileSync(join(lifepod.dataDir, name, 'log'), 'utf8');
const patch = (name: string, spec: object): Promise<CommandResult> =>
  lifepod.kubectl('patch', 'pod', name, '-p', JSON.stringify({ spec }));
const DEADLINE_EXCEEDED = {
  phase: 'Failed',
  reason: 'DeadlineExceeded',
  message: 'Pod was active on the node longer than the specified deadline',
};

describe.concurrent('termination of Pods', () => {
  describe('grace period', () => {
    test('a second delete can shorten the grace period, but cannot extend it', async () => {
      for (const name of ['shortened', 'not-longer'])
        await lifepod.apply(
          pod(name, { app: [{ name: 'app', script: DEAF }], spec: { terminationGracePeriodSeconds: 600 } }),
        );
      for (const name of ['shortened', 'not-longer']) await record.until(name, isReady);
      await lifepod.delete('pod', 'shortened', '--wait=false');
      await lifepod.delete('pod', 'not-longer', '--grace-period=3', '--wait=false');
      const began = Date.now();
      await lifepod.delete('pod', 'shortened', '--grace-period=3', '--wait=false');
      await lifepod.delete('pod', 'not-longer', '--grace-period=600', '--wait=false');
      const { metadata } = await lifepod.get<Pod>('pod', 'not-longer');
      expect(metadata.deletionGracePeriodSeconds).toBe(3);
      for (const name of ['shortened', 'not-longer']) {
        const millis = (await record.gone(name)) - began;
        expect(millis).toBeGreaterThan(1500);
        expect(millis).toBeLessThan(20_000);
      }
    });

    test("the image's STOPSIGNAL is sent instead of SIGTERM", async () => {
      const busybox = readFileSync(findProgram('busybox') ?? '');
      const archive = join(lifepod.dataDir, 'usr1.tar');
      await writeImageArchive(
        archive,
        'docker.io/library/usr1:1',
        [
          { type: 'directory', path: 'bin/', mode: 0o755 },
          { type: 'file', path: 'bin/busybox', mode: 0o755, content: busybox },
          { type: 'link', path: 'bin/sh', target: 'bin/busybox' },
          { type: 'link', path: 'bin/sleep', target: 'bin/busybox' },
        ],
        { env: ['PATH=/bin'], stopSignal: 'SIGUSR1' },
      );
      await lifepod.cliOk('image', 'load', archive);
      const note = (name: string): string => `trap "echo ${name} >>/work/log; exit 0" ${name}`;
      await lifepod.apply(
        pod('usr1', {
          app: [
            {
              name: 'app',
              image: 'usr1:1',
              script: `${note('USR1')}; ${note('TERM')}; while :; do sleep 3600 & wait $!; done`,
              ...SHARED.mount,
            },
          ],
          spec: outliving('usr1'),
        }),
      );
      await record.until('usr1', isReady);
      await lifepod.delete('pod', 'usr1');
      expect(logOf('usr1')).toBe('USR1\n');
    });

    test('a deletion with --force --grace-period=0 removes the API object immediately, and kills containers that ignore SIGTERM', async () => {
      const { port, connected } = await silentServer();
      await lifepod.apply(
        pod('forced', {
          app: [{ name: 'app', script: `trap "" TERM; exec nc 127.0.0.1 ${port}`, stdin: true }],
          // With hostNetwork, the process can connect to the test's server. The connection closes when the process ends.
          spec: { hostNetwork: true, terminationGracePeriodSeconds: 600 },
        }),
      );
      const socket = await connected;
      const killed = once(socket, 'close');
      await record.until('forced', isReady);
      const began = Date.now();
      await lifepod.delete('pod', 'forced', '--force', '--grace-period=0');
      expect(await record.gone('forced')).toBeLessThan(began + 20_000);
      await killed;
      expect(Date.now() - began).toBeLessThan(20_000);
    });
  });

  describe('activeDeadlineSeconds', () => {
    test('activeDeadlineSeconds stops the containers gracefully, and the Pod becomes Failed after they have exited', async () => {
      const script = 'trap "echo asked >>/work/log; sleep 1; exit 0" TERM; while :; do sleep 3600 & wait $!; done';
      await lifepod.apply(pod('late', { app: [{ name: 'app', script, ...SHARED.mount }], spec: outliving('late') }));
      await record.until('late', isReady);
      expect((await patch('late', { activeDeadlineSeconds: 1 })).code).toBe(0);
      const failed = await record.until('late', inPhase('Failed'));
      expect(failed.status).toMatchObject(DEADLINE_EXCEEDED);
      expect(statusOf(failed, 'app')).toMatchObject({ restartCount: 0, state: { terminated: { exitCode: 0 } } });
      expect(logOf('late')).toBe('asked\n');
      expect(record.history('late').some(({ pod }) => inPhase('Failed')(pod) && !ended('app')(pod))).toBe(false);
      expect(condition(failed, 'Ready')).toMatchObject({ status: 'False', reason: 'PodFailed' });
      expect(await record.event('late', /Deadline/)).toBe(
        'Normal DeadlineExceeded: Pod was active on the node longer than the specified deadline',
      );
      await finished('late');
    });

    test('activeDeadlineSeconds of a running Pod can be set and lowered, but neither raised nor removed', async () => {
      await lifepod.apply(pod('lowered'));
      await record.until('lowered', isReady);
      expect((await patch('lowered', { activeDeadlineSeconds: 600 })).code).toBe(0);
      const raised = await patch('lowered', { activeDeadlineSeconds: 601 });
      expect(raised.code).toBe(1);
      expect(raised.stderr).toContain(
        'spec.activeDeadlineSeconds: Invalid value: 601: must be less than or equal to previous value',
      );
      const removed = await patch('lowered', { activeDeadlineSeconds: null });
      expect(removed.code).toBe(1);
      expect(removed.stderr).toContain(
        'spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value',
      );
      expect((await patch('lowered', { activeDeadlineSeconds: 1 })).code).toBe(0);
      expect((await record.until('lowered', inPhase('Failed'))).status).toMatchObject(DEADLINE_EXCEEDED);
      await finished('lowered');
    });
  });

  describe('deletion', () => {
    test('a deleted Pod with a finalizer stops its containers, and stays Terminating until the finalizer is removed', async () => {
      const script =
        'trap "until [ -e /work/proceed ]; do usleep 50000; done; exit 0" TERM; while :; do sleep 3600 & wait $!; done';
      const manifest = pod('kept', { app: [{ name: 'app', script, ...SHARED.mount }], spec: outliving('kept') });
      Object.assign(manifest['metadata'] as object, { finalizers: ['example.com/keep'] });
      await lifepod.apply(manifest);
      await record.until('kept', isReady);
      await lifepod.delete('pod', 'kept', '--wait=false');
      expect(await lifepod.kubectlOk('get', 'pod', 'kept')).toMatch(/^kept +1\/1 +Terminating +0 /m);
      writeFileSync(join(lifepod.dataDir, 'kept', 'proceed'), '');
      const over = await record.until('kept', (pod) => pod.metadata.deletionGracePeriodSeconds === 0);
      expect(over.metadata.deletionTimestamp).toBeDefined();
      expect(statusOf(over, 'app')).toMatchObject({ ready: false, state: { terminated: { exitCode: 0 } } });
      expect((await lifepod.kubectlInput(JSON.stringify(pod('kept')), 'create', '-f', '-')).stderr).toMatch(
        /object is being deleted: pods "kept" already exists/,
      );
      await lifepod.kubectlOk('patch', 'pod', 'kept', '--type=merge', '-p', '{"metadata":{"finalizers":null}}');
      await record.gone('kept');
    });

    test('a forced deletion kills the containers, but keeps the API object until the finalizer is removed', async () => {
      const manifest = pod('held', { app: [{ name: 'app', script: DEAF }] });
      Object.assign(manifest['metadata'] as object, { finalizers: ['example.com/keep'] });
      await lifepod.apply(manifest);
      await record.until('held', isReady);
      await lifepod.delete('pod', 'held', '--force', '--grace-period=0', '--wait=false');
      const over = await record.until('held', ended('app'));
      expect(statusOf(over, 'app').state?.terminated?.exitCode).toBe(137);
      await lifepod.kubectlOk('patch', 'pod', 'held', '--type=merge', '-p', '{"metadata":{"finalizers":null}}');
      await record.gone('held');
    });

    test('a Pod whose image is being pulled is deleted immediately, and the pull is canceled', async () => {
      const { port, connected } = await silentServer();
      await lifepod.apply({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'pulling' },
        spec: {
          terminationGracePeriodSeconds: 600,
          containers: [{ name: 'app', image: `127.0.0.1:${port}/never:1` }],
        },
      });
      const givenUp = once(await connected, 'close');
      expect(await record.event('pulling', /Pulling/)).toBe(
        `Normal Pulling: Pulling image "127.0.0.1:${port}/never:1"`,
      );
      const began = Date.now();
      await lifepod.delete('pod', 'pulling', '--wait=false');
      // The grace period of the Pod is ten minutes.
      expect((await record.gone('pulling')) - began).toBeLessThan(50_000);
      await givenUp;
    });

    test('running containers of a deleted Pod get their grace period even if another container waits for its image', async () => {
      const { port } = await silentServer();
      const script = 'trap "sleep 1; echo done >>/work/log; exit 0" TERM; while :; do sleep 3600 & wait $!; done';
      await lifepod.apply(
        pod('half', {
          app: [
            { name: 'app', script, ...SHARED.mount },
            { name: 'absent', image: `127.0.0.1:${port}/never:2`, script: WAIT },
          ],
          spec: outliving('half'),
        }),
      );
      await record.until('half', runs('app'));
      await lifepod.delete('pod', 'half');
      expect(logOf('half')).toBe('done\n');
    });
  });
});

/** `connected` resolves with the socket of the first connection. */
async function silentServer(): Promise<{ port: number; connected: Promise<Socket> }> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.resume();
  });
  servers.push(server);
  const connected = once(server, 'connection').then(([socket]) => socket as Socket);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port, connected };
}
