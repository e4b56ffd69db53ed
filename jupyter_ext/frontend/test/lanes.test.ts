import { expect, test } from "vitest";

import type { ThreadFacts } from "../src/data/protocol";
import { packLanes } from "../src/timeline/lanes";

const thread = (id: number, pool: string | null, first_ns: number, last_ns: number, name = `TF-${id}`): ThreadFacts => ({ id, name, pool, first_ns, last_ns });
const drawn = (lanes: ReturnType<typeof packLanes>) => lanes.rows.map((lane) => [lane.name, ...lane.threads]);

test("a hundred epochs with two new threads each need two lanes", () => {
  const epochs = Array.from({ length: 200 }, (_, i) => thread(10 + i, "tf.data", Math.floor(i / 2) * 10, Math.floor(i / 2) * 10 + 9));
  const lanes = packLanes([thread(1, null, 0, 1000, "main"), ...epochs]);
  expect(lanes.rows.map((lane) => lane.name)).toEqual(["main", "tf.data 1", "tf.data 2"]);
  expect(lanes.rows[1]!.threads).toHaveLength(100);
});

test("threads that live at the same time never share a lane, and Python's own keep theirs", () => {
  const all = [thread(2, "inter-op", 0, 50), thread(3, "inter-op", 40, 60), thread(4, null, 0, 5, "Worker"), thread(5, null, 6, 9, "Worker"), thread(1, null, 0, 90, "main"), thread(6, "tf.data", 0, 9)];
  expect(drawn(packLanes(all))).toEqual([["main", 1], ["Worker", 4], ["Worker", 5], ["inter-op 1", 2], ["inter-op 2", 3], ["tf.data", 6]]);
});

test("a thread keeps its lane while data arrive", () => {
  const before = packLanes([thread(1, "tf.data", 0, 10), thread(2, "tf.data", 5, 10)]);
  const after = packLanes([thread(1, "tf.data", 0, 10), thread(2, "tf.data", 5, 10), thread(3, "tf.data", 11, 20), thread(4, "tf.data", 12, 20), thread(5, "tf.data", 12, 20)], before);
  expect([1, 2].map((id) => after.of.get(id))).toEqual([1, 2].map((id) => before.of.get(id)));
  expect(after.rows).toHaveLength(3);
});

test("a thread an epoch that Python made shares a lane with those before it, above TensorFlow's", () => {
  const epochs = Array.from({ length: 100 }, (_, i) => ({ ...thread(10 + i, "evaluate", i * 10, i * 10 + 9, `Thread-${i} (evaluate)`), python: true }));
  const all = [thread(1, null, 0, 1000, "main"), thread(2, null, 0, 9, "reader"), thread(3, "inter-op", 0, 9), ...epochs];
  expect(packLanes(all).rows.map((lane) => [lane.name, lane.threads.length])).toEqual([["main", 1], ["reader", 1], ["evaluate", 100], ["inter-op", 1]]);
});
