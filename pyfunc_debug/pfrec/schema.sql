-- The .pfrec file: one SQLite database, schema version 2.
--
-- Version 2 adds value.digest (and whatever else is named "since version 2"). Columns are only ever added, so that files of
-- version 1 are read as before, without them.
--
-- Times are nanoseconds of the recording process's time.monotonic_ns(); meta 'clock' ties them to the wall clock.
-- NULL means "not known", never 0. Lists are JSON texts. Enumerations are TEXT, as in pyfunc_debug.records.

-- Key and JSON value: schema, pid, host, argv, versions, clock, options, budget, state, dropped, cost, end_ns. anchors:
-- [[monotonic ns, wall clock ns, ns between the two readings], ...], every 10 s and at the end.
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- Threads that ran something. native_id is the operating system's.
CREATE TABLE thread (id INTEGER PRIMARY KEY, name TEXT NOT NULL, native_id INTEGER NOT NULL);

-- Stacks at trace, each stored once: [[file, line, function, text], ...], outermost first, the user's frames only.
CREATE TABLE stack (id INTEGER PRIMARY KEY, frames TEXT NOT NULL);

-- Traced Python functions; kind: tf.function | tf.data | graph | eager; origin: user | tensorflow.
CREATE TABLE function (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, file TEXT, line INTEGER, origin TEXT NOT NULL
);

-- py_function-like ops; kind: py_function | numpy_function | py_func | py_func_stateless.
CREATE TABLE node (
    id INTEGER PRIMARY KEY, token TEXT, kind TEXT NOT NULL, body TEXT NOT NULL, file TEXT, line INTEGER,
    name TEXT, graph TEXT, function INTEGER REFERENCES function (id), stack INTEGER REFERENCES stack (id),
    tout TEXT NOT NULL, paths TEXT NOT NULL, out_paths TEXT NOT NULL, origin TEXT NOT NULL
);

-- Graph traces: TensorFlow building a ConcreteFunction. reason is a JSON list of sentences; object numbers the
-- tf.function objects of one Python function; closest is the earlier signature that fitted best, avoid what would have helped.
CREATE TABLE trace (
    id INTEGER PRIMARY KEY, function INTEGER NOT NULL REFERENCES function (id), object INTEGER, ordinal INTEGER NOT NULL,
    name TEXT, signature TEXT NOT NULL, reason TEXT NOT NULL, thread INTEGER NOT NULL, start_ns INTEGER NOT NULL,
    duration_ns INTEGER NOT NULL, error TEXT, parent INTEGER, closest TEXT, avoid TEXT
);

-- Which nodes a graph trace's graph holds, itself or nested.
CREATE TABLE trace_node (trace INTEGER NOT NULL, node INTEGER NOT NULL, PRIMARY KEY (trace, node)) WITHOUT ROWID;

-- Executions of tf.functions that Python started; kind: forward | backward; site: a stack of one frame, the user's
-- line that started it.
CREATE TABLE run (
    id INTEGER PRIMARY KEY, trace INTEGER, function INTEGER, kind TEXT NOT NULL, name TEXT NOT NULL,
    thread INTEGER NOT NULL, start_ns INTEGER NOT NULL, duration_ns INTEGER, error TEXT,
    site INTEGER REFERENCES stack (id)
);

-- Calls. kind: forward | gradient; status: ok | error | running. run is NULL when it is not certain: runs then lists
-- the candidates as JSON (two or more: ambiguous; none: more than 64 runs were in flight; NULL: C++ started it, or it
-- was eager).
-- Of a gradient call: forward is the call that it belongs to, tape the call whose tape TensorFlow really used.
CREATE TABLE call (
    id INTEGER PRIMARY KEY, node INTEGER NOT NULL REFERENCES node (id), kind TEXT NOT NULL, forward INTEGER,
    run INTEGER, runs TEXT, thread INTEGER NOT NULL REFERENCES thread (id), start_ns INTEGER NOT NULL, end_ns INTEGER,
    cpu_ns INTEGER, status TEXT NOT NULL, failure INTEGER REFERENCES failure (id), tape INTEGER
);
CREATE INDEX call_by_forward ON call (forward) WHERE forward IS NOT NULL;
CREATE INDEX call_by_node ON call (node, id);

-- Inputs and outputs of calls; role: input | output. blob is the content of elements kept under the policy `kept`:
-- '' (none), sample, full. Statistics are over finite elements, `sampled` of them when not NULL. digest is that of all
-- elements in their order (values/digest.py); NULL where they were not all read.
CREATE TABLE value (
    call INTEGER NOT NULL, role TEXT NOT NULL, position INTEGER NOT NULL, path TEXT NOT NULL, dtype TEXT NOT NULL,
    shape TEXT, nbytes INTEGER, min REAL, max REAL, mean REAL, std REAL, nan INTEGER, inf INTEGER, zeros INTEGER,
    sampled INTEGER, histogram TEXT, text TEXT NOT NULL, note TEXT NOT NULL, kept TEXT NOT NULL, blob BLOB,
    digest BLOB, PRIMARY KEY (call, role, position)
) WITHOUT ROWID;

