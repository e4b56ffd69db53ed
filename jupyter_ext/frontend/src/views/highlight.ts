// Python source in colours: keywords, strings, numbers, comments, decorators. Only ever text nodes and <i> elements.
import { h } from "../dom";

const KEYWORDS = new Set(
  "False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield match case".split(" "),
);
const TOKEN = /(#.*)|((?:\b[rbfuRBFU]{1,2})?(?:"""|'''|"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?))|(^\s*@[\w.]+)|\b(\d[\w.]*)\b|([A-Za-z_]\w*)/g;

export interface Piece {
  kind: "" | "k" | "s" | "n" | "c" | "m";
  text: string;
}

/** Pieces of each line; a triple-quoted string may run over lines. */
export function pieces(lines: readonly string[]): Piece[][] {
  let open: string | null = null;
  return lines.map((line) => {
    const out: Piece[] = [];
    const push = (kind: Piece["kind"], text: string): void => {
      if (!text) return;
      const last = out[out.length - 1];
      if (last && last.kind === kind) last.text += text;
      else out.push({ kind, text });
    };
    let at = 0;
    if (open) {
      const end = line.indexOf(open);
      if (end < 0) {
        push("s", line);
        return out;
      }
      push("s", line.slice(0, end + 3));
      at = end + 3;
      open = null;
    }
    TOKEN.lastIndex = at;
    for (let match = TOKEN.exec(line); match; match = TOKEN.exec(line)) {
      push("", line.slice(at, match.index));
      const [text, comment, string, decorator, number, word] = match;
      at = match.index + text.length;
      if (comment) push("c", text);
      else if (string) {
        const quote = text.slice(-3);
        if (quote === '"""' || quote === "'''") {
          const end = line.indexOf(quote, at);
          if (end < 0) {
            push("s", line.slice(match.index));
            open = quote;
            at = line.length;
            break;
          }
          at = end + 3;
          push("s", line.slice(match.index, at));
          TOKEN.lastIndex = at;
        } else push("s", text);
      } else if (decorator) push("m", text);
      else if (number) push("n", text);
      else push(KEYWORDS.has(word ?? "") ? "k" : "", text);
    }
    push("", line.slice(at));
    return out;
  });
}

export function codeLine(line: readonly Piece[]): HTMLElement {
  return h("code", {}, ...line.map((piece) => (piece.kind ? h("i", { class: piece.kind }, piece.text) : piece.text)));
}
