/**
 * Large bodies of slow requests must wait or be refused, and small bodies must not wait for them. The tests send about 500 MB, so they run
 * in `npm run test:long`.
 */
import { describe, expect, test } from 'vitest';
import { LARGE } from './hostile-fixture.ts';
import { type Answer, startTestServer } from './server-fixture.ts';

describe('bodies of slow requests', () => {
  /** A PodRecord may be larger than a ConfigMap. */
  const PATH = '/apis/lifepod.io/v1/namespaces/default/podrecords';
  const recordOf = (name: string, length: number): string => {
    const step = { key: 'a', at: '2026-01-31T00:00:00.000000Z', type: 'Step', message: 'x'.repeat(length) };
    return JSON.stringify({ metadata: { name }, podName: 'web', podUID: 'u', transitions: [step] });
  };

  /**
   * No create request finishes before `answer` is called, except for objects named `small`. Sends bodies until the server has no room for
   * another body of LARGE bytes.
   */
  async function startFullServer() {
    const slow = await startTestServer();
    const [isFull, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const create = slow.backend.create.bind(slow.backend);
    const begun: string[] = [];
    slow.backend.create = async (request, object, options) => {
      begun.push(object.metadata.name);
      if (begun.length === 23) isFull.resolve();
      if (object.metadata.name !== 'small') await answered.promise;
      return create(request, object, options);
    };
    const post = (name: string, length: number, signal?: AbortSignal): Promise<Answer> =>
      slow.call('POST', PATH, { body: recordOf(name, length), signal });
    const full = Array.from({ length: 23 }, (_, index) => post(`full-${index}`, LARGE));
    await isFull.promise;
    return { ...slow, post, full, begun, answer: answered.resolve };
  }

  test('slow requests delay other large bodies, which wait after they are read, but not small bodies', async () => {
    await using slow = await startFullServer();
    const large = Array.from({ length: 5 }, (_, index) => slow.post(`large-${index}`, LARGE));
    for (let index = 0; index < 10; index++) {
      expect((await slow.post('small', 60_000)).code).toBe(index === 0 ? 201 : 409);
    }
    expect(slow.begun.filter((name) => name.startsWith('large'))).toEqual([]);
    slow.answer();
    for (const { code } of await Promise.all([...slow.full, ...large])) expect(code).toBe(201);
  });

  test('a large body that waits is refused if all waiting bodies exceed the room for bodies that are being read', async () => {
    await using slow = await startFullServer();
    const large = Array.from({ length: 24 }, (_, index) => slow.post(`large-${index}`, LARGE));
    expect(await Promise.race(large)).toMatchObject({ code: 429, json: { reason: 'TooManyRequests' } });
    slow.answer();
    const codes = (await Promise.all(large)).map(({ code }) => code);
    expect(codes.filter((code) => code === 429)).toHaveLength(1);
    expect(codes.filter((code) => code === 201)).toHaveLength(23);
    await Promise.all(slow.full);
  });

  test('a client that disconnects while its body waits does not delay other clients', async () => {
    await using slow = await startFullServer();
    const leave = new AbortController();
    const left = slow.post('left', LARGE, leave.signal).catch(() => 'left');
    const next = slow.post('next', 900_000);
    // When these five requests have responses, the server has read the body of `left`. When the next five requests have responses, the
    // server has noticed that the client of `left` has disconnected.
    for (let index = 0; index < 5; index++) await slow.post('small', 60_000);
    leave.abort();
    expect(await left).toBe('left');
    for (let index = 0; index < 5; index++) await slow.post('small', 60_000);
    slow.answer();
    expect((await next).code).toBe(201);
    await Promise.all(slow.full);
    expect(slow.begun).not.toContain('left');
  });
});
