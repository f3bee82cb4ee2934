// outfit-gateway check: whether a gateway with these settings can start and reach what they name. It changes nothing.
import type { FastifyRequest } from 'fastify';
import { Credentials } from '../admission/credentials.ts';
import { countKeys } from '../admission/viewer.ts';
import { Webhook } from '../admission/webhook.ts';
import { allSettings, type Config, isTraced, legacyHostFor, readConfig } from '../config/config.ts';
import { version } from '../config/package.ts';
import { openDatabase } from '../database/database.ts';
import { describeDataFolder } from '../database/embedded/data-folder.ts';
import { Replicas } from '../database/standby/replicas.ts';
import { HttpError, messageOf } from '../errors.ts';
import { acceptedOf } from '../legacy/compare/difference.ts';
import { createFetchPage, parseHeaders } from '../old-listing/fetch-page.ts';
import { checkTriggers } from '../outfits/counts.ts';
import { escapeControls } from '../transfer/reporter.ts';
import { type Io, untilAborted } from './command.ts';
import { createLine, flag, headerOption, type ValuesOf } from './options/command-line.ts';

const options = {
  header: headerOption(
    '--header',
    "a credential that a client sends, such as 'Authorization: Token abc' or 'Cookie: sessionid=abc': tells whether this gateway says the same of it as the old service",
  ),
  json: flag('--json', 'prints one JSON object: { ok, checks: [{ name, ok, text }] }'),
};

export const line = () =>
  createLine('check', options)
    .description(
      'Reads all settings and tries what they name: the database and its migrations, standbys, the key set, the webhook (with an invented credential), the old service, the trusted documents. It prints a line for each, and changes nothing: no migration is applied, and no folder is made.',
    )
    .addHelpText(
      'after',
      '\nExit code: 0 all is right, 1 something is wrong, 2 a setting is not valid.',
    );

type Check = (name: string, work: () => Promise<string>) => Promise<void>;

export async function run(
  { env, stdout, data, signal }: Io,
  { header, json }: ValuesOf<typeof options>,
): Promise<number> {
  const config = readConfig(env);
  const credential = header && Object.fromEntries(parseHeaders(header));
  const checks: { readonly name: string; readonly ok: boolean; readonly text: string }[] = [];
  const note = (name: string, ok: boolean, text: string) => {
    checks.push({ name, ok, text });
    if (!json) stdout.write(`${ok ? 'ok' : 'wrong'}: ${name}: ${text}\n`);
  };
  const check: Check = async (name, work) => {
    try {
      note(name, true, await untilAborted(work(), signal));
    } catch (error) {
      signal.throwIfAborted();
      const { cause = error } = error instanceof HttpError ? error : {};
      note(name, false, messageOf(cause).replaceAll('\n', ' '));
    }
  };
  const given = allSettings.flatMap(({ name }) => (env[name] ? [name] : []));
  await check('settings', async () => [`${given.length} set`, ...given].join(', '));
  if (config.databaseUrl === undefined) {
    await check('DATA_DIR', () => describeDataFolder(config.dataDir));
  } else await checkServers(config, check);
  const named: readonly [string, string | undefined, (value: string) => Promise<string>][] = [
    ['AUTH_JWKS_URL', config.authJwksUrl, async (url) => `${await countKeys(url, config)} key(s)`],
    ['AUTH_WEBHOOK_URL', config.authWebhookUrl, (url) => tryWebhook(url, config)],
    ['LEGACY_URL', config.legacyUrl, (url) => tryLegacy(url, config, signal)],
    ['REST_DOCUMENTS', config.restDocuments, checkRoutes],
    ['TRUSTED_DOCUMENTS', config.trustedDocuments, (file) => readDocuments(file, config)],
  ];
  for (const [name, value, attempt] of named) {
    if (value !== undefined) await check(name, () => attempt(value));
  }
  if (isTraced(config)) await check('OTEL', () => readTracing(config));
  if (credential) await check('--header', () => checkCredential(credential, config, signal));
  const isRight = checks.every(({ ok }) => ok);
  // Escaped, and never cut as a line for a person is.
  if (json) data.write(`${escapeControls(JSON.stringify({ ok: isRight, checks }))}\n`);
  return isRight ? 0 : 1;
}

async function checkServers(config: Config, check: Check): Promise<void> {
  const database = await openDatabase(config);
  const replicas = new Replicas(config, database, config.requestTimeout, () => {});
  const { pool, description } = database;
  try {
    await check('DATABASE_URL', async () => {
      const warnings: string[] = [];
      const monitor = await database.monitor(
        () => {},
        (sentence) => warnings.push(sentence),
      );
      const [problem = warnings[0]] = [monitor.problem()];
      if (problem) throw new Error(problem);
      const [broken] = await checkTriggers(pool);
      if (broken) throw new Error(`the ${description}: ${broken}`);
      const { rows } = await pool.query(`SELECT current_setting('server_version') AS version`);
      return `${description}, version ${rows[0]?.version}, has all migrations`;
    });
    await replicas.start(false);
    for (const { description: standby, problem } of replicas.standbys) {
      await check('DATABASE_READ_URLS', async () => {
        if (problem) throw new Error(`the ${standby} ${problem}`);
        return `${standby}`;
      });
    }
  } finally {
    await Promise.all([replicas.close(), database.close()]);
  }
}

