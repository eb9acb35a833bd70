import { existsSync, mkdirSync, readFileSync, realpathSync, rmdirSync, symlinkSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { PersistentVolume, PersistentVolumeClaim } from '../../../src/api/generated/types.ts';
import { type Scratch, scratchFolder } from '../../support/lifepod.ts';
import { pod, type ScriptedContainer, WAIT } from '../../support/manifests.ts';
import { lifepod, record, useOwnEngine } from '../../support/own-engine.ts';
import { ended, inPhase, isReady } from '../../support/pods.ts';

const links = scratchFolder();
afterAll(() => links.remove());
useOwnEngine(() => ({ scratch: behindLink(links.path) }));

/** The path of the data folder has a symbolic link, to test that even then no mounted volume is deleted. The folder does not exist yet. */
function behindLink(links: string): Scratch {
  const { path, remove } = scratchFolder();
  rmdirSync(path);
  symlinkSync(dirname(path), join(links, 'link'));
  return { path: join(links, 'link', basename(path)), remove };
}

const claim = (name: string, spec: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
});
const user = (
  name: string,
  claimName: string,
  script: string,
  more: { spec?: object; container?: object; source?: object; defer?: ScriptedContainer[] } = {},
): object =>
  pod(name, {
    app: [{ name: 'app', script, volumeMounts: [{ name: 'data', mountPath: '/data' }], ...more.container }],
    ...(more.defer === undefined ? {} : { defer: more.defer }),
    spec: {
      restartPolicy: 'Never',
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName, ...more.source } }],
      ...more.spec,
    },
  });
const hostVolume = (name: string, path: string, spec: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name },
  spec: {
    capacity: { storage: '2Gi' },
    accessModes: ['ReadWriteOnce'],
    storageClassName: 'by-hand',
    hostPath: { path, type: 'DirectoryOrCreate' },
    ...spec,
  },
});
const getClaim = (name: string): Promise<PersistentVolumeClaim> => lifepod.get<PersistentVolumeClaim>('pvc', name);
const getVolume = (name: string): Promise<PersistentVolume> => lifepod.get<PersistentVolume>('pv', name);
const settled = (what: string, jsonpath: string): Promise<void> => lifepod.wait(what, `--for=jsonpath=${jsonpath}`);
const deleted = (what: string): Promise<void> => lifepod.wait(what, '--for=delete');
const deleteNow = (name: string): Promise<void> => lifepod.delete('pod', name, '--now');

