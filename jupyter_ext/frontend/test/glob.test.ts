import { expect, test } from "vitest";
import { matcher } from "../src/glob";

test("patterns match whole names, as in Python's fnmatch; plain text is looked for inside", () => {
  const matches = (pattern: string, name: string) => matcher(pattern)([name], `${name} py train.py:12`);
  expect(["aug*", "AUG*", "a?gment", "[a-c]ugment", "*ment", "aug", "train.py", "", "[!b]ugment"].map((p) => matches(p, "augment"))).toEqual(Array(9).fill(true));
  expect(["ug*", "aug?", "[b-c]ugment", "b", "[!a]ugment", "augment(*"].map((p) => matches(p, "augment"))).toEqual(Array(6).fill(false));
  expect(matches("f[1", "f[1")).toBe(true);
  expect(matches("a.b*", "axb")).toBe(false);
});
