import { BUSYBOX, startRealRuntime } from '../integration/containerd-fixture.ts';
import { runtimeContract } from './runtime-contract.ts';

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
