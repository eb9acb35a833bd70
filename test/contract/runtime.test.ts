import { systemTimers } from '../../src/platform/node.ts';
import { createSimulatedRuntime } from '../../src/runtime/simulated/simulated-runtime.ts';
import { BUSYBOX, startRealRuntime } from '../integration/containerd-fixture.ts';
import { PROGRAMS, runtimeContract } from './runtime-contract.ts';

runtimeContract('CRI on a real containerd', async () => {
  const real = await startRealRuntime();
  return {
    runtime: real.runtime,
    image: BUSYBOX,
    logDirectory: real.where.logDirectory,
    beginsWithResync: true,
    close: real.close,
  };
});

runtimeContract('simulated', async () => {
  const runtime = createSimulatedRuntime({
    timers: systemTimers(),
    script: ({ name }) => PROGRAMS[name as keyof typeof PROGRAMS].script,
    images: [BUSYBOX],
  });
  return {
    runtime,
    image: BUSYBOX,
    logDirectory: '/nowhere',
    beginsWithResync: false,
    close: () => runtime.close(),
  };
});
