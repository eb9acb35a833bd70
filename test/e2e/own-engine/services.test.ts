import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import type { Service } from '../../../src/api/generated/types.ts';
import { networkNames } from '../../../src/network/pod-network/names.ts';
import { runCommand } from '../../../src/platform/processes.ts';
import { pod, WAIT } from '../../support/manifests.ts';
import { lifepod, useOwnEngine } from '../../support/own-engine.ts';

useOwnEngine();

const SERVE = 'exec nc -ll -p 8080 -e sh -c \'while read line; do echo "$HOSTNAME"; done\'';

async function deploy(replicas: number): Promise<void> {
  await lifepod.apply({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web' },
    spec: {
      replicas,
      selector: { matchLabels: { app: 'web' } },
      template: {
        metadata: { labels: { app: 'web' } },
        spec: {
          containers: [
            {
              name: 'app',
              image: 'busybox:1.28',
              command: ['sh', '-c', SERVE],
              ports: [{ containerPort: 8080 }],
              readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 },
            },
          ],
          terminationGracePeriodSeconds: 1,
        },
      },
    },
  });
  await lifepod.kubectlOk('rollout', 'status', 'deployment/web', '--timeout=120s');
}

const open = (address: string, port: number): Socket => {
  const socket = connect(port, address);
  onTestFinished(() => {
    socket.destroy();
  });
  return socket;
};

async function say(socket: Socket): Promise<string> {
  socket.write('hello\n');
  const [data] = (await once(socket, 'data', { signal: AbortSignal.timeout(10_000) })) as [Buffer];
  return data.toString().trim();
}

async function answersTo(address: string, port: number): Promise<string[]> {
  const answers = await Promise.all(Array.from({ length: 20 }, () => say(open(address, port))));
  return [...new Set(answers)].sort();
}

const fromPod = async (address: string, port: number): Promise<string> => {
  const script = `echo hello | timeout 10 nc -w 5 ${address} ${port}`;
  return (await lifepod.exec('client', '--', 'sh', '-c', script)).stdout.trim();
};

const podNames = async (): Promise<string[]> => {
  const shown = await lifepod.kubectlOk('get', 'pods', '-l', 'app=web', '-o', 'jsonpath={.items[*].metadata.name}');
  return shown.split(' ').sort();
};

test('the machine and Pods reach a Deployment through its Service, and connections survive kill -9 of the engine', async () => {
  await lifepod.apply(pod('client', { app: [{ name: 'app', script: WAIT }] }));
  await deploy(2);
  await lifepod.kubectlOk('expose', 'deployment', 'web', '--port=80', '--target-port=8080', '--type=NodePort');
  await lifepod.wait('--for=condition=Ready', 'pod/client');
  const { spec } = await lifepod.get<Service>('service', 'web');
  const clusterIp = spec?.clusterIP as string;
  const nodePort = spec?.ports?.[0]?.nodePort as number;
  const names = await podNames();
  await expect.poll(() => fromPod(clusterIp, 80), { timeout: 30_000, interval: 200 }).toMatch(/^web-/);

  expect(await answersTo('127.0.0.1', nodePort)).toEqual(names);
  expect(await answersTo(clusterIp, 80)).toEqual(names);
  const [first = ''] = names;
  const own = `for i in 1 2 3 4 5 6 7 8 9 10; do echo hello | timeout 10 nc -w 5 ${clusterIp} 80; done`;
  const answers = await lifepod.execOk(first, '--', 'sh', '-c', own);
  expect([...new Set(answers.trim().split('\n'))].sort()).toEqual(names);

  const connections = [open('127.0.0.1', nodePort), open(clusterIp, 80)];
  const before = [];
  for (const connection of connections) before.push(await say(connection));
  // The client sends a line every 0.1 s on one connection.
  const inClient = async (script: string): Promise<string> =>
    (await lifepod.exec('client', '--', 'sh', '-c', script)).stdout.trim();
  await inClient(`(while :; do echo hi; sleep 0.1; done | nc ${clusterIp} 80 >/tmp/answers) >/dev/null 2>&1 &`);
  const answered = async (): Promise<string[]> => (await inClient('cat /tmp/answers')).split('\n');
  await expect.poll(async () => (await answered()).length, { timeout: 30_000 }).toBeGreaterThan(3);
  await lifepod.kill('SIGKILL');
  expect(await answersTo('127.0.0.1', nodePort)).toEqual(names);
  expect(await answersTo(clusterIp, 80)).toEqual(names);
  await lifepod.up();
  expect(await answersTo('127.0.0.1', nodePort)).toEqual(names);
  for (const [index, connection] of connections.entries()) expect(await say(connection)).toBe(before[index]);
  const answersBefore = (await answered()).length;
  await expect.poll(async () => (await answered()).length, { timeout: 30_000 }).toBeGreaterThan(answersBefore);
  expect(new Set(await answered()).size).toBe(1);

  await lifepod.kubectlOk('scale', 'deployment', 'web', '--replicas=0');
  await lifepod.wait('--for=delete', 'pod', '-l', 'app=web');
  const refused = async (): Promise<string> => {
    const socket = open('127.0.0.1', nodePort);
    const [error] = (await once(socket, 'error').catch((error) => [error])) as [NodeJS.ErrnoException];
    return error.code ?? '';
  };
  await expect.poll(refused, { timeout: 10_000, interval: 200 }).toBe('ECONNREFUSED');
  await lifepod.delete('service', 'web');
});

