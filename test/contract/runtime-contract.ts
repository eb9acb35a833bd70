/**
 * A suite of tests that every ContainerRuntime must pass. The name of a container selects one of PROGRAMS: a real runtime runs the command
 * of the program, a simulated runtime its script.
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
  obedient: { command: ['sh', '-c', `trap "exit 143" TERM; ${forever}`], script: { stopMillis: 5 } },
  stubborn: { command: ['sh', '-c', `trap "" TERM; ${forever}`], script: {} },
  succeeds: { command: ['true'], script: { runMillis: 20, exitCode: 0 } },
  fails: { command: ['sh', '-c', 'exit 3'], script: { runMillis: 20, exitCode: 3 } },
} satisfies Record<string, Program>;

type ProgramName = keyof typeof PROGRAMS;

export interface RuntimeUnderTest {
  runtime: ContainerRuntime;
  /** An image that is present and can run the programs. */
  image: string;
  logDirectory: string;
  /** Whether events() begins with a resync. Events before the resync may be missed. If false, no event after the call is missed. */
  beginsWithResync: boolean;
  close(): Promise<void>;
}

const never = new AbortController().signal;
let serial = 0;

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

/** Resolves when no further event can be missed, with a function that stops listening. */
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

class Suite {
  under!: RuntimeUnderTest;
  get runtime(): ContainerRuntime {
    return this.under.runtime;
  }
  newPod(): Promise<TestPod> {
    return new TestPod(this.under).run();
  }
  async clear(): Promise<void> {
    for (const { sandboxes, containers } of (await this.runtime.observeAll(never)).values()) {
      for (const { id } of sandboxes) await this.runtime.stopSandbox(id, never);
      for (const { id } of containers) await this.runtime.removeContainer(id, never);
      for (const { id } of sandboxes) await this.runtime.removeSandbox(id, never);
    }
  }
}

export function runtimeContract(name: string, make: () => Promise<RuntimeUnderTest>): void {
  describe(`runtime contract: ${name}`, () => {
    const suite = new Suite();
    beforeAll(async () => {
      suite.under = await make();
    });
    afterAll(() => suite.under?.close());
    afterEach(() => suite.clear());
    test('a runtime reports its name and version, and that it is ready', async () => {
      const version = await suite.runtime.version(never);
      expect(version.name).not.toBe('');
      expect(version.version).not.toBe('');
      expect(await suite.runtime.notReady(never)).toEqual([]);
    });
    sandboxTests(suite);
    containerStartTests(suite);
    containerEndTests(suite);
    stopTests(suite);
    observationTests(suite);
    eventTests(suite);
    imageTests(suite);
  });
}

