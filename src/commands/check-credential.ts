// Tries a credential on the old service and on this gateway, for `check --header`.
import type { FastifyRequest } from 'fastify';
import { Credentials } from '../admission/credentials.ts';
import { type Config, ConfigError, legacyHostFor } from '../config/config.ts';
import { HttpError, messageOf } from '../errors.ts';
import { HttpClient } from '../http/client.ts';

type Headers = Readonly<Record<string, string>>;

interface Answer {
  readonly result: 'accepted' | 'anonymous' | 'refused' | 'unknown';
  readonly sentence: string;
}

/** What both sides say. @throws ConfigError when they do not say the same, or one cannot be asked */
export async function checkCredential(
  headers: Headers,
  config: Config,
  signal: AbortSignal,
): Promise<string> {
  if (config.legacyUrl === undefined) throw new ConfigError('LEGACY_URL is not set.');
  const theirs = await askLegacy(config.legacyUrl, config, headers, signal);
  const credentials = new Credentials(config);
  const ours = await askOwn(credentials, headers).finally(() => credentials.close());
  const said = `the old service: ${theirs.sentence}; this gateway: ${ours.sentence}`;
  if (theirs.result !== ours.result && theirs.result !== 'unknown') throw new ConfigError(said);
  return said;
}

/** OPTIONS of Django REST Framework describes POST for callers that may use it, and needs no CSRF token. */
async function askLegacy(
  legacyUrl: string,
  config: Config,
  credential: Headers,
  signal: AbortSignal,
): Promise<Answer> {
  const { origin, pathname } = new URL(legacyUrl);
  const request = {
    method: 'OPTIONS' as const,
    target: `${pathname.replace(/\/$/, '')}/api/outfits/`,
    signal,
    timeout: 30_000,
    maxBytes: 1_048_576,
  };
  const client = new HttpClient();
  const ask = (given: Headers) => {
    const headers = { accept: 'application/json', ...legacyHostFor(legacyUrl, config), ...given };
    return client.ask(origin, { ...request, headers });
  };
  try {
    const { status, body } = await ask(credential);
    if (status === 401 || status === 403) {
      return { result: 'refused', sentence: `refused (status ${status})` };
    }
    if (status !== 200) throw new Error(`OPTIONS was answered with status ${status}`);
    if (!mayPost(body)) return { result: 'anonymous', sentence: 'anonymous' };
    return mayPost((await ask({})).body)
      ? { result: 'unknown', sentence: 'not known, since everyone may write there' }
      : { result: 'accepted', sentence: 'a user who may write' };
  } catch (error) {
    throw new ConfigError(`the old service cannot be asked (${messageOf(error)})`);
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

async function askOwn(credentials: Credentials, headers: Headers): Promise<Answer> {
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
    throw new ConfigError(`this gateway cannot say (${messageOf(error.cause ?? error)})`);
  }
}
