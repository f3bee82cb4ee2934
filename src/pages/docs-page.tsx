// /api/docs: the OpenAPI document for people. Its forms send a GET, whose page shows the request and the response.
import type { Parameter } from '../rest/openapi/document.ts';
import type { JsonSchema } from '../rest/openapi/schemas.ts';
import type { PageProperties } from './parts/answer.tsx';
import { Layout } from './parts/layout.tsx';

interface Body {
  readonly content?: Readonly<Record<string, { readonly schema: JsonSchema }>>;
}

interface Operation {
  readonly description?: string;
  readonly deprecated?: boolean;
  readonly parameters: readonly Parameter[];
  readonly requestBody?: Body;
  readonly responses: Readonly<Record<string, Body>>;
}

interface Document {
  readonly info: { readonly description: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, JsonSchema>> };
}

export function DocsPage({ answer, site, base }: PageProperties) {
  const { info, paths, components } = answer.json as Document;
  // The table in its description.
  const statuses = [...info.description.matchAll(/^\| (\d+) \| (.*) \|$/gm)].map(
    ([, name = '', description = '']) => ({ name, description, schema: {} }),
  );
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  return (
    <Layout site={site} title="API docs" path="/api/docs">
      <h1>REST API</h1>
      <p class="lead">
        For tools, there is <a href={`${site.root}/api/openapi.json`}>openapi.json</a>.{' '}
        {site.writing}
      </p>
      {operations.map((one) => (
        <OperationPanel {...one} {...components} base={base} site={site} />
      ))}
      <section class="panel" aria-label="Errors">
        <Fields title="Statuses of errors" fields={statuses} />
      </section>
    </Layout>
  );
}

interface OperationProperties extends Pick<PageProperties, 'base' | 'site'> {
  readonly path: string;
  readonly method: string;
  readonly operation: Operation;
  readonly schemas: Document['components']['schemas'];
}

function OperationPanel({ path, method, operation, schemas, base, site }: OperationProperties) {
  const { description = '', deprecated, parameters, requestBody, responses } = operation;
  const resolve = (schema?: JsonSchema) =>
    schema?.$ref ? schemas[schema.$ref.split('/').at(-1) ?? ''] : schema;
  const schemaOf = (body?: Body) => resolve(Object.values(body?.content ?? {})[0]?.schema);
  const result = schemaOf(responses[method === 'get' ? 200 : 201]);
  const list = [result, ...Object.values(result?.properties ?? {})].find((one) => one?.items);
  const record = resolve(list?.items);
  const name = `${method.toUpperCase()} ${path}`;
  const query = parameters.filter((parameter) => parameter.in === 'query');
  const request = `curl '${base}${path.replace(/\{\w+\}/, '1')}'`;
  const credential = ` --json '{…}' \\\n  --header 'Authorization: Bearer …'`;
  return (
    <section class="panel" aria-label={name}>
      <h2>
        <code>{name}</code>
        {deprecated && <span class="wrong"> deprecated</span>}
      </h2>
      <p class="text">
        <Marked>{description}</Marked>
      </p>
      <pre class="code">{request + (requestBody ? credential : '')}</pre>
      {method === 'get' && !path.includes('{') && (
        <form class="menu" method="get" action={`${site.root}${path}`}>
          {query.map(({ name }) => (
            <input name={name} aria-label={name} placeholder={name} size={12} />
          ))}
          <button type="submit">Try it</button>
        </form>
      )}
      <Fields title="Parameters" fields={parameters} />
      <Fields title="Body" fields={fieldsOf(schemaOf(requestBody))} />
      <Fields
        title={record ? 'Each of its records' : 'Response'}
        fields={fieldsOf(record ?? result)}
      />
    </section>
  );
}

/** A long table is folded. */
function Fields({
  title,
  fields,
}: {
  readonly title: string;
  readonly fields: readonly Parameter[];
}) {
  if (fields.length === 0) return null;
  return (
    <details open={fields.length < 13}>
      <summary>{title}</summary>
      <dl class="fields">
        {fields.map(({ name, description, required, schema }) => (
          <div>
            <dt>
              <code>{name}</code> {typeOf(schema)}
              {required && ', required'}
            </dt>
            <dd>
              <Marked>
                {[description ?? schema.description, ...examplesOf(schema)].join(' ')}
              </Marked>
            </dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

function fieldsOf({ properties = {}, required = [] }: JsonSchema = {}): readonly Parameter[] {
  return Object.entries(properties).map(([name, schema]) => {
    return { name, schema, required: required.includes(name) };
  });
}

const examplesOf = ({ examples = [] }: JsonSchema) =>
  examples.map((example) => `Example: \`${JSON.stringify(example)}\``);

/** In words, such as `integer or "last"`. */
function typeOf({ $ref, anyOf, enum: choices, const: only, items, type = [] }: JsonSchema): string {
  if ($ref) return $ref.split('/').at(-1) ?? '';
  if (only !== undefined) return JSON.stringify(only);
  if (choices) return choices.map((choice) => JSON.stringify(choice)).join(', ');
  if (items) return `list of ${typeOf(items)}`;
  return anyOf ? anyOf.map(typeOf).join(' or ') : [type].flat().join(' or ');
}

/** Text with code between backticks. */
const Marked = ({ children }: { readonly children: string }) => (
  <>{children.split('`').map((part, index) => (index % 2 === 1 ? <code>{part}</code> : part))}</>
);
