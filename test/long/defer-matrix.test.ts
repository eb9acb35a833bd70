/** The cases of src/simulation/defer-*.test.ts that test/e2e/defer.test.ts lacks, with real containers. */

import { once } from 'node:events';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { Attach, KubeConfig, PortForward } from '@kubernetes/client-node';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Pod } from '../../src/api/generated/types.ts';
import { parseTime } from '../../src/machinery/time.ts';
import {
  type DeferPodArguments,
  deferPod,
  entry,
  gate,
  logOf,
  openGate,
  POST,
  TELLING,
  untilLogged,
} from '../support/defer-pods.ts';
import { busyboxArchive } from '../support/images.ts';
import { scratchFolder } from '../support/lifepod.ts';
import { container, type ScriptedContainer } from '../support/manifests.ts';
import { lifepod, record, useOwnEngine } from '../support/own-engine.ts';
import { inPhase, isReady, OOM_REASONS, restarted, runs, signalFirst, statusOf, waitsFor } from '../support/pods.ts';
import { type Registry, startRegistry } from '../support/registry.ts';

const MAX_EXTENSION_SECONDS = 4;
let registry: Registry;
const scratch = scratchFolder();
beforeAll(async () => {
  registry = await startRegistry(join(scratch.path, 'registry'));
  for (const tag of ['early', 'late']) await registry.push(await busyboxArchive(), `defer/${tag}:1`);
});
afterAll(async () => {
  await registry?.stop();
  await scratch.remove();
});
useOwnEngine({ options: ['--max-grace-period-extension', String(MAX_EXTENSION_SECONDS)] });

const applied = (...args: DeferPodArguments): Promise<void> => lifepod.apply(deferPod(lifepod, ...args));
async function started(...args: DeferPodArguments): Promise<Pod> {
  await applied(...args);
  return record.until(args[0], isReady);
}
const deletion = (name: string, ...options: string[]): Promise<string> =>
  lifepod.kubectlOk('delete', 'pod', name, '--wait=false', ...options);
const log = (name: string): string[] => logOf(lifepod, name);
const open = (name: string, ...gates: string[]): void => openGate(lifepod, name, ...gates);
const end = (name: string, of: string) => statusOf(record.now(name), of).state?.terminated;
const deadlineOf = ({ status }: Pod): number => parseTime(status?.termination?.deadline) ?? Number.NaN;
const startOf = ({ status }: Pod): number => parseTime(status?.termination?.startedAt) ?? Number.NaN;
const indexOfEvent = (name: string, matching: RegExp): number =>
  record.events(name).findIndex((line) => matching.test(line));
const FOREVER = 'sleep 3600 & wait $!';
const WORK = TELLING['volumeMounts'];
const init = (name: string, script: string, more: object = {}): object =>
  container({ name, script, volumeMounts: WORK, ...more });
const reporting = (name: string): string =>
  `trap "echo ${name} stops >>/work/log; exit 0" TERM; trap "exit 3" USR1; echo ${name} begins >>/work/log; while :; do sleep 3600 & wait $!; done`;

