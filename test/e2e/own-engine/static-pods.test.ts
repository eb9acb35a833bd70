import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import type { Node, Pod } from '../../../src/api/generated/types.ts';
import { launch } from '../../support/lifepod.ts';
import { pod, WAIT } from '../../support/manifests.ts';
import { lifepod, useOwnEngine } from '../../support/own-engine.ts';
import { untilLine } from '../../support/until-line.ts';

const MIRROR = 'kubernetes.io/config.mirror';

useOwnEngine();

const manifest = (file: string): string => join(lifepod.dataDir, 'manifests', file);
const write = (file: string, content: object): void => writeFileSync(manifest(file), stringify(content));
const says = (name: string, word: string): Record<string, unknown> =>
  pod(name, { app: [{ name: 'app', script: `echo ${word}; ${WAIT}` }], labels: { app: name } });
const get = (name: string): Promise<Pod> => lifepod.get<Pod>('pod', name);
const gone = (name: string): Promise<void> => lifepod.wait('--for=delete', `pod/${name}`);
/** The Pod may not exist yet. `not`: the UID of an earlier Pod of the same name. */
async function ready(name: string, not?: string): Promise<Pod> {
  const watch = ['get', 'pods', '-w', `--field-selector=metadata.name=${name}`, '-o', 'json', '--output-watch-events'];
  const lines = await lifepod.until(watch, (line) => {
    const { type, object } = JSON.parse(line) as { type: string; object: Pod };
    if (type === 'DELETED' || object.metadata.uid === not) return false;
    return object.status?.conditions?.some((each) => each.type === 'Ready' && each.status === 'True') ?? false;
  });
  return (JSON.parse(lines.at(-1) ?? '') as { object: Pod }).object;
}
const runningId = ({ status }: Pod): string => status?.containerStatuses?.[0]?.containerID ?? '';

test('only the owner can access the folder with the manifests of static Pods', () => {
  expect(statSync(join(lifepod.dataDir, 'manifests')).mode & 0o777).toBe(0o700);
});

test('the mirror of a running static Pod has the name of the node as suffix, and kubectl reads it like any Pod', async () => {
  write('web.yaml', says('web', 'first'));
  const { metadata, spec, status } = await ready('web-node-1');
  const node = await lifepod.get<Node>('node', 'node-1');
  expect(metadata).toMatchObject({
    namespace: 'default',
    labels: { app: 'web' },
    ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'node-1', uid: node.metadata.uid, controller: true }],
    annotations: {
      'kubernetes.io/config.source': 'file',
      'kubernetes.io/config.hash': expect.stringMatching(/^[0-9a-f]{32}$/),
      'kubernetes.io/config.seen': expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    },
  });
  expect(metadata.annotations?.[MIRROR]).toBe(metadata.annotations?.['kubernetes.io/config.hash']);
  expect(metadata.uid).not.toBe(metadata.annotations?.[MIRROR]);
  expect(spec).toMatchObject({ nodeName: 'node-1', tolerations: [{ operator: 'Exists', effect: 'NoExecute' }] });
  expect(spec?.volumes).toBeUndefined();
  expect(status).toMatchObject({ phase: 'Running', containerStatuses: [{ name: 'app', ready: true }] });

  expect(await lifepod.kubectlOk('get', 'pods')).toMatch(/^web-node-1 +1\/1 +Running +0 /m);
  expect(await lifepod.kubectlOk('logs', 'web-node-1')).toBe('first\n');
  const described = await lifepod.kubectlOk('describe', 'pod', 'web-node-1');
  expect(described).toMatch(/^Controlled By: +Node\/node-1$/m);
  await lifepod.until(['get', 'events', '-w', '-o', 'wide'], (line) => line.includes('Started container app'));
  expect(await lifepod.kubectlOk('describe', 'pod', 'web-node-1')).toMatch(/Normal +Started .* Started container app/);
  expect(await lifepod.execOk('web-node-1', '--', 'hostname')).toBe('web-node-1\n');
});

