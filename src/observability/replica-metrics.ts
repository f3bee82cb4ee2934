// What is measured of standbys.
import { Counter, Gauge, type Registry } from 'prom-client';
import { type Replicas, reasons } from '../database/replicas.ts';

export function measureReplicas(
  registry: Registry,
  replicas: Pick<Replicas, 'lagOf' | 'primaryReads' | 'reads' | 'standbys'>,
): void {
  const registers = [registry];
  const gauge = (
    name: string,
    help: string,
    aggregator: 'max' | 'min',
    read: (standby: Replicas['standbys'][number]) => number,
  ) =>
    new Gauge({
      name,
      help,
      aggregator,
      labelNames: ['standby'],
      registers,
      collect() {
        for (const standby of replicas.standbys) this.set({ standby: standby.name }, read(standby));
      },
    });
  gauge(
    'gateway_standby_used',
    'Whether the standby is read from: 1 or 0.',
    'min',
    ({ problem }) => (problem ? 0 : 1),
  );
  gauge(
    'gateway_standby_lag_seconds',
    'For how long the standby has lacked what was to be read.',
    'max',
    (standby) => replicas.lagOf(standby) / 1000,
  );
  new Counter({
    name: 'gateway_standby_reads_total',
    help: 'Queries that were read from the standby.',
    labelNames: ['standby'],
    registers,
    collect() {
      this.reset();
      for (const [{ name }, count] of replicas.reads) this.inc({ standby: name }, count);
    },
  });
  new Counter({
    name: 'gateway_primary_reads_total',
    help: 'Queries that were read from the primary although there are standbys, by reason.',
    labelNames: ['reason'],
    registers,
    collect() {
      this.reset();
      for (const reason of reasons) this.inc({ reason }, replicas.primaryReads[reason]);
    },
  });
}
