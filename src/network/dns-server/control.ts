/** The socket through which the engine feeds the DNS process. Only root can use it. */
import { chmodSync, renameSync, rmSync, statSync, watch } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { basename, dirname } from 'node:path';
import type { EngineMessage, Hello, ProcessMessage } from './protocol.ts';
import { StoredZone, type ZoneData } from './zone-data.ts';

/** Enough for an EndpointSlice with 1000 endpoints. */
const MAX_LINE_CHARS = 4 * 2 ** 20;
const MAX_REPORTS = 50;

export interface ControlOptions {
  /** The path of the socket. A socket of another process at this path is replaced. */
  path: string;
  hello: () => Hello;
  /** Called when an engine has sent all records for the first time. */
  synced: () => void;
  replace: (command: string, args: string[]) => void;
}

export class Control {
  readonly #options: ControlOptions;
  #zone = new StoredZone(nowSeconds());
  #isSynced = false;
  #engine: Socket | undefined;
  #server: Server | undefined;
  readonly #unread: ProcessMessage[] = [];

  constructor(options: ControlOptions) {
    this.#options = options;
  }

  data(): ZoneData {
    return this.#zone;
  }

  /** Sends the message to the engine. If no engine is connected, the last MAX_REPORTS messages wait for the next engine. */
  report(message: ProcessMessage): void {
    if (this.#engine !== undefined) send(this.#engine, message);
    else if (this.#unread.push(message) > MAX_REPORTS) this.#unread.shift();
  }

  /**
   * Listens on the socket. Rejects with the error of the system call. May be called again, for example after a process that should replace
   * this one has failed.
   */
  async listen(): Promise<void> {
    this.#server?.close();
    this.#server = createServer((socket) => this.#connected(socket));
    await bindTo(this.#server, this.#options.path);
  }

  close(): void {
    this.#server?.close();
    this.#engine?.end();
  }

  #connected(socket: Socket): void {
    this.#engine?.destroy();
    this.#engine = socket;
    const transfer = new Transfer(() => this.#zone);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      if (this.#engine === socket) this.#engine = undefined;
    });
    const failed = ({ message: error }: Error): void => {
      this.report({
        log: { level: 'error', message: 'the DNS process received an invalid message', fields: { error } },
      });
      socket.destroy();
    };
    readLines(socket, (line) => this.#handle(JSON.parse(line) as EngineMessage, transfer, socket), failed);
    send(socket, { hello: this.#options.hello() });
    for (const message of this.#unread.splice(0)) send(socket, message);
  }

  #handle(message: EngineMessage, transfer: Transfer, socket: Socket): void {
    const { op } = message;
    if (op === 'begin') transfer.begin();
    else if (op === 'put') transfer.target().put(message);
    else if (op === 'remove') transfer.target().remove(message.kind, message.namespace ?? '', message.name);
    else if (op === 'replace') this.#options.replace(message.command, message.args);
    if (op === 'end') {
      this.#zone = transfer.end();
      if (!this.#isSynced) this.#options.synced();
      this.#isSynced = true;
    }
    if (op === 'end' || op === 'flush') send(socket, { done: message.id });
  }
}

/**
 * Receives the records of one connection. Records between begin() and end() form a new zone, which replaces the known zone at end(). Other
 * records update the known zone.
 */
class Transfer {
  readonly #known: () => StoredZone;
  #next: StoredZone | undefined;

  constructor(known: () => StoredZone) {
    this.#known = known;
  }

  begin(): void {
    this.#next = new StoredZone(Math.max(this.#known().serial + 1, nowSeconds()));
  }

  target(): StoredZone {
    return this.#next ?? this.#known();
  }

  end(): StoredZone {
    const zone = this.target();
    this.#next = undefined;
    return zone;
  }
}

const nowSeconds = (): number => Math.floor(Date.now() / 1000);
const send = (socket: Socket, message: ProcessMessage): void => void socket.write(`${JSON.stringify(message)}\n`);

/** Calls `each` with each complete line that the socket receives, and `failed` if `each` throws or a line is too long. */
function readLines(socket: Socket, each: (line: string) => void, failed: (error: Error) => void): void {
  socket.setEncoding('utf8');
  let pending: string[] = [];
  let chars = 0;
  socket.on('data', (text: string) => {
    try {
      let start = 0;
      for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', start)) {
        const line = pending.join('') + text.slice(start, end);
        pending = [];
        chars = 0;
        start = end + 1;
        each(line);
      }
      if (start === text.length) return;
      pending.push(text.slice(start));
      chars += text.length - start;
      if (chars > MAX_LINE_CHARS) throw new Error('the message is too long');
    } catch (error) {
      failed(error as Error);
    }
  });
}

/**
 * Listens on the path with access for root only. The server listens before the socket gets the path, so that replacing the socket of
 * another process leaves no gap.
 */
async function bindTo(server: Server, path: string): Promise<void> {
  const own = `${path}.${process.pid}`;
  rmSync(own, { force: true });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject);
  server.listen(own, resolve);
  await promise;
  chmodSync(own, 0o600);
  renameSync(own, path);
}

/**
 * Calls `removed` when the file at the path has been removed or replaced. Otherwise, the process would run forever after its engine was
 * killed and its data folder removed by hand.
 */
export function watchPath(path: string, removed: () => void): { close(): void } {
  const inode = statSync(path).ino;
  const watcher = watch(dirname(path), { persistent: false }, (_, name) => {
    if (name !== null && name !== basename(path) && name !== basename(dirname(path))) return;
    if (statSync(path, { throwIfNoEntry: false })?.ino === inode) return;
    watcher.close();
    removed();
  });
  watcher.on('error', () => undefined);
  return watcher;
}
