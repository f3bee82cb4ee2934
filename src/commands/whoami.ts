// outfit-gateway whoami: whose a credential is, by the old service and by this gateway.
import type { FastifyRequest } from 'fastify';
import { Credentials } from '../admission/credentials.ts';
import { ConfigError, legacyHostFor, readConfig } from '../config.ts';
import { HttpError, messageOf } from '../errors.ts';
import { HttpClient } from '../http/client.ts';
import { parseHeaders } from '../old-listing/fetch-page.ts';
import type { Io } from './command.ts';
import { asList, createLine, withSettings } from './options/command-line.ts';

export const line = () =>
  withSettings(
    createLine('whoami')
      .description(
        'Tries a credential on both sides: on the old service (LEGACY_URL), and with the settings of this gateway that begin with AUTH_. No database is needed, and nothing is written.',
      )
      .requiredOption(
        "--header <'Name: value'>",
        "a header that a client sends, such as 'Authorization: Token abc' or 'Cookie: sessionid=abc'; may be given more than once",
        asList(),
      )
      .addHelpText(
        'after',
        '\nExit code: 0 both sides say the same, 1 they do not, 2 one of them could not be asked.',
      ),
  );

export const failureCode = 2;

type Result = 'accepted' | 'anonymous' | 'refused' | 'unknown';

export async function run(
  { env, stdout, signal }: Io,
  { header }: { readonly header: readonly string[] },
): Promise<number> {
  const config = readConfig(env);
  const { legacyUrl } = config;
  if (legacyUrl === undefined) {
    throw new ConfigError('LEGACY_URL is not set: set it to the base of the old service.');
  }
  const headers = Object.fromEntries(parseHeaders(header));
  const theirs = await askLegacy(legacyUrl, legacyHostFor(legacyUrl, config), headers, signal);
  stdout.write(`The old service: ${theirs.sentence}\n`);
  const credentials = new Credentials(config);
  const ours = await askOwn(credentials, headers).finally(() => credentials.close());
  stdout.write(`This gateway: ${ours.sentence}\n`);
  const isSame = theirs.result === ours.result || theirs.result === 'unknown';
  return isSame ? 0 : 1;
}

interface Answer {
  readonly result: Result;
  readonly sentence: string;
}

/** OPTIONS of Django REST Framework describes POST for callers that may use it, and needs no CSRF token. */
async function askLegacy(
  legacyUrl: string,
  host: Readonly<Record<string, string>>,
  credential: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Answer> {
  const { origin, pathname } = new URL(legacyUrl);
  const target = `${pathname.replace(/\/$/, '')}/api/outfits/`;
  const client = new HttpClient();
  const ask = (headers: Readonly<Record<string, string>>) =>
    client.ask(origin, {
      method: 'OPTIONS',
      target,
      headers: { accept: 'application/json', ...host, ...headers },
      signal,
      timeout: 30_000,
      maxBytes: 1_048_576,
    });
  try {
    const [theirs, anonymous] = [await ask(credential), await ask({})];
    const { status } = theirs;
    if (status === 401 || status === 403) {
      return { result: 'refused', sentence: `refused (status ${status})` };
    }
    if (status !== 200) throw new Error(`OPTIONS was answered with status ${status}`);
    if (!mayPost(theirs.body)) return { result: 'anonymous', sentence: 'anonymous' };
    return mayPost(anonymous.body)
      ? { result: 'unknown', sentence: 'not known, since everyone may write there' }
      : { result: 'accepted', sentence: 'a user who may write' };
  } catch (error) {
    throw new ConfigError(`The old service cannot be asked (${messageOf(error)}).`);
  } finally {
    await client.close();
  }
}

function mayPost(body: Buffer): boolean {
  try {
    return JSON.parse(body.toString()).actions?.POST !== undefined;
  } catch {
    return false;
  }
}

async function askOwn(
  credentials: Credentials,
  headers: Readonly<Record<string, string>>,
): Promise<Answer> {
  // Node.js names headers in lower case, as Headers does.
  const request = { method: 'GET', headers, raw: { rawHeaders: [] } } as unknown as FastifyRequest;
  // A cookie that no setting names is none here.
  const isUnseen = headers['cookie'] !== undefined && !credentials.areIn(request);
  const missing =
    credentials.findMissingSetting(request) ??
    (isUnseen ? 'AUTH_WEBHOOK_URL and AUTH_COOKIES' : undefined);
  const hint = missing === undefined ? '' : `: set ${missing}`;
  try {
    const viewer = await credentials.authenticate(request, () => 'whoami');
    return viewer
      ? { result: 'accepted', sentence: `user ${viewer.userId}` }
      : { result: 'anonymous', sentence: `anonymous${hint}` };
  } catch (error) {
    if (!(error instanceof HttpError)) throw error;
    if (error.status === 401) return { result: 'refused', sentence: `refused${hint}` };
    throw new ConfigError(`This gateway cannot say (${messageOf(error.cause ?? error)}).`);
  }
}