describe.concurrent('defer containers', () => {
  test('sidecars run and restart while the list runs, and stop after it in reverse order, ephemeral containers last', async () => {
    const sidecars = ['side-1', 'side-2'].map((name) => init(name, reporting(name), { restartPolicy: 'Always' }));
    const live = await started('companions', [entry('one', gate('one')), entry('two', ':', POST)], {
      spec: { initContainers: sidecars },
    });
    const spec = { ...live.spec, ephemeralContainers: [init('debug', reporting('debug'))] };
    const path = '/api/v1/namespaces/default/pods/companions/ephemeralcontainers';
    await lifepod.kubectlInput(JSON.stringify({ ...live, spec }), 'replace', '--raw', path, '-f', '-');
    await record.until('companions', runs('debug'));
    await deletion('companions');
    await record.until('companions', runs('one'));
    await signalFirst(lifepod, 'companions', 'side-1', 'USR1');
    await record.until('companions', (pod) => restarted('side-1', 1)(pod) && runs('side-1')(pod));
    // The script of the sidecar writes its line some time after the container has started.
    await untilLogged(lifepod, 'companions', 'side-1 begins', 2);
    open('companions', 'one');
    await record.gone('companions');
    expect(log('companions').slice(0, 3).sort()).toEqual(['debug begins', 'side-1 begins', 'side-2 begins']);
    expect(log('companions').slice(3)).toEqual([
      'begin one',
      'side-1 begins',
      'end one',
      'app stops',
      'begin two',
      'end two',
      'side-2 stops',
      'side-1 stops',
      'debug stops',
    ]);
  });

  test('a Pod with the same name can be created only after the list has ended', async () => {
    await started('named', [entry('one', gate('one'))]);
    await deletion('named');
    await record.until('named', runs('one'));
    const again = JSON.stringify(deferPod(lifepod, 'named', []));
    const early = await lifepod.kubectlInput(again, 'create', '-f', '-');
    expect(early.stderr).toContain('pods "named" already exists');
    open('named', 'one');
    await record.gone('named');
    expect(await lifepod.kubectlInput(again, 'create', '-f', '-')).toMatchObject({ code: 0, stderr: '' });
    await deletion('named');
  });

  test('a Pod deleted while it initializes skips PreExit entries and runs PostExit entries', async () => {
    await applied('unmade', [entry('one'), entry('two', ':', POST)], {
      spec: { initContainers: [init('init', `trap "exit 1" TERM; echo begin init >>/work/log; ${FOREVER}`)] },
    });
    await record.until('unmade', runs('init'));
    await deletion('unmade');
    await record.gone('unmade');
    expect(log('unmade')).toEqual(['begin init', 'begin two', 'end two']);
    expect(end('unmade', 'one')).toMatchObject({ reason: 'Skipped', exitCode: 137 });
    expect(end('unmade', 'two')?.reason).toBe('Completed');
  });

  test('a Pod that fails while it initializes skips PreExit entries, runs PostExit entries, and then has the phase Failed', async () => {
    await applied('misbegun', [entry('one'), entry('two', ':', POST)], {
      spec: { restartPolicy: 'Never', initContainers: [init('init', 'echo begin init >>/work/log; exit 4')] },
    });
    await record.until('misbegun', inPhase('Failed'));
    expect(log('misbegun')).toEqual(['begin init', 'begin two', 'end two']);
    expect(end('misbegun', 'one')?.reason).toBe('Skipped');
    expect(end('misbegun', 'two')?.reason).toBe('Completed');
    await deletion('misbegun');
  });

  test('a Pod deleted before an init container started is gone immediately, and its entries are skipped', async () => {
    await applied('unborn', [entry('one'), entry('two', ':', POST)], {
      spec: {
        terminationGracePeriodSeconds: 600,
        initContainers: [init('init', ':', { image: '127.0.0.1:1/absent:1' })],
      },
    });
    await record.until('unborn', waitsFor('init', 'ErrImagePull', 'ImagePullBackOff'));
    await deletion('unborn');
    await record.gone('unborn');
    expect(log('unborn')).toEqual([]);
    for (const name of ['one', 'two']) expect(end('unborn', name)?.reason).toBe('Skipped');
  });

  test('entries stay PodRunning when an app crashes and restarts', async () => {
    const crashing = `[ -e /work/crashed ] || { touch /work/crashed; exit 3; }; ${TELLING.script}`;
    await applied('crashing', [entry('one')], { app: [{ ...TELLING, script: crashing }] });
    await record.until('crashing', (pod) => restarted('app', 1)(pod) && isReady(pod));
    const waiting = record
      .history('crashing')
      .map(({ pod }) => pod.status?.deferContainerStatuses?.[0]?.state?.waiting);
    expect(new Set(waiting.flatMap((each) => each?.reason ?? []))).toEqual(new Set(['PodRunning']));
    expect(log('crashing')).toEqual([]);
    await deletion('crashing');
  });

  test('when the liveness probe of an entry fails, the list moves on, or the entry is retried', async () => {
    const livenessProbe = { exec: { command: ['false'] }, periodSeconds: 1, failureThreshold: 1 };
    const once = `[ -e /work/tried ] && exit 0; touch /work/tried; ${FOREVER}`;
    await started('unlively', [
      entry('one', FOREVER, { livenessProbe }),
      { ...entry('two', '', { livenessProbe, restartPolicy: 'OnFailure' }), script: once },
      entry('three', ':', POST),
    ]);
    await deletion('unlively', '--grace-period=60');
    await record.gone('unlively');
    expect(end('unlively', 'one')?.reason).toBe('Error');
    expect(statusOf(record.now('unlively'), 'two')).toMatchObject({
      restartCount: 1,
      state: { terminated: { exitCode: 0, reason: 'Completed' } },
    });
    expect(log('unlively')).toEqual(['begin one', 'app stops', 'begin three', 'end three']);
    await record.event('unlively', /Liveness probe failed/);
  });

  test('images of entries are pulled once the Pod runs; a failed pull is an Event, and the Pod stays Ready', async () => {
    const images = ['early', 'absent'].map((name) => `${registry.host}/defer/${name}:1`);
    await started('pulling', [entry('one', ':', { image: images[0] }), entry('two', ':', { image: images[1] })]);
    await record.event('pulling', new RegExp(`^Normal Pulled: Successfully pulled image "${images[0]}"`));
    await record.event('pulling', new RegExp(`^Warning Failed: .*"${images[1]}"`));
    expect(record.now('pulling').metadata.deletionTimestamp).toBeUndefined();
    expect(isReady(record.now('pulling')) && inPhase('Running')(record.now('pulling'))).toBe(true);
    await deletion('pulling');
    await record.gone('pulling');
    expect(end('pulling', 'one')?.reason).toBe('Completed');
    expect(end('pulling', 'two')?.message).toMatch(/^ErrImagePull: /);
  });

  test('with prePullDeferImages false, images of entries are pulled at their turn', async () => {
    const image = `${registry.host}/defer/late:1`;
    const entries = [entry('one', ':', { ...POST, image })];
    await started('pulling-late', entries, { spec: { prePullDeferImages: false } });
    await deletion('pulling-late');
    await record.gone('pulling-late');
    expect(end('pulling-late', 'one')?.reason).toBe('Completed');
    await record.event('pulling-late', /DeferCompleted/);
    const pulled = indexOfEvent('pulling-late', /^Normal Pull(ing|ed): .*defer\/late:1/);
    expect(pulled).toBeGreaterThan(indexOfEvent('pulling-late', /^Normal Killing: Stopping container app/));
  });

  test('a delete of a Pod that has completed shortens the deadline of its list', async () => {
    await applied('completing', [entry('one', FOREVER)], {
      app: [{ ...TELLING, script: 'true' }],
      spec: { restartPolicy: 'Never', terminationGracePeriodSeconds: 600 },
    });
    const before = await record.until('completing', runs('one'));
    expect(deadlineOf(before) - startOf(before)).toBe(600_000);
    await deletion('completing', '--grace-period=2');
    await record.gone('completing');
    expect(deadlineOf(record.now('completing'))).toBeLessThan(deadlineOf(before) - 500_000);
    expect(record.now('completing').status?.termination?.reason).toBe('Completed');
    expect(end('completing', 'one')?.reason).toBe('DeadlineExceeded');
  });

  test('an extension is bounded by --max-grace-period-extension', async () => {
    await started('bounded', [entry('one', FOREVER)], {
      spec: {
        terminationGracePeriodSeconds: 2,
        deferContainerGracePeriodExtensionInterval: 3,
        deferContainerGracePeriodExtensionCount: 9,
      },
    });
    await deletion('bounded');
    await record.gone('bounded');
    const last = record.now('bounded');
    expect(deadlineOf(last) - startOf(last)).toBe(2000 + MAX_EXTENSION_SECONDS * 1000);
    await record.event('bounded', /DeferCompleted/);
    expect(record.events('bounded').filter((line) => line.includes('ExtendGracePeriod'))).toHaveLength(2);
    expect(end('bounded', 'one')?.reason).toBe('DeadlineExceeded');
  });

  test('an entry that exceeds its memory limit is OOMKilled, and the list moves on', async () => {
    const hungry: ScriptedContainer = {
      name: 'one',
      script: 'exec tail /dev/zero',
      resources: { limits: { memory: '16Mi' } },
    };
    await started('hungry', [hungry, entry('two', ':', POST)]);
    await deletion('hungry');
    await record.gone('hungry');
    expect(end('hungry', 'one')).toMatchObject({ reason: expect.stringMatching(OOM_REASONS), exitCode: 137 });
    expect(end('hungry', 'two')?.reason).toBe('Completed');
  });

  test('attach and port-forward reach an entry', async () => {
    const echo = 'while read line; do echo "out $line"; done';
    const serve = 'echo served | nc -l -p 8080';
    await started('reached', [
      { name: 'one', script: echo, stdin: true, stdinOnce: true },
      { name: 'two', script: serve },
    ]);
    await deletion('reached');
    await record.until('reached', runs('one'));
    const config = new KubeConfig();
    config.loadFromFile(lifepod.kubeconfig);
    // kubectl attach refuses names of containers that its own Pod type does not know.
    const [input, output] = [new PassThrough(), new PassThrough()];
    await new Attach(config).attach('default', 'reached', 'one', output, null, input, false);
    input.write('hello\n');
    expect(String((await once(output, 'data'))[0])).toBe('out hello\n');
    input.end();
    await record.until('reached', runs('two'));
    const listens = 'until netstat -ltn | grep -q :8080; do usleep 20000; done';
    await lifepod.kubectlOk('exec', 'reached', '-c', 'two', '--', 'sh', '-c', listens);
    const [asked, served] = [new PassThrough(), new PassThrough()];
    await new PortForward(config).portForward('default', 'reached', [8080], served, null, asked);
    expect(String((await once(served, 'data'))[0])).toBe('served\n');
    await record.gone('reached');
  });

  test('entries of the annotation run, their statuses are mirrored, and an update by a client without the field keeps them', async () => {
    const [containers, statuses] = ['containers', 'container-statuses'].map(
      (word) => `pod.alpha.kubernetes.io/defer-${word}`,
    ) as [string, string];
    const { spec, metadata, ...rest } = deferPod(lifepod, 'annotated', [entry('one', gate('one')), entry('two')]) as {
      spec: { deferContainers: object[] };
      metadata: object;
    };
    const { deferContainers, ...known } = spec;
    const annotations = { [containers]: JSON.stringify(deferContainers) };
    await lifepod.apply({ ...rest, metadata: { ...metadata, annotations }, spec: known });
    const { spec: { deferContainers: kept, ...typed } = { containers: [] }, ...live } = await record.until(
      'annotated',
      isReady,
    );
    expect(kept).toHaveLength(2);
    const labelled = { ...live, metadata: { ...live.metadata, labels: { typed: 'yes' } }, spec: typed };
    const path = '/api/v1/namespaces/default/pods/annotated';
    const put = await lifepod.kubectlInput(JSON.stringify(labelled), 'replace', '--raw', path, '-f', '-');
    expect(put).toMatchObject({ code: 0, stderr: '' });
    const after = await record.until('annotated', (pod) => pod.metadata.labels?.['typed'] === 'yes');
    expect(after.spec?.deferContainers).toEqual(kept);
    await deletion('annotated');
    const mirrored = (pod: Pod): unknown => JSON.parse(pod.metadata.annotations?.[statuses] ?? 'null');
    const during = await record.until('annotated', runs('one'));
    expect(mirrored(during)).toEqual(during.status?.deferContainerStatuses);
    open('annotated', 'one');
    await record.gone('annotated');
    const last = record.now('annotated');
    expect(mirrored(last)).toEqual(last.status?.deferContainerStatuses);
    expect(log('annotated')).toEqual(['begin one', 'end one', 'begin two', 'end two', 'app stops']);
  });
});
