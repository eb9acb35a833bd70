import { spawn } from 'node:child_process';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { forwardWarnings } from '../../src/network/nftables/forward-drops.ts';
import type { Part, Section } from '../../src/network/nftables/section.ts';
import { deleteTable, type NftTable, openTable } from '../../src/network/nftables/table.ts';
import { systemTimers } from '../../src/platform/node-js.ts';
import type { Log } from '../../src/platform/platform.ts';
import { silentLog } from '../../src/platform/silent-log.ts';
import { createNetworkNamespace, type NetworkNamespace } from '../support/network-namespace.ts';

const name = 'lifepod-0';
const { signal } = new AbortController();

let namespace: NetworkNamespace;
beforeAll(async () => {
  namespace = await createNetworkNamespace();
});
afterAll(async () => {
  await namespace[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await namespace.runOk('nft', ['flush', 'ruleset']);
});

const open = () => openTable({ name, signal, namespace: namespace.name });

/** Chains, sets and elements are in alphabetical order. */
async function contents(): Promise<string[]> {
  const { nftables } = JSON.parse(await namespace.runOk('nft', ['--json', 'list', 'table', 'inet', name])) as {
    nftables: Record<string, { elem?: unknown[]; handle?: number; chain?: string }>[];
  };
  return nftables
    .filter((entry) => entry['metainfo'] === undefined)
    .map((entry, index) => {
      const [[kind, object] = ['', {}]] = Object.entries(entry);
      const { handle: _, ...rest } = object;
      rest.elem?.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
      // The index keeps rules in the order of their chain.
      return `${kind} ${JSON.stringify(rest)}${kind === 'rule' ? ` ${String(index).padStart(5, '0')}` : ''}`;
    })
    .sort()
    .map((line) => line.replace(/ \d{5}$/, ''));
}

const parts = (section: Record<string, Part>): Section => new Map(Object.entries(section));
const accepting = (chain: string): Section => parts({ x: { chains: [{ name: chain, rules: ['accept'] }] } });

const CHAINS = ['a', 'b', 'c'].map((letter) => `services/${letter}`);
const KEYS = ['10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4'];

/** Generates chains that are attached to a hook or jump to the next chains, and maps whose elements lead to chains of the section. */
const sections: fc.Arbitrary<Section> = fc
  .record({
    chains: fc.subarray(CHAINS),
    attached: fc.boolean(),
    priority: fc.constantFrom(-100, -90),
    jumps: fc.boolean(),
    maps: fc.subarray(['services/m', 'services/n']),
    type: fc.constantFrom('ipv4_addr', 'ipv4_addr . inet_service'),
    elements: fc.dictionary(fc.constantFrom(...KEYS), fc.nat(3), { noNullPrototype: true }),
    split: fc.boolean(),
  })
  .map(({ chains, attached, priority, jumps, maps, type, elements, split }) => {
    const targets = [...chains.map((chain) => `goto ${chain}`), 'drop', 'accept'];
    const key = (address: string): string => (type === 'ipv4_addr' ? address : `${address} . 80`);
    const entries = Object.entries(elements).map(([address, target]) => ({
      address: key(address),
      verdict: targets[target % targets.length] as string,
    }));
    const declared: Part = {
      sets: maps.map((map) => ({ name: map, kind: 'map', type: `${type} : verdict` })),
      chains: [
        ...chains.map((chain, index) => ({
          name: chain,
          rules: [jumps && index + 1 < chains.length ? `jump ${chains[index + 1]}` : 'counter', 'return'],
        })),
        ...(attached
          ? [
              {
                name: 'services/base',
                base: `type filter hook input priority ${priority}; policy accept;`,
                rules: maps.map((map) => `${type === 'ipv4_addr' ? 'ip saddr' : 'ip saddr . tcp dport'} vmap @${map}`),
              },
            ]
          : []),
      ],
    };
    const elementsOf = (some: typeof entries): Part => ({
      elements: maps.map((set) => ({ set, values: new Map(some.map(({ address, verdict }) => [address, verdict])) })),
    });
    return split
      ? parts({ declared, x: elementsOf(entries.slice(1)), y: elementsOf(entries.slice(0, 1)) })
      : parts({ declared: { ...declared, ...elementsOf(entries) } });
  });

describe('the owner of the nftables table', () => {
  it('a change leads to the same table as a fresh load', { timeout: 300_000 }, async () => {
    const property = fc.asyncProperty(fc.array(sections, { minLength: 2, maxLength: 4 }), async (versions) => {
      await namespace.runOk('nft', ['flush', 'ruleset']);
      const table = open();
      for (const version of versions) await table.set('services', version);
      const changed = await contents();
      await namespace.runOk('nft', ['flush', 'ruleset']);
      await open().set('services', versions.at(-1) as Section);
      expect(changed).toEqual(await contents());
    });
    await fc.assert(property, { numRuns: 15 });
  });

  it('a new owner replaces what an earlier one has left, section by section', async () => {
    const earlier = open();
    await earlier.set('pods', accepting('pods/x'));
    await earlier.set('services', accepting('services/old'));
    await namespace.runOk('nft', ['add', 'chain', 'inet', name, 'of-another-version']);
    const table = open();
    await table.set('pods', accepting('pods/y'));
    // The Services keep their rules until the component that declares them has started.
    const listed = (await contents()).join();
    expect(listed).toContain('services/old');
    expect(listed).not.toContain('pods/x');
    expect(listed).not.toContain('of-another-version');
    await table.set('services', accepting('services/new'));
    expect((await contents()).join()).not.toContain('services/old');
  });

  it('dynamic sets keep the elements that packets have added, unless their type has changed', async () => {
    const clients = (type: string): Section =>
      parts({
        x: {
          sets: [
            {
              name: 'services/clients',
              kind: 'set',
              type,
              options: 'flags dynamic,timeout; timeout 3h;',
              dynamic: true,
            },
          ],
        },
      });
    await open().set('services', clients('ipv4_addr'));
    await namespace.runOk('nft', ['add', 'element', 'inet', name, 'services/clients', '{', '10.0.0.1', '}']);
    await open().set('services', clients('ipv4_addr'));
    expect((await contents()).join()).toContain('10.0.0.1');
    await open().set('services', clients('ipv6_addr'));
    const listed = (await contents()).join();
    expect(listed).not.toContain('10.0.0.1');
    expect(listed).toContain('ipv6_addr');
  });

  it('a section that the kernel rejects keeps its rules, and other sections change', async () => {
    const table = open();
    await table.set('services', accepting('services/good'));
    const invalid = parts({ x: { chains: [{ name: 'services/bad', rules: ['goto services/missing'] }] } });
    const [rejected, changed] = await Promise.allSettled([
      table.set('services', invalid),
      table.set('pods', accepting('pods/x')),
    ]);
    expect(rejected).toMatchObject({
      status: 'rejected',
      reason: { message: expect.stringContaining('No such file') },
    });
    expect(changed.status).toBe('fulfilled');
    const listed = (await contents()).join();
    expect(listed).toContain('services/good');
    expect(listed).toContain('pods/x');
    await table.set('services', accepting('services/better'));
    expect((await contents()).join()).not.toContain('services/good');
  });

  it.each<[string, Part]>([
    ['a text that nft does not parse', { chains: [{ name: 'services/bad', rules: ['no rule at all'] }] }],
    ['a rule that leads to a missing chain', { chains: [{ name: 'services/bad', rules: ['goto services/missing'] }] }],
    ['an element with a wrong key', { elements: [{ set: 'services/m', values: [['nonsense', 'drop']] }] }],
  ])('a part with %s is left out, and the others change, at the start and later', async (_, bad) => {
    const element = (index: number): Part => ({
      elements: [{ set: 'services/m', values: [[`10.0.0.${index}`, 'drop']] }],
      fallback: {},
    });
    const fallback: Part = { chains: [{ name: 'services/instead', rules: ['drop'] }] };
    const base: Part = { sets: [{ name: 'services/m', kind: 'map', type: 'ipv4_addr : verdict' }] };
    const many = Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`p${index}`, element(index)]));
    const withBad = { ...many, bad: { ...bad, fallback } };
    const table = open();
    const expectRejected = async (section: Record<string, Part>): Promise<void> => {
      expect(await table.set('services', parts({ base, ...section }))).toEqual(new Map([['bad', expect.any(Error)]]));
    };
    await expectRejected(withBad);
    const first = (await contents()).join();
    expect(first).toContain('services/instead');
    expect(first).toContain('10.0.0.59');
    expect(first).not.toContain('services/bad');
    const later = { ...withBad, p60: element(60), p61: element(61) };
    await expectRejected(later);
    await expectRejected({ ...later, bad: { ...bad, fallback }, p62: element(62), p63: element(63) });
    const second = (await contents()).join();
    for (const address of ['10.0.0.61', '10.0.0.63']) expect(second).toContain(address);
    expect(await table.set('services', parts({ base, ...many }))).toEqual(new Map());
    const changed = await contents();
    expect(changed.join()).not.toContain('services/instead');
    await namespace.runOk('nft', ['flush', 'ruleset']);
    await open().set('services', parts({ base, ...many }));
    expect(changed).toEqual(await contents());
  });

  it('the next change restores all sections after another program has removed the table', async () => {
    const table = open();
    await table.set('services', accepting('services/x'));
    await table.set('pods', accepting('pods/x'));
    const before = await contents();
    await namespace.runOk('nft', ['flush', 'ruleset']);
    const added = parts({ ...Object.fromEntries(accepting('pods/x')), y: { chains: [{ name: 'pods/y', rules: [] }] } });
    await table.set('pods', added);
    expect((await contents()).filter((line) => !line.includes('pods/y'))).toEqual(before);
  });

  it('the last of many versions that are declared at once applies', async () => {
    const table = open();
    const versions = Array.from({ length: 50 }, (_, index) => accepting(`services/v${index}`));
    await Promise.all(versions.map((version) => table.set('services', version)));
    const chains = (await contents()).filter((line) => line.startsWith('chain'));
    expect(chains).toHaveLength(1);
    expect(chains[0]).toContain('services/v49');
  });

  it('deleteTable removes the table, also that of an older version, and may be repeated', async () => {
    await namespace.runOk('nft', ['add', 'table', 'ip', name]);
    await open().set('services', accepting('services/x'));
    const options = { name, signal, namespace: namespace.name };
    await deleteTable(options);
    await deleteTable(options);
    expect(await namespace.runOk('nft', ['list', 'tables'])).toBe('');
  });
});

