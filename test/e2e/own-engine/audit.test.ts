/** Uses the policy of example 07-audit-log. */
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freeNetwork, launch, REPOSITORY } from '../../support/lifepod.ts';
import { pod } from '../../support/manifests.ts';
import { lifepod, useOwnEngine } from '../../support/own-engine.ts';

const folder = mkdtempSync(join(tmpdir(), 'lifepod-audit-'));
const LOG = join(folder, 'audit.log');
const POLICY = join(REPOSITORY, 'examples/07-audit-log/policy.yaml');
const OPTIONS = ['--audit-policy-file', POLICY, '--audit-log-path', LOG, '--audit-log-maxsize', '1'];

interface Event {
  [field: string]: unknown;
  stage: string;
  verb: string;
  requestURI: string;
  user: { username?: string };
  objectRef?: { resource?: string; name?: string; subresource?: string };
  responseStatus?: { code?: number };
}

const textOf = (name: string): string => readFileSync(join(folder, name), 'utf8');
const logs = (): string[] => readdirSync(folder).filter((name) => name.startsWith('audit'));
const text = (): string => logs().sort().map(textOf).join('');
const events = (): Event[] =>
  text()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
const eventsOf = (resource: string, name: string): Event[] =>
  events().filter(
    ({ objectRef, user }) =>
      objectRef?.resource === resource && objectRef.name === name && user.username === 'kubernetes-admin',
  );
const shown = ({ verb, objectRef, stage, responseStatus }: Event): string =>
  `${verb}${objectRef?.subresource === undefined ? '' : ` ${objectRef.subresource}`} ${stage} ${responseStatus?.code}`;

useOwnEngine({ options: OPTIONS });
afterAll(() => rmSync(folder, { recursive: true }));

beforeAll(async () => {
  const first = pod('first', { app: [{ name: 'app', script: 'echo hello; sleep 3600' }] });
  expect((await lifepod.kubectlInput(JSON.stringify(first), 'create', '-f', '-')).code).toBe(0);
  await lifepod.kubectlOk('wait', '--for=condition=Ready', 'pod/first', '--timeout=60s');
});

test('the life of a Pod is recorded: requests with objects, commands, logs, watches, patches and the delete', async () => {
  await lifepod.kubectlOk('annotate', 'pod', 'first', 'a=b');
  await lifepod.kubectlOk('exec', 'first', '--', 'echo', 'in the container');
  expect(await lifepod.kubectlOk('logs', 'first')).toBe('hello\n');
  await lifepod.kubectlOk('get', 'pod', 'first');
  await lifepod.kubectlOk('delete', 'pod', 'first', '--grace-period=1');
  const found = eventsOf('pods', 'first');
  const lines = found.map(shown);
  for (const line of [
    'create ResponseComplete 201',
    'patch ResponseComplete 200',
    'get exec ResponseStarted 101',
    'get exec ResponseComplete 101',
    'get log ResponseStarted 200',
    'get log ResponseComplete 200',
    'get ResponseComplete 200',
    'delete ResponseComplete 200',
    'watch ResponseStarted 200',
    'watch ResponseComplete 200',
  ])
    expect(lines).toContain(line);
  const [create] = found;
  expect(create).toMatchObject({
    level: 'RequestResponse',
    user: { username: 'kubernetes-admin', groups: ['system:masters', 'system:authenticated'] },
    sourceIPs: ['127.0.0.1'],
    requestObject: { kind: 'Pod', metadata: { name: 'first' } },
    responseObject: { kind: 'Pod', spec: { restartPolicy: 'Always' } },
    annotations: {
      'authorization.k8s.io/decision': 'allow',
      'pod-security.kubernetes.io/enforce-policy': 'privileged:latest',
    },
  });
  expect(JSON.stringify(found)).not.toContain('managedFields');
  expect(found.find(({ verb }) => verb === 'patch')).toMatchObject({
    requestObject: { metadata: { annotations: { a: 'b' } } },
  });
  const exec = found.find(({ objectRef }) => objectRef?.subresource === 'exec');
  expect(exec?.requestURI).toContain('command=echo&command=in+the+container');
});

test('the content of a Secret is in no line', async () => {
  await lifepod.kubectlOk('create', 'secret', 'generic', 'password', '--from-literal=key=hidden-content');
  await lifepod.kubectlOk('get', 'secret', 'password', '-o', 'yaml');
  const encoded = Buffer.from('hidden-content').toString('base64');
  expect(eventsOf('secrets', 'password').map(shown)).toEqual([
    'create ResponseComplete 201',
    'get ResponseComplete 200',
  ]);
  expect(text()).not.toMatch(new RegExp(`hidden-content|${encoded}`));
});

