// What LEGACY_MODE costs: the way through the gateway to an old service.
import { restList } from './requests.js';
import { latency } from './sides.js';

/**
 * @param {import('./systems.js').Systems} systems
 * @returns {import('./compare.js').Comparison[]}
 */
export function listLegacy({ memory, shadow }) {
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
  ];
}
