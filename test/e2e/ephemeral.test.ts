import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect } from 'vitest';
import type { Pod } from '../../src/api/generated/types.ts';
import type { CommandResult } from '../../src/platform/processes.ts';
import { pod, WAIT } from '../support/manifests.ts';
import { ended, inPhase, isReady, restarted, runs, signalFirst, statusOf, waitsFor } from '../support/pods.ts';
import { lifepod, record, testInFileNamespace as test } from '../support/shared-engine.ts';

const finished = (name: string): Promise<void> => lifepod.delete('pod', name, '--now', '--wait=false');
const debug = (name: string, container: string, options: string[], ...command: string[]): Promise<string> =>
  lifepod.kubectlOk(
    'debug',
    name,
    '--image=busybox:1.28',
    '--profile=general',
    '-c',
    container,
    ...options,
    '--',
    ...command,
  );
const started = async (name: string, options: Parameters<typeof pod>[1] = {}): Promise<Pod> => {
  await lifepod.apply(pod(name, options));
  return record.until(name, isReady);
};
async function replace(name: string, ephemeralContainers: object[]): Promise<CommandResult> {
  const live = await lifepod.get<Pod>('pod', name);
  const body = { ...live, spec: { ...live.spec, ephemeralContainers } };
  const path = `/api/v1/namespaces/${lifepod.namespace}/pods/${name}/ephemeralcontainers`;
  return lifepod.kubectlInput(JSON.stringify(body), 'replace', '--raw', path, '-f', '-');
}
/** Runs the command line in a new pseudo-terminal, and writes `typed` when the prompt of a shell appears. */
async function inTerminal(line: string, typed: string): Promise<{ code: number; output: string }> {
  const child = spawn('script', ['-qefc', line, '/dev/null'], {
    env: { ...process.env, KUBECONFIG: lifepod.kubeconfig, HOME: lifepod.dataDir },
    stdio: ['pipe', 'pipe', 'inherit'],
    timeout: 60_000,
  });
  let output = '';
  let hasTyped = false;
  child.stdout.on('data', (piece: Buffer) => {
    output += piece.toString();
    if (hasTyped || !output.includes('# ')) return;
    hasTyped = true;
    child.stdin.write(typed);
  });
  const [code] = (await once(child, 'close')) as [number];
  return { code, output };
}
const debugger1 = { name: 'debugger', image: 'busybox:1.28', command: ['true'] };

