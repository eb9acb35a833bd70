/** examples/04-leader-hand-over, as its README says it, with a second client that asks without a pause. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseTime } from '../../../src/machinery/time.ts';
import { type Example, startExample } from '../../support/example.ts';
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
  /** Terms of accepted writes, in order. */
  terms: number[];
  /** By term, who accepted in it. */
  leaders: Map<number, Set<string>>;
  /** What was answered in place of a leader, or of an accepted write. */
  without: string[];
}

/** Asks member after member who leads and to take a write, until `action` has ended. */
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
    const who = await ask(address, 'who');
    if (!/^member-\d leads in term \d+$/.test(who)) answers.without.push(`who: ${who}`);
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

/** Of one of the members; undefined where it has gone from the list in this moment. */
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
    const answer = await fetch(`http://${address}:8080/cgi-bin/ask?${question}`, { signal: AbortSignal.timeout(2000) });
    return (await answer.text()).trim();
  } catch (error) {
    return String(error);
  }
}

const handedOver = (name: string) => record.now(name).status?.deferContainerStatuses?.[0]?.state?.terminated;
const named = (output: string): string => /pod "(member-\d)"/.exec(output)?.[1] ?? '';
const time = (text: string | undefined): number => parseTime(text ?? '') ?? Number.NaN;

test('the group has a leader', async () => {
  expect(await example.step('/scripts/leader')).toMatch(/member-\d\n$/);
});

test('the leader leaves: there is one that accepts writes at any time, and never two in a term', async () => {
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
  expect(time(handedOver(leaving)?.finishedAt)).toBeLessThanOrEqual(time(app?.finishedAt));
});

test('a member that does not lead leaves: the term stays', async () => {
  let leaving = '';
  const { terms, without } = await asking(async () => {
    leaving = named(await example.step('/scripts/follower'));
  });
  expect(without).toEqual([]);
  expect([...new Set(terms)]).toEqual([2]);
  expect(handedOver(leaving)).toMatchObject({ exitCode: 0 });
  expect(await example.lifepod.kubectlOk('logs', 'client', '--tail=1')).toMatch(/ 0 refused;/);
});

test('deleted by force, without its list, the leader leaves a time without one', async () => {
  const { without } = await asking(async () => {
    expect(await example.step('--force')).not.toContain(' 0 refused');
  });
  expect(without.length).toBeGreaterThan(0);
  await example.step('kubectl delete pod client');
  expect(example.rest()).toEqual([]);
});
