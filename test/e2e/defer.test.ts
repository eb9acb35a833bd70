/** src/simulation/defer-*.test.ts test the rules in virtual time. */
import { describe, expect } from 'vitest';
import type { Pod } from '../../src/api/generated/types.ts';
import { parseTime } from '../../src/machinery/time.ts';
import { startClient } from '../support/client-command.ts';
import { deferPod, entry, gate, killPause, logOf, openGate, POST, TELLING } from '../support/defer-pods.ts';
import { KUBECTL } from '../support/kubectl.ts';
import { condition, ended, inPhase, isReady, runs, statusOf } from '../support/pods.ts';
import { lifepod, record, testInFileNamespace as test } from '../support/shared-engine.ts';

async function started(...args: DropFirst<Parameters<typeof deferPod>>): Promise<Pod> {
  const manifest = deferPod(lifepod, ...args);
  await lifepod.apply(manifest);
  return record.until(args[0], isReady);
}
type DropFirst<T extends unknown[]> = T extends [unknown, ...infer Rest] ? Rest : never;

const deletion = (name: string, ...options: string[]): Promise<void> =>
  lifepod.delete('pod', name, '--wait=false', ...options);
const log = (name: string): string[] => logOf(lifepod, name);
const open = (name: string, ...gates: string[]): void => openGate(lifepod, name, ...gates);
const end = (name: string, container: string) => statusOf(record.now(name), container).state?.terminated;
const deadlineOf = ({ status }: Pod): number => parseTime(status?.termination?.deadline) ?? Number.NaN;
const startOf = ({ status }: Pod): number => parseTime(status?.termination?.startedAt) ?? Number.NaN;
const verdict = (name: string): string | undefined => condition(record.now(name), 'Deferred')?.reason;
const fieldEnv = (name: string, fieldPath: string): object => ({ name, valueFrom: { fieldRef: { fieldPath } } });
const KNOWS = {
  env: [
    fieldEnv('REASON', 'status.termination.reason'),
    fieldEnv('DEADLINE', 'status.termination.deadline'),
    fieldEnv('EXIT_CODES', 'status.termination.exitCodes'),
  ],
};
const DEAF = 'trap "" TERM; while :; do sleep 1; done';

