// docs/switching-over.md: two gateways behind nginx change LEGACY_MODE one after the other, through all modes, forwards and
// back, while apps write and read. No request fails, no write is lost or doubled, and nobody misses the own outfit.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import * as exportCommand from '../../src/commands/export.ts';
import * as importCommand from '../../src/commands/import.ts';
import { callCommand } from '../support/cli/commands.ts';
import { makeFolder, useFolder } from '../support/cli/folder.ts';
import { baseOf, migratedEnvironmentOf, runServer, stop } from '../support/cli/process.ts';
import { send } from '../support/faults/load.ts';
import { findFreePort } from '../support/http/free-port.js';
import { type LegacyRecord, startLegacyService } from '../support/legacy/legacy-service.ts';
import { records } from '../support/legacy/two-services.ts';

const program = '/usr/sbin/nginx';
const image = 'https://media.example.com/outfits/00000000-0000-4000-8000-000000000001.jpeg';

/** nginx with the block of docs/install.md, before these ports. */
async function startProxy(ports: readonly number[]) {
  const folder = makeFolder(onTestFinished);
  const own = await findFreePort();
  const page = readFileSync(new URL('../../docs/install.md', import.meta.url), 'utf8');
  const [, block = ''] = /```nginx\n([\s\S]*?)```/.exec(page) ?? [];
  const http = ports
    .reduce((text, port, at) => text.replace(`127.0.0.1:400${at + 1}`, `127.0.0.1:${port}`), block)
    .replace('listen 80;', `listen 127.0.0.1:${own};`);
  const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  );
  const main = `daemon off; pid ${folder}/pid; error_log ${folder}/error.log; events {}`;
  writeFileSync(
    join(folder, 'nginx.conf'),
    `${main}\nhttp {\naccess_log off;\n${places.join('\n')}\n${http}}\n`,
  );
  const child = spawn(program, ['-p', folder, '-c', join(folder, 'nginx.conf')], {
    stdio: 'ignore',
  });
  onTestFinished(() => void child.kill('SIGTERM'));
  return {
    base: `http://127.0.0.1:${own}`,
    /** What it could not repeat at the other gateway. */
    errors: () =>
      readFileSync(join(folder, 'error.log'), 'utf8')
        .split('\n')
        .filter((line) => line.includes('upstream') && !line.includes('Connection refused')),
  };
}

const folder = useFolder();

/** What an app has seen. */
class App {
  readonly created = new Map<string, number>();
  readonly failures: string[] = [];
  requests = 0;
  #turn = 0;

  constructor(
    private readonly base: string,
    private readonly name: string,
  ) {}

  async live(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#write();
      await this.#ask('GET', '/api/outfits/?page=2');
      await sleep(20);
    }
  }

  /** An outfit, which the app then reads, as its user. */
  async #write(): Promise<void> {
    const title = `${this.name} ${this.#turn++}`;
    const { status, body } = await this.#ask('POST', '/api/outfits/', { title, image_key: image });
    // Switched off for a while, which the page announces: nothing is written.
    if (status === 503 && body.includes('Writing is switched off')) return;
    if (status !== 201) return void this.failures.push(`POST: ${status} ${body.slice(0, 200)}`);
    const { id } = JSON.parse(body) as { id: number };
    this.created.set(title, id);
    for (const path of [`/api/outfits/${id}/`, `/api/outfits/${id}/?again`]) {
      const read = await this.#ask('GET', path);
      if (read.status === 404) this.failures.push(`404 of the own outfit ${id}, ${title}`);
    }
  }

  async #ask(method: string, path: string, sent?: object) {
    this.requests += 1;
    const headers = { authorization: 'Token abc', 'content-type': 'application/json' };
    const body = sent && JSON.stringify(sent);
    const response = await fetch(this.base + path, { method, headers, ...(body ? { body } : {}) });
    const text = await response.text();
    const { status } = response;
    if (status >= 500 && method === 'GET')
      this.failures.push(`${method} ${path}: ${status} ${text}`);
    return { status, body: text };
  }
}

