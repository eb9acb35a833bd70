import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Lifepod, launch, startLifepod } from '../../support/lifepod.ts';
import { pod, WAIT } from '../../support/manifests.ts';

const succeeded = ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }): string => {
  expect(stderr).toBe('');
  expect(code).toBe(0);
  return stdout;
};

let lifepod: Lifepod;
beforeAll(async () => {
  lifepod = await startLifepod({ options: ['--log-level', 'debug'] });
});
afterAll(() => lifepod?.stop());

test('the API, the Node, the metrics, the log and the commands report one version', async () => {
  const { gitVersion, gitCommit = '' } = JSON.parse(succeeded(await launch(['version', '-o', 'json'])));
  const version = JSON.parse(await lifepod.kubectlOk('get', '--raw', '/version'));
  expect(version).toMatchObject({ gitVersion, gitCommit });
  const node = await lifepod.get<{ status: { nodeInfo: { kubeletVersion: string } } }>('node', 'node-1');
  expect(node.status.nodeInfo.kubeletVersion).toBe(gitVersion);
  const info = new RegExp(
    `^kubernetes_build_info\\{.*git_version="${gitVersion.replaceAll(/[.+]/g, '\\$&')}".*\\} 1$`,
    'm',
  );
  for (const path of ['/metrics', '/api/v1/nodes/node-1/proxy/metrics'])
    expect(await lifepod.kubectlOk('get', '--raw', path)).toMatch(info);
  const [first = ''] = readFileSync(join(lifepod.dataDir, 'lifepod.log'), 'utf8').split('\n');
  expect(JSON.parse(first)).toMatchObject({ msg: 'lifepod starts', version: gitVersion });
  expect(await lifepod.cliOk('status')).toContain(gitVersion);
});

test('each line of the log is one JSON object without repeated keys, and the end of a namespace is no warning', async () => {
  const { spec } = pod('web', {
    app: [{ name: 'app', script: WAIT }],
    spec: { terminationGracePeriodSeconds: 1 },
  });
  const labels = { app: 'web' };
  await lifepod.kubectlOk('create', 'namespace', 'gone');
  await lifepod.apply(
    [
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'web', namespace: 'gone' },
        spec: { selector: labels, ports: [{ port: 80 }] },
      },
      {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'web', namespace: 'gone' },
        spec: { replicas: 2, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
      },
      // The image of this Pod cannot be pulled, so actions fail.
      {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'unpulled', namespace: 'gone' },
        spec: { containers: [{ name: 'app', image: '127.0.0.1:1/missing:1' }] },
      },
    ]
      .map((object) => JSON.stringify(object))
      .join('\n---\n'),
  );
  await lifepod.kubectlOk('-n', 'gone', 'rollout', 'status', 'deployment/web', '--timeout=100s');
  const failed = (line: string): boolean => /ErrImagePull|ImagePullBackOff/.test(line);
  await lifepod.until(['-n', 'gone', 'get', 'pod', 'unpulled', '-w', '--no-headers'], failed);
  await lifepod.delete('namespace', 'gone');
  await lifepod.cliOk('down');
  const lines = readFileSync(join(lifepod.dataDir, 'lifepod.log'), 'utf8').trimEnd().split('\n');
  expect(lines.length).toBeGreaterThan(5);
  // JSON.parse() drops repeated keys, so a line with a repeated key would differ.
  for (const line of lines) expect(JSON.stringify(JSON.parse(line))).toBe(line);
  const warnings = lines.filter((line) => JSON.parse(line).level >= 40);
  expect(warnings.filter((line) => line.includes('being terminated'))).toEqual([]);
  const ofPod = warnings.map((line) => JSON.parse(line)).filter(({ pod: name }) => name === 'gone/unpulled');
  expect(ofPod.map(({ msg }) => msg)).toContain('action failed');
});
