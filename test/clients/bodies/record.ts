/**
 * Records the bodies that real clients send, in recorded.json, which src/apiserver/recorded-bodies.test.ts replays.
 *
 * usage: node test/clients/bodies/record.ts NAME PROGRAM
 *
 * If NAME begins with kubectl, PROGRAM is a kubectl, which gets the commands of commands.ts. Otherwise it is the program built from
 * main.go, with Go and the packages of Debian's golang-k8s-client-go-dev: it gets the path of a kubeconfig and prints each object that it
 * sends. The requests replace the earlier requests of NAME.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Agent, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type RecordedRequest,
  startRecordedServer,
  writeRecorded,
} from '../../../src/apiserver/recorded-bodies-fixture.ts';
import { COMMANDS, type Command } from './commands.ts';

const PROTOBUF = 'application/vnd.kubernetes.protobuf';
const [name, program] = process.argv.slice(2);
if (name === undefined || program === undefined) throw new Error('usage: record.ts NAME PROGRAM');

const at = await startRecordedServer();
const agent = new Agent({ ca: at.pki.caCertificate, cert: at.pki.admin.certificate, key: at.pki.admin.key });
const folder = mkdtempSync(join(tmpdir(), 'lifepod-bodies-'));
const recorded: RecordedRequest[] = [];
let command = '';

async function forward(incoming: IncomingMessage, answer: ServerResponse): Promise<void> {
  const { method = '', url: path = '', headers } = incoming;
  const body = Buffer.concat(await incoming.toArray());
  const forwarded = request({ host: at.server.host, port: at.server.port, method, path, headers, agent });
  forwarded.end(body);
  forwarded.on('response', (response) => {
    const { statusCode: code = 0 } = response;
    if (body.length > 0) {
      const type = String(headers['content-type'] ?? '');
      const text = body.toString(type.startsWith(PROTOBUF) ? 'base64' : 'utf8');
      recorded.push({ command, method, path, type, body: text, code });
    }
    answer.writeHead(code, response.headers);
    response.pipe(answer);
  });
}

/** The exit code does not matter: kubectl also fails after it has sent requests. */
const output = (args: readonly string[], input: string): Promise<string> =>
  new Promise((resolve) => {
    const env = { PATH: process.env['PATH'], HOME: folder, KUBECONFIG: join(folder, 'kubeconfig') };
    const child = execFile(program, args, { cwd: folder, env, timeout: 60_000 }, (_error, out, err) => {
      if (err !== '') console.log(`${args.join(' ')}: ${err.trim()}`);
      resolve(out);
    });
    child.stdin?.end(input);
  });

function withPrint(args: readonly string[]): readonly string[] {
  const end = args.includes('--') ? args.indexOf('--') : args.length;
  return [...args.slice(0, end), '--dry-run=client', '-o', 'json', ...args.slice(end)];
}

/** Adds the objects, in their order, to the protobuf requests of the current command. Throws if there are fewer objects than requests. */
function addObjects(objects: readonly object[]): void {
  const requests = recorded.filter((each) => each.command === command && each.type.startsWith(PROTOBUF));
  if (requests.length > objects.length)
    throw new Error(`${command}: ${requests.length} requests in protobuf, but ${objects.length} objects`);
  for (const [at, request] of requests.entries()) request.object = objects[at];
}

async function runCommand({ args, input = [], prints, sends }: Command): Promise<void> {
  command = args.join(' ');
  const objects =
    prints === true ? [JSON.parse(await output(withPrint(args), ''))] : sends === undefined ? [] : [sends];
  await output(args, input.map((object) => JSON.stringify(object)).join('\n'));
  addObjects(objects);
}

async function runProgram(): Promise<void> {
  command = 'client-go';
  const lines = (await output([join(folder, 'kubeconfig')], '')).trim().split('\n');
  addObjects(lines.map((line) => JSON.parse(line) as object));
}

const proxy = createServer((incoming, answer) => void forward(incoming, answer));
await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
const { port } = proxy.address() as AddressInfo;
const server = `http://127.0.0.1:${port}`;
writeFileSync(
  join(folder, 'kubeconfig'),
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'one', cluster: { server } }],
    users: [{ name: 'one', user: {} }],
    contexts: [{ name: 'one', context: { cluster: 'one', user: 'one' } }],
    'current-context': 'one',
  }),
);
writeFileSync(join(folder, 'picture'), Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 255]));
try {
  if (name.startsWith('kubectl')) {
    const version = JSON.parse(await output(['version', '--client', '-o', 'json'], ''));
    const minor = Number.parseInt(version.clientVersion.minor, 10);
    for (const each of COMMANDS) if (minor >= (each.since ?? 0)) await runCommand(each);
  } else await runProgram();
  writeRecorded(name, recorded);
  console.log(`${name}: ${recorded.length} requests`);
} finally {
  proxy.close();
  proxy.closeAllConnections();
  agent.destroy();
  await at[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
}
