/** Gives each test of a file that calls useRegistry() a new registry in virtual time. */
import { afterEach, beforeEach } from 'vitest';
import { type RegistryBackend, registryBackend, withInformers } from '../client/registry-fixture.ts';
import { clientOf } from '../client/typed-client.ts';
import { silentLog } from '../platform/silent-log.ts';
import { createVirtualTimers, type VirtualTimers } from '../platform/virtual-timers.ts';
import type { ControllerOptions } from './controller.ts';

export let backend: RegistryBackend;
export let timers: VirtualTimers;
let stop: AbortController;

export function useRegistry(): void {
  beforeEach(async () => {
    timers = createVirtualTimers();
    backend = await registryBackend({ timers });
    stop = new AbortController();
  });
  afterEach(() => stop.abort());
}

/** Options for controllers that run until the end of the test or until stopControllers(). */
export const controllerOptions = (): ControllerOptions =>
  withInformers({ client: clientOf(backend), timers, log: silentLog, signal: stop.signal });

export function stopControllers(): void {
  stop.abort();
  stop = new AbortController();
}

/** Resolves when the controllers have processed all changes so far. */
export async function settled(): Promise<void> {
  timers.advance(0);
  for (let turn = 0; turn < 200; turn++) await new Promise(setImmediate);
}