test('impersonated users, refused requests and failed authentications are recorded', async () => {
  const refused = await lifepod.kubectl('get', 'secrets', '--as=jane', '--as-group=team');
  expect(refused.stderr).toContain('Forbidden');
  const { server } = JSON.parse(readFileSync(lifepod.kubeconfig, 'utf8')).clusters[0].cluster;
  const headers = { authorization: 'Bearer wrong' };
  const sent = request(`${server}/api/v1/nodes`, { rejectUnauthorized: false, agent: false, headers }).end();
  const [response] = await once(sent, 'response');
  response.resume();
  await once(response, 'end');
  expect(events().find((event) => 'impersonatedUser' in event)).toMatchObject({
    user: { username: 'kubernetes-admin' },
    impersonatedUser: { username: 'jane', groups: ['team', 'system:authenticated'] },
    verb: 'list',
    responseStatus: { reason: 'Forbidden', code: 403 },
    annotations: { 'authorization.k8s.io/decision': 'forbid' },
  });
  expect(events().find(({ responseStatus }) => responseStatus?.code === 401)).toMatchObject({
    stage: 'ResponseStarted',
    user: {},
    requestURI: '/api/v1/nodes',
    responseStatus: { message: 'Authentication failed, attempted: bearer' },
  });
});

test('the writes of components are recorded with their users, and their reads are not', () => {
  const components = events().filter(({ user }) => user.username?.startsWith('system:'));
  const users = new Set(components.map(({ user }) => user.username));
  expect([...users]).toEqual(expect.arrayContaining(['system:kube-scheduler', 'system:node:node-1']));
  expect(components.filter(({ verb }) => ['get', 'list', 'watch'].includes(verb))).toEqual([]);
  expect(components.find(({ objectRef }) => objectRef?.subresource === 'binding')).toMatchObject({
    user: { username: 'system:kube-scheduler' },
    requestURI: '/api/v1/namespaces/default/pods/first/binding',
    responseStatus: { code: 201 },
  });
});

test('the metrics count the events', async () => {
  const metrics = await lifepod.kubectlOk('get', '--raw', '/metrics');
  expect(Number(/^apiserver_audit_event_total (\d+)$/m.exec(metrics)?.[1])).toBeGreaterThan(10);
  expect(metrics).toMatch(/^apiserver_audit_level_total\{level="Metadata"\} \d+$/m);
  expect(metrics).toMatch(/^apiserver_audit_requests_rejected_total 0$/m);
});

test('a log that has reached its size is rotated, and every file has whole lines only', async () => {
  const large = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'large', annotations: { text: 'x'.repeat(200_000) } },
  };
  const manifest = { ...pod('large'), metadata: large.metadata };
  for (let count = 0; count < 4; count++) {
    const result = await lifepod.kubectlInput(JSON.stringify(manifest), 'create', '--dry-run=server', '-f', '-');
    expect(result.code).toBe(0);
  }
  expect(logs().length).toBeGreaterThan(1);
  for (const name of logs()) {
    expect(name).toMatch(/^audit(-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3})?\.log$/);
    expect(statSync(join(folder, name)).size).toBeLessThanOrEqual(1024 * 1024);
    expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
    expect(textOf(name)).toMatch(/\n$/);
  }
  expect(events().length).toBeGreaterThan(10);
});

test('a response that a client has got has its event, although the engine is killed at once, and the log continues', async () => {
  await lifepod.kubectlOk('create', 'namespace', 'before-the-kill');
  await lifepod.kill('SIGKILL');
  expect(eventsOf('namespaces', 'before-the-kill').map(shown)).toContain('create ResponseComplete 201');
  await lifepod.up();
  await lifepod.kubectlOk('create', 'namespace', 'after-the-kill');
  expect(eventsOf('namespaces', 'after-the-kill').map(shown)).toContain('create ResponseComplete 201');
  expect(eventsOf('namespaces', 'before-the-kill')).not.toEqual([]);
});

test('an engine does not start with a wrong policy, and says what is wrong and where', async () => {
  const policy = join(folder, 'wrong.yaml');
  writeFileSync(policy, 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n- level: Everything\n');
  const dataDir = join(folder, 'data');
  const options = ['--audit-policy-file', policy, '--audit-log-path', '-', ...(await freeNetwork())];
  const result = await launch(['up', '--data-dir', dataDir, '--node-name', 'node-1', ...options]);
  expect(result.code).toBe(1);
  expect(result.stderr).toContain(
    `--audit-policy-file ${policy} cannot be used: rules[1].level: Unsupported value: "Everything": supported values: "None", "Metadata", "Request", "RequestResponse"`,
  );
  expect(existsSync(dataDir)).toBe(false);
});
