// What is changed in Yoga's page of GraphiQL: it knows no phone, no history, no readers of the screen.
import { examples } from './graphiql-examples.ts';
import { preparePage } from './graphiql-page.js';
import { style } from './graphiql-style.ts';

// Comments are allowed there, and sent nowhere.
const headersHint = `// Reading needs no token. To write,
// take that of your sign-in, or make
// one, with AUTH_JWT_SECRET set:
//   outfit-gateway token --user 1
// (in a checkout of the sources:
//   npm run token -- --user 1).
// It is kept nowhere.
// { "Authorization": "Bearer ..." }
`;

/** What is found once in the page, and what it becomes: of a pattern, with its first group. */
type Change = readonly [
  found: RegExp | string,
  change: string | ((found: string, group: string) => string),
];

/** Colours of code that can be read on the backgrounds behind it. */
const codeColors: readonly Change[] = [
  [
    'rules:[{token:"argument.identifier.gql",foreground:"#908aff"}',
    'rules:[{token:"argument.identifier.gql",foreground:"#a9a4ff"},{token:"comment",foreground:"#8fbf7a"}',
  ],
  [
    'rules:[{token:"argument.identifier.gql",foreground:"#6c69ce"}',
    'rules:[{token:"argument.identifier.gql",foreground:"#5551c4"},{token:"number",foreground:"#06613f"}',
  ],
];

/**
 * The tabs are a list of buttons: the roles of tabs allow no second button in one, such as that which
 * closes it, and promise arrow keys.
 */
const tabRoles: readonly Change[] = [
  ['axis:"x",role:"tablist",', 'axis:"x",'],
  [/"aria-selected":[\w$]+,(?=dragElastic)/, ''],
  ['dragElastic:!1,role:"tab",', 'dragElastic:!1,'],
  [
    /isActive:([\w$]+===[\w$]+),children:\[[\w$]+\.jsx\([\w$]+\.Button,\{/,
    (found, isActive) => `${found}"aria-current":${isActive},`,
  ],
  ['{role:"tabpanel",', '{role:"region",'],
];

/** A question of the history is called by its own name. */
const historyLabel: Change = [
  /(className:"graphiql-history-item-label",onClick:[\w$]+),"aria-label":"Set active"/,
  (_found, rest) => rest,
];

/** What stands in the page around the bundle. */
const frame: readonly Change[] = [
  [
    '<meta charset="utf-8" />',
    (found) => `${found}<meta name="viewport" content="width=device-width, initial-scale=1" />`,
  ],
  ['</head>', (found) => `<style>${style}</style>${found}`],
  [
    '<div id="root"></div>',
    '<header class="gateway-hidden"><h1>Outfit gateway: GraphiQL</h1></header><main id="root"></main>',
  ],
];

/**
 * Completes the page.
 * @param options that it was made with
 * @param hasSchema whether the schema can be had below it
 * @throws when another version of the bundle is made otherwise
 */
export function completePage(html: string, options: object, hasSchema: boolean): string {
  const given = JSON.stringify(options);
  const variables = "variables: new URLSearchParams(location.search).get('variables') ?? undefined";
  const page = JSON.stringify({ examples, hasSchema, headersHint });
  const [history = ''] = find(html, /const ([\w$]+)=\{title:"History",/).groups;
  const changes: readonly Change[] = [
    ...frame,
    ...codeColors,
    ...tabRoles,
    historyLabel,
    [/plugins:\[(?=[\w$]+\],schemaDescription:)/, (found) => `${found}${history},`],
    [
      /globalThis\.__MONACO=([\w$]+),/,
      (found, monaco) => `${found}globalThis.gatewayEditors(${monaco}),`,
    ],
    ['<script>', (found) => `${found}globalThis.graphiqlOptions = (${preparePage})(${page});`],
    [given, `{ ...${given}, ${variables}, ...globalThis.graphiqlOptions }`],
  ];
  const places = changes
    .map(([found, change]) => {
      const { start, text, groups } = find(html, found);
      const becomes = typeof change === 'string' ? change : change(text, groups[0] ?? '');
      return { start, end: start + text.length, becomes };
    })
    .sort((a, b) => a.start - b.start);
  // Copied once, not for each change: it has 9 MB, and nobody else is answered meanwhile.
  let completed = '';
  let copied = 0;
  for (const { start, end, becomes } of places) {
    completed += html.slice(copied, start) + becomes;
    copied = end;
  }
  return completed + html.slice(copied);
}

function find(html: string, found: RegExp | string) {
  if (typeof found === 'string') {
    const start = html.indexOf(found);
    if (start !== -1) return { start, text: found, groups: [] };
  } else {
    const match = found.exec(html);
    if (match) return { start: match.index, text: match[0], groups: match.slice(1) };
  }
  throw new Error(`The page of GraphiQL has no ${found}.`);
}
