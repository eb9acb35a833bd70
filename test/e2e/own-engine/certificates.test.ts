import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { watch } from 'node:fs/promises';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { expect, test } from 'vitest';
import { runCommandOk } from '../../../src/platform/processes.ts';
import { KUBECTL } from '../../support/kubectl.ts';
import { REPOSITORY } from '../../support/lifepod.ts';
import { lifepod, useOwnEngine } from '../../support/own-engine.ts';

/** Certificates are renewed 14 to 18 seconds after their creation. */
useOwnEngine({ options: ['--cluster-signing-duration', '20s'] });

interface Kubeconfig {
  clusters: { cluster: { server: string; 'certificate-authority-data': string } }[];
  users: { user: Record<string, string> }[];
}
const kubeconfig = (): Kubeconfig => JSON.parse(readFileSync(lifepod.kubeconfig, 'utf8'));

async function servedCertificate(): Promise<string> {
  const [{ cluster }] = kubeconfig().clusters as [Kubeconfig['clusters'][0]];
  const { hostname, port } = new URL(cluster.server);
  const ca = Buffer.from(cluster['certificate-authority-data'], 'base64');
  const socket = connect({ host: hostname, port: Number(port), ca });
  await once(socket, 'secureConnect');
  const { fingerprint256 } = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
}

/** The certificates are renewed at different times. */
async function renewedCertificates(...names: string[]): Promise<void> {
  const log = join(lifepod.dataDir, 'lifepod.log');
  const { length } = readFileSync(log, 'utf8');
  const isRenewed = (name: string): boolean =>
    readFileSync(log, 'utf8')
      .slice(length)
      .split('\n')
      .some((line) => line.includes('renewed a certificate') && line.includes(`"${name}"`));
  for await (const _ of watch(log, { signal: AbortSignal.timeout(60_000) })) if (names.every(isRenewed)) return;
}

test('a watch stays open while the certificates of the server and of the kubeconfig are renewed', async () => {
  const before = { file: readFileSync(lifepod.kubeconfig, 'utf8'), served: await servedCertificate() };
  const changed = renewedCertificates('apiserver', 'admin');
  const seen = lifepod.until(['get', 'configmaps', '-w', '-o', 'name'], (line) => line === 'configmap/after');
  await asUser();
  await asNode();
  await changed;
  expect(await servedCertificate()).not.toBe(before.served);
  expect(kubeconfig().users).not.toEqual((JSON.parse(before.file) as Kubeconfig).users);
  await lifepod.kubectlOk('create', 'configmap', 'after');
  expect(await seen).toContain('configmap/after');
  const [headings, ca, server] = (await lifepod.cliOk('certs', 'check')).split('\n');
  expect(headings).toBe('CERTIFICATE  EXPIRES               RESIDUAL TIME  RENEWAL DUE');
  expect(ca).toMatch(/^ca .* 9y /);
  expect(server).toMatch(/^apiserver .* \d+s /);
  expect(await lifepod.cliOk('status')).toContain('unhealthy none');
});

/** Runs the commands with which users request a certificate in the README, with the names of the tested engine. */
async function asUser(): Promise<void> {
  const readme = readFileSync(join(REPOSITORY, 'README.md'), 'utf8');
  const block = [...readme.matchAll(/^```sh\n(.*?)^```$/gms)].find(([text]) =>
    text.includes('kubectl certificate'),
  )?.[1];
  const [{ cluster }] = kubeconfig().clusters as [Kubeconfig['clusters'][0]];
  const script = (block ?? '')
    .replaceAll('https://127.0.0.1:6443', cluster.server)
    .replaceAll('kubectl ', `${KUBECTL} `);
  const env = { ...process.env, KUBECONFIG: lifepod.kubeconfig, HOME: lifepod.dataDir };
  const folder = join(lifepod.dataDir, 'user');
  const output = await runCommandOk('bash', ['-e', '-c', `mkdir ${folder}; cd ${folder}\n${script}`], { env });
  expect(output).toContain('certificatesigningrequest.certificates.k8s.io/jane approved');
  expect(output).toMatch(/^Username +jane$/m);
  expect(output).toMatch(/^Groups +\[developers system:authenticated\]$/m);
  const columns = (await lifepod.kubectlOk('get', 'csr', 'jane')).split('\n')[1]?.split(/ +/).filter(Boolean);
  expect(columns?.slice(2)).toEqual([
    'kubernetes.io/kube-apiserver-client',
    'kubernetes-admin',
    '24h',
    'Approved,Issued',
  ]);
}

