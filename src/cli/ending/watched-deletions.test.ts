import { expect, test, vi } from 'vitest';
import type { Node, Pod } from '../../api/generated/types.ts';
import { NODES, PODS } from '../../api/resources.ts';
import { registryBackend } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { createEndReports, endAllPods } from '../end-pods.ts';
import { withWatchedDeletions } from './watched-deletions.ts';

async function withPods(gracePeriodSeconds: number | undefined, graces: Record<string, number>) {
  const timers = createVirtualTimers();
  const backend = await registryBackend({ timers });
  const client = clientOf(backend);
  const pods = client.resource<Pod>(PODS);
  for (const [name, terminationGracePeriodSeconds] of Object.entries(graces)) {
    const spec = { nodeName: 'n', containers: [{ name: 'app', image: 'x' }], terminationGracePeriodSeconds };
    await backend.set<Pod>(PODS, { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'default' }, spec });
  }
  const said: string[] = [];
  const platform = { timers, log: silentLog };
  const say = (line: string): void => void said.push(line);
  const reportsSince = (since: number) => createEndReports('n', say, since);
  const watching = { client, platform, say, reports: reportsSince(timers.now()), gracePeriodSeconds };
  const graceOf = async (name: string) => (await pods.get(name, 'default')).metadata.deletionGracePeriodSeconds;
  return { backend, pods, timers, said, graceOf, reportsSince, watching, signal: new AbortController().signal };
}

test('a Pod that another component deletes gets the short grace period, and other Pods are not deleted', async () => {
  const { pods, said, graceOf, watching, signal } = await withPods(2, { owned: 60, other: 60 });
  await withWatchedDeletions(watching, signal, async () => {
    await pods.delete('owned', 'default', {});
    await vi.waitFor(async () => expect(await graceOf('owned')).toBe(2));
  });
  expect(await graceOf('other')).toBeUndefined();
  expect(said).toEqual(['ending default/owned (grace 2 s)']);
});

test('Pods that other components delete are reported once, with the longest wait and how to end it', async () => {
  const { pods, said, watching, signal } = await withPods(undefined, { short: 30, long: 60, same: 60, other: 90 });
  await withWatchedDeletions(watching, signal, async () => {
    for (const name of ['short', 'long', 'same']) await pods.delete(name, 'default', {});
    await vi.waitFor(() => expect(said.join()).toContain('default/same'));
  });
  expect(said).toEqual([
    'ending default/short (grace 30 s)',
    'ending default/long (grace 60 s)',
    'waiting up to 60 s: to end them sooner, press Ctrl+C, and type the command again with --now',
    'ending default/same (grace 60 s)',
  ]);
});

test.each([
  [undefined, 'default/web is already ending (50 s left)', 'waiting up to 50 s'],
  [90, 'default/web is already ending (50 s left)', undefined],
  [2, 'ending default/web (grace 2 s)', undefined],
])('with the grace period %j, a Pod that was deleted earlier is reported as "%s"', async (seconds, line, wait) => {
  const { pods, timers, said, reportsSince, watching, signal } = await withPods(seconds, { web: 60 });
  await pods.delete('web', 'default', {});
  timers.advance(10_000);
  await withWatchedDeletions({ ...watching, reports: reportsSince(timers.now()) }, signal, () =>
    vi.waitFor(() => expect(said).toHaveLength(wait === undefined ? 1 : 2)),
  );
  expect(said[0]).toBe(line);
  expect(said[1]?.split(':')[0]).toBe(wait);
});

test('a Pod that another component deletes is not promised a longer grace period than its own', async () => {
  const { pods, said, watching, signal } = await withPods(90, { owned: 60 });
  await withWatchedDeletions(watching, signal, async () => {
    await pods.delete('owned', 'default', {});
    await vi.waitFor(() => expect(said).toEqual(['ending default/owned (grace 60 s)']));
  });
});

test('the turn of a defer container of a Pod that another component deletes is reported', async () => {
  const { backend, pods, said, watching, signal } = await withPods(undefined, { owned: 30 });
  await withWatchedDeletions(watching, signal, async () => {
    await pods.delete('owned', 'default', {});
    await vi.waitFor(() => expect(said).toEqual(['ending default/owned (grace 30 s)']));
    const termination = { reason: 'Deleted', startedAt: '2026-01-31T00:00:00Z', deadline: '2026-01-31T00:00:30Z' };
    const bye = { name: 'bye', image: 'x', imageID: '', ready: false, restartCount: 0, state: { running: {} } };
    const status = { phase: 'Running', termination, deferContainerStatuses: [bye] } as Pod['status'];
    await backend.set<Pod>(PODS, { ...(backend.objects(PODS)[0] as Pod), status });
    await vi.waitFor(() => expect(said.slice(1)).toEqual(['  default/owned: defer container bye (1 of 1)']));
  });
});

test('a Pod and a node of which an earlier step has reported are not reported again', async () => {
  const { backend, pods, said, watching, signal } = await withPods(undefined, { owned: 60 });
  const message = 'container runtime is down: rpc error: code = Unavailable desc = connect ENOENT /c.sock';
  const conditions = [{ type: 'Ready', status: 'False', reason: 'KubeletNotReady', message }];
  await backend.set<Node>(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' }, status: { conditions } });
  for (let count = 0; count < 2; count++)
    await withWatchedDeletions(watching, signal, async () => {
      if (count === 0) await pods.delete('owned', 'default', {});
      await vi.waitFor(() => expect(said).toHaveLength(3));
    });
  const { client, platform, say, reports } = watching;
  const ended = endAllPods(client, platform, 'n', say, signal, { reports });
  const deletes = () => backend.calls.filter((call) => call.startsWith('delete pods'));
  await vi.waitFor(() => expect(deletes()).toHaveLength(2));
  await backend.remove(PODS, 'default', 'owned');
  await ended;
  expect(said.toSorted()).toEqual([
    expect.stringMatching(/^ended default\/owned /),
    'ending default/owned (grace 60 s)',
    expect.stringMatching(/^waiting up to 60 s/),
    expect.stringMatching(/^waiting: container runtime is down/),
  ]);
});
