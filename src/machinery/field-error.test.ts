import { describe, expect, it } from 'vitest';
import { duplicate, fieldErrorText, firstErrors, forbidden, invalid, listErrors, required } from './field-error.ts';

describe('field errors', () => {
  it('a field error contains a value of 4096 characters, and truncates a longer one', () => {
    const text = 'x'.repeat(4096);
    expect(invalid('a', text, 'must not').body).toBe(`Invalid value: "${text}": must not`);
    expect(invalid('a', `${text}x`, 'must not').body).toBe(`Invalid value: "${text}…": must not`);
    expect(duplicate('a', [text]).body).toBe(`Duplicate value: ["${'x'.repeat(4094)}…`);
  });

  it('a field error truncates a long path and a long text', () => {
    const { field, body } = forbidden('x'.repeat(5000), 'y'.repeat(100_000));
    expect(field).toBe(`${'x'.repeat(4096)}…`);
    expect(body).toHaveLength(64 * 1024 + 1);
  });
});

describe('firstErrors', () => {
  it('firstErrors() stops validation at the first error beyond the limit of a response', () => {
    let validated = 0;
    const errors = firstErrors(() =>
      Array.from({ length: 100_000 }, (_, index) => index).flatMap((index) => {
        validated++;
        return index % 2 === 0 ? [] : [required(`list[${index}]`)];
      }),
    );
    expect(validated).toBe(2002);
    expect(errors).toHaveLength(1001);
    expect(errors[1000]?.field).toBe('list[2001]');
  });

  it('firstErrors() returns all errors up to the limit, and calls can be nested', () => {
    const many = () => Array.from({ length: 600 }, () => required('a'));
    expect(
      firstErrors(() => [...firstErrors(many), required('b')])
        .map(({ field }) => field)
        .at(-1),
    ).toBe('b');
    const broken = new Error('broken');
    const fail = () => {
      throw broken;
    };
    expect(() => firstErrors(fail)).toThrow(broken);
    expect(Array.from({ length: 2000 }, () => required('a'))).toHaveLength(2000);
  });
});

describe('listErrors', () => {
  it('listErrors() formats all errors as upstream does', () => {
    expect(listErrors([required('a')]).text).toBe('a: Required value');
    expect(listErrors([required('a'), required('b')]).text).toBe('[a: Required value, b: Required value]');
  });

  it('listErrors() lists at most 1000 errors and 1 MiB of text', () => {
    const short = Array.from({ length: 1001 }, () => required('a'));
    expect(listErrors(short).errors).toEqual(short.slice(0, 1000));
    expect(listErrors(short).text).toMatch(/, a: Required value, and more\]$/);
    const long = Array.from({ length: 1000 }, () => forbidden('a', 'é'.repeat(10_000)));
    const { errors, text } = listErrors(long);
    expect(Buffer.byteLength(errors.map(fieldErrorText).join(''))).toBeLessThanOrEqual(1024 * 1024);
    expect(errors.length).toBeGreaterThan(40);
    expect(text).toMatch(/, and more\]$/);
  });
});
