// A legacy path without its last slash, which leads to the one with it.
import { answersOf, describeAnswer, describePreflight, type PathContext } from './answers.ts';
import { hostErrors } from './error-answers.ts';
import type { JsonSchema } from './json-schema.ts';
import { describeOperation, type Operation, operationIdsOf, withoutContent } from './operations.ts';
import { describeParameters } from './parameters.ts';

/** Their tag. */
export const redirects = {
  name: 'Redirects',
  description: 'Paths without their last slash, which lead to those with it.',
};

export function describeRedirect(context: PathContext): JsonSchema {
  const { route, schema, named } = context;
  const ids = operationIdsOf(route);
  const parameters = describeParameters(schema, route, named.schemas);
  const describe = (method: string, operationId: string): Operation => ({
    ...describeOperation(context, `${operationId}Redirect`),
    tags: [redirects.name],
    parameters: parameters.filter((parameter) => parameter.in === 'path'),
    responses: describeAnswers(context, method),
  });
  return {
    description: 'Leads to the path with its last slash, whatever the method.',
    get: describe('GET', ids.get),
    ...(route.create ? { post: describe('POST', ids.post) } : {}),
    head: withoutContent(describe('HEAD', ids.head)),
    options: describe('OPTIONS', ids.options),
    'x-other-methods': describeAnswers(context, 'DELETE'),
  };
}

function describeAnswers(context: PathContext, method: string): Operation['responses'] {
  const { headers, named } = context;
  const status = method === 'GET' || method === 'HEAD' ? 301 : 308;
  return {
    ...(method === 'OPTIONS' ? describePreflight(context) : {}),
    ...answersOf(context, method, {
      own: { [status]: describeAnswer(status, { redirect: headers.ofRedirect }, named) },
      errors: hostErrors,
      ofErrors: headers.ofApi,
    }),
  };
}
