import { describe, expect, it } from 'vitest';
import type { Part, Section } from './section.ts';
import { changeSection, replaceSection } from './transaction.ts';
import { changeText } from './transaction-fixture.ts';

const section = (parts: Record<string, Part>): Section => new Map(Object.entries(parts));
const lines = (text: string | undefined): string[] | undefined => text?.split('\n').filter((line) => line !== '');
const values = (set: string, entries: Record<string, string>): Part => ({
  elements: [{ set, values: new Map(Object.entries(entries)) }],
});

const base: Part = {
  chains: [{ name: 'services/c', rules: ['accept'] }],
  sets: [{ name: 'services/m', kind: 'map', type: 'ipv4_addr : verdict' }],
};

describe('changeSection', () => {
  it('adds sets and chains before the elements and rules that refer to them', () => {
    const part = { ...base, ...values('services/m', { '10.0.0.1': 'goto services/c' }) };
    expect(lines(changeText('t', new Map(), section({ part })))).toEqual([
      'add map inet t services/m { type ipv4_addr : verdict;  }',
      'add chain inet t services/c',
      'add element inet t services/m { 10.0.0.1 : goto services/c }',
      'add rule inet t services/c accept',
    ]);
  });

  it('deletes elements and rules before the chains and sets to which they refer', () => {
    const part = { ...base, ...values('services/m', { '10.0.0.1': 'goto services/c' }) };
    expect(lines(changeText('t', section({ part }), new Map()))).toEqual([
      'flush chain inet t services/c',
      'delete element inet t services/m { 10.0.0.1 }',
      'delete chain inet t services/c',
      'delete map inet t services/m',
    ]);
  });

  it.each<[string, Record<string, string>, Record<string, string>, string[]]>([
    ['nothing', { a: '1' }, { a: '1' }, []],
    ['an added element', { a: '1' }, { a: '1', b: '2' }, ['add element inet t services/m { b : 2 }']],
    ['a removed element', { a: '1', b: '2' }, { a: '1' }, ['delete element inet t services/m { b }']],
    [
      'a changed value',
      { a: '1', b: '2' },
      { a: '1', b: '3' },
      ['delete element inet t services/m { b }', 'add element inet t services/m { b : 3 }'],
    ],
  ])('writes only the difference of the elements of a part: %s', (_, before, after, expected) => {
    const change = changeText(
      't',
      section({ base, x: values('services/m', before) }),
      section({ base, x: values('services/m', after) }),
    );
    expect(lines(change)).toEqual(expected);
  });

  it('writes nothing for an element that another part declares now', () => {
    const x = values('services/m', { a: '1' });
    expect(changeText('t', section({ x }), section({ y: { ...x } }))).toBe('');
  });

  it('writes the rules of a chain again if one of them has changed', () => {
    const chain = (...rules: string[]): Section => section({ x: { chains: [{ name: 'services/c', rules }] } });
    expect(lines(changeText('t', chain('accept', 'drop'), chain('accept', 'return')))).toEqual([
      'flush chain inet t services/c',
      'add rule inet t services/c accept',
      'add rule inet t services/c return',
    ]);
  });

  it.each<[string, Part, Part]>([
    [
      'the hook of a chain',
      { chains: [{ name: 'services/c', base: 'type nat hook prerouting priority -100;', rules: [] }] },
      { chains: [{ name: 'services/c', base: 'type nat hook prerouting priority -90;', rules: [] }] },
    ],
    [
      'the type of a set',
      { sets: [{ name: 'services/s', kind: 'set', type: 'ipv4_addr' }] },
      { sets: [{ name: 'services/s', kind: 'set', type: 'ipv6_addr' }] },
    ],
  ])('returns undefined if %s has changed', (_, before, after) => {
    expect(changeText('t', section({ x: before }), section({ x: after }))).toBeUndefined();
  });
});

describe('replaceSection', () => {
  const existing = [
    { kind: 'set', name: 'services/clients' },
    { kind: 'map', name: 'services/old' },
    { kind: 'chain', name: 'services/c' },
    { kind: 'chain', name: 'policies/c' },
  ] as const;
  const desired = section({
    x: {
      chains: [{ name: 'services/c', rules: ['accept'] }],
      sets: [{ name: 'services/clients', kind: 'set', type: 'ipv4_addr', options: 'flags dynamic;', dynamic: true }],
    },
  });

  it('keeps dynamic sets with their elements, and the objects of other sections', () => {
    expect(lines([...replaceSection('t', 'services', desired, { existing, keepDeclarations: true })].join(''))).toEqual(
      [
        'flush chain inet t services/c',
        'flush map inet t services/old',
        'delete map inet t services/old',
        'add set inet t services/clients { type ipv4_addr; flags dynamic; }',
        'add chain inet t services/c',
        'add rule inet t services/c accept',
      ],
    );
  });

  it('deletes all objects of the section if their declarations are not kept', () => {
    const commands = lines(
      [...replaceSection('t', 'services', desired, { existing, keepDeclarations: false })].join(''),
    );
    expect(commands?.filter((command) => command.startsWith('delete'))).toEqual([
      'delete set inet t services/clients',
      'delete map inet t services/old',
      'delete chain inet t services/c',
    ]);
  });
});

describe('a section with many elements', () => {
  const many = (count: number, value: string): Section =>
    section({
      base,
      x: {
        elements: [
          { set: 'services/m', values: Array.from({ length: count }, (_, index) => [`e${index}`, value] as const) },
        ],
      },
    });
  it.each([
    ['loaded', () => replaceSection('t', 'services', many(100_000, '1'), { existing: [], keepDeclarations: true })],
    ['changed', () => changeSection('t', many(100_000, '1'), many(100_000, '2'))],
    ['compared', () => changeSection('t', many(100_000, '1'), many(100_000, '1'))],
  ])('is %s in pieces, so that other work can run', (_, pieces) => {
    const all = [...pieces()];
    expect(all.length).toBeGreaterThan(100);
    expect(Math.max(...all.map(({ length }) => length))).toBeLessThan(65_536);
  });

  it('is still one command for each set, because nft(8) compares the elements of each command with those of the set', () => {
    const commands = lines(
      [...replaceSection('t', 'services', many(2500, '1'), { existing: [], keepDeclarations: true })].join(''),
    );
    expect(commands?.filter((command) => command.startsWith('add element'))).toEqual([
      `add element inet t services/m { ${Array.from({ length: 2500 }, (_, index) => `e${index} : 1`).join(', ')} }`,
    ]);
    expect(lines(changeText('t', many(2500, '1'), many(1500, '1')))).toEqual([
      `delete element inet t services/m { ${Array.from({ length: 1000 }, (_, index) => `e${index + 1500}`).join(', ')} }`,
    ]);
  });
});
