import type { Sentence } from './sentence.ts';

const e2e = 'test/e2e/defer.test.ts';
const matrix = 'test/long/defer-matrix.test.ts';
const onTime = 'test/long/defer-time.test.ts';
const order = 'src/simulation/defer-order.test.ts';
const properties = 'src/simulation/defer.property.test.ts';
const ending = 'src/lifecycle/termination-waves.test.ts';
const stages = 'src/lifecycle/termination-stages.test.ts';
const entryEnds = 'src/lifecycle/defer-ends.test.ts';
const probes = 'src/lifecycle/probes.test.ts';
const conditions = 'src/lifecycle/conditions.test.ts';

export const termination: readonly Sentence[] = [
  {
    says: 'T0: the deletion is seen. `termination` (reason, startedAt, deadline) is written first.',
    tests: [
      [stages, 'nothing starts and nothing stops before the status has the termination'],
      [order, 'the termination is written before any part of it begins'],
      [properties, 'no entry starts before the termination is written, nor after the deadline of its stage'],
    ],
  },
  {
    says: 'No app container is restarted from here on, and liveness and startup probes of app containers stop.',
    tests: [
      [ending, 'no app container restarts in a terminating Pod'],
      [probes, 'an app container is probed for readiness only'],
      [probes, 'a liveness probe that fails in a terminating Pod does not end the run'],
      [order, 'app containers are neither probed for liveness nor restarted'],
    ],
  },
  {
    says: 'Readiness probes continue: endpoints show the Pod as terminating, and as serving while its readiness probe succeeds, as upstream.',
    tests: [
      [conditions, 'a deleted Pod stays ready while its probe succeeds, as upstream'],
      [conditions, 'a deleted Pod becomes unready once its probe fails'],
      [order, 'during a deletion readiness still follows the probes'],
      ['src/controllers/endpoint-slice/reconcile.test.ts', 'the conditions of %s'],
    ],
  },
  {
    says: 'Where there is no deletionTimestamp (completion, deadline, pressure, shutdown) the Pod is not Ready from T0 on.',
    tests: [
      [conditions, 'a Pod with defer containers that terminates without a deletion is not ready'],
      [
        conditions,
        'Ready is False in a Pod with defer containers that ends with reason %s, even if its containers are ready',
      ],
      [order, 'without a deletionTimestamp the Pod is not Ready from the start of the termination on'],
    ],
  },
  {
    says: 'Native sidecars keep running and keep being restarted until the list has ended.',
    tests: [
      [ending, 'a sidecar restarts until the list has ended'],
      [probes, 'sidecars and defer containers are probed for liveness while defer containers run'],
      [order, 'app containers are neither probed for liveness nor restarted; sidecars are, until the list has ended'],
      [matrix, 'sidecars run and restart while the list runs'],
    ],
  },
  {
    says: 'At once the first PreExit entry starts; entries run strictly one after the other.',
    tests: [
      ['src/lifecycle/defer.test.ts', 'the first entry is announced in the status, then started'],
      ['src/lifecycle/defer.test.ts', 'the next entry has its turn once the previous one has ended'],
      [properties, 'entries run strictly in order'],
      [
        e2e,
        'a deletion runs PreExit defer containers, stops the app, runs PostExit ones, and kubectl shows the progress',
      ],
    ],
  },
  {
    says: "With `preStopPolicy: Concurrent` every preStop hook starts at T0 as well, without waiting; with `AfterPreExit` the hooks of app containers start when the last PreExit entry has ended (at T0 if none is due), a sidecar's hook when the sidecar stops.",
    tests: [
      [ending, 'Concurrent: every hook starts at the start of the termination'],
      [ending, 'AfterPreExit: no hook starts before the PreExit entries have ended'],
      [ending, 'AfterPreExit: hooks of app containers start when the last PreExit entry has ended'],
      [
        ending,
        'AfterPreExit: hooks of app containers start at the start of the termination if no PreExit entry is due',
      ],
      [ending, 'AfterPreExit: the hook of a sidecar starts when the sidecar stops'],
      [order, 'preStop hooks start immediately; the first PreExit entry does not wait for them'],
      [order, 'preStop hooks of sidecars start immediately too, and stop nothing'],
      [
        order,
        'AfterPreExit: hooks of apps start when the last PreExit entry has ended, that of a sidecar when the sidecar stops',
      ],
      [order, 'AfterPreExit: hooks start at the start of the termination if no PreExit entry is due'],
      [onTime, 'preStopPolicy AfterPreExit: hooks of apps start when the last PreExit entry has ended'],
    ],
  },
  {
    says: 'The files of the downward API are rewritten before the first hook or entry starts; a failed rewrite does not hold the list up.',
    tests: [
      [ending, 'are written before the first hook or entry'],
      [ending, 'downward API files are not written if none shows the termination'],
      [ending, 'of a projected volume count too'],
      [ending, 'downward API files delay nothing once a rewrite has failed'],
      [
        'src/node/pod/executor.test.ts',
        'the action writeDownwardFiles rewrites the downward API files and returns their version',
      ],
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
      [ending, 'app containers stop after the PreExit entries'],
      [ending, 'a running init container stops with the app containers'],
      [entryEnds, 'app containers stop only once the status has the end of a failed entry'],
      [ending, 'an app container gets its stop signal once its own hook and the PreExit entries have ended'],
      [order, 'the app waits for both'],
      [order, 'an entry may stop the app itself'],
      [properties, 'no PreExit entry starts after the apps got their stop signal'],
    ],
  },
  {
    says: 'When no process of any app container is left, the PostExit entries run in order.',
    tests: [
      ['src/lifecycle/defer.test.ts', 'a PostExit entry waits for the last process of an app container'],
      [order, 'PostExit entries wait until no process of an app container is left'],
      [
        'src/simulation/defer-outages.test.ts',
        'an app whose container vanishes has ended, so the PostExit entries run',
      ],
      [properties, 'no PostExit entry starts while a process of an app container is alive'],
      [
        e2e,
        'a deletion runs PreExit defer containers, stops the app, runs PostExit ones, and kubectl shows the progress',
      ],
    ],
  },
  {
    says: 'Then native sidecars stop in reverse order, ephemeral containers, the sandbox.',
    tests: [
      [ending, 'the sidecar that started last stops after the list'],
      [ending, 'ephemeral containers stop after the sidecars'],
      [ending, 'the sandbox stops last'],
      [ending, 'a PostExit stage that has yet to begin keeps the sidecars running'],
      [ending, 'the sandbox stops once the status has the end of every entry'],
      [order, 'ephemeral containers stop after the list and the sidecars'],
      [properties, 'before the deadline, sidecars stop once the list has ended, in reverse order, and ephemeral'],
      [matrix, 'stop after it in reverse order, ephemeral containers last'],
    ],
  },
  {
    says: 'The Pod goes as soon as its list and containers have ended: nobody waits for the rest of the grace period.',
    tests: [
      [order, 'a Pod does not wait for the rest of its grace period once its list and its containers have ended'],
      [ending, 'the object is deleted once nothing is left on the node'],
      [
        'test/long/lost-container.test.ts',
        'a Pod that lost a container ends in order; removal of its sandbox backs off and is reported',
      ],
    ],
  },
];
