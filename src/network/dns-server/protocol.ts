/**
 * The messages between the engine and the DNS process: JSON, one message per line.
 *
 * The process greets the engine with `hello`. The engine sends all records between `begin` and `end`, and then each change. The process
 * confirms `end` and `flush` with `done`. Two messages must keep their form, because processes of all versions understand them:
 * {"op":"replace","command":…,"args":[…]} and {"hello":{"identity":…}}.
 */

export interface PortRecord {
  /** In lower case; empty for a port without a name. */
  name: string;
  /** In lower case, such as tcp. */
  protocol: string;
  port: number;
}

export interface ServiceRecord {
  namespace: string;
  name: string;
  /** Empty for a headless Service and for one of type ExternalName. */
  ips: string[];
  ports: PortRecord[];
  /** Set for a Service of type ExternalName. */
  externalName?: string;
}

export interface SliceRecord {
  namespace: string;
  name: string;
  service: string;
  ports: PortRecord[];
  /** The first address and the host name of each ready endpoint. Most host names are empty. */
  endpoints: [address: string, hostname: string][];
}

export interface NamespaceRecord {
  name: string;
}

export interface Records {
  service: ServiceRecord;
  slice: SliceRecord;
  namespace: NamespaceRecord;
}
export type RecordKind = keyof Records;

export type PutMessage = { [K in RecordKind]: { op: 'put'; kind: K; record: Records[K] } }[RecordKind];

export type EngineMessage =
  | { op: 'begin' }
  | PutMessage
  | { op: 'remove'; kind: RecordKind; namespace?: string; name: string }
  | { op: 'end'; id: number }
  | { op: 'flush'; id: number }
  | { op: 'replace'; command: string; args: string[] };

export interface Hello {
  /** Differs between processes with different code or settings. */
  identity: string;
  pid: number;
  port: number;
}

export type ProcessMessage =
  | { hello: Hello }
  | { done: number }
  | { log: { level: 'info' | 'warn' | 'error'; message: string; fields?: Record<string, unknown> } }
  /** The result of a `replace` message: whether the new process now listens on the socket instead of this one. */
  | { replaced: boolean };
