import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const { resolve } = createRequire(import.meta.url);
const protos = fileURLToPath(new URL('../cri/protos/cri.proto', import.meta.url));

export function writeProgram(folder: string, name: string, script: string, interpreter = '/bin/sh'): string {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, name);
  writeFileSync(path, `#!${interpreter}\n${script}\n`, { mode: 0o755 });
  return path;
}

/**
 * Writes a program that serves CRI with the sandboxes, and returns its path. The program appends each stop and removal of a sandbox to the
 * file `calls` of the folder. A stop or removal of the sandbox `stuck` fails. The program ends after a minute, so that a failed test leaves
 * no process.
 */
export const writeFakeContainerd = (folder: string, sandboxes: readonly string[] = []): string =>
  writeProgram(
    folder,
    'containerd',
    `
const { Server, ServerCredentials } = require(${JSON.stringify(resolve('@grpc/grpc-js'))});
const { loadSync } = require(${JSON.stringify(resolve('@grpc/proto-loader'))});
const { appendFileSync, readFileSync } = require('node:fs');
setTimeout(() => process.exit(1), 60_000);
const config = readFileSync(process.argv[process.argv.indexOf('--config') + 1], 'utf8');
const end = (method) => ({ request: { podSandboxId: id } }, done) => {
  appendFileSync(${JSON.stringify(join(folder, 'calls'))}, method + ' ' + id + '\\n');
  if (id === 'stuck') done({ code: 2, details: 'stuck' });
  else done(null, {});
};
const server = new Server();
server.addService(loadSync(${JSON.stringify(protos)})['runtime.v1.RuntimeService'], {
  Status: (_, done) => done(null, {}),
  Version: (_, done) => done(null, { runtimeVersion: 'v9' }),
  ListPodSandbox: (_, done) => done(null, { items: ${JSON.stringify(sandboxes.map((id) => ({ id })))} }),
  StopPodSandbox: end('stop'),
  RemovePodSandbox: end('remove'),
});
const socket = /address = "(.*)"/.exec(config)[1];
server.bindAsync('unix://' + socket, ServerCredentials.createInsecure(), () => undefined);
`,
    process.execPath,
  );
