import { X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { loadOrCreatePki, type Pki } from './pki.ts';
import { keepRenewed } from './renewal.ts';

const DAY = 24 * 60 * 60 * 1000;
const YEAR = 365 * DAY;
const START = Date.UTC(2026, 0, 31, 9, 30);

async function started(lifetimeMillis = YEAR) {
  const dataDir = mkdtempSync(join(tmpdir(), 'lifepod-renewal-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
  const timers = createVirtualTimers(START);
  let offset = 0;
  const clock = { now: () => timers.now() + offset };
  const load = (now: number): Promise<Pki> => loadOrCreatePki(dataDir, { hostnames: [], ips: [], lifetimeMillis, now });
  const used: Pki[] = [];
  const lines: string[] = [];
  const log = {
    ...silentLog,
    info: (message: string, fields?: object) => void lines.push(`${message} ${JSON.stringify(fields)}`),
    warn: (message: string, fields?: object) => void lines.push(`${message} ${JSON.stringify(fields)}`),
    error: (message: string, fields?: object) => void lines.push(`${message} ${JSON.stringify(fields)}`),
  };
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const failures: Error[] = [];
  let busy: Promise<unknown> = Promise.resolve();
  const first = await load(START);
  keepRenewed({
    pki: first,
    load(now) {
      const failure = failures.shift();
      const loaded = failure === undefined ? load(now) : Promise.reject(failure);
      busy = loaded.catch(() => undefined);
      return loaded;
    },
    use: (pki) => void used.push(pki),
    timers,
    clock,
    log,
    signal: stop.signal,
  });
  const settled = async (): Promise<void> => {
    for (let before: unknown; before !== busy; ) {
      before = busy;
      await busy;
      await new Promise(setImmediate);
    }
  };
  return {
    first,
    used,
    lines,
    failures,
    stop,
    async passed(millis: number) {
      for (const end = timers.now() + millis; timers.now() < end; ) {
        timers.advance(Math.min(60_000, end - timers.now()));
        await settled();
      }
    },
    /** Sets the clock `by` milliseconds ahead of the timers, which do not depend on it. */
    setClock(by: number) {
      offset = by;
    },
    async suspend(millis: number) {
      timers.suspend(millis);
      await settled();
    },
  };
}

const ends = ({ certificate }: { certificate: string }): number => Date.parse(new X509Certificate(certificate).validTo);

test('certificates are renewed after 70 to 90 percent of their lifetime, again and again, and the authority is kept', async () => {
  const at = await started(DAY);
  await at.passed(0.69 * DAY);
  expect(at.used).toEqual([]);
  await at.passed(0.22 * DAY);
  const current = at.used.at(-1);
  expect(current?.caCertificate).toBe(at.first.caCertificate);
  for (const name of ['serving', 'admin'] as const) {
    expect(current?.[name].key).not.toBe(at.first[name].key);
    expect(ends(current?.[name] ?? at.first[name])).toBeGreaterThan(START + 1.6 * DAY);
  }
  await at.passed(9 * DAY);
  expect(ends(at.used.at(-1)?.serving ?? at.first.serving)).toBeGreaterThan(START + 10 * DAY);
  expect(at.lines[0]).toMatch(
    /^renewed a certificate {"certificate":"(apiserver|admin)","expires":"2026-02-0\d .* UTC"}$/,
  );
});

test('certificates that expired while the machine was suspended are renewed at once', async () => {
  const at = await started();
  await at.suspend(2 * YEAR);
  expect(at.used).toHaveLength(1);
  expect(ends(at.used[0]?.serving ?? at.first.serving)).toBeGreaterThan(START + 2.9 * YEAR);
});

test.each([
  ['forward', 3 * YEAR],
  ['back', -3 * YEAR],
])('when the clock of the machine is set %s by years, the certificates are renewed within a minute', async (_, by) => {
  const at = await started();
  at.setClock(by);
  await at.passed(60_000);
  expect(ends(at.used.at(-1)?.serving ?? at.first.serving)).toBe(START + 60_000 + by + YEAR - 5 * 60_000);
});

test('the authority is renewed two years before its end, with its key', async () => {
  const at = await started();
  await at.suspend(8.1 * YEAR);
  const { caCertificate, serving } = at.used[0] ?? at.first;
  const [before, after] = [at.first.caCertificate, caCertificate].map((pem) => new X509Certificate(pem));
  expect(caCertificate).not.toBe(at.first.caCertificate);
  expect(after?.subject).toBe(before?.subject);
  expect(Date.parse(after?.validTo ?? '')).toBeGreaterThan(START + 18 * YEAR);
  for (const authority of [before, after]) {
    expect(authority?.verify((after as X509Certificate).publicKey)).toBe(true);
    expect(new X509Certificate(serving.certificate).checkIssued(authority as X509Certificate)).toBe(true);
    expect(new X509Certificate(at.first.serving.certificate).checkIssued(authority as X509Certificate)).toBe(true);
  }
  expect(at.lines).toContain(
    'restart lifepod before the earlier certificate of the authority expires, so that Pods get the new one {"expires":"2036-01-29 09:30 UTC"}',
  );
});

test('a renewal that fails is reported with the end of the certificates, and repeated after a minute', async () => {
  const at = await started();
  at.failures.push(new Error('no space left on device'));
  await at.suspend(0.95 * YEAR);
  expect(at.used).toEqual([]);
  expect(at.lines).toEqual([
    'cannot renew the certificates {"error":"no space left on device","expires":"2027-01-31 09:25 UTC"}',
  ]);
  await at.passed(60_000);
  expect(at.used).toHaveLength(1);
});

test('no certificate is renewed after the signal has aborted', async () => {
  const at = await started();
  at.stop.abort();
  await at.suspend(YEAR);
  expect(at.used).toEqual([]);
});
