/**
 * The functions are pure.
 * Source: "DNS for Services and Pods" of the v1.33 documentation; pkg/kubelet/network/dns (behavior and limits).
 */
import type { Pod } from '../../api/generated/types.ts';

export interface DnsConfig {
  servers: string[];
  searches: string[];
  options: string[];
}

export interface DnsFacts {
  /** If empty, the ClusterFirst policies have the effect of Default. */
  clusterDns: readonly string[];
  clusterDomain: string;
  host: DnsConfig;
}

const MAX_SERVERS = 3;
const MAX_SEARCHES = 32;
const MAX_SEARCH_CHARACTERS = 2048;
/** Upstream omits longer search paths, since some resolver libraries abort on search paths of more than 255 characters. */
const MAX_SEARCH_PATH_CHARACTERS = 253;

/** `cut`: upstream's messages about nameservers and search paths that were omitted. */
export function podDnsConfig(pod: Pod, facts: DnsFacts): { config: DnsConfig; cut: string[] } {
  const config = policyConfig(pod, facts);
  const custom = pod.spec?.dnsConfig;
  const options = [...config.options];
  const indexes = new Map<string, number>();
  const indexed = (option: string, index: number): void => {
    const name = option.split(':')[0] ?? '';
    if (!indexes.has(name)) indexes.set(name, index);
  };
  options.forEach(indexed);
  for (const { name = '', value } of custom?.options ?? []) {
    const at = indexes.get(name);
    const text = value === undefined || value === '' ? name : `${name}:${value}`;
    if (at === undefined) indexed(text, options.push(text) - 1);
    else options[at] = text;
  }
  const allServers = unique([...config.servers, ...(custom?.nameservers ?? [])]);
  const allSearches = unique([...config.searches, ...(custom?.searches ?? [])]);
  const servers = allServers.slice(0, MAX_SERVERS);
  const searches = limitSearches(allSearches);
  const cut: string[] = [];
  if (servers.length < allServers.length)
    cut.push(
      `Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: ${servers.join(' ')}`,
    );
  if (searches.length < allSearches.length)
    cut.push(
      `Search Line limits were exceeded, some search paths have been omitted, the applied search line is: ${searches.join(' ')}`,
    );
  return { config: { servers, searches, options }, cut };
}

function policyConfig(pod: Pod, facts: DnsFacts): DnsConfig {
  const policy = pod.spec?.dnsPolicy ?? 'ClusterFirst';
  if (policy === 'None') return { servers: [], searches: [], options: [] };
  const cluster = policy === 'ClusterFirstWithHostNet' || (policy === 'ClusterFirst' && pod.spec?.hostNetwork !== true);
  if (!cluster || facts.clusterDns.length === 0) return facts.host;
  const domain = facts.clusterDomain;
  return {
    servers: [...facts.clusterDns],
    searches: [`${pod.metadata.namespace}.svc.${domain}`, `svc.${domain}`, domain, ...facts.host.searches],
    options: ['ndots:5'],
  };
}

const unique = (items: string[]): string[] => [...new Set(items)];

function limitSearches(searches: string[]): string[] {
  const kept: string[] = [];
  let characters = 0;
  for (const search of searches.slice(0, MAX_SEARCHES)) {
    if (search.length > MAX_SEARCH_PATH_CHARACTERS) continue;
    characters += search.length + (kept.length === 0 ? 0 : 1);
    if (characters > MAX_SEARCH_CHARACTERS) break;
    kept.push(search);
  }
  return kept;
}

/** Parses a resolv.conf(5) file. The last `search` or `domain` line and the last `options` line apply. */
export function parseResolvConf(text: string): DnsConfig {
  const config: DnsConfig = { servers: [], searches: [], options: [] };
  for (const line of text.split('\n')) {
    const [keyword, ...words] = line
      .replace(/^[#;].*/, '')
      .trim()
      .split(/\s+/);
    if (keyword === 'nameserver' && words[0] !== undefined) config.servers.push(words[0]);
    else if (keyword === 'search' || keyword === 'domain')
      config.searches = words.filter((word) => word !== '.').map((word) => word.replace(/\.$/, ''));
    else if (keyword === 'options') config.options = words;
  }
  return config;
}
