// A page of the documents: what it says to type, and what that prints.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../../../', import.meta.url));

/** README.md, and every page below docs/. */
export const pages = ['README.md', ...readdirSync(join(root, 'docs')).map((name) => `docs/${name}`)]
  .filter((name) => name.endsWith('.md'))
  .sort();

/** As GitHub makes them of headings. */
const anchorsOf = (text: string) =>
  [...text.replace(/^```.*?^```/gms, '').matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );

/** Links of a page, or of all pages below a folder, that lead out of `top`, or to a file or heading that is missing. */
export function deadLinks(top: string, name = '.'): string[] {
  if (statSync(join(top, name)).isDirectory()) {
    return readdirSync(join(top, name))
      .filter((entry) => !/\.(?!md$)/.test(entry) && entry !== 'dist')
      .flatMap((entry) => deadLinks(top, join(name, entry)));
  }
  if (!name.endsWith('.md')) return [];
  const links = readFileSync(join(top, name), 'utf8').matchAll(
    /\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)/g,
  );
  return [...links].flatMap(([link, path = '', anchor]) => {
    const target = path ? join(dirname(name), path) : name;
    const isThere =
      !target.startsWith('..') &&
      existsSync(join(top, target)) &&
      (anchor === undefined || anchorsOf(readFileSync(join(top, target), 'utf8')).includes(anchor));
    return isThere ? [] : [`${name}: ${link}`];
  });
}

/** What cannot be typed in here, and why; a test says when a line is no longer needed. */
export const notRun: readonly (readonly [command: RegExp, reason: string])[] = [
  [/^npm install (?!\.)|^cd examples/, 'test/examples/ runs the tools that are installed'],
  [
    /npm run package|outfit-gateway-[\d.]+\.t(?:ar\.)?gz|^npx outfit-gateway$/,
    'test/process/package.soak.test.ts makes and runs it',
  ],
  [/^npm run -s drill/, 'test/documents/running.soak.test.ts runs it'],
  [
    /^(?:pg_dump|createdb|pg_restore|psql) /,
    'test/documents/running.soak.test.ts runs them where they are',
  ],
  [/outfits\.tar\.gz/, 'test/documents/running.soak.test.ts runs them in a folder of its own'],
  [
    /^docker |\ndocker |^kubectl /,
    'there is no Docker where tests run: test/process/image.soak.test.ts replays the Dockerfile, test/documents/deploy.test.ts reads the manifests',
  ],
  [
    /systemctl /,
    'there is no systemd where tests run: test/process/rolling-restart.faults.test.ts restarts the processes behind deploy/haproxy.cfg',
  ],
];

export interface Step {
  /** Where it stands, such as `README.md:12`. */
  readonly place: string;
  readonly command: string;
  /** What it prints; `…` stands for anything. A page that does not say it says that it prints nothing. */
  readonly output?: string;
  /** A reader does not see it, so it may print what it will. */
  readonly isHidden?: true;
}

export interface Page {
  readonly text: string;
  readonly steps: readonly Step[];
}

/** Files and code, which are no commands; those of clients are run by tests of their own. */
const contents = new Set([
  ...['ts', 'js', 'js graphql-sse', 'js graphql-ws', 'js query', 'js apollo-ws', 'js relay'],
  ...['js urql', 'js apollo', 'graphql stored', 'http', 'nginx', 'yaml', 'sql'],
]);
const outputs = new Set(['', 'text', 'json', 'jsonc']);

/** A comment with a command that readers need not see, or a block. */
const parts = /^<!-- run: (?<hidden>.+?) -->$|^ *```(?<language>[^\n`]*)\n(?<body>.*?)^ *```$/gms;

/**
 * `sh` is run, and the block of text or JSON that follows is its output. A line of `console` that begins with `$ `
 * is run, and the lines below it are its output. `graphql` is sent to the gateway, with `$TOKEN` if the
 * page has made one.
 *
 * @param text what the page says, when it is not that of the file
 * @throws if it is not known how to run a block
 */
export function readPage(name: string, text = readFileSync(join(root, name), 'utf8')): Page {
  const steps: Step[] = [];
  // Whether a block of output belongs to the last step.
  let isOpen = false;
  for (const { groups = {}, index } of text.matchAll(parts)) {
    const place = `${name}:${text.slice(0, index).split('\n').length}`;
    const { language = '', body = '', hidden } = groups;
    if (outputs.has(language) && !hidden) {
      const last = isOpen ? steps.pop() : undefined;
      if (!last) throw new Error(`${place}: nothing before this block prints it.`);
      steps.push({ ...last, output: body });
      isOpen = false;
    } else if (language === 'console') {
      steps.push(...readSession(place, body));
      isOpen = false;
    } else if (hidden || language === 'sh' || language === 'graphql') {
      const command = hidden ?? (language === 'sh' ? body.trim() : sendQuery(body));
      steps.push({ place, command, ...(hidden ? { isHidden: true } : {}) });
      isOpen = !hidden;
    } else if (!contents.has(language) && !language.includes(' title=')) {
      throw new Error(`${place}: it is not known how to run a block of "${language}".`);
    }
  }
  return { text, steps };
}

function readSession(place: string, text: string): Step[] {
  return text
    .split(/^\$ /m)
    .slice(1)
    .map((part) => {
      const [, command = '', output = ''] = /^((?:[^\n]*\\\n)*[^\n]*\n)(.*)$/s.exec(part) ?? [];
      return { place, command: command.trim(), ...(output.trim() ? { output } : {}) };
    });
}

function sendQuery(query: string): string {
  const body = JSON.stringify({ query }).replaceAll("'", "'\\''");
  const token = `\${TOKEN:+-H "Authorization: Bearer $TOKEN"}`;
  return `curl "http://localhost:$PORT/graphql" -H 'Content-Type: application/json' ${token} -d '${body}'`;
}

/** Whether something prints what a page says: `…` is anything, JSON may be indented, and times are of a day. */
export function isPrinted(expected: string, actual: string): boolean {
  // A line of the log begins with its time, in brackets.
  const isJson = /^\s*(?:\{|\[(?!\d\d:))/.test(expected);
  const [said, printed] = (isJson ? [expected, actual].map(compact) : [expected, actual]).map(
    (text) => forgetChance(text ?? '').trim(),
  );
  const pattern = (said ?? '')
    // On a line of its own it is any number of lines.
    .replace(/^…\n|\n…+$/gm, '…')
    .split('…')
    .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    .join('[^]*?');
  return new RegExp(`^${pattern}$`).test(printed ?? '');
}

/** Without the spaces and comments between the values of JSON; a comment with `…` stands for what is left out. */
const compact = (text: string) =>
  text.replace(
    /("(?:[^"\\\n]|\\.)*")|\/\/[^\n]*…[^\n]*|\s+/g,
    (match, value?: string) => value ?? (match.startsWith('//') ? '…' : ''),
  );

const forgetChance = (text: string) =>
  text
    .replaceAll('\r', '')
    .replace(/\b\d+\.\d s\b( \([\d,]+ per second\))?/g, 'TIME')
    // Commands that take long tell how far they are.
    .replace(/^[\d,]+ \w+ \w+, [\d,]+ per second.*\n/gm, '')
    .replace(/^\d{4}-\d\d-\d\dT[\d:.]+Z(?= )/gm, 'TIME')
    // The log on a terminal.
    .replace(/^\[\d\d:\d\d:\d\d\](?= [A-Z]+)/gm, 'TIME');