test('deleting the mirror of a static Pod does not stop its containers, and the mirror is created again', async () => {
  const before = await get('web-node-1');
  await lifepod.delete('pod', 'web-node-1', '--wait=false');
  const after = await ready('web-node-1', before.metadata.uid);
  expect(after.metadata.uid).not.toBe(before.metadata.uid);
  expect(runningId(after)).toBe(runningId(before));
  expect(after.status?.containerStatuses?.[0]?.restartCount).toBe(0);
  expect(after.status?.startTime).toBe(before.status?.startTime);
  expect(await lifepod.kubectlOk('logs', 'web-node-1')).toBe('first\n');
});

test('clients cannot create mirror Pods or change the annotation of a mirror Pod', async () => {
  const fake = { ...pod('fake'), metadata: { name: 'fake', annotations: { [MIRROR]: 'x' } } };
  const { code, stderr } = await lifepod.kubectlInput(JSON.stringify(fake), 'create', '-f', '-');
  expect(code).toBe(1);
  expect(stderr).toContain(
    `pods "fake" is forbidden: pod has "${MIRROR}" annotation, only nodes can create mirror pods`,
  );
  const annotated = await lifepod.kubectl('annotate', 'pod', 'web-node-1', '--overwrite', `${MIRROR}=x`);
  expect(annotated.stderr).toContain(`metadata.annotations[${MIRROR}]: Forbidden: may not remove or update mirror pod`);
});

test('after a change of its manifest, a static Pod ends gracefully before its successor starts', async () => {
  const trapped = 'trap "echo ending; touch /host/ended; exit 0" TERM; echo up; while :; do sleep 3600 & wait $!; done';
  const marks = join(lifepod.dataDir, 'marks');
  const hostPath = { volumes: [{ name: 'host', hostPath: { path: marks, type: 'DirectoryOrCreate' } }] };
  const mount = { volumeMounts: [{ name: 'host', mountPath: '/host' }] };
  write('slow.yaml', pod('slow', { app: [{ name: 'app', script: trapped, ...mount }], spec: hostPath }));
  const before = await ready('slow-node-1');
  // The script prints "after" only if the old Pod has already ended.
  const checks = `[ -e /host/ended ] && echo after; ${WAIT}`;
  const changed = pod('slow', { app: [{ name: 'app', script: checks, ...mount }], spec: hostPath });
  await lifepod.until(['logs', '-f', 'slow-node-1'], (line) => {
    if (line === 'up') write('slow.yaml', changed);
    return line === 'ending';
  });
  const after = await ready('slow-node-1', before.metadata.uid);
  expect(after.metadata.annotations?.[MIRROR]).not.toBe(before.metadata.annotations?.[MIRROR]);
  expect(await lifepod.kubectlOk('logs', 'slow-node-1')).toBe('after\n');
});

test('after the removal of its manifest, a static Pod ends gracefully, and its mirror is deleted', async () => {
  await lifepod.until(['get', 'pod', 'slow-node-1', '-w'], (line, lines) => {
    if (lines.length === 2) rmSync(manifest('slow.yaml'));
    return line.includes('Terminating');
  });
  await gone('slow-node-1');
});

