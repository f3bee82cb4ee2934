// A reporter of vitest: writes the results of a run to a file, which CI summarizes at its end.
import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';

/**
 * Writes the numbers of passed and failed tests to the file CI_RESULTS, then one line for each failure.
 * A failed hook or file counts as one failure: its tests did not run.
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

/** With the file, the kind of error and the stack: an unhandled error belongs to no test. */
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
