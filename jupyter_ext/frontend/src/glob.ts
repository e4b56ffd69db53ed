// Patterns as everywhere in pyfunc_debug: `*`, `?` and `[a-c]` match a whole name; a text without them is looked for inside.

const SPECIAL = /[*?[]/;

/** What decides whether a row's texts match: `names` as wholes for a pattern, `all` anywhere for plain text. */
export function matcher(pattern: string): (names: readonly string[], all: string) => boolean {
  const wanted = pattern.trim().toLowerCase();
  if (!wanted) return () => true;
  if (!SPECIAL.test(wanted)) return (_, all) => all.toLowerCase().includes(wanted);
  const whole = new RegExp(`^(?:${expression(wanted)})$`, "s");
  return (names) => names.some((name) => whole.test(name.toLowerCase()));
}

/** As Python's fnmatch: `[!x]` is any character but x; an open bracket without its end is itself. */
function expression(pattern: string): string {
  let out = "";
  for (let i = 0; i < pattern.length; i++) {
    const c = pattern[i]!;
    if (c === "*") out += ".*";
    else if (c === "?") out += ".";
    else if (c === "[") {
      const from = i + (pattern[i + 1] === "!" ? 2 : 1);
      const end = pattern.indexOf("]", from + 1);
      if (end < 0) out += "\\[";
      else {
        const set = pattern.slice(from, end).replace(/[\\\]^]/g, "\\$&");
        out += `[${pattern[i + 1] === "!" ? "^" : ""}${set}]`;
        i = end;
      }
    } else out += c.replace(/[.+^${}()|\]\\]/g, "\\$&");
  }
  return out;
}
