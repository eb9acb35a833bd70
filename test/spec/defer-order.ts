/** The specification of defer containers: the order of a termination. */
import type { Sentence } from './sentence.ts';

const e2e = 'test/e2e/defer.test.ts';
const matrix = 'test/long/defer-matrix.test.ts';
const onTime = 'test/long/defer-time.test.ts';
const order = 'src/simulation/defer-order.test.ts';
const properties = 'src/simulation/defer.property.test.ts';
const ending = 'src/lifecycle/ending.test.ts';
const stages = 'src/lifecycle/stages.test.ts';
const entryEnds = 'src/lifecycle/defer-ends.test.ts';
const probes = 'src/lifecycle/probes.test.ts';
const conditions = 'src/lifecycle/conditions.test.ts';

export const termination: readonly Sentence[] = [
  {
    says: 'T0: the deletion is seen. `termination` (reason, startedAt, deadline) is written first.',
    tests: [
      [stages, 'nothing starts and nothing stops before the status has it'],
      [order, 'the termination is written before anything of it begins'],
      [properties, 'nothing of the list starts before the termination is written, nor after the deadline of its stage'],
    ],
  },
  {
    says: 'No app container is restarted from here on, and liveness and startup probes of app containers stop.',
    tests: [
      [ending, 'no app container is restarted once the Pod ends'],
      [probes, 'an app container is probed for readiness only'],
      [probes, 'a liveness probe that fails once the Pod ends does not end the run'],
      [order, 'app containers are neither probed for liveness nor restarted'],
    ],
  },
  {
    says: 'Readiness probes continue: endpoints show the Pod as terminating, and as serving while its readiness probe succeeds, as upstream.',
    tests: [
      [conditions, 'a deleted Pod is ready while its probe succeeds, as upstream'],
      [conditions, 'a deleted Pod is not ready once its probe fails'],
      [order, 'readiness is that of the probes while a deletion runs'],
    ],
    awaits: ['src/api/discovery.k8s.io/v1'],
  },
  {
    says: 'Where there is no deletionTimestamp (completion, deadline, pressure, shutdown) the Pod is not Ready from T0 on.',
    tests: [
      [conditions, 'a Pod with entries that ends without a deletion is not ready'],
      [conditions, 'Ready: a Pod with entries that ends for the reason %s is not ready, though its containers are'],
      [order, 'without a deletionTimestamp the Pod is not Ready from T0 on'],
    ],
  },
  {
    says: 'Native sidecars keep running and keep being restarted until the list has ended.',
    tests: [
      [ending, 'a sidecar is restarted until the list has ended'],
      [probes, 'sidecars and entries are probed for liveness while the list runs'],
      [order, 'sidecars are both until the list has ended'],
      [matrix, 'sidecars live and are restarted while the list runs'],
    ],
  },
  {
    says: 'At once the first PreExit entry starts; entries run strictly one after the other.',
    tests: [
      ['src/lifecycle/defer.test.ts', 'the first entry is announced in the status, then started'],
      ['src/lifecycle/defer.test.ts', 'the next entry has its turn when the one before has ended'],
      [properties, 'entries run strictly in order'],
      [e2e, 'a deletion runs them in order'],
    ],
  },
  {
    says: "With `preStopPolicy: Concurrent` every preStop hook starts at T0 as well, without waiting; with `AfterPreExit` the hooks of app containers start when the last PreExit entry has ended (at T0 if none is due), a sidecar's hook when the sidecar stops.",
    tests: [
      [ending, 'Concurrent: every hook starts at T0'],
      [ending, 'AfterPreExit: no hook starts while a PreExit entry is to run'],
      [ending, 'AfterPreExit: hooks of app containers start when the last PreExit entry has ended'],
      [ending, 'AfterPreExit: hooks of app containers start at T0 if no PreExit entry is due'],
      [ending, 'AfterPreExit: the hook of a sidecar starts when the sidecar stops'],
      [order, 'preStop hooks start at once, and the first PreExit entry does not wait for them'],
      [order, "sidecars' preStop hooks start at once too, and stop nothing"],
      [order, 'with AfterPreExit the hooks of apps start when the last PreExit entry has ended'],
      [order, 'with AfterPreExit the hooks start at T0 where no PreExit entry is due'],
      [onTime, 'preStopPolicy AfterPreExit: hooks of apps start when the last PreExit entry has ended'],
    ],
  },
  {
    says: 'The files of the downward API are rewritten before the first hook or entry starts; a failed rewrite does not hold the list up.',
    tests: [
      [ending, 'are written before the first hook or entry'],
      [ending, 'are not written where no file shows the termination'],
      [ending, 'of a projected volume count too'],
      [ending, 'hold nothing up once a rewrite failed'],
      ['src/node/pod/executor.test.ts', 'writeDownwardFiles rewrites the downward API files and returns their version'],
      [
        'src/node/volumes/volume-manager.test.ts',
        'rewrite() resolves when the files are written and rejects if the volumes are not mounted',
      ],
      ['test/long/defer-fields.test.ts', 'the downward API shows the termination in files'],
    ],
  },
  {
    says: 'When the last PreExit entry has ended (there may be none), each app container gets its stop signal, as soon as its own preStop hook is also done.',
    tests: [
      [ending, 'after the PreExit entries the app containers stop'],
      [ending, 'an init container that runs stops with the app containers'],
      [entryEnds, 'its end is final once the status has it, and holds the app containers until then'],
      [ending, 'an app container is signalled when its own hook and the PreExit entries have ended'],
      [order, 'the app waits for both'],
      [order, 'an entry may have stopped the app itself before'],
      [properties, 'PreExit never starts after the apps were told to stop'],
    ],
  },
  {
    says: 'When no process of any app container is left, the PostExit entries run in order.',
    tests: [
      ['src/lifecycle/defer.test.ts', 'a PostExit entry waits for the last process of an app container'],
      [order, 'PostExit entries wait until no process of an app container is left'],
      ['src/simulation/defer-outages.test.ts', 'an app whose container vanishes is gone: the PostExit entries run'],
      [properties, 'PostExit never runs while a process of an app container lives'],
      [e2e, 'a deletion runs them in order'],
    ],
  },
  {
    says: 'Then native sidecars stop in reverse order, ephemeral containers, the sandbox.',
    tests: [
      [ending, 'after the list the sidecar that started last stops'],
      [ending, 'then the ephemeral containers'],
      [ending, 'then the sandbox'],
      [ending, 'a PostExit stage that is still to begin holds the sidecars'],
      [ending, 'the sandbox stops once the status has the end of every entry'],
      [order, 'ephemeral containers stop after the list and the sidecars'],
      [properties, 'before the deadline, sidecars stop once the list has ended, in reverse order, and ephemeral'],
      [matrix, 'stop after it in reverse order, ephemeral ones last'],
    ],
  },
  {
    says: 'The Pod goes as soon as its list and containers have ended: nobody waits for the rest of the grace period.',
    tests: [
      [order, 'nobody waits for the rest of the grace period'],
      [ending, 'the object is deleted once nothing is left on the node'],
      ['test/long/lost-container.test.ts', 'its Pod ends in order, and is gone or reports why not'],
    ],
  },
];
