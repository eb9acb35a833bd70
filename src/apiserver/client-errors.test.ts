/** Clients whose bytes are no request can read what the server says to it. */
import { connect } from 'node:tls';
import { expect, test } from 'vitest';
import { runCommandOk } from '../platform/processes.ts';
import { startTestServer } from './server-fixture.ts';

/** In a process of its own a client sends on while the server closes. Arguments: how often, the length of the head. */
const CLIENT = `
  const at = JSON.parse(process.env.AT);
  const [times, length] = process.argv.slice(1).map(Number);
  const ask = () => new Promise((resolve) => require('node:https')
    .request({ ...at, path: '/api?continue=' + 'a'.repeat(length) })
    .once('response', (answer) => resolve(answer.resume().statusCode))
    .once('error', ({ message }) => resolve(message))
    .end());
  (async () => { for (let i = 0; i < times; i++) console.log(await ask()); })();
`;

test('a head of 4 MiB is answered with 431, which a client reads that sends all of it', async () => {
  await using at = await startTestServer();
  const { certificate: cert, key } = at.pki.admin;
  const { host, port } = at.server;
  const env = { AT: JSON.stringify({ host, port, ca: at.pki.caCertificate, cert, key }) };
  const answers = await runCommandOk(process.execPath, ['-e', CLIENT, '10', String(2 ** 22)], { env });
  expect(answers.trim().split('\n')).toEqual(Array(10).fill('431'));
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
