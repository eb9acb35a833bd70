/**
 * Starts the API server of a checkout as a process of its own, with the Node.js options and the cache of compiled code of this checkout's
 * engine. Without the cache, a start would mostly measure how long Node.js takes to strip types.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createPrivateKey } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeLeaf } from '../../src/apiserver/pki/certificates.ts';
import { adminOf } from '../../test/support/raw-streams.ts';
import { cpuMillis, residentMebibytes } from '../engine.ts';
import { Connection, type Target } from './connection.ts';
import { PODS, pod, SERVICE_ACCOUNTS, serviceAccount, TEMPLATE } from './objects.ts';

const program = join(import.meta.dirname, 'server.ts');

export interface BenchServer {
  admin: Target;
  /** The server of constant answers in the same process (server.ts). */
  constants: Target;
  user(name: string): Promise<Target>;
  residentMebibytes(): Promise<number>;
  cpuMillis(): Promise<number>;
  stop(): Promise<void>;
}

async function spawnProgram(mode: string, checkout: string, ...rest: string[]): Promise<ChildProcess> {
  const launcher = await readFile(join(checkout, 'bin/lifepod'), 'utf8');
  // The engine sets the second option itself, if its launcher does not: see src/cli/up.ts.
  const options = [...(launcher.match(/--[a-z-]+=\d+/g) ?? []), '--heap-growing-percent=70'];
  return spawn(process.execPath, [...options, '--no-wasm-tier-up', program, mode, checkout, ...rest], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, MALLOC_ARENA_MAX: '1', NODE_COMPILE_CACHE: join(tmpdir(), 'lifepod-bench-compile') },
  });
}

export async function startServer(checkout: string, dataDir: string): Promise<BenchServer> {
  const child = await spawnProgram('serve', checkout, dataDir);
  const failed = once(child, 'exit').then(() => {
    throw new Error(`the server of ${checkout} ended`);
  });
  failed.catch(() => undefined);
  const [ports] = (await Promise.race([once(child, 'message'), failed])) as [{ port: number; constantPort: number }];
  const admin = adminOf(join(dataDir, 'kubeconfig'));
  return {
    admin,
    constants: { ...admin, port: ports.constantPort },
    user: (name) => userOf(admin, dataDir, name),
    residentMebibytes: () => residentMebibytes(child.pid ?? 0),
    cpuMillis: () => cpuMillis(child.pid ?? 0),
    async stop() {
      const ended = once(child, 'exit');
      child.disconnect();
      await ended;
    },
  };
}

async function userOf(admin: Target, dataDir: string, commonName: string): Promise<Target> {
  const key = createPrivateKey(await readFile(join(dataDir, 'pki/ca.key')));
  const authority = { certificate: admin.ca.toString(), key };
  const leaf = await makeLeaf(authority, { commonName, usage: 'client' }, Date.now());
  return { ...admin, cert: Buffer.from(leaf.certificate), key: Buffer.from(leaf.key) };
}

/** Also creates the Pod TEMPLATE and the ServiceAccount that Pods need. */
export async function startNewServer(checkout: string): Promise<BenchServer & { dataDir: string }> {
  const dataDir = await mkdtemp(join(tmpdir(), 'lifepod-bench-api-'));
  const server = await startServer(checkout, dataDir);
  const connection = await Connection.open(server.admin);
  await connection.send('POST', SERVICE_ACCOUNTS, serviceAccount());
  await connection.send('POST', PODS, pod(TEMPLATE));
  connection.close();
  return {
    ...server,
    dataDir,
    async stop() {
      await server.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** Creates a scratch folder with the data of a server that has `pods` Pods, which are written to the store directly. */
export async function newData(checkout: string, pods: number): Promise<string> {
  const dataDir = await mkdtemp(join(tmpdir(), 'lifepod-bench-api-'));
  const server = await startServer(checkout, dataDir);
  const connection = await Connection.open(server.admin);
  await connection.send('POST', SERVICE_ACCOUNTS, serviceAccount());
  await connection.send('POST', PODS, pod(TEMPLATE));
  connection.close();
  await server.stop();
  const [code] = await once(await spawnProgram('copy', checkout, dataDir, String(pods)), 'exit');
  if (code !== 0) throw new Error(`copying ${pods} Pods ended with ${code}`);
  return dataDir;
}