function sandboxTests(suite: Suite): void {
  test('a sandbox that runs is ready and has its identity and an address', async () => {
    const before = Date.now();
    const pod = await suite.newPod();
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

  test('RunPodSandbox creates one sandbox per Pod and attempt', async () => {
    const pod = await suite.newPod();
    expect(await suite.runtime.runSandbox(pod.sandbox, never)).toBe(pod.sandboxId);
    const second = await new TestPod(suite.under, 1, pod.uid).run();
    expect(second.sandboxId).not.toBe(pod.sandboxId);
    const { sandboxes } = await pod.observe();
    expect(sandboxes.map(({ attempt }) => attempt).sort()).toEqual([0, 1]);
  });

  test('a stopped sandbox is not ready, a removed one no longer exists; both calls can be repeated', async () => {
    const pod = await suite.newPod();
    await suite.runtime.stopSandbox(pod.sandboxId, never);
    expect((await pod.observe()).sandboxes).toMatchObject([{ id: pod.sandboxId, ready: false }]);
    await suite.runtime.stopSandbox(pod.sandboxId, never);
    await suite.runtime.removeSandbox(pod.sandboxId, never);
    expect(await pod.observe()).toEqual({ sandboxes: [], containers: [] });
    await suite.runtime.removeSandbox(pod.sandboxId, never);
    await suite.runtime.stopSandbox(pod.sandboxId, never);
  });

  test('stopping a sandbox kills its containers', async () => {
    const pod = await suite.newPod();
    const id = await pod.start('stubborn');
    await suite.runtime.stopSandbox(pod.sandboxId, never);
    expect(await pod.container(id)).toMatchObject({ state: 'exited', exitCode: 137 });
  });

  test('no container can be started in a stopped sandbox', async () => {
    const pod = await suite.newPod();
    await suite.runtime.stopSandbox(pod.sandboxId, never);
    await expect(pod.start('succeeds')).rejects.toThrow();
  });
}

function containerStartTests(suite: Suite): void {
  test('a container is created as configured, then runs', async () => {
    const pod = await suite.newPod();
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
      image: suite.under.image,
      annotations: { 'example.com/backoff': '20' },
    });
    expect(created?.imageId).not.toBe('');
    expect(created?.startedAt).toBeUndefined();

    await suite.runtime.startContainer(id, never);
    const running = await pod.container(id);
    expect(running).toMatchObject({ state: 'running', createdAt: created?.createdAt });
    expect(running?.startedAt).toBeGreaterThanOrEqual(created?.createdAt ?? Number.NaN);
    expect(running?.exitCode).toBeUndefined();
  });

  test('CreateContainer creates one container per name and attempt', async () => {
    const pod = await suite.newPod();
    const id = await pod.create('obedient');
    expect(await pod.create('obedient')).toBe(id);
    expect(await pod.create('obedient', 1)).not.toBe(id);
    expect((await pod.observe()).containers).toHaveLength(2);
  });

  test('StartContainer does not start a running container again', async () => {
    const pod = await suite.newPod();
    const id = await pod.start('obedient');
    const first = await pod.container(id);
    await suite.runtime.startContainer(id, never);
    expect(await pod.container(id)).toEqual(first);
  });
}

function containerEndTests(suite: Suite): void {
  test.each([
    ['succeeds', 0, 'Completed'],
    ['fails', 3, 'Error'],
  ] as const)('a container whose program %s has exit code %i and reason %s', async (program, exitCode, reason) => {
    const pod = await suite.newPod();
    const id = await pod.start(program);
    const ended = await seen(pod, id, isExited);
    expect(ended).toMatchObject({ exitCode, reason });
    expect(ended.finishedAt).toBeGreaterThanOrEqual(ended.createdAt);
    expect(ended.finishedAt).toBeLessThanOrEqual(Date.now());
  });

  test('an exited container keeps its exit code and time until it is removed', async () => {
    const pod = await suite.newPod();
    const id = await pod.start('fails');
    const ended = await seen(pod, id, isExited);
    await suite.runtime.stopSandbox(pod.sandboxId, never);
    expect(await pod.container(id)).toMatchObject({ exitCode: ended.exitCode, finishedAt: ended.finishedAt });
    await suite.runtime.removeContainer(id, never);
    expect(await pod.container(id)).toBeUndefined();
  });

  test('removing a running container kills it', async () => {
    const pod = await suite.newPod();
    const id = await pod.start('stubborn');
    await suite.runtime.removeContainer(id, never);
    expect((await pod.observe()).containers).toEqual([]);
  });
}

