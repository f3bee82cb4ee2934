// What browsers ask of both services before a page of another origin may use them.
import { listOf } from '../compare/compare-headers.ts';
import type { Difference } from '../compare/difference.ts';
import type { Checker } from './checker.ts';
import type { ComparedRequest } from './compared-requests.ts';

/** An origin that no service names: only one that allows all origins allows it. */
export const unknownOrigin = 'https://origin.invalid';

/** Request headers of web apps, in the order in which browsers list them. */
const usualHeaders = ['accept', 'authorization', 'content-type', 'x-csrftoken', 'x-requested-with'];
/** Pages cannot set these. @see https://fetch.spec.whatwg.org/#forbidden-request-header */
const forbidden =
  /^(?:\*|accept-encoding|access-control-.*|connection|content-length|cookie|host|origin|referer)$/;

const onlyCors = (differences: readonly Difference[]) =>
  differences.filter(({ where }) => where?.startsWith('access-control-'));

/** Browsers send OPTIONS only as a preflight, and for HEAD the same as for GET. */
export const appMethods: ReadonlySet<string> = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']);

/** Compares reads from each origin, if there are any, and preflights for each method. */
export async function checkCors(
  checker: Checker,
  request: ComparedRequest,
  methods: ReadonlySet<string>,
  origins: readonly string[],
): Promise<void> {
  let [varies, isAllowed] = [false, false];
  const check = async (asked: ComparedRequest) => {
    const { headers } = (await checker.check(asked)).theirs;
    varies ||= /\borigin\b/i.test(headers['vary'] ?? '');
    isAllowed ||= headers['access-control-allow-origin'] !== undefined;
    return headers;
  };
  for (const origin of new Set([...origins, unknownOrigin])) {
    // All requests of the comparison have the origin of the checker.
    const isRead = methods.has('GET') && origin !== checker.options.origin;
    if (isRead) await check({ ...request, headers: { origin }, select: onlyCors });
    for (const method of methods) {
      const preflightFor = (headers: readonly string[]): ComparedRequest => ({
        ...{ ...request, method: 'OPTIONS' },
        headers: {
          ...{ origin, 'access-control-request-method': method },
          'access-control-request-headers': headers.join(','),
        },
      });
      const allowed = (await check(preflightFor(usualHeaders)))['access-control-allow-headers'];
      const others = listOf(allowed).filter(
        (name) => !usualHeaders.includes(name) && !forbidden.test(name),
      );
      if (others.length > 0) await check(preflightFor(others.sort()));
    }
  }
  if (varies && !isAllowed) {
    const sentence =
      'The source answers by the origin of a page, and allowed none that was sent: name those of your web apps by --origin.';
    checker.options.report.note(sentence);
  }
}
