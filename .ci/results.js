// Prints how many tests passed and failed in a run of vitest, and adds what failed to a list, a line each.
//   node .ci/results.js REPORT LIST    REPORT: what the JSON reporter wrote
import { appendFileSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';

const [report = '', list = ''] = process.argv.slice(2);

const { passed, failures } = read();
for (const failure of failures) appendFileSync(list, `FAILED: ${failure}\n`);
console.log(passed, failures.length);

function read() {
  let results;
  try {
    results = JSON.parse(readFileSync(report, 'utf8'));
  } catch {
    return { passed: 0, failures: ['a run that left no results'] };
  }
  return { passed: results.numPassedTests, failures: results.testResults.flatMap(failuresOf) };
}

/** The tests of a file that failed; where none ran to its end, the file. */
function failuresOf({ name, status, message, assertionResults }) {
  const file = relative('', name);
  const failed = assertionResults.filter((test) => test.status === 'failed');
  if (failed.length > 0) {
    return failed.map((test) => `${file}: ${test.fullName}: ${firstLine(test.failureMessages[0])}`);
  }
  return status === 'failed' ? [`${file}: ${firstLine(message) || 'a hook of it failed'}`] : [];
}

function firstLine(text = '') {
  return text.split('\n', 1)[0];
}
