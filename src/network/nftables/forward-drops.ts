/**
 * Finds chains of other programs, such as firewalls, that drop forwarded packets by default. The machine forwards the packets between a Pod
 * and other Pods or machines. A rule of lifepod that accepts these packets does not help: the chains of all tables must accept them.
 *
 * Boundary: only policies are examined, not whether the rules of a chain accept the packets of Pods. A chain whose rules name the Pod range
 * is left out. Source: nft(8), `list chains`; iptables(8).
 */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { ipFamily } from '../../machinery/names.ts';
import { findProgram, runCommandOk } from '../../platform/processes.ts';
import { asRoot } from '../../platform/programs/typed-program.ts';
import { nft, type TableOptions } from './nft.ts';

interface BaseChain {
  family: string;
  table: string;
  name: string;
  hook?: string;
  policy?: string;
}

/** The tables that iptables has in the kernel if it does not use nftables. */
const LEGACY_TABLES = '/proc/net/ip_tables_names';

/** Returns the chains that drop forwarded packets by default, except chains of lifepod. `json`: the output of `nft --json list chains`. */
export function droppingChains(json: string): BaseChain[] {
  const { nftables } = JSON.parse(json) as { nftables: { chain?: BaseChain }[] };
  return nftables.flatMap(({ chain }) =>
    chain?.hook === 'forward' && chain.policy === 'drop' && !chain.table.startsWith('lifepod-') ? [chain] : [],
  );
}

/**
 * Resolves with a sentence about each chain that drops forwarded packets by default and does not name the Pod range of its IP family.
 * Rejects if nft(8) fails.
 */
export async function forwardWarnings(ranges: readonly string[], options: TableOptions): Promise<string[]> {
  const warnings: string[] = [];
  for (const chain of droppingChains(await nft(options, ['--json', 'list', 'chains']))) {
    const { family, table, name } = chain;
    const rules = await nft(options, ['list', 'chain', family, table, name]);
    for (const range of ranges.filter((each) => isOfFamily(each, family) && !rules.includes(each))) {
      const ip = ipFamily(range.split('/')[0] ?? '') === 6 ? 'ip6' : 'ip';
      const commands = ['saddr', 'daddr'].map(
        (address) => `nft insert rule ${family} ${table} ${name} ${ip} ${address} ${range} accept`,
      );
      warnings.push(warningOf(`the chain ${name} of the table ${family} ${table}`, range, commands));
    }
  }
  return [...warnings, ...(await legacyWarnings(ranges, options))];
}

const isOfFamily = (range: string, family: string): boolean =>
  family === 'inet' || family === (ipFamily(range.split('/')[0] ?? '') === 6 ? 'ip6' : 'ip');

const warningOf = (chain: string, range: string, commands: readonly string[]): string =>
  `${chain} drops packets that the machine forwards unless a rule accepts them, and no rule names the Pod range ${range}: ` +
  `if Pods cannot be reached, accept their packets with '${commands.map((each) => asRoot(each, process.env)).join("' and '")}'`;

/** Does the same as forwardWarnings() for the chain FORWARD of an iptables(8) that does not use nftables. */
async function legacyWarnings(ranges: readonly string[], { namespace, signal }: TableOptions): Promise<string[]> {
  const program = findProgram('iptables-legacy');
  if (namespace !== undefined || program === undefined || !existsSync(LEGACY_TABLES)) return [];
  if (!(await readFile(LEGACY_TABLES, 'utf8')).split('\n').includes('filter')) return [];
  const rules = await runCommandOk(program, ['-S', 'FORWARD'], { signal });
  return ranges
    .filter((range) => isOfFamily(range, 'ip') && /^-P FORWARD DROP$/m.test(rules) && !rules.includes(range))
    .map((range) => {
      const commands = ['-s', '-d'].map((option) => `iptables-legacy -I FORWARD ${option} ${range} -j ACCEPT`);
      return warningOf('the chain FORWARD of iptables', range, commands);
    });
}
