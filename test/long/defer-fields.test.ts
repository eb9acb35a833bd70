import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Pod, TerminatedContainer } from '../../src/api/generated/types.ts';
import { parseTime } from '../../src/machinery/time.ts';
import { makeBusyboxArchive } from '../../src/runtime/images/local-images.ts';
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
import { lifepod, record, useOwnEngine } from '../support/own-engine.ts';
import { inPhase, isReady, runs, statusOf, waitsFor } from '../support/pods.ts';

useOwnEngine();

const applied = (...args: DeferPodArguments): Promise<void> => lifepod.apply(deferPod(lifepod, ...args));
async function started(...args: DeferPodArguments): Promise<Pod> {
  await applied(...args);
  return record.until(args[0], isReady);
}
const deletion = (name: string, ...options: string[]): Promise<string> =>
  lifepod.kubectlOk('delete', 'pod', name, '--wait=false', ...options);
const log = (name: string): string[] => logOf(lifepod, name);
const end = (name: string, of: string) => statusOf(record.now(name), of).state?.terminated;
const completes = (code: number) => ({
  app: [{ ...TELLING, script: `exit ${code}` }],
  spec: { restartPolicy: 'Never' },
});
const ENDED = { exitCode: 0, reason: 'Completed' };
const skipped = (message: string) => ({ exitCode: 137, reason: 'Skipped', message });

