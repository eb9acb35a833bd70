/** Clients that send invalid or refused requests must still be able to read the response of the server. */
import { connect } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { runCommandOk } from '../platform/processes.ts';
import { CONFIG_MAPS } from './hostile-fixture.ts';
import { startTestServer } from './server-fixture.ts';

/** A client in its own process keeps sending while the server closes the connection. */
const CLIENT = `
  const { body, times, ...options } = JSON.parse(require('node:fs').readFileSync(0, 'utf8'));
  const ask = () => new Promise((resolve) => require('node:https')
    .request(options)
    .once('response', (response) => resolve(response.resume().statusCode))
    .once('error', ({ message }) => resolve(message))
    .end(body));
  (async () => { for (let i = 0; i < times; i++) console.log(await ask()); })();
`;

test.each([
  ['a head of 4 MiB', '431', 10, { path: `/api?continue=${'a'.repeat(2 ** 22)}` }],
  [
    'a body of 4 MB that the server does not read before it closes the connection',
    '406',
    200,
    {
      method: 'PUT',
      path: `${CONFIG_MAPS}/one`,
      body: `{"data":{"a":"${'a'.repeat(4_000_000)}"}}`,
      headers: {
        accept: 'text/html;q=0',
        'content-type': 'application/json',
        upgrade: 'SPDY/3.1',
        connection: 'Upgrade',
      },
    },
  ],
])('a client that sends %s can read the response %s', async (_what, code, times, request) => {
  await using at = await startTestServer();
  const { certificate: cert, key } = at.pki.admin;
  const { host, port } = at.server;
  const input = JSON.stringify({ host, port, ca: at.pki.caCertificate, cert, key, times, ...request });
  const codes = await runCommandOk(process.execPath, ['-e', CLIENT], { input });
  expect(codes.trim().split('\n')).toEqual(Array(times).fill(code));
});

test('a client that sends bytes that are not HTTP gets 400 only once', async () => {
  await using at = await startTestServer();
  const socket = connect({ host: at.server.host, port: at.server.port, ca: at.pki.caCertificate });
  socket.write('hello\r\n\r\n');
  socket.write('hello\r\n\r\n');
  let read = '';
  for await (const chunk of socket) read += chunk;
  expect(read).toBe('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n');
});

test.each([
  ['bytes that are not HTTP', 'hello\r\n\r\n', '400 Bad Request'],
  [
    'a head of 20 kB',
    `GET /healthz HTTP/1.1\r\nhost: a\r\na: ${'a'.repeat(20_000)}\r\n\r\n`,
    '431 Request Header Fields Too Large',
  ],
])('a client that sends %s after a valid request gets both responses', async (_what, bytes, status) => {
  await using at = await startTestServer();
  const socket = connect({ host: at.server.host, port: at.server.port, ca: at.pki.caCertificate });
  socket.write(`GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n${bytes}`);
  let read = '';
  for await (const chunk of socket) read += chunk;
  expect(read).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  expect(read.endsWith(`\r\n\r\nokHTTP/1.1 ${status}\r\nConnection: close\r\n\r\n`)).toBe(true);
});

test.each([
  ['invalid bytes in the body of a request without a response', 'transfer-encoding: chunked\r\n\r\nzz\r\n', /^$/],
  [
    'bytes after a request with Connection: close',
    'connection: close\r\n\r\nhello\r\n\r\n',
    /^HTTP\/1\.1 200 OK\r\n.*\r\nok$/s,
  ],
])('a client that sends %s gets no response to these', async (_what, rest, expected) => {
  await using at = await startTestServer();
  const socket = connect({ host: at.server.host, port: at.server.port, ca: at.pki.caCertificate });
  const method = rest.includes('chunked') ? 'POST /apis' : 'GET /healthz';
  socket.write(`${method} HTTP/1.1\r\nhost: a\r\n${rest}`);
  let read = '';
  for await (const chunk of socket) read += chunk;
  expect(read).toMatch(expected);
});

describe('many headers', () => {
  async function exchange(bytes: string): Promise<string> {
    await using at = await startTestServer();
    const { certificate: cert, key } = at.pki.admin;
    const socket = connect({ host: at.server.host, port: at.server.port, ca: at.pki.caCertificate, cert, key });
    socket.write(bytes);
    let read = '';
    for await (const chunk of socket) read += chunk;
    return read;
  }
  const review = '{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}';
  const request = (headers: string): string =>
    [
      'POST /apis/authentication.k8s.io/v1/selfsubjectreviews HTTP/1.1',
      'host: a',
      'connection: close',
      `content-length: ${review.length}`,
      `${headers}impersonate-user: jane`,
      '',
      review,
    ].join('\r\n');

  test('an impersonation after 900 other headers is not ignored', async () => {
    const answer = await exchange(request('a:\r\n'.repeat(900)));
    expect(answer).toMatch(/^HTTP\/1\.1 403 /);
    expect(answer).toContain('User \\"jane\\" cannot create');
  });

  test.each([
    ['more than 1000 headers', 'a:\r\n'.repeat(1100)],
    ['headers of more than 16 KiB', `a: ${'x'.repeat(1000)}\r\n`.repeat(17)],
  ])('%s get 431: none of them, such as an impersonation at the end, is ignored', async (_what, headers) => {
    const answer = await exchange(request(headers));
    expect(answer).toBe('HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\n\r\n');
  });
});