-- What TensorFlow knows of the shapes of nodes' inputs and outputs at the end of the graph trace (since version 2); role:
-- input | output; shape: a JSON list with null for unknown dimensions, NULL for an unknown rank; dtype: its name.
CREATE TABLE static_shape (
    node INTEGER NOT NULL REFERENCES node (id), role TEXT NOT NULL, position INTEGER NOT NULL, dtype TEXT NOT NULL,
    shape TEXT, PRIMARY KEY (node, role, position)
) WITHOUT ROWID;

-- What bodies returned, before TensorFlow converted it: one row a node and kind of return (since version 2). shown: in words;
-- count: how many values where it was a list or tuple; declared: JSON list of the dtypes of Tout (NULL: the kernel compares
-- them); dtypes: JSON list of those that the first values bring along (null: Python's own numbers); calls: of the first eight
-- calls and every sixteenth; first: the first of them. `sampled` were timed and compared, those with something to convert;
-- casts: the worst silent conversion of each output (recorder/casts.py).
CREATE TABLE returned (
    id INTEGER PRIMARY KEY, node INTEGER NOT NULL REFERENCES node (id), shown TEXT NOT NULL, count INTEGER, declared TEXT,
    dtypes TEXT NOT NULL, calls INTEGER NOT NULL, first INTEGER NOT NULL, sampled INTEGER NOT NULL,
    convert_ns INTEGER NOT NULL, casts TEXT NOT NULL
);

-- Contents, each stored once under the BLAKE2b digest of its bytes. encoding: raw (C order, little endian) or
-- strings (JSON list of base64 texts).
CREATE TABLE blob (digest BLOB PRIMARY KEY, encoding TEXT NOT NULL, dtype TEXT NOT NULL, shape TEXT NOT NULL,
    data BLOB NOT NULL);

-- Exceptions that left bodies. frames as in stack, innermost last.
CREATE TABLE failure (id INTEGER PRIMARY KEY, type TEXT NOT NULL, message TEXT NOT NULL, traceback TEXT NOT NULL,
    frames TEXT NOT NULL);

-- GIL timing of calls; grade: native | op-start | bound; blame: [[body or thread, ns], ...].
CREATE TABLE gil (
    call INTEGER PRIMARY KEY, grade TEXT NOT NULL, wait_ns INTEGER, held_ns INTEGER, released_ns INTEGER,
    reacquire_ns INTEGER, blame TEXT NOT NULL
);

-- What was noticed while recording, for the doctor: rule, and its facts as JSON. Rule stop: a call was held at a
-- breakpoint for held_ns (start_ns, end_ns, spans), which is in end_ns - start_ns of the call and in gil.released_ns; what
-- pyfunc_debug shows has taken it off. Rule held: the same while the call is still there.
CREATE TABLE notice (id INTEGER PRIMARY KEY, rule TEXT NOT NULL, node INTEGER, call INTEGER, facts TEXT NOT NULL);

-- Calls that are counted but not stored, since there was no room or sampling left them out, by node and kind.
CREATE TABLE dropped (
    node INTEGER NOT NULL, kind TEXT NOT NULL, calls INTEGER NOT NULL, errors INTEGER NOT NULL,
    total_ns INTEGER NOT NULL, PRIMARY KEY (node, kind)
) WITHOUT ROWID;

-- Calls that sampling would have left out, and why they are stored (since version 2): failed | NaN | slow | long.
CREATE TABLE extra (call INTEGER PRIMARY KEY, why TEXT NOT NULL);

-- The global random generators as a call began (record with random_state=True; since version 2): the words of Python's and
-- of NumPy's, where that is an MT19937, in blob. facts: {"python": [version, position, gauss], "numpy": [generator, position,
-- has_gauss, gauss]}.
CREATE TABLE random_state (call INTEGER PRIMARY KEY, facts TEXT NOT NULL, python BLOB, numpy BLOB);

-- Sums over the rows of call that ended and their rows of gil, by node and kind, for the ledger of many recordings (since
-- version 2). They grow with each batch; empty at the end where they are not those of all calls.
CREATE TABLE summary (
    node INTEGER NOT NULL, kind TEXT NOT NULL, calls INTEGER NOT NULL, errors INTEGER NOT NULL, total_ns INTEGER NOT NULL,
    max_ns INTEGER NOT NULL, measured INTEGER NOT NULL, wait_ns INTEGER, held_ns INTEGER, released_ns INTEGER,
    reacquire_ns INTEGER, PRIMARY KEY (node, kind)
) WITHOUT ROWID;

-- How often the user's lines ran (record with lines=True); kind: line | lambda, or (lines="graph") graph | graph lambda,
-- where ran is how often the graph ran it. traced and ran are NULL where Python did not run the line at trace or in a
-- body; capped: "at least". graph and inside are JSON lists: what the line became in the graph, and the branches and
-- loops of the graph that it was built in.
CREATE TABLE line (
    file TEXT NOT NULL, line INTEGER NOT NULL, kind TEXT NOT NULL, traced INTEGER, ran INTEGER, capped INTEGER NOT NULL,
    graph TEXT NOT NULL, inside TEXT NOT NULL, PRIMARY KEY (file, line, kind)
) WITHOUT ROWID;

-- What those lines printed, by graph trace or by call.
CREATE TABLE print (
    id INTEGER PRIMARY KEY, trace INTEGER, call INTEGER, file TEXT NOT NULL, line INTEGER NOT NULL,
    function TEXT NOT NULL, text TEXT NOT NULL
);

-- Text of user files that nodes and functions live in.
CREATE TABLE source (file TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
