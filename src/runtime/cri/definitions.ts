/**
 * Loads the definitions of the runtime's messages and services from the files in protos/. @grpc/proto-loader would take twice as long,
 * because it also prepares the descriptors of all messages.
 */
import { fileURLToPath } from 'node:url';
import type { MethodDefinition, ServiceDefinition } from '@grpc/grpc-js';
import protobuf, { type IConversionOptions, type NamespaceBase } from 'protobufjs';

const FILES = [
  'cri.proto',
  'containerd-events.proto',
  'containerd-tasks.proto',
  'containerd-shims.proto',
  'containerd-containers.proto',
  'containerd-content.proto',
  'containerd-snapshots.proto',
  'containerd-leases.proto',
  'containerd-images.proto',
];

/** In decoded messages, an int64 is a number, an enum is the name of its value, and an absent field has its default. */
const DECODED: IConversionOptions = { longs: Number, enums: String, defaults: true };

interface Definitions {
  services: Map<string, ServiceDefinition>;
  messages: Map<string, protobuf.Type>;
}

let definitions: Definitions | undefined;

/** Returns the definitions by full name. The first call loads them. */
export function loadDefinitions(): Definitions {
  if (definitions === undefined) {
    const loaded: Definitions = { services: new Map(), messages: new Map() };
    for (const file of FILES) {
      // Each file is loaded into its own root, because some files declare the same packages.
      const root = new protobuf.Root().loadSync(fileURLToPath(new URL(`protos/${file}`, import.meta.url)));
      addDefinitions(root.resolveAll(), loaded);
    }
    definitions = loaded;
  }
  return definitions;
}

function addDefinitions(namespace: NamespaceBase, to: Definitions): void {
  for (const each of namespace.nestedArray) {
    const name = each.fullName.slice(1);
    if (each instanceof protobuf.Service) to.services.set(name, definitionOf(each));
    if (each instanceof protobuf.Type) to.messages.set(name, each);
    if (each instanceof protobuf.Namespace) addDefinitions(each, to);
  }
}

const definitionOf = (service: protobuf.Service): ServiceDefinition =>
  Object.fromEntries(service.methodsArray.map((method) => [method.name, methodDefinition(service, method)]));

function methodDefinition(service: protobuf.Service, method: protobuf.Method): MethodDefinition<object, object> {
  const [request, response] = [method.resolvedRequestType, method.resolvedResponseType];
  if (request === null || response === null) throw new Error(`${method.fullName} has no types`);
  return {
    path: `/${service.fullName.slice(1)}/${method.name}`,
    requestStream: method.requestStream === true,
    responseStream: method.responseStream === true,
    requestSerialize: (message) => encode(request, message),
    requestDeserialize: (bytes) => decode(request, bytes),
    responseSerialize: (message) => encode(response, message),
    responseDeserialize: (bytes) => decode(response, bytes),
  };
}

const encode = (type: protobuf.Type, message: object): Buffer =>
  // The library returns a Buffer in Node.js, although its type is Uint8Array.
  type.encode(type.fromObject(message)).finish() as Buffer;

const decode = (type: protobuf.Type, bytes: Buffer): object => type.toObject(type.decode(bytes), DECODED);

/** `name`: such as runtime.v1.RuntimeService. Throws if there is no such service. */
export const serviceOf = (name: string): ServiceDefinition => found(loadDefinitions().services, name);
const messageOf = (name: string): protobuf.Type => found(loadDefinitions().messages, name);

function found<Definition>(all: ReadonlyMap<string, Definition>, name: string): Definition {
  const definition = all.get(name);
  if (definition === undefined) throw new Error(`no file of protos/ declares ${name}`);
  return definition;
}

/** `type`: the full name of the message. */
export const encodeMessage = (type: string, message: object): Buffer => encode(messageOf(type), message);
/** Throws if the bytes cannot be decoded as a message of this type. */
export const decodeMessage = <Message>(type: string, bytes: Buffer): Message => decode(messageOf(type), bytes) as never;
