import { describe, expect, test, vi } from 'vitest';
import { encodeOnce } from '../../../machinery/encode.ts';
import type { KubeObject } from '../../../machinery/meta.ts';
import type { ListOptions, WatchEvent, WatchOptions } from '../../../ports/backend.ts';
import { createMemoryStore } from '../../../store/memory/memory-store.ts';
import {
  CONFIG_MAPS,
  configMap,
  failure,
  NAMESPACES,
  object,
  PODS,
  pod,
  type Started,
  startRegistry,
} from '../testing.ts';

const names = (list: { items: KubeObject[] }): string[] => list.items.map(({ metadata }) => metadata.name);

/** ConfigMaps a to e in default and f in kube-system. The label odd is true for c, d and e, and false for a and b; f has no labels. */
async function withConfigMaps(options = {}): Promise<Started> {
  const started = await startRegistry(options);
  for (const [index, name] of ['c', 'a', 'e', 'b', 'd'].entries()) {
    const labels = { odd: String(index % 2 === 0) };
    await started.registry.create(CONFIG_MAPS, 'default', configMap(name, {}, { labels }));
  }
  await started.registry.create(CONFIG_MAPS, 'kube-system', configMap('f'));
  await started.settled();
  return started;
}

describe('list', () => {
  test('list sorts objects by namespace and name', async () => {
    const { registry } = await withConfigMaps();
    const list = await registry.list(CONFIG_MAPS, {});
    expect(list).toMatchObject({ apiVersion: 'v1', kind: 'ConfigMapList' });
    expect(list.metadata).toEqual({ resourceVersion: String(registry.revision()) });
    expect(names(list)).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
    expect(names(await registry.list(CONFIG_MAPS, { namespace: 'kube-system' }))).toEqual(['f']);
    expect(names(await registry.list(CONFIG_MAPS, { namespace: 'nowhere' }))).toEqual([]);
  });

  test.each<[ListOptions, string[]]>([
    [{ labelSelector: 'odd=true' }, ['c', 'd', 'e']],
    [{ labelSelector: '!odd' }, ['f']],
    [{ fieldSelector: 'metadata.name=a' }, ['a']],
    [{ fieldSelector: 'metadata.name=a', namespace: 'default' }, ['a']],
    [{ fieldSelector: 'metadata.name=a', namespace: 'kube-system' }, []],
    [{ fieldSelector: 'metadata.namespace=kube-system' }, ['f']],
    [{ fieldSelector: 'metadata.namespace!=kube-system', labelSelector: 'odd=false' }, ['a', 'b']],
  ])('list selects objects with %o', async (options, expected) => {
    const { registry } = await withConfigMaps();
    expect(names(await registry.list(CONFIG_MAPS, options))).toEqual(expected);
  });

  test.each<[string, (registry: Started['registry'], signal: AbortSignal) => Promise<unknown>]>([
    ['a list', (registry) => registry.list(CONFIG_MAPS, { labelSelector: '!a' })],
    [
      'the initial state of a watch',
      (registry, signal) =>
        new Promise((resolve) => {
          const sink = ({ object }: WatchEvent) =>
            (object as KubeObject).metadata.name === 'c999' && resolve(undefined);
          void registry.watch(CONFIG_MAPS, { labelSelector: '!a', resourceVersion: '0' }, sink, signal);
        }),
    ],
  ])('%s with a selector yields to the event loop', async (_, read) => {
    const { registry } = await startRegistry();
    for (let index = 0; index < 1000; index++) await registry.create(CONFIG_MAPS, 'default', configMap(`c${index}`));
    // Every step seems to take long.
    let now = 0;
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => (now += 30));
    const end = new AbortController();
    let over = false;
    const reading = read(registry, end.signal).finally(() => {
      over = true;
    });
    let turns = 0;
    for (; !over; turns++) await new Promise(setImmediate);
    await reading;
    end.abort();
    clock.mockRestore();
    expect(turns).toBeGreaterThan(5);
  });

  test('list selects Pods by their node', async () => {
    const { registry } = await startRegistry();
    await registry.create(PODS, 'default', pod('a', { nodeName: 'n1' }));
    await registry.create(PODS, 'default', pod('b', { nodeName: 'n2' }));
    expect(names(await registry.list(PODS, { fieldSelector: 'spec.nodeName=n2' }))).toEqual(['b']);
  });

  test('all pages of a list show the state of the first page', async () => {
    const { registry } = await withConfigMaps();
    const first = await registry.list(CONFIG_MAPS, { limit: 2 });
    expect(names(first)).toEqual(['a', 'b']);
    expect(first.metadata.remainingItemCount).toBe(4);
    await registry.delete(CONFIG_MAPS, 'default', 'c');
    await registry.create(CONFIG_MAPS, 'default', configMap('cc'));
    const second = await registry.list(CONFIG_MAPS, { limit: 3, continue: first.metadata.continue });
    expect(names(second)).toEqual(['c', 'd', 'e']);
    expect(second.metadata).toMatchObject({
      resourceVersion: first.metadata.resourceVersion,
      remainingItemCount: 1,
    });
    const last = await registry.list(CONFIG_MAPS, { limit: 3, continue: second.metadata.continue });
    expect(names(last)).toEqual(['f']);
    expect(last.metadata.continue).toBeUndefined();
  });

  test('pages of a list with a selector have no remainingItemCount', async () => {
    const { registry } = await withConfigMaps();
    const first = await registry.list(CONFIG_MAPS, { limit: 2, labelSelector: 'odd=true' });
    expect(names(first)).toEqual(['c', 'd']);
    expect(first.metadata.remainingItemCount).toBeUndefined();
    const rest = { limit: 2, labelSelector: 'odd=true', continue: first.metadata.continue };
    expect(names(await registry.list(CONFIG_MAPS, rest))).toEqual(['e']);
  });

  test('a list that continues at a compacted revision fails with 410, and the error has a token for the rest of the list', async () => {
    const { registry, store } = await withConfigMaps();
    const first = await registry.list(CONFIG_MAPS, { limit: 2 });
    await registry.delete(CONFIG_MAPS, 'default', 'd');
    await store.compact(store.revision());
    const continued = registry.list(CONFIG_MAPS, { continue: first.metadata.continue });
    await expect(continued).rejects.toMatchObject({
      status: {
        code: 410,
        reason: 'Expired',
        message: expect.stringMatching(/^The provided continue parameter is too old to display a consistent list/),
      },
    });
    const token = await continued.catch((error) => error.status.metadata.continue);
    expect(names(await registry.list(CONFIG_MAPS, { continue: token }))).toEqual(['c', 'e', 'f']);
    const exact = registry.list(CONFIG_MAPS, { resourceVersion: '3', resourceVersionMatch: 'Exact' });
    expect(await failure(exact)).toEqual({
      code: 410,
      reason: 'Expired',
      message: 'The resourceVersion for the provided list is too old.',
    });
  });

  test('a list at an exact revision returns the objects of that time', async () => {
    const { registry, settled } = await withConfigMaps();
    const { resourceVersion } = (await registry.list(CONFIG_MAPS, {})).metadata;
    await registry.delete(CONFIG_MAPS, 'default', 'c');
    await settled();
    const then = await registry.list(CONFIG_MAPS, { resourceVersion, resourceVersionMatch: 'Exact' });
    expect(names(then)).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
    expect(then.metadata.resourceVersion).toBe(resourceVersion);
    const fresh = await registry.list(CONFIG_MAPS, { resourceVersion, resourceVersionMatch: 'NotOlderThan' });
    expect(names(fresh)).toEqual(['a', 'b', 'd', 'e', 'f']);
  });

  test.each<[ListOptions, number, string]>([
    [{ fieldSelector: 'data.x=1' }, 400, 'field label not supported: data.x'],
    [{ continue: 'nonsense' }, 400, 'continue key is not valid'],
    [
      { resourceVersion: 'abc' },
      422,
      'ListOptions.meta.k8s.io "" is invalid: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax',
    ],
    [
      { resourceVersionMatch: 'Exact' },
      422,
      'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided',
    ],
    [
      { resourceVersionMatch: 'Exact', resourceVersion: '0' },
      422,
      'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
    ],
    [{ continue: 'x', resourceVersion: '5' }, 400, 'specifying resource version is not allowed when using continue'],
  ])('list refuses %o', async (options, code, message) => {
    const { registry } = await startRegistry();
    expect(await failure(registry.list(CONFIG_MAPS, options))).toMatchObject({ code, message });
  });

  test('list waits up to 3 s for a future revision', async () => {
    const { registry, timers } = await startRegistry();
    const next = registry.list(CONFIG_MAPS, { resourceVersion: String(registry.revision() + 1) });
    await registry.create(CONFIG_MAPS, 'default', configMap('a'));
    expect(names(await next)).toEqual(['a']);
    const never = failure(registry.list(CONFIG_MAPS, { resourceVersion: String(registry.revision() + 1) }));
    await Promise.resolve();
    timers.advance(3000);
    const current = registry.revision();
    expect(await never).toMatchObject({
      code: 504,
      message: `Too large resource version: ${current + 1}, current: ${current}`,
    });
  });

  test('get and list return the same object, which is encoded only once', async () => {
    const { registry } = await withConfigMaps();
    const [first] = (await registry.list(CONFIG_MAPS, {})).items as [KubeObject];
    expect(await registry.get(CONFIG_MAPS, 'default', 'a')).toBe(first);
    expect(JSON.parse(encodeOnce(first))).toEqual(first);
  });

  test('a registry serves the stored objects after a restart', async () => {
    const store = createMemoryStore();
    await withConfigMaps({ store });
    const { registry } = await startRegistry({ store });
    expect(names(await registry.list(CONFIG_MAPS, {}))).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
  });
});