describe.concurrent('claims', () => {
  test('kubectl shows the default StorageClass', async () => {
    const [, row] = (await lifepod.kubectlOk('get', 'sc')).split('\n');
    expect(row).toMatch(/^local-path \(default\) +lifepod\.io\/local-path +Delete +WaitForFirstConsumer +false +\d+s$/);
  });

  test('the folder of a claim is created for the first Pod, kept when Pods are deleted, and deleted with the claim', async () => {
    await lifepod.apply(claim('notes'));
    await lifepod.until(
      [
        'get',
        'events',
        '-w',
        '--field-selector=involvedObject.name=notes',
        '-o',
        'custom-columns=R:.reason,M:.message',
      ],
      (line) => /^WaitForFirstConsumer +waiting for first consumer to be created before binding$/.test(line),
    );
    expect(await getClaim('notes')).toMatchObject({
      metadata: { finalizers: ['kubernetes.io/pvc-protection'] },
      spec: { storageClassName: 'local-path', volumeMode: 'Filesystem' },
      status: { phase: 'Pending' },
    });

    const defer = [
      { name: 'note', script: 'cat /data/a; echo two >/data/b', volumeMounts: [{ name: 'data', mountPath: '/data' }] },
    ];
    await lifepod.apply(user('writer', 'notes', 'echo one >/data/a', { defer }));
    await record.until('writer', inPhase('Succeeded'));
    const failures = '--field-selector=involvedObject.name=writer,type=Warning';
    expect(await lifepod.kubectlOk('get', 'events', failures, '-o', 'custom-columns=M:.message', '--no-headers')).toBe(
      '',
    );
    const bound = await getClaim('notes');
    const volumeName = `pvc-${bound.metadata.uid}`;
    expect(bound).toMatchObject({
      spec: { volumeName },
      status: { phase: 'Bound', accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' } },
    });
    const folder = join(lifepod.dataDir, 'volumes', volumeName);
    expect(readFileSync(join(folder, 'a'), 'utf8')).toBe('one\n');
    expect(readFileSync(join(folder, 'b'), 'utf8')).toBe('two\n');
    const [, row] = (await lifepod.kubectlOk('get', 'pv', volumeName)).split('\n');
    expect(row?.split(/ {2,}/).slice(1, 8)).toEqual([
      '1Gi',
      'RWO',
      'Delete',
      'Bound',
      'default/notes',
      'local-path',
      '<unset>',
    ]);
    const [, claimRow] = (await lifepod.kubectlOk('get', 'pvc', 'notes')).split('\n');
    expect(claimRow?.split(/ {2,}/).slice(0, 7)).toEqual([
      'notes',
      'Bound',
      volumeName,
      '1Gi',
      'RWO',
      'local-path',
      '<unset>',
    ]);
    await deleteNow('writer');
    await record.gone('writer');
    expect(readFileSync(join(folder, 'a'), 'utf8')).toBe('one\n');

    await lifepod.apply(
      user('reader', 'notes', `cat /data/a; touch /data/c 2>&1 || ${WAIT}`, { source: { readOnly: true } }),
    );
    await record.until('reader', isReady);
    expect(await lifepod.until(['logs', '-f', 'reader'], (line) => line.startsWith('touch'))).toEqual([
      'one',
      'touch: /data/c: Read-only file system',
    ]);

    // A deleted claim that is in use exists until its Pod is deleted. No new Pod can use the claim.
    await lifepod.delete('pvc', 'notes', '--wait=false');
    expect((await lifepod.kubectlOk('get', 'pvc', 'notes')).split('\n')[1]).toMatch(/^notes +Terminating /);
    await lifepod.apply(user('late', 'notes', 'true'));
    expect(await record.event('late', /FailedScheduling/)).toBe(
      'Warning FailedScheduling: 0/1 nodes are available: persistentvolumeclaim "notes" is being deleted.',
    );
    expect(existsSync(join(folder, 'a'))).toBe(true);
    await deleteNow('reader');
    await deleted(`pv/${volumeName}`);
    expect(existsSync(folder)).toBe(false);
    await deleteNow('late');
  });

  test('a Pod waits for a missing claim, and starts after the claim is created', async () => {
    await lifepod.apply(user('early', 'later', 'echo here >/data/x'));
    expect(await record.event('early', /FailedScheduling/)).toBe(
      'Warning FailedScheduling: 0/1 nodes are available: persistentvolumeclaim "later" not found.',
    );
    await lifepod.apply(claim('later'));
    await record.until('early', inPhase('Succeeded'));
    await deleteNow('early');
  });

  test('a manually created volume is bound to a waiting claim, and its files are kept when the claim is deleted', async () => {
    const path = join(lifepod.dataDir, 'by-hand');
    await lifepod.apply(hostVolume('small', join(lifepod.dataDir, 'small'), { capacity: { storage: '500Mi' } }));
    await lifepod.apply(user('hand', 'manual', 'echo kept >/data/k'));
    await lifepod.apply(claim('manual', { storageClassName: 'by-hand' }));
    expect(await record.event('hand', /unbound/)).toBe(
      'Warning FailedScheduling: 0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.',
    );
    await lifepod.apply(hostVolume('large', path));
    await record.until('hand', inPhase('Succeeded'));
    expect(readFileSync(join(path, 'k'), 'utf8')).toBe('kept\n');
    expect((await getClaim('manual')).spec?.volumeName).toBe('large');
    expect((await getVolume('small')).status?.phase).toBe('Available');
    await deleteNow('hand');
    await lifepod.delete('pvc', 'manual');
    await settled('pv/large', '{.status.phase}=Released');
    await lifepod.delete('pv', 'large', 'small');
    expect(readFileSync(join(path, 'k'), 'utf8')).toBe('kept\n');
  });

  test('a deleted volume exists while it is bound, and a claim whose volume has been removed is Lost', async () => {
    await lifepod.apply(hostVolume('precious', join(lifepod.dataDir, 'precious'), { storageClassName: 'precious' }));
    await lifepod.apply(claim('holder', { storageClassName: 'precious', volumeName: 'precious' }));
    await settled('pvc/holder', '{.status.phase}=Bound');
    await lifepod.delete('pv', 'precious', '--wait=false');
    expect((await lifepod.kubectlOk('get', 'pv', 'precious')).split('\n')[1]).toContain('Terminating');
    await lifepod.kubectlOk('patch', 'pv', 'precious', '--type=merge', '-p', '{"metadata":{"finalizers":null}}');
    await settled('pvc/holder', '{.status.phase}=Lost');
    await lifepod.apply(user('lost', 'holder', 'true'));
    expect(await record.event('lost', /FailedScheduling/)).toBe(
      'Warning FailedScheduling: 0/1 nodes are available: persistentvolumeclaim "holder" bound to non-existent persistentvolume "precious".',
    );
    await deleteNow('lost');
  });

  test('a Pod that needs a volume of another node is not scheduled, and does not start if it is bound to this node', async () => {
    const expression = { key: 'kubernetes.io/hostname', operator: 'In', values: ['elsewhere'] };
    const nodeAffinity = { required: { nodeSelectorTerms: [{ matchExpressions: [expression] }] } };
    await lifepod.apply(hostVolume('far', '/nonexistent', { storageClassName: 'far', nodeAffinity }));
    await lifepod.apply(claim('far', { storageClassName: 'far' }));
    await settled('pvc/far', '{.status.phase}=Bound');
    await lifepod.apply(user('near', 'far', 'true'));
    expect(await record.event('near', /FailedScheduling/)).toBe(
      'Warning FailedScheduling: 0/1 nodes are available: 1 node(s) had volume node affinity conflict.',
    );
    await lifepod.apply(user('placed', 'far', 'true', { spec: { nodeName: lifepod.nodeName } }));
    expect(await record.event('placed', /FailedMount/)).toBe(
      'Warning FailedMount: MountVolume.NodeAffinity check failed for volume "data" : no matching NodeSelectorTerms',
    );
    await Promise.all([deleteNow('near'), deleteNow('placed')]);
  });

  test('an ephemeral volume is created and deleted with its Pod', async () => {
    const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } };
    await lifepod.apply(
      user('scratch', '', `echo x >/data/x; ${WAIT}`, {
        spec: {
          volumes: [{ name: 'data', ephemeral: { volumeClaimTemplate: { metadata: { labels: { a: 'b' } }, spec } } }],
        },
      }),
    );
    await record.until('scratch', isReady);
    const made = await getClaim('scratch-data');
    expect(made.metadata).toMatchObject({
      labels: { a: 'b' },
      ownerReferences: [{ kind: 'Pod', name: 'scratch', controller: true }],
    });
    await deleteNow('scratch');
    await deleted('pvc/scratch-data');
    await deleted(`pv/${made.spec?.volumeName}`);
    expect(existsSync(join(lifepod.dataDir, 'volumes', made.spec?.volumeName ?? ''))).toBe(false);
  });

  test('the fsGroup becomes the group of all files in a volume, with OnRootMismatch only if the root folder has another group', async ({
    expect,
  }) => {
    await lifepod.apply(claim('shared'));
    /**
     * Waits until the node has unmounted the volume of an ended Pod. The API removes the Pod earlier, but the group of the volume changes
     * only after the unmount.
     */
    const unmounted = async (name: string): Promise<void> => {
      const folder = join(lifepod.dataDir, 'pods', record.now(name).metadata.uid ?? '');
      await deleteNow(name);
      await expect.poll(() => existsSync(folder), { timeout: 30_000 }).toBe(false);
    };
    const security = (fsGroup: number, more: object = {}) => ({ securityContext: { fsGroup, ...more } });
    const show = 'stat -c "%n %g %a" /data /data/dir /data/dir/file; id -G';
    await lifepod.apply(
      user('first', 'shared', `umask 077; mkdir /data/dir; echo x >/data/dir/file; ${show}`, {
        spec: security(4000, { runAsUser: 1234 }),
      }),
    );
    await record.until('first', ended('app'));
    expect((await lifepod.kubectlOk('logs', 'first')).trim().split('\n')).toEqual([
      '/data 4000 2777',
      '/data/dir 4000 2700',
      '/data/dir/file 4000 600',
      '0 4000',
    ]);
    await unmounted('first');
    await lifepod.apply(
      user('same', 'shared', show, { spec: security(4000, { fsGroupChangePolicy: 'OnRootMismatch' }) }),
    );
    await record.until('same', ended('app'));
    expect(await lifepod.kubectlOk('logs', 'same')).toContain('/data/dir/file 4000 600\n');
    await unmounted('same');
    await lifepod.apply(user('other', 'shared', show, { spec: security(5000) }));
    await record.until('other', ended('app'));
    expect((await lifepod.kubectlOk('logs', 'other')).split('\n').slice(0, 3)).toEqual([
      '/data 5000 2777',
      '/data/dir 5000 2770',
      '/data/dir/file 5000 660',
    ]);
    await unmounted('other');
    await lifepod.apply(
      user('differing', 'shared', show, { spec: security(6000, { fsGroupChangePolicy: 'OnRootMismatch' }) }),
    );
    await record.until('differing', ended('app'));
    expect((await lifepod.kubectlOk('logs', 'differing')).split('\n').slice(0, 3)).toEqual([
      '/data 6000 2777',
      '/data/dir 6000 2770',
      '/data/dir/file 6000 660',
    ]);
    await deleteNow('differing');
  });

  test('a StorageClass can bind immediately and retain the folder of a deleted claim', async () => {
    await lifepod.apply({
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: 'kept' },
      provisioner: 'lifepod.io/local-path',
      reclaimPolicy: 'Retain',
      volumeBindingMode: 'Immediate',
    });
    await lifepod.apply(claim('kept', { storageClassName: 'kept' }));
    await settled('pvc/kept', '{.status.phase}=Bound');
    const name = (await getClaim('kept')).spec?.volumeName ?? '';
    const folder = join(lifepod.dataDir, 'volumes', name);
    await lifepod.apply(user('keeper', 'kept', 'echo kept >/data/k'));
    await record.until('keeper', inPhase('Succeeded'));
    await deleteNow('keeper');
    await lifepod.delete('pvc', 'kept');
    await settled(`pv/${name}`, '{.status.phase}=Released');
    await lifepod.delete('pv', name);
    expect(readFileSync(join(folder, 'k'), 'utf8')).toBe('kept\n');
  });

  test('a ReadWriteOncePod claim is used by one Pod at a time', async () => {
    await lifepod.apply(claim('single', { accessModes: ['ReadWriteOncePod'] }));
    await lifepod.apply(user('holding', 'single', WAIT));
    await record.until('holding', isReady);
    await lifepod.apply(user('waiting', 'single', 'true'));
    expect(await record.event('waiting', /FailedScheduling/)).toBe(
      'Warning FailedScheduling: 0/1 nodes are available: 1 node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode.',
    );
    await deleteNow('waiting');
    await lifepod.apply(user('placed-too', 'single', 'true', { spec: { nodeName: lifepod.nodeName } }));
    expect(await record.event('placed-too', /FailedMount/)).toBe(
      'Warning FailedMount: MountVolume.SetUp failed for volume "data" : volume uses the ReadWriteOncePod access mode and is already in use by another pod',
    );
    await lifepod.apply(user('waiting', 'single', 'true'));
    await deleteNow('holding');
    await Promise.all(['waiting', 'placed-too'].map((name) => record.until(name, inPhase('Succeeded'))));
    await Promise.all([deleteNow('waiting'), deleteNow('placed-too')]);
  });

  test('a Pod with a local volume waits until the folder of the volume exists', async () => {
    const path = join(lifepod.dataDir, 'by-hand-local');
    const expression = { key: 'kubernetes.io/hostname', operator: 'In', values: ['node-1'] };
    await lifepod.apply({
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: 'local-one' },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'local-hand',
        local: { path },
        nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [expression] }] } },
      },
    });
    await lifepod.apply(claim('local-hand', { storageClassName: 'local-hand' }));
    await lifepod.apply(user('local-user', 'local-hand', 'echo here >/data/x'));
    expect(await record.event('local-user', /FailedMount/)).toBe(
      `Warning FailedMount: MountVolume.SetUp failed for volume "data" : path "${path}" does not exist`,
    );
    mkdirSync(path);
    await record.until('local-user', inPhase('Succeeded'));
    expect(readFileSync(join(realpathSync(path), 'x'), 'utf8')).toBe('here\n');
    await deleteNow('local-user');
    await lifepod.delete('pvc', 'local-hand');
    await settled('pv/local-one', '{.status.phase}=Released');
    await lifepod.delete('pv', 'local-one');
    expect(readFileSync(join(path, 'x'), 'utf8')).toBe('here\n');
  });

  test('invalid claims and volumes are rejected with the messages of upstream', async () => {
    const refused = async (object: object): Promise<string> =>
      (await lifepod.kubectlInput(JSON.stringify(object), 'create', '-f', '-')).stderr;
    expect(await refused(claim('bad', { accessModes: [], resources: {} }))).toBe(
      'The PersistentVolumeClaim "bad" is invalid: \n* spec.accessModes: Required value: at least 1 access mode is required\n* spec.resources[storage]: Required value\n',
    );
    expect(await refused(hostVolume('bad', '/x', { local: { path: '/y' } }))).toContain(
      '* spec.nodeAffinity: Required value: Local volume requires node affinity',
    );
  });
});