/** A line of /proc/net/netlink for a program that listens to nftables: protocol 12, and the group 7. */
const LISTENER = /^\S+ +12 +(\d+) +00000040 /m;

describe('the owner of the nftables table, while it follows the changes of other programs', () => {
  let following: AbortController;
  let restored: unknown[];
  beforeEach(() => {
    following = new AbortController();
    restored = [];
  });
  afterEach(() => following.abort());

  /** Resolves with the ID of the monitor's process when a process other than `other` listens. */
  async function listening(other?: number): Promise<number> {
    const find = async (): Promise<number> =>
      Number(LISTENER.exec(await namespace.runOk('cat', ['/proc/net/netlink']))?.[1] ?? 0);
    await expect.poll(find, { timeout: 20_000 }).toSatisfy((pid) => pid !== 0 && pid !== other);
    return find();
  }
  async function openFollowing(): Promise<NftTable> {
    const log: Log = { ...silentLog, warn: (_, fields) => void restored.push(fields?.['sections']) };
    const watch = { timers: systemTimers(), log };
    const table = openTable({ name, signal: following.signal, namespace: namespace.name, watch });
    await listening();
    return table;
  }
  const twoSections = async (table: NftTable): Promise<string[]> => {
    await table.set('services', parts({ x: { ...WITH_ELEMENTS } }));
    await table.set('pods', accepting('pods/x'));
    return contents();
  };
  const WITH_ELEMENTS: Part = {
    sets: [{ name: 'services/m', kind: 'map', type: 'ipv4_addr : verdict' }],
    chains: [
      { name: 'services/x', rules: ['accept'] },
      {
        name: 'services/base',
        base: 'type filter hook input priority 0; policy accept;',
        rules: ['ip saddr vmap @services/m', 'counter drop'],
      },
    ],
    elements: [{ set: 'services/m', values: [['10.0.0.1', 'goto services/x']] }],
  };

  it.each([
    ['flushes the ruleset', 'flush ruleset'],
    ['deletes the table', `delete table inet ${name}`],
    ['replaces the table', `delete table inet ${name}; add table inet ${name}`],
    ['flushes the chains', `flush table inet ${name}`],
    ['flushes a chain', `flush chain inet ${name} services/base`],
  ])('restores the sections at once when another program %s', async (_, command) => {
    const table = await openFollowing();
    const before = await twoSections(table);
    await namespace.runOk('nft', [command]);
    await expect.poll(() => contents().catch(() => []), { timeout: 20_000 }).toEqual(before);
    // The kernel has the rules before the owner of the table reports them as restored.
    await expect.poll(() => restored, { timeout: 20_000 }).toHaveLength(1);
    // The owner of the table still knows the contents of the table in the kernel.
    await table.set('pods', accepting('pods/y'));
    expect((await contents()).join()).not.toContain('pods/x');
  });

  it('restores nothing after its own transactions and changes of other tables', async () => {
    const table = await openFollowing();
    await twoSections(table);
    for (const chain of ['pods/a', 'pods/b', 'pods/c']) await table.set('pods', accepting(chain));
    await namespace.runOk('nft', ['add table ip other; add chain ip other c; add rule ip other c accept']);
    await namespace.runOk('nft', ['delete table ip other']);
    // The monitor reports changes in their order: when it reports this change, it has reported all earlier ones.
    await namespace.runOk('nft', ['flush', 'chain', 'inet', name, 'pods/c']);
    await expect.poll(() => restored, { timeout: 20_000 }).toEqual([['pods']]);
  });

  it('follows the changes again after nft monitor has been killed, and restores what was deleted meanwhile', async () => {
    const table = await openFollowing();
    const before = await twoSections(table);
    const first = await listening();
    process.kill(first, 'SIGKILL');
    await namespace.runOk('nft', ['flush', 'ruleset']);
    await expect.poll(() => contents().catch(() => []), { timeout: 20_000 }).toEqual(before);
    await listening(first);
    await namespace.runOk('nft', ['flush', 'ruleset']);
    await expect.poll(() => contents().catch(() => []), { timeout: 20_000 }).toEqual(before);
  });

  it('starts nft monitor again after many commands, because its memory grows, and still follows the changes', async () => {
    const table = openTable({
      name,
      signal: following.signal,
      namespace: namespace.name,
      watch: { timers: systemTimers(), log: silentLog, renewalLength: 2000 },
    });
    const first = await listening();
    const before = await twoSections(table);
    expect(await listening()).toBe(first);
    for (let index = 0; index < 40; index++) await table.set('pods', accepting(`pods/${index % 2 === 0 ? 'y' : 'x'}`));
    await listening(first);
    await namespace.runOk('nft', ['flush', 'ruleset']);
    await expect.poll(() => contents().catch(() => []), { timeout: 20_000 }).toEqual(before);
  });

  it('nft monitor ends with the owner, also after kill -9', async () => {
    await openFollowing();
    following.abort();
    const isListening = async (): Promise<boolean> =>
      LISTENER.test(await namespace.runOk('cat', ['/proc/net/netlink']));
    await expect.poll(isListening, { timeout: 20_000 }).toBe(false);
    const table = join(import.meta.dirname, '../../src/network/nftables/table.ts');
    const platform = join(import.meta.dirname, '../../src/platform');
    const program = `
      import { openTable } from '${table}';
      import { systemTimers } from '${platform}/node-js.ts';
      import { silentLog } from '${platform}/silent-log.ts';
      const { signal } = new AbortController();
      openTable({ name: '${name}', signal, namespace: '${namespace.name}', watch: { timers: systemTimers(), log: silentLog } });`;
    const owner = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: 'inherit' });
    await listening();
    owner.kill('SIGKILL');
    await expect.poll(isListening, { timeout: 20_000 }).toBe(false);
  });
});

