// An old service over TLS with an authority of its own: check and forwarding, as processes.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { useFolder } from '../support/cli/folder.ts';
import {
  baseOf,
  dist,
  migratedEnvironmentOf,
  run,
  runServer,
  stop,
} from '../support/cli/process.ts';
import { hasOpenSsl, makeCertificate } from '../support/http/certificates.ts';
import { portOf } from '../support/http/listen.ts';
import { startLegacyService } from '../support/legacy/legacy-service.ts';
import { records } from '../support/legacy/two-services.ts';

const folder = useFolder();

test.skipIf(!hasOpenSsl)(
  'the certificate is that of the name in LEGACY_URL, or LEGACY_HOST',
  async () => {
    const legacy = await startLegacyService(records());
    onTestFinished(() => legacy.close());
    const hosts = ['localhost', 'old.example.com'];
    makeCertificate(folder.at(), 'authority', { subject: 'Authority of the tests' });
    makeCertificate(folder.at(), 'old', { subject: 'old', hosts, authority: 'authority' });
    const names: string[] = [];
    const front = createTlsServer(
      {
        cert: readFileSync(folder.at('old.crt')),
        key: readFileSync(folder.at('old.key')),
        SNICallback: (name, settle) => settle(null, void names.push(name)),
      },
      (socket) => {
        const inner = connect(Number(new URL(legacy.base).port), '127.0.0.1');
        socket.on('error', () => inner.destroy()).pipe(inner);
        inner.on('error', () => socket.destroy()).pipe(socket);
      },
    );
    onTestFinished(() => void front.close());
    await once(front.listen(0), 'listening');
    const port = portOf(front);

    const database = await migratedEnvironmentOf('PostgreSQL');
    const environment = {
      ...database,
      DATA_DIR: folder.at('data'),
      SEED: 'none',
      HOST: '127.0.0.1',
    };
    const command = async (settings: Record<string, string>, ...args: string[]) => {
      const started = run([`${dist}commands/cli.js`, ...args], { ...environment, ...settings });
      expect(await started.ended, started.errors()).toBe(0);
      return started.output();
    };
    const statusOf = async (settings: Record<string, string>) => {
      const server = runServer({ ...environment, LEGACY_MODE: 'shadow', ...settings });
      const { status, headers } = await fetch(`${await baseOf(server)}/api/outfits/`);
      expect(headers.get('x-served-by')).toBe('legacy');
      expect(await stop(server)).toBe(0);
      return status;
    };
    // An address has no name, so there it is LEGACY_HOST.
    for (const [address, LEGACY_HOST, name] of [
      ['localhost', 'public.example.com', 'localhost'],
      ['127.0.0.1', 'old.example.com:8000', 'old.example.com'],
    ] as const) {
      const LEGACY_URL = `https://${address}:${port}`;
      const settings = {
        ...{ LEGACY_URL, LEGACY_HOST, AUTH_WEBHOOK_URL: `${LEGACY_URL}/whoami/` },
        NODE_EXTRA_CA_CERTS: folder.at('authority.crt'),
      };
      names.length = 0;
      legacy.requests.length = 0;
      const [told, status] = await Promise.all([
        command(settings, 'check', '--header', 'Authorization: Token abc'),
        statusOf(settings),
      ]);
      expect(told).toContain('this gateway: user 3');
      expect(status).toBe(200);
      expect(new Set(legacy.requests.map(({ headers }) => headers.host))).toEqual(
        new Set([LEGACY_HOST]),
      );
      expect(new Set(names)).toEqual(new Set([name]));
    }
    expect(await statusOf({ LEGACY_URL: `https://localhost:${port}` })).toBe(502);
  },
);
