/** A second client sends requests without a pause. */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Pod } from '../../../src/api/generated/types.ts';
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
  terms: number[];
  /** The members that accepted writes, by term. */
  leaders: Map<number, Set<string>>;
  /** Answers other than the name of a leader or an accepted write. */
  without: string[];
}

/** Asks one member after another for the leader and to accept a write, from before `action` until after its end. */
async function asking(action: () => Promise<unknown>): Promise<Answers> {
  const answers: Answers = { terms: [], leaders: new Map(), without: [] };
  const askNext = async (turn: number): Promise<void> => {
    const leads = await ask(turn, 'who');
    if (!/^members-\S+ leads in term \d+$/.test(leads)) answers.without.push(`who: ${leads}`);
    const write = await ask(turn, 'write');
    const [, leader = '', term = ''] = /^accepted by (members-\S+) in term (\d+)$/.exec(write) ?? [];
    if (leader === '') answers.without.push(`write: ${write}`);
    else {
      answers.terms.push(Number(term));
      answers.leaders.set(Number(term), (answers.leaders.get(Number(term)) ?? new Set()).add(leader));
    }
  };
  let turn = 0;
  await askNext(turn++);
  let isOver = false;
  const acting = action().finally(() => {
    isOver = true;
  });
  // The failure of the action is reported after the loop.
  acting.catch(() => undefined);
  while (!isOver) await askNext(turn++);
  await askNext(turn++);
  await acting;
  return answers;
}

async function ask(turn: number, question: string): Promise<string> {
  const folder = join(example.nodeFolder, 'members');
  const members = readdirSync(folder);
  const member = join(folder, members[turn % members.length] ?? '');
  try {
    const address = readFileSync(member, 'utf8').trim();
    const response = await fetch(`http://${address}:8080/cgi-bin/ask?${question}`);
    return (await response.text()).trim();
  } catch (error) {
    return readdirSync(folder).includes(basename(member)) ? String(error) : ask(turn + 1, question);
  }
}

const handedOver = (name: string) => record.now(name).status?.deferContainerStatuses?.[0]?.state?.terminated;

function expectOneLeader({ terms, leaders, without }: Answers): void {
  expect(without).toEqual([]);
  expect(terms).toEqual(terms.toSorted((a, b) => a - b));
  expect([...leaders.values()].map(({ size }) => size)).toEqual([...leaders.keys()].map(() => 1));
}

async function expectHandedOver(name: string, reason: string): Promise<void> {
  await record.gone(name);
  expect(record.now(name).status?.termination?.reason, name).toBe(reason);
  expect(handedOver(name), name).toMatchObject({ exitCode: 0, reason: 'Completed' });
  const app = record.now(name).status?.containerStatuses?.[0]?.state?.terminated;
  expect(millisOf(handedOver(name)?.finishedAt)).toBeLessThanOrEqual(millisOf(app?.finishedAt));
}

async function memberNames(): Promise<string[]> {
  const { items } = await example.lifepod.get<{ items: Pod[] }>('pods', '-l', 'app=member');
  return items.map(({ metadata }) => metadata.name);
}

test('04-leader-hand-over: the group has a leader', async () => {
  expect(await example.step('/scripts/leader')).toMatch(/members-\S+\n$/);
});

test('04-leader-hand-over: when a scale-down removes the leader, there is always a leader that accepts writes, and never two in one term', async () => {
  const answers = await asking(() => example.step('kubectl scale deployment/members --replicas=2'));
  expectOneLeader(answers);
  expect([...answers.leaders.keys()]).toEqual([1, 2]);
  const [left = ''] = answers.leaders.get(1) ?? [];
  await expectHandedOver(left, 'ScaledDown');
});

test('04-leader-hand-over: the same holds while a rolling update replaces all members', async () => {
  await example.step('kubectl scale deployment/members --replicas=3');
  const before = await memberNames();
  const answers = await asking(() => example.step('kubectl rollout restart'));
  expectOneLeader(answers);
  expect(before).toHaveLength(3);
  for (const name of before) await expectHandedOver(name, 'Replaced');
  // The client asked once more after all old members had been deleted.
  const [leader] = answers.leaders.get(Math.max(...answers.leaders.keys())) ?? [];
  expect(await memberNames()).toContain(leader);
});

test('04-leader-hand-over: a leader deleted by force, without its list, leaves the group without a leader for a time', async () => {
  const { without } = await asking(async () => {
    expect(await example.step('--force')).not.toContain(' 0 refused');
  });
  expect(without.length).toBeGreaterThan(0);
});

test('04-leader-hand-over: members that are deleted with their Deployment do not hand over', async () => {
  const members = await memberNames();
  await example.step('kubectl delete -f members.yaml');
  for (const name of members) {
    await record.gone(name);
    expect(handedOver(name)).toMatchObject({ reason: 'Skipped', message: 'not due on OwnerDeleted' });
  }
  expect(example.rest()).toEqual([]);
});
