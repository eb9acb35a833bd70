/**
 * Sections of the instance's nftables table, as plain data.
 *
 * A section is what one component needs, such as the rules for Services. It consists of immutable parts, such as one for each Service. A
 * component passes unchanged parts again as the same objects: the comparison of two versions of a section visits the parts that differ.
 */

/** The name of each chain and set begins with the name of its section, such as `pods/NAME`. table.ts deletes other chains and sets. */
export const SECTIONS = ['pods', 'host-ports', 'services', 'policies'] as const;
export type SectionName = (typeof SECTIONS)[number];

/** The component chooses the names of its parts. */
export type Section = ReadonlyMap<string, Part>;

/** No two parts of a table may declare the same chain, the same set, or the same key of a set. */
export interface Part {
  chains?: readonly Chain[];
  sets?: readonly NftSet[];
  elements?: readonly Elements[];
  /** Parts of the same section to which this part refers. They exist only because other parts need them. */
  needs?: readonly string[];
  /** Replaces the part in the table if nft(8) rejects the part. If absent, nft rejects the whole section. */
  fallback?: Part;
}

/** The errors of nft(8) by the name of a part. The table contains the fallbacks of these parts. */
export type Rejections = ReadonlyMap<string, Error>;

export interface Chain {
  /** Begins with the name of the section and a slash. */
  name: string;
  /** The declaration that attaches a base chain to a hook, such as `type nat hook prerouting priority -100; policy accept;`. */
  base?: string;
  /** The rules in the syntax of nft(8). They may refer to all chains and sets of the table. */
  rules: readonly string[];
}

export interface NftSet {
  /** Begins with the name of the section and a slash. */
  name: string;
  kind: 'set' | 'map';
  /** The type of the keys, and for a map also the type of the values, after a colon, such as `ipv4_addr . inet_service : verdict`. */
  type: string;
  /** Further properties in the syntax of nft(8), such as `flags interval;`. */
  options?: string;
  /** Rules add the elements of this set. The kernel keeps these elements when the section is replaced, and parts must not declare any. */
  dynamic?: true;
}

export interface Elements {
  set: string;
  /** Keys and values in the spelling of nft(8), which must be the same each time; the value is the empty text in a set. */
  values: Iterable<readonly [key: string, value: string]>;
}
