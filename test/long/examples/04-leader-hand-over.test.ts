/** Runs examples/04-leader-hand-over as its README describes, with a second client that sends requests without a pause. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Example, millisOf, startExample } from '../../support/example.ts';
import { type PodRecord, recordPods } from '../../support/pods.ts';

let example: Example;
let record: PodRecord;
beforeAll(async () => {
  example = await startExample('04-leader-hand-over');
  record = await recordPods(example.lifepod);
});
afterAll(async () => {
  record?.end();
  await example?.stop();
});

interface Answers {
  /** The terms of accepted writes, in order. */
  terms: number[];
  /** The members that accepted writes, by term. */
  leaders: Map<number, Set<string>>;
  /** Answers other than the name of a leader or an accepted write. */
  without: string[];
}

/** Asks one member after the other for the leader and to accept a write, until `action` has ended. */
async function asking(action: () => Promise<unknown>): Promise<Answers> {
  const answers: Answers = { terms: [], leaders: new Map(), without: [] };
  let ended = false;
  const end = (): void => {
    ended = true;
  };
  const acting = action();
  acting.then(end, end);
  for (let turn = 0; !ended; turn++) {
    const address = addressOf(turn);
    if (address === undefined) continue;
    const leads = await ask(address, 'who');
    if (!/^member-\d leads in term \d+$/.test(leads)) answers.without.push(`who: ${leads}`);
    const write = await ask(address, 'write');
    const [, leader = '', term = ''] = /^accepted by (member-\d) in term (\d+)$/.exec(write) ?? [];
    if (leader === '') answers.without.push(`write: ${write}`);
    else {
      answers.terms.push(Number(term));
      answers.leaders.set(Number(term), (answers.leaders.get(Number(term)) ?? new Set()).add(leader));
    }
  }
  await acting;
  return answers;
}

/** Returns the address of one of the members, by `turn`. Returns undefined if the member leaves the list during the call. */
function addressOf(turn: number): string | undefined {
  const folder = join(example.nodeFolder, 'members');
  const members = readdirSync(folder);
  try {
    return readFileSync(join(folder, members[turn % members.length] ?? ''), 'utf8').trim();
  } catch {
    return undefined;
  }
}

async function ask(address: string, question: string): Promise<string> {
  try {
    const answer = await fetch(`http://${address}:8080/cgi-bin/ask?${question}`, {
      signal: AbortSignal.timeout(15_000),
    });
    return (await answer.text()).trim();
  } catch (error) {
    return String(error);
  }
}

const handedOver = (name: string) => record.now(name).status?.deferContainerStatuses?.[0]?.state?.terminated;
const named = (output: string): string => /pod "(member-\d)"/.exec(output)?.[1] ?? '';

test('04-leader-hand-over: the group has a leader', async () => {
  expect(await example.step('/scripts/leader')).toMatch(/member-\d\n$/);
});

test('04-leader-hand-over: when the leader leaves, there is always a leader that accepts writes, and never two in one term', async () => {
  let leaving = '';
  const { terms, leaders, without } = await asking(async () => {
    leaving = named(await example.step('kubectl delete pod'));
  });
  expect(without).toEqual([]);
  expect(terms).toEqual(terms.toSorted((a, b) => a - b));
  expect([...new Set(terms)]).toEqual([1, 2]);
  expect(leaders.get(1)).toEqual(new Set([leaving]));
  expect(leaders.get(2)?.size).toBe(1);
  expect(leaders.get(2)).not.toEqual(leaders.get(1));
  expect(handedOver(leaving)).toMatchObject({ exitCode: 0, reason: 'Completed' });
  const app = record.now(leaving).status?.containerStatuses?.[0]?.state?.terminated;
  expect(millisOf(handedOver(leaving)?.finishedAt)).toBeLessThanOrEqual(millisOf(app?.finishedAt));
});

test('04-leader-hand-over: the term does not change when a follower leaves', async () => {
  let leaving = '';
  const { terms, without } = await asking(async () => {
    leaving = named(await example.step('/scripts/follower'));
  });
  expect(without).toEqual([]);
  expect([...new Set(terms)]).toEqual([2]);
  expect(handedOver(leaving)).toMatchObject({ exitCode: 0 });
  expect(await example.lifepod.kubectlOk('logs', 'client', '--tail=1')).toMatch(/ 0 refused;/);
});

test('04-leader-hand-over: a leader deleted by force, without its list, leaves the group without a leader for a time', async () => {
  const { without } = await asking(async () => {
    expect(await example.step('--force')).not.toContain(' 0 refused');
  });
  expect(without.length).toBeGreaterThan(0);
  await example.step('kubectl delete pod client');
  expect(example.rest()).toEqual([]);
});
