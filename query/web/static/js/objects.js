// Objects: what was there at a moment, by source, tenant, medium, group and prefix.
import { all } from './api.js';
import { h, replace } from './dom.js';
import * as link from './link.js';
import { answering, bytes, choice, empty, failure, field, media, medium, shortKey, state } from './parts.js';
import { bytesOf, clock, day, moment, number, printable } from './text.js';
import { pages } from './pages.js';
import { list } from './virtual.js';

export const title = 'Objects';

const page = 200; // objects a question
const keptPages = 25;

// question are the parameters for what a link asks for.
function question(q) {
  const n = link.nameOf(q);
  return {
    source: n.source, backend_id_base64: n.backend_id_base64, tenant_id_base64: n.tenant_id_base64, at: q.get('at'), medium: q.get('medium'),
    group_id_base64: link.base64(q, 'group'), prefix_base64: link.base64(q, 'prefix'), state: q.get('state'), certainty: q.get('certainty'),
  };
}

// shownText is a part of a link for its field.
const shownText = (q, name) => {
  const b = link.base64(q, name);
  return b === undefined ? '' : printable(bytesOf(b));
};

export async function show({ root, q, signal, keys }) {
  const values = Object.fromEntries(q);
  const set = (name, v) => link.go('objects', { ...values, [`${name}64`]: undefined, [name]: v });
  const filters = h('form', { class: 'filters', onsubmit: (e) => e.preventDefault() },
    field('At', 'at', q.get('at'), { placeholder: 'the newest', size: 22, title: 'Unix ms, 2026-11-29T12:03:00Z, -5m, offset:N, seq:EPOCH/N, or now' }, (v) => set('at', v.trim())),
    field('Tenant', 'tenant', shownText(q, 'tenant'), { placeholder: 'all', size: 12 }, (v) => set('tenant', v)),
    field('Key begins with', 'prefix', shownText(q, 'prefix'), { placeholder: 'anything', size: 16 }, (v) => set('prefix', v)),
    field('Group', 'group', shownText(q, 'group'), { placeholder: 'any', size: 12 }, (v) => set('group', v)),
    choice('Medium', 'medium', q.get('medium'), [['', 'any'], ['cpu', 'cpu'], ['disk', 'disk'], ...(['', 'cpu', 'disk'].includes(q.get('medium') ?? '') ? [] : [[q.get('medium'), q.get('medium')]])], (v) => set('medium', v)),
    choice('State', 'state', q.get('state'), [['', 'present'], ['absent', 'absent'], ['any', 'either']], (v) => set('state', v)),
    choice('Certainty', 'certainty', q.get('certainty'), [['', 'either'], ['confirmed', 'confirmed'], ['uncertain', 'uncertain']], (v) => set('certainty', v)),
    [...q.keys()].length > 0 && h('button', { type: 'button', onclick: () => link.go('objects') }, 'Clear'));
  const sums = h('div', { class: 'sums' });
  const left = h('div', { class: 'list tall' });
  root.append(h('header', { class: 'head' }, h('h1', null, 'Objects'), filters), sums, left);

  const at = q.get('at');
  const open = (i) => lines.line(i) && link.go('object', { ...link.nameValues(lines.line(i)), at });
  const end = h('p', { class: 'note', role: 'status' });
  const lines = pages({
    size: page, kept: keptPages, mark: nameAlone, changed,
    ask: (after) => all('objects', { ...question(q), limit: page, after: after && JSON.stringify(after) }, { signal }),
  });
  const rows = list({
    label: 'Objects',
    head: h('div', { role: 'row', class: 'object-row' }, ['Key', 'Tenant', 'Media', 'Certainty', 'Group'].map((t) => h('span', { role: 'columnheader' }, t))),
    row: (i) => (lines.line(i) ? row(lines.line(i), at) : h('div', { class: 'object-row away' }, h('span', { role: 'cell' }, '…'))),
    more: () => lines.more(),
    open,
  });
  signal.addEventListener('abort', rows.stop);
  Object.assign(keys, rows.keys);

  // changed shows what came.
  function changed() {
    if (signal.aborted) return;
    if (lines.failed) {
      failure(lines.count > 0 ? end : left, lines.failed, lines.count > 0 ? lines.retry : () => link.go('objects', values, true));
      return;
    }
    end.textContent = lines.done ? `${number(lines.count)} listed, that is all.` : `${number(lines.count)} listed; scroll for more.`;
    if (lines.count === 0) replace(left, empty('No object fits. Only objects are listed that an event had named by that moment.'));
    else rows.grown(lines.count);
  }

  count(sums, q, signal);
  replace(left, rows.node, end);
  await answering(end, signal, () => lines.more(), 'Looking for objects');
  return undefined;
}

// nameAlone is what goes on behind an object needs of its line.
const nameAlone = (line) => ({ source: line.source, backend_id_base64: line.backend_id_base64, tenant_id_base64: line.tenant_id_base64, object_key_base64: line.object_key_base64 });

function row(line, at) {
  const cell = (c, ...x) => h('span', { role: 'cell', class: c }, x);
  return h('div', { class: 'object-row' },
    cell('key', h('a', { href: link.href('object', { ...link.nameValues(line), at }) }, shortKey(line.object_key_base64))),
    cell('tenant', bytes(line.tenant_id_base64, 24)),
    cell('media', media(line.media, 4)),
    cell('sure', state(line.present, line.certainty)),
    cell('group', line.group_id_base64 !== undefined && bytes(line.group_id_base64, 36)));
}

// count says how many there are, tenant by tenant.
const count = (node, q, signal) => answering(node, signal, async (progress) => {
  let c;
  try {
    [c] = await all('objects', { ...question(q), count: true }, { signal, progress });
  } catch (e) {
    if (e.status === 400) return; // the list tells what is wrong with the question
    throw e;
  }
  const as = c.as_of[0];
  const values = Object.fromEntries(q);
  const several = new Set(c.tenants.map((t) => t.source)).size > 1;
  const filtered = q.get('certainty') === 'uncertain'; // all are
  const doubts = (x) => !filtered && x.uncertain > 0 && `${number(x.uncertain)} uncertain`;
  replace(node,
    h('p', { class: 'lead' }, h('strong', null, number(c.objects)), filtered && ' uncertain', c.objects === 1 ? ' object' : ' objects', doubts(c) && `, ${doubts(c)}`, as && [', as of ', as.time ? `${day(as.time)} ${clock(as.time)}` : moment(as.received), ` (offset ${number(as.offset)})`], '. ',
      as && h('a', { href: link.href('timeline', { at: as.time }) }, 'Timeline')),
    c.tenants.length > 1 && h('ul', { class: 'chips' }, c.tenants.slice(0, 12).map((t) => h('li', null, h('a', { href: link.href('objects', { ...values, tenant: undefined, tenant64: undefined, ...link.nameValues(t) }) }, bytes(t.tenant_id_base64, 28), several && h('small', null, ` of ${t.source}`), ' ', h('strong', null, number(t.objects)), doubts(t) && h('small', null, `, ${doubts(t)}`)))), c.tenants.length > 12 && h('li', null, `and ${number(c.tenants.length - 12)} more`)),
    c.media.length > 0 && h('p', { class: 'note' }, c.media.slice(0, 6).map((m, i) => [i > 0 && ' · ', medium(m.medium), ' ', number(m.objects), doubts(m) && ` (${doubts(m)})`])));
}, 'Counting objects');

