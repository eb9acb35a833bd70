/**
 * What every ContainerRuntime must keep, as one suite. A program is chosen by the container's name: a real runtime runs its
 * command, a simulated one its script.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type {
  ContainerConfig,
  ContainerObservation,
  ContainerRuntime,
  PodObservation,
  RuntimeEvent,
  SandboxConfig,
} from '../../src/runtime/runtime.ts';

interface Program {
  command: string[];
  script: { runMillis?: number; exitCode?: number; stopMillis?: number };
}

const forever = 'while :; do sleep 3600 & wait $!; done';

export const PROGRAMS = {
  /** Ends at the stop signal. */
  obedient: { command: ['sh', '-c', `trap "exit 143" TERM; ${forever}`], script: { stopMillis: 5 } },
  /** Ends only by being killed. */
  stubborn: { command: ['sh', '-c', `trap "" TERM; ${forever}`], script: {} },
  succeeds: { command: ['true'], script: { runMillis: 20, exitCode: 0 } },
  fails: { command: ['sh', '-c', 'exit 3'], script: { runMillis: 20, exitCode: 3 } },
} satisfies Record<string, Program>;

type ProgramName = keyof typeof PROGRAMS;

export interface RuntimeUnderTest {
  runtime: ContainerRuntime;
  /** Of an image that is present and runs the programs. */
  image: string;
  logDirectory: string;
  /** Whether events() begins with a resync, after which none is missed; else none is from the call on. */
  beginsWithResync: boolean;
  close(): Promise<void>;
}

const never = new AbortController().signal;
let serial = 0;

/** A Pod of one sandbox, and shortcuts to run programs in it. */
class TestPod {
  readonly sandbox: SandboxConfig;
  readonly under: RuntimeUnderTest;
  sandboxId = '';
  constructor(under: RuntimeUnderTest, attempt = 0, uid = `uid-${process.pid}-${++serial}`) {
    this.under = under;
    this.sandbox = {
      pod: { uid, namespace: 'contract', name: `pod-${uid}` },
      attempt,
      hostname: 'contract',
      logDirectory: under.logDirectory,
      labels: { app: 'contract' },
      annotations: {},
    };
  }
  get uid(): string {
    return this.sandbox.pod.uid;
  }
  async run(): Promise<this> {
    this.sandboxId = await this.under.runtime.runSandbox(this.sandbox, never);
    return this;
  }
  async create(name: ProgramName, attempt = 0, extra: Partial<ContainerConfig> = {}): Promise<string> {
    const image = await this.under.runtime.imageStatus(this.under.image, never);
    const config: ContainerConfig = {
      pod: this.sandbox.pod,
      name,
      kind: 'app',
      attempt,
      imageId: image?.id ?? '',
      imageName: this.under.image,
      command: PROGRAMS[name].command,
      env: [],
      mounts: [],
      logPath: `${this.uid}-${name}-${attempt}.log`,
      annotations: {},
      resources: {},
      security: {},
      ...extra,
    };
    return this.under.runtime.createContainer(this.sandboxId, this.sandbox, config, never);
  }
  async start(name: ProgramName, attempt = 0): Promise<string> {
    const id = await this.create(name, attempt);
    await this.under.runtime.startContainer(id, never);
    return id;
  }
  observe(): Promise<PodObservation> {
    return this.under.runtime.observe(this.uid, never);
  }
  async container(id: string): Promise<ContainerObservation | undefined> {
    return (await this.observe()).containers.find((container) => container.id === id);
  }
}

/** Listens, and resolves once no event can be missed. */
async function listen(under: RuntimeUnderTest, listener: (event: RuntimeEvent) => void): Promise<() => Promise<void>> {
  const end = new AbortController();
  const { promise: begun, resolve } = Promise.withResolvers<void>();
  const ended = under.runtime.events((event) => {
    if (event.type === 'resync') resolve();
    listener(event);
  }, end.signal);
  if (under.beginsWithResync) await begun;
  return async () => {
    end.abort();
    await ended;
  };
}

