// What browsers ask of both services before a page of another origin may use them.
import type { Checker } from './checker.ts';
import type { ComparedRequest, Select } from './compared-requests.ts';

/** An origin that no service names: only one that allows all origins allows it. */
export const unknownOrigin = 'https://origin.invalid';

/** Request headers of web apps, in the order in which browsers list them. */
const usualHeaders = ['accept', 'authorization', 'content-type', 'x-csrftoken', 'x-requested-with'];
/** Pages cannot set these. @see https://fetch.spec.whatwg.org/#forbidden-request-header */
const forbidden =
  /^(?:\*|accept-encoding|access-control-.*|connection|content-length|cookie|host|origin|referer)$/;

const onlyCors: Select = (differences) =>
  differences.filter(({ where }) => where?.startsWith('access-control-'));

/** Compares a read and preflights for pages of each origin. */
export async function checkCors(
  checker: Checker,
  request: ComparedRequest,
  origins: readonly string[],
): Promise<void> {
  let [varies, isAllowed] = [false, false];
  for (const origin of new Set([...origins, unknownOrigin])) {
    const { theirs } = await checker.check({ ...request, headers: { origin } }, onlyCors);
    varies ||= /\borigin\b/i.test(theirs?.headers['vary'] ?? '');
    isAllowed ||= theirs?.headers['access-control-allow-origin'] !== undefined;
    const preflightFor = (headers: readonly string[]): ComparedRequest => ({
      ...{ ...request, method: 'OPTIONS' },
      headers: {
        ...{ origin, 'access-control-request-method': 'POST' },
        'access-control-request-headers': headers.join(','),
      },
    });
    const answers = await checker.check(preflightFor(usualHeaders));
    const allowed = answers.theirs?.headers['access-control-allow-headers'] ?? '';
    const others = allowed
      .toLowerCase()
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name && !usualHeaders.includes(name) && !forbidden.test(name));
    if (others.length > 0) await checker.check(preflightFor(others.sort()));
  }
  if (varies && !isAllowed) {
    const sentence =
      'The source answers by the origin of a page, and allowed none that was asked with: name those of your web apps by --origin.';
    checker.options.report.note(sentence);
  }
}
