/** The specification of defer containers: when the list runs. */
import type { Sentence } from './sentence.ts';

const when = 'src/simulation/defer-when.test.ts';
const recovery = 'src/simulation/defer-recovery.test.ts';
const e2e = 'test/e2e/defer.test.ts';
const matrix = 'test/long/defer-matrix.test.ts';
const lost = 'test/long/defer-node-lost.test.ts';
const node = 'test/e2e/node.test.ts';

export const occasions: readonly Sentence[] = [
  {
    says: 'Deleted, evicted through the API, preempted, drained, scaled down, replaced: runs, within the grace period in force.',
    tests: [
      [when, 'deleted: PreExit entries in order, then the app stops, then PostExit entries'],
      [when, 'EvictionByEvictionAPI'],
      [when, 'PreemptionByScheduler'],
      [e2e, 'a deletion runs them in order'],
      [e2e, 'an eviction through the API'],
      [node, 'drained, its Pods are gone, and their defer containers have run'],
      [node, 'drive away who does not tolerate them, after its defer containers'],
      [
        'test/e2e/admission.test.ts',
        'others make way for a Pod of a higher class, with their grace period and after their defer containers',
      ],
    ],
  },
  {
    says: 'All app containers completed by themselves: runs once, as exit work; the grace counts from the last exit.',
    tests: [
      [when, 'app containers that completed by themselves with'],
      [when, 'a Pod that completes by itself does not wait with its app for the others'],
      [e2e, 'a Pod that completes by itself runs them once, as exit work'],
    ],
  },
  {
    says: 'Deleting the Pod later does not run it again.',
    tests: [
      [when, 'deleting a Pod that completed by itself does not run it again'],
      [e2e, 'deleting it later runs nothing'],
    ],
  },
  {
    says: "Deleting it meanwhile shortens the deadline to the delete's if that is earlier.",
    tests: [
      [when, 'shortens the deadline if that is earlier'],
      [matrix, 'a delete of a Pod that completes by itself shortens the deadline'],
    ],
  },
  {
    says: "activeDeadlineSeconds passed: runs within the grace period; the deadline's own time does not count it.",
    tests: [
      [when, 'activeDeadlineSeconds: it runs within the grace period, which counts from then'],
      [e2e, 'activeDeadlineSeconds: they run within the grace period'],
    ],
  },
  {
    says: 'Node pressure, soft threshold: runs within min(grace, the configured maximum).',
    tests: [
      [when, 'at most: within the shorter of it and the grace period'],
      [
        'test/long/eviction.test.ts',
        'a soft threshold ends one Pod after the other, with grace for their defer containers',
      ],
    ],
  },
  {
    says: 'Node pressure, hard threshold: skipped; recorded.',
    tests: [
      [when, 'node pressure, hard: skipped, and recorded'],
      [when, 'node pressure, hard: what has run by then ended as it did'],
      ['test/long/eviction.test.ts', 'the Pod that fills it is evicted at once, without its defer containers'],
    ],
  },
  {
    says: 'Graceful node shutdown: runs within min(grace, the shutdown grace left for this Pod).',
    tests: [
      [when, 'node shutdown: within the time that is left for the Pod'],
      ['test/long/shutdown.test.ts', 'ends Pods by priority within the periods'],
    ],
  },
  {
    says: 'Deleted with grace 0 and force: skipped, no trace of a run.',
    tests: [
      [when, 'deleted by force: skipped, no trace of a run'],
      [e2e, '--grace-period=0 --force: no trace of a run'],
      [when, 'deleted by force, with an object that a finalizer holds'],
    ],
  },
  {
    says: 'Never scheduled, or no init container had started: skipped; deletion is immediate.',
    tests: [
      [when, 'no init container had started: skipped, deletion is immediate'],
      [matrix, 'no init container had started: gone at once, the entries are skipped'],
    ],
  },
  {
    says: 'Deleted, or failed, while initializing: PreExit entries are skipped, PostExit entries run.',
    tests: [
      [when, 'deleted while initializing: PreExit entries are skipped, PostExit entries run'],
      [when, 'failed while initializing: PostExit entries run'],
      [matrix, 'deleted while initializing: PreExit entries are skipped, PostExit entries run'],
      [matrix, 'failed while initializing: PreExit entries are skipped, PostExit entries run'],
    ],
  },
  {
    says: 'An app container crashes and restarts in a living Pod: not run.',
    tests: [
      [when, 'an app container that crashes and restarts in a living Pod: not run'],
      [matrix, 'an app that crashes and restarts: the entries stay PodRunning'],
    ],
  },
  {
    says: 'The node crashed, the sandbox was lost: a new sandbox, PreExit entries not yet done are skipped, PostExit entries run.',
    tests: [
      [when, 'the sandbox is lost: a new one, the PreExit entries not yet done are skipped, PostExit entries run'],
      [recovery, 'makes a new sandbox for PostExit entries where the old one is lost and there is time'],
      [e2e, 'the sandbox is lost'],
      [lost, 'in time PostExit entries run in a new sandbox'],
    ],
  },
  {
    says: 'Otherwise NodeLost is recorded.',
    tests: [
      [recovery, 'records NodeLost where the sandbox is lost and the time has passed'],
      [lost, 'after the deadline it is NodeLost'],
    ],
  },
];
