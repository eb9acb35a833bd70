/** The section "Time": the sentences before those about extensions. */
import type { Sentence } from './sentence.ts';

const e2e = 'test/e2e/defer.test.ts';
const onTime = 'test/long/defer-time.test.ts';
const order = 'src/simulation/defer-order.test.ts';
const failures = 'src/simulation/defer-failures.test.ts';
const reasons = 'src/simulation/defer-reasons.test.ts';
const outages = 'src/simulation/defer-outages.test.ts';
const times = 'src/simulation/defer-time.property.test.ts';
const played = 'src/simulation/lives-of-the-specification.test.ts';
const causes = 'src/lifecycle/termination-causes.test.ts';
const stages = 'src/lifecycle/termination-stages.test.ts';
const defer = 'src/lifecycle/defer.test.ts';
const entryEnds = 'src/lifecycle/defer-ends.test.ts';
const ending = 'src/lifecycle/termination-waves.test.ts';
const stops = 'src/lifecycle/hooks-and-stops.test.ts';
const deletion = 'src/api/core/v1/pod/strategy.test.ts';

export const time: readonly Sentence[] = [
  {
    says: "All times are in milliseconds of the engine's clock.",
    tests: [
      [stages, 'the status has the termination to the millisecond'],
      ['src/simulation/clock-steps.test.ts', 'the sampled lives are the same if the clock is set %s'],
    ],
  },
  {
    says: "T0 is when the agent first writes `status.termination`, not the time of the API's request. G is the grace period of the cause in force.",
    tests: [
      [causes, 'the grace period of a deletion counts from when the agent sees it'],
      [causes, 'the cause with the earliest end gives the end of a termination'],
      ['src/lifecycle/initial-memory.test.ts', 'counts a deletion that was made while no agent ran from now'],
    ],
  },
  {
    says: '**D** = T0 + G ends it all; **S** = D - R ends the PreExit stage; **R** is the reserve of the PostExit stage.',
    tests: [
      [causes, 'the reserve of the PostExit stage'],
      [times, 'only PostExit entries use the reserve'],
      [outages, 'an app that ignores its stop signal leaves the PostExit entries their reserve'],
    ],
  },
  {
    says: 'R0 = `postExitGracePeriodSeconds`; if absent, half of `terminationGracePeriodSeconds`, but at most the sum of (timeoutSeconds + 2) over the PostExit entries where each has one.',
    tests: [
      [causes, 'postExitGracePeriodSeconds'],
      [causes, 'the reserve for an entry without timeoutSeconds is half of the grace period'],
      [causes, 'the reserve for entries with timeoutSeconds is at most timeoutSeconds + 2 s for each'],
      [causes, 'the reserve is half of the grace period if one of several entries has no timeoutSeconds'],
      [outages, 'the reserve is the sum of timeoutSeconds + 2 if each PostExit entry has one and the sum is smaller'],
      [onTime, 'the reserve is at most the sum that the timeouts of the PostExit entries need'],
      [onTime, 'with postExitGracePeriodSeconds, the PreExit stage ends before the reserve begins'],
    ],
  },
  {
    says: 'Entries that are not due for this reason do not count; with none due R0 = 0.',
    tests: [
      [causes, 'an entry that is not due adds nothing to the reserve'],
      [causes, 'there is no reserve if no PostExit entry is due'],
      [reasons, 'entries that are not due reserve no time'],
    ],
  },
  {
    says: 'R = R0 x min(1, G / terminationGracePeriodSeconds), but at least min(R0, 2 s).',
    tests: [
      [causes, 'the reserve shrinks in proportion to a grace period that is shorter than in the spec'],
      [causes, 'the reserve does not grow with a grace period that is longer than in the spec'],
      [causes, 'the reserve of a shorter grace period is at least 2 s'],
      [causes, 'a reserve below 2 s does not shrink with a shorter grace period'],
      [outages, 'a shorter grace period shortens it in proportion'],
    ],
  },
  {
    says: '(So one PostExit entry without a timeout halves the time that the app containers have to stop: README says so.)',
    tests: [
      [causes, 'the reserve for an entry without timeoutSeconds is half of the grace period'],
      [
        onTime,
        'an app that ignores SIGTERM leaves PostExit entries their reserve, by default half of the grace period',
      ],
      ['test/tidy/documents.test.ts', 'the README states the cost of a PostExit entry without timeoutSeconds'],
    ],
  },
  {
    says: 'At S the running PreExit entry is told to stop (and killed at S + 2 s), preStop hooks are cancelled, and PreExit entries whose turn has not come end as Skipped.',
    tests: [
      [entryEnds, 'the end of the PreExit stage'],
      [ending, 'hooks of app containers are canceled at the end of the PreExit stage'],
      [defer, 'a PreExit entry is skipped at the end of the PreExit stage'],
      [order, 'at the end of the PreExit stage its entry is stopped, the others are skipped, and PostExit entries run'],
      [order, 'preStop hooks that still run at the end of the PreExit stage are canceled'],
    ],
  },
  {
    says: 'App containers get the stop signal when the last PreExit entry has ended, and are killed at max(S, signal + 2 s).',
    tests: [
      [ending, 'app containers stop after the PreExit entries'],
      [ending, 'app containers have 2 s between signal and kill after a late PreExit entry'],
      [stops, 'is killed at %i s'],
      [times, 'every container has 2 s between its stop signal and its kill'],
    ],
  },
  {
    says: 'A is when the last process of an app container is gone. When the PostExit stage begins, D becomes max(D, A + R). This is written first, is not an extension, and needs no setting.',
    tests: [
      [stages, 'with a last exit at %i s, the PostExit stage begins with the deadline at %i s'],
      [stages, 'the reserve is not an extension, and also applies in a node shutdown'],
      [stages, 'the moved deadline is written before the entry starts'],
      [stages, 'the reserve counts once: the next PostExit entry has the same deadline'],
      [played, 'life a: an app that ignores SIGTERM, a PreExit entry that hangs, two PostExit entries'],
      [
        times,
        'only an extension, an outage or the start of the PostExit stage moves a deadline later, only a later cause earlier',
      ],
      [onTime, 'the PostExit stage has its reserve from the end of the apps on, and the deadline moves accordingly'],
    ],
  },
  {
    says: 'At D the running entry and every other container are told to stop and killed 2 s later; entries whose turn has not come end as Skipped.',
    tests: [
      [ending, 'everything that still runs gets its stop signal at the deadline, and is killed 2 s later'],
      [defer, 'a PostExit entry is skipped at the deadline'],
      [order, 'at the deadline everything that runs is stopped and killed 2 s later, and no further entry starts'],
      [times, 'a deleted Pod is removed within 4 s of its deadline'],
      [
        e2e,
        'a deletion with --now stops PreExit defer containers after 1 s, kills them 2 s later, and still runs PostExit ones',
      ],
    ],
  },
  {
    says: "A later cause at time t with an earlier end D' (a second delete, the node's shutdown, pressure): in the PreExit stage R' = max(R x (D' - t) / (D - t), min(R, 2 s)) and S' = D' - R'; afterwards D = D'.",
    tests: [
      [causes, 'the reserve shrinks with the time that a second delete leaves'],
      [causes, 'a reserve below 2 s does not shrink with a shorter grace period'],
      [causes, 'once the PostExit stage has begun, a second delete moves only the deadline'],
      [causes, 'the reserve keeps 2 s however little time a second delete leaves'],
      [causes, 'a termination by the node shortens a deletion'],
      [stages, 'an earlier deadline does not wait for the status'],
      [played, 'life d: a second delete with a grace period of 5 s at 10 s, of which the API leaves 1 s'],
      [e2e, 'a second delete with a shorter grace period moves the deadline of defer containers to an earlier time'],
    ],
  },
  {
    says: "For a second delete D' = t + deletionGracePeriodSeconds as the API left it. Nothing moves an end later but what follows.",
    tests: [
      [
        causes,
        'life d: a second delete at 10 s with 1 s moves the end of the PreExit stage to 9 s and the deadline to 11 s',
      ],
      [causes, 'a second delete with a later end moves nothing'],
      [causes, 'each cause of a termination counts once'],
      [deletion, 'never extends the grace period of the first delete'],
      [deletion, 'shortens the grace period of the first delete'],
      [order, 'a second delete with a shorter grace period shortens the deadline, a longer one does not extend it'],
      [
        times,
        'only an extension, an outage or the start of the PostExit stage moves a deadline later, only a later cause earlier',
      ],
    ],
  },
  {
    says: '`timeoutSeconds` of an entry counts from the moment at which its turn comes: the end of the entry before it *as it was decided*, never an earlier time. The entry gets its stop signal then, and is killed 2 s later.',
    tests: [
      [entryEnds, 'its timeoutSeconds, counted from its turn'],
      [
        outages,
        'timeoutSeconds count from the decided end of the previous entry, so a slow entry takes no time from the next one',
      ],
      [outages, 'an entry whose timeoutSeconds have passed gets its stop signal and is killed 2 s later'],
      [failures, 'timeoutSeconds count from the exit of the apps, not from the exit of a sidecar that restarts'],
      [onTime, 'timeoutSeconds counts from the turn'],
    ],
  },
  {
    says: 'A start of a container that is in flight is awaited until S or D; the wait counts as time of the stage.',
    tests: [
      [defer, 'the start of an app container is awaited until the end of the PreExit stage'],
      [outages, 'a start that never ends is awaited until the PreExit stage ends'],
    ],
  },
];
