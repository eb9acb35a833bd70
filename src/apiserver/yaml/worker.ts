import { parentPort, workerData } from 'node:worker_threads';
import { ExpandedTooFarError, yamlToJson } from './parse.ts';

export interface YamlWork {
  text: string;
  limitBytes: number;
}

export type YamlResult = { json: string } | { failure: string } | { tooLarge: true };

function result({ text, limitBytes }: YamlWork): YamlResult {
  try {
    return { json: yamlToJson(text, limitBytes) };
  } catch (error) {
    return error instanceof ExpandedTooFarError ? { tooLarge: true } : { failure: (error as Error).message };
  }
}

parentPort?.postMessage(result(workerData as YamlWork));
