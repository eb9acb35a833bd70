import { access, mkdir, rm, symlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Pod, Volume } from '../../api/generated/types.ts';
import { CONFIG_MAPS } from '../../api/resources.ts';
import { uidOf } from '../../machinery/meta.ts';
import { createSerialByKey, type SerialByKey } from '../../platform/serial-by-key.ts';
import { OutcomeUnknownError } from '../../runtime/runtime.ts';
import type { FollowedObjects } from './followed-objects.ts';
import { createMountedPods, type MountedPods } from './mounted-pods.ts';
import { fileSourceKey } from './references.ts';
import {
  annotationVolume,
  configMapVolume,
  podWith,
  type SetUpFixture,
  setUpFixture,
  tokenVolume,
} from './set-up-fixture.ts';

const never = new AbortController().signal;
const RETRY = 30_000;
/** The age at which a token that is valid for an hour is replaced. */
const TOKEN_AGE = 2_700_000;
const VOLUME = configMapVolume('a');
const POD = podWith([VOLUME]);
const TOKEN = tokenVolume('token', 3600);
const DOWNWARD = { downwardAPI: annotationVolume('note').downwardAPI ?? {} };
const NOT_FOUND = 'MountVolume.SetUp failed for volume "a" : configmap "a" not found';

let on: SetUpFixture;
let closing: AbortController;
let operations: SerialByKey;
let pods: MountedPods;
let retried: string[];

beforeEach(async () => {
  on = await setUpFixture();
  closing = new AbortController();
  operations = createSerialByKey();
  retried = [];
  const objects: FollowedObjects = { follow: () => undefined, unfollow: () => undefined };
  const ports = { ...on.ports, objects, operations, signal: closing.signal };
  pods = createMountedPods({ ...ports, onRetry: (uid) => retried.push(uid) });
});
afterEach(async () => {
  closing.abort();
  await on.close();
});

async function mount(pod: Pod): Promise<void> {
  await operations.run(uidOf(pod), () => pods.mount(pod, never));
  await idle(pod);
}
const rewrite = (pod: Pod): Promise<void> => operations.run(uidOf(pod), () => pods.rewrite(pod, never));
const change = (name = 'a'): void => pods.objectChanged(fileSourceKey('configmaps', 'a', name));
const textOf = (pod = POD, volume = VOLUME): Promise<string> => on.text(pod, volume, 'key');
const reads = (): number => on.backend.calls.filter((call) => call.startsWith('get ')).length;
const token = (pod: Pod): Promise<string> => on.text(pod, TOKEN, 'token');

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
async function idle(pod = POD): Promise<void> {
  for (await turn(); operations.pending(uidOf(pod)) !== undefined; await turn()) await operations.pending(uidOf(pod));
}

test('a change of an object rewrites the volumes of the Pods that refer to the object, and of no other Pod', async () => {
  const scratch: Volume = { name: 'scratch', emptyDir: {} };
  const [pod, other] = [podWith([VOLUME, scratch]), podWith([configMapVolume('b')], 'other')];
  for (const name of ['a', 'b']) await on.write(name, { key: 'old' });
  await mount(pod);
  await mount(other);
  await rm(on.folder(pod, scratch), { recursive: true });
  for (const name of ['a', 'b']) await on.write(name, { key: 'new' });
  change();
  await idle();
  await idle(other);
  expect([await textOf(), await textOf(other, configMapVolume('b'))]).toEqual(['new', 'old']);
  // The node writes no files into this volume, so rewriting does not set up the volume again.
  await expect(access(on.folder(pod, scratch))).rejects.toThrow('ENOENT');
  expect([retried, on.warnings, on.started]).toEqual([[], [], []]);
});

test('a change of an object requests another mount of a Pod whose mount has failed, and updates it after a mount that succeeds', async () => {
  await expect(mount(POD)).rejects.toThrow(NOT_FOUND);
  await on.write('a', { key: 'old' });
  const before = reads();
  change();
  await idle();
  expect([retried, reads() - before]).toEqual([['u1'], 0]);
  await mount(POD);
  await on.write('a', { key: 'new' });
  change();
  await idle();
  expect([retried, await textOf()]).toEqual([['u1'], 'new']);
});

