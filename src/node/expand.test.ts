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
  it('names the missing variable', () => {
    expect(() => expandStrict('$(A)/$(B)', lookup)).toThrow('missing value for "B"');
    expect(expandStrict('$(A)/x', lookup)).toBe('a/x');
  });
});
