// A moment as the interface has it, written by hand.

/** @param {string} text microseconds, which pg gives as text */
export function showMoment(text) {
  const micros = Number(text);
  const whole = new Date(Math.floor(micros / 1e6) * 1000).toISOString().slice(0, 19);
  return `${whole}.${String(micros % 1e6).padStart(6, '0')}Z`;
}
