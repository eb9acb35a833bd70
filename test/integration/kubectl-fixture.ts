/** Starts an API server with a memory store and without a node, and runs the real kubectl as its client. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect } from 'vitest';
import { createCatalog } from '../../src/api/catalog.ts';
import { kinds } from '../../src/api/kinds.ts';
import { writeKubeconfig } from '../../src/apiserver/pki/kubeconfig.ts';
import { copiedPki } from '../../src/apiserver/pki/pki-fixture.ts';
import { createTokenIssuer } from '../../src/apiserver/pki/tokens.ts';
import { bootstrap } from '../../src/apiserver/registry/bootstrap.ts';
import { createRegistry } from '../../src/apiserver/registry/registry.ts';
import { type ApiServer, startApiServer } from '../../src/apiserver/server.ts';
import { noNodes } from '../../src/apiserver/server-fixture.ts';
import { createLog, systemTimers } from '../../src/platform/node-js.ts';
import { apiFor } from '../../src/ports/api-for.ts';
import type { ResourceApi } from '../../src/ports/backend.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import { FEW_COLLECTIONS, KUBECTL } from '../support/kubectl.ts';

const SERVICE_CIDR = '10.99.0.0/24';

export interface Result {
  code: number;
  out: string;
  err: string;
}

export interface RunOptions {
  input?: string;
  env?: Record<string, string>;
}

export interface KubectlFixture {
  /** A folder for files of the test. close() removes it. */
  folder: string;
  registry: ResourceApi;
  server: ApiServer;
  kubectl(args: string[], options?: RunOptions): Promise<Result>;
  /** Rejects if kubectl fails. */
  ok(...args: string[]): Promise<string>;
  /** Expects kubectl to fail, and resolves with its error output. */
  refused(args: string[], input?: string): Promise<string>;
  // biome-ignore lint/suspicious/noExplicitAny: the kind of the object depends on the arguments
  get(...args: string[]): Promise<any>;
  apply(manifest: object, ...args: string[]): Promise<string>;
  /** The kubectl keeps running until close() ends it. */
  start(...args: string[]): ChildProcess;
  /** Like start(), but returns the lines of the output. */
  follow(...args: string[]): AsyncIterator<string>;
  close(): Promise<void>;
}

export async function startKubectlFixture(program = KUBECTL): Promise<KubectlFixture> {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-kubectl-'));
  mkdirSync(join(folder, 'home'));
  const timers = systemTimers();
  const log = createLog({ level: 'warn' });
  const pki = await copiedPki(folder);
  const issuer = createTokenIssuer(pki, 'https://kubernetes.default.svc.cluster.local', () => timers.now());
  const catalog = createCatalog(kinds);
  const backend = await createRegistry({
    store: createMemoryStore(),
    catalog,
    timers,
    log,
    serviceCidr: SERVICE_CIDR,
    issueToken: issuer.issue,
  });
  const nodes = {
    ...noNodes,
    async *logs(_pod: unknown, container: string) {
      yield Buffer.from(`log of ${container}\n`);
    },
  };
  const server = await startApiServer({
    backend,
    catalog,
    nodes,
    pki,
    port: 0,
    version: 'v1.33.0',
    timers,
    log,
  });
  const registry = apiFor(backend, { name: 'tester', groups: ['system:masters'] });
  await bootstrap(registry, { serviceCidr: SERVICE_CIDR, apiServerPort: server.port });
  writeKubeconfig(join(folder, 'kubeconfig'), { server: `https://127.0.0.1:${server.port}`, pki });
  const running = new Set<ChildProcess>();
  const fixture: KubectlFixture = {
    folder,
    registry,
    server,
    ...callers(program, folder, running),
    async close() {
      for (const child of running) child.kill('SIGKILL');
      await server.close();
      backend.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  await fixture.ok('create', 'serviceaccount', 'default');
  return fixture;
}

function callers(program: string, folder: string, running: Set<ChildProcess>) {
  const environment = (extra: Record<string, string> = {}): NodeJS.ProcessEnv => ({
    ...FEW_COLLECTIONS,
    PATH: process.env['PATH'],
    HOME: join(folder, 'home'),
    TMPDIR: folder,
    KUBECONFIG: join(folder, 'kubeconfig'),
    ...extra,
  });
  const kubectl = (args: string[], options: RunOptions = {}): Promise<Result> =>
    new Promise((resolve) => {
      const child = execFile(
        program,
        args,
        { env: environment(options.env), timeout: 60_000, maxBuffer: 64 * 1024 * 1024 },
        (error, out, err) => resolve({ code: error === null ? 0 : Number(error.code ?? 255), out, err }),
      );
      child.stdin?.end(options.input ?? '');
    });
  const ok = async (...args: string[]): Promise<string> => {
    const { code, out, err } = await kubectl(args);
    if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${err}`);
    return out;
  };
  const refused = async (args: string[], input?: string): Promise<string> => {
    const { code, err } = await kubectl(args, { input });
    expect(code, args.join(' ')).not.toBe(0);
    return err;
  };
  const apply = async (manifest: object, ...args: string[]): Promise<string> => {
    const { code, out, err } = await kubectl(['apply', ...args, '-f', '-'], { input: JSON.stringify(manifest) });
    if (code !== 0) throw new Error(err);
    return out;
  };
  const start = (...args: string[]): ChildProcess => {
    const child = spawn(program, args, { env: environment(), stdio: ['ignore', 'pipe', 'inherit'] });
    running.add(child);
    return child;
  };
  const follow = (...args: string[]): AsyncIterator<string> => {
    const { stdout } = start(...args);
    if (stdout === null) throw new Error('kubectl has no output');
    return createInterface(stdout)[Symbol.asyncIterator]();
  };
  return {
    kubectl,
    ok,
    refused,
    get: async (...args: string[]) => JSON.parse(await ok('get', '-o', 'json', ...args)),
    apply,
    start,
    follow,
  };
}
