import { afterAll, afterEach, expect, test, vi } from 'vitest';
import { type Connection, connect, RuntimeCallError } from './connection.ts';
import { driverOf, readRuntimeConfig } from './runtime-config.ts';

// Test files share the loaded modules, so this file loads its own copies, and the next file loads the original modules.
vi.hoisted(() => vi.resetModules());
afterAll(() => {
  vi.doUnmock('./connection.ts');
  vi.resetModules();
});
vi.mock('./connection.ts', { spy: true });
afterEach(() => vi.mocked(connect).mockReset());

const config = (options: object | null): string =>
  JSON.stringify({ containerd: { defaultRuntimeName: 'runc', runtimes: { runc: { options } } } });

test.each([
  [undefined, undefined],
  ['{}', undefined],
  ['null', undefined],
  ['[crio]\ncgroup_manager = "systemd"', undefined],
  [JSON.stringify({ containerd: { defaultRuntimeName: 'kata', runtimes: {} } }), undefined],
  [config(null), 'cgroupfs'],
  [config({ SystemdCgroup: false }), 'cgroupfs'],
  [config({ SystemdCgroup: true }), 'systemd'],
] as const)('driverOf() returns for the configuration %s the cgroup driver %s', (text, driver) => {
  expect(driverOf(text)).toBe(driver);
});

const { signal } = new AbortController();
const unimplemented = new RuntimeCallError('Unimplemented', 'unknown method RuntimeConfig');

/** `info`: in the verbose status. `answer`: the response to CRI's RuntimeConfig. */
async function read(info: Record<string, string>, answer: object | Error) {
  let isClosed = false;
  vi.mocked(connect).mockReturnValue({
    unary: async (method: string) => {
      if (method.endsWith('/Status')) return { info };
      if (answer instanceof Error) throw answer;
      return answer;
    },
    close: () => {
      isClosed = true;
    },
  } as unknown as Connection);
  const read = await readRuntimeConfig('unix:///a', signal).catch((error: Error) => error);
  expect(isClosed).toBe(true);
  return read;
}

test.each([
  ['SYSTEMD', 'systemd'],
  ['CGROUPFS', 'cgroupfs'],
])('the cgroup driver %s of RuntimeConfig takes precedence over the verbose status', async (cgroupDriver, driver) => {
  const info = { config: config({ SystemdCgroup: driver === 'cgroupfs' }) };
  expect(await read(info, { linux: { cgroupDriver } })).toEqual({ cgroupDriver: driver, sandboxImage: undefined });
});

test.each([
  ['does not have RuntimeConfig', unimplemented],
  ['does not report the driver there', { linux: null }],
])('the configuration comes from the verbose status if the runtime %s', async (_, answer) => {
  const text = JSON.stringify({ ...JSON.parse(config({ SystemdCgroup: true })), sandboxImage: 'pause:3' });
  expect(await read({ config: text }, answer)).toEqual({ cgroupDriver: 'systemd', sandboxImage: 'pause:3' });
});

test('another error of RuntimeConfig is thrown', async () => {
  expect(await read({}, new RuntimeCallError('Unavailable', 'no answer'))).toMatchObject({ code: 'Unavailable' });
});
