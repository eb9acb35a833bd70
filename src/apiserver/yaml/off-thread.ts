/**
 * Parses YAML request bodies. The library takes seconds for some texts of a few kilobytes, so only short texts without aliases are parsed
 * in the calling thread. Other texts are parsed one after another, each in a worker thread with a limit on time and memory.
 */
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { entityTooLarge, tooManyRequests } from '../../machinery/status.ts';
import { programPart } from '../../platform/programs/program-part.ts';
import type { YamlResult, YamlWork } from './worker.ts';

/** The library needs at most about 50 ms for a text of this length. */
export const HERE_UP_TO_CHARS = 4096;
/** The limit on the JSON text of the parsed value, with all aliases expanded. It equals upstream's limit on a request body. */
const LIMIT_BYTES = 3 * 1024 * 1024;
const LIMIT_MILLIS = 5_000;
const HEAP_MEBIBYTES = 48;
const YOUNG_MEBIBYTES = 4;
const MAX_WAITING = 8;
const RETRY_SECONDS = 1;
const FILE = new URL(`./worker${extname(import.meta.url)}`, import.meta.url);

const ADVICE = 'send it as JSON, or in parts';

let last: Promise<unknown> = Promise.resolve();
let waiting = 0;

/**
 * Rejects with an Error that has the message of yamlToJson() if the text is not valid. Rejects with 413 RequestEntityTooLarge if the size
 * of the value or the time or memory for parsing exceeds its limit, and with 429 TooManyRequests if too many texts wait.
 */
export async function parseYaml(text: string): Promise<unknown> {
  if (text.length > HERE_UP_TO_CHARS || mayHaveAliases(text)) return JSON.parse(await inTurn(text));
  // kubectl sends JSON or protobuf, so load the library only when the first YAML body arrives.
  const { yamlToJson } = await programPart(() => import('./parse.ts'));
  return JSON.parse(yamlToJson(text, LIMIT_BYTES));
}

/** For each alias, the library searches the whole text and the aliased value, so that even a short text with aliases may take seconds. */
const mayHaveAliases = (text: string): boolean => text.includes('&') && text.includes('*');

async function inTurn(text: string): Promise<string> {
  if (waiting >= MAX_WAITING) {
    throw tooManyRequests('too many large YAML bodies at once, please try again later', RETRY_SECONDS);
  }
  waiting += 1;
  const turn = last
    .then(() => programPart(() => inThread({ text, limitBytes: LIMIT_BYTES })))
    .finally(() => (waiting -= 1));
  last = turn.catch(() => undefined);
  return turn;
}

async function inThread(work: YamlWork): Promise<string> {
  const worker = new Worker(FILE, {
    workerData: work,
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MEBIBYTES, maxYoungGenerationSizeMb: YOUNG_MEBIBYTES },
  });
  let timer: NodeJS.Timeout | undefined;
  try {
    const result = await new Promise<YamlResult>((resolve, reject) => {
      timer = setTimeout(
        () => reject(entityTooLarge(`the YAML takes more than ${LIMIT_MILLIS / 1000} s to read: ${ADVICE}`)),
        LIMIT_MILLIS,
      );
      worker.once('message', resolve).once('error', (error: NodeJS.ErrnoException) => {
        const outOfMemory = error.code === 'ERR_WORKER_OUT_OF_MEMORY';
        reject(
          outOfMemory ? entityTooLarge(`the YAML takes more than ${HEAP_MEBIBYTES} MiB to read: ${ADVICE}`) : error,
        );
      });
    });
    if ('json' in result) return result.json;
    if ('failure' in result) throw new Error(result.failure);
    throw entityTooLarge(`limit is ${LIMIT_BYTES} bytes, with all aliases expanded`);
  } finally {
    clearTimeout(timer);
    await worker.terminate();
  }
}
