import { expect, test } from "vitest";

import { sameFile } from "../src/data/breakpoints";
import { completions, nearest, suggestions } from "../src/views/breakpoints";
import { childOf } from "../src/views/variables";

test("a child of a value has a Python expression", () => {
  expect([childOf("x", "list", "[0]"), childOf("x", "dict", "'lr'"), childOf("self", "Model", "scale"), childOf("x", "dict", "[1]")]).toEqual(["x[0]", "x['lr']", "self.scale", "x[[1]]"]);
});

test("conditions are suggested in the names of the node's inputs", () => {
  expect(suggestions(["x", "args[0]", "args[1]", "0"])).toEqual(["nan(x)", "changed(x)", "x.max() > 1", "nan(args)", "changed(args)", "args.max() > 1", "call.id > 100"]);
});

test("a breakpoint's file may be a part of the path", () => {
  expect([sameFile("train.py", "/a/train.py"), sameFile("lib/train.py", "/a/lib/train.py"), sameFile("/a/train.py", "/a/train.py")]).toEqual([true, true, true]);
  expect([sameFile("train.py", "/a/xtrain.py"), sameFile("b/train.py", "/a/train.py")]).toEqual([false, false]);
});

test("a name that nothing has names the nearest", () => {
  expect(nearest("augmnt", ["decode", "augment", "f"])).toBe("augment");
  expect(nearest("zebra", ["decode", "augment"])).toBe(null);
  expect(nearest("f", [])).toBe(null);
});
test("completes the last word of a condition", () => {
  expect(completions("x.max() > 1 and x.sh", ["x"])).toEqual(["x.max() > 1 and x.shape"]);
  expect(completions("na", ["x"])).toEqual(["nan("]);
  expect(completions("", ["x"])).toEqual(suggestions(["x"]));
  expect(completions("x.max() > ", ["x"])).toEqual([]);
});
