// Which lane a thread has. TensorFlow's pools make new threads for each epoch, and so may a program: those of one pool share
// lanes, one after the other, so that a hundred epochs stay readable. A thread with a name has a lane of its own.
import type { ThreadFacts } from "../data/protocol";

export interface Lane {
  /** `main`, `tf.data 2`, `inter-op` */
  name: string;
  pool: string;
  threads: number[];
}

export interface Lanes {
  rows: Lane[];
  /** From a thread to its row. */
  of: Map<number, number>;
}

export const noLanes = (): Lanes => ({ rows: [], of: new Map() });

/** Gives each thread a lane of its pool that is free while the thread lives: the one it had before, if it can keep it. */
export function packLanes(threads: readonly ThreadFacts[], before: Lanes = noLanes()): Lanes {
  const pools = new Map<string, { own: boolean; python: boolean; lanes: { threads: number[]; free: number }[] }>();
  const placed = [...threads].sort((a, b) => (a.first_ns ?? 0) - (b.first_ns ?? 0) || a.id - b.id);
  const slotBefore = (id: number): number | null => {
    const row = before.of.get(id);
    if (row === undefined) return null;
    const { pool } = before.rows[row]!;
    return before.rows.filter((lane, i) => lane.pool === pool && i < row).length;
  };
  for (const thread of placed) {
    const name = thread.pool ?? thread.name;
    // Two threads that Python made may have one name: each keeps its own lane.
    const key = thread.pool === null ? `${name}\0${thread.id}` : name;
    const pool = pools.get(key) ?? { own: thread.pool === null, python: thread.python ?? thread.pool === null, lanes: [] };
    pools.set(key, pool);
    const first = thread.first_ns ?? 0;
    const wanted = slotBefore(thread.id);
    let slot = wanted !== null && (pool.lanes[wanted]?.free ?? -Infinity) <= first ? wanted : pool.lanes.findIndex((lane) => lane.free <= first);
    if (slot < 0) slot = pool.lanes.length;
    while (pool.lanes.length <= slot) pool.lanes.push({ threads: [], free: -Infinity });
    const lane = pool.lanes[slot]!;
    lane.threads.push(thread.id);
    lane.free = Math.max(lane.free, thread.last_ns ?? Infinity);
  }
  const rank = (key: string, python: boolean): number => (key.startsWith("main\0") ? 0 : python ? 1 : 2);
  const order = [...pools].sort(([a, one], [b, other]) => rank(a, one.python) - rank(b, other.python) || (one.python && other.python ? one.lanes[0]!.threads[0]! - other.lanes[0]!.threads[0]! : a < b ? -1 : 1));
  const rows: Lane[] = [];
  for (const [key, pool] of order) {
    const base = key.split("\0")[0]!;
    pool.lanes.forEach((lane, i) => rows.push({ name: pool.own || pool.lanes.length === 1 ? base : `${base} ${i + 1}`, pool: key, threads: lane.threads }));
  }
  return { rows, of: new Map(rows.flatMap((lane, i) => lane.threads.map((thread) => [thread, i] as const))) };
}

/** Whether all threads are called as before. */
export function sameNames(before: Lanes, after: Lanes): boolean {
  return before.of.size === after.of.size && [...after.of].every(([id, row]) => after.rows[row]!.name === before.rows[before.of.get(id) ?? -1]?.name);
}
