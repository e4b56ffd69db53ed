import { expect, test } from "vitest";
import { belongsToHost } from "../src/keys";

const key = (text: string) => {
  const parts = text.split("+");
  return { key: parts.pop()!, ctrlKey: parts.includes("Ctrl"), metaKey: parts.includes("Meta"), altKey: parts.includes("Alt"), shiftKey: parts.includes("Shift") };
};

test("only saving and the list of commands pass", () => {
  for (const text of ["Ctrl+s", "Meta+s", "Ctrl+Shift+P", "Ctrl+Shift+C", "F1"]) expect(belongsToHost(key(text)), text).toBe(true);
  for (const text of ["d", "s", "Shift+S", "Ctrl+Enter", "Shift+Enter", "Alt+s", "Ctrl+Alt+s", "Ctrl+z", "Ctrl+x", "Escape", "Delete"]) expect(belongsToHost(key(text)), text).toBe(false);
});
