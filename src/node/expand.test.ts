import { describe, expect, it } from 'vitest';
import { expand, expandStrict } from './expand.ts';

const values: Record<string, string> = { A: 'a', EMPTY: '', REF: '$(A)', 'with-dash.x': 'd' };
const lookup = (name: string): string | undefined => values[name];

describe('expand', () => {
  const table: [string, string][] = [
    ['', ''],
    ['plain', 'plain'],
    ['$(A)', 'a'],
    ['$(A)$(A)-$(A)', 'aa-a'],
    ['x$(EMPTY)y', 'xy'],
    ['$(REF)', '$(A)'],
    ['$(with-dash.x)', 'd'],
    ['$(UNKNOWN)', '$(UNKNOWN)'],
    ['$$(A)', '$(A)'],
    ['$$$(A)', '$a'],
    ['$$$$(A)', '$$(A)'],
    ['$', '$'],
    ['a$', 'a$'],
    ['$A', '$A'],
    ['$(A', '$(A'],
    ['$(A$(A)', '$(A$(A)'],
    ['$()', '$()'],
    ['$$', '$'],
    ['cost: $$5 for $(A)', 'cost: $5 for a'],
  ];
  it.each(table)('%j gives %j', (text, expected) => {
    expect(expand(text, lookup)).toBe(expected);
  });
});

describe('expandStrict', () => {
  it.each([
    ['$(A)/$(B)', 'B'],
    ['$(EMPTY)', 'EMPTY'],
    ['$(X)/$(B)-$(A)-$(EMPTY)-$(B)', 'B, EMPTY, X'],
  ])('of %j names what is missing', (text, names) => {
    expect(() => expandStrict(text, lookup)).toThrow(new Error(`missing value for ${names}`));
  });
  it('takes what is there', () => {
    expect(expandStrict('$(A)/$$(B)', lookup)).toBe('a/$(B)');
  });
});
