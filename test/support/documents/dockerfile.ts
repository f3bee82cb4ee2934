// The Dockerfile, read as Docker reads it: continued lines, comments, arguments.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './page.ts';

export interface Instruction {
  readonly name: string;
  readonly value: string;
}

/** The stages of the Dockerfile, from FROM to FROM, and the arguments before the first one. */
export function readDockerfile() {
  const text = readFileSync(join(root, 'Dockerfile'), 'utf8')
    .replace(/^#.*\n/gm, '')
    .replace(/\\\n/g, '');
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  const instructions = lines.map((line): Instruction => {
    const [, name = '', value = ''] = /^([A-Z]+) (.+)$/.exec(line) ?? [];
    if (!name) throw new Error(`The Dockerfile has a line that is no instruction: ${line}`);
    return { name, value };
  });
  const stages: Instruction[][] = [];
  const before: Instruction[] = [];
  for (const one of instructions) {
    if (one.name === 'FROM') stages.push([]);
    (stages.at(-1) ?? before).push(one);
  }
  return { before, stages };
}

/** The values of an instruction; those of ENV, ARG and LABEL as pairs. */
export const valuesOf = (stage: readonly Instruction[], instruction: string): string[] =>
  stage.filter(({ name }) => name === instruction).map(({ value }) => value);

export const pairsOf = (stage: readonly Instruction[], instruction: string) =>
  Object.fromEntries(
    valuesOf(stage, instruction)
      .flatMap((value) => [...value.matchAll(/([\w.]+)(?:=(?:"([^"]*)"|(\S*)))?/g)])
      .map(([, name = '', quoted, plain = '']) => [name, quoted ?? plain]),
  );
