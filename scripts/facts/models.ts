/** The models of @kubernetes/client-node are generated from upstream's OpenAPI document of a newer version. */
import { existsSync, readFileSync } from 'node:fs';

const MODELS = new URL('../../node_modules/@kubernetes/client-node/dist/gen/models/', import.meta.url);

export interface Model {
  description: string;
  /** By JSON name. */
  fields: ReadonlyMap<string, ModelField>;
}

export interface ModelField {
  type: string;
  format: string;
  required: boolean;
  description: string;
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/**
 * Returns the name of the model of a type: V1Pod for io.k8s.api.core.v1.Pod, with the group if several groups have a type of the name:
 * CoreV1Event. Returns undefined if there is no model.
 */
export function modelName(type: string): string | undefined {
  const [group = '', version = '', name = ''] = type.split('.').slice(-3);
  const plain = `${capital(version)}${name}`;
  return [`${capital(group)}${plain}`, plain].find((model) => existsSync(new URL(`${model}.js`, MODELS)));
}

const oneLine = (comment: string): string =>
  comment
    .split('\n')
    .map((line) => line.replace(/^\s*\*?\s?/, '').trimEnd())
    .join(' ')
    .trim()
    .replace(/\\(['"])/g, '$1');

export function readModel(model: string): Model {
  const code = readFileSync(new URL(`${model}.js`, MODELS), 'utf8');
  const declaration = readFileSync(new URL(`${model}.d.ts`, MODELS), 'utf8');
  const table = /attributeTypeMap = (\[[\s\S]*?\n\]);/.exec(code)?.[1];
  if (table === undefined) throw new Error(`${model}: the model has no attributeTypeMap`);
  const attributes = JSON.parse(table) as { name: string; baseName: string; type: string; format: string }[];
  const description = /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*export declare class/.exec(declaration)?.[1] ?? '';
  const properties = new Map<string, { description: string; required: boolean }>();
  for (const [, comment = '', name = '', optional] of declaration.matchAll(
    /(?:\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*)?^ {4}'(\w+)'(\??): /gm,
  ))
    properties.set(name, { description: oneLine(comment), required: optional === '' });
  const fields = attributes.map(({ name, baseName, type, format }): [string, ModelField] => [
    baseName,
    { type, format, description: '', required: false, ...properties.get(name) },
  ]);
  return { description: oneLine(description), fields: new Map(fields) };
}
