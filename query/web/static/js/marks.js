// Marks of a chart that would lie on each other are one.

const half = 8; // half of a mark's width
export const labelFrom = 6; // where a mark's count begins, right of its middle
const digit = 7.5; // width of a digit of the count

// merged makes marks of things that lie at places, in px: [{p, of}], of being the things of one mark, in their order. No mark reaches
// into the next one, its count included, which each mark of several has right of it where labels is set.
export function merged(things, placeOf, labels = true) {
  const out = [];
  let end = -Infinity; // of the last mark
  for (const [p, thing] of things.map((x) => [placeOf(x), x]).sort((a, b) => a[0] - b[0])) {
    const last = out.at(-1);
    if (last && p - half < end) last.of.push(thing);
    else out.push({ p, of: [thing] });
    const { p: at, of } = out.at(-1);
    end = at + Math.max(half, labels && of.length > 1 ? labelFrom + digit * (String(of.length).length + 0.5) : 0);
  }
  return out;
}
