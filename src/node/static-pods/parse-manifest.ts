/**
 * Source: pkg/kubelet/config (common.go, file.go) of v1.33: names, UID, annotations, tolerations; v1.34's error texts for references to API
 * objects (the documentation of v1.33 forbids such references, too).
 */
import { createHash } from 'node:crypto';
import { podKind } from '../../api/core/v1/pod/index.ts';
import { apiReferences, SOURCE_ANNOTATION } from '../../api/core/v1/pod/mirror.ts';
import type { Pod } from '../../api/generated/types.ts';
import { decode, unknownFieldText } from '../../api/schema.ts';
import { firstErrors, listErrors } from '../../machinery/field-error.ts';
import { isJsonObject } from '../../machinery/json-value.ts';
import { formatTime } from '../../machinery/time.ts';
import { programPart } from '../../platform/programs/program-part.ts';

const HASH_ANNOTATION = 'kubernetes.io/config.hash';
const SEEN_ANNOTATION = 'kubernetes.io/config.seen';
const UID_LENGTH = 32;

/** The manifest does not define a valid static Pod. The message is the reason. */
export class ManifestError extends Error {
  override readonly name = 'ManifestError';
}

export interface ManifestSource {
  file: string;
  nodeName: string;
  now: number;
}

export interface ReadManifest {
  pod: Pod;
  /** Sentences about the fields that the Pod does not have, for example because of a typing error. */
  unknown: string[];
  warnings: string[];
}

/** Rejects with a ManifestError if the manifest is invalid. */
export async function readManifest(text: string, { file, nodeName, now }: ManifestSource): Promise<ReadManifest> {
  const { value, unknownFields, typeErrors } = decode(podKind.schema, await documentOf(text));
  if (typeErrors[0] !== undefined) throw new ManifestError(typeErrors[0]);
  const written = value as unknown as Pod;
  if (!written.metadata?.name) throw new ManifestError('invalid pod: name is needed for the pod');
  const uid = createHash('sha256')
    .update(`host:${nodeName}\nfile:${file}\n${canonical(value)}`)
    .digest('hex')
    .slice(0, UID_LENGTH);
  const pod: Pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `${written.metadata.name}-${nodeName.toLowerCase()}`,
      namespace: written.metadata.namespace || 'default',
      uid,
      creationTimestamp: formatTime(now),
      ...(written.metadata.labels === undefined ? {} : { labels: written.metadata.labels }),
      annotations: {
        ...written.metadata.annotations,
        [SOURCE_ANNOTATION]: 'file',
        [HASH_ANNOTATION]: uid,
        [SEEN_ANNOTATION]: formatTime(now),
      },
    },
    spec: {
      ...(written.spec ?? { containers: [] }),
      nodeName,
      // With this toleration, which upstream adds as well, taints of the node do not evict a static Pod.
      tolerations: [...(written.spec?.tolerations ?? []), { operator: 'Exists', effect: 'NoExecute' }],
    },
  };
  const taken: string[] = [];
  complete(pod, now, (sentence) => void taken.push(sentence));
  const warnings = [...taken, ...(podKind.warnings?.(pod) ?? [])];
  return { pod, unknown: unknownFields.map(unknownFieldText), warnings };
}

async function documentOf(text: string): Promise<unknown> {
  // Load the parser with the first manifest, because most nodes have no manifests.
  const { parse } = await programPart(() => import('yaml'));
  let document: unknown;
  try {
    document = parse(text, { maxAliasCount: 1000 });
  } catch (error) {
    throw new ManifestError(`couldn't parse as pod: ${(error as Error).message.split('\n')[0]?.replace(/:$/, '')}`);
  }
  if (!isJsonObject(document)) throw new ManifestError("couldn't parse as pod: it is not an object");
  const { apiVersion, kind } = document;
  if (apiVersion !== 'v1' || kind !== 'Pod') {
    throw new ManifestError(
      `invalid pod: it is of apiVersion ${apiVersion ?? '""'} and kind ${kind ?? '""'}, and must be of apiVersion v1 and kind Pod`,
    );
  }
  return document;
}

/** Sorts the keys, so that equal values have equal texts. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_, each: unknown) =>
    isJsonObject(each) ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1))) : each,
  );

/** Refuses references to API objects, which static Pods may not have. */
function complete(pod: Pod, now: number, warn: (sentence: string) => void): void {
  podKind.defaults?.(pod);
  podKind.prepareForCreate?.(pod, { now, warn });
  const errors = firstErrors(() => podKind.validateCreate(pod));
  if (errors.length > 0) throw new ManifestError(`invalid pod: ${listErrors(errors).text}`);
  const [reference] = apiReferences(pod);
  if (reference !== undefined) throw new ManifestError(`static pods may not reference ${reference}`);
}
