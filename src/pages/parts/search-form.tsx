// The form of /outfits/: its fields, and what is wrong with them in words that name what a person sees.
import type { Spelling } from '../../outfits/ordering.ts';
import { type QueryParameters, readParameter } from '../../rest/variables.ts';
import { type Message, messagesOf, type PageProperties } from './answer.tsx';

interface Field {
  readonly label: string;
  readonly rule: string;
  readonly type?: 'date' | 'number' | 'search';
  /** Titles by values. */
  readonly choices?: Readonly<Record<string, string>>;
}

const orderings: Readonly<Record<Spelling, string>> = {
  '-created': 'Newest first',
  created: 'Oldest first',
  '-like_count': 'Most likes first',
  like_count: 'Fewest likes first',
  '-modified': 'Most recently changed first',
  modified: 'Least recently changed first',
  '-id': 'Highest id first',
  id: 'Lowest id first',
};

const choose = { rule: 'Choose one of the list.' };
const date = { rule: 'Enter a date, such as 2024-05-31.', type: 'date' } as const;

const filters: Readonly<Record<string, Field>> = {
  hashtag: { label: 'Hashtag', rule: 'Use up to 100 letters, digits and underscores.' },
  likes_from: { label: 'Likes, at least', rule: 'Enter a whole number from 0.', type: 'number' },
  created_from: { label: 'Published from', ...date },
  created_before: { label: 'Published before', ...date },
  video: {
    ...{ label: 'Video', ...choose },
    choices: { '': 'With or without', true: 'With a video', false: 'Without a video' },
  },
  device: {
    ...{ label: 'Published on', ...choose },
    choices: { '': 'Any device', ios: 'iPhone or iPad', android: 'Android', web: 'Web' },
  },
};

const fields: Readonly<Record<string, Field>> = {
  search: {
    ...{ label: 'Search', type: 'search' },
    rule: 'Use words of three characters or more (one is enough in Chinese, Japanese, Korean and Thai), at most 100 characters together.',
  },
  ordering: { label: 'Order', choices: orderings, ...choose },
  ...filters,
};

/** What is wrong, by fields. An error of a condition begins with its name in GraphQL, such as likesFrom. */
export function problemsOf(json: unknown): Message[] {
  return messagesOf(json).map(({ field, message }) => {
    const text = message.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    const name = field ?? Object.keys(fields).find((one) => text.startsWith(one));
    const { label = field, rule = message } = fields[name ?? ''] ?? {};
    return { id: name, field: label, message: rule };
  });
}

/** What makes a list, without empty fields and the number of the page. */
export function searchOf(parameters: QueryParameters): QueryParameters {
  const names = [...Object.keys(fields), 'user'];
  return parameters.filter(([name, value]) => value !== '' && names.includes(name));
}

/** Its names are the variables of the stored document. */
export function SearchForm({ answer, parameters }: PageProperties) {
  const given = (name: string) => readParameter(parameters, name);
  const wrong = answer.status < 400 ? [] : problemsOf(answer.json).map(({ id }) => id);
  const control = (name: string) => {
    const isWrong = wrong.includes(name);
    const { type = 'text', choices } = fields[name] ?? {};
    const attributes = {
      ...{ id: name, name, value: given(name) },
      ...(isWrong && ({ 'aria-invalid': true, 'aria-describedby': `problem-${name}` } as const)),
    };
    // A control for numbers or dates would not show what is neither.
    if (!choices) return <input {...attributes} type={(isWrong ? 'text' : type) as 'text'} />;
    return (
      <select {...attributes}>
        {Object.entries(choices).map(([value, title]) => (
          <option value={value} selected={value === given(name)}>
            {title}
          </option>
        ))}
      </select>
    );
  };
  return (
    <search>
      <form method="get">
        {given('user') && <input type="hidden" name="user" value={given('user')} />}
        <div class="menu">
          <label for="search" class="hidden">
            Search
          </label>
          {control('search')}
          <button type="submit">Search</button>
          <label for="ordering">Order</label>
          {control('ordering')}
        </div>
        <details open={Object.keys(filters).some(given)}>
          <summary>Filters</summary>
          <div class="filters">
            {Object.entries(filters).map(([name, { label }]) => (
              <div>
                <label for={name}>{label}</label>
                {control(name)}
              </div>
            ))}
          </div>
        </details>
      </form>
    </search>
  );
}
