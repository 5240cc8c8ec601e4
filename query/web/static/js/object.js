// Object: one object's media over time, each event, the losses that touch it, and the story of what is known at a moment.
import { all, ask, whereabouts } from './api.js';
import { breaks } from './causes.js';
import { h, replace } from './dom.js';
import { lanes, mostMedia } from './lanes.js';
import * as link from './link.js';
import { answering, bytes, certaintyOf, coded, empty, media, medium, panel, say, sign, titled } from './parts.js';
import { lost } from './losses.js';
import { clock, day, inDir, iso, moment, number, sizeOf, whenOf, words } from './text.js';

export const title = 'Object';

const shownAtOnce = 500; // lines of the history, the newest
const longKey = 600; // characters shown of a key

export async function show({ root, q, signal, keys }) {
  const name = link.nameOf(q);
  if (name.object_key_base64 === undefined) {
    root.append(h('h1', null, 'Object'), empty('Type a key into the search above, or choose one of the ', h('a', { href: '#/objects' }, 'objects'), '.'));
    return undefined;
  }
  titled(name.object_key_base64);
  const head = h('header', { class: 'head object-head' });
  const choices = h('div');
  const answer = h('div', { class: 'answer' });
  const bars = panel('Media over time');
  const story = panel('Why');
  const events = panel('What touched it');
  const long = sizeOf(name.object_key_base64) > longKey;
  replace(head, h('h1', { class: 'key' }, bytes(name.object_key_base64, longKey)), long && h('p', { class: 'note' }, `${number(sizeOf(name.object_key_base64))} bytes, of which the ends are shown`));
  root.append(head, choices, answer, bars.node, h('div', { class: 'columns' }, story.node, events.node));

  let lines = [];
  let never = null;
  let older = 0;
  const read = async (progress) => {
    lines = [];
    await ask('history', { ...name, limit: shownAtOnce, to: q.get('until'), notes: true }, (line) => {
      if (line.kind === 'never') never = line;
      else if (line.kind === 'rest') older = line.older ?? 0;
      else if (line.kind !== 'object') lines.push(line);
    }, { signal, progress });
  };
  if (!(await answering(bars.body, signal, read, 'Reading its history'))) return undefined;
  const scopes = [...new Map(lines.map((l) => [`${l.source}\n${l.backend_id_base64}`, l])).values()];
  if (scopes.length > 1) {
    const chosen = scopes.at(-1);
    replace(choices, h('p', { class: 'note' }, 'Several publishers have it: ', scopes.map((x) => [h('a', { href: link.href('object', link.nameValues(x)) }, bytes(x.backend_id_base64, 30), ` of ${x.source}`), ' '])));
    lines = lines.filter((l) => l.source === chosen.source && l.backend_id_base64 === chosen.backend_id_base64);
  }
  if (never?.elsewhere?.length === 1) {
    link.go('object', link.nameValues(never.elsewhere[0]), true);
    return undefined;
  }
  if (never?.elsewhere?.length > 1) replace(choices, h('p', { class: 'note' }, 'It was seen elsewhere: ', never.elsewhere.map((x) => [h('a', { href: link.href('object', link.nameValues(x)) }, bytes(x.tenant_id_base64, 24), ` of ${x.source}`), ' '])));
  const asked = { ...name, ...scopeOf(lines.at(-1)) };
  replace(head, head.firstChild, head.querySelector('.note'), where(asked, lines));

  const times = timesOf(lines);
  const chart = lanes(bars.body, { lines, times, signal, move: (when) => link.go('object', { ...Object.fromEntries(q), at: when }, true), open: (when) => link.go('object', { ...Object.fromEntries(q), at: when }) });
  const rows = eventRows(events, lines, q, older, (when) => link.go('object', { ...Object.fromEntries(q), at: when }));
  if (lines.length === 0) {
    replace(bars.body, empty('No event that was recorded ever named this object.'));
    if (!never?.elsewhere?.length) replace(choices, h('p', { class: 'note' }, 'This key is not known. ', h('a', { href: prefixLink(name.object_key_base64) }, 'Objects whose key begins with it')));
  }

  let abort = new AbortController();
  signal.addEventListener('abort', () => abort.abort());
  const choose = (when) => {
    abort.abort();
    abort = new AbortController();
    const i = placeOf(lines, times, when);
    chart?.moved(when, i);
    rows.mark(i);
    const mine = abort.signal;
    tell(answer, story.body, { ...asked, at: when }, mine).then((asOf) => {
      if (asOf && !mine.aborted) chart?.settled(asOf);
    });
  };
  const stepTo = (d) => {
    const i = placeOf(lines, times, q.get('at'));
    const at = i === null ? lines.length - 1 : i;
    const to = Math.max(0, Math.min(lines.length - 1, at + d));
    if (lines.length > 0) link.go('object', { ...Object.fromEntries(q), at: `offset:${lines[to].offset}` }, true);
  };
  Object.assign(keys, {
    ArrowLeft: ['the event before', () => stepTo(-1)],
    ArrowRight: ['the next event', () => stepTo(1)],
    0: ['the newest', () => link.go('object', { ...Object.fromEntries(q), at: undefined })],
  });
  choose(q.get('at'));
  return {
    update: (to) => {
      for (const [k, v] of to) if (k !== 'at' && v !== q.get(k)) return false;
      for (const [k] of q) if (k !== 'at' && !to.has(k)) return false;
      q = to;
      choose(q.get('at'));
      return true;
    },
  };
}

