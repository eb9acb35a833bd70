/** Starts Debian's docker-registry on loopback, over plain HTTP, with or without a password. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer, request } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { PassThrough, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { runCommandOk } from '../../src/platform/processes.ts';

export const REGISTRY_USER = 'puller';
export const REGISTRY_PASSWORD = 'correct-horse-battery';
const PASSWORD_HASH = '$2y$04$abcdefghijklmnopqrstuupOWRSKKNe562z1DsLEArFuJDHVyRIMa';

export interface Registry {
  /** Host and port as in image references, such as 127.0.0.1:5000. */
  host: string;
  /** Pushes the image in an archive of `docker save`, and resolves with its digest (sha256:…). */
  push(archive: string, repositoryAndTag: string): Promise<string>;
  stop(): Promise<void>;
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' ? (address?.port ?? 0) : 0));
    });
  });
}

/** Resolves when the registry listens. Its files are in `folder`, which the caller must remove. */
export async function startRegistry(folder: string, options: { password?: true } = {}): Promise<Registry> {
  mkdirSync(folder, { recursive: true });
  const [config, passwords] = [join(folder, 'registry.yml'), join(folder, 'htpasswd')];
  const host = `127.0.0.1:${await freePort()}`;
  if (options.password) writeFileSync(passwords, `${REGISTRY_USER}:${PASSWORD_HASH}\n`, { mode: 0o600 });
  const auth = options.password ? `auth:\n  htpasswd:\n    realm: test\n    path: ${passwords}\n` : '';
  writeFileSync(
    config,
    `version: 0.1
storage:
  filesystem:
    rootdirectory: ${join(folder, 'registry')}
http:
  addr: ${host}
${auth}`,
  );
  const child: ChildProcess = spawn('docker-registry', ['serve', config], { stdio: ['ignore', 'ignore', 'pipe'] });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  await new Promise<void>((resolve, reject) => {
    let text = '';
    child.stderr?.on('data', (chunk: Buffer) => {
      text = (text + chunk.toString()).slice(-10_000);
      if (text.includes('listening on')) resolve();
    });
    child.once('error', reject);
    child.once('exit', () => reject(new Error(`the registry ended: ${text}`)));
  });
  return {
    host,
    async push(archive, repositoryAndTag) {
      await runCommandOk('skopeo', [
        '--insecure-policy',
        'copy',
        '--quiet',
        '--dest-tls-verify=false',
        ...(options.password ? ['--dest-creds', `${REGISTRY_USER}:${REGISTRY_PASSWORD}`] : []),
        `docker-archive:${archive}`,
        `docker://${host}/${repositoryAndTag}`,
      ]);
      return (
        await runCommandOk('skopeo', [
          'inspect',
          '--format',
          '{{.Digest}}',
          '--tls-verify=false',
          ...(options.password ? ['--creds', `${REGISTRY_USER}:${REGISTRY_PASSWORD}`] : []),
          `docker://${host}/${repositoryAndTag}`,
        ])
      ).trim();
    },
    stop: () => {
      child.kill('SIGTERM');
      return exited;
    },
  };
}

/** Starts a proxy for the registry. Until open() is called, it delivers only the first half of each layer that is larger than 1 MiB. */
export async function startHalfwayGate(
  registry: string,
): Promise<{ host: string; open(): void; stop(): Promise<void> }> {
  const opened = Promise.withResolvers<void>();
  const server = createHttpServer((asked, answer) => {
    const forwarded = request(`http://${registry}${asked.url}`, { method: asked.method, headers: asked.headers });
    asked.pipe(forwarded);
    forwarded.once('response', (response) => {
      answer.writeHead(response.statusCode ?? 500, response.headers);
      const bytes = Number(response.headers['content-length'] ?? 0);
      const gate = bytes > 2 ** 20 ? halves(bytes, opened.promise) : new PassThrough();
      void pipeline(response, gate, answer).catch(() => answer.destroy());
    });
    forwarded.once('error', () => answer.destroy());
  });
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return {
    host: `127.0.0.1:${port}`,
    open: opened.resolve,
    stop: () => {
      opened.resolve();
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

function halves(bytes: number, opened: Promise<void>): Transform {
  let passed = 0;
  return new Transform({
    transform(chunk: Buffer, _, done) {
      passed += chunk.length;
      if (passed <= bytes / 2) done(null, chunk);
      else void opened.then(() => done(null, chunk));
    },
  });
}