test('an invalid manifest is logged and skipped, leaves its running static Pod unchanged, and is read when it is corrected', async () => {
  const before = await get('web-node-1');
  writeFileSync(manifest('web.yaml'), 'kind: Pod\napiVersion: v1\nmetadata: {name: [');
  write('secretive.yaml', pod('secretive', { spec: { volumes: [{ name: 's', secret: { secretName: 'x' } }] } }));
  write('later.yaml', { ...pod('later'), spec: {} });
  const engineLog = join(lifepod.dataDir, 'lifepod.log');
  await logNames(engineLog, ['web.yaml', 'secretive.yaml', 'later.yaml']);
  const log = readFileSync(engineLog, 'utf8');
  expect(log).toMatch(/secretive\.yaml.*static pods may not reference secrets.*manifest skipped/);
  expect(log).toMatch(/later\.yaml.*spec\.containers: Required value.*manifest skipped/);
  expect(log).toMatch(/web\.yaml.*couldn't parse as pod.*manifest skipped/);
  const status = await lifepod.cli('status');
  expect(status.code).toBe(2);
  for (const [file, reason] of [
    ['secretive.yaml', 'static pods may not reference secrets'],
    ['later.yaml', 'invalid pod: spec.containers: Required value'],
    ['web.yaml', "couldn't parse as pod: "],
  ])
    expect(status.stdout).toContain(
      `  static Pod not started or updated: ${join(lifepod.dataDir, 'manifests', file ?? '')}: ${reason}`,
    );

  write('later.yaml', says('later', 'mended'));
  await ready('later-node-1');
  expect(await lifepod.kubectlOk('logs', 'later-node-1')).toBe('mended\n');
  const still = await get('web-node-1');
  expect(still.metadata.uid).toBe(before.metadata.uid);
  expect(runningId(still)).toBe(runningId(before));
  write('web.yaml', says('web', 'first'));
  rmSync(manifest('later.yaml'));
  await gone('later-node-1');
  expect((await lifepod.kubectl('get', 'pod', 'secretive-node-1')).stderr).toContain('not found');
});

test('after kill -9 of the engine, the next one adopts a static Pod, or stops it gracefully if its manifest was removed', async () => {
  const polite = `trap "touch /host/polite; exit 0" TERM; while :; do sleep 3600 & wait $!; done`;
  const marks = join(lifepod.dataDir, 'marks');
  write(
    'left.yaml',
    pod('left', {
      app: [{ name: 'app', script: polite, volumeMounts: [{ name: 'host', mountPath: '/host' }] }],
      spec: { volumes: [{ name: 'host', hostPath: { path: marks } }] },
    }),
  );
  await ready('left-node-1');
  const before = await get('web-node-1');
  await lifepod.kill('SIGKILL');
  rmSync(manifest('left.yaml'));
  await lifepod.up();
  await gone('left-node-1');
  expect(statSync(join(marks, 'polite')).isFile()).toBe(true);
  const after = await get('web-node-1');
  expect(after.metadata.uid).toBe(before.metadata.uid);
  expect(runningId(after)).toBe(runningId(before));
  expect(after.status?.containerStatuses?.[0]?.restartCount).toBe(0);
  expect(after.status?.startTime).toBe(before.status?.startTime);
});

test('a restarted engine does not run a succeeded static Pod again', async () => {
  write('once.json', pod('once', { app: [{ name: 'app', script: 'true' }], spec: { restartPolicy: 'Never' } }));
  await lifepod.until(['get', 'pods', '-w'], (line) => /^once-node-1 +0\/1 +Completed/.test(line));
  const before = await get('once-node-1');
  await lifepod.kill('SIGKILL');
  await lifepod.up();
  // When a static Pod that is added later is ready, the new engine has also processed the existing ones.
  write('later.yaml', says('later', 'again'));
  await ready('later-node-1');
  const after = await get('once-node-1');
  expect(after.status?.phase).toBe('Succeeded');
  expect(after.status?.containerStatuses).toEqual(before.status?.containerStatuses);
});

test('lifepod down ends static Pods gracefully, and the next engine starts them again', async () => {
  const marks = join(lifepod.dataDir, 'marks');
  const polite = `trap "touch /host/down; exit 0" TERM; while :; do sleep 3600 & wait $!; done`;
  write(
    'polite.yaml',
    pod('polite', {
      app: [{ name: 'app', script: polite, volumeMounts: [{ name: 'host', mountPath: '/host' }] }],
      spec: { volumes: [{ name: 'host', hostPath: { path: marks } }] },
    }),
  );
  await ready('polite-node-1');
  const { code, stdout } = await launch(['down', '--data-dir', lifepod.dataDir]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^ending default\/polite-node-1 \(grace 30 s\)$/m);
  expect(stdout).toMatch(/^ended default\/polite-node-1 after /m);
  expect(statSync(join(marks, 'down')).isFile()).toBe(true);
  await lifepod.up();
  await ready('web-node-1');
});

/** Resolves when the engine has logged each of the files as skipped. */
async function logNames(path: string, files: string[]): Promise<void> {
  const missing = new Set(files);
  await untilLine('tail', ['-n', '+1', '-F', path], process.env, (line) => {
    for (const file of missing) if (line.includes(file) && line.includes('manifest skipped')) missing.delete(file);
    return missing.size === 0;
  });
}
