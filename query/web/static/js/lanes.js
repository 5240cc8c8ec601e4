// The lanes of an object: for each medium what was known over time, with the events, the losses, and a slider for the moment.
import { breaks } from './causes.js';
import { scale, sized, timeAxis } from './chart.js';
import { asTable, h, replace, s, table } from './dom.js';
import { legend } from './parts.js';
import { clock, iso, moment, span, text, whenOf, words } from './text.js';

const lane = 30; // height
const names = 64; // width of the names
// mostMedia are drawn.
export const mostMedia = 12;

// lanes draws into a node. lines are of a history, times their places in ms. move(when) is called as the slider moves, open(when) when
// a moment is chosen. What it returns is told the moment, as in a link, and the line that it lies at.
export function lanes(node, { lines, times, signal, move, open }) {
  if (lines.length === 0) return null;
  const media = [...new Set(lines.flatMap((l) => Object.keys(l.media)))].slice(0, mostMedia);
  const first = times.find((t) => t > -Infinity) ?? 0;
  const newest = times.at(-1);
  const margin = Math.max(20, (newest - first) * 0.03);
  const [a, b] = [Math.floor(first - margin), Math.ceil(newest + margin)];
  const holder = h('div', { class: 'chart lanes' });
  const slider = h('input', { type: 'range', class: 'moment', min: a, max: b, step: Math.max(1, Math.round((b - a) / 2000)), value: b, 'aria-label': 'At this moment', oninput: () => {
    move(iso(Number(slider.value)));
  } });
  const shown = h('output', { class: 'at' });
  let at = b;
  const x = { f: null };
  const draw = sized(holder, signal, (width) => {
    x.f = scale(a, b, names, width - 8);
    replace(holder, picture(width, x.f));
    place();
  });
  const place = () => {
    const line = holder.querySelector('.cursor');
    if (line) line.setAttribute('transform', `translate(${x.f(Math.max(a, Math.min(b, at)))} 0)`);
  };

  function picture(width, f) {
    const height = media.length * lane + 40;
    const svg = s('svg', { width, height, role: 'img', 'aria-label': `What was known of ${media.length} media from ${moment(iso(first))} to ${moment(iso(newest))}`, onclick: (e) => {
      const box = svg.getBoundingClientRect();
      if (e.clientX - box.left >= names) open(iso(Math.round(f.back(e.clientX - box.left))));
    } });
    media.forEach((m, i) => svg.append(track(m, 8 + i * lane, f, width)));
    lines.forEach((l, i) => {
      if (l.kind === 'mark') svg.append(mark(l, f(times[i]), height - 30));
      else if (l.kind === 'cleared') svg.append(s('line', { class: 'clear', x1: f(times[i]), x2: f(times[i]), y1: 4, y2: height - 30 }));
    });
    svg.append(timeAxis(f, a, b, height - 28, width - names), s('g', { class: 'cursor' }, s('line', { x1: 0, x2: 0, y1: 0, y2: height - 26 }), s('path', { d: 'M-5 0H5L0 6Z' })));
    return svg;
  }

  // track is one medium: a bar for each stretch between two lines, and a tick for each event about it.
  function track(name, y, f, width) {
    const g = s('g', { class: 'track' }, s('text', { x: 0, y: y + 15, class: 'name' }, text(name, 9)));
    for (let i = 0; i < lines.length; i++) {
      const m = lines[i].media[name];
      if (!m) continue;
      let j = i + 1; // the next line with another state
      while (j < lines.length && same(lines[j].media[name], m)) j++;
      const from = f(times[i]);
      const to = j < lines.length ? f(times[j]) : width - 8;
      const present = m.state === 'present';
      if (to > from) {
        g.append(s('rect', { x: from, width: to - from, y: y + (present ? 2 : 15), height: present ? 18 : 5, class: `${m.state} ${m.certainty}` },
          s('title', null, `${text(name, 40)}: ${m.state}, ${m.certainty}${m.doubt ? ` (${words(m.doubt.cause)})` : ''}, from ${clock(iso(times[i]))}${j < lines.length ? ` for ${span(times[j] - times[i])}` : ''}`)));
      }
      i = j - 1;
    }
    lines.forEach((l, i) => {
      if (l.medium === name) g.append(s('path', { class: `event ${l.kind}`, d: l.kind === 'removed' || l.state === 'absent' ? `M${f(times[i]) - 3} ${y - 1}h6l-3 5Z` : `M${f(times[i])} ${y - 2}v24` }, s('title', null, `${l.kind} ${text(name, 40)}, ${l.seq !== undefined ? `seq ${l.epoch}/${l.seq}` : `offset ${l.offset}`}, ${moment(l.time ?? l.received)}`)));
    });
    return g;
  }

  const rect = (c) => s('rect', { x: 0.5, y: 0.5, width: 11, height: 11, class: c });
  replace(node, holder, h('div', { class: 'slide' }, h('p', null, h('span', { class: 'note' }, 'At this moment: '), shown), slider),
    legend([rect('present confirmed'), 'present'], [rect('present uncertain'), 'present, uncertain'], [s('rect', { x: 0, y: 6, width: 12, height: 5, class: 'absent confirmed' }), 'absent'],
      [s('rect', { x: 0.5, y: 5.5, width: 11, height: 5, class: 'absent uncertain' }), 'absent, uncertain'], [s('path', { class: 'event stored', d: 'M6 0v12' }), 'stored'], [s('path', { class: 'event removed', d: 'M2 3h8l-4 6Z' }), 'removed'], [s('line', { class: 'mark-line', x1: 6, x2: 6, y1: 0, y2: 12 }), 'loss'], [s('line', { class: 'break-line', x1: 6, x2: 6, y1: 0, y2: 12 }), 'restart or break']),
    asTable(() => table(['From (UTC)', ...media.map((m) => text(m, 24))], lines.map((l, i) => [moment(iso(times[i])), ...media.map((m) => (l.media[m] ? `${l.media[m].state}, ${l.media[m].certainty}` : ''))]))));
  draw();
  return {
    moved: (when, i) => {
      const ms = whenOf(when);
      at = when ? ms ?? times[Math.max(0, i ?? 0)] : b;
      if (ms === null || document.activeElement !== slider) slider.value = at;
      slider.setAttribute('aria-valuetext', when ? moment(iso(at)) : 'the newest');
      shown.textContent = !when ? 'the newest' : ms !== null ? moment(iso(ms)) : when.replace(':', ' ');
      place();
    },
    // settled moves the cursor to where the answer lies, where the moment was no time.
    settled: (asOf) => {
      const ms = Date.parse(asOf.time ?? asOf.received);
      if (!/^(offset|seq):/.test(shown.value.replace(' ', ':')) || Number.isNaN(ms)) return;
      shown.textContent += `, ${moment(iso(ms))}`;
      at = ms;
      slider.value = at;
      place();
    },
  };
}

const same = (m, n) => m?.state === n.state && m?.certainty === n.certainty;

function mark(l, x, bottom) {
  return s('g', { class: 'mark', transform: `translate(${x} 0)` }, s('line', { class: breaks.has(l.cause) ? 'break-line' : 'mark-line', x1: 0, x2: 0, y1: 0, y2: bottom }),
    s('title', null, `${words(l.cause)}, ${moment(l.time ?? l.received)}`));
}
