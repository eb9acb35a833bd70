import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import type { PersistentVolumeClaim } from '../../src/api/generated/types.ts';
import { pod, WAIT } from '../support/manifests.ts';
import { ended, isReady, runs, statusOf } from '../support/pods.ts';
import { lifepod, record, testInFileNamespace as test } from '../support/shared-engine.ts';

const object = (kind: 'ConfigMap' | 'Secret', name: string, data: Record<string, string>): object => ({
  apiVersion: 'v1',
  kind,
  metadata: { name },
  [kind === 'Secret' ? 'stringData' : 'data']: data,
});
const mounts = (...names: string[]): object[] => names.map((name) => ({ name, mountPath: `/${name}` }));

/** The shell script prints the output of `show` initially and after each change. It polls, because the image has no inotify. */
const printChanges = (show: string): string => `
  trap "exit 0" TERM
  printed=
  while :; do
    now=$(${show})
    [ "$now" = "$printed" ] || { echo "$now"; printed=$now; }
    sleep 0.05
  done`;

/**
 * Returns a shell script that runs `command` in the content folder to which the volume's link ..data points, and sets $shown to the output.
 * If the link changes meanwhile, the script reads again, so that $shown never mixes the files of two folders. Errors are not printed,
 * because the old folder may be removed while `command` runs.
 */
const readConsistently = (volume: string, command: string): string => {
  const run = `{ cd "${volume}/$folder" && ${command}; } 2>/dev/null`;
  const read = `folder=$(readlink ${volume}/..data); shown=$(${run})`;
  return `${read}; while [ "$(readlink ${volume}/..data)" != "$folder" ]; do ${read}; done`;
};

/** Calls `change` after the first line of the log. Resolves with the lines up to a match of `last`. */
const linesAfter = async (name: string, change: () => Promise<unknown>, last: RegExp): Promise<string[]> => {
  let changing: Promise<unknown> | undefined;
  const lines = await lifepod.until(['logs', '-f', name, '-c', 'app'], (line) => {
    changing ??= change();
    return last.test(line);
  });
  await changing;
  return lines;
};

describe.concurrent('volumes with the content of objects', () => {
  test('files of a changed ConfigMap or Secret are replaced atomically in a running container, but a subPath mount keeps its content', async () => {
    await lifepod.apply(object('ConfigMap', 'conf', { a: 'old\n', b: 'old\n', gone: 'x\n' }));
    await lifepod.apply(object('Secret', 'key', { token: 'old' }));
    const read = readConsistently('/conf', 'cat a b gone | tr "\\n" ,');
    const show = `${read}; echo "$shown $(cat /key/token) $(cat /all/conf-a) $(cat /pinned)"`;
    const volumes = [
      { name: 'conf', configMap: { name: 'conf' } },
      { name: 'key', secret: { secretName: 'key' } },
      {
        name: 'all',
        projected: { sources: [{ configMap: { name: 'conf', items: [{ key: 'a', path: 'conf-a' }] } }] },
      },
    ];
    const volumeMounts = [
      ...mounts('conf', 'key', 'all'),
      { name: 'conf', mountPath: '/pinned', subPath: 'a', readOnly: true },
    ];
    await lifepod.apply(
      pod('updated', {
        app: [{ name: 'app', script: printChanges(show), volumeMounts }],
        spec: { volumes },
      }),
    );
    await record.until('updated', runs('app'));
    const lines = await linesAfter(
      'updated',
      async () => {
        await lifepod.kubectlOk(
          'patch',
          'configmap',
          'conf',
          '--type=merge',
          '-p',
          '{"data":{"a":"new\\n","b":"new\\n","gone":null}}',
        );
        await lifepod.kubectlOk('patch', 'secret', 'key', '-p', '{"stringData":{"token":"new"}}');
      },
      /^new,new, new new old$/,
    );
    expect(lines[0]).toBe('old,old,x, old old old');
    for (const line of lines) expect(line).toMatch(/^(old,old,x,|new,new,) (old|new) (old|new) old$/);
    await lifepod.delete('pod', 'updated', '--now', '--wait=false');
  });

  test("files with the Pod's labels and annotations are updated when the Pod's metadata changes", async () => {
    const show = readConsistently('/me', 'echo "$(tr "\\n" , <labels) note=$(cat note)"');
    const items = [
      { path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } },
      { path: 'note', fieldRef: { fieldPath: "metadata.annotations['note']" } },
    ];
    await lifepod.apply(
      pod('labelled', {
        labels: { tier: 'one' },
        app: [
          {
            name: 'app',
            script: printChanges(`${show}; echo "$shown"`),
            volumeMounts: mounts('me'),
          },
        ],
        spec: { volumes: [{ name: 'me', downwardAPI: { items } }] },
      }),
    );
    await record.until('labelled', runs('app'));
    const change = { metadata: { labels: { tier: 'two' }, annotations: { note: 'hello' } } };
    const lines = await linesAfter(
      'labelled',
      () => lifepod.kubectlOk('patch', 'pod', 'labelled', '-p', JSON.stringify(change)),
      /note=hello/,
    );
    expect(lines).toEqual(['tier="one" note=', 'tier="two" note=hello']);
    await lifepod.delete('pod', 'labelled', '--now', '--wait=false');
  });

  test('an Event and the waiting message name a missing ConfigMap or key, and the Pod starts when it exists', async () => {
    const volumes = [
      { name: 'late', configMap: { name: 'late-conf', items: [{ key: 'k', path: 'deep/k', mode: 0o440 }] } },
      { name: 'maybe', secret: { secretName: 'never', optional: true } },
    ];
    const script = `cat /late/deep/k; stat -L -c %a /late/deep/k; ls /maybe | wc -l; ${WAIT}`;
    await lifepod.apply(
      pod('waiting', {
        app: [{ name: 'app', script, volumeMounts: mounts('late', 'maybe') }],
        spec: { volumes },
      }),
    );
    const missing = 'MountVolume.SetUp failed for volume "late" : configmap "late-conf" not found';
    expect(await record.event('waiting', /FailedMount/)).toBe(`Warning FailedMount: ${missing}`);
    const waiting = await record.until(
      'waiting',
      (each) => each.status?.containerStatuses?.[0]?.state?.waiting?.message !== undefined,
    );
    expect(statusOf(waiting, 'app').state?.waiting).toEqual({ reason: 'ContainerCreating', message: missing });

    await lifepod.apply(object('ConfigMap', 'late-conf', { other: 'x' }));
    const keyMissing = 'MountVolume.SetUp failed for volume "late" : configmap references non-existent config key: k';
    expect(await record.event('waiting', /config key/)).toBe(`Warning FailedMount: ${keyMissing}`);
    await lifepod.apply(object('ConfigMap', 'late-conf', { k: 'here\n' }));
    await record.until('waiting', isReady);
    expect(await lifepod.until(['logs', '-f', 'waiting'], (_, lines) => lines.length === 3)).toEqual([
      'here',
      '440',
      '0',
    ]);
    await lifepod.delete('pod', 'waiting', '--now', '--wait=false');
  });

  test('an optional Secret that is created later appears in the running container, and the deletion of the Secret empties the volume', async () => {
    const volumes = [{ name: 'opt', secret: { secretName: 'opt', optional: true } }];
    await lifepod.apply(
      pod('optional', {
        app: [
          {
            name: 'app',
            script: printChanges('echo "now $(ls /opt | tr "\\n" ,)"'),
            volumeMounts: mounts('opt'),
          },
        ],
        spec: { volumes },
      }),
    );
    await record.until('optional', runs('app'));
    await linesAfter('optional', () => lifepod.apply(object('Secret', 'opt', { one: '1' })), /^now one,$/);
    await lifepod.delete('secret', 'opt');
    await lifepod.until(['logs', '-f', 'optional'], (line, lines) => line === 'now ' && lines.length > 1);
    await lifepod.delete('pod', 'optional', '--now', '--wait=false');
  });
});

