// Bytes, numbers and times as a person reads them. Times are UTC, as on the command line.

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const printableRune = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u;

// bytesOf decodes base64.
export function bytesOf(base64) {
  const raw = atob(base64);
  const b = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) b[i] = raw.charCodeAt(i);
  return b;
}

// base64Of encodes bytes, or text as UTF-8.
export function base64Of(data) {
  const b = typeof data === 'string' ? new TextEncoder().encode(data) : data;
  const parts = [];
  for (let i = 0; i < b.length; i += 0x8000) parts.push(String.fromCharCode(...b.subarray(i, i + 0x8000)));
  return btoa(parts.join(''));
}

// utf8 is the text of bytes, null where they are none.
export function utf8(bytes) {
  try {
    return strict.decode(bytes);
  } catch {
    return null;
  }
}

const hex = (n, digits) => n.toString(16).padStart(digits, '0');
const escapes = { 7: '\\a', 8: '\\b', 9: '\\t', 10: '\\n', 11: '\\v', 12: '\\f', 13: '\\r', 34: '\\"', 92: '\\\\' };

function quoteRune(r) {
  const code = r.codePointAt(0);
  if (escapes[code]) return escapes[code];
  if (printableRune.test(r)) return r;
  if (code < 0x80) return '\\x' + hex(code, 2);
  return code < 0x10000 ? '\\u' + hex(code, 4) : '\\U' + hex(code, 8);
}

// sequence is how many bytes the UTF-8 sequence at i takes, 0 where there is none.
function sequence(b, i) {
  const n = b[i] < 0x80 ? 1 : b[i] >= 0xc2 && b[i] < 0xe0 ? 2 : b[i] >= 0xe0 && b[i] < 0xf0 ? 3 : b[i] >= 0xf0 && b[i] < 0xf5 ? 4 : 0;
  return n > 0 && i + n <= b.length && utf8(b.subarray(i, i + n)) !== null ? n : 0;
}

// printable shows bytes: as they are where all of them can be seen, else quoted as by Go's strconv.Quote.
export function printable(bytes) {
  const text = utf8(bytes);
  if (text !== null && /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/.test(text)) return text;
  const out = [];
  if (text !== null) {
    for (const r of text) out.push(quoteRune(r));
    const quoted = out.join('');
    return quoted === text ? text : `"${quoted}"`;
  }
  for (let i = 0; i < bytes.length;) {
    const n = sequence(bytes, i);
    out.push(n ? quoteRune(utf8(bytes.subarray(i, i + n))) : '\\x' + hex(bytes[i], 2));
    i += n || 1;
  }
  return `"${out.join('')}"`;
}

// ends is how many bytes of a long value are looked at, at each of its ends, to show it shortened.
const ends = 2048;

// bytes64 shows base64 as bytes, with at most max characters, cut in the middle. What is much longer is not decoded as a whole.
export function bytes64(base64, max = Infinity) {
  if (base64 === undefined) return '';
  const whole = (base64.length / 4) * 3;
  if (max > ends / 4 || whole <= 2 * ends) return shorten(printable(bytesOf(base64)), max);
  const cut = (4 * ends) / 2; // of whole groups of four characters
  const head = printable(bytesOf(base64.slice(0, cut)));
  const tail = printable(bytesOf(base64.slice(base64.length - cut)));
  return shorten(`${head}…${tail}`, max);
}

// text shows text of the stream as bytes64 shows bytes.
export const text = (t, max) => bytes64(base64Of(t.length > 4 * ends ? t.slice(0, ends) + t.slice(-ends) : t), max);

// sizeOf is how many bytes base64 stands for.
export const sizeOf = (base64) => (base64.length / 4) * 3 - (base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0);

// shorten cuts text to max characters, in the middle.
export function shorten(text, max) {
  if (text.length <= max) return text;
  const runes = text.length > 4 * max ? [...text.slice(0, 2 * max), ...text.slice(-2 * max)] : [...text];
  if (runes.length <= max) return text;
  const head = Math.ceil((max - 1) / 2);
  return `${runes.slice(0, head).join('')}…${runes.slice(runes.length - (max - 1 - head)).join('')}`;
}

// number shows a number, or the digits of one beyond 2^53.
export const number = (n) => (n === undefined || n === null ? '–' : String(n).replace(/\B(?=(\d{3})+$)/g, ','));

// roughly shows a number in a few characters.
export function roughly(n) {
  if (n < 100_000) return number(Math.round(n));
  const units = ['', 'k', 'M', 'G', 'T'];
  let i = 0;
  for (; n >= 999.95 && i < 4; i++) n /= 1000;
  return `${n.toFixed(1)} ${units[i]}`;
}

// size shows bytes.
export function size(n) {
  if (n === undefined) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let i = 0;
  for (; n >= 1024 && i < 4; i++) n /= 1024;
  return `${i ? n.toFixed(1) : n} ${units[i]}`;
}

// span shows a duration in ms.
export function span(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 120e3) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 7200e3) return `${Math.round(ms / 60e3)} min`;
  if (ms < 172800e3) return `${Math.round(ms / 3600e3)} h`;
  return `${number(Math.round(ms / 86400e3))} days`;
}

export const iso = (ms) => new Date(ms).toISOString();
// day and clock are the two halves of a time, RFC 3339 or ms.
const written = (t) => (typeof t === 'number' ? iso(t) : t);
export const day = (t) => (t === undefined ? '' : written(t).slice(0, -14));
export const clock = (t) => (t === undefined ? '–' : written(t).slice(-13, -1));
export const moment = (t) => (t === undefined ? '–' : `${day(t)} ${clock(t)}`);

// whenOf reads the ms of a moment that is a time; null: it is another kind of moment, or none.
export function whenOf(when) {
  if (!when) return null;
  const ms = /^-?\d+$/.test(when) ? Number(when) : /^\d{4}-/.test(when) ? Date.parse(when) : NaN;
  return Number.isNaN(ms) ? null : ms;
}

// words are a name of the wire, like publisher_queue, in letters.
export const words = (name) => name.replaceAll('_', ' ');

// inDir puts the data directory into a command line, so that it can be run as it stands.
export function inDir(command, dir) {
  if (!dir) return command;
  const word = /^[\w.:/@%+=,-]+$/.test(dir) ? dir : `'${dir.replaceAll("'", "'\\''")}'`;
  return command.replace(/^kvjournal \S+/, (m) => `${m} --dir ${word}`);
}