test('a change during a mount is applied after the mount', async () => {
  await on.write('a', { key: 'old' });
  const held = on.holdReads();
  const mounted = mount(POD);
  await turn();
  expect(held.waiting()).toBe(1);
  change();
  await turn();
  held.release();
  await mounted;
  expect([reads(), on.warnings]).toEqual([2, []]);
});

test('operations on sixteen Pods do not delay the update of another Pod', async () => {
  await on.write('a', { key: 'old' });
  const all = Array.from({ length: 17 }, (_, index) => podWith([VOLUME], `u${index}`));
  for (const pod of all) await mount(pod);
  await on.write('a', { key: 'new' });
  const busy = all.slice(0, 16);
  const pull = Promise.withResolvers<void>();
  for (const pod of busy) void operations.run(uidOf(pod), () => pull.promise);
  change();
  await turn();
  await idle(all[16]);
  const texts = (): Promise<string[]> => Promise.all(all.map((pod) => textOf(pod)));
  expect(await texts()).toEqual([...busy.map(() => 'old'), 'new']);
  pull.resolve();
  for (const pod of busy) await idle(pod);
  expect(await texts()).toEqual(all.map(() => 'new'));
});

test('no update starts for a Pod that was unregistered while another operation was under way', async () => {
  await on.write('a', { key: 'old' });
  await mount(POD);
  const pull = Promise.withResolvers<void>();
  void operations.run('u1', () => pull.promise);
  change();
  await turn();
  pods.forget('u1');
  const before = reads();
  pull.resolve();
  await idle();
  expect([reads() - before, retried, on.warnings]).toEqual([0, [], []]);
});

test('an update of the Pod rewrites its volumes only if they contain a changed field', async () => {
  const volume = annotationVolume('note');
  const noted = (note: string, other = ''): Pod => podWith([volume], 'u1', { note, other });
  pods.update(noted('unknown Pod'));
  await mount(noted('one'));
  pods.update(noted('one', 'changed'));
  expect(operations.pending('u1')).toBeUndefined();
  pods.update(noted('two', 'changed'));
  await idle();
  expect(await on.text(noted(''), volume, 'note')).toBe('two');
  pods.update(noted('two'));
  expect(operations.pending('u1')).toBeUndefined();
});

test('an update of the Pod does not start an update or a mount if the last mount has failed', async () => {
  const volumes = [VOLUME, annotationVolume('note')];
  await expect(mount(podWith(volumes, 'u1', { note: 'one' }))).rejects.toThrow(NOT_FOUND);
  pods.update(podWith(volumes, 'u1', { note: 'two' }));
  expect(operations.pending('u1')).toBeUndefined();
  await idle();
  expect(retried).toEqual([]);
});

test('rewrite() writes fields of the Pod, but not the objects in other volumes', async () => {
  await on.write('a', { key: 'old' });
  const note = annotationVolume('note');
  const pod = (text: string): Pod => podWith([VOLUME, note], 'u1', { note: text });
  await expect(rewrite(pod('one'))).rejects.toThrow('the volumes of the Pod are not mounted');
  await mount(pod('one'));
  await on.write('a', { key: 'new' });
  await rewrite(pod('two'));
  expect([await textOf(), await on.text(pod(''), note, 'note')]).toEqual(['old', 'two']);
  // Later updates use the Pod that was passed to rewrite().
  change();
  await idle();
  expect([await textOf(), await on.text(pod(''), note, 'note')]).toEqual(['new', 'two']);
});

test('an update that fails without files to keep is logged and retried after 30 seconds', async () => {
  await on.write('a', { key: 'old' });
  await mount(POD);
  await on.write('a', { key: 'new' });
  on.backend.failNext('get configmaps', new OutcomeUnknownError('no response'));
  change();
  await idle();
  expect([await textOf(), on.warnings, on.failures]).toEqual(['old', ['no response'], []]);
  on.timers.advance(RETRY - 1);
  expect(operations.pending('u1')).toBeUndefined();
  on.timers.advance(1);
  await idle();
  expect([await textOf(), on.running.size]).toEqual(['new', 0]);
});

test('an update that an abort interrupts is neither logged nor retried', async () => {
  await on.write('a', { key: 'old' });
  await mount(POD);
  const held = on.holdReads();
  change();
  await turn();
  on.backend.failNext('get configmaps', new OutcomeUnknownError('cut'));
  closing.abort();
  held.release();
  await idle();
  expect([on.warnings, on.failures, on.started]).toEqual([[], [], []]);
});