test('the volumes of a Pod are kept when their objects are deleted and the engine is killed, and are removed after the Pod has ended', async () => {
  await lifepod.apply(object('ConfigMap', 'survivor', { k: 'one' }));
  await lifepod.apply(object('Secret', 'survivor', { k: 'key' }));
  await lifepod.kubectlOk('create', 'serviceaccount', 'survivor');
  await lifepod.apply({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'survivor' },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } },
  });
  const volumeMounts = mounts('conf', 'key', 'data');
  const untilGo = 'touch /data/began; until [ -e /data/go ]; do usleep 10000; done';
  const last =
    'echo $(cat /conf/k) $(cat /key/k) $(cd /data; echo *) $(cd /var/run/secrets/kubernetes.io/serviceaccount; echo *) >/dev/termination-log';
  await lifepod.apply(
    pod('survivor', {
      app: [{ name: 'app', script: printChanges('cat /conf/k'), volumeMounts }],
      defer: [
        { name: 'held', script: untilGo, volumeMounts },
        { name: 'last', script: last, volumeMounts },
      ],
      spec: {
        serviceAccountName: 'survivor',
        volumes: [
          { name: 'conf', configMap: { name: 'survivor' } },
          { name: 'key', projected: { sources: [{ secret: { name: 'survivor' } }] } },
          { name: 'data', persistentVolumeClaim: { claimName: 'survivor' } },
        ],
      },
    }),
  );
  await record.until('survivor', isReady);
  const restart = async (): Promise<void> => {
    record.end();
    await lifepod.kill('SIGKILL');
    await lifepod.up();
  };
  await restart();
  await lifepod.kubectlOk('patch', 'configmap', 'survivor', '-p', '{"data":{"k":"two"}}');
  await lifepod.until(['logs', '-f', 'survivor', '-c', 'app'], (line) => line === 'two');
  expect(statusOf(record.now('survivor'), 'app').restartCount).toBe(0);

  const { spec } = await lifepod.get<PersistentVolumeClaim>('pvc', 'survivor');
  await lifepod.kubectlOk(
    'delete',
    '--wait=false',
    ...['pod', 'pvc', 'cm', 'secret', 'sa'].map((kind) => `${kind}/survivor`),
  );
  await record.until('survivor', runs('held'));
  await restart();
  writeFileSync(join(lifepod.dataDir, 'volumes', spec?.volumeName ?? '', 'go'), '');
  const over = await record.until('survivor', ended('last'));
  expect(statusOf(over, 'last').state?.terminated).toMatchObject({
    exitCode: 0,
    message: 'two key began go ca.crt namespace token\n',
  });
  await record.gone('survivor');
  await lifepod.wait('pv', '--all', '--for=delete');
});
