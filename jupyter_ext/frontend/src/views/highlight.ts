// Python source in colours: the kernel says what each piece is. Only ever text nodes and <i> elements.
import type { Piece } from "../data/protocol";
import { h } from "../dom";

export function codeLine(line: readonly Piece[]): HTMLElement {
  return h("code", {}, ...line.map(([kind, text]) => (kind ? h("i", { class: kind }, text) : text)));
}

export const plainText = (line: readonly Piece[]): string => line.map(([, text]) => text).join("");
