/**
 * Collects the files of configMap, secret, downwardAPI and projected volumes.
 * Source: pkg/volume/{configmap,secret,downwardapi,projected} of v1.33 (modes and error texts).
 */

import { containersOf } from '../../api/core/v1/pod/containers.ts';
import type {
  ConfigMap,
  DownwardAPIVolumeFile,
  KeyToPath,
  ObjectFieldSelector,
  Pod,
  Secret,
  VolumeProjection,
} from '../../api/generated/types.ts';
import { SERVICE_ACCOUNTS } from '../../api/resources.ts';
import type { Client } from '../../client/client.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import { type DownwardFacts, fieldValue, resourceFieldValue } from '../container/downward.ts';
import type { PayloadFile } from './atomic-writer.ts';
import { MAX_READ_BYTES, NoRoomError, type ShownRoom } from './file-size-limit.ts';

type ObjectKind = 'configmap' | 'secret';

/** Returns the decoded values of an object of the Pod's namespace by their keys; undefined if the object does not exist. */
export type ReadData = (kind: ObjectKind, name: string) => Promise<Map<string, Uint8Array> | undefined>;

export interface PayloadSource {
  client: Client;
  pod: Pod;
  facts: DownwardFacts;
  read: ReadData;
  room: ShownRoom;
  /** The Pod's issued tokens, by audience and lifetime. collectProjected() reuses each token until its refreshAt and adds new tokens. */
  tokens: Map<string, IssuedToken>;
  now(): number;
}

export interface IssuedToken {
  token: string;
  /** When to replace the token, in milliseconds since the epoch. */
  refreshAt: number;
}

export interface CollectedPayload {
  files: Map<string, PayloadFile>;
  /** When to replace the first token, in milliseconds since the epoch. Absent if the volume has no token. */
  refreshAt?: number;
}

const DEFAULT_MODE = 0o644;
const PRIVATE_MODE = 0o600;
const DEFAULT_TOKEN_SECONDS = 3600;
/** A token is replaced after this fraction of its lifetime, or after MAX_TOKEN_AGE_MILLIS if that is earlier. Upstream uses 80%. */
const TOKEN_LIFE_USED = 0.75;
const MAX_TOKEN_AGE_MILLIS = 24 * 3600 * 1000;

interface KeyedSource {
  name: string;
  items?: KeyToPath[];
  optional?: boolean;
  defaultMode?: number;
}

export async function collectConfigMap(
  { read }: PayloadSource,
  wanted: KeyedSource,
): Promise<Map<string, PayloadFile>> {
  const data = requireData(await read('configmap', wanted.name), 'configmap', wanted);
  return selectKeys(data, wanted, 'configmap references non-existent config key');
}

export async function collectSecret({ read }: PayloadSource, wanted: KeyedSource): Promise<Map<string, PayloadFile>> {
  const data = requireData(await read('secret', wanted.name), 'secret', wanted);
  return selectKeys(data, wanted, 'references non-existent secret key');
}

/**
 * The returned function reads each object once. It rejects with a NoRoomError if the values of all objects, as encoded in the API, have
 * more than MAX_READ_BYTES characters in total.
 */
export function dataReader(client: Client, pod: Pod): ReadData {
  const known = new Map<string, ReturnType<ReadData>>();
  let left = MAX_READ_BYTES;
  const get = async <T extends KubeObject>(kind: ObjectKind, name: string): Promise<T | undefined> => {
    try {
      const resource = client.resource<T>({ group: '', version: 'v1', resource: `${kind}s` });
      return await resource.get(name, pod.metadata.namespace);
    } catch (error) {
      if (isApiError(error, 'NotFound')) return undefined;
      throw error;
    }
  };
  const read: ReadData = async (kind, name) => {
    const decoded = (values: Record<string, string> | undefined, encoding: 'utf8' | 'base64') =>
      Object.entries(values ?? {}).map(([key, value]) => {
        left -= value.length;
        if (left < 0) throw new NoRoomError('the volumes of a Pod may show objects of at most 64 MiB', () => false);
        return [key, Buffer.from(value, encoding)] as const;
      });
    if (kind === 'secret') {
      const secret = await get<Secret>(kind, name);
      return secret && new Map(decoded(secret.data, 'base64'));
    }
    const configMap = await get<ConfigMap>(kind, name);
    return configMap && new Map([...decoded(configMap.data, 'utf8'), ...decoded(configMap.binaryData, 'base64')]);
  };
  return (kind, name) => {
    const reading = known.get(`${kind}/${name}`) ?? read(kind, name);
    known.set(`${kind}/${name}`, reading);
    return reading;
  };
}

function requireData(
  data: Map<string, Uint8Array> | undefined,
  kind: ObjectKind,
  { name, optional }: KeyedSource,
): Map<string, Uint8Array> | undefined {
  if (data === undefined && optional !== true) throw new Error(`${kind} ${JSON.stringify(name)} not found`);
  return data;
}

function selectKeys(
  data: Map<string, Uint8Array> | undefined,
  wanted: KeyedSource,
  missing: string,
): Map<string, PayloadFile> {
  const mode = wanted.defaultMode ?? DEFAULT_MODE;
  const files = new Map<string, PayloadFile>();
  if (data === undefined) return files;
  if (wanted.items === undefined || wanted.items.length === 0) {
    for (const [key, bytes] of data) files.set(key, { data: bytes, mode });
    return files;
  }
  for (const item of wanted.items) {
    const bytes = data.get(item.key);
    if (bytes !== undefined) files.set(item.path, { data: bytes, mode: item.mode ?? mode });
    else if (wanted.optional !== true) throw new Error(`${missing}: ${item.key}`);
  }
  return files;
}

