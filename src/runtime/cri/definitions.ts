/** Loads the definitions of the runtime's messages and services from the files in protos/ once, and encodes and decodes the messages. */
import { fileURLToPath } from 'node:url';
import { loadSync, type MessageTypeDefinition, type PackageDefinition } from '@grpc/proto-loader';

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

let definitions: PackageDefinition | undefined;

export function loadDefinitions(): PackageDefinition {
  const options = { longs: Number, enums: String, defaults: true } as const;
  definitions ??= Object.assign(
    {},
    ...FILES.map((file) => loadSync(fileURLToPath(new URL(`protos/${file}`, import.meta.url)), options)),
  ) as PackageDefinition;
  return definitions;
}

const messageOf = (type: string) => loadDefinitions()[type] as MessageTypeDefinition<object, object>;

/** Encodes a message. `type`: the full name of the message. */
export const encodeMessage = (type: string, message: object): Buffer => messageOf(type).serialize(message);
/** Decodes a message. Throws if the bytes cannot be decoded as a message of this type. */
export const decodeMessage = <Message>(type: string, bytes: Buffer): Message =>
  messageOf(type).deserialize(bytes) as never;
