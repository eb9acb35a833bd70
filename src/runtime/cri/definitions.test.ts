import protobuf from 'protobufjs';
import { expect, test, vi } from 'vitest';

test('the definitions of the services are complete after a first attempt to load them has failed', async () => {
  // Other test files have loaded the definitions into the shared module. The query makes this one another module.
  const fresh: string = './definitions.ts?fresh';
  const { loadDefinitions } = (await import(fresh)) as typeof import('./definitions.ts');
  const loadSync = vi.spyOn(protobuf.Root.prototype, 'loadSync');
  loadSync.mockImplementationOnce(() => {
    throw new Error('missing');
  });
  expect(loadDefinitions).toThrow('missing');
  expect(loadDefinitions().services.has('runtime.v1.RuntimeService')).toBe(true);
});
