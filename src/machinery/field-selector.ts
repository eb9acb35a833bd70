/**
 * Parses and evaluates field selectors of list and watch requests: `status.phase=Running,metadata.name!=a`. A backslash escapes `\`, `,`
 * and `=` in values.
 * Source: k8s.io/apimachinery/pkg/fields of v1.33 (grammar, behavior and wording).
 */
import { badRequest } from './status.ts';

export interface FieldRequirement {
  field: string;
  op: '=' | '!=';
  value: string;
}

function splitTerms(text: string): string[] {
  const terms: string[] = [];
  let start = 0;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '\\') {
      at += 1;
    } else if (text[at] === ',') {
      terms.push(text.slice(start, at));
      start = at + 1;
    }
  }
  terms.push(text.slice(start));
  return terms.filter((term) => term !== '');
}

function unescapeValue(value: string): string {
  let literal = '';
  for (let at = 0; at < value.length; at++) {
    const character = value[at] as string;
    if (character === '\\') {
      at += 1;
      const escaped = value[at] ?? '';
      if (escaped === '' || !'\\,='.includes(escaped)) {
        throw badRequest(`invalid field selector: invalid escape sequence: \\${escaped}`);
      }
      literal += escaped;
    } else if (character === ',' || character === '=') {
      // Upstream prints the code point of the character.
      throw badRequest(`invalid field selector: unescaped character in value: ${character.charCodeAt(0)}`);
    } else {
      literal += character;
    }
  }
  return literal;
}

/** All requirements must match. The operator `==` is returned as `=`. Throws ApiError (BadRequest) if the text is invalid. */
export function parseFieldSelector(text: string): FieldRequirement[] {
  return splitTerms(text).map((term) => {
    const match = /^(.*?)(!=|==|=)(.*)$/s.exec(term);
    if (match === null) throw badRequest(`invalid selector: '${text}'; can't understand '${term}'`);
    const [, field = '', op, value = ''] = match;
    return { field, op: op === '!=' ? '!=' : '=', value: unescapeValue(value) };
  });
}

/** Throws ApiError (BadRequest) if a requirement names a field that the kind does not support in selectors. */
export function checkFieldLabels(requirements: readonly FieldRequirement[], supported: Iterable<string>): void {
  const known = new Set(supported);
  for (const { field } of requirements) {
    if (!known.has(field)) throw badRequest(`field label not supported: ${field}`);
  }
}

/** `fields`: the values by path. An absent field counts as the empty string. */
export const matchesFields = (
  requirements: readonly FieldRequirement[],
  fields: Readonly<Record<string, string>>,
): boolean =>
  requirements.every(({ field, op, value }) => {
    const actual = Object.hasOwn(fields, field) ? fields[field] : '';
    return (actual === value) === (op === '=');
  });