describe('chains of other programs that drop forwarded packets', () => {
  const warnings = () => forwardWarnings(['10.222.0.0/16', 'fd00::/64'], { name, signal, namespace: namespace.name });
  const chain = (family: string, hook: string, policy: string): Promise<string> =>
    namespace.runOk('nft', [
      `add table ${family} filter; add chain ${family} filter FORWARD { type filter hook ${hook} priority 0; policy ${policy}; }`,
    ]);

  it('causes a warning for each Pod range of the family of the chain, with commands that end the warning', async () => {
    await chain('ip', 'forward', 'drop');
    const [warning = '', ...others] = await warnings();
    expect(others).toEqual([]);
    expect(warning).toMatch(/^the chain FORWARD of the table ip filter drops packets .* the Pod range 10.222.0.0\/16:/);
    const commands = [...warning.matchAll(/'(?:\w+ )?nft ([^']+)'/g)].map(([, command = '']) => command);
    expect(commands).toHaveLength(2);
    for (const command of commands) await namespace.runOk('nft', [command]);
    expect(await warnings()).toEqual([]);
    await chain('inet', 'forward', 'drop');
    expect(await warnings()).toHaveLength(2);
  });

  it('causes no warning for chains that accept, other hooks and tables of lifepod', async () => {
    await chain('ip', 'forward', 'accept');
    await chain('ip6', 'input', 'drop');
    await namespace.runOk('nft', [
      'add table inet lifepod-1; add chain inet lifepod-1 f { type filter hook forward priority 0; policy drop; }',
    ]);
    expect(await warnings()).toEqual([]);
  });
});
