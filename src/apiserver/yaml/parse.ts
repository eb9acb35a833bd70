/**
 * Converts YAML text to JSON text, in linear time as far as the library allows. This file checks for duplicate keys and computes the
 * positions of errors itself, because the library compares each key of a map with all others, and searches the text from its start for the
 * line of every error.
 */
import { type Alias, type Document, isAlias, isScalar, LineCounter, type Node, parseDocument, visit } from 'yaml';

/** The limit on expansions of one anchor, including expansions by nested aliases. */
const MAX_ALIASES = 1000;

export class ExpandedTooFarError extends Error {
  override readonly name = 'ExpandedTooFarError';
}

/**
 * Throws an Error whose message describes the problem, with its position for a syntax error, a duplicate key or a value that contains
 * itself. Throws an ExpandedTooFarError if the value has more than about `limitBytes` as JSON.
 */
export function yamlToJson(text: string, limitBytes: number): string {
  const lines = new LineCounter();
  const document = parseDocument(text, { uniqueKeys: false, prettyErrors: false, lineCounter: lines });
  const [error] = document.errors;
  const place = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `at line ${line}, column ${col}`;
  };
  if (error !== undefined) throw new Error(`${error.message} ${place(error.pos[0])}`);
  const repeated = repeatedKey(document);
  if (repeated !== undefined) throw new Error(`Map keys must be unique ${place(repeated)}`);
  const loop = selfReference(document);
  if (loop !== undefined)
    throw new Error(`anchor '${loop.source}' value contains itself ${place(loop.range?.[0] ?? 0)}`);
  const value: unknown = document.toJS({ maxAliasCount: MAX_ALIASES });
  checkExpandedSize(value, limitBytes);
  return JSON.stringify(value ?? null);
}

function repeatedKey(document: Document): number | undefined {
  let found: number | undefined;
  visit(document, {
    Map(_, { items }) {
      const seen = new Set<unknown>();
      for (const { key } of items) {
        if (isAlias(key) || !isScalar(key)) continue;
        if (seen.has(key.value)) {
          found = key.range?.[0] ?? 0;
          return visit.BREAK;
        }
        seen.add(key.value);
      }
      return undefined;
    },
  });
  return found;
}

/** Returns the first alias that is inside the value of its own anchor. The library would take minutes to expand some of these aliases. */
function selfReference(document: Document): Alias | undefined {
  const anchored = new Map<string, Node>();
  let found: Alias | undefined;
  visit(document, {
    Collection(_, node) {
      if (node.anchor !== undefined) anchored.set(node.anchor, node);
    },
    Alias(_, alias, path) {
      const value = anchored.get(alias.source);
      if (value === undefined || !path.includes(value)) return undefined;
      found = alias;
      return visit.BREAK;
    },
  });
  return found;
}

function checkExpandedSize(value: unknown, limitBytes: number): void {
  let bytes = 0;
  const count = (length: number): void => {
    bytes += length;
    if (bytes > limitBytes) throw new ExpandedTooFarError();
  };
  const walk = (part: unknown): void => {
    count(typeof part === 'string' ? part.length + 3 : 2);
    if (Array.isArray(part)) part.forEach(walk);
    else if (typeof part === 'object' && part !== null) {
      for (const [key, item] of Object.entries(part)) {
        count(key.length + 3);
        walk(item);
      }
    }
  };
  walk(value);
}