test('a Pod with hostNetwork is reached through its Service by Pods and the machine', async () => {
  const port = 28_091;
  const script = SERVE.replace('8080', String(port)).replace('$HOSTNAME', 'host');
  const app = { name: 'app', script, readinessProbe: { tcpSocket: { port }, periodSeconds: 1 } };
  const spec = { hostNetwork: true, terminationGracePeriodSeconds: 1 };
  await lifepod.apply(pod('hosted', { app: [app], labels: { app: 'hosted' }, spec }));
  await lifepod.wait('--for=condition=Ready', 'pod/hosted');
  await lifepod.kubectlOk('expose', 'pod', 'hosted', '--port=80', `--target-port=${port}`, '--type=NodePort');
  const { clusterIP = '', ports } = (await lifepod.get<Service>('service', 'hosted')).spec ?? {};
  await expect.poll(() => fromPod(clusterIP, 80), { timeout: 30_000, interval: 200 }).toBe('host');
  expect(await answersTo(clusterIP, 80)).toEqual(['host']);
  expect(await answersTo('127.0.0.1', ports?.[0]?.nodePort as number)).toEqual(['host']);
  await lifepod.delete('service,pod', 'hosted', '--now');
});

const HOST_PORT = 28_087;

async function answerAt(port: number): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  try {
    return await say(socket);
  } finally {
    socket.destroy();
  }
}

test('127.0.0.1 reaches host ports and node ports while the engine is killed and starts, and connections survive', async () => {
  await lifepod.apply(
    pod('ported', {
      app: [
        {
          name: 'app',
          script: SERVE,
          ports: [{ containerPort: 8080, hostPort: HOST_PORT }],
          readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 },
        },
      ],
      labels: { app: 'ported' },
      spec: { terminationGracePeriodSeconds: 1 },
    }),
  );
  await lifepod.wait('--for=condition=Ready', 'pod/ported');
  await lifepod.kubectlOk('expose', 'pod', 'ported', '--port=80', '--target-port=8080', '--type=NodePort');
  const { spec } = await lifepod.get<Service>('service', 'ported');
  const ports = [HOST_PORT, spec?.ports?.[0]?.nodePort as number];
  await expect.poll(() => answerAt(ports[1] as number).catch(() => ''), { timeout: 30_000 }).toBe('ported');
  const connections = ports.map((port) => open('127.0.0.1', port));

  const answers: string[] = [];
  let isOver = false;
  const all = async (): Promise<string[]> =>
    Promise.all([...ports.map(answerAt), ...connections.map(say)].map((answer) => answer.catch(String)));
  const asking = (async () => {
    while (!isOver || answers.length < 12) answers.push(...(await all()));
  })();
  await lifepod.kill('SIGKILL');
  await lifepod.up();
  isOver = true;
  await asking;
  expect(new Set(answers)).toEqual(new Set(['ported']));
  expect(await all()).toEqual(['ported', 'ported', 'ported', 'ported']);
  await lifepod.delete('service,pod', 'ported', '--now');
});

test('no rules are left after down', async () => {
  await lifepod.kubectlOk('create', 'service', 'clusterip', 'last', '--tcp=80:8080');
  const { table } = networkNames({ dataDir: lifepod.dataDir, instance: lifepod.dataDir });
  expect((await runCommand('nft', ['list', 'chain', 'inet', table, 'services/translate'])).code).toBe(0);
  await lifepod.cliOk('down');
  expect((await runCommand('nft', ['list', 'tables'])).stdout).not.toContain(table);
});