function watching({ registry }: Started, options: WatchOptions, ref = CONFIG_MAPS) {
  const events: WatchEvent[] = [];
  const controller = new AbortController();
  const ended = registry.watch(ref, options, (event) => events.push(event), controller.signal);
  const shown = (): string[] =>
    events.map(
      (event) => `${event.type} ${'metadata' in event.object ? (event.object.metadata as { name?: string }).name : ''}`,
    );
  return { events, shown, ended, abort: () => controller.abort() };
}

describe('watch', () => {
  const labels = (value: string) => ({ labels: { app: value } });
  const inDefault = { namespace: 'default' };

  test('watch sends the current objects, then their changes', async () => {
    const started = await withConfigMaps();
    const { registry } = started;
    const watch = watching(started, { namespace: 'default' });
    expect(watch.shown()).toEqual(['ADDED a', 'ADDED b', 'ADDED c', 'ADDED d', 'ADDED e']);
    await registry.create(CONFIG_MAPS, 'default', configMap('x'));
    await registry.create(CONFIG_MAPS, 'kube-system', configMap('y'));
    await registry.update(CONFIG_MAPS, configMap('x', { k: 'v' }, inDefault));
    await registry.delete(CONFIG_MAPS, 'default', 'x');
    await started.settled();
    expect(watch.shown().slice(5)).toEqual(['ADDED x', 'MODIFIED x', 'DELETED x']);
    const last = watch.events.at(-1)?.object as KubeObject;
    expect(last).toMatchObject({ data: { k: 'v' }, metadata: { resourceVersion: String(registry.revision()) } });
    watch.abort();
    await watch.ended;
    await registry.create(CONFIG_MAPS, 'default', configMap('z'));
    await started.settled();
    expect(watch.events).toHaveLength(8);
  });

  test('watch sends only the changes after the requested resourceVersion', async () => {
    const started = await startRegistry();
    const { registry } = started;
    const a = await registry.create(CONFIG_MAPS, 'default', configMap('a'));
    await registry.create(CONFIG_MAPS, 'default', configMap('b'));
    const watch = watching(started, { resourceVersion: a.metadata.resourceVersion });
    await started.settled();
    expect(watch.shown()).toEqual(['ADDED b']);
  });

  test('watch reports ADDED and DELETED when an object starts and stops matching', async () => {
    const started = await startRegistry();
    const { registry } = started;
    const watch = watching(started, { labelSelector: 'app=x' });
    await registry.create(CONFIG_MAPS, 'default', configMap('a', {}, labels('y')));
    await registry.update(CONFIG_MAPS, configMap('a', { n: '1' }, { ...labels('x'), ...inDefault }));
    await registry.update(CONFIG_MAPS, configMap('a', { n: '2' }, { ...labels('x'), ...inDefault }));
    await registry.update(CONFIG_MAPS, configMap('a', { n: '3' }, { ...labels('y'), ...inDefault }));
    await registry.delete(CONFIG_MAPS, 'default', 'a');
    await started.settled();
    expect(watch.shown()).toEqual(['ADDED a', 'MODIFIED a', 'DELETED a']);
    expect(watch.events[2]?.object).toMatchObject({
      data: { n: '2' },
      metadata: { labels: { app: 'x' }, resourceVersion: String(registry.revision() - 1) },
    });
  });

  test('all watches get the same event object for a change', async () => {
    const started = await startRegistry();
    const watches = [watching(started, {}), watching(started, { namespace: 'default' })];
    await started.registry.create(CONFIG_MAPS, 'default', configMap('a'));
    await started.settled();
    expect(watches[0]?.events[0]).toBe(watches[1]?.events[0]);
    expect(watches[0]?.events[0]?.object).toBe(await started.registry.get(CONFIG_MAPS, 'default', 'a'));
  });

  test('watch ends with 410 if the requested resourceVersion is older than the event window', async () => {
    const started = await startRegistry();
    const { registry } = started;
    await registry.create(CONFIG_MAPS, 'default', configMap('a'));
    const old = String(registry.revision());
    for (let n = 0; n < 1001; n++) {
      await registry.update(CONFIG_MAPS, configMap('a', { n: String(n) }, inDefault));
    }
    await started.settled();
    const watch = watching(started, { resourceVersion: old });
    await watch.ended;
    expect(watch.events).toEqual([
      {
        type: 'ERROR',
        object: expect.objectContaining({
          code: 410,
          reason: 'Expired',
          message: `too old resource version: ${old} (${Number(old) + 1})`,
        }),
      },
    ]);
    expect(watching(started, { resourceVersion: String(Number(old) + 1) }).events).toHaveLength(1000);
  });

  test('watch sends the revision in a bookmark each minute and at the end', async () => {
    const started = await startRegistry();
    const watch = watching(started, { allowWatchBookmarks: true, timeoutSeconds: 90 });
    started.timers.advance(60_000);
    await started.registry.create(NAMESPACES, undefined, object('Namespace', 'x'));
    await started.settled();
    started.timers.advance(30_000);
    await watch.ended;
    const now = started.registry.revision();
    expect(watch.events).toEqual(
      [now - 1, now].map((revision) => ({
        type: 'BOOKMARK',
        object: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { resourceVersion: String(revision) } },
      })),
    );
  });

  test('watch sends no event at its end if bookmarks are not allowed', async () => {
    const started = await startRegistry();
    const watch = watching(started, { timeoutSeconds: 1 });
    started.timers.advance(1000);
    await watch.ended;
    expect(watch.events).toEqual([]);
  });

  test('watch sends an annotated bookmark after the initial events', async () => {
    const started = await withConfigMaps();
    const match = { resourceVersionMatch: 'NotOlderThan', allowWatchBookmarks: true } as const;
    const watch = watching(started, { ...match, namespace: 'kube-system', sendInitialEvents: true });
    await Promise.resolve();
    expect(watch.shown()).toEqual(['ADDED f', 'BOOKMARK undefined']);
    expect((watch.events[1] as WatchEvent).object.metadata).toEqual({
      resourceVersion: String(started.registry.revision()),
      annotations: { 'k8s.io/initial-events-end': 'true' },
    });
    expect(watching(started, { ...match, sendInitialEvents: false }).events).toEqual([]);
  });

  test('the total length of the selectors of all watches is limited, but short selectors are never refused', async () => {
    const started = await startRegistry();
    const labelSelector = Array.from({ length: 1000 }, (_, index) => `!label-of-a-long-selector-${index}`).join();
    const enough = new AbortController();
    const watch = (options: WatchOptions): Promise<void> =>
      started.registry.watch(CONFIG_MAPS, options, () => undefined, enough.signal);
    const count = Math.floor(2 ** 20 / labelSelector.length);
    const watches = Array.from({ length: count }, () => watch({ labelSelector }));
    expect(await failure(watch({ labelSelector }))).toMatchObject({ code: 429, reason: 'TooManyRequests' });
    watches.push(watch({ labelSelector: '!a,b!=c' }));
    enough.abort();
    await Promise.all(watches);
    expect(await watch({ labelSelector })).toBe(undefined);
  });

  test.each<[WatchOptions, number, string]>([
    [{ fieldSelector: 'data.x=1' }, 400, 'field label not supported: data.x'],
    [
      { sendInitialEvents: true },
      422,
      'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan',
    ],
    [
      { resourceVersionMatch: 'NotOlderThan' },
      422,
      'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided',
    ],
  ])('watch refuses %o', async (options, code, message) => {
    const started = await startRegistry();
    expect(await failure(watching(started, options).ended)).toMatchObject({ code, message });
  });
});
