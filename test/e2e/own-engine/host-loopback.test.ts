import { expect, test } from 'vitest';
import type { Pod } from '../../../src/api/generated/types.ts';
import { runCommandOk } from '../../../src/platform/processes.ts';
import { containerGroup, processesOf } from '../../support/control-groups.ts';
import { pod } from '../../support/manifests.ts';
import { lifepod, useOwnEngine } from '../../support/own-engine.ts';
import { type Datagram, listenOn, routeLoopbackOutside } from '../../support/pod-packets.ts';

const HOST_PORT = 28_086;
const SERVE = 'trap "exit 0" TERM; while :; do echo hello from inside | nc -l -p 8080 & wait $!; done';

useOwnEngine();

async function start(name: string, more: object = {}): Promise<Pod> {
  const listens = {
    exec: { command: ['sh', '-c', "grep -q ':1F90 ' /proc/net/tcp /proc/net/tcp6"] },
    periodSeconds: 1,
  };
  await lifepod.apply(pod(name, { app: [{ name: 'app', script: SERVE, readinessProbe: listens, ...more }] }));
  await lifepod.wait('--for=condition=Ready', `pod/${name}`);
  return lifepod.get<Pod>('pod', name);
}
const namespaceOf = (of: Pod): string => `/proc/${processesOf(containerGroup(lifepod.dataDir, of, 'app'))[0]}/ns/net`;
const fromTheMachine = (): Promise<string> =>
  runCommandOk('busybox', ['nc', '-w', '10', '127.0.0.1', String(HOST_PORT)], { input: '' });

test('the node reaches a hostPort on loopback, and Pods reach no loopback address of the node, even after kill -9 of the engine', async () => {
  const hostile = namespaceOf(await start('hostile'));
  const gateway =
    (await runCommandOk('nsenter', [`--net=${hostile}`, 'ip', 'route', 'show', 'default'])).split(' ')[2] ?? '';
  await start('ported', { ports: [{ containerPort: 8080, hostPort: HOST_PORT }] });
  await routeLoopbackOutside(hostile, gateway);
  await using listeners = await listenOn(gateway, ['127.0.0.1']);
  const datagrams: Datagram[] = [
    { to: '127.0.0.1', text: 'to loopback' },
    { to: gateway, from: '127.0.0.9', text: 'from loopback' },
    { to: gateway, text: 'to the gateway' },
  ];
  const expectClosed = async (): Promise<void> =>
    expect(await listeners.arrived(hostile, datagrams)).toEqual(['to the gateway']);

  expect(await fromTheMachine()).toBe('hello from inside\n');
  await expectClosed();
  await lifepod.kill('SIGKILL');
  expect(await fromTheMachine()).toBe('hello from inside\n');
  await expectClosed();
  await lifepod.up();
  expect(await fromTheMachine()).toBe('hello from inside\n');
  await expectClosed();
  await lifepod.delete('pod', 'ported', '--now');
  await expectClosed();
});
