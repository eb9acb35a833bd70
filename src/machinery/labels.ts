/**
 * Label selectors: the text in a request, for example to list Pods (`app=web,tier in (a,b),!old`), and the
 * LabelSelector in an object's spec. Both are compiled to a function that returns whether labels match.
 * Source: k8s.io/apimachinery/pkg/labels of v1.33 (grammar, behavior and wording).
 */
import { type FieldError, fieldErrorText, forbidden, invalid, required, tooMany } from './field-error.ts';
import { labelValueErrors, qualifiedNameErrors } from './names.ts';
import { badRequest } from './status.ts';

export type Labels = Readonly<Record<string, string>>;
export type LabelMatcher = (labels: Labels | undefined) => boolean;

export type LabelOperator = '=' | '==' | '!=' | 'in' | 'notin' | 'exists' | '!' | 'gt' | 'lt';

export interface LabelRequirement {
  key: string;
  operator: LabelOperator;
  /** Sorted and without duplicates if parsed from a text. Empty for `exists` and `!`. */
  values: string[];
}

type Token = ')' | ',' | '!' | '==' | '=' | '>' | 'in' | '<' | '!=' | 'notin' | '(' | 'identifier' | 'end' | 'error';
interface Item {
  token: Token;
  text: string;
}

const symbols = new Set(['=', '!', '(', ')', ',', '>', '<']);
const operatorTokens = new Set<string>(['==', '!=', '=', '!', '(', ')', ',', '>', '<']);
const isSpace = (character: string): boolean => /[ \t\r\n]/.test(character);

function scan(text: string): Item[] {
  const items: Item[] = [];
  let at = 0;
  while (at < text.length) {
    const character = text[at] as string;
    if (isSpace(character)) {
      at += 1;
    } else if (symbols.has(character)) {
      const two = text.slice(at, at + 2);
      const operator = operatorTokens.has(two) ? two : character;
      items.push({ token: operator as Token, text: operator });
      at += operator.length;
    } else {
      const start = at;
      while (at < text.length && !symbols.has(text[at] as string) && !isSpace(text[at] as string)) at += 1;
      const word = text.slice(start, at);
      items.push({ token: word === 'in' || word === 'notin' ? word : 'identifier', text: word });
    }
  }
  items.push({ token: 'end', text: '' });
  return items;
}

class SelectorSyntaxError extends Error {}

const fail = (message: string): never => {
  throw new SelectorSyntaxError(message);
};

function aggregate(errors: FieldError[]): string {
  const texts = [...new Set(errors.map(fieldErrorText))];
  return texts.length === 1 ? (texts[0] as string) : `[${texts.join(', ')}]`;
}

/** Validates the values like upstream. The parser has already checked the key and the number of values. */
function requirement(key: string, operator: LabelOperator, values: string[]): LabelRequirement {
  const errors: FieldError[] = [];
  if ((operator === 'gt' || operator === 'lt') && parseInt64(values[0] ?? '') === undefined) {
    errors.push(invalid('values[0]', values[0], "for 'Gt', 'Lt' operators, the value must be an integer"));
  }
  values.forEach((value, index) => {
    const valueErrors = labelValueErrors(value);
    if (valueErrors.length > 0) errors.push(invalid(`values[${index}][${key}]`, value, valueErrors.join('; ')));
  });
  if (errors.length > 0) fail(aggregate(errors));
  return { key, operator, values };
}

class Parser {
  readonly #items: Item[];
  #at = 0;
  constructor(text: string) {
    this.#items = scan(text);
  }