test.skipIf(!existsSync(program))(
  'twenty changes through all modes behind nginx lose, double and refuse nothing',
  async () => {
    const legacy = await startLegacyService(records());
    onTestFinished(() => legacy.close());
    legacy.hasDetails = true;
    const environment: Record<string, string> = {
      ...(await migratedEnvironmentOf('PostgreSQL')),
      HOST: '127.0.0.1',
      TRUST_PROXY: '127.0.0.1',
      DATABASE_POOL_MAX: '4',
      LEGACY_URL: legacy.base,
      AUTH_WEBHOOK_URL: `${legacy.base}/whoami/`,
      MEDIA_URL: 'https://media.example.com',
      VIDEO_URL: 'https://video.example.com',
      FIRST_ID: '100000',
    };
    const command = async (called: Parameters<typeof callCommand>[0], ...args: string[]) =>
      expect(await callCommand(called, args, environment)).toMatchObject({ code: 0 });
    await command(importCommand, legacy.url);

    const ports = [await findFreePort(), await findFreePort()];
    const servers: ReturnType<typeof runServer>[] = [];
    const all: typeof servers = [];
    let rolls = 0;
    /** Both gateways, one after the other, the next when the last is ready. */
    const roll = async (mode: string, writes = 'on') => {
      rolls += 1;
      for (const [at, port] of ports.entries()) {
        const old = servers[at];
        if (old) expect(await stop(old)).toBe(0);
        const settings = { LEGACY_MODE: mode, WRITES: writes, PORT: String(port) };
        const server = runServer({ ...environment, ...settings });
        servers[at] = server;
        all.push(server);
        await baseOf(server);
        const isReady = async () =>
          (await send(`http://127.0.0.1:${port}`, '/health/ready')).status;
        await expect.poll(isReady, { timeout: 20_000 }).toBe(200);
      }
    };
    const forwards = async () => {
      await roll('canary:50');
      await roll('canary:100');
      await roll('canary:100', 'off');
      await command(importCommand, legacy.url, '--prune', '--yes');
      await roll('mirror', 'off');
      await roll('mirror');
      await roll('fallback');
      await roll('off');
    };
    const back = async () => {
      await roll('fallback');
      await roll('mirror');
      await roll('mirror', 'off');
      const file = folder.at(`export-${rolls}.ndjson`);
      await command(exportCommand, file);
      const lines = readFileSync(file, 'utf8').trim().split('\n');
      legacy.records.splice(0, legacy.records.length);
      legacy.records.push(...lines.map((line) => JSON.parse(line) as LegacyRecord));
      environment['FIRST_ID'] = String(Number(environment['FIRST_ID']) + 100_000);
      await roll('shadow', 'off');
      await command(importCommand, legacy.url, '--replace');
      await roll('shadow');
    };

    const { base, errors } = await startProxy(ports);
    await roll('shadow');
    const stopping = new AbortController();
    const apps = ['Ann', 'Ben', 'Cem', 'Dia'].map((name) => new App(base, name));
    const living = Promise.all(apps.map((app) => app.live(stopping.signal)));
    await forwards();
    await back();
    await forwards();
    expect(rolls).toBe(20);
    stopping.abort();
    await living;

    const failures = apps.flatMap((app) => app.failures);
    const logged = all.flatMap(
      (server) => server.output().match(/^.*"level":"(?:warn|error|fatal)".*$/gm) ?? [],
    );
    expect(failures, [...errors(), ...logged].join('\n')).toEqual([]);
    const created = apps.flatMap((app) => [...app.created]);
    expect(created.length).toBeGreaterThan(100);
    const file = folder.at('all.ndjson');
    await command(exportCommand, file);
    const lines = readFileSync(file, 'utf8').trim().split('\n');
    const titles = lines.map((line) => JSON.parse(line) as LegacyRecord);
    const own = titles.filter(({ title }) => /^(?:Ann|Ben|Cem|Dia) \d+$/.test(title));
    expect(new Map(own.map(({ title, id }) => [title, id]))).toEqual(new Map(created));
    expect(own).toHaveLength(created.length);
    for (const server of servers) expect(await stop(server)).toBe(0);
  },
  600_000,
);
