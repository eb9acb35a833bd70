/**
 * The process under measurement: the API server of a checkout as an engine composes it, without scheduler, controllers and node agent. It
 * also serves constant answers over HTTPS, which are the floor for the figures of this process.
 *
 * node server.ts serve CHECKOUT DATA_DIR: sends { port, constantPort } to the parent process. Ends when the parent disconnects.
 * node server.ts copy CHECKOUT DATA_DIR COUNT: adds COUNT copies of the Pod TEMPLATE to the store of a server that has ended.
 */
import { existsSync, mkdirSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Pki } from '../../src/apiserver/pki/pki.ts';
import type { OpenRegistry } from '../../src/engine/engine-api.ts';
import type { Platform } from '../../src/platform/platform.ts';
import { TEMPLATE } from './objects.ts';

const [mode, checkout = '', dataDir = '', count = '0'] = process.argv.slice(2);
const COPIES_AT_ONCE = 500;
const ADDRESSES = { podCidr: '10.213.0.0/16', serviceCidr: '10.214.0.0/16' };

const importOf = <T>(path: string): Promise<T> => import(join(checkout, 'src', path)) as Promise<T>;

async function serve(): Promise<void> {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const [{ openRegistry, serveApi }, { resolveSettings }, { createEngineMetrics }, { lateNode }, { nodePlatform }] =
    await Promise.all([
      importOf<typeof import('../../src/engine/engine-api.ts')>('engine/engine-api.ts'),
      importOf<typeof import('../../src/engine/settings.ts')>('engine/settings.ts'),
      importOf<typeof import('../../src/engine/engine-metrics.ts')>('engine/engine-metrics.ts'),
      importOf<typeof import('../../src/engine/node-placeholder.ts')>('engine/node-placeholder.ts'),
      importOf<typeof import('../../src/platform/node-js.ts')>('platform/node-js.ts'),
    ]);
  const closers = new AsyncDisposableStack();
  const settings = resolveSettings({ dataDir, port: 0, ...ADDRESSES }, undefined);
  const platform = nodePlatform('warn');
  const metrics = createEngineMetrics(new AbortController().signal);
  const progress = { formerKeys: undefined, writing: () => undefined };
  const opened = await openRegistry(settings, platform, closers, metrics.all, progress);
  await connectRbac(opened, platform);
  const port = await serveApi(settings, platform, closers, { ...opened, nodes: lateNode().connection, metrics });
  const constantPort = await serveConstants(opened.pki);
  process.on('disconnect', () => void closers.disposeAsync().finally(() => process.exit()));
  process.send?.({ port, constantPort });
}

async function connectRbac(opened: OpenRegistry, platform: Platform): Promise<void> {
  if (!existsSync(join(checkout, 'src/engine/authorization/rbac-objects.ts'))) return;
  const [{ createRbac }, { followRbac }, { createSharedInformers }, { clientFor }] = await Promise.all([
    importOf<typeof import('../../src/apiserver/auth/authorization/rbac.ts')>('apiserver/auth/authorization/rbac.ts'),
    importOf<typeof import('../../src/engine/authorization/rbac-objects.ts')>('engine/authorization/rbac-objects.ts'),
    importOf<typeof import('../../src/client/shared-informers.ts')>('client/shared-informers.ts'),
    importOf<typeof import('../../src/engine/users.ts')>('engine/users.ts'),
  ]);
  const client = clientFor(opened.registry, { name: 'system:apiserver', groups: ['system:masters'] });
  const informers = createSharedInformers({ client, ...platform });
  const rbac = createRbac(followRbac({ informers, signal: new AbortController().signal }));
  // Older checkouts have one authorizer for clients and components.
  opened.authorization.connect({ ...rbac, clients: rbac, components: rbac });
}

/**
 * Starts a server of constant answers, and resolves with its port. It answers each GET with the body of the last POST, and each POST with
 * its own body, without parsing them. It sends the body of each PATCH, followed by that of the last POST, to all watches.
 */
async function serveConstants({ serving, caCertificate }: Pki): Promise<number> {
  let constant = Buffer.alloc(0);
  const watches = new Set<ServerResponse>();
  const tls = {
    cert: serving.certificate,
    key: serving.key,
    ca: caCertificate,
    requestCert: true,
    keepAliveTimeout: 0,
  };
  const server = createServer(tls, (request, response) => {
    if (request.url?.endsWith('watch=1')) {
      response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
      watches.add(response.on('close', () => watches.delete(response)));
      return;
    }
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      if (request.method === 'POST') constant = Buffer.concat(pieces);
      const event = request.method === 'PATCH' ? Buffer.concat([...pieces, constant]) : undefined;
      if (event !== undefined) for (const watch of watches) watch.write(event);
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': constant.length });
      response.end(constant);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

async function copy(): Promise<void> {
  const { openLmdbStore } =
    await importOf<typeof import('../../src/store/lmdb/lmdb-store.ts')>('store/lmdb/lmdb-store.ts');
  const store = await openLmdbStore({ directory: join(dataDir, 'store') });
  const { items } = await store.range({ prefix: '' });
  const template = items.find(({ key }) => key.endsWith(`/${TEMPLATE}`));
  if (template === undefined) throw new Error(`the store has no Pod ${TEMPLATE}`);
  const pod = JSON.parse(Buffer.from(template.value).toString());
  const put = (index: number) => {
    const name = `copy-${index}`;
    const uid = `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`;
    const value = Buffer.from(JSON.stringify({ ...pod, metadata: { ...pod.metadata, name, uid } }));
    return { key: template.key.replace(TEMPLATE, name), value };
  };
  for (let at = 0; at < Number(count); at += COPIES_AT_ONCE) {
    const puts = Array.from({ length: Math.min(COPIES_AT_ONCE, Number(count) - at) }, (_, i) => put(at + i));
    await store.txn({ compare: [], puts });
  }
  await store.close();
}

await (mode === 'copy' ? copy() : serve());
