import { describe, expect, it } from 'vitest';
import type { PullProgress } from '../../api/core/v1/pod/status/pull-progress.ts';
import { systemTimers } from '../../platform/node-js.ts';
import {
  type ContainerRuntime,
  type ImageInfo,
  OutcomeUnknownError,
  type RegistryCredential,
} from '../../runtime/runtime.ts';
import { createImagePuller, pullAlone } from './puller.ts';

const never = new AbortController().signal;
const user = (username: string): RegistryCredential => ({ username, password: 'secret' });

function registry(more: Partial<ContainerRuntime> = {}) {
  const asked: { reference: string; user: string | undefined; signal: AbortSignal; answer: (error?: Error) => void }[] =
    [];
  const runtime = {
    pullImage: (reference: string, credential: RegistryCredential | undefined, signal: AbortSignal) =>
      new Promise<string>((resolve, reject) => {
        const answer = (error?: Error): void => (error === undefined ? resolve(reference) : reject(error));
        asked.push({ reference, user: credential?.username, signal, answer });
        signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      }),
    imageStatus: async (id: string): Promise<ImageInfo> => ({ id, tags: [id], digests: [], sizeBytes: 7 }),
    ...more,
  };
  return { runtime, asked, references: () => asked.map(({ reference }) => reference) };
}

const setUp = (maxParallel: number, more: Partial<ContainerRuntime> = {}) => {
  const { runtime, ...rest } = registry(more);
  const puller = createImagePuller({ runtime, timers: systemTimers(), maxParallel });
  const reports: Record<string, PullProgress[]> = {};
  const pull = (reference: string, credentials: RegistryCredential[] = [], signal = never) => {
    reports[reference] = [];
    return puller.pull(reference, credentials, (progress) => reports[reference]?.push(progress), signal);
  };
  return { pull, reports, ...rest };
};
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

it('a pull with an unknown outcome does not try further credentials', async () => {
  const { pull, asked } = setUp(1);
  const pulled = pull('a:1', [user('first'), user('second')]);
  await settled();
  const unknown = new OutcomeUnknownError('connection dropped');
  asked[0]?.answer(unknown);
  await expect(pulled).rejects.toBe(unknown);
  expect(asked).toHaveLength(1);
});

it('a pull rejects if the image no longer exists after it', async () => {
  const { runtime } = registry({ pullImage: async (reference) => reference, imageStatus: async () => undefined });
  await expect(pullAlone(runtime, systemTimers(), 'a:1', never)).rejects.toThrow(
    'the image "a:1" no longer exists after its pull',
  );
});

describe('the limit on parallel pulls', () => {
  it('pulls beyond the limit wait in order, and report that they wait', async () => {
    const { pull, asked, references, reports } = setUp(2);
    const all = ['a:1', 'b:1', 'c:1', 'd:1'].map((reference) => pull(reference));
    await settled();
    expect(references()).toEqual(['a:1', 'b:1']);
    expect(reports).toEqual({ 'a:1': [], 'b:1': [], 'c:1': [{ state: 'waiting' }], 'd:1': [{ state: 'waiting' }] });
    asked[1]?.answer();
    await all[1];
    await settled();
    expect(references()).toEqual(['a:1', 'b:1', 'c:1']);
    asked[0]?.answer(new Error('no'));
    await expect(all[0]).rejects.toThrow('no');
    await settled();
    expect(references()).toEqual(['a:1', 'b:1', 'c:1', 'd:1']);
    asked[2]?.answer();
    asked[3]?.answer();
    expect((await all[3])?.info.id).toBe('d:1');
  });

  it('a pull that is aborted while it waits does not count towards the limit', async () => {
    const { pull, asked, references } = setUp(1);
    const first = pull('a:1');
    const abort = new AbortController();
    const second = pull('b:1', [], abort.signal);
    const third = pull('c:1');
    abort.abort(new Error('given up'));
    await expect(second).rejects.toThrow('given up');
    asked[0]?.answer();
    await first;
    await settled();
    expect(references()).toEqual(['a:1', 'c:1']);
    asked[1]?.answer();
    await third;
  });
});

describe('concurrent requests for the same image', () => {
  it('concurrent requests for an image share a pull if their credentials are equal', async () => {
    const { pull, asked, references } = setUp(5);
    const all = [pull('a:1', [user('x')]), pull('a:1', [user('x')]), pull('a:1', [user('y')]), pull('a:1')];
    await settled();
    expect(references()).toEqual(['a:1', 'a:1', 'a:1']);
    for (const { answer } of asked) answer();
    const found = await Promise.all(all);
    expect(found.map(({ info }) => info.id)).toEqual(['a:1', 'a:1', 'a:1', 'a:1']);
    const again = pull('a:1');
    await settled();
    expect(asked.length).toBe(4);
    asked[3]?.answer();
    await again;
  });

  it('a shared pull runs until the last of its requests is aborted', async () => {
    const { pull, asked } = setUp(5);
    const [one, two] = [new AbortController(), new AbortController()];
    const first = pull('a:1', [], one.signal);
    const second = pull('a:1', [], two.signal);
    await settled();
    one.abort(new Error('given up'));
    await expect(first).rejects.toThrow('given up');
    expect(asked[0]?.signal.aborted).toBe(false);
    two.abort(new Error('given up too'));
    await expect(second).rejects.toThrow('given up too');
    expect(asked[0]?.signal.aborted).toBe(true);
    const third = pull('a:1');
    await settled();
    asked[1]?.answer();
    expect((await third).info.id).toBe('a:1');
  });
});

describe('credentials', () => {
  it('a pull tries the credentials in order until the registry accepts one', async () => {
    const { pull, asked } = setUp(5);
    const pulled = pull('a:1', [user('x'), user('y'), user('z')]);
    await settled();
    asked[0]?.answer(new Error('401'));
    await settled();
    asked[1]?.answer();
    expect((await pulled).info.id).toBe('a:1');
    expect(asked.map((each) => each.user)).toEqual(['x', 'y']);
  });

  it('a pull rejects with each reason once if the registry refuses all credentials', async () => {
    const { pull, asked } = setUp(5);
    const pulled = pull('a:1', [user('x'), user('y'), user('z')]);
    const refused = expect(pulled).rejects.toThrow('[401, 403]');
    for (const [index, reason] of ['401', '403', '401'].entries()) {
      await settled();
      asked[index]?.answer(new Error(reason));
    }
    await refused;
  });
});

describe('progress', () => {
  it('the progress of a slow pull is reported with the byte counts of the runtime', async () => {
    const names: string[][] = [];
    const looked = Promise.withResolvers<void>();
    const { pull, asked, reports } = setUp(5, {
      pullProgress: async (wanted) => {
        names.push([...wanted]);
        looked.resolve();
        return new Map([['docker.io/library/a:1', { doneBytes: 1, totalBytes: 4 }]]);
      },
    });
    const pulled = pull('a:1');
    await looked.promise;
    await settled();
    asked[0]?.answer();
    await pulled;
    expect(names).toEqual([['docker.io/library/a:1']]);
    expect(reports['a:1']).toEqual([{ state: 'pulling', doneBytes: 1, totalBytes: 4 }]);
  });
});
