/**
 * Reads the objects of manifests as kubectl reads them: YAML documents, concatenated JSON documents, and Lists. Pure.
 * Source: kubectl apply of v1.33, whose YAML library follows YAML 1.1 without times and numbers in base 60 (behavior).
 */
import { basename, dirname } from 'node:path';
import { LineCounter, parseAllDocuments, type Tags } from 'yaml';
import type { KubeList, KubeObject } from '../../machinery/meta.ts';
import { UserError } from '../../platform/files.ts';
import { shellQuoted } from '../../platform/programs/typed-program.ts';

export interface Manifest {
  object: KubeObject;
  /** Where the object is, such as `shop.yaml` or `shop.yaml, document 2`; empty if it is in no file. */
  source: string;
}

/** The number of times that one anchor of a YAML document may be expanded. */
const MAX_ALIASES = 1000;

/** Returns the objects of a file in order. Throws a UserError with a line about each document or item that is not valid. */
export function parseManifests(text: string, file: string): Manifest[] {
  const documents = jsonDocuments(text) ?? yamlDocuments(text, file);
  const errors = createErrors();
  const manifests = documents.flatMap((read, index) =>
    errors.collect(() => {
      const document = read();
      if (document === null || document === undefined) return [];
      return objectsOf(document, documents.length === 1 ? file : `${file}, document ${index + 1}`, file);
    }),
  );
  errors.throwAny();
  return manifests;
}

export interface Errors {
  collect(read: () => Manifest[]): Manifest[];
  readonly messages: readonly string[];
  throwAny(): void;
}

/** Collects the errors of several reads, so that the user sees all of them at once. */
export function createErrors(): Errors {
  const messages: string[] = [];
  return {
    messages,
    collect(read) {
      try {
        return read();
      } catch (error) {
        if (!(error instanceof UserError)) throw error;
        messages.push(error.message);
        return [];
      }
    },
    throwAny() {
      if (messages.length > 0) throw new UserError(messages.join('\n'));
    },
  };
}

/** Returns a reader of each concatenated JSON document; undefined for text that is not JSON. */
function jsonDocuments(text: string): (() => unknown)[] | undefined {
  if (!/^\s*\{/.test(text)) return undefined;
  try {
    return splitJson(text)
      .map((part) => JSON.parse(part) as unknown)
      .map((value) => () => value);
  } catch {
    // The text may be YAML in flow style. If it is not, the YAML parser reports its errors with positions.
    return undefined;
  }
}

function splitJson(text: string): string[] {
  const parts: string[] = [];
  let [depth, start, isString] = [0, 0, false];
  for (let i = 0; i < text.length; i++) {
    const char = text[i];
    if (isString) {
      if (char === '\\') i++;
      else if (char === '"') isString = false;
    } else if (char === '"') isString = true;
    else if (char === '{') depth++;
    else if (char === '}' && --depth === 0) {
      parts.push(text.slice(start, i + 1));
      start = i + 1;
    }
  }
  const rest = text.slice(start);
  return rest.trim() === '' ? parts : [...parts, rest];
}

const withoutTimes = (tags: Tags): Tags =>
  tags.filter(
    (tag) =>
      typeof tag === 'string' ||
      (tag.tag !== 'tag:yaml.org,2002:timestamp' && !('format' in tag && tag.format === 'TIME')),
  );

/** Returns where and why the text is not valid JSON, as the end of a sentence; undefined if it is valid, or its error has no position. */
function jsonProblem(text: string): string | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    const [, what, line, column] =
      /^(Expected .*?|Unterminated .*?|Bad .*?)(?: in JSON)? at position \d+ \(line (\d+) column (\d+)\)$/s.exec(
        (error as Error).message,
      ) ?? [];
    return what === undefined ? undefined : ` at line ${line}, column ${column}: ${what}`;
  }
}

function notAManifest(text: string, file: string): string {
  // Other text, such as a README, may contain manifests as examples, so its content is not decisive.
  const isOther = /\.(?!ya?ml$|json$)\w+$/i.test(file);
  if (!isOther && /\bapiVersion\b/.test(text)) return '';
  const why = isOther ? 'its name does not end in .yaml, .yml or .json' : 'it has no field apiVersion';
  return `; ${why}, so it may not be a manifest: give a file with Kubernetes objects`;
}