  /** Does not consume the item. Treats `in` and `notin` as identifiers, because they are valid keys and values. */
  #look(): Item {
    const item = this.#items[Math.min(this.#at, this.#items.length - 1)] as Item;
    return item.token === 'in' || item.token === 'notin' ? { token: 'identifier', text: item.text } : item;
  }

  #take(): Item {
    const item = this.#look();
    this.#at += 1;
    return item;
  }

  parse(): LabelRequirement[] {
    const requirements: LabelRequirement[] = [];
    for (;;) {
      const { token, text } = this.#look();
      if (token === 'end') return requirements;
      if (token !== 'identifier' && token !== '!') {
        fail(`found '${text}', expected: !, identifier, or 'end of string'`);
      }
      requirements.push(this.#checkedRequirement());
      const next = this.#take();
      if (next.token === 'end') return requirements;
      if (next.token !== ',') fail(`found '${next.text}', expected: ',' or 'end of string'`);
      const after = this.#look();
      if (after.token !== 'identifier' && after.token !== '!') {
        fail(`found '${after.text}', expected: identifier after ','`);
      }
    }
  }

  #checkedRequirement(): LabelRequirement {
    try {
      return this.#requirement();
    } catch (error) {
      if (error instanceof SelectorSyntaxError) fail(`unable to parse requirement: ${error.message}`);
      throw error;
    }
  }

  #requirement(): LabelRequirement {
    const negated = this.#look().token === '!';
    if (negated) this.#take();
    const { token, text: key } = this.#take();
    if (token !== 'identifier') fail(`found '${key}', expected: identifier`);
    const keyErrors = qualifiedNameErrors(key);
    // Upstream passes no path to the error, so that Go prints the path as `<nil>`.
    if (keyErrors.length > 0) fail(fieldErrorText(invalid('<nil>', key, keyErrors.join('; '))));
    const next = this.#look().token;
    if (negated) return requirement(key, '!', []);
    if (next === 'end' || next === ',') return requirement(key, 'exists', []);
    const operator = this.#operator();
    return requirement(key, operator, operator === 'in' || operator === 'notin' ? this.#values() : this.#exactValue());
  }

  #operator(): LabelOperator {
    const item = this.#items[Math.min(this.#at, this.#items.length - 1)] as Item;
    this.#at += 1;
    switch (item.token) {
      case 'in':
      case 'notin':
      case '=':
      case '==':
      case '!=':
        return item.token;
      case '>':
        return 'gt';
      case '<':
        return 'lt';
      default:
        return fail(`found '${item.text}', expected: in, notin, =, ==, !=, gt, lt`);
    }
  }

  #values(): string[] {
    const open = this.#take();
    if (open.token !== '(') fail(`found '${open.text}' expected: '('`);
    const first = this.#look();
    if (first.token === ')') {
      this.#take();
      return [''];
    }
    if (first.token !== 'identifier' && first.token !== ',') {
      fail(`found '${first.text}', expected: ',', ')' or identifier`);
    }
    const values = new Set<string>();
    let current = '';
    for (;;) {
      const item = this.#take();
      if (item.token === 'identifier') {
        current = item.text;
        const next = this.#look();
        if (next.token !== ',' && next.token !== ')') fail(`found '${next.text}', expected: ',' or ')'`);
      } else if (item.token === ',' || item.token === ')') {
        values.add(current);
        current = '';
        if (item.token === ')') return [...values].sort();
      } else {
        fail(`found '${item.text}', expected: ',', or identifier`);
      }
    }
  }

  #exactValue(): string[] {
    const next = this.#look();
    if (next.token === 'end' || next.token === ',') return [''];
    const { token, text } = this.#take();
    if (token !== 'identifier') fail(`found '${text}', expected: identifier`);
    return [text];
  }
}

/**
 * Limits the distinct requirements in the text of a selector, because they may be evaluated for each object of a list, and for each change
 * of a watch. Upstream has no limit.
 */
const MAX_REQUIREMENTS = 1000;

function distinct(requirements: readonly LabelRequirement[]): LabelRequirement[] {
  const byText = new Map<string, LabelRequirement>();
  for (const each of requirements) byText.set(JSON.stringify([each.key, each.operator, ...each.values]), each);
  return [...byText.values()];
}

/**
 * Returns the distinct requirements, sorted by key. All must match. Throws ApiError (BadRequest) if the text is invalid or has more than
 * MAX_REQUIREMENTS distinct requirements.
 */
export function parseLabelRequirements(text: string): LabelRequirement[] {
  try {
    const requirements = distinct(new Parser(text).parse());
    if (requirements.length > MAX_REQUIREMENTS) {
      fail(fieldErrorText(tooMany('labelSelector', requirements.length, MAX_REQUIREMENTS)));
    }
    return requirements.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  } catch (error) {
    if (error instanceof SelectorSyntaxError) throw badRequest(error.message);
    throw error;
  }
}

function parseInt64(text: string): bigint | undefined {
  if (!/^[+-]?\d+$/.test(text)) return undefined;
  const value = BigInt(text.replace(/^\+/, ''));
  return value >= -(2n ** 63n) && value < 2n ** 63n ? value : undefined;
}

function compares(operator: 'gt' | 'lt', actual: string, bound: string): boolean {
  const left = parseInt64(actual);
  const right = parseInt64(bound);
  if (left === undefined || right === undefined) return false;
  return operator === 'gt' ? left > right : left < right;
}

