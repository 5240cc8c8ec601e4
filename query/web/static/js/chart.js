// What charts share: scales, ticks, and the width of what they are drawn in.
import { s } from './dom.js';
import { clock, iso } from './text.js';

// widths of buckets and steps of time axes, in ms: those of `kvjournal activity`.
const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 10e3, 15e3, 30e3, 60e3, 120e3, 300e3, 600e3, 900e3, 1800e3,
  3600e3, 7200e3, 10800e3, 21600e3, 43200e3, 86400e3, 172800e3, 604800e3, 1209600e3, 2419200e3, 7257600e3, 31449600e3];

// step is the smallest of which at most n cover ms.
export const step = (ms, n) => steps.find((x) => ms / x <= n) ?? ms / n;

// scale maps from [a, b] to [c, d].
export function scale(a, b, c, d) {
  const k = b === a ? 0 : (d - c) / (b - a);
  const f = (v) => c + (v - a) * k;
  f.back = (p) => (k === 0 ? a : a + (p - c) / k);
  return f;
}

// nice is the smallest round number that is not below v; its half is one too.
export function nice(v) {
  v = Math.max(v, 2);
  const p = 10 ** Math.floor(Math.log10(v));
  return [1, 1.6, 2, 3, 4, 5, 6, 8, 10].map((x) => x * p).find((x) => x >= v);
}

// label of a tick at ms, where ticks are d apart.
function label(ms, d) {
  if (d >= 86400e3) return iso(ms).slice(0, 10);
  if (d >= 60e3) return iso(ms).slice(11, 16);
  return d >= 1000 ? iso(ms).slice(11, 19) : clock(ms);
}

// timeAxis draws ticks with labels below y, for a scale x from a to b.
export function timeAxis(x, a, b, y, width) {
  const d = step(b - a, Math.max(2, Math.floor(width / 96)));
  const g = s('g', { class: 'axis' });
  for (let t = Math.ceil(a / d) * d; t <= b; t += d) {
    const at = x(t);
    g.append(s('line', { x1: at, x2: at, y1: y, y2: y + 4 }), s('text', { x: at, y: y + 16, 'text-anchor': at < 30 ? 'start' : at > x(b) - 30 ? 'end' : 'middle' }, label(t, d)));
  }
  return g;
}

// sized calls draw(width) now and whenever the width of a node changes, until signal.
export function sized(node, signal, draw) {
  let last = 0;
  const o = new ResizeObserver(() => {
    const w = Math.floor(node.clientWidth);
    if (w > 0 && w !== last) {
      last = w;
      draw(w);
    }
  });
  o.observe(node);
  signal.addEventListener('abort', () => o.disconnect());
  return () => last > 0 && draw(last);
}