async function tryWebhook(url: string, config: Config): Promise<string> {
  const webhook = new Webhook(url, config, undefined, undefined);
  const invented = { authorization: 'Bearer outfit-gateway-check', cookie: undefined };
  const asked = webhook.authenticate(invented, () => 'check');
  const viewer = await asked.finally(() => webhook.close());
  if (viewer) throw new Error(`an invented credential is accepted, as user ${viewer.userId}`);
  return 'an invented credential is refused, as it must be';
}

async function tryLegacy(url: string, config: Config, signal: AbortSignal): Promise<string> {
  acceptedOf(config.legacyAccept);
  const listing = `${url}/api/outfits/`;
  const headers = new Headers(legacyHostFor(url, config));
  const fetchPage = createFetchPage({ headers, listing, timeout: config.legacyTimeout });
  const { status, body } = await fetchPage(listing, signal);
  const count = status === 200 ? JSON.parse(body).count : undefined;
  if (!Number.isInteger(count)) throw new Error(`no page of a list there (status ${status})`);
  return `${count} outfits`;
}

/** The start gives these as warnings. */
async function readTracing(config: Config): Promise<string> {
  const warnings: string[] = [];
  const log = { warn: (sentence: string) => warnings.push(sentence) };
  const { Tracing } = await import('../observability/tracing/tracing.ts');
  await new Tracing(config, version, log).close();
  if (warnings.length > 0) throw new Error(warnings.join('; '));
  return 'all names are known';
}

async function checkRoutes(file: string): Promise<string> {
  const routes = (await import('../app.ts')).readOwnRoutes(file);
  return routes.map(({ path }) => path).join(', ');
}

async function readDocuments(file: string, config: Config): Promise<string> {
  await (await import('../app.ts')).checkTrustedDocuments(file, config);
  return 'each document can be run';
}

type Given = Readonly<Record<string, string>>;

/** What a service says of a credential. */
interface Verdict {
  readonly result: 'accepted' | 'anonymous' | 'refused' | 'unknown';
  readonly sentence: string;
}

/** What the old service and this gateway say. @throws Error when they do not say the same, or one cannot be asked */
async function checkCredential(
  headers: Given,
  config: Config,
  signal: AbortSignal,
): Promise<string> {
  if (config.legacyUrl === undefined) throw new Error('LEGACY_URL is not set.');
  const theirs = await askLegacy(config.legacyUrl, config, headers, signal).catch((error) => {
    throw new Error(`the old service cannot be asked (${messageOf(error)})`);
  });
  const credentials = new Credentials(config);
  const ours = await askOwn(credentials, headers).finally(() => credentials.close());
  const said = `the old service: ${theirs.sentence}; this gateway: ${ours.sentence}`;
  if (theirs.result !== ours.result && theirs.result !== 'unknown') throw new Error(said);
  return said;
}

/** OPTIONS of Django REST Framework describes POST for callers that may use it, and needs no CSRF token. */
async function askLegacy(
  legacyUrl: string,
  config: Config,
  credential: Given,
  signal: AbortSignal,
): Promise<Verdict> {
  const listing = `${legacyUrl}/api/outfits/`;
  const ask = (given: Given) => {
    const headers = new Headers({ ...legacyHostFor(legacyUrl, config), ...given });
    return createFetchPage({ method: 'OPTIONS', headers, listing })(listing, signal);
  };
  const { status, body } = await ask(credential);
  if (status === 401 || status === 403) {
    return { result: 'refused', sentence: `refused (status ${status})` };
  }
  if (status !== 200) throw new Error(`OPTIONS was answered with status ${status}`);
  if (!mayPost(body)) return { result: 'anonymous', sentence: 'anonymous' };
  return mayPost((await ask({})).body)
    ? { result: 'unknown', sentence: 'not known, since everyone may write there' }
    : { result: 'accepted', sentence: 'a user who may write' };
}

function mayPost(body: string): boolean {
  try {
    return JSON.parse(body).actions?.POST !== undefined;
  } catch {
    return false;
  }
}

async function askOwn(credentials: Credentials, headers: Given): Promise<Verdict> {
  // Node.js names headers in lower case, as Headers does.
  const request = { method: 'GET', headers, raw: { rawHeaders: [] } } as unknown as FastifyRequest;
  // A cookie that no setting names is none here.
  const isUnseen = headers['cookie'] !== undefined && !credentials.areIn(request);
  const missing =
    credentials.findMissingSetting(request) ??
    (isUnseen ? 'AUTH_WEBHOOK_URL and AUTH_COOKIES' : undefined);
  const hint = missing === undefined ? '' : ` (set ${missing})`;
  try {
    const viewer = await credentials.authenticate(request, () => 'check');
    return viewer
      ? { result: 'accepted', sentence: `user ${viewer.userId}` }
      : { result: 'anonymous', sentence: `anonymous${hint}` };
  } catch (error) {
    if (!(error instanceof HttpError)) throw error;
    if (error.status === 401) return { result: 'refused', sentence: `refused${hint}` };
    throw new Error(`this gateway cannot say (${messageOf(error.cause ?? error)})`);
  }
}