export const labelOf = (labels: Labels | undefined, key: string): string | undefined =>
  labels !== undefined && Object.hasOwn(labels, key) ? labels[key] : undefined;

export function matchesRequirement({ key, operator, values }: LabelRequirement, labels: Labels | undefined): boolean {
  const actual = labelOf(labels, key);
  switch (operator) {
    case '=':
    case '==':
    case 'in':
      return actual !== undefined && values.includes(actual);
    case '!=':
    case 'notin':
      return actual === undefined || !values.includes(actual);
    case 'exists':
      return actual !== undefined;
    case '!':
      return actual === undefined;
    case 'gt':
    case 'lt':
      return actual !== undefined && compares(operator, actual, values[0] ?? '');
  }
}

/** Looks up values of `in` and `notin` in a Set, because there may be many. */
function matcherOfOne(requirement: LabelRequirement): LabelMatcher {
  const { key, operator } = requirement;
  if (operator !== 'in' && operator !== 'notin') return (labels) => matchesRequirement(requirement, labels);
  const values = new Set<string | undefined>(requirement.values);
  return (labels) => values.has(labelOf(labels, key)) === (operator === 'in');
}

function matcherOf(requirements: readonly LabelRequirement[]): LabelMatcher {
  const matchers = requirements.map(matcherOfOne);
  return (labels) => matchers.every((matches) => matches(labels));
}

/** The empty text matches all labels. Throws like parseLabelRequirements(). */
export function parseLabelSelector(text: string): LabelMatcher {
  return matcherOf(parseLabelRequirements(text));
}

export interface LabelSelectorObject {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: string; values?: string[] }[];
}

const objectOperators: Readonly<Record<string, LabelOperator>> = {
  In: 'in',
  NotIn: 'notin',
  Exists: 'exists',
  DoesNotExist: '!',
};

/** An empty selector matches all labels. An absent selector, or one with an unknown operator, matches no labels. */
export function labelSelectorMatcher(selector: LabelSelectorObject | undefined): LabelMatcher {
  if (selector === undefined) return () => false;
  const requirements: LabelRequirement[] = Object.entries(selector.matchLabels ?? {}).map(([key, value]) => ({
    key,
    operator: '=',
    values: [value],
  }));
  for (const { key, operator, values = [] } of selector.matchExpressions ?? []) {
    const known = objectOperators[operator];
    if (known === undefined) return () => false;
    requirements.push({ key, operator: known, values });
  }
  return matcherOf(distinct(requirements));
}

/**
 * Returns requirements that select objects with the same values of these labels (In), or with other values (NotIn). Keys without a value in
 * `own` have no requirement.
 */
export const likeOwnLabels = (
  keys: readonly string[],
  operator: 'In' | 'NotIn',
  own: Labels | undefined,
): { key: string; operator: string; values: string[] }[] =>
  keys.flatMap((key) => {
    const value = labelOf(own, key);
    return value === undefined ? [] : [{ key, operator, values: [value] }];
  });

/** An absent selector is valid. `path`: the path of the selector in the object. */
export function labelSelectorErrors(selector: LabelSelectorObject | undefined, path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const [key, value] of Object.entries(selector?.matchLabels ?? {})) {
    errors.push(...qualifiedNameErrors(key).map((text) => invalid(`${path}.matchLabels`, key, text)));
    errors.push(...labelValueErrors(value).map((text) => invalid(`${path}.matchLabels`, value, text)));
  }
  for (const [index, { key, operator, values = [] }] of (selector?.matchExpressions ?? []).entries()) {
    const at = `${path}.matchExpressions[${index}]`;
    if (operator === 'In' || operator === 'NotIn') {
      if (values.length === 0) {
        errors.push(required(`${at}.values`, "must be specified when `operator` is 'In' or 'NotIn'"));
      }
    } else if (operator === 'Exists' || operator === 'DoesNotExist') {
      if (values.length > 0) {
        errors.push(forbidden(`${at}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
      }
    } else {
      errors.push(invalid(`${at}.operator`, operator, 'not a valid selector operator'));
    }
    errors.push(...qualifiedNameErrors(key).map((text) => invalid(`${at}.key`, key, text)));
    for (const [valueIndex, value] of values.entries()) {
      errors.push(...labelValueErrors(value).map((text) => invalid(`${at}.values[${valueIndex}]`, value, text)));
    }
  }
  return errors;
}
