import { once } from 'node:events';
import { beforeAll, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { pod, WAIT } from '../../support/manifests.ts';
import { lifepod, useOwnEngine } from '../../support/own-engine.ts';
import { adminOf, SPDY, spdyStreams, upgrade } from '../../support/raw-streams.ts';

const EXEC = '/api/v1/namespaces/default/pods/box/exec?container=app&command=true&stdout=true';
const CLIENTS = 60;
/** Ten times the usual duration of all requests together, and half the duration with a shim that loses track of commands. */
const STALL_MILLIS = 35_000;

useOwnEngine();
beforeAll(async () => {
  const livenessProbe = { exec: { command: ['true'] }, periodSeconds: 1, timeoutSeconds: 5, failureThreshold: 1 };
  await lifepod.apply(pod('box', { app: [{ name: 'app', script: WAIT, livenessProbe }] }));
  await lifepod.wait('--for=condition=Ready', 'pod/box');
});

const transports: Record<string, () => Promise<string>> = {
  async SPDY() {
    const { socket, closed } = await upgrade(lifepod.kubeconfig, EXEC, SPDY);
    socket.write(spdyStreams('error', 'stdout'));
    return (await closed).toString('latin1');
  },
  async WebSocket() {
    const { host, port, ...tls } = adminOf(lifepod.kubeconfig);
    const socket = new WebSocket(`wss://${host}:${port}${EXEC}`, 'v5.channel.k8s.io', tls);
    let status = '';
    socket.on('message', (message: Buffer) => {
      if (message[0] === 3) status += message.toString('utf8', 1);
    });
    await once(socket, 'close');
    return status;
  },
};

test.each(Object.keys(transports))(
  `${CLIENTS} exec requests at the same time over %s all succeed`,
  async (transport) => {
    const begun = performance.now();
    const statuses = await Promise.all(Array.from({ length: CLIENTS }, () => transports[transport]?.()));
    expect(performance.now() - begun).toBeLessThan(STALL_MILLIS);
    for (const status of statuses) expect(status).toContain('"status":"Success"');
    const { status } = await lifepod.get<{ status: { containerStatuses: unknown[] } }>('pod', 'box');
    expect(status.containerStatuses).toMatchObject([{ ready: true, restartCount: 0 }]);
  },
);