export function collectDownward(
  source: PayloadSource,
  items: readonly DownwardAPIVolumeFile[],
  defaultMode = DEFAULT_MODE,
): Map<string, PayloadFile> {
  const files = new Map<string, PayloadFile>();
  // Format each field once, since many items may refer to the same annotations.
  const known = new Map<string, Uint8Array>();
  const shown = ({ fieldPath }: ObjectFieldSelector): Uint8Array => {
    const bytes = known.get(fieldPath) ?? Buffer.from(fieldValue({ fieldPath }, source.pod, source.facts), 'utf8');
    known.set(fieldPath, bytes);
    return bytes;
  };
  for (const { path, mode = defaultMode, fieldRef, resourceFieldRef } of items) {
    const amount = (): string =>
      resourceFieldRef === undefined ? '' : resourceFieldValue(resourceFieldRef, source.pod, undefined, source.facts);
    files.set(path, { data: fieldRef === undefined ? Buffer.from(amount(), 'utf8') : shown(fieldRef), mode });
  }
  return files;
}

/**
 * A file of a later source replaces a file with the same path of an earlier source. Rejects if a source is not supported or cannot be read.
 */
export async function collectProjected(
  source: PayloadSource,
  projections: readonly VolumeProjection[],
  defaultMode = DEFAULT_MODE,
): Promise<CollectedPayload> {
  const result: CollectedPayload = { files: new Map() };
  for (const projection of projections) {
    let files: Map<string, PayloadFile>;
    if (projection.configMap !== undefined) {
      const { name = '' } = projection.configMap;
      files = await collectConfigMap(source, { ...projection.configMap, name, defaultMode });
    } else if (projection.secret !== undefined) {
      const { name = '' } = projection.secret;
      files = await collectSecret(source, { ...projection.secret, name, defaultMode });
    } else if (projection.downwardAPI !== undefined) {
      files = collectDownward(source, projection.downwardAPI.items ?? [], defaultMode);
    } else if (projection.serviceAccountToken !== undefined) {
      const token = await collectToken(source, projection.serviceAccountToken, defaultMode);
      files = token.files;
      result.refreshAt = Math.min(result.refreshAt ?? Number.POSITIVE_INFINITY, token.refreshAt);
    } else {
      const [kind] = Object.keys(projection);
      // Upstream ignores an empty source.
      if (kind === undefined) continue;
      throw new Error(`projected volume source ${JSON.stringify(kind)} is not supported`);
    }
    for (const [path, file] of files) result.files.set(path, file);
  }
  return result;
}

async function collectToken(
  source: PayloadSource,
  wanted: NonNullable<VolumeProjection['serviceAccountToken']>,
  defaultMode: number,
): Promise<{ files: Map<string, PayloadFile>; refreshAt: number }> {
  const { audience = '', expirationSeconds = DEFAULT_TOKEN_SECONDS } = wanted;
  const key = JSON.stringify([audience, expirationSeconds]);
  const known = source.tokens.get(key);
  const issued =
    known !== undefined && known.refreshAt > source.now()
      ? known
      : await requestToken(source, audience, expirationSeconds);
  source.tokens.set(key, issued);
  const { securityContext } = source.pod.spec ?? {};
  const uid = commonUser(source.pod);
  const restricted = uid !== undefined || securityContext?.fsGroup !== undefined;
  const file: PayloadFile = {
    data: Buffer.from(issued.token, 'utf8'),
    mode: restricted ? PRIVATE_MODE : defaultMode,
    uid,
  };
  return { files: new Map([[wanted.path, file]]), refreshAt: issued.refreshAt };
}

/** The token is valid only while the Pod exists. */
async function requestToken(
  { client, pod, now }: PayloadSource,
  audience: string,
  expirationSeconds: number,
): Promise<IssuedToken> {
  const { metadata, spec } = pod;
  const body = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    metadata: { name: '' },
    spec: {
      audiences: audience === '' ? [] : [audience],
      expirationSeconds,
      boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: metadata.name, uid: metadata.uid },
    },
  };
  const account = spec?.serviceAccountName ?? 'default';
  const answer = (await client
    .resource(SERVICE_ACCOUNTS)
    .createSubresource(account, metadata.namespace ?? '', 'token', body)
    .catch((error: Error) => {
      throw new Error(`failed to fetch token: ${error.message}`);
    })) as KubeObject & { status?: { token?: string; expirationTimestamp?: string } };
  if (answer.status?.token === undefined) throw new Error('failed to fetch token: the response contains no token');
  const expires = Date.parse(answer.status.expirationTimestamp ?? '');
  const lifeMillis = Number.isNaN(expires) ? expirationSeconds * 1000 : expires - now();
  return {
    token: answer.status.token,
    refreshAt: now() + Math.min(lifeMillis * TOKEN_LIFE_USED, MAX_TOKEN_AGE_MILLIS),
  };
}

/** Returns undefined if the UIDs in the spec differ or the spec contains none. */
function commonUser(pod: Pod): number | undefined {
  const shared = pod.spec?.securityContext?.runAsUser;
  const users = new Set(containersOf(pod).map(({ securityContext }) => securityContext?.runAsUser ?? shared));
  return users.size === 1 ? [...users][0] : undefined;
}
