/**
 * Builds the OpenAPI documents of a set of kinds, each when it is first requested. The descriptions are large, so they are read for each
 * document and then released. The documents are kept compressed.
 */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import facts from '../../api/facts/facts.json' with { type: 'json' };
import { ownFacts } from '../../api/facts/own.ts';
import type { KindDefinition } from '../../api/kind.ts';
import { programPart } from '../../platform/programs/program-part.ts';
import { workInTurns } from '../../platform/work-in-turns.ts';
import { kindPaths } from './paths.ts';
import { componentSchemas, type Descriptions } from './schemas.ts';
import { type OpenApiDocument, swaggerPath, swaggerSchema } from './swagger.ts';
import { documentParts, encodeDefinition, encodePath } from './swagger-protobuf.ts';

const gzipAsync = promisify(gzip);
const DESCRIPTIONS = new URL('../../api/generated/docs.json', import.meta.url);

/** Such as `api/v1` or `apis/events.k8s.io/v1`. */
const pathOf = (kind: KindDefinition): string =>
  kind.group === '' ? `api/${kind.version}` : `apis/${kind.group}/${kind.version}`;

const infoOf = (version: string) => ({ title: 'Kubernetes', version });

export function openApiDocument(
  kinds: readonly KindDefinition[],
  descriptions: Descriptions,
  version: string,
): OpenApiDocument & { openapi: string } {
  return {
    openapi: '3.0.0',
    info: infoOf(version),
    paths: Object.assign({}, ...kinds.map(kindPaths)) as OpenApiDocument['paths'],
    components: { schemas: componentSchemas(kinds, descriptions) },
  };
}

interface SwaggerForm {
  path(path: string, item: unknown): Uint8Array;
  definition(name: string, schema: unknown): Uint8Array;
  /** Returns the document in parts. `paths` and `definitions`: the encoded entries of the document. */
  document(info: object, paths: readonly Uint8Array[], definitions: readonly Uint8Array[]): Uint8Array[];
}

const jsonEntry = (name: string, value: unknown): Uint8Array =>
  Buffer.from(`${JSON.stringify(name)}:${JSON.stringify(value)}`);
const COMMA = Buffer.from(',');
const separated = (entries: readonly Uint8Array[]): Uint8Array[] =>
  entries.flatMap((entry, at) => (at === 0 ? [entry] : [COMMA, entry]));

const FORMS: Readonly<Record<'json' | 'protobuf', SwaggerForm>> = {
  json: {
    path: jsonEntry,
    definition: jsonEntry,
    document: (info, paths, definitions) => [
      Buffer.from(`{"swagger":"2.0","info":${JSON.stringify(info)},"paths":{`),
      ...separated(paths),
      Buffer.from('},"definitions":{'),
      ...separated(definitions),
      Buffer.from('}}'),
    ],
  },
  protobuf: { path: encodePath, definition: encodeDefinition, document: (...of) => documentParts(...of) },
};

/**
 * Resolves to the Swagger document of all group versions, in parts. `builds`: each returns the v3 document of one group version. A schema
 * that several of these documents contain must be the same in all of them.
 */
export async function swaggerDocument(
  builds: Iterable<() => OpenApiDocument>,
  info: object,
  form: keyof typeof FORMS,
): Promise<Uint8Array[]> {
  const { path, definition, document } = FORMS[form];
  const paths: Uint8Array[] = [];
  const definitions = new Map<string, Uint8Array>();
  const betweenSteps = workInTurns();
  for (const build of builds) {
    const groupVersion = build();
    for (const [name, item] of Object.entries(groupVersion.paths)) {
      paths.push(path(name, swaggerPath(item)));
      await betweenSteps();
    }
    for (const [name, schema] of Object.entries(groupVersion.components.schemas)) {
      if (definitions.has(name)) continue;
      definitions.set(name, definition(name, swaggerSchema(schema)));
      await betweenSteps();
    }
  }
  return document(info, paths, [...definitions.values()]);
}

export interface Documents {
  groupVersions: readonly string[];
  /** Resolves to the compressed v3 document of the group version, which must be one of `groupVersions`. */
  v3(path: string): Promise<Buffer>;
  /** Resolves to the compressed v2 document of all group versions. */
  v2(form: keyof typeof FORMS): Promise<Buffer>;
  /** Resolves to a hash of the inputs of the v3 document of the group version, or of the v2 document if `path` is undefined. */
  hash(path?: string): Promise<string>;
}

const readDescriptions = (): Promise<Buffer> => programPart(() => readFile(DESCRIPTIONS));

/** A failure of `read` is not cached, because the file may be missing only while the npm package is being replaced. */
export function documentsOf(
  kinds: readonly KindDefinition[],
  version: string,
  read: () => Promise<Buffer> = readDescriptions,
): Documents {
  const kindsOf = Map.groupBy(kinds, pathOf);
  const compressed = new Map<string, Promise<Buffer>>();
  let sources: Promise<string> | undefined;

  const build = (path: string, descriptions: Descriptions): OpenApiDocument =>
    openApiDocument(kindsOf.get(path) ?? [], descriptions, version);
  const document = (
    key: string,
    make: (descriptions: Descriptions) => Promise<Uint8Array | string>,
  ): Promise<Buffer> => {
    const known = compressed.get(key);
    if (known !== undefined) return known;
    const made = read()
      .then((text) => make(JSON.parse(text.toString())))
      .then((bytes) => gzipAsync(bytes));
    compressed.set(key, made);
    made.catch(() => compressed.delete(key));
    return made;
  };
  const hashOf = (...parts: (string | Buffer)[]): string =>
    parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest('hex');
  const sourcesHash = (): Promise<string> => {
    sources ??= read()
      .then((descriptions) => hashOf(JSON.stringify([facts, ownFacts]), descriptions))
      .catch((error: unknown) => {
        sources = undefined;
        throw error;
      });
    return sources;
  };

  return {
    groupVersions: [...kindsOf.keys()],
    v3: (path) => document(path, async (descriptions) => JSON.stringify(build(path, descriptions))),
    v2: (form) =>
      document(form, async (descriptions) => {
        const builds = [...kindsOf.keys()].map((path) => () => build(path, descriptions));
        return Buffer.concat(await swaggerDocument(builds, infoOf(version), form));
      }),
    hash: async (path) => {
      const of = path === undefined ? kinds : kindsOf.get(path);
      return hashOf(`${version} ${JSON.stringify(of)}`, await sourcesHash()).toUpperCase();
    },
  };
}
