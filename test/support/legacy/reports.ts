// verify and replay called as functions, with the report that --json writes.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Command } from '../../../src/commands/command.ts';
import { callCommand } from '../cli/commands.ts';
import { makeFolder } from '../cli/folder.ts';

interface Group {
  readonly kind: string;
  readonly where?: string;
  readonly times: number;
  readonly examples: readonly { readonly sentence: string }[];
}
interface Written {
  readonly same: boolean;
  readonly broken?: string;
  readonly differences: readonly Group[];
  readonly accepted: readonly Group[];
}

/** In what a listing of Django REST Framework differs, as it was decided. */
export const decided = ['fraction', 'previous-page-1', 'several-orderings', 'unknown-ordering'];
export const accept = (...kinds: string[]) => kinds.flatMap((kind) => ['--accept', kind]);
export const kindsOf = (groups: readonly Group[] = []) =>
  [...new Set(groups.map(({ kind }) => kind))].sort();

/** Waits for nothing before it asks again. The report is null where none was written. */
export async function compare(
  command: Command,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  input?: string,
) {
  const json = join(makeFolder(onTestFinished), 'report.json');
  const all = ['--wait', '0', '--json', json, ...args];
  const result = await callCommand(command, all, environment, input);
  const report: Written | null = existsSync(json) ? JSON.parse(readFileSync(json, 'utf8')) : null;
  const named = report?.differences.map(({ kind, where }) => (where ? `${kind} ${where}` : kind));
  return { ...result, report, named };
}
