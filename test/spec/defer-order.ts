/** The specification of defer containers: the order of a termination. */
import type { Sentence } from './sentence.ts';

const orderTests = 'src/simulation/defer-order.test.ts';
const failures = 'src/simulation/defer-failures.test.ts';
const e2e = 'test/e2e/defer.test.ts';
const matrix = 'test/long/defer-matrix.test.ts';
const properties = 'src/simulation/defer.property.test.ts';

export const termination: readonly Sentence[] = [
  {
    says: 'termination (reason, startedAt, deadline) is written first.',
    tests: [
      [orderTests, 'the termination is written before anything of it begins, and Ready is False at once'],
      [properties, 'nothing of the list starts before the termination is written, nor after its deadline'],
    ],
  },
  {
    says: 'ready becomes false and endpoints drop the Pod at once.',
    tests: [[orderTests, 'the termination is written before anything of it begins, and Ready is False at once']],
  },
  {
    says: 'Liveness and startup probes of app containers stop. No app container is restarted from here on. Native sidecars keep running and keep being restarted until the list has ended.',
    tests: [
      [
        orderTests,
        'app containers are neither probed for liveness nor restarted, sidecars are both until the list has ended',
      ],
      [matrix, 'sidecars live and are restarted while the list runs'],
    ],
  },
  {
    says: 'At once every preStop hook starts, and, without waiting for them, the first PreExit entry.',
    tests: [
      [
        orderTests,
        'preStop hooks start at once, and the first PreExit entry does not wait for them; the app waits for both',
      ],
    ],
  },
  {
    says: 'Entries run strictly one after the other.',
    tests: [
      [properties, 'entries run strictly in order'],
      [e2e, 'a deletion runs them in order'],
    ],
  },
  {
    says: 'When the last PreExit entry has ended, each app container gets its stop signal, as soon as its own preStop hook is also done.',
    tests: [
      [
        orderTests,
        'preStop hooks start at once, and the first PreExit entry does not wait for them; the app waits for both',
      ],
      [properties, 'PreExit never starts after the apps were told to stop'],
    ],
  },
  {
    says: 'An entry may have stopped the app itself before: fine.',
    tests: [[orderTests, 'an entry may have stopped the app itself before']],
  },
  {
    says: 'When no process of any app container is left, the PostExit entries run in order.',
    tests: [
      [orderTests, 'PostExit entries wait until no process of an app container is left'],
      [properties, 'PostExit never runs while a process of an app container lives'],
      [e2e, 'a deletion runs them in order'],
    ],
  },
  {
    says: 'Then native sidecars stop in reverse order, ephemeral containers, the sandbox.',
    tests: [
      [
        orderTests,
        'app containers are neither probed for liveness nor restarted, sidecars are both until the list has ended',
      ],
      [orderTests, 'ephemeral containers stop after the list and the sidecars'],
      [
        properties,
        'before the deadline, sidecars stop once the list has ended, in reverse order, and ephemeral containers after them',
      ],
      [
        matrix,
        'sidecars live and are restarted while the list runs, and stop after it in reverse order, ephemeral ones last',
      ],
    ],
  },
  {
    says: 'The Pod goes as soon as its list and containers have ended: nobody waits for the rest of the grace period.',
    tests: [[orderTests, 'nobody waits for the rest of the grace period']],
  },
  {
    says: 'One absolute deadline bounds it all. At the deadline there is the one-off extension of 2 s; then the running entry and every remaining container are killed, and no further entry starts.',
    tests: [
      [
        orderTests,
        'at the deadline there are 2 s more, then the running entry and the app are killed, and no further entry starts',
      ],
      [properties, 'a deleted Pod is gone within deadline + 2 s'],
      [e2e, '--now leaves 1 s: what runs then has 2 s more until it is killed, and nothing further starts'],
    ],
  },
  {
    says: 'A second delete with a shorter grace shortens the deadline; nothing lengthens it but the extensions.',
    tests: [
      [orderTests, 'a second delete with a shorter grace shortens the deadline, a longer one lengthens nothing'],
      [properties, 'the deadline moves earlier by a second reason only, later by an extension only'],
      [e2e, 'a second delete with a shorter grace moves the deadline nearer'],
    ],
  },
  {
    says: 'Entries that never ran end as Skipped.',
    tests: [
      [orderTests, 'at the deadline there are 2 s more'],
      [e2e, '--now leaves 1 s'],
    ],
  },
  {
    says: 'An entry that fails: with Never the list moves on.',
    tests: [[failures, 'with Never the list moves on']],
  },
  {
    says: 'With OnFailure/Always it is retried with the container back-off (1 s first here, doubling, at most 10 s) until it succeeds, its timeoutSeconds or the deadline pass.',
    tests: [
      [failures, 'it is retried, after 1 s, 2 s, 4 s, 8 s, 10 s, 10 s, until it succeeds'],
      [failures, 'its timeoutSeconds end the wait for the next attempt, too'],
      [failures, 'it is retried until the deadline passes'],
      [failures, 'what its timeoutSeconds ended is not retried as the sidecars stop after it'],
      [e2e, 'failures: a timeout, retries'],
    ],
  },
  {
    says: 'Its image cannot be pulled or started, its timeoutSeconds passed, its liveness probe failed.',
    tests: [
      [failures, 'its image cannot be pulled: with Never the list moves on, and the status says why'],
      [failures, 'its image cannot be pulled: with OnFailure it is retried within its timeout'],
      [failures, 'its timeoutSeconds bound all attempts'],
      [failures, 'its liveness probe failed: ended within 2 s, and the list moves on or it is retried'],
      [e2e, 'an image that cannot be pulled'],
      [matrix, 'the liveness probe of an entry failed: the list moves on, or it is retried'],
    ],
  },
  {
    says: 'The failure of any or all entries never restarts the Pod and does not change its phase.',
    tests: [[failures, 'never restarts the Pod and does not change its phase']],
  },
  {
    says: 'Extension by liveness: each success of the probe moves the deadline to now + periodSeconds.',
    tests: [
      [
        failures,
        'by liveness: past the deadline each success of the probe moves it to now + periodSeconds, until the entry ends',
      ],
      [failures, 'by liveness: a probe that fails, or none, extends nothing'],
      [e2e, 'extension by liveness: each success of the probe moves the deadline'],
    ],
  },
  {
    says: 'Extension by count: at the deadline, if entries are still due, the deadline moves by S, at most N times.',
    tests: [
      [failures, 'by count: at the deadline, while entries are due, it moves by S, at most N times'],
      [failures, 'by count: not where nothing is due any more, and an app that stops slowly has the moved deadline'],
      [e2e, 'extension by count: the deadline moves'],
    ],
  },
  {
    says: "Both are bounded by the node's maxGracePeriodExtensionSeconds (default 3600).",
    tests: [
      [failures, "both are bounded by the node's maxGracePeriodExtensionSeconds"],
      ['src/cli/settings.test.ts', 'a new data folder gets the defaults'],
      [matrix, 'an extension is bounded by --max-grace-period-extension'],
    ],
  },
  {
    says: 'They are written to the Pod before they count (termination.deadline, and metadata.deletionTimestamp follows), and give an Event ExtendGracePeriod.',
    tests: [
      [failures, 'a move is written to the Pod before it counts'],
      ['src/apiserver/registry/deletes.test.ts', 'metadata.deletionTimestamp follows where the node moves it later'],
      [e2e, 'the deadline moves, and deletionTimestamp with it'],
    ],
  },
];
