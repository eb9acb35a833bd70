export interface MediaRange {
  type: string;
  parameters: Readonly<Record<string, string>>;
}

/** The fewer wildcards a range has, the more specific the range is. */
const wildcards = ({ type }: MediaRange): number => type.split('*').length - 1;

/** A client usually sends the same header with each request. */
const parsed = new Map<string, readonly MediaRange[]>();
const MAX_PARSED = 100;
const MAX_PARSED_CHARACTERS = 512;

/** Returns the media ranges with a quality above 0, best first. An absent or empty header accepts anything. Source: RFC 9110. */
export function acceptedRanges(header = ''): readonly MediaRange[] {
  let ranges = parsed.get(header);
  if (ranges === undefined) {
    ranges = parseAccept(header);
    if (parsed.size >= MAX_PARSED) parsed.clear();
    if (header.length <= MAX_PARSED_CHARACTERS) parsed.set(header, ranges);
  }
  return ranges;
}

function parseAccept(header: string): MediaRange[] {
  const ranges = (header.trim() === '' ? '*/*' : header).split(',').map((range) => {
    const [type = '', ...rest] = range.split(';').map((part) => part.trim());
    const parameters: Record<string, string> = {};
    for (const part of rest) {
      const separator = part.indexOf('=');
      if (separator > 0) parameters[part.slice(0, separator).toLowerCase()] = part.slice(separator + 1);
    }
    const quality = Number(parameters['q'] ?? 1);
    delete parameters['q'];
    return { type: type.toLowerCase(), parameters, quality: Number.isNaN(quality) ? 0 : quality };
  });
  return ranges
    .filter((range) => range.quality > 0)
    .sort((a, b) => b.quality - a.quality || wildcards(a) - wildcards(b));
}

export const isJson = (range: MediaRange): boolean =>
  range.type === 'application/json' || range.type === 'application/*' || range.type === '*/*';
