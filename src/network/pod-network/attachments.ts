/**
 * Reads libcni's cache, which records the sandboxes that are attached to the Pod network. libcni writes a record before the runtime reports
 * the sandbox, and deletes it when the sandbox has been detached. Source: libcni 0.8 to 1.x (the cache version cniCacheV1).
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
  /** The machine's end of the sandbox's link. */
  link: string;
  namespace: string;
  /** In canonical form. */
  addresses: readonly string[];
  hostPorts: readonly HostPort[];
  /** Whether the CNI plugin portmap has rules for the host ports, as with older versions of lifepod. */
  usesPortmap: boolean;
  /** When libcni wrote the record, in milliseconds since the epoch. */
  attachedAt: number;
}

/** Names in `portMappings` have upper- or lower-case initials, depending on the runtime. */
interface CniRecord {
  containerId?: string;
  /** In base64. */
  config?: string;
  capabilityArgs?: { portMappings?: Record<string, unknown>[] | null } | null;
  result?: { interfaces?: { name: string; sandbox?: string }[]; ips?: { address: string }[] };
}

/** Parses a record of libcni's cache. Returns undefined if the text is not a complete record of an attached sandbox. */
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

/** The text may be incomplete JSON while libcni writes the record. */
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
 * Resolves with the attachments to the CNI network by the name of their record, the oldest first. Records in `known` are not read again,
 * because a record does not change. Attachments whose interface no longer exists are left out, for example after a reboot.
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
 * Resolves with the paths of the records of the CNI network, and of records about network namespaces in `namespaceFolder`: containerd
 * attaches the loopback interface of a sandbox as a network with a name of its own.
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
 * Resolves with the addresses of the sandboxes of all CNI networks, in canonical form, by the name of their record. `known`: the last
 * result. Records without addresses are left out, because libcni may still be writing them.
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
