import { describe, expect, it } from 'vitest';
import { ContainerConfigError } from './container-config-error.ts';
import { expand, expandAll, expandStrict, MAX_PROCESS_BYTES } from './expand.ts';

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
  it.each(table)('expand() replaces the references of %j: %j', (text, expected) => {
    expect(expand(text, lookup)).toBe(expected);
  });
  it('expand() takes linear time if no reference is closed', () => {
    const text = '$('.repeat(1_000_000);
    const began = process.cpuUsage();
    expect(expand(`$(A)${text}`, lookup)).toBe(`a${text}`);
    // An expansion in quadratic time would take minutes.
    expect(process.cpuUsage(began).user).toBeLessThan(1_000_000);
  });
  it('expand() and expandAll() throw if the expansion exceeds the limit for a process', () => {
    const large = 'x'.repeat(1000);
    const text = '$(A)'.repeat(MAX_PROCESS_BYTES / 1000 + 1);
    expect(() => expand(text, () => large)).toThrow(ContainerConfigError);
    expect(() => expandAll(Array(3).fill('$(A)'), () => 'x'.repeat(MAX_PROCESS_BYTES / 2))).toThrow(
      ContainerConfigError,
    );
    expect(expandAll(['$(A)', '$(A)'], () => 'x'.repeat(MAX_PROCESS_BYTES / 2))).toHaveLength(2);
  });
});

describe('expandStrict', () => {
  it.each([
    ['$(A)/$(B)', 'B'],
    ['$(EMPTY)', 'EMPTY'],
    ['$(X)/$(B)-$(A)-$(EMPTY)-$(B)', 'B, EMPTY, X'],
  ])('expandStrict(%j) throws an error with the missing names %s', (text, names) => {
    expect(() => expandStrict(text, lookup)).toThrow(new Error(`missing value for ${names}`));
  });
  it('expandStrict() expands names that have values', () => {
    expect(expandStrict('$(A)/$$(B)', lookup)).toBe('a/$(B)');
  });
});
