// The app of docs/clients.md: its files as they stand on the page, generated and type-checked.
import { execFile } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { run } from '../support/cli/process.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const clients = fileURLToPath(new URL('.', import.meta.url));
const packages = join(clients, 'node_modules');

export interface ClientApp {
  readonly folder: string;
  /** What a file of the app exports. */
  load(path: string): Promise<Record<string, unknown>>;
  remove(): void;
}

/** What has been installed here; loaded late, as a test file is read before. */
export const load = createRequire(import.meta.url);

/** @throws when a tool that the page names fails, with what it says */
export async function makeClientApp(): Promise<ClientApp> {
  await install();
  const folder = mkdtempSync(join(tmpdir(), 'outfit-gateway-app-'));
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  for (const [path, text] of filesOfPage()) write(path, text);
  symlinkSync(packages, join(folder, 'node_modules'));
  write('schema.graphql', readFileSync(join(root, 'src/graphql/schema.graphql'), 'utf8'));
  write('package.json', '{"type":"module"}');
  write('tsconfig.json', JSON.stringify({ compilerOptions, include: ['*.ts', 'src'] }));
  // The type of its configuration; the tool itself brings two hundred packages beside those that generate.
  const type = `import type { Types } from '@graphql-codegen/plugin-helpers'; export type CodegenConfig = Types.Config;`;
  write('cli.d.ts', `declare module '@graphql-codegen/cli' { ${type} }`);
  write('persisted-queries.json', '{}');
  for (const name of ['__generated__', '__persisted__']) mkdirSync(join(folder, 'src', name));

  await generate(folder);
  await runTool(folder, packages, 'relay-compiler/cli.js');
  await runTool(folder, packages, 'relay-compiler/cli.js', 'relay.persisted.json');
  // The app, and the tests beside this file, which npm run check leaves out.
  for (const checked of ['.', clients]) {
    await runTool(folder, join(root, 'node_modules'), 'typescript/bin/tsc', '-p', checked);
  }
  // What babel-plugin-relay makes of the file once it is bundled.
  const relay = join(folder, 'src/relay.ts');
  writeFileSync(relay, importArtifacts(readFileSync(relay, 'utf8')));
  return {
    folder,
    load: (path) => import(join(folder, path)),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

const compilerOptions = {
  strict: true,
  target: 'es2022',
  lib: ['es2023', 'dom'],
  module: 'esnext',
  moduleResolution: 'bundler',
  resolveJsonModule: true,
  noEmit: true,
  skipLibCheck: true,
  types: [],
};

/** The blocks of code that have the path of a file as their title. */
function filesOfPage(): [path: string, text: string][] {
  const page = readFileSync(join(root, 'docs/clients.md'), 'utf8');
  return [...page.matchAll(/^```\w+ title="([^"]+)"\n(.*?)^```$/gms)].map(
    ([, path = '', text = '']) => [path, text],
  );
}

/** Installs the packages, if none or others are installed. */
async function install(): Promise<void> {
  const changed = (path: string) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const lock = changed(join(clients, 'package-lock.json'));
  if (changed(join(packages, '.package-lock.json')) > lock) return;
  const options = ['--ignore-scripts', '--no-audit', '--no-fund'];
  await promisify(execFile)('npm', ['ci', ...options], { cwd: clients });
}

interface Output {
  readonly preset?: string;
  readonly plugins?: readonly string[];
  readonly documentTransforms?: readonly object[];
  readonly config: object;
}

/** Generates what graphql-codegen makes of the configuration of the page. */
async function generate(folder: string): Promise<void> {
  // The graphql that is installed here: schemas of another one are not taken.
  const { buildASTSchema, parse } = load('graphql');
  const { codegen } = load('@graphql-codegen/core');
  const { preset } = load('@graphql-codegen/client-preset');
  const { default: config } = await import(join(folder, 'codegen.ts'));
  const schema = parse(readFileSync(join(folder, config.schema), 'utf8'));
  const source = readFileSync(join(folder, config.documents), 'utf8');
  const documents = [...source.matchAll(/\bgraphql\(`(.*?)`\)/gs)].map(([, rawSDL = '']) => {
    return { location: config.documents, rawSDL, document: parse(rawSDL) };
  });
  const shared = { schema, schemaAst: buildASTSchema(schema), documents };
  for (const [output, { config: settings, ...own }] of Object.entries<Output>(config.generates)) {
    const pluginMap = Object.fromEntries(
      (own.plugins ?? []).map((name) => [name, load(`@graphql-codegen/${name}`)]),
    );
    const plugins = Object.keys(pluginMap).map((name) => ({ [name]: {} }));
    const transforms = own.documentTransforms ?? [];
    const documentTransforms = transforms.map((transformObject) => ({ transformObject }));
    const options = { ...shared, config: settings, plugins, pluginMap, documentTransforms };
    const sections = own.preset
      ? await preset.buildGeneratesSection({ ...own, ...options, baseOutputDir: output })
      : [{ ...options, filename: output }];
    for (const section of sections) {
      const file = join(folder, section.filename);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, await codegen(section));
    }
  }
}

async function runTool(
  folder: string,
  installed: string,
  tool: string,
  ...args: string[]
): Promise<void> {
  const { ended, errors, output } = run([join(installed, tool), ...args], {}, folder);
  const code = await ended;
  if (code !== 0) throw new Error(`${tool} ended with ${code}: ${output()}${errors()}`);
}

/** Puts the compiled document in place of each text of one. */
function importArtifacts(text: string): string {
  const names: string[] = [];
  const body = text.replace(
    /\bgraphql`\s*(?:query|mutation|fragment) (\w+)[^`]*`/g,
    (_document, name: string) => {
      names.push(name);
      return `${name}Artifact`;
    },
  );
  const imports = names.map(
    (name) => `import ${name}Artifact from './__generated__/${name}.graphql';\n`,
  );
  return imports.join('') + body;
}
