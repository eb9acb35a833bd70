import protobuf from 'protobufjs';
import { expect, test, vi } from 'vitest';
import { loadDefinitions } from './definitions.ts';

test('the definitions of the services are complete after a first attempt to load them has failed', () => {
  const loadSync = vi.spyOn(protobuf.Root.prototype, 'loadSync');
  loadSync.mockImplementationOnce(() => {
    throw new Error('missing');
  });
  expect(loadDefinitions).toThrow('missing');
  expect(loadDefinitions().services.has('runtime.v1.RuntimeService')).toBe(true);
});
