/** Makes gRPC calls over one channel to the runtime's socket. An AbortSignal cancels a call; errors have upstream's wording. */
import {
  type ChannelCredentials,
  Client,
  credentials,
  Metadata,
  type MethodDefinition,
  type ServiceError,
} from '@grpc/grpc-js';
import type { Timers } from '../../platform/platform.ts';
import { CRI_NAMESPACE } from '../containerd/paths.ts';
import { OutcomeUnknownError } from '../runtime.ts';
import { decodeMessage, encodeMessage, loadDefinitions, serviceOf } from './definitions.ts';

/** The names of gRPC's status codes as Go prints them. The index is the number of the code. */
const CODE_NAMES = [
  'OK',
  'Canceled',
  'Unknown',
  'InvalidArgument',
  'DeadlineExceeded',
  'NotFound',
  'AlreadyExists',
  'PermissionDenied',
  'ResourceExhausted',
  'FailedPrecondition',
  'Aborted',
  'OutOfRange',
  'Unimplemented',
  'Internal',
  'Unavailable',
  'DataLoss',
  'Unauthenticated',
] as const;

export type RuntimeErrorCode = (typeof CODE_NAMES)[number];

/** The message is `rpc error: code = … desc = …`, as the kubelet shows it in Events. */
export class RuntimeCallError extends Error {
  override readonly name = 'RuntimeCallError';
  readonly code: RuntimeErrorCode;
  /** The message of the runtime, or of the gRPC library if no response arrived. */
  readonly details: string;
  /** Whether the runtime itself returned the error or ended the stream; false if the gRPC library reported the error. */
  readonly answered: boolean;
  constructor(code: RuntimeErrorCode, details: string, answered = true) {
    super(`rpc error: code = ${code} desc = ${details}`);
    this.code = code;
    this.details = details;
    this.answered = answered;
  }
}

/** Returns the error of the call that caused `error`, even if the call's outcome is unknown; undefined if no call caused `error`. */
export function callErrorOf(error: unknown): RuntimeCallError | undefined {
  const call = error instanceof OutcomeUnknownError ? error.cause : error;
  return call instanceof RuntimeCallError ? call : undefined;
}

export const hasCode = (error: unknown, code: RuntimeErrorCode): boolean => callErrorOf(error)?.code === code;

/** The default time limit of a call, as in upstream's kubelet (runtimeRequestTimeout). */
export const CALL_TIMEOUT_MILLIS = 120_000;
/** The maximum size of a response. A list may contain the sandboxes or containers of 12,500 Pods that have ended (see pod-gc.ts). */
export const MAX_RESPONSE_BYTES = 256 * 1024 * 1024;

export interface Connection {
  /**
   * Rejects with a RuntimeCallError if the call failed, with an OutcomeUnknownError if its outcome is unknown or after `timeoutMillis`
   * (default: CALL_TIMEOUT_MILLIS; 0: no limit), and with the signal's reason on abort.
   */
  unary<Response>(method: string, request: object, signal: AbortSignal, timeoutMillis?: number): Promise<Response>;
  /**
   * Waits until the runtime is reachable, then calls `onMessage` with each message of the stream. Rejects with the reason when the stream
   * ends, even if it ends normally.
   */
  stream<Message>(
    method: string,
    request: object,
    onMessage: (message: Message) => void,
    signal: AbortSignal,
  ): Promise<never>;
  /** `type`: the full name of the message. */
  decode<Message>(type: string, bytes: Buffer): Message;
  /** `type`: the full name of the message. */
  encode(type: string, message: object): Buffer;
  /** Calls the method as unary() does, with the default time limit, but first waits until the runtime is reachable. */
  unaryWhenReachable<Response>(method: string, request: object, signal: AbortSignal): Promise<Response>;
  close(): void;
}

/** Called when a unary call has ended. `method`: such as runtime.v1.RuntimeService/Version. */
export type CallListener = (method: string, seconds: number, failed: boolean) => void;

/** Does not wait for the runtime. `endpoint`: such as unix:///run/containerd/containerd.sock. */
export function connect(endpoint: string, onCall?: CallListener): Connection {
  // The definitions are loaded while the runtime may still be starting, so that the first call is not delayed.
  loadDefinitions();
  const insecure: ChannelCredentials = credentials.createInsecure();
  const client = new Client(endpoint, insecure, {
    'grpc.max_receive_message_length': MAX_RESPONSE_BYTES,
    // The delays are short, because the runtime is on this machine, and usually available within a second after a crash.
    'grpc.initial_reconnect_backoff_ms': 20,
    'grpc.min_reconnect_backoff_ms': 20,
    'grpc.max_reconnect_backoff_ms': 500,
    // The channel has a connection, and thus a back-off, of its own: other channels of this process to the socket do not share it.
    'grpc.use_local_subchannel_pool': 1,
  });
  return {
    unary: (name, request, signal, timeoutMillis = CALL_TIMEOUT_MILLIS) =>
      unaryCall(client, { name, request, waitForReady: false, timeoutMillis, onCall }, signal),
    unaryWhenReachable: (name, request, signal) =>
      unaryCall(client, { name, request, waitForReady: true, timeoutMillis: CALL_TIMEOUT_MILLIS, onCall }, signal),
    stream: (name, request, onMessage, signal) => streamCall(client, name, request, onMessage, signal),
    decode: decodeMessage,
    encode: encodeMessage,
    close: () => client.close(),
  };
}