describe.concurrent('ephemeral containers', () => {
  describe('kubectl debug', () => {
    test('kubectl debug --target shares the process namespace of the target container only', async () => {
      await started('target', {
        app: [
          { name: 'app', script: 'exec sleep 31415' },
          { name: 'other', script: 'exec sleep 27182' },
        ],
      });
      await debug('target', 'with', ['--target=app'], 'sh', '-c', 'ps');
      await debug('target', 'without', [], 'sh', '-c', 'ps');
      for (const name of ['with', 'without']) await record.until('target', ended(name));
      const [inside, outside] = await Promise.all(
        ['with', 'without'].map((name) => lifepod.kubectlOk('logs', 'target', '-c', name)),
      );
      expect(inside).toMatch(/^ +1 root +sleep 31415$/m);
      expect(inside).not.toContain('27182');
      expect(outside).not.toMatch(/31415|27182/);
      expect(outside).toMatch(/^ +1 root /m);
      await finished('target');
    });

    test('kubectl describe and logs show an ephemeral container, which changes neither Ready nor restart counts', async () => {
      const before = await started('shown');
      await debug('shown', 'fails', [], 'sh', '-c', 'echo looked; exit 3');
      const after = await record.until('shown', ended('fails'));
      expect(statusOf(after, 'fails')).toMatchObject({
        restartCount: 0,
        ready: false,
        state: { terminated: { exitCode: 3, reason: 'Error' } },
      });
      expect(after.status?.ephemeralContainerStatuses).toHaveLength(1);
      expect(statusOf(after, 'app')).toEqual(statusOf(before, 'app'));
      const conditions = ({ status }: Pod) => status?.conditions?.map(({ observedGeneration: _, ...each }) => each);
      expect(conditions(after)).toEqual(conditions(before));
      expect(await lifepod.kubectlOk('logs', 'shown', '-c', 'fails')).toBe('looked\n');
      expect(await lifepod.kubectlOk('logs', 'shown', '--all-containers')).toContain('looked\n');
      expect(await lifepod.kubectlOk('describe', 'pod', 'shown')).toMatch(
        /^Ephemeral Containers:\n {2}fails:\n(?: .*\n)* +Exit Code: +3$/m,
      );
      expect(await lifepod.kubectlOk('get', 'pod', 'shown')).toMatch(/^shown +1\/1 +Running +0 /m);
      await finished('shown');
    });

    test('an ephemeral container reports that its target container is not running, and starts when the target runs', async () => {
      const init = { name: 'init', script: 'trap "exit 0" TERM; while :; do sleep 3600 & wait $!; done' };
      await lifepod.apply(pod('early', { init: [init] }));
      await record.until('early', runs('init'));
      await debug('early', 'with', ['--target=app'], 'true');
      const waiting = await record.until('early', waitsFor('with', 'CreateContainerConfigError'));
      const message = 'unable to find target container app';
      expect(statusOf(waiting, 'with').state?.waiting?.message).toBe(message);
      expect(await record.event('early', /^Warning/)).toBe(`Warning Failed: Error: ${message}`);
      expect(await lifepod.cliOk('why', 'early')).toContain(`ephemeral container with cannot be started, ${message}.`);
      await signalFirst(lifepod, 'early', 'init', 'TERM');
      expect(statusOf(await record.until('early', ended('with')), 'with').state?.terminated?.exitCode).toBe(0);
      await finished('early');
    });

    test('kubectl debug -it attaches a terminal to the ephemeral container', async () => {
      await started('attached');
      const command = 'kubectl debug attached -it --image=busybox:1.28 --profile=general -c shell --target=app -- sh';
      const { code, output } = await inTerminal(command, 'tty; echo "2 * 3 = $((2 * 3))"; exit 7\n');
      expect(output).toMatch(/\/dev\/pts\/0\r\n2 \* 3 = 6\r\n/);
      expect(code).toBe(0);
      expect(statusOf(await record.until('attached', ended('shell')), 'shell').state?.terminated?.exitCode).toBe(7);
      await finished('attached');
    });

    test('an ephemeral container that waits for its image affects neither Ready nor the deletion of the Pod', async () => {
      await started('patient');
      const absent = { name: 'absent', image: '127.0.0.1:1/none:1' };
      expect((await replace('patient', [absent])).code).toBe(0);
      const waiting = await record.until('patient', waitsFor('absent', 'ErrImagePull', 'ImagePullBackOff'));
      expect(isReady(waiting)).toBe(true);
      const began = Date.now();
      await lifepod.delete('pod', 'patient', '--wait=false');
      expect((await record.gone('patient')) - began).toBeLessThan(10_000);
    });
  });

  describe('validation', () => {
    const forbidden = 'Forbidden: cannot be set for an Ephemeral Container';
    test('an ephemeral container needs an image, a unique name and an existing target, and has no ports, probes, resources or hooks', async () => {
      await started('judged', { init: [{ name: 'init', script: 'true' }] });
      const probe = { exec: { command: ['true'] } };
      const cases: [object, string][] = [
        [{ ports: [{ containerPort: 80 }] }, `spec.ephemeralContainers[0].ports: ${forbidden}`],
        [{ livenessProbe: probe }, `spec.ephemeralContainers[0].livenessProbe: ${forbidden}`],
        [{ readinessProbe: probe }, `spec.ephemeralContainers[0].readinessProbe: ${forbidden}`],
        [{ startupProbe: probe }, `spec.ephemeralContainers[0].startupProbe: ${forbidden}`],
        [{ lifecycle: { preStop: probe } }, `spec.ephemeralContainers[0].lifecycle: ${forbidden}`],
        [{ resources: { limits: { cpu: '1' } } }, `spec.ephemeralContainers[0].resources: ${forbidden}`],
        [{ targetContainerName: 'none' }, 'spec.ephemeralContainers[0].targetContainerName: Not found: "none"'],
        [{ name: 'init' }, 'spec.ephemeralContainers[0].name: Duplicate value: "init"'],
        [{ image: '' }, 'spec.ephemeralContainers[0].image: Required value'],
      ];
      await Promise.all(
        cases.map(async ([fields, message]) => {
          const result = await replace('judged', [{ ...debugger1, ...fields }]);
          expect(result.code).toBe(1);
          expect(result.stderr).toContain(message);
        }),
      );
      await finished('judged');
    });

    test('an ephemeral container can be added only through the subresource, and can be neither changed nor removed', async () => {
      await started('fixed');
      expect((await replace('fixed', [debugger1])).code).toBe(0);
      await record.until('fixed', ended('debugger'));
      const removed = await replace('fixed', []);
      expect(removed.stderr).toContain(
        'spec.ephemeralContainers: Forbidden: existing ephemeral containers "debugger" may not be removed',
      );
      const changed = await replace('fixed', [{ ...debugger1, command: ['false'] }]);
      expect(changed.stderr).toContain(
        'spec.ephemeralContainers: Forbidden: existing ephemeral containers "debugger" may not be changed',
      );
      const patched = await lifepod.kubectl(
        'patch',
        'pod',
        'fixed',
        '-p',
        JSON.stringify({ spec: { ephemeralContainers: [{ ...debugger1, name: 'second' }] } }),
      );
      expect(patched.code).toBe(1);
      expect(patched.stderr).toContain('spec: Forbidden: pod updates may not change fields other than');
      const manifest = pod('created', { spec: { ephemeralContainers: [debugger1] } });
      const created = await lifepod.kubectlInput(JSON.stringify(manifest), 'create', '-f', '-');
      expect(created.stderr).toContain('spec.ephemeralContainers: Forbidden: cannot be set on create');
      await finished('fixed');
    });
  });

  describe('lifecycle', () => {
    test('an ephemeral container is not restarted, even when the app container is', async () => {
      await started('once', { app: [{ name: 'app', script: `echo; ${WAIT}` }], spec: { restartPolicy: 'Always' } });
      await debug('once', 'brief', [], 'false');
      await debug('once', 'long', [], 'sleep', '3600');
      await record.until('once', (pod) => ended('brief')(pod) && runs('long')(pod));
      const before = record.now('once');
      await signalFirst(lifepod, 'once', 'app', 'TERM');
      const after = await record.until('once', (pod) => restarted('app', 1)(pod) && isReady(pod));
      expect(after.status?.ephemeralContainerStatuses).toEqual(before.status?.ephemeralContainerStatuses);
      await finished('once');
    });

    test('an ephemeral container does not keep a Pod from completing, and is stopped when the Pod completes', async () => {
      await started('over', {
        app: [{ name: 'app', script: 'trap "exit 0" USR1; while :; do sleep 3600 & wait $!; done' }],
        spec: { restartPolicy: 'Never', terminationGracePeriodSeconds: 1 },
      });
      await debug('over', 'long', [], 'sleep', '3600');
      await record.until('over', runs('long'));
      await signalFirst(lifepod, 'over', 'app', 'USR1');
      const over = await record.until('over', inPhase('Succeeded'));
      expect(statusOf(over, 'long').state?.terminated?.exitCode).toBe(137);
      await finished('over');
    });
  });
});

test('kill -9 of the engine leaves running and ended ephemeral containers unchanged', async () => {
  await started('lasting');
  await debug('lasting', 'brief', [], 'sh', '-c', 'echo once; exit 2');
  await debug('lasting', 'long', ['--target=app'], 'sh', '-c', `echo begun; ${WAIT}`);
  const before = await record.until('lasting', (pod) => ended('brief')(pod) && runs('long')(pod));
  record.end();
  await lifepod.kill('SIGKILL');
  await lifepod.up();
  // By the time the new engine has run another container of the Pod, it has adopted the existing containers.
  await debug('lasting', 'later', [], 'true');
  const after = await record.until('lasting', ended('later'));
  for (const name of ['brief', 'long', 'app']) expect(statusOf(after, name)).toEqual(statusOf(before, name));
  expect(await lifepod.kubectlOk('logs', 'lasting', '-c', 'brief')).toBe('once\n');
  expect(await lifepod.kubectlOk('logs', 'lasting', '-c', 'long')).toBe('begun\n');
  await lifepod.delete('pod', 'lasting');
});