describe.concurrent('defer containers', () => {
  test('a deletion runs PreExit defer containers, stops the app, runs PostExit ones, and kubectl shows the progress', async () => {
    await started('ordered', [
      entry('one', `echo told by one; ${gate('one')}`),
      entry('two', gate('two')),
      entry('three', gate('three'), POST),
    ]);
    const watch = startClient(lifepod, KUBECTL, ['get', 'pod', 'ordered', '-w']);
    await watch.printed(/^ordered +1\/1 +Running /m);
    await deletion('ordered');
    await watch.printed(/^ordered +1\/1 +Defer:0\/3 /m);
    await record.until('ordered', runs('one'));
    expect(await lifepod.execOk('ordered', '-c', 'one', '--', 'cat', '/work/log')).toBe('begin one\n');
    expect(await lifepod.cliOk('logs', 'ordered', '-c', 'one')).toBe('told by one\n');
    open('ordered', 'one');
    await watch.printed(/^ordered +1\/1 +Defer:1\/3 /m);
    open('ordered', 'two');
    await watch.printed(/^ordered +0\/1 +Defer:2\/3 /m);
    open('ordered', 'three');
    await watch.printed(/^ordered +0\/1 +Terminating /m);
    await record.gone('ordered');
    watch.kill('SIGTERM');
    await watch.ended;
    expect(log('ordered')).toEqual([
      'begin one',
      'end one',
      'begin two',
      'end two',
      'app stops',
      'begin three',
      'end three',
    ]);
    expect(verdict('ordered')).toBe('DeferContainersSucceeded');
    expect(record.now('ordered').status?.termination?.reason).toBe('Deleted');
    for (const reason of ['DeferStarted', 'DeferCompleted'])
      await record.event('ordered', new RegExp(`^Normal ${reason}: `));
  });

  test('defer containers of an evicted Pod get the reason, the deadline and the exit codes as variables', async () => {
    const tells = 'echo "$REASON $DEADLINE $EXIT_CODES" >>/work/log';
    await started('evicted', [entry('one', tells, KNOWS), entry('two', tells, { ...POST, ...KNOWS })]);
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'evicted' } };
    const path = `/api/v1/namespaces/${lifepod.namespace}/pods/evicted/eviction`;
    const answer = await lifepod.kubectlInput(JSON.stringify(eviction), 'create', '--raw', path, '-f', '-');
    expect(JSON.parse(answer.stdout)).toMatchObject({ kind: 'Status', status: 'Success', code: 201 });
    await record.gone('evicted');
    const last = record.now('evicted');
    expect(condition(last, 'DisruptionTarget')).toMatchObject({
      status: 'True',
      reason: 'EvictionByEvictionAPI',
      message: 'Eviction API: evicting',
    });
    const { deadline } = last.status?.termination ?? {};
    expect(log('evicted')).toEqual([
      'begin one',
      `Evicted ${deadline} {}`,
      'end one',
      'app stops',
      'begin two',
      `Evicted ${deadline} {"app":0}`,
      'end two',
    ]);
  });

  test('a Pod that completes runs its defer containers once, and does not repeat them when it is deleted', async () => {
    const tells = 'echo "$REASON $EXIT_CODES" >>/work/log';
    await lifepod.apply(
      deferPod(lifepod, 'completed', [entry('one', tells, KNOWS), entry('two', tells, { ...POST, ...KNOWS })], {
        app: [{ ...TELLING, script: 'echo app ends >>/work/log; exit 3' }],
        spec: { restartPolicy: 'Never' },
      }),
    );
    await record.until('completed', inPhase('Failed'));
    const phases = record.history('completed').map(({ pod }) => pod.status?.phase ?? 'Pending');
    expect(phases.filter((phase, index) => phase !== phases[index - 1]).slice(-2)).toEqual(['Terminating', 'Failed']);
    const lines = ['begin one', 'Completed {"app":3}', 'end one', 'begin two', 'Completed {"app":3}', 'end two'];
    expect(log('completed')).toEqual(['app ends', ...lines]);
    await deletion('completed');
    await record.gone('completed');
    expect(log('completed')).toHaveLength(7);
  });

  test('defer containers run within the grace period after the Pod has exceeded activeDeadlineSeconds', async () => {
    await started('late', [entry('one', 'echo "$REASON" >>/work/log', KNOWS), entry('two', ':', POST)], {
      spec: { activeDeadlineSeconds: 15 },
    });
    await record.until('late', inPhase('Failed'));
    expect(log('late')).toEqual(['begin one', 'DeadlineExceeded', 'end one', 'app stops', 'begin two', 'end two']);
    expect(record.now('late').status).toMatchObject({ reason: 'DeadlineExceeded' });
    await deletion('late', '--now');
  });

  test('a deletion with --grace-period=0 --force runs no defer container', async () => {
    await started('forced', [entry('one'), entry('two', ':', POST)]);
    await lifepod.delete('pod', 'forced', '--grace-period=0', '--force');
    await record.gone('forced');
    await started('after-forced', []);
    expect(log('forced').filter((line) => line !== 'app stops')).toEqual([]);
    await deletion('after-forced', '--now');
  });

  test('a deletion with --now stops PreExit defer containers after 1 s, kills them 2 s later, and still runs PostExit ones', async () => {
    await started('hurried', [entry('one', DEAF), entry('two'), entry('three', ':', POST)]);
    const began = Date.now();
    await deletion('hurried', '--now');
    expect((await record.gone('hurried')) - began).toBeLessThan(15_000);
    // The first entry may or may not start within the second that --now leaves.
    const begun = log('hurried').filter((line) => line !== 'begin one');
    expect(begun).toEqual(['app stops', 'begin three', 'end three']);
    for (const name of ['one', 'two']) expect(end('hurried', name)?.exitCode).toBe(137);
    expect(end('hurried', 'two')?.reason).toBe('Skipped');
    expect(verdict('hurried')).toBe('GracePeriodExceeded');
  });

  test('a second delete with a shorter grace period moves the deadline of defer containers to an earlier time', async () => {
    await started('shortened', [entry('one', 'sleep 3600 & wait $!')], {
      spec: { terminationGracePeriodSeconds: 600 },
    });
    await deletion('shortened');
    const first = await record.until('shortened', runs('one'));
    expect(deadlineOf(first) - startOf(first)).toBe(600_000);
    await deletion('shortened', '--grace-period=2');
    const second = await record.until('shortened', (pod) => deadlineOf(pod) < deadlineOf(first));
    expect(deadlineOf(second) - startOf(second)).toBeLessThan(10_000);
    await record.gone('shortened');
    expect(end('shortened', 'one')?.reason).toBe('DeadlineExceeded');
  });

  test('the loss of the sandbox ends a PreExit defer container, and PostExit defer containers run in a new sandbox', async () => {
    await started('lost', [entry('one', gate('one')), entry('two', ':', POST)]);
    await deletion('lost');
    await killPause(lifepod, await record.until('lost', runs('one')));
    await record.gone('lost');
    expect(log('lost').filter((line) => line !== 'app stops')).toEqual(['begin one', 'begin two', 'end two']);
    expect(end('lost', 'two')).toMatchObject({ reason: 'Completed', exitCode: 0 });
    expect(end('lost', 'one')?.exitCode).toBe(137);
  });

  test('a grace period extension by count moves the deadline of defer containers, but not deletionTimestamp', async () => {
    await started('counted', [entry('one', gate('one'))], {
      spec: {
        terminationGracePeriodSeconds: 2,
        deferContainerGracePeriodExtensionInterval: 3,
        deferContainerGracePeriodExtensionCount: 5,
      },
    });
    await deletion('counted');
    const first = await record.until('counted', ({ status }) => status?.termination !== undefined);
    const moved = await record.until('counted', (pod) => deadlineOf(pod) === startOf(first) + 8000);
    expect(moved.metadata.deletionTimestamp).toBe(first.metadata.deletionTimestamp);
    open('counted', 'one');
    await record.gone('counted');
    expect(end('counted', 'one')?.reason).toBe('Completed');
    await record.event('counted', /DeferCompleted/);
    expect(record.events('counted').filter((line) => line.includes('ExtendGracePeriod'))).toHaveLength(2);
  });

  test('a grace period extension by liveness moves the deadline of defer containers with each probe success', async () => {
    const livenessProbe = { exec: { command: ['true'] }, periodSeconds: 1, timeoutSeconds: 10 };
    await started('lively', [entry('one', gate('one'), { livenessProbe })], {
      spec: { terminationGracePeriodSeconds: 8, deferContainerGracePeriodExtension: true },
    });
    await deletion('lively');
    const moved = await record.until('lively', (pod) => deadlineOf(pod) > startOf(pod) + 12_000);
    expect(Date.now()).toBeLessThan(deadlineOf(moved) + 1500);
    open('lively', 'one');
    await record.gone('lively');
    expect(end('lively', 'one')?.reason).toBe('Completed');
  });

  test('the status of failed defer containers shows a timeout, retries, a missing image and the end of the log', async () => {
    const failOnce = 'if [ ! -e /work/tried ]; then touch /work/tried; echo not yet; exit 4; fi';
    await started('failing', [
      entry('slow', 'sleep 3600 & wait $!', { timeoutSeconds: 1 }),
      entry('retried', failOnce, { restartPolicy: 'OnFailure' }),
      entry('absent', ':', { image: '127.0.0.1:1/absent:1' }),
      entry('loud', 'echo all went wrong; exit 7', POST),
      entry('last', ':', POST),
    ]);
    await deletion('failing');
    const retried = await record.until('failing', ended('retried'));
    expect(statusOf(retried, 'retried')).toMatchObject({
      restartCount: 1,
      state: { terminated: { exitCode: 0, reason: 'Completed' } },
      lastState: { terminated: { exitCode: 4, message: 'not yet\n' } },
    });
    await record.gone('failing');
    expect(end('failing', 'slow')?.reason).toBe('DeadlineExceeded');
    expect(end('failing', 'absent')).toMatchObject({
      reason: 'Error',
      message: expect.stringMatching(/^ErrImagePull: /),
    });
    expect(end('failing', 'loud')).toMatchObject({ reason: 'Error', exitCode: 7, message: 'all went wrong\n' });
    expect(end('failing', 'last')).toMatchObject({ reason: 'Completed', exitCode: 0 });
    expect(condition(record.now('failing'), 'Deferred')).toMatchObject({
      status: 'False',
      reason: 'DeferContainersFailed',
      message: 'defer containers that failed: [slow absent loud]',
    });
    await record.event('failing', /DeferCompleted/);
    expect(record.events('failing').filter((line) => line.includes('DeferContainerFailed'))).toHaveLength(3);
  });

  test('connections to a host port of a defer container are forwarded to the defer container', async () => {
    const serve = 'echo served | nc -l -p 8080';
    await started('served', [entry('one', serve, { ports: [{ containerPort: 8080, hostPort: 18_080 }] })]);
    await deletion('served');
    const pod = await record.until('served', runs('one'));
    const asks = `until nc ${pod.status?.hostIP} 18080 </dev/null >/work/answer && [ -s /work/answer ]; do usleep 50000; done; cat /work/answer`;
    const shared = { volumes: [{ name: 'answer', emptyDir: {} }] };
    await lifepod.apply(
      deferPod(lifepod, 'asking', [], {
        app: [{ ...TELLING, name: 'app', script: `${asks} >>/work/log` }],
        spec: { restartPolicy: 'Never', ...shared },
      }),
    );
    await record.until('asking', inPhase('Succeeded'));
    expect(log('asking')).toEqual(['served']);
    await record.gone('served');
    await deletion('asking');
  });
});