function methodOf(name: string): MethodDefinition<object, object> {
  const slash = name.indexOf('/');
  return serviceOf(name.slice(0, slash))[name.slice(slash + 1)] as MethodDefinition<object, object>;
}

function newMetadata(waitForReady: boolean): Metadata {
  const metadata = new Metadata({ waitForReady });
  metadata.set('containerd-namespace', CRI_NAMESPACE);
  return metadata;
}

interface UnaryCall {
  name: string;
  request: object;
  waitForReady: boolean;
  /** 0: no limit. */
  timeoutMillis: number;
  onCall?: CallListener | undefined;
}

function unaryCall<Response>(client: Client, call: UnaryCall, signal: AbortSignal): Promise<Response> {
  const { name, request, waitForReady, timeoutMillis, onCall } = call;
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const method = methodOf(name);
    const begun = performance.now();
    const cancel = (): void => running.cancel();
    const running = client.makeUnaryRequest(
      method.path,
      method.requestSerialize,
      method.responseDeserialize,
      request,
      newMetadata(waitForReady),
      timeoutMillis === 0 ? {} : { deadline: Date.now() + timeoutMillis },
      (error, response) => {
        signal.removeEventListener('abort', cancel);
        onCall?.(name, (performance.now() - begun) / 1000, error !== null);
        if (error === null) resolve(response as Response);
        else reject(signal.aborted ? signal.reason : toCallError(error));
      },
    );
    signal.addEventListener('abort', cancel, { once: true });
  });
}

function streamCall<Message>(
  client: Client,
  name: string,
  request: object,
  onMessage: (message: Message) => void,
  signal: AbortSignal,
): Promise<never> {
  return new Promise((_, reject) => {
    signal.throwIfAborted();
    const method = methodOf(name);
    const stream = client.makeServerStreamRequest(
      method.path,
      method.requestSerialize,
      method.responseDeserialize,
      request,
      newMetadata(true),
    );
    const cancel = (): void => stream.cancel();
    signal.addEventListener('abort', cancel, { once: true });
    const end = (error: unknown): void => {
      signal.removeEventListener('abort', cancel);
      reject(error);
    };
    stream.on('data', (message) => onMessage(message));
    stream.on('error', (error) => end(signal.aborted ? signal.reason : toCallError(error as ServiceError)));
    stream.on('end', () => end(new RuntimeCallError('Unavailable', 'the runtime ended the stream')));
  });
}

const OUTCOME_UNKNOWN: readonly RuntimeErrorCode[] = ['Unavailable', 'DeadlineExceeded', 'Canceled'];

/** The runtime's responses have HTTP headers, but the gRPC library's own errors have none. */
const isAnswered = ({ metadata }: ServiceError): boolean => metadata.get('content-type').length > 0;

/**
 * Matches the message with which containerd refuses calls when it listens, but its CRI plugin has not recovered its state yet. Older
 * versions of containerd return another code than Unavailable.
 */
const STARTING = /server is not initialized yet/;

/** Matches the note about name resolution that the gRPC library appends to errors. For a Unix socket, the note is empty. */
const EMPTY_NOTE = /\.? Resolution note:[\s;]*$/;

function toCallError(error: ServiceError): RuntimeCallError | OutcomeUnknownError {
  const code = STARTING.test(error.details) ? 'Unavailable' : (CODE_NAMES[error.code] ?? 'Unknown');
  const answered = isAnswered(error);
  const call = new RuntimeCallError(code, error.details.replace(EMPTY_NOTE, ''), answered);
  // If the connection is lost in the middle of a response, the gRPC library may report the code Internal, with this message.
  const isUnknown = OUTCOME_UNKNOWN.includes(code) || (!answered && /^Received RST_STREAM/.test(error.details));
  return isUnknown ? new OutcomeUnknownError(call.message, { cause: call }) : call;
}

const INITIALIZED_RETRY_MILLIS = 10;

/** Resolves when the runtime serves CRI calls; rejects with any error other than Unavailable. Polls, because no event reports this. */
export async function runtimeInitialized(connection: Connection, timers: Timers, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      await connection.unaryWhenReachable('runtime.v1.RuntimeService/Status', {}, signal);
      return;
    } catch (error) {
      if (!hasCode(error, 'Unavailable')) throw error;
    }
    await delay(INITIALIZED_RETRY_MILLIS, timers, signal);
  }
}

/** Rejects when `signal` aborts. */
export function delay(millis: number, timers: Timers, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const abort = (): void => {
      timer.cancel();
      reject(signal.reason);
    };
    const timer = timers.at(timers.now() + millis, () => {
      signal.removeEventListener('abort', abort);
      resolve();
    });
    signal.addEventListener('abort', abort, { once: true });
  });
}