const scopeOf = (line) => (line ? { source: line.source, backend_id_base64: line.backend_id_base64, tenant_id_base64: line.tenant_id_base64 } : {});

// timesOf are the places of the lines on the axis, in ms: the publisher's time, or ours; they never go back.
function timesOf(lines) {
  let last = -Infinity;
  return lines.map((l) => {
    const t = Date.parse(l.time ?? l.received ?? NaN);
    if (!Number.isNaN(t)) last = Math.max(last, t);
    return last;
  });
}

// placeOf is the line that a moment lies at or behind: the last one with its offset or time; null: the newest state.
function placeOf(lines, times, when) {
  const offset = /^offset:(\d+)$/.exec(when ?? '')?.[1];
  if (offset !== undefined) return lines.findLastIndex((l) => l.offset <= Number(offset));
  const ms = whenOf(when);
  return ms === null ? null : times.findLastIndex((t) => t <= ms);
}

function where(asked, lines) {
  const group = lines.findLast((l) => l.group_id_base64 !== undefined)?.group_id_base64;
  return h('dl', { class: 'facts inline' },
    [['Tenant', h('a', { href: link.href('objects', { ...link.nameValues({ tenant_id_base64: asked.tenant_id_base64 ?? 'ZGVmYXVsdA==' }) }) }, bytes(asked.tenant_id_base64 ?? 'ZGVmYXVsdA==', 40))],
      asked.source && ['Source', asked.source],
      asked.backend_id_base64 !== undefined && ['Backend', bytes(asked.backend_id_base64, 40)],
      group !== undefined && ['Group', h('a', { href: groupLink(group) }, bytes(group, 60))]].filter(Boolean).map(([k, v]) => h('div', null, h('dt', null, k), h('dd', null, v))));
}

// prefixLink leads to all objects whose key begins like this one, whatever their state.
const prefixLink = (base64) => link.href('objects', { ...link.bytesValues('prefix', base64), state: 'any' });

// groupLink leads to all objects of a group, whatever their state.
const groupLink = (base64) => link.href('objects', { ...link.bytesValues('group', base64), state: 'any' });

// eventRows lists what touched the object, the newest first; mark(i) shows which line the moment lies at.
function eventRows({ body, node }, lines, q, older, open) {
  const made = lines.map((l, i) => eventRow(l, i === lines.length - 1 || day(l.time ?? l.received) !== day(lines[i + 1].time ?? lines[i + 1].received), open));
  if (lines.length === 0) node.remove();
  else {
    replace(body, h('div', { class: 'scroll events', tabindex: '0', role: 'region', 'aria-label': 'What touched it' }, h('table', { class: 'stack' },
      h('thead', null, h('tr', null, ['Time (UTC)', 'What', 'Seq · id', 'State behind it'].map((t) => h('th', { scope: 'col' }, t)))),
      h('tbody', null, made.toReversed()))),
    (older > 0 || q.has('until')) && h('p', { class: 'note' }, older > 0 && h('a', { href: link.href('object', { ...Object.fromEntries(q), until: `offset:${older}` }) }, 'Older'), ' ',
      q.has('until') && h('a', { href: link.href('object', { ...Object.fromEntries(q), until: undefined }) }, 'The newest')));
  }
  return {
    mark: (at) => made.forEach((tr, i) => {
      if (i === at) tr.setAttribute('aria-current', 'true');
      else tr.removeAttribute('aria-current');
    }),
  };
}

function eventRow(l, first, open) {
  const t = l.time ?? l.received;
  const ids = [l.seq !== undefined && `${l.epoch}/${l.seq}`, l.event_id !== undefined && `${l.event_id}`].filter(Boolean).join(' · ');
  return h('tr', { class: l.kind === 'mark' ? `mark ${breaks.has(l.cause) ? 'break-row' : 'loss-row'}` : l.kind, onclick: (e) => !e.target.closest('a') && open(`offset:${l.offset}`) },
    h('td', null, first && h('small', { class: 'day' }, day(t)), h('a', { href: '#', title: `offset ${l.offset}`, onclick: (e) => {
      e.preventDefault();
      open(`offset:${l.offset}`);
    } }, clock(t))),
    h('td', null, whatOf(l)), h('td', { class: 'ids', 'data-label': 'Seq · id' }, ids || `offset ${number(l.offset)}`),
    h('td', { class: 'after' }, media(l.media, 4)));
}

