/**
 * Rewrites URLs in the responses of a proxied server, so that requests for them go through the proxy again.
 * Source: k8s.io/apimachinery/pkg/util/proxy/transport.go of v1.33 (behavior).
 */
import { Transform } from 'node:stream';

export interface Rewriting {
  /** The path of the proxy, such as /api/v1/namespaces/d/services/x/proxy. */
  prefix: string;
  /** The hosts, with their ports, that mean the proxied server. */
  hosts: readonly string[];
}

const ABSOLUTE = /^[a-zA-Z][a-zA-Z0-9+.-]*:\/\/([^/?#]*)(.*)$/s;
const SAME_SCHEME = /^\/\/([^/?#]*)(.*)$/s;

/** Adds the path of the proxy, and removes scheme and host. Returns relative paths and URLs of other hosts unchanged. */
export function rewriteUrl(url: string, { prefix, hosts }: Rewriting): string {
  const [, host, rest = ''] = ABSOLUTE.exec(url) ?? SAME_SCHEME.exec(url) ?? [undefined, '', url];
  if (host === undefined || (host !== '' && !hosts.includes(host)) || !rest.startsWith('/')) return url;
  return rest.startsWith(prefix) ? rest : `${prefix}${rest}`;
}

const ATTRIBUTES: Readonly<Record<string, readonly string[]>> = {
  a: ['href'],
  applet: ['codebase'],
  area: ['href'],
  audio: ['src'],
  base: ['href'],
  blockquote: ['cite'],
  body: ['background'],
  button: ['formaction'],
  command: ['icon'],
  del: ['cite'],
  embed: ['src'],
  form: ['action'],
  frame: ['longdesc', 'src'],
  head: ['profile'],
  html: ['manifest'],
  iframe: ['longdesc', 'src'],
  img: ['longdesc', 'src', 'usemap'],
  input: ['formaction', 'src', 'usemap'],
  ins: ['cite'],
  link: ['href'],
  object: ['classid', 'codebase', 'data', 'usemap'],
  q: ['cite'],
  script: ['src'],
  source: ['src'],
  track: ['src'],
  video: ['poster', 'src'],
};

/** Longer tags pass unchanged, so that only a small part of a page waits in memory. */
const MAX_TAG_CHARS = 16_384;
/** Elements whose content contains no tags except their end tag. */
const RAW_TEXT = new Set(['script', 'style', 'textarea', 'title']);
const ATTRIBUTE = /([\s/]*)([^\s/>=]+)(?:(\s*=\s*)("[^"]*"|'[^']*'|[^\s>"']+))?/y;

function rewriteTag(tag: string, rewrite: (url: string) => string): string {
  const element = /^<([a-zA-Z]+)/.exec(tag)?.[1] ?? '';
  const names = Object.hasOwn(ATTRIBUTES, element.toLowerCase()) ? ATTRIBUTES[element.toLowerCase()] : undefined;
  if (names === undefined) return tag;
  let result = `<${element}`;
  let at = result.length;
  for (;;) {
    ATTRIBUTE.lastIndex = at;
    const found = ATTRIBUTE.exec(tag);
    if (found === null) return result + tag.slice(at);
    const [all, space = '', name = '', equals, value = ''] = found;
    at += all.length;
    if (equals === undefined || !names.includes(name.toLowerCase())) {
      result += all;
      continue;
    }
    const quote = /^["']/.exec(value)?.[0] ?? '';
    const url = quote === '' ? value : value.slice(1, -1);
    result += `${space}${name}${equals}${quote}${rewrite(url)}${quote}`;
  }
}

/**
 * Returns the index after the tag that begins at `start`. A `>` in quotes does not end the tag. Returns undefined if the tag does not end
 * within MAX_TAG_CHARS or before the end of the text.
 */
function endOfTag(text: string, start: number): number | undefined {
  const last = Math.min(text.length, start + MAX_TAG_CHARS);
  let quote = '';
  for (let at = start + 1; at < last; at++) {
    const char = text.charAt(at);
    if (quote !== '') quote = char === quote ? '' : quote;
    else if (char === '>') return at + 1;
    else if (char === '"' || char === "'") quote = char;
  }
  return undefined;
}

class Page {
  readonly #rewrite: (url: string) => string;
  /** The end of the last piece that must be processed together with the next piece: at most MAX_TAG_CHARS. */
  rest = '';
  /** The lower-case text at which the current comment or raw text ends; empty outside of them. */
  #until = '';

  constructor(rewriting: Rewriting) {
    this.#rewrite = (url) => rewriteUrl(url, rewriting);
  }

  /** Returns the rewritten text up to the first part that may continue in the next piece. Keeps that part in `rest`. */
  take(piece: string): string {
    const text = this.rest + piece;
    const lowerCase = text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
    let out = '';
    let at = 0;
    while (at < text.length) {
      const next = this.#until === '' ? text.indexOf('<', at) : lowerCase.indexOf(this.#until, at);
      if (next < 0) {
        const end = this.#until === '' ? text.length : Math.max(at, text.length - this.#until.length);
        out += text.slice(at, end);
        at = end;
        break;
      }
      out += text.slice(at, next);
      const taken = this.#takeTag(text, next);
      at = next;
      if (taken === undefined) break;
      out += taken.out;
      at = taken.end;
    }
    this.rest = text.slice(at);
    return out;
  }

  /**
   * Returns the rewritten tag, or the beginning or end of a comment, at the index `at`, and the index after this part. Returns undefined if
   * the text may end within this part.
   */
  #takeTag(text: string, at: number): { out: string; end: number } | undefined {
    const unchanged = (end: number) => ({ out: text.slice(at, end), end });
    if (this.#until === '-->') {
      this.#until = '';
      return unchanged(at + 3);
    }
    this.#until = '';
    if (text.length < at + 4) return undefined;
    if (text.startsWith('<!--', at)) {
      this.#until = '-->';
      return unchanged(at + 4);
    }
    if (!/[a-zA-Z/!?]/.test(text.charAt(at + 1))) return unchanged(at + 1);
    const end = endOfTag(text, at);
    if (end === undefined) return text.length < at + MAX_TAG_CHARS ? undefined : unchanged(at + MAX_TAG_CHARS);
    const tag = text.slice(at, end);
    const name = /^<([a-zA-Z]+)/.exec(tag)?.[1]?.toLowerCase() ?? '';
    if (RAW_TEXT.has(name)) this.#until = `</${name}`;
    return { out: rewriteTag(tag, this.#rewrite), end };
  }
}

export function htmlRewriter(rewriting: Rewriting): Transform {
  const page = new Page(rewriting);
  // Latin-1 keeps each byte, whatever the encoding of the page is.
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      done(null, Buffer.from(page.take(chunk.toString('latin1')), 'latin1'));
    },
    flush(done) {
      done(null, Buffer.from(page.rest, 'latin1'));
    },
  });
}
