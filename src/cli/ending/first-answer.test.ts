import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { httpClient } from '../../client/http-client.ts';
import { systemTimers } from '../../platform/node-js.ts';
import { retryText, unanswered, untilAnswers } from './first-answer.ts';

/** Starts a server that accepts connections but never answers, and returns its address. */
async function hungServer(): Promise<{ server: string; connected: Promise<unknown> }> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => void sockets.push(socket.on('error', () => undefined)));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return {
    server: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    connected: once(server, 'connection'),
  };
}

test('lifepod down that is interrupted before the engine answers reports no error and no retry', async () => {
  const { server, connected } = await hungServer();
  const stop = new AbortController();
  const patience = {
    timers: systemTimers(),
    signal: stop.signal,
    failed: (error: Error) => expect.unreachable(error.message),
  };
  const waited = untilAnswers(httpClient({ server, caPem: '' }), patience);
  await connected;
  stop.abort();
  await waited;
  expect(unanswered('/none', 7, 'lifepod down').message).toMatch(
    /^the engine \(PID 7\) has not answered, so nothing has been ended: type 'lifepod down' again; if the engine hangs, first type '(?:sudo )?kill -9 7', which leaves its Pods running$/,
  );
});

test('lifepod down waits for an engine that does not answer, and says how to end it', async () => {
  const { server } = await hungServer();
  const stop = new AbortController();
  const failure = Promise.withResolvers<Error>();
  const patience = { timers: systemTimers(), signal: stop.signal, failed: failure.resolve };
  const waited = untilAnswers(
    httpClient({ server, caPem: '', silenceMillis: 20, unreachable: () => 'hangs' }),
    patience,
  );
  expect(retryText('/none', 7, await failure.promise, 'lifepod down')).toMatch(
    /^hangs; waiting for it; otherwise, press Ctrl\+C, and type '(?:sudo )?kill -9 7', which leaves its Pods running, then 'lifepod down' again$/,
  );
  stop.abort();
  await waited;
  const refused = new Error('connection refused');
  expect(retryText('/none', 7, refused, '')).toBe(
    'the engine (PID 7) does not answer yet: connection refused; retrying',
  );
});
