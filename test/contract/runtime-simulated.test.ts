import { systemTimers } from '../../src/platform/node-js.ts';
import { createSimulatedRuntime } from '../../src/runtime/simulated/simulated-runtime.ts';
import { PROGRAMS, runtimeContract } from './runtime-contract.ts';

const image = 'busybox:1.28';

runtimeContract('simulated', async () => {
  const runtime = createSimulatedRuntime({
    timers: systemTimers(),
    script: ({ name }) => PROGRAMS[name as keyof typeof PROGRAMS].script,
    images: [image],
  });
  return { runtime, image, logDirectory: '/simulated', beginsWithResync: false, close: () => runtime.close() };
});
