import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { labelSelectorErrors, labelSelectorMatcher, parseLabelRequirements, parseLabelSelector } from './labels.ts';
import { isApiError } from './status.ts';

const labels = { app: 'web', tier: 'front', n: '5', empty: '', in: 'in' };

describe('parseLabelSelector', () => {
  it.each<[string, boolean]>([
    ['', true],
    ['app=web', true],
    ['app==web', true],
    ['app = web , tier = front', true],
    ['app=other', false],
    ['app!=other', true],
    ['none!=other', true],
    ['app!=web', false],
    ['app', true],
    ['none', false],
    ['!none', true],
    ['!app', false],
    ['app in (web,db)', true],
    ['app in (db)', false],
    ['none in (db)', false],
    ['app notin (db)', true],
    ['none notin (db)', true],
    ['app notin (web,db)', false],
    ['empty=', true],
    ['empty=,app=web', true],
    ['empty in ()', true],
    ['empty in (,x)', true],
    ['app in (,x)', false],
    ['in in (in)', true],
    ['in=in', true],
    ['n>4', true],
    ['n>5', false],
    ['n<6', true],
    ['app>1', false],
    ['toString', false],
    ['tier,app in (web),!none', true],
  ])('the selector %j selects the labels of the test: %j', (text, expected) => {
    expect(parseLabelSelector(text)(labels)).toBe(expected);
  });

  it('parseLabelRequirements() removes duplicates', () => {
    const requirements = parseLabelRequirements(`${'!a,'.repeat(5000)}b in (x,y),b in (y,x),b=x,!a`);
    expect(requirements).toEqual([
      { key: 'a', operator: '!', values: [] },
      { key: 'b', operator: 'in', values: ['x', 'y'] },
      { key: 'b', operator: '=', values: ['x'] },
    ]);
  });

  it('parseLabelRequirements() accepts at most 1000 requirements', () => {
    const texts = Array.from({ length: 1001 }, (_, index) => `!a${index}`);
    expect(parseLabelRequirements(texts.slice(1).join())).toHaveLength(1000);
    expect(() => parseLabelRequirements(texts.join())).toThrow(
      'labelSelector: Too many: 1001: must have at most 1000 items',
    );
  });

  it('a requirement with many values is matched without comparing all of them', () => {
    const values = Array.from({ length: 5000 }, (_, index) => `v${index}`);
    const selectors = [parseLabelSelector(`a in (${values})`), parseLabelSelector(`a notin (${values})`)];
    const includes = vi.spyOn(Array.prototype, 'includes');
    const found = selectors.map((matches) => [matches({ a: 'v4999' }), matches({ a: 'x' }), matches({})]);
    const calls = includes.mock.calls.length;
    includes.mockRestore();
    expect(found).toEqual([
      [true, false, false],
      [false, true, true],
    ]);
    expect(calls).toBe(0);
  });

  it.each([
    ['app=web,', "found '', expected: identifier after ','"],
    [',app', "found ',', expected: !, identifier, or 'end of string'"],
    ['a b', "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"],
    ['!', "unable to parse requirement: found '', expected: identifier"],
    ['app in web', "unable to parse requirement: found 'web' expected: '('"],
    ['app in (web', "unable to parse requirement: found '', expected: ',' or ')'"],
    ['!app=web', "found '=', expected: ',' or 'end of string'"],
    ['a=(', "unable to parse requirement: found '(', expected: identifier"],
    [
      'a>x',
      "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer",
    ],
    [
      '_a',
      "unable to parse requirement: <nil>: Invalid value: \"_a\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
    [
      'a=b@',
      "unable to parse requirement: values[0][a]: Invalid value: \"b@\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
    ],
  ])('parseLabelSelector() rejects %j', (text, message) => {
    try {
      parseLabelSelector(text);
      expect.unreachable();
    } catch (error) {
      expect(isApiError(error, 'BadRequest')).toBe(true);
      expect((error as Error).message).toBe(message);
    }
  });

  it('absent labels match like empty labels', () => {
    expect(parseLabelSelector('!a,b!=c')(undefined)).toBe(true);
    expect(parseLabelSelector('a')(undefined)).toBe(false);
  });

  it('parseLabelRequirements() sorts requirements by key and values', () => {
    expect(parseLabelRequirements('b,a in (y,x)')).toEqual([
      { key: 'a', operator: 'in', values: ['x', 'y'] },
      { key: 'b', operator: 'exists', values: [] },
    ]);
  });

  it('parseLabelSelector() parses any text or rejects it with BadRequest', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'ab=!(), <>innot') }), (text) => {
        try {
          parseLabelSelector(text)({});
        } catch (error) {
          expect(isApiError(error, 'BadRequest')).toBe(true);
        }
      }),
    );
  });

  it('in and notin, and exists and !, are opposites', () => {
    const key = fc.constantFrom('a', 'b');
    const values = fc.uniqueArray(fc.constantFrom('x', 'y', ''), { minLength: 1 });
    fc.assert(
      fc.property(key, values, fc.dictionary(key, fc.constantFrom('x', 'y', '')), (k, list, set) => {
        const text = `(${list.join(',')})`;
        expect(parseLabelSelector(`${k} in ${text}`)(set)).toBe(!parseLabelSelector(`${k} notin ${text}`)(set));
        expect(parseLabelSelector(k)(set)).toBe(!parseLabelSelector(`!${k}`)(set));
      }),
    );
  });
});

describe('LabelSelector objects', () => {
  it.each<[Parameters<typeof labelSelectorMatcher>[0], boolean]>([
    [undefined, false],
    [{}, true],
    [{ matchLabels: { app: 'web' } }, true],
    [{ matchLabels: { app: 'db' } }, false],
    [{ matchExpressions: [{ key: 'app', operator: 'In', values: ['web', 'db'] }] }, true],
    [{ matchExpressions: [{ key: 'app', operator: 'NotIn', values: ['web'] }] }, false],
    [{ matchExpressions: [{ key: 'app', operator: 'Exists' }] }, true],
    [{ matchExpressions: [{ key: 'app', operator: 'DoesNotExist' }] }, false],
    [{ matchExpressions: [{ key: 'app', operator: 'Like' }] }, false],
  ])('the LabelSelector %j selects the labels of the test: %j', (selector, expected) => {
    expect(labelSelectorMatcher(selector)(labels)).toBe(expected);
  });

  it('labelSelectorErrors() reports all errors of a LabelSelector', () => {
    expect(
      labelSelectorErrors(
        {
          matchExpressions: [
            { key: 'a', operator: 'In' },
            { key: 'a', operator: 'Exists', values: ['b'] },
            { key: 'a', operator: 'Like' },
          ],
        },
        'spec.selector',
      ).map((error) => `${error.field}: ${error.body}`),
    ).toEqual([
      "spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
      "spec.selector.matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
      'spec.selector.matchExpressions[2].operator: Invalid value: "Like": not a valid selector operator',
    ]);
  });
});