function stopTests(suite: Suite): void {
  test('StopContainer returns when the container obeys the signal', async () => {
    const pod = await suite.newPod();
    const id = await pod.start('obedient');
    const before = performance.now();
    await suite.runtime.stopContainer(id, 60, never);
    expect(performance.now() - before).toBeLessThan(30_000);
    expect(await pod.container(id)).toMatchObject({ state: 'exited', exitCode: 143 });
    await suite.runtime.stopContainer(id, 60, never);
  });

  test('StopContainer kills at the end of the grace period, not before', async () => {
    const pod = await suite.newPod();
    const id = await pod.start('stubborn');
    const before = performance.now();
    await suite.runtime.stopContainer(id, 1, never);
    expect(performance.now() - before).toBeGreaterThanOrEqual(990);
    expect(await pod.container(id)).toMatchObject({ state: 'exited', exitCode: 137 });
  });

  test('StopContainer with a grace period of 0 kills immediately', async () => {
    const pod = await suite.newPod();
    const id = await pod.start('stubborn');
    await suite.runtime.stopContainer(id, 0, never);
    expect(await pod.container(id)).toMatchObject({ state: 'exited', exitCode: 137 });
  });

  test('a second StopContainer shortens the grace period of the first', async () => {
    const pod = await suite.newPod();
    const id = await pod.start('stubborn');
    const long = suite.runtime.stopContainer(id, 3600, never);
    const short = suite.runtime.stopContainer(id, 1, never);
    await Promise.all([long, short]);
    expect(await pod.container(id)).toMatchObject({ state: 'exited', exitCode: 137 });
  });

  test('an aborted StopContainer leaves the container running', async () => {
    const pod = await suite.newPod();
    const id = await pod.start('stubborn');
    const giveUp = new AbortController();
    const stop = suite.runtime.stopContainer(id, 3600, giveUp.signal);
    giveUp.abort(new Error('given up'));
    await expect(stop).rejects.toThrow('given up');
    expect(await pod.container(id)).toMatchObject({ state: 'running' });
  });

  test('stop and remove treat NotFound as success', async () => {
    await suite.runtime.stopContainer('no-such-container', 1, never);
    await suite.runtime.removeContainer('no-such-container', never);
    await suite.runtime.stopSandbox('no-such-sandbox', never);
    await suite.runtime.removeSandbox('no-such-sandbox', never);
  });
}

function observationTests(suite: Suite): void {
  test('the observation of a Pod that does not exist is empty', async () => {
    expect(await suite.runtime.observe('no-such-pod', never)).toEqual({ sandboxes: [], containers: [] });
  });

  test('observeAll equals the observations of the single Pods', async () => {
    const [one, two] = [await suite.newPod(), await suite.newPod()];
    await one.start('obedient');
    await two.start('stubborn');
    const all = await suite.runtime.observeAll(never);
    expect([...all.keys()].sort()).toEqual([one.uid, two.uid].sort());
    for (const pod of [one, two]) expect(all.get(pod.uid)).toEqual(await pod.observe());
  });

  test('an aborted observation rejects with the reason of its signal', async () => {
    const reason = new Error('no longer wanted');
    await expect(suite.runtime.observe('any', AbortSignal.abort(reason))).rejects.toBe(reason);
  });
}

function eventTests(suite: Suite): void {
  test('each exit is an event, and an observation after the event shows the exit', async () => {
    const pod = await suite.newPod();
    for (let attempt = 0; attempt < 5; attempt++) {
      const id = await pod.create('succeeds', attempt);
      const looks: Promise<ContainerObservation | undefined>[] = [];
      const { promise: found, resolve } = Promise.withResolvers<ContainerObservation>();
      // The start may also cause an event. The test observes the container only after an event, so it times out if the event of the exit is
      // lost.
      const stop = await listen(suite.under, (event) => {
        if (event.type !== 'changed' || event.podUid !== pod.uid) return;
        const look = pod.container(id);
        looks.push(look);
        void look.then((container) => container?.state === 'exited' && resolve(container));
      });
      await suite.runtime.startContainer(id, never);
      const observed = await found;
      await stop();
      await Promise.all(looks);
      expect(observed).toMatchObject({ state: 'exited', exitCode: 0 });
    }
  });

  test('no event is delivered after the signal is aborted', async () => {
    const pod = await suite.newPod();
    const delivered: RuntimeEvent[] = [];
    const stop = await listen(suite.under, (event) => delivered.push(event));
    await stop();
    delivered.length = 0;
    const id = await pod.start('succeeds');
    await seen(pod, id, isExited);
    expect(delivered).toEqual([]);
  });
}

function imageTests(suite: Suite): void {
  test('a present image is listed, and found by ID and name', async () => {
    const image = await suite.runtime.imageStatus(suite.under.image, never);
    expect(image?.id).not.toBe('');
    expect(image?.tags).toContain(suite.under.image);
    expect(await suite.runtime.imageStatus(image?.id ?? '', never)).toEqual(image);
    expect(await suite.runtime.listImages(never)).toContainEqual(image);
  });

  test('an absent image has no status', async () => {
    expect(await suite.runtime.imageStatus('example.invalid/none:1', never)).toBeUndefined();
  });

  test('removing an absent image succeeds', async () => {
    await suite.runtime.removeImage(`sha256:${'0'.repeat(64)}`, never);
  });
}
