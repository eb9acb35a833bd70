/**
 * Reads libcni's cache, which records the sandboxes that are attached to the Pod network: interfaces, addresses and host ports of each.
 * libcni writes a record before the runtime reports the sandbox, and deletes it when the sandbox has been detached, so that the records are
 * complete whichever engine reads them. Source: libcni 0.8 to 1.x (the cache version cniCacheV1); all runtimes use its default folder.
 */
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { canonicalIp } from '../../machinery/ip.ts';
import { hasLink } from './links.ts';

export const CNI_CACHE = '/var/lib/cni/results';

export interface HostPort {
  protocol: 'tcp' | 'udp' | 'sctp';
  hostPort: number;
  containerPort: number;
  /** The address, in canonical form, on which the port is open; absent: all addresses of the node. */
  hostIp?: string;
}

export interface Attachment {
  sandboxId: string;
  /** The interface of the machine that is connected to the sandbox. */
  link: string;
  /** The path of the sandbox's network namespace. */
  namespace: string;
  /** The addresses of the sandbox, in canonical form. */
  addresses: readonly string[];
  hostPorts: readonly HostPort[];
  /** Whether the CNI plugin portmap has rules for the host ports, as with older versions of lifepod. */
  usesPortmap: boolean;
  /** When libcni wrote the record, in milliseconds. */
  attachedAt: number;
}

/** The parts of libcni's record that are used. Names in `portMappings` have upper- or lower-case initials, depending on the runtime. */
interface CniRecord {
  containerId?: string;
  /** The configuration of the CNI network, in base64. */
  config?: string;
  capabilityArgs?: { portMappings?: Record<string, unknown>[] | null } | null;
  result?: { interfaces?: { name: string; sandbox?: string }[]; ips?: { address: string }[] };
}

/** Returns the attachment that a record describes; undefined if the text is not a complete record of an attached sandbox. */
export function parseAttachment(text: string, attachedAt: number): Attachment | undefined {
  const record = parseRecord(text);
  const interfaces = record.result?.interfaces ?? [];
  // The plugin bridge lists the bridge before the end of the sandbox's link that is in the node's network, so the last one is that link.
  const link = interfaces.findLast(({ sandbox }) => (sandbox ?? '') === '')?.name;
  const namespace = interfaces.find(({ sandbox }) => (sandbox ?? '') !== '')?.sandbox;
  if (record?.containerId === undefined || link === undefined || namespace === undefined) return undefined;
  return {
    sandboxId: record.containerId,
    link,
    namespace,
    addresses: addressesOf(record),
    hostPorts: (record.capabilityArgs?.portMappings ?? []).flatMap(parseHostPort),
    usesPortmap: Buffer.from(record.config ?? '', 'base64').includes('"portmap"'),
    attachedAt,
  };
}

/** Returns the record; an empty one if the text is not complete JSON. */
function parseRecord(text: string): CniRecord {
  try {
    return JSON.parse(text) as CniRecord;
  } catch {
    return {};
  }
}

const addressesOf = ({ result }: CniRecord): string[] =>
  (result?.ips ?? []).flatMap(({ address }) => canonicalIp(address.split('/')[0] ?? '') ?? []);

function parseHostPort(mapping: Record<string, unknown>): HostPort[] {
  const fields = new Map(Object.entries(mapping).map(([name, value]) => [name.toLowerCase(), value]));
  const protocol = String(fields.get('protocol') || 'tcp').toLowerCase();
  const [hostPort, containerPort] = [Number(fields.get('hostport')), Number(fields.get('containerport'))];
  if (!(hostPort > 0 && containerPort > 0) || !isProtocol(protocol)) return [];
  const hostIp = canonicalIp(String(fields.get('hostip') ?? ''));
  return [{ protocol, hostPort, containerPort, ...(hostIp === undefined ? {} : { hostIp }) }];
}

const isProtocol = (text: string): text is HostPort['protocol'] => ['tcp', 'udp', 'sctp'].includes(text);

/**
 * Resolves with the attachments to the CNI network by the name of their record, the oldest first. Does not read records in `known` again,
 * because a record does not change. Leaves out attachments whose interface no longer exists, for example after a reboot.
 */
export async function readAttachments(
  network: string,
  known: ReadonlyMap<string, Attachment> = new Map(),
): Promise<Map<string, Attachment>> {
  const names = (await readdir(CNI_CACHE).catch(() => [])).filter((name) => name.startsWith(`${network}-`));
  const read = await Promise.all(
    names.map(async (name) => [name, known.get(name) ?? (await readAttachment(name))] as const),
  );
  const present = read.filter((entry): entry is [string, Attachment] => entry[1] !== undefined && exists(entry[1]));
  return new Map(present.sort(([, a], [, b]) => a.attachedAt - b.attachedAt));
}

/**
 * Resolves with the paths of the records of the CNI network, and of records about network namespaces whose files are in `namespaceFolder`:
 * containerd attaches the loopback interface of a sandbox as a network with a name of its own.
 */
export async function recordsOf(network: string, namespaceFolder: string): Promise<string[]> {
  const paths = (await readdir(CNI_CACHE).catch(() => [])).map((name) => join(CNI_CACHE, name));
  const own = await Promise.all(
    paths.map(async (path) => {
      if (path.startsWith(join(CNI_CACHE, `${network}-`))) return true;
      const record = parseRecord(await readFile(path, 'utf8').catch(() => ''));
      return (record.result?.interfaces ?? []).some(({ sandbox = '' }) => sandbox.startsWith(`${namespaceFolder}/`));
    }),
  );
  return paths.filter((_, index) => own[index]);
}

const exists = ({ link }: Attachment): boolean => hasLink(link);

/**
 * Resolves with the addresses of the sandboxes of all CNI networks, in canonical form, by the name of their record. Does not read records
 * in `known`, the last result, again. Leaves out records without addresses, because libcni may still be writing them.
 */
export async function readAllAddresses(
  known: ReadonlyMap<string, readonly string[]>,
): Promise<Map<string, readonly string[]>> {
  const names = await readdir(CNI_CACHE).catch(() => []);
  const read = names.map(
    async (name) =>
      [name, known.get(name) ?? (await readRecord(name, (text) => addressesOf(parseRecord(text))))] as const,
  );
  const all = await Promise.all(read);
  return new Map(all.filter((each): each is [string, string[]] => each[1] !== undefined && each[1].length > 0));
}

const readAttachment = (name: string): Promise<Attachment | undefined> => readRecord(name, parseAttachment);

/**
 * Resolves with the result of `parse` for the text of the record and the time when it was written; with undefined if the record no longer
 * exists.
 */
async function readRecord<T>(name: string, parse: (text: string, writtenAt: number) => T): Promise<T | undefined> {
  const path = join(CNI_CACHE, name);
  try {
    const [text, { mtimeMs }] = await Promise.all([readFile(path, 'utf8'), stat(path)]);
    return parse(text, mtimeMs);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
