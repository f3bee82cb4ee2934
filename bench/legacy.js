// What LEGACY_MODE costs: the way through the gateway to an old service, and comparing beside answers.
import { restList } from './requests.js';
import { latency, throughput } from './sides.js';

/**
 * @param {import('./systems.js').Systems} systems
 * @returns {import('./compare.js').Comparison[]}
 */
export function listLegacy({ gateway, memory, shadow, mirror }) {
  const page = [restList()];
  return [
    {
      name: 'LEGACY_MODE=shadow, nothing compared, median latency',
      against: 'the old service asked directly',
      unit: 'ms',
      target: undefined,
      subject: latency('REST page 1, through shadow', shadow, page),
      reference: latency('REST page 1, old service asked directly', memory, page),
    },
    {
      name: 'LEGACY_MODE=mirror, 10 % compared',
      against: 'LEGACY_MODE=off',
      unit: 'requests/s',
      target: undefined,
      subject: throughput('REST page 1 from cache, LEGACY_MODE=mirror', mirror, page),
      reference: throughput('REST page 1, LEGACY_MODE=off', gateway, page),
    },
  ];
}