describe.concurrent('defer containers', () => {
  test("imageFrom: an entry runs the image that the container has at the entry's turn; the spec does not get the image", async () => {
    const archive = join(lifepod.dataDir, 'newer.tar');
    await makeBusyboxArchive(archive, { reference: 'docker.io/library/newer:2' });
    await lifepod.cliOk('image', 'load', archive);
    const from = { image: undefined, imageFrom: 'app' };
    await started('borrowing', [entry('one', ':', from), entry('two', ':', { ...POST, ...from })]);
    const image = JSON.stringify({ spec: { containers: [{ name: 'app', image: 'newer:2' }] } });
    await lifepod.kubectlOk('patch', 'pod', 'borrowing', '-p', image);
    await record.until('borrowing', (pod) => isReady(pod) && statusOf(pod, 'app').image.includes('newer:2'));
    await deletion('borrowing');
    await record.gone('borrowing');
    for (const name of ['one', 'two']) {
      expect(end('borrowing', name)).toMatchObject(ENDED);
      expect(statusOf(record.now('borrowing'), name).image).toContain('newer:2');
    }
    for (const each of record.now('borrowing').spec?.deferContainers ?? []) {
      expect(each.imageFrom).toBe('app');
      expect(each.image ?? '').toBe('');
    }
  });

  test('onReasons: the condition DeletionReason gives the reason of a deletion; entries not due for it are skipped', async () => {
    const entries = [
      entry('scaling', ':', { onReasons: ['ScaledDown'] }),
      entry('deleting', ':', { onReasons: ['Deleted', 'Evicted'] }),
      entry('last', ':', { ...POST, onReasons: ['ScaledDown', 'Deleted'] }),
    ];
    for (const name of ['scaled', 'unmarked']) await started(name, entries);
    const marked = { type: 'DeletionReason', status: 'True', reason: 'ScaledDown', lastTransitionTime: new Date() };
    const patch = JSON.stringify({ status: { conditions: [marked] } });
    await lifepod.kubectlOk('patch', 'pod', 'scaled', '--subresource=status', '-p', patch);
    for (const name of ['scaled', 'unmarked']) await deletion(name);
    for (const name of ['scaled', 'unmarked']) await record.gone(name);
    expect(record.now('scaled').status?.termination?.reason).toBe('ScaledDown');
    expect(end('scaled', 'scaling')).toMatchObject(ENDED);
    expect(end('scaled', 'deleting')).toMatchObject(skipped('not due on ScaledDown'));
    expect(end('scaled', 'last')).toMatchObject(ENDED);
    expect(record.now('unmarked').status?.termination?.reason).toBe('Deleted');
    expect(end('unmarked', 'scaling')).toMatchObject(skipped('not due on Deleted'));
    expect(log('unmarked')).toEqual(['begin deleting', 'end deleting', 'app stops', 'begin last', 'end last']);
  });

  test('when: PostExit entries run only after the outcome of the app containers that they name', async () => {
    const entries = ['Succeeded', 'Failed', 'Always'].map((when) => entry(when.toLowerCase(), ':', { ...POST, when }));
    await applied('well', entries, completes(0));
    await applied('badly', entries, completes(3));
    await record.until('well', inPhase('Succeeded'));
    await record.until('badly', inPhase('Failed'));
    expect(log('well')).toEqual(['begin succeeded', 'end succeeded', 'begin always', 'end always']);
    expect(end('well', 'failed')).toMatchObject(skipped('the app containers did not fail'));
    expect(log('badly')).toEqual(['begin failed', 'end failed', 'begin always', 'end always']);
    expect(end('badly', 'succeeded')).toMatchObject(skipped('the app containers did not succeed'));
  });

  test('failurePolicy: with FailPod a failed entry makes a completed Pod Failed, with Ignore it does not', async () => {
    const fails = (failurePolicy: string) => [
      entry('one', 'exit 4', { ...POST, failurePolicy }),
      entry('two', ':', POST),
    ];
    await applied('failed', fails('FailPod'), completes(0));
    await applied('ignored', fails('Ignore'), completes(0));
    expect((await record.until('failed', inPhase('Failed'))).status?.reason).toBe('DeferContainerFailed');
    await record.until('ignored', inPhase('Succeeded'));
    for (const name of ['failed', 'ignored']) expect(log(name)).toEqual(['begin one', 'begin two', 'end two']);
  });

  test('PreExit entries run while every app container waits in CrashLoopBackOff', async () => {
    await applied('crashing', [entry('one'), entry('two', ':', POST)], {
      app: [{ ...TELLING, script: 'echo crash >>/work/log; exit 3' }],
    });
    await record.until('crashing', waitsFor('app', 'CrashLoopBackOff'));
    await deletion('crashing');
    await record.gone('crashing');
    expect(log('crashing').filter((line) => line !== 'crash')).toEqual([
      'begin one',
      'end one',
      'begin two',
      'end two',
    ]);
    for (const name of ['one', 'two']) expect(end('crashing', name)).toMatchObject(ENDED);
  });

  test('the downward API shows the termination in files, and to entries in environment variables', async () => {
    const of = (field: string) => `status.termination.${field}`;
    const fields = ['reason', 'deadline', 'containers', 'exitCodes'];
    const items = fields.map((field) => ({ path: field, fieldRef: { fieldPath: of(field) } }));
    const env = fields.map((field) => ({ name: field, valueFrom: { fieldRef: { fieldPath: of(field) } } }));
    const volumeMounts = [...(TELLING['volumeMounts'] as object[]), { name: 'end', mountPath: '/end' }];
    const note = (source: string, text: string): string => `echo "${source}: ${text}" >>/work/log`;
    const preStop = { exec: { command: ['sh', '-c', note('hook', '$(cat /end/reason)')] } };
    const script = `${note('app', '$(cat /end/reason)')}; ${TELLING.script}`;
    const known = { volumeMounts, env };
    await started(
      'knowing',
      [
        entry('one', `${gate('one')}; ${note('one', '$(cat /end/reason) $(cat /end/deadline) $deadline')}`, known),
        entry('two', `${note('file', '$(cat /end/containers)')}; ${note('env', '$containers')}`, { ...POST, ...known }),
      ],
      {
        app: [{ ...TELLING, script, volumeMounts, lifecycle: { preStop } }],
        spec: { volumes: [{ name: 'end', downwardAPI: { items } }] },
      },
    );
    await untilLogged(lifepod, 'knowing', 'app: ');
    await deletion('knowing');
    await untilLogged(lifepod, 'knowing', 'hook: Deleted');
    const { deadline } = (await record.until('knowing', runs('one'))).status?.termination ?? {};
    openGate(lifepod, 'knowing', 'one');
    await record.gone('knowing');
    const noted = (source: string): string =>
      log('knowing')
        .find((line) => line.startsWith(`${source}: `))
        ?.slice(source.length + 2) ?? '';
    const [reason, inFile, inEnvironment] = noted('one').split(' ');
    expect(reason).toBe('Deleted');
    for (const time of [inFile, inEnvironment]) expect(parseTime(time)).toBe(parseTime(deadline));
    for (const source of ['file', 'env']) {
      const containers = JSON.parse(noted(source)) as TerminatedContainer[];
      expect(containers).toMatchObject([
        { name: 'app', kind: 'app', exitCode: 0, reason: 'Completed', restartCount: 0 },
      ]);
      expect(parseTime(containers[0]?.finishedAt)).toBeGreaterThan(0);
    }
    expect(record.now('knowing').status?.termination?.containers).toMatchObject([{ name: 'app', exitCode: 0 }]);
  });

  test('lifepod skip ends an entry that ignores its stop signal, one that backs off, and one that waits', async () => {
    const deaf = entry('deaf', 'trap "" TERM; while :; do sleep 1; done');
    const failing = entry('failing', 'exit 1', { restartPolicy: 'OnFailure' });
    await started('given-up', [deaf, entry('unwanted'), failing, entry('last', ':', POST)], {
      spec: { terminationGracePeriodSeconds: 100 },
    });
    await deletion('given-up');
    await record.until('given-up', runs('deaf'));
    for (const name of ['unwanted', 'deaf']) await lifepod.cliOk('skip', 'given-up', name);
    await record.until('given-up', waitsFor('failing', 'CrashLoopBackOff'));
    await lifepod.cliOk('skip', 'given-up', 'failing');
    await record.gone('given-up');
    expect(end('given-up', 'deaf')).toMatchObject({ exitCode: 137, reason: 'GivenUp' });
    expect(end('given-up', 'unwanted')).toMatchObject(skipped('given up'));
    expect(end('given-up', 'failing')?.reason).toBe('GivenUp');
    expect(end('given-up', 'last')).toMatchObject(ENDED);
    expect(record.now('given-up').status?.termination?.skip).toEqual(['unwanted', 'deaf', 'failing']);
    expect(log('given-up').slice(0, 2)).toEqual(['begin deaf', 'begin failing']);
    expect(log('given-up').slice(-3)).toEqual(['app stops', 'begin last', 'end last']);
  });
});
