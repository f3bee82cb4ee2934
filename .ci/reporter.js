// A reporter of vitest for CI: what a run leaves for the end of CI, where it is found again.
import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';

/**
 * Writes to the file that CI_RESULTS names how many tests passed and failed, and then what failed, a line each.
 * A hook or a file that failed counts as one: its tests did not run.
 */
export default class {
  onTestRunEnd(modules, unhandledErrors) {
    const failures = [
      ...modules.flatMap(failuresOf),
      ...unhandledErrors.map((error) => `outside of the tests: ${describeUnhandled(error)}`),
    ];
    const passed = modules.flatMap((module) => [...module.children.allTests('passed')]).length;
    const lines = [
      `${passed} ${failures.length}`,
      ...failures.map((line) => `FAILED: ${line}`),
      '',
    ];
    writeFileSync(process.env.CI_RESULTS, lines.join('\n'));
  }
}

function failuresOf(module) {
  const file = relative('', module.moduleId);
  const of = (name, errors) => errors.map((error) => `${file}: ${name}: ${firstLine(error)}`);
  return [
    ...of('the file', module.errors()),
    ...[...module.children.allSuites()].flatMap((suite) =>
      of(`a hook of ${suite.fullName}`, suite.errors()),
    ),
    ...[...module.children.allTests('failed')].map(
      (test) => of(test.fullName, test.result().errors)[0],
    ),
  ];
}

/** With the file that ran, the kind of error, and the frames of its stack: no test says where it comes from. */
function describeUnhandled(error) {
  const frames = (error.stack ?? '').split('\n').filter((line) => /^\s+(at|❯) /.test(line));
  const places = frames.slice(0, 12).map((line) => line.trim());
  return [firstLine(error), error.type, error.VITEST_TEST_PATH, error.VITEST_TEST_NAME, ...places]
    .filter((part) => part !== undefined)
    .join(' | ')
    .replaceAll(`${process.cwd()}/`, '');
}

function firstLine({ name, message }) {
  return `${name}: ${message.split('\n', 1)[0]}`;
}
