/** Clients whose bytes are no request can read what the server says to it. */
import { connect } from 'node:tls';
import { expect, test } from 'vitest';
import { runCommandOk } from '../platform/processes.ts';
import { CONFIG_MAPS } from './hostile-fixture.ts';
import { startTestServer } from './server-fixture.ts';

/** In a process of its own a client sends on while the server closes. */
const CLIENT = `
  const { body, times, ...options } = JSON.parse(require('node:fs').readFileSync(0, 'utf8'));
  const ask = () => new Promise((resolve) => require('node:https')
    .request(options)
    .once('response', (answer) => resolve(answer.resume().statusCode))
    .once('error', ({ message }) => resolve(message))
    .end(body));
  (async () => { for (let i = 0; i < times; i++) console.log(await ask()); })();
`;

test.each([
  ['a head of 4 MiB', '431', 10, { path: `/api?continue=${'a'.repeat(2 ** 22)}` }],
  [
    'a body of 4 MB that nobody reads, on a connection that ends',
    '406',
    200,
    {
      ...{ method: 'PUT', path: `${CONFIG_MAPS}/one`, body: `{"data":{"a":"${'a'.repeat(4_000_000)}"}}` },
      headers: {
        accept: 'text/html;q=0',
        'content-type': 'application/json',
        upgrade: 'SPDY/3.1',
        connection: 'Upgrade',
      },
    },
  ],
])('a client that sends %s reads the answer %s', async (_what, code, times, request) => {
  await using at = await startTestServer();
  const { certificate: cert, key } = at.pki.admin;
  const { host, port } = at.server;
  const input = JSON.stringify({ host, port, ca: at.pki.caCertificate, cert, key, times, ...request });
  const answers = await runCommandOk(process.execPath, ['-e', CLIENT], { input });
  expect(answers.trim().split('\n')).toEqual(Array(times).fill(code));
});

test('what is no HTTP is answered with 400, once', async () => {
  await using at = await startTestServer();
  const socket = connect({ host: at.server.host, port: at.server.port, ca: at.pki.caCertificate });
  socket.write('hello\r\n\r\n');
  socket.write('hello\r\n\r\n');
  let read = '';
  for await (const chunk of socket) read += chunk;
  expect(read).toBe('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n');
});
