import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { deferPod, entry, logOf, POST } from '../../support/defer-pods.ts';
import { LAUNCHER, scratchFolder, startLifepod } from '../../support/lifepod.ts';
import { pod } from '../../support/manifests.ts';

const IGNORES_STOP = [{ name: 'app', script: 'trap "" TERM; while :; do sleep 3600 & wait $!; done' }];
const LONG = { terminationGracePeriodSeconds: 3000 };

test('Ctrl+C ends lifepod down with one line, for which up --detach waits, and the engine runs its workloads again; lifepod down --now beside another one ends the Pods soon, with their destructors', async () => {
  const scratch = scratchFolder();
  try {
    const lifepod = await startLifepod({ scratch });
    const withList = deferPod(lifepod, 'with-list', [entry('bye', ':', POST)], { app: IGNORES_STOP, spec: LONG });
    await lifepod.apply(withList);
    const template = { metadata: { labels: { app: 'web' } }, spec: pod('web')['spec'] };
    const selector = { matchLabels: { app: 'web' } };
    await lifepod.apply({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web' },
      spec: { selector, template },
    });
    await lifepod.kubectlOk('rollout', 'status', 'deployment/web', '--timeout=60s');
    const fixed = pod('fixed', { app: IGNORES_STOP, spec: LONG });
    writeFileSync(join(lifepod.dataDir, 'manifests', 'fixed.yaml'), JSON.stringify(fixed));
    await lifepod.until(['get', 'pods', '-w', '--no-headers'], (_, lines) =>
      ['with-list', 'fixed-node-1'].every((name) => lines.some((line) => new RegExp(`^${name} +1/1 `).test(line))),
    );

    const first = spawn(LAUNCHER, ['down', '--data-dir', lifepod.dataDir], { stdio: ['ignore', 'pipe', 'pipe'] });
    const [closed, errors] = [once(first, 'close'), text(first.stderr)];
    let said = '';
    for await (const chunk of first.stdout.iterator({ destroyOnReturn: false })) {
      said += String(chunk);
      if (
        ['ending default/with-list', 'ending default/fixed-node-1', 'ended default/web-'].every((line) =>
          said.includes(line),
        )
      )
        break;
    }
    first.stdout.resume();
    const up = spawn(LAUNCHER, ['up', '--detach', '--data-dir', lifepod.dataDir], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const [upClosed, printed] = [once(up, 'close'), text(up.stdout)];
    const [waits] = await once(up.stderr, 'data');
    expect(String(waits)).toContain('waiting for another process of lifepod');
    up.stderr.resume();
    first.kill('SIGINT');
    expect([(await upClosed)[0], await printed]).toEqual([0, `export KUBECONFIG=${lifepod.dataDir}/kubeconfig\n`]);
    expect((await closed)[0]).toBe(130);
    expect(await errors).toBe(
      `lifepod: interrupted: Pods that are ending continue to end; type 'lifepod down --data-dir ${lifepod.dataDir}' again\n`,
    );
    expect(await lifepod.kubectlOk('get', 'pods', '-o', 'name')).toContain('pod/with-list');
    await lifepod.kubectlOk('rollout', 'status', 'deployment/web', '--timeout=60s');

    const [now, other] = await Promise.all([lifepod.cliOk('down', '--now'), lifepod.cliOk('down')]);
    for (const each of [now, other]) expect(each).toMatch(/^nothing from \S+ is running or mounted any more$/m);
    expect(now).toContain('ending default/with-list (grace 1 s)\n');
    expect(now).toContain('ended default/fixed-node-1 ');
    expect(logOf(lifepod, 'with-list')).toEqual(['begin bye', 'end bye']);
  } finally {
    await scratch.remove();
  }
});
