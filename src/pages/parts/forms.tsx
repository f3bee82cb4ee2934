// Forms of a list: search with filters, and the number of a page. They work without a script, and are in the address.
import type { ComponentChildren } from 'preact';
import { type QueryParameters, readParameter } from '../../rest/url.ts';
import { KeptParameters, type Ordering, OrderingSelect } from './list.tsx';

interface SearchProperties {
  readonly orderings: readonly Ordering[];
  readonly parameters: QueryParameters;
}

/** Its names are the variables of the stored document. */
export function SearchForm({ orderings, parameters }: SearchProperties) {
  const given = (name: string) => readParameter(parameters, name);
  const names = ['hashtag', 'likes_from', 'created_from', 'created_before', 'video', 'device'];
  const date = (name: string) => <input id={name} type="date" name={name} value={given(name)} />;
  return (
    <search class="search">
      <form method="get">
        <div class="menu">
          <label for="search">Words</label>
          <input id="search" type="search" name="search" maxLength={100} value={given('search')} />
          <OrderingSelect orderings={orderings} parameters={parameters} />
          <button type="submit">Show</button>
        </div>
        <details open={names.some(given)}>
          <summary>Filters</summary>
          <div class="filters">
            <Field id="hashtag" label="Hashtag">
              <input id="hashtag" name="hashtag" value={given('hashtag')} />
            </Field>
            <Field id="likes_from" label="Likes, at least">
              <input
                {...{ id: 'likes_from', name: 'likes_from', value: given('likes_from') }}
                type="number"
                min={0}
              />
            </Field>
            <Field id="created_from" label="Published from">
              {date('created_from')}
            </Field>
            <Field id="created_before" label="Published before">
              {date('created_before')}
            </Field>
            <Field id="video" label="Video">
              <Select
                {...{ id: 'video', given: given('video') }}
                choices={{ '': 'With or without', true: 'With a video', false: 'Without a video' }}
              />
            </Field>
            <Field id="device" label="Published on">
              <Select
                {...{ id: 'device', given: given('device') }}
                choices={{
                  '': 'Any device',
                  ios: 'iPhone or iPad',
                  android: 'Android',
                  web: 'Web',
                }}
              />
            </Field>
          </div>
        </details>
      </form>
    </search>
  );
}

interface FieldProperties {
  /** Of the control. */
  readonly id: string;
  readonly label: string;
  readonly children: ComponentChildren;
}

const Field = ({ id, label, children }: FieldProperties) => (
  <div>
    <label for={id}>{label}</label>
    {children}
  </div>
);

interface SelectProperties {
  readonly id: string;
  readonly given: string | undefined;
  /** Titles by values. */
  readonly choices: Readonly<Record<string, string>>;
}

const Select = ({ id, given, choices }: SelectProperties) => (
  <select id={id} name={id}>
    {Object.entries(choices).map(([value, title]) => (
      <option value={value} selected={value === given}>
        {title}
      </option>
    ))}
  </select>
);

interface PageFormProperties {
  readonly parameters: QueryParameters;
  readonly page: number;
  readonly pages: number;
}

export function PageForm({ parameters, page, pages }: PageFormProperties) {
  return (
    <form class="menu" method="get">
      <KeptParameters parameters={parameters} names={['page']} />
      <label for="page">Go to page</label>
      <input id="page" type="number" name="page" min={1} max={pages} value={page} />
      <button type="submit">Go</button>
    </form>
  );
}