test('a token is replaced when it is due, and a second mount reuses the current token', async () => {
  on.issueTokens();
  const pod = podWith([TOKEN]);
  const start = on.timers.now();
  await mount(pod);
  on.timers.advance(1000);
  await mount(pod);
  expect([await token(pod), [...on.running]]).toEqual(['token-1', [start + TOKEN_AGE]]);
  on.timers.advance(TOKEN_AGE - 1001);
  expect(operations.pending('u1')).toBeUndefined();
  on.timers.advance(1);
  await idle();
  expect([await token(pod), [...on.running]]).toEqual(['token-2', [start + 2 * TOKEN_AGE]]);
});

test('one timer runs until the first of the times at which the volumes of all Pods are due', async () => {
  on.issueTokens();
  const [late, early] = [podWith([tokenVolume('token', 7200)], 'late'), podWith([TOKEN], 'early')];
  const start = on.timers.now();
  await mount(late);
  await mount(early);
  await mount(podWith([TOKEN], 'same'));
  expect(on.started).toEqual([start + 2 * TOKEN_AGE, start + TOKEN_AGE]);
  expect([...on.running]).toEqual([start + TOKEN_AGE]);
  pods.forget('same');
  on.timers.advance(TOKEN_AGE);
  expect(operations.pending('late')).toBeUndefined();
  await idle(early);
  expect([await token(early), await token(late)]).toEqual(['token-4', 'token-1']);
  pods.forget('early');
  pods.forget('late');
  expect(on.running.size).toBe(0);
});

test('rewrite() keeps an earlier time for a token, and adopts an earlier time for a retry', async () => {
  on.issueTokens();
  await on.write('a', { key: 'old' });
  const both: Volume = {
    name: 'a',
    projected: { sources: [{ configMap: { name: 'a' } }, DOWNWARD] },
  };
  const pod = podWith([both, TOKEN]);
  const start = on.timers.now();
  await mount(pod);
  await rewrite(pod);
  expect([...on.running]).toEqual([start + TOKEN_AGE]);
  await on.backend.remove(CONFIG_MAPS, 'a', 'a');
  await rewrite(pod);
  expect([[...on.running], on.failures]).toEqual([[start + RETRY], [NOT_FOUND]]);
});

test('a due Pod whose mount has failed requests a mount every 30 seconds until it is unregistered', async () => {
  on.issueTokens();
  const sources = [{ serviceAccountToken: { path: 'token', expirationSeconds: 3600 } }, DOWNWARD];
  const pod = podWith([VOLUME, { name: 'token', projected: { sources } }]);
  await expect(mount(pod)).rejects.toThrow(NOT_FOUND);
  await rewrite(pod);
  on.timers.advance(TOKEN_AGE - 1);
  await idle();
  const counts = [retried.length];
  for (const millis of [1, RETRY - 1, 1, RETRY]) {
    on.timers.advance(millis);
    await idle();
    counts.push(retried.length);
  }
  expect(counts).toEqual([0, 1, 1, 2, 3]);
  pods.forget('u1');
  expect(on.running.size).toBe(0);
});

test('an abort cancels the timer, and a mount that ends after the abort starts none', async () => {
  on.issueTokens();
  await mount(podWith([TOKEN]));
  expect(on.running.size).toBe(1);
  closing.abort();
  expect(on.running.size).toBe(0);
  await mount(podWith([tokenVolume('token', 600)], 'late'));
  expect(on.running.size).toBe(0);
});

test('only Pods that have claims and whose last mount has failed wait for claims', async () => {
  const claim: Volume = { name: 'data', persistentVolumeClaim: { claimName: 'c' } };
  const [waiting, mounted] = [podWith([claim], 'waiting'), podWith([claim], 'mounted')];
  // A claim whose volume is linked already can be mounted.
  await mkdir(dirname(on.folder(mounted, claim)), { recursive: true });
  await symlink('/tmp', on.folder(mounted, claim));
  await mount(mounted);
  await expect(mount(waiting)).rejects.toThrow('failed to fetch PVC from API server');
  await expect(mount(POD)).rejects.toThrow(NOT_FOUND);
  expect(pods.waitingForClaims()).toEqual(['waiting']);
  pods.forget('waiting');
  expect(pods.waitingForClaims()).toEqual([]);
});