function yamlDocuments(text: string, file: string): (() => unknown)[] {
  const format = file.endsWith('.json') ? 'JSON' : 'YAML';
  const lines = new LineCounter();
  const documents = parseAllDocuments(text, {
    version: '1.1',
    customTags: withoutTimes,
    prettyErrors: false,
    lineCounter: lines,
  });
  return [...documents].map((document) => () => {
    const [error] = document.errors;
    if (error !== undefined) {
      const { line, col } = lines.linePos(error.pos[0]);
      const problem = format === 'JSON' ? jsonProblem(text) : undefined;
      throw new UserError(
        `${file} is not valid ${format}${problem ?? ` at line ${line}, column ${col}: ${error.message}`}${notAManifest(text, file)}`,
      );
    }
    try {
      return document.toJS({ maxAliasCount: MAX_ALIASES }) as unknown;
    } catch (error) {
      throw new UserError(`${file} is not valid ${format}: ${(error as Error).message}`);
    }
  });
}

/** `file`: absent for an item of a list. */
function objectsOf(document: unknown, source: string, file = ''): Manifest[] {
  if (typeof document !== 'object' || document === null || Array.isArray(document)) {
    throw new UserError(`${source} is not a Kubernetes object: it must have the fields apiVersion, kind and metadata`);
  }
  const { apiVersion, kind, metadata, items } = document as Partial<KubeList & KubeObject>;
  if (isKustomization(apiVersion, kind, file)) throw notBuilt(source);
  for (const [field, value] of Object.entries({ apiVersion, kind })) {
    refuseOtherThanString(field, value, source);
    if (!value) throw new UserError(`${source}: the field ${field} is missing`);
  }
  if (kind?.endsWith('List') && Array.isArray(items)) {
    // The items of a typed list, such as a PodList, may have no kind of their own.
    const inherited = kind === 'List' ? {} : { apiVersion, kind: kind.slice(0, -'List'.length) };
    const errors = createErrors();
    const manifests = items.flatMap((item: unknown, index) => {
      const object = typeof item === 'object' && item !== null ? { ...inherited, ...item } : item;
      return errors.collect(() => objectsOf(object, `${source}, item ${index + 1}`));
    });
    errors.throwAny();
    return manifests;
  }
  if (typeof (metadata ?? {}) !== 'object' || Array.isArray(metadata))
    throw new UserError(`${source}: metadata of the ${kind} is not an object: give it fields, such as name`);
  const { name, generateName, namespace } = metadata ?? {};
  for (const [field, value] of Object.entries({ name, generateName, namespace }))
    refuseOtherThanString(`metadata.${field} of the ${kind}`, value, source);
  if (!(name ?? generateName))
    throw new UserError(`${source}: ${kind} has no name: set metadata.name or metadata.generateName`);
  return [{ object: document as KubeObject, source }];
}

/** The apiVersion and the kind of a kustomization may be missing. Then only the name of its file shows what it is. */
function isKustomization(apiVersion: unknown, kind: unknown, file: string): boolean {
  if (apiVersion !== undefined && apiVersion !== null)
    return typeof apiVersion === 'string' && apiVersion.startsWith('kustomize.config.k8s.io/');
  return (
    ['Kustomization', 'Component'].includes(String(kind ?? 'Kustomization')) &&
    /^kustomization\.ya?ml$/.test(basename(file))
  );
}

const notBuilt = (source: string): UserError =>
  new UserError(
    `${source} is a kustomization, which lifepod does not build: pipe its objects into lifepod, as in kubectl kustomize ${shellQuoted(dirname(source))} | lifepod up -`,
  );

/** Throws a UserError if the value is given but not a string, such as a name that YAML reads as a number. */
function refuseOtherThanString(field: string, value: unknown, source: string): void {
  if (value === undefined || value === null || typeof value === 'string') return;
  const isScalar = typeof value !== 'object';
  const problem = isScalar
    ? `is read as the ${typeof value} ${String(value)}, not as a string: put it in quotes`
    : `is ${Array.isArray(value) ? 'a list' : 'an object'}, not a string`;
  throw new UserError(`${source}: ${field} ${problem}`);
}
