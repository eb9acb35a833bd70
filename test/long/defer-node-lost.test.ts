import { expect, test } from 'vitest';
import { parseTime } from '../../src/machinery/time.ts';
import { nodePlatform, systemTimers } from '../../src/platform/node-js.ts';
import { clearRunState } from '../../src/runtime/containerd/run-state.ts';
import { deferPod, entry, logOf, POST } from '../support/defer-pods.ts';
import { lifepod, record, recordAgain, useOwnEngine } from '../support/own-engine.ts';
import { isReady, runs, statusOf } from '../support/pods.ts';

useOwnEngine();

test('after a failure of the machine, PostExit entries run in a new sandbox, even if the deadline has passed', async () => {
  const entries = [entry('one', 'sleep 3600 & wait $!'), entry('two', ':', POST)];
  await lifepod.apply(deferPod(lifepod, 'in-time', entries, { spec: { terminationGracePeriodSeconds: 600 } }));
  await lifepod.apply(deferPod(lifepod, 'too-late', entries, { spec: { terminationGracePeriodSeconds: 4 } }));
  for (const name of ['in-time', 'too-late']) await record.until(name, isReady);
  await lifepod.kubectlOk('delete', 'pod', 'in-time', 'too-late', '--wait=false');
  const [late] = await Promise.all(['too-late', 'in-time'].map((name) => record.until(name, runs('one'))));
  const deadline = parseTime(late?.status?.termination?.deadline) ?? Number.NaN;
  await lifepod.kill('SIGKILL');
  await clearRunState({ dataDir: lifepod.dataDir, ...nodePlatform('error') });
  const timers = systemTimers();
  await new Promise<void>((resolve) => void timers.at(deadline + 1, resolve));
  await lifepod.up();
  await recordAgain();
  await Promise.all(['in-time', 'too-late'].map((name) => record.gone(name)));
  for (const name of ['in-time', 'too-late']) {
    expect(logOf(lifepod, name)).toEqual(['begin one', 'begin two', 'end two']);
    expect(statusOf(record.now(name), 'one').state?.terminated?.reason).toBe('SandboxLost');
    expect(statusOf(record.now(name), 'two').state?.terminated?.reason).toBe('Completed');
  }
});
