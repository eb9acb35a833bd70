import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Command } from './network-peer-program.ts';

const PROGRAM = join(import.meta.dirname, 'network-peer-program.ts');

type Destination = Pick<Command, 'protocol' | 'address' | 'port' | 'localPort'>;

export interface PeerConnection {
  /** Sends a message. Resolves with the answer, or with the code of an error, `closed` or `timeout`. */
  say(): Promise<string>;
  close(): Promise<void>;
}

export class NetworkPeer {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, (answer: string) => void>();
  #last = 0;

  /** `namespace`: the name of a namespace of ip-netns(8). `patienceMillis`: how long a client waits for an answer. */
  constructor(namespace: string, patienceMillis = 2000) {
    const args = ['netns', 'exec', namespace, process.execPath, PROGRAM, String(patienceMillis)];
    this.#child = spawn('ip', args, { stdio: ['pipe', 'pipe', 'inherit'] });
    if (this.#child.stdout === null) throw new Error('the program has no output');
    createInterface({ input: this.#child.stdout }).on('line', (line) => {
      const { id, answer } = JSON.parse(line) as { id: number; answer: string };
      this.#waiting.get(id)?.(answer);
      this.#waiting.delete(id);
    });
  }

  /**
   * Answers each message to the port, over TCP or UDP, with `name` and the sender's address. Resolves with a function that stops these
   * answers.
   */
  async listen(name: string, port: number): Promise<() => Promise<void>> {
    const handle = await this.#command({ op: 'listen', name, port });
    return async () => {
      await this.#command({ op: 'close', handle });
    };
  }

  async open(destination: Destination): Promise<PeerConnection> {
    const handle = await this.#command({ op: 'open', ...destination });
    return {
      say: () => this.#send({ op: 'say', handle }).answer,
      close: async () => {
        await this.#command({ op: 'close', handle });
      },
    };
  }

  async ask(destination: Destination): Promise<string> {
    const connection = await this.open(destination);
    const answer = await connection.say();
    await connection.close();
    return answer;
  }

  /** For the unit of the result, see Command.what. */
  async measure(what: NonNullable<Command['what']>, destination: Destination): Promise<number> {
    return Number(await this.#send({ op: 'measure', what, ...destination }).answer);
  }

  async end(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const exit = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exit;
  }

  async #command(command: Omit<Command, 'id'>): Promise<number> {
    const { id, answer } = this.#send(command);
    const text = await answer;
    if (text !== 'done') throw new Error(text);
    return id;
  }

  #send(command: Omit<Command, 'id'>): { id: number; answer: Promise<string> } {
    const id = ++this.#last;
    const answer = new Promise<string>((resolve) => this.#waiting.set(id, resolve));
    this.#child.stdin?.write(`${JSON.stringify({ id, ...command })}\n`);
    return { id, answer };
  }
}
