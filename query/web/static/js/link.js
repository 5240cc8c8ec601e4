// The state of the page is the fragment of its link: #/VIEW?name=value&…. An object's parts are text where they can be seen, else base64
// (tenant, tenant64, …). A key that is too long for a link is kept here, under a number: such a link works in this tab only.
import { base64Of, bytesOf, printable, utf8 } from './text.js';

const longest = 200_000; // characters of a value in a link
const held = new Map();

// read parses a fragment.
export function read(hash = now()) {
  const m = /^#\/?([^?]*)(?:\?(.*))?$/s.exec(hash);
  return { view: m?.[1] || 'now', q: new URLSearchParams(m?.[2] ?? '') };
}

// href is the link to a view. Values that are null, undefined or empty are left out; so are null parts of an object.
export function href(view, values = {}) {
  const q = new URLSearchParams();
  for (const [name, v] of Object.entries(values)) if (v !== undefined && v !== null && v !== '') q.set(name, v);
  const text = q.toString();
  return `#/${view}${text ? `?${text}` : ''}`;
}

// What replaces the link is written after a while: browsers take only so many in a time. Until then it is pending.
const writeAfter = 200; // ms
let pending = null;
let timer = 0;
// now is the fragment as it is, or will be.
export const now = () => pending ?? location.hash;

function write() {
  clearTimeout(timer);
  timer = 0;
  if (pending !== null) history.replaceState(null, '', pending);
  pending = null;
}
addEventListener('hashchange', (e) => {
  if (!e.isTrusted) return; // it was ours
  clearTimeout(timer);
  timer = 0;
  pending = null;
});

// go leads to a view; replace: without a step in the history.
export function go(view, values, replace = false) {
  const to = href(view, values);
  if (to === now()) return;
  if (replace) {
    pending = to;
    timer ||= setTimeout(write, writeAfter);
    dispatchEvent(new HashChangeEvent('hashchange'));
    return;
  }
  write();
  location.hash = to;
}

// part puts bytes into the values of a link: as name, or name64.
function part(values, name, base64) {
  if (base64 === undefined) return;
  if (base64.length > longest) {
    held.set(String(held.size + 1), base64);
    values[`${name}held`] = String(held.size);
    return;
  }
  const bytes = bytesOf(base64);
  const text = utf8(bytes);
  if (text !== null && text !== '' && printable(bytes) === text) values[name] = text;
  else values[`${name}64`] = base64.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '') || '.';
}

// bytesValues are the values of a link for bytes under a name, as a prefix or a group.
export function bytesValues(name, base64) {
  const values = {};
  part(values, name, base64);
  return values;
}

// base64 reads what part wrote; undefined: nothing.
export function base64(q, name) {
  if (q.has(`${name}held`)) {
    const v = held.get(q.get(`${name}held`));
    if (v === undefined) throw new Error('This link is of a key that is too long for one. Find the object again.');
    return v;
  }
  if (q.has(`${name}64`)) {
    const v = q.get(`${name}64`).replaceAll('-', '+').replaceAll('_', '/').replace('.', '');
    return v + '='.repeat((4 - (v.length % 4)) % 4);
  }
  return q.has(name) ? base64Of(q.get(name)) : undefined;
}

// nameValues are the values of a link for the object, or scope, that a line names.
export function nameValues(line) {
  const values = { source: line.source };
  part(values, 'backend', line.backend_id_base64);
  part(values, 'tenant', line.tenant_id_base64);
  part(values, 'key', line.object_key_base64);
  return values;
}

// nameOf is the object, or scope, of a link as the parameters of a question.
export const nameOf = (q) => ({
  source: q.get('source') ?? undefined,
  backend_id_base64: base64(q, 'backend'),
  tenant_id_base64: base64(q, 'tenant'),
  object_key_base64: base64(q, 'key'),
});
