// The menu of orders of a list, made of the enum that its document takes.
import {
  type GraphQLSchema,
  getNamedType,
  getOperationAST,
  isEnumType,
  type TypeNode,
  typeFromAST,
} from 'graphql';
import type { Route } from '../rest/routes.ts';
import { type QueryParameters, readParameter } from '../rest/url.ts';

const parameter = 'ordering';

export interface Choice {
  /** On the wire. */
  readonly value: string;
  readonly title: string;
  readonly isDefault: boolean;
}

/** Empty: the list has one order only. */
export function orderingsOf(schema: GraphQLSchema, { list }: Route): readonly Choice[] {
  const variable = list && getOperationAST(list)?.variableDefinitions?.find(isOrdering);
  const type = variable && typeFromAST(schema, variable.type as TypeNode as never);
  const leaf = type && getNamedType(type);
  if (!isEnumType(leaf)) return [];
  return leaf.getValues().map(({ value, name, description, extensions }) => ({
    value: String(value),
    // The first sentence of what GraphQL says of it.
    title: description?.replace(/[;.].*$/s, '') ?? name,
    isDefault: extensions['isDefault'] === true,
  }));
}

const isOrdering = ({ variable }: { readonly variable: { readonly name: { value: string } } }) =>
  variable.name.value === parameter;

interface MenuProperties {
  readonly choices: readonly Choice[];
  readonly parameters: QueryParameters;
}

/** A form, which needs no script; it begins at the first page, and keeps all other parameters. */
export function OrderingMenu({ choices, parameters }: MenuProperties) {
  const given = readParameter(parameters, parameter);
  const selected =
    choices.find(({ value }) => value === given) ?? choices.find(({ isDefault }) => isDefault);
  const others = parameters.filter(([name]) => name !== parameter && name !== 'page');
  return (
    <form class="menu" method="get">
      {others.map(([name, value]) => (
        <input type="hidden" name={name} value={value} />
      ))}
      <label for="ordering">Order</label>
      <select id="ordering" name={parameter}>
        {selected ? undefined : <option value="">As it comes</option>}
        {choices.map(({ value, title }) => (
          <option value={value} selected={value === selected?.value}>
            {title}
          </option>
        ))}
      </select>
      <button type="submit">Show</button>
    </form>
  );
}
