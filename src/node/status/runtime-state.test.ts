import { expect, it } from 'vitest';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import type { ImageInfo } from '../../runtime/runtime.ts';
import { createRuntimeState } from './runtime-state.ts';

const setUp = () => {
  const timers = createVirtualTimers();
  const asked: PromiseWithResolvers<string[]>[] = [];
  const images: ImageInfo[] = [];
  let answered = 0;
  const source = createRuntimeState({
    runtime: {
      notReady: () => {
        const question = Promise.withResolvers<string[]>();
        asked.push(question);
        return question.promise;
      },
      version: async () => ({ name: 'containerd', version: 'v2.0.0', apiVersion: 'v1' }),
      listImages: async () => images,
    },
    timers,
    signal: new AbortController().signal,
    answered: () => answered++,
  });
  return { timers, asked, source, images, answered: () => answered };
};

it('a hanging runtime is reported as down after 30 s, and without delay from then on, until it answers', async () => {
  const { timers, asked, source, answered } = setUp();
  const first = source.read();
  asked[0]?.resolve([]);
  expect(await first).toEqual({ problems: [], version: 'containerd://2.0.0', images: [] });

  const hanging = source.read();
  timers.advance(29_999);
  expect(await Promise.race([hanging, 'nothing yet'])).toBe('nothing yet');
  timers.advance(1);
  const down = { problems: ['container runtime is down: it has not answered for 30 s'], version: 'containerd://2.0.0' };
  expect(await hanging).toMatchObject(down);
  expect(await source.read()).toMatchObject(down);
  expect([asked.length, answered()]).toEqual([2, 0]);

  asked[1]?.resolve(['NetworkReady is false']);
  await new Promise(setImmediate);
  expect(answered()).toBe(1);
  const again = source.read();
  asked[2]?.resolve([]);
  expect((await again).problems).toEqual([]);
});

it('a runtime that refuses a call is reported as down with the reason', async () => {
  const { asked, source } = setUp();
  const read = source.read();
  asked[0]?.reject(new Error('connection refused'));
  expect((await read).problems).toEqual(['container runtime is down: connection refused']);
});

it('the state keeps the listed images although another call of the same read failed', async () => {
  const { asked, source, images } = setUp();
  images.push({ id: 'sha256:a', tags: ['a:1'], digests: [], sizeBytes: 1 });
  const first = source.read();
  await new Promise(setImmediate);
  asked[0]?.reject(new Error('busy'));
  expect((await first).images).toHaveLength(1);
  const second = source.read();
  asked[1]?.resolve([]);
  expect((await second).images).toHaveLength(1);
});
