import { describe, expect, test } from 'vitest';
import type { Pod } from '../../api/generated/types.ts';
import type { ContainerState } from '../../lifecycle/types.ts';
import { createRunLookup } from '../pod/run-lookup.ts';
import { createStreamSource } from './stream-source.ts';

const POD = { namespace: 'default', name: 'p', uid: 'u' };
const ALL = { stdin: true, stdout: true, stderr: true, tty: false };
const { signal } = new AbortController();

const run = (attempt: number, state: ContainerState['state'], name = 'app'): ContainerState => ({
  id: `${name}-${attempt}`,
  sandboxId: 's',
  name,
  kind: 'app',
  attempt,
  state,
  createdAt: 0,
  image: 'busybox',
  imageId: 'busybox',
  backoffSeconds: 0,
});

function source(containers: ContainerState[], ready = true, failure?: Error) {
  const runs = createRunLookup({
    logsRoot: '/logs',
    podOf: () => ({ metadata: { name: 'p' } }) as Pod,
    logEnded: async () => undefined,
  });
  runs.observed('u', { sandboxes: [{ id: 's', attempt: 0, ready, createdAt: 0, ips: [] }], containers });
  const asked: unknown[] = [];
  const answer = async (...query: unknown[]): Promise<string> => {
    asked.push(query.slice(0, -1));
    if (failure !== undefined) throw failure;
    return 'http://127.0.0.1:1/token';
  };
  const streams = createStreamSource(
    runs,
    { exec: answer, attach: answer, portForward: answer },
    async () => () => undefined,
  );
  return { streams, asked, runs };
}

describe('selection of the target', () => {
  test('exec and attach use the running run of the container', async () => {
    const { streams, asked } = source([run(0, 'exited'), run(1, 'running'), run(0, 'running', 'other')]);
    expect(await streams.exec(POD, 'app', { ...ALL, command: ['ls', '-l'] }, signal)).toEqual({
      url: 'http://127.0.0.1:1/token',
    });
    await streams.attach(POD, 'app', ALL, signal);
    expect(asked).toEqual([
      ['app-1', ['ls', '-l'], ALL],
      ['app-1', ALL],
    ]);
  });

  test('port-forward uses the sandbox of the Pod', async () => {
    const { streams, asked } = source([]);
    await streams.portForward(POD, [80], signal);
    expect(asked).toEqual([['s', [80]]]);
  });
});

describe("refusals with upstream's messages", () => {
  const refused = (message: string) => ({
    status: { code: 500, message: `Internal error occurred: unable to upgrade connection: ${message}` },
  });

  test.each([
    ['not started', [run(0, 'created')]],
    ['finished', [run(0, 'exited')]],
    ['named differently', [run(0, 'running', 'other')]],
    ['missing', []],
  ])('exec and attach to a container that is %s are refused', async (_what, containers) => {
    const { streams, asked } = source(containers);
    const expected = refused('container not found ("app")');
    await expect(streams.exec(POD, 'app', { ...ALL, command: ['ls'] }, signal)).rejects.toMatchObject(expected);
    await expect(streams.attach(POD, 'app', ALL, signal)).rejects.toMatchObject(expected);
    expect(asked).toEqual([]);
  });

  test('streams of a Pod that does not exist, or no longer exists, are refused', async () => {
    const expected = refused('pod not found ("p_default")');
    await expect(source([], false).streams.portForward(POD, [], signal)).rejects.toMatchObject(expected);
    const { streams, runs } = source([run(0, 'running')]);
    runs.observed('u', { sandboxes: [], containers: [] });
    await expect(streams.portForward(POD, [], signal)).rejects.toMatchObject(expected);
    await expect(streams.attach(POD, 'app', ALL, signal)).rejects.toMatchObject(refused('container not found ("app")'));
  });

  test("attach passes on the runtime's refusal", async () => {
    const { streams } = source([run(0, 'running')], true, new Error('rpc error: code = Unknown desc = no'));
    await expect(streams.attach(POD, 'app', ALL, signal)).rejects.toMatchObject(
      refused('rpc error: code = Unknown desc = no'),
    );
  });
});
