import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkFieldLabels, type FieldRequirement, matchesFields, parseFieldSelector } from './field-selector.ts';
import { isApiError } from './status.ts';

describe('parseFieldSelector', () => {
  it.each<[string, FieldRequirement[]]>([
    ['', []],
    ['metadata.name=a', [{ field: 'metadata.name', op: '=', value: 'a' }]],
    [
      'a==b,c!=d',
      [
        { field: 'a', op: '=', value: 'b' },
        { field: 'c', op: '!=', value: 'd' },
      ],
    ],
    [
      'a=,,b=',
      [
        { field: 'a', op: '=', value: '' },
        { field: 'b', op: '=', value: '' },
      ],
    ],
    ['a=x\\,y\\=\\\\', [{ field: 'a', op: '=', value: 'x,y=\\' }]],
    [
      'involvedObject.fieldPath=spec.containers{app}',
      [{ field: 'involvedObject.fieldPath', op: '=', value: 'spec.containers{app}' }],
    ],
  ])('parseFieldSelector() parses %j', (text, expected) => {
    expect(parseFieldSelector(text)).toEqual(expected);
  });
  it.each([
    ['name', "invalid selector: 'name'; can't understand 'name'"],
    ['a=b,c', "invalid selector: 'a=b,c'; can't understand 'c'"],
    ['a=\\x', 'invalid field selector: invalid escape sequence: \\x'],
    ['a=\\', 'invalid field selector: invalid escape sequence: \\'],
    ['a=b=c', 'invalid field selector: unescaped character in value: 61'],
  ])('parseFieldSelector() rejects %j', (text, message) => {
    try {
      parseFieldSelector(text);
      expect.unreachable();
    } catch (error) {
      expect(isApiError(error, 'BadRequest')).toBe(true);
      expect((error as Error).message).toBe(message);
    }
  });
  it('parseFieldSelector() decodes any escaped value', () => {
    fc.assert(
      fc.property(fc.string(), (value) => {
        const escaped = value.replaceAll(/[\\,=]/g, (character) => `\\${character}`);
        expect(parseFieldSelector(`a=${escaped}`)).toEqual([{ field: 'a', op: '=', value }]);
      }),
    );
  });
});

it('matchesFields() treats an absent field as empty', () => {
  const fields = { a: 'x', b: '' };
  for (const [text, expected] of [
    ['a=x', true],
    ['a!=x', false],
    ['a=x,b=', true],
    ['none=', true],
    ['none!=x', true],
    ['toString=', true],
  ] as const) {
    expect(matchesFields(parseFieldSelector(text), fields)).toBe(expected);
  }
});

it('checkFieldLabels() rejects fields that are not selectable', () => {
  checkFieldLabels(parseFieldSelector('a=1'), ['a']);
  expect(() => checkFieldLabels(parseFieldSelector('a=1,b=2'), ['a'])).toThrow('field label not supported: b');
});
