// Questions to kvjournal: GET v1/NAME, answered line by line with one JSON value each. Long parameters go as a body.
import { h } from './dom.js';

const longestQuery = 4000;
const tokenKey = 'kvjournal.token';

// AskError is a question that got no answer; status is 0 where nobody was reached.
export class AskError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

// parse reads JSON; whole numbers beyond 2^53 stay text.
export function parse(line) {
  if (!/\d{16}/.test(line)) return JSON.parse(line);
  return JSON.parse(line.replace(/"(?:[^"\\]|\\.)*"|-?\d{16,}(?![\d.eE])/g, (m) => (m[0] === '"' || Number.isSafeInteger(Number(m)) ? m : `"${m}"`)));
}

let asking = null;

// askToken asks the person for a token, once for all that wait for it.
function askToken(wrong) {
  asking ??= new Promise((resolve) => {
    const input = h('input', { id: 'token', type: 'password', autocomplete: 'off', required: true });
    const dialog = h('dialog', { class: 'box', 'aria-labelledby': 'token-title', onclose: () => {
      dialog.remove();
      asking = null;
      resolve(input.value !== '' && dialog.returnValue === 'ok');
    } },
    h('form', { onsubmit: (e) => {
      e.preventDefault();
      sessionStorage.setItem(tokenKey, input.value);
      dialog.close('ok');
    } },
    h('h2', { id: 'token-title' }, 'A token is needed'),
    h('p', null, wrong ? 'That token was not accepted.' : 'kvjournal answers here to those who have a token.', ' It is kept until this tab is closed.'),
    h('label', { for: 'token' }, 'Token'), input,
    h('div', { class: 'buttons' }, h('button', { class: 'main' }, 'Go on'), h('button', { type: 'button', onclick: () => dialog.close('') }, 'Cancel'))));
    document.body.append(dialog);
    dialog.showModal();
  });
  return asking;
}

async function send(path, query, signal) {
  for (let tries = 0; ; tries++) {
    const token = sessionStorage.getItem(tokenKey);
    const headers = token ? { Authorization: `Bearer ${token}` } : {};
    let reply;
    try {
      reply = query.length <= longestQuery
        ? await fetch(`${path}${query ? `?${query}` : ''}`, { headers, signal, cache: 'no-store' })
        : await fetch(path, { method: 'POST', headers: { ...headers, 'Content-Type': 'application/x-www-form-urlencoded' }, body: query, signal });
    } catch (e) {
      if (signal?.aborted) throw e;
      throw new AskError('kvjournal does not answer. Is it running, and can it be reached from here?', 0);
    }
    if (reply.status !== 401 || tries === 5) return reply;
    if (token === sessionStorage.getItem(tokenKey) && !(await askToken(token !== null))) {
      throw new AskError('kvjournal asks for a token here, and none was given.', 401);
    }
  }
}

// said is what a problem document, or an error as JSON, says.
function said(text) {
  try {
    const v = JSON.parse(text);
    return v.detail ?? v.error ?? v.title;
  } catch {
    return undefined;
  }
}

// ask asks a question and calls each with every line of the answer. progress is told done and total. Parameters that are undefined or
// empty are left out.
export async function ask(name, parameters, each, { signal, progress } = {}) {
  const query = new URLSearchParams();
  for (const [k, v] of Object.entries(parameters)) if (v !== undefined && v !== null && v !== '') query.set(k, v);
  // An empty backend, tenant or prefix is one.
  for (const k of ['backend_id_base64', 'tenant_id_base64']) if (parameters[k] === '') query.set(k, '');
  if (progress) query.set('progress', 'true');
  const reply = await send(`v1/${name}`, query.toString(), signal);
  if (!reply.ok) throw new AskError(said(await reply.text()) ?? `kvjournal answered ${reply.status} ${reply.statusText}`, reply.status);
  const take = (line) => {
    const v = parse(line);
    if (v.progress) progress?.(v.progress.done, v.progress.total);
    else if (typeof v.error === 'string' || v.status >= 400) throw new AskError(v.detail ?? v.error ?? v.title, 200);
    else each(v);
  };
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let parts = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    let from = 0;
    for (let to; (to = value.indexOf('\n', from)) >= 0; from = to + 1) {
      parts.push(value.slice(from, to));
      const line = parts.join('');
      parts = [];
      if (line) take(line);
    }
    parts.push(value.slice(from));
  }
  if (parts.join('')) throw new AskError('The answer broke off: kvjournal ended, or the connection did. Ask again.', 0);
}

// all returns the lines of an answer.
export async function all(name, parameters, options) {
  const lines = [];
  await ask(name, parameters, (line) => lines.push(line), options);
  return lines;
}

let place = null;

// whereabouts is the data directory, as `--dir` of the command line takes it; empty where it cannot be told. It is asked for once.
export function whereabouts() {
  place ??= all('stats', {}).then(([stats]) => stats.dir ?? '', () => {
    place = null;
    return '';
  });
  return place;
}

const hangs = 5000; // ms without an answer

// alive tells whether kvjournal answers at all: it asks for what costs it nothing.
export async function alive(signal) {
  try {
    const reply = await fetch('web/icon.svg', { method: 'HEAD', cache: 'no-store', signal: AbortSignal.any([signal, AbortSignal.timeout(hangs)]) });
    return reply.status < 500; // a proxy may answer in its place
  } catch {
    return false;
  }
}

// again calls f again and again while the page is seen, until signal: it rests for least ms, and at least twenty times as long as f took.
export async function again(f, least, signal) {
  while (!signal.aborted) {
    const begun = performance.now();
    if (document.visibilityState === 'visible') await f();
    await rest(Math.max(least, 20 * (performance.now() - begun)), signal);
  }
}

// rest waits ms, at most until signal, or until the page is seen again.
const rest = (ms, signal) => new Promise((resolve) => {
  const end = () => {
    clearTimeout(timer);
    document.removeEventListener('visibilitychange', end);
    signal.removeEventListener('abort', end);
    resolve();
  };
  const timer = setTimeout(end, ms);
  document.addEventListener('visibilitychange', end);
  signal.addEventListener('abort', end);
});
