/**
 * The messages between the engine and the DNS process: JSON, one message per line.
 *
 * The process greets the engine with `hello`. The engine then sends all records between `begin` and `end`, which replace the records of the
 * process, and after that each change. `end` and `flush` are confirmed with `done`. A process of any version understands `replace`, which
 * has the form {"op":"replace","command":…,"args":[…]}, and greets with {"hello":{"identity":…}}; all other messages may change, because
 * the engine sends them only to a process with its own identity, or if the process could not be replaced.
 */

export interface PortRecord {
  /** The name in lower case; empty for a port without a name. */
  name: string;
  /** The protocol in lower case, such as tcp. */
  protocol: string;
  port: number;
}

/** The properties of a Service that DNS needs. */
export interface ServiceRecord {
  namespace: string;
  name: string;
  /** The cluster IPs; empty for a headless Service and for one of type ExternalName. */
  ips: string[];
  ports: PortRecord[];
  /** The target of a Service of type ExternalName. */
  externalName?: string;
}

/** The ready endpoints of an EndpointSlice. */
export interface SliceRecord {
  namespace: string;
  name: string;
  /** The name of the Service. */
  service: string;
  ports: PortRecord[];
  /** The first address of each ready endpoint, and the host name of the endpoint. The host name is empty for most endpoints. */
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
  /** A text that differs between processes with different code or settings. */
  identity: string;
  pid: number;
  /** The port on which the process listens. */
  port: number;
}

export type ProcessMessage =
  | { hello: Hello }
  | { done: number }
  | { log: { level: 'info' | 'warn' | 'error'; message: string; fields?: Record<string, unknown> } }
  /** Reports the result of a `replace` message: whether the new process now listens on the socket instead of this one. */
  | { replaced: boolean };
