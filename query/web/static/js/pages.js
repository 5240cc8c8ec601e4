// The lines of a long answer, a page at a time, of which only those near to what is seen are kept.

// pages reads pages of size lines with ask(after), after being what the last line of the page before is known by (mark(line)); undefined
// for the first. changed() is called when lines came. At most kept pages are held: others are asked for again when they are needed.
export function pages({ size, kept, ask, mark, changed }) {
  const known = []; // {after, count, lines}, lines null: not held
  let done = false;
  let busy = false;
  let failed = null;

  // load asks for page k. One at a time: what is needed then is seen when it came.
  async function load(k) {
    if (busy || failed) return;
    busy = true;
    const after = k < known.length ? known[k].after : known.length === 0 ? undefined : known.at(-1).next;
    try {
      const lines = await ask(after);
      if (k < known.length) known[k].lines = lines.slice(0, known[k].count); // what came or went meanwhile does not move the others
      else {
        done = lines.length < size;
        if (lines.length > 0) known.push({ after, count: lines.length, lines, next: mark(lines.at(-1)) });
      }
      forget(k);
    } catch (e) {
      failed = e;
    } finally {
      busy = false;
    }
    changed();
  }

  // forget lets go of the pages that are the farthest from page k.
  function forget(k) {
    const held = known.map((p, i) => i).filter((i) => known[i].lines);
    held.sort((a, b) => Math.abs(b - k) - Math.abs(a - k));
    for (const i of held.slice(0, Math.max(0, held.length - kept))) known[i].lines = null;
  }

  return {
    // count is how many lines are known of, done whether there are no more, failed what went wrong.
    get count() { return known.length === 0 ? 0 : (known.length - 1) * size + known.at(-1).count; },
    get done() { return done; },
    get failed() { return failed; },
    // line is one of them; undefined: it is not there now, and will be asked for.
    line: (i) => {
      const p = known[Math.floor(i / size)];
      if (p && !p.lines) load(Math.floor(i / size));
      return p?.lines?.[i % size];
    },
    more: () => (done ? undefined : load(known.length)),
    retry: () => {
      failed = null;
      return load(known.length);
    },
  };
}
