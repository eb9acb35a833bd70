import { readFileSync } from 'node:fs';

export interface ProtoField {
  name: string;
  number: number;
  repeated: boolean;
  /** The type of the field, of its elements if it is repeated, or of its values if it is a map, as written in the file. */
  type: string;
  map: boolean;
}

const FIELD = /^(?:(optional|repeated) ([\w.]+)|map<string, ([\w.]+)>) (\w+) = (\d+);/;

/** By message, then by number of the field. */
export function readMessages(file: string): Map<string, Map<number, ProtoField>> {
  const messages = new Map<string, Map<number, ProtoField>>();
  let fields = new Map<number, ProtoField>();
  for (const raw of readFileSync(file, 'utf8').split('\n')) {
    const line = raw.trim();
    const message = /^message (\w+) \{/.exec(line)?.[1];
    if (message !== undefined) {
      fields = new Map();
      messages.set(message, fields);
      continue;
    }
    const [, label, single, values, name = '', number = ''] = FIELD.exec(line) ?? [];
    const type = single ?? values;
    if (type === undefined) continue;
    fields.set(Number(number), {
      name,
      number: Number(number),
      repeated: label === 'repeated',
      type,
      map: values !== undefined,
    });
  }
  return messages;
}