function whatOf(l) {
  switch (l.kind) {
    case 'stored': case 'removed': return [l.kind, ' ', medium(l.medium)];
    case 'correction': return ['the master has it ', l.state, ' on ', medium(l.medium)];
    case 'reading': return 'the master agrees';
    case 'cleared': return l.proves_absence ? 'cleared' : 'cleared, no proof';
    case 'mark': {
      const g = l.gap;
      return [h('span', { class: breaks.has(l.cause) ? 'broken' : 'lost' }, words(l.cause)), g && h('small', null, ' ', h('a', { href: link.href('gaps', { gap: `${g.source}:${g.first_offset_after}:${g.cause}` }) }, lost(g) === 'not known' ? 'the loss' : `${lost(g)} events lost`))];
    }
    default: return l.kind;
  }
}

// tell asks for the story at the moment and shows answer and story. It returns what the answer is as of; undefined: there is none.
async function tell(answer, story, asked, signal) {
  await new Promise((r) => setTimeout(r, 80)); // a slider that is drawn does not ask for each step
  if (signal.aborted) return undefined;
  let out;
  if (!(await answering(story, signal, async () => ([out] = await all('why', asked, { signal }))))) return undefined;
  const a = out.answer;
  const as = out.as_of;
  replace(answer,
    h('div', { class: `verdict ${a.certainty}` }, sign(a.present, a.certainty), h('div', null, h('strong', null, a.present ? 'present' : 'absent'), ' ', certaintyOf(a.certainty),
      h('p', { class: 'note' }, asked.at ? 'at ' : 'as of ', as.time ? moment(as.time) : moment(as.received), `, offset ${number(as.offset)}`, a.silent && '; the master changes things without an event'))),
    Object.entries(a.media).slice(0, mostMedia).map(([name, m]) => h('div', { class: `medium-card ${m.certainty}` }, h('h3', null, sign(m.state === 'present', m.certainty), ' ', medium(name)),
      h('p', null, m.state, ' ', certaintyOf(m.certainty)), h('p', { class: 'note' }, evidence(m)))),
    Object.keys(a.media).length > mostMedia && h('p', { class: 'note' }, `and ${number(Object.keys(a.media).length - mostMedia)} media more`));
  say(`${a.present ? 'present' : 'absent'}, ${a.certainty}, at ${as.time ? moment(as.time) : `offset ${as.offset}`}`);
  replace(story,
    h('ol', { class: 'story' }, out.story.map((x) => h('li', null, coded(x.text), x.offset !== undefined && [' ', h('a', { class: 'ref', href: link.href('timeline', around(x)) }, 'timeline')]))),
    out.would_be_wrong_if?.length > 0 && [h('h3', null, a.certainty === 'uncertain' ? 'What could make it otherwise' : 'It would be wrong if'), h('ul', null, out.would_be_wrong_if.map((t) => h('li', null, coded(t))))],
    out.next?.length > 0 && [h('h3', null, 'Next'), h('ul', null, out.next.map((x) => h('li', null, coded(x.text), x.command && commandLine(x.command))))]);
  return as;
}

// commandLine is a command that can be run as it stands, once it is known where.
function commandLine(text) {
  const node = h('code', { class: 'command' }, text);
  whereabouts().then((dir) => {
    node.textContent = inDir(text, dir);
  });
  return node;
}

function evidence(m) {
  if (m.evidence) {
    const e = m.evidence;
    return `${e.cause === 'event' ? 'event' : words(e.cause)} ${e.seq !== undefined ? `seq ${e.epoch}/${e.seq}` : `offset ${number(e.offset)}`}${e.event_id !== undefined ? `, id ${e.event_id}` : ''}, ${moment(e.time ?? e.received)}`
      + (m.doubt ? `; doubt: ${words(m.doubt.cause)}` : '');
  }
  if (m.doubt) return `doubt: ${words(m.doubt.cause)}${m.doubt.time ? `, ${moment(m.doubt.time)}` : ''}`;
  return '';
}

// around is a span of the timeline with the place of a line of the story in its middle.
function around(x) {
  const t = Date.parse(x.time ?? x.received);
  return Number.isNaN(t) ? {} : { from: iso(t - 2000), to: iso(t + 2000), at: iso(t) };
}