/** Resolves with the container's first observation, made at the start or after an event of its Pod, that fits. */
async function seen(
  pod: TestPod,
  id: string,
  fits: (container: ContainerObservation) => boolean,
): Promise<ContainerObservation> {
  const { promise, resolve, reject } = Promise.withResolvers<ContainerObservation>();
  const look = (): void => {
    pod.container(id).then((container) => {
      if (container !== undefined && fits(container)) resolve(container);
    }, reject);
  };
  const stop = await listen(pod.under, (event) => {
    if (event.type === 'resync' || event.podUid === pod.uid) look();
  });
  look();
  try {
    return await promise;
  } finally {
    await stop();
  }
}

const isExited = (container: ContainerObservation): boolean => container.state === 'exited';

export function runtimeContract(name: string, make: () => Promise<RuntimeUnderTest>): void {
  describe(`runtime contract: ${name}`, () => {
    let under: RuntimeUnderTest;
    let runtime: ContainerRuntime;
    beforeAll(async () => {
      under = await make();
      runtime = under.runtime;
    });
    afterAll(() => under?.close());
    afterEach(async () => {
      for (const { sandboxes, containers } of (await runtime.observeAll(never)).values()) {
        for (const { id } of sandboxes) await runtime.stopSandbox(id, never);
        for (const { id } of containers) await runtime.removeContainer(id, never);
        for (const { id } of sandboxes) await runtime.removeSandbox(id, never);
      }
    });
    const newPod = (): Promise<TestPod> => new TestPod(under).run();

    test('says what it is and that it is ready', async () => {
      const version = await runtime.version(never);
      expect(version.name).not.toBe('');
      expect(version.version).not.toBe('');
      expect(await runtime.notReady(never)).toEqual([]);
    });

    describe('sandbox', () => {
      test('is ready with its identity and an address once run', async () => {
        const before = Date.now();
        const pod = await newPod();
        const { sandboxes, containers } = await pod.observe();
        expect(containers).toEqual([]);
        expect(sandboxes).toMatchObject([
          {
            id: pod.sandboxId,
            podUid: pod.uid,
            namespace: 'contract',
            name: `pod-${pod.uid}`,
            attempt: 0,
            ready: true,
          },
        ]);
        expect(sandboxes[0]?.ips[0]).toMatch(/^[0-9a-f.:]+$/);
        expect(sandboxes[0]?.createdAt).toBeGreaterThanOrEqual(before - 1);
        expect(sandboxes[0]?.createdAt).toBeLessThanOrEqual(Date.now());
      });

      test('is one for each Pod and attempt', async () => {
        const pod = await newPod();
        expect(await runtime.runSandbox(pod.sandbox, never)).toBe(pod.sandboxId);
        const second = await new TestPod(under, 1, pod.uid).run();
        expect(second.sandboxId).not.toBe(pod.sandboxId);
        const { sandboxes } = await pod.observe();
        expect(sandboxes.map(({ attempt }) => attempt).sort()).toEqual([0, 1]);
      });

      test('is not ready once stopped, gone once removed; both can be repeated', async () => {
        const pod = await newPod();
        await runtime.stopSandbox(pod.sandboxId, never);
        expect((await pod.observe()).sandboxes).toMatchObject([{ id: pod.sandboxId, ready: false }]);
        await runtime.stopSandbox(pod.sandboxId, never);
        await runtime.removeSandbox(pod.sandboxId, never);
        expect(await pod.observe()).toEqual({ sandboxes: [], containers: [] });
        await runtime.removeSandbox(pod.sandboxId, never);
        await runtime.stopSandbox(pod.sandboxId, never);
      });

      test('takes its containers with it when stopped', async () => {
        const pod = await newPod();
        const id = await pod.start('stubborn');
        await runtime.stopSandbox(pod.sandboxId, never);
        expect(await pod.container(id)).toMatchObject({ state: 'exited', exitCode: 137 });
      });

      test('refuses containers once stopped', async () => {
        const pod = await newPod();
        await runtime.stopSandbox(pod.sandboxId, never);
        await expect(pod.start('succeeds')).rejects.toThrow();
      });
    });

    describe('container', () => {
      test('is created with what it was given, then runs', async () => {
        const pod = await newPod();
        const id = await pod.create('obedient', 4, { kind: 'init', annotations: { 'example.com/backoff': '20' } });
        const created = await pod.container(id);
        expect(created).toMatchObject({
          id,
          sandboxId: pod.sandboxId,
          podUid: pod.uid,
          name: 'obedient',
          kind: 'init',
          attempt: 4,
          state: 'created',
          image: under.image,
          annotations: { 'example.com/backoff': '20' },
        });
        expect(created?.imageId).not.toBe('');
        expect(created).not.toHaveProperty('startedAt');

        await runtime.startContainer(id, never);
        const running = await pod.container(id);
        expect(running).toMatchObject({ state: 'running', createdAt: created?.createdAt });
        expect(running?.startedAt).toBeGreaterThanOrEqual(created?.createdAt ?? Number.NaN);
        expect(running).not.toHaveProperty('exitCode');
      });

      test('is one for each name and attempt', async () => {
        const pod = await newPod();
        const id = await pod.create('obedient');
        expect(await pod.create('obedient')).toBe(id);
        expect(await pod.create('obedient', 1)).not.toBe(id);
        expect((await pod.observe()).containers).toHaveLength(2);
      });

      test('is started once, however often it is asked for', async () => {
        const pod = await newPod();
        const id = await pod.start('obedient');
        const first = await pod.container(id);
        await runtime.startContainer(id, never);
        expect(await pod.container(id)).toEqual(first);
      });

      test.each([
        ['succeeds', 0, 'Completed'],
        ['fails', 3, 'Error'],
      ] as const)('that %s ends with exit code %i and reason %s', async (program, exitCode, reason) => {
        const pod = await newPod();
        const id = await pod.start(program);
        const ended = await seen(pod, id, isExited);
        expect(ended).toMatchObject({ exitCode, reason });
        expect(ended.finishedAt).toBeGreaterThanOrEqual(ended.createdAt);
        expect(ended.finishedAt).toBeLessThanOrEqual(Date.now());
      });

      test('stays as it ended until it is removed', async () => {
        const pod = await newPod();
        const id = await pod.start('fails');
        const ended = await seen(pod, id, isExited);
        await runtime.stopSandbox(pod.sandboxId, never);
        expect(await pod.container(id)).toMatchObject({ exitCode: ended.exitCode, finishedAt: ended.finishedAt });
        await runtime.removeContainer(id, never);
        expect(await pod.container(id)).toBeUndefined();
      });

      test('that runs is killed when it is removed', async () => {
        const pod = await newPod();
        const id = await pod.start('stubborn');
        await runtime.removeContainer(id, never);
        expect((await pod.observe()).containers).toEqual([]);
      });
    });

    describe('stop', () => {
      test('ends with the container that obeys the signal', async () => {
        const pod = await newPod();
        const id = await pod.start('obedient');
        const before = performance.now();
        await runtime.stopContainer(id, 60, never);
        expect(performance.now() - before).toBeLessThan(30_000);
        expect(await pod.container(id)).toMatchObject({ state: 'exited', exitCode: 143 });
        await runtime.stopContainer(id, 60, never);
      });

      test('kills at the end of the grace, not before', async () => {
        const pod = await newPod();
        const id = await pod.start('stubborn');
        const before = performance.now();
        await runtime.stopContainer(id, 1, never);
        expect(performance.now() - before).toBeGreaterThanOrEqual(990);
        expect(await pod.container(id)).toMatchObject({ state: 'exited', exitCode: 137 });
      });

      test('kills at once with no grace', async () => {
        const pod = await newPod();
        const id = await pod.start('stubborn');
        await runtime.stopContainer(id, 0, never);
        expect(await pod.container(id)).toMatchObject({ state: 'exited', exitCode: 137 });
      });

      test('takes a shorter grace while a longer one runs', async () => {
        const pod = await newPod();
        const id = await pod.start('stubborn');
        const long = runtime.stopContainer(id, 3600, never);
        const short = runtime.stopContainer(id, 1, never);
        await Promise.all([long, short]);
        expect(await pod.container(id)).toMatchObject({ state: 'exited', exitCode: 137 });
      });

      test('that is given up leaves the container running', async () => {
        const pod = await newPod();
        const id = await pod.start('stubborn');
        const giveUp = new AbortController();
        const stop = runtime.stopContainer(id, 3600, giveUp.signal);
        giveUp.abort(new Error('given up'));
        await expect(stop).rejects.toThrow('given up');
        expect(await pod.container(id)).toMatchObject({ state: 'running' });
      });

      test('and removal of what does not exist succeed', async () => {
        await runtime.stopContainer('no-such-container', 1, never);
        await runtime.removeContainer('no-such-container', never);
        await runtime.stopSandbox('no-such-sandbox', never);
        await runtime.removeSandbox('no-such-sandbox', never);
      });
    });

    describe('observation', () => {
      test('of a Pod that does not exist is empty', async () => {
        expect(await runtime.observe('no-such-pod', never)).toEqual({ sandboxes: [], containers: [] });
      });

      test('of all Pods is that of each', async () => {
        const [one, two] = [await newPod(), await newPod()];
        await one.start('obedient');
        await two.start('stubborn');
        const all = await runtime.observeAll(never);
        expect([...all.keys()].sort()).toEqual([one.uid, two.uid].sort());
        for (const pod of [one, two]) expect(all.get(pod.uid)).toEqual(await pod.observe());
      });

      test('rejects with the reason of its signal', async () => {
        const reason = new Error('no longer wanted');
        await expect(runtime.observe('any', AbortSignal.abort(reason))).rejects.toBe(reason);
      });
    });

    describe('events', () => {
      test('tell of each exit, and who looks then sees it', async () => {
        const pod = await newPod();
        for (let attempt = 0; attempt < 5; attempt++) {
          const id = await pod.create('succeeds', attempt);
          const looks: Promise<ContainerObservation | undefined>[] = [];
          const { promise: found, resolve } = Promise.withResolvers<ContainerObservation>();
          // A start may be told too; only the look after an event may find the exit, so a lost event hangs the test.
          const stop = await listen(under, (event) => {
            if (event.type !== 'changed' || event.podUid !== pod.uid) return;
            const look = pod.container(id);
            looks.push(look);
            void look.then((container) => container?.state === 'exited' && resolve(container));
          });
          await runtime.startContainer(id, never);
          const observed = await found;
          await stop();
          await Promise.all(looks);
          expect(observed).toMatchObject({ state: 'exited', exitCode: 0 });
        }
      });

      test('tell nothing after the signal', async () => {
        const pod = await newPod();
        const told: RuntimeEvent[] = [];
        const stop = await listen(under, (event) => told.push(event));
        await stop();
        told.length = 0;
        const id = await pod.start('succeeds');
        await seen(pod, id, isExited);
        expect(told).toEqual([]);
      });
    });

    describe('images', () => {
      test('that are present are listed under their ID and name', async () => {
        const image = await runtime.imageStatus(under.image, never);
        expect(image?.id).not.toBe('');
        expect(image?.tags).toContain(under.image);
        expect(await runtime.imageStatus(image?.id ?? '', never)).toEqual(image);
        expect(await runtime.listImages(never)).toContainEqual(image);
      });

      test('that are not present have no status', async () => {
        expect(await runtime.imageStatus('example.invalid/none:1', never)).toBeUndefined();
      });

      test('that are not present can be removed', async () => {
        await runtime.removeImage(`sha256:${'0'.repeat(64)}`, never);
      });
    });
  });
}
