// Introspection as clients of any language read it: no more than the published specification names.
import { expect, test } from 'vitest';
import { useGateway } from '../support/gateway.ts';

const gateway = useGateway('PostgreSQL', []);

/** @see https://spec.graphql.org/September2025/#sec-Schema-Introspection.Schema-Introspection-Schema */
const kinds = 'SCALAR OBJECT INTERFACE UNION ENUM INPUT_OBJECT LIST NON_NULL'.split(' ');
const locations =
  `QUERY MUTATION SUBSCRIPTION FIELD FRAGMENT_DEFINITION FRAGMENT_SPREAD INLINE_FRAGMENT
  VARIABLE_DEFINITION SCHEMA SCALAR OBJECT FIELD_DEFINITION ARGUMENT_DEFINITION INTERFACE UNION ENUM ENUM_VALUE
  INPUT_OBJECT INPUT_FIELD_DEFINITION`.split(/\s+/);
/** @see https://spec.graphql.org/September2025/#sec-Type-System.Directives.Built-in-Directives */
const directives = {
  skip: ['FIELD', 'FRAGMENT_SPREAD', 'INLINE_FRAGMENT'],
  include: ['FIELD', 'FRAGMENT_SPREAD', 'INLINE_FRAGMENT'],
  deprecated: ['ARGUMENT_DEFINITION', 'ENUM_VALUE', 'FIELD_DEFINITION', 'INPUT_FIELD_DEFINITION'],
  specifiedBy: ['SCALAR'],
  oneOf: ['INPUT_OBJECT'],
};

test('introspection lists the directives of the specification, with its locations', async () => {
  const { data } = await gateway.post('{ __schema { directives { name locations } } }');
  const given = (data as { __schema: { directives: { name: string; locations: string[] }[] } })
    .__schema.directives;
  const sorted = given.map(({ name, locations: all }) => [name, [...all].sort()]);
  expect(Object.fromEntries(sorted)).toEqual(
    Object.fromEntries(Object.entries(directives).map(([name, all]) => [name, [...all].sort()])),
  );
});

test.each([
  ['__TypeKind', kinds],
  // One of graphql-js ahead of the specification: clients have this type themselves, and read values by name only.
  ['__DirectiveLocation', [...locations, 'DIRECTIVE_DEFINITION']],
])('introspection lists the values of %s of the specification', async (name, values) => {
  const { data } = await gateway.post(`{ __type(name: "${name}") { enumValues { name } } }`);
  const given = (data as { __type: { enumValues: { name: string }[] } }).__type.enumValues;
  expect(given.map((value) => value.name).sort()).toEqual([...values].sort());
});
