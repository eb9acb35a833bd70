/**
 * Makes the control characters of a text visible, because texts of clients and containers may contain some that change the terminal or the
 * order of what it shows: a message of a container must not rewrite the report of a command.
 */

/** Matches control characters, line separators, and the characters that change the direction of the text. */
const CONTROL = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** Returns one line, with escapes such as `\u001b` in the place of control characters. */
export const printable = (text: string): string => text.replace(CONTROL, escaped);

/** Like printable(), but keeps line breaks and tabs. A text in JSON keeps its meaning. */
export const printableText = (text: string): string =>
  text.replace(CONTROL, (character) => (character === '\n' || character === '\t' ? character : escaped(character)));