/** Resolves to the path of the kubeconfig with the issued certificate. */
async function nodeCertificate(name: string, credentials: string[]): Promise<string> {
  const file = (suffix: string): string => join(lifepod.dataDir, `${name}.${suffix}`);
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', file('key')];
  await runCommandOk('openssl', [
    'req',
    '-new',
    ...key,
    '-subj',
    '/O=system:nodes/CN=system:node:n2',
    '-out',
    file('csr'),
  ]);
  const spec = {
    request: readFileSync(file('csr')).toString('base64'),
    signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
    usages: ['digital signature', 'client auth'],
  };
  const request = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest', metadata: { name }, spec };
  const created = await lifepod.kubectlInput(JSON.stringify(request), ...credentials, 'create', '-f', '-');
  expect(created.stderr).toBe('');
  await lifepod.wait('--for=jsonpath={.status.certificate}', `csr/${name}`);
  const { status } = await lifepod.get<{ status: { certificate: string } }>('csr', name);
  const user = {
    'client-certificate-data': status.certificate,
    'client-key-data': readFileSync(file('key')).toString('base64'),
  };
  const { clusters } = kubeconfig();
  const contexts = [{ name: 'c', context: { cluster: 'lifepod', user: 'node' } }];
  const config = { apiVersion: 'v1', kind: 'Config', clusters, contexts, 'current-context': 'c' };
  writeFileSync(file('kubeconfig'), JSON.stringify({ ...config, users: [{ name: 'node', user }] }));
  return file('kubeconfig');
}

/** Requests the first certificate of a node with a bootstrap token, and renews the certificate with the certificate itself. */
async function asNode(): Promise<void> {
  const bind = (name: string, role: string, group: string): Promise<string> =>
    lifepod.kubectlOk('create', 'clusterrolebinding', name, `--clusterrole=${role}`, `--group=${group}`);
  const right = 'system:certificates.k8s.io:certificatesigningrequests';
  await Promise.all([
    bind('bootstrap', 'system:node-bootstrapper', 'system:bootstrappers'),
    bind('approve', `${right}:nodeclient`, 'system:bootstrappers'),
    bind('renew', `${right}:selfnodeclient`, 'system:nodes'),
    lifepod.apply({
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'bootstrap.kubernetes.io/token',
      metadata: { name: 'bootstrap-token-abcdef', namespace: 'kube-system' },
      stringData: {
        'token-id': 'abcdef',
        'token-secret': '0123456789abcdef',
        'usage-bootstrap-authentication': 'true',
      },
    }),
  ]);
  const { clusters } = kubeconfig();
  const contexts = [{ name: 'c', context: { cluster: 'lifepod', user: 'u' } }];
  const file = join(lifepod.dataDir, 'bootstrap.kubeconfig');
  const config = { apiVersion: 'v1', kind: 'Config', clusters, contexts, 'current-context': 'c', users: [] };
  writeFileSync(file, JSON.stringify(config));
  const first = await nodeCertificate('first', ['--kubeconfig', file, '--token=abcdef.0123456789abcdef']);
  expect(await lifepod.kubectlOk('--kubeconfig', first, 'auth', 'whoami')).toMatch(/^Username +system:node:n2$/m);
  const second = await nodeCertificate('second', ['--kubeconfig', first]);
  expect(await lifepod.kubectlOk('--kubeconfig', second, 'auth', 'whoami')).toMatch(/^Groups +\[system:nodes /m);
  const messages = await Promise.all(
    ['first', 'second'].map((name) =>
      lifepod.kubectlOk('get', 'csr', name, '-o', 'jsonpath={.spec.username} {.status.conditions[*].message}'),
    ),
  );
  expect(messages).toEqual([
    'system:bootstrap:abcdef Auto approving kubelet client certificate after SubjectAccessReview.',
    'system:node:n2 Auto approving self kubelet client certificate after SubjectAccessReview.',
  ]);
}
