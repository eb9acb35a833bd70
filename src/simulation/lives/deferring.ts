/** Lives of Pods with defer containers. */
import type { DeferContainer } from '../../api/generated/types.ts';
import type { Life } from '../life.ts';
import { simulatedPod } from '../simulated-pod.ts';
import { check, forever, type LifeToRead, once, stubborn } from './life-to-read.ts';

type Given = Partial<Life> & { pods?: Partial<Parameters<typeof simulatedPod>[0]> };

/** By default, the Pod is deleted after 5 s with a grace period of 20 s. */
const lifeOf = (defers: Partial<DeferContainer>[], { pods, scripts, ...life }: Given = {}): Life => ({
  pod: simulatedPod({ apps: ['app'], graceSeconds: 20, defers, ...pods }),
  scripts: { app: forever, 'defer-1': once(1000), 'defer-2': once(1000), 'defer-3': once(1000), ...scripts },
  deletions: [{ at: 5000, graceSeconds: 20 }],
  limitMillis: 120_000,
  ...life,
});
const post: Partial<DeferContainer> = { trigger: 'PostExit' };

export const deferring: readonly LifeToRead[] = [
  { about: 'Deleted: two PreExit entries, the app, a PostExit entry.', life: lifeOf([{}, {}, post]) },
  {
    about: 'A PreExit entry fails and is retried; the next one hangs until its timeoutSeconds.',
    life: lifeOf([{ restartPolicy: 'OnFailure' }, { timeoutSeconds: 3 }, post], {
      scripts: { 'defer-1': [{ runMillis: 100, exitCode: 1 }, { runMillis: 100 }], 'defer-2': stubborn },
    }),
  },
  {
    about: 'The app ignores its stop signal; the PostExit entry has its reserve.',
    life: lifeOf([post], { scripts: { app: stubborn } }),
  },
  {
    about: 'The preStop hook waits for the PreExit entry, with preStopPolicy AfterPreExit.',
    life: lifeOf([{}], {
      pods: { each: { lifecycle: { preStop: check } }, spec: { preStopPolicy: 'AfterPreExit' } },
      hook: () => ({ millis: 500 }),
    }),
  },
  {
    about: 'The app completes on its own; the entry fails, with failurePolicy FailPod.',
    life: lifeOf([{ failurePolicy: 'FailPod' }], {
      pods: { restartPolicy: 'Never' },
      scripts: { app: once(2000), 'defer-1': once(100, 1) },
      deletions: [],
      limitMillis: 20_000,
    }),
  },
  {
    about: 'Deleted during the start of the init container, which takes 250 ms: the PostExit entry runs.',
    life: lifeOf([{}, post], {
      pods: { init: ['init'] },
      scripts: { init: forever },
      startMillis: 250,
      deletions: [{ at: 100, graceSeconds: 20 }],
    }),
  },
  {
    about: 'The sandbox is lost while a PreExit entry runs: PostExit entries run in a new sandbox.',
    life: lifeOf([{}, post], { scripts: { 'defer-1': once(10_000) }, sandboxLostAt: 6000 }),
  },
  {
    about: 'The PostExit entry hangs: its stage is extended by count, 2 times by 5 s.',
    life: lifeOf([post], {
      pods: {
        spec: { deferContainerGracePeriodExtensionInterval: 5, deferContainerGracePeriodExtensionCount: 2 },
      },
      scripts: { 'defer-1': stubborn },
    }),
  },
  {
    about: 'An extension by liveness: an entry that is probed every 2 s runs 25 s.',
    life: lifeOf([{ livenessProbe: { ...check, periodSeconds: 2 } }], {
      pods: { spec: { deferContainerGracePeriodExtension: true } },
      scripts: { 'defer-1': once(25_000) },
    }),
  },
  {
    about: 'A client gives up a running entry and an entry that waits for its turn, at 6 s.',
    life: lifeOf([{}, {}, post], {
      scripts: { 'defer-1': stubborn },
      skips: [
        { at: 6000, entry: 'defer-1' },
        { at: 6000, entry: 'defer-2' },
      ],
    }),
  },
  {
    about: 'Scaled down: one entry is due on Evicted only, and another only if the apps succeeded.',
    life: lifeOf([{ onReasons: ['Evicted'] }, { ...post, when: 'Succeeded' }, post], {
      deletions: [{ at: 5000, graceSeconds: 20, reason: 'ScaledDown' }],
    }),
  },
  {
    about: 'The agent dies while a PreExit entry runs, and no agent runs for 30 s.',
    life: lifeOf([{}, post], { scripts: { 'defer-1': once(2000) }, absences: [{ at: 6000, millis: 30_000 }] }),
  },
  {
    about: 'The runtime does not answer for 30 s at the start of a PreExit entry.',
    life: lifeOf([{}, post], { outages: [{ at: 5001, millis: 30_000 }] }),
  },
  {
    about: 'A node shutdown leaves 6 s: every entry hangs.',
    life: lifeOf([{}, post], {
      scripts: { app: stubborn, 'defer-1': stubborn, 'defer-2': stubborn },
      nodeEnd: { at: 5000, by: { reason: 'NodeShutdown', message: 'bye', graceSeconds: 6 } },
      deletions: [],
      limitMillis: 30_000,
    }),
  },
  {
    about: 'A hard eviction threshold is met in the middle of the list.',
    life: lifeOf([{}, {}, post], {
      scripts: { 'defer-2': stubborn },
      nodeEnd: { at: 6500, by: { reason: 'NodePressure', message: 'low on memory', graceSeconds: 0 } },
    }),
  },
];
