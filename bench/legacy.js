// What LEGACY_MODE costs: the way through the gateway to an old service, and comparing beside answers.
import { restList } from './requests.js';
import { latency, throughput } from './sides.js';

/**
 * @param {import('./systems.js').Systems} systems
 * @returns {import('./compare.js').Comparison[]}
 */
export function listLegacy({ gateway, memory, legacy }) {
  const page = [restList()];
  const { shadow, sampled, mirror } = legacy;
  const [asked, here] = ['old service asked directly', 'REST page 1, LEGACY_MODE=off'];
  return [
    {
      name: 'LEGACY_MODE=shadow, nothing compared, median latency',
      against: 'the old service asked directly',
      unit: 'ms',
      target: undefined,
      subject: latency('REST page 1, through shadow', shadow, page),
      reference: latency(`REST page 1, ${asked}`, memory, page),
    },
    {
      name: 'LEGACY_MODE=shadow, nothing compared',
      against: 'the old service asked directly',
      unit: 'requests/s',
      target: undefined,
      subject: throughput('REST page 1, through shadow', shadow, page),
      reference: throughput(`REST page 1, ${asked}`, memory, page),
    },
    {
      name: 'LEGACY_MODE=shadow, 10 % compared',
      against: 'nothing compared',
      unit: 'requests/s',
      target: undefined,
      subject: throughput('REST page 1, through shadow, compared', sampled, page),
      reference: throughput('REST page 1, through shadow', shadow, page),
    },
    {
      name: 'LEGACY_MODE=mirror, 10 % compared',
      against: 'LEGACY_MODE=off',
      unit: 'requests/s',
      target: undefined,
      subject: throughput('REST page 1 from cache, LEGACY_MODE=mirror', mirror, page),
      reference: throughput(here, gateway, page),
    },
    {
      name: 'LEGACY_MODE=mirror, 10 % compared, median latency',
      against: 'LEGACY_MODE=off',
      unit: 'ms',
      target: undefined,
      subject: latency('REST page 1 from cache, LEGACY_MODE=mirror', mirror, page),
      reference: latency(here, gateway, page),
    },
  ];
}
