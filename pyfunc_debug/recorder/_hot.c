/* The hot path of the recorder: what recorder/hot.py does, in some hundreds of nanoseconds instead of microseconds.
 *
 * Between two calls TensorFlow's executor has thrown the interpreter's code and data out of the caches: in place, Python
 * costs three times what a loop over it says. A Ticket is a plain structure, which the garbage collector leaves alone:
 * thousands wait in the writer's queue, and each collection would look at all of them.
 */
#include <Python.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <structmember.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef long long Number;

/* As in values/_statistics.c, and there is none where that was not built. */
#define HOLD_ALL "pyfunc_debug.values._statistics.hold_all"
static PyObject *(*hold_all)(PyObject *values, int policy, Number room, Number *size);
enum { SHAPE = 1, SUMMARY = 2 };
/* Fills in 72 bytes about a held input, as in pfrec/ring.py. */
#define BRIEF "pyfunc_debug.values._statistics.brief"
static void (*brief)(PyObject *held, void *out);
/* Whether there is a NaN in a NumPy array of floats or in a tensor of them, as far as it is looked at. */
#define HAS_NAN "pyfunc_debug.values._statistics.has_nan_in_turn"
static int (*has_nan_in_turn)(PyObject *value, long long turn, int most);

/* -- what the operating system says of the current thread -------------------------------------------------------------- */

static __thread struct {
    Number id;  /* its number; asking for it is a system call */
    Number met; /* the HotPath that knows its name */
} here;

/* A call on the shortcut, below. Under the GIL all of them are in a row, the oldest first, whosever they are. */
typedef struct Light Light;
static struct {
    Light *first, *last, *spare;
    unsigned forks;
} lights;

static void forget_threads(void) { /* in a forked child, whose one thread has a new number */
    here.id = here.met = 0;
    lights.first = lights.last = NULL;
    lights.forks++;
}

static Number thread_id(void) {
    if (!here.id) here.id = (Number)syscall(SYS_gettid);
    return here.id;
}

static Number now_ns(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (Number)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* -- Ticket ------------------------------------------------------------------------------------------------------------ */

typedef struct {
    PyObject_HEAD
    Number call, cpu_ns, cpu_start_ns, end_ns, entered_ns, ident, policy, room, start_ns, thread, values_ns;
    int slot; /* in the ring, counted from 1; 0: none */
    char light, kept, late, over;
    PyObject *args; /* of a light or late one, until it ends */
    PyObject *failure, *extra, *given, *inputs, *outputs, *pair, *recorder, *runs, *token;
    PyObject *key; /* in HotPath.open: `call` */
    struct Tally *tally; /* of its node, where there is one */
} Ticket;

#define NUMBER(type, name) {#name, T_LONGLONG, offsetof(type, name), 0, NULL}
#define OBJECT(type, name) {#name, T_OBJECT, offsetof(type, name), 0, NULL}

static PyMemberDef ticket_members[] = {
    NUMBER(Ticket, call), NUMBER(Ticket, cpu_ns), NUMBER(Ticket, cpu_start_ns), NUMBER(Ticket, end_ns),
    NUMBER(Ticket, entered_ns), NUMBER(Ticket, ident), NUMBER(Ticket, policy), NUMBER(Ticket, room),
    NUMBER(Ticket, start_ns), NUMBER(Ticket, thread), NUMBER(Ticket, values_ns), OBJECT(Ticket, failure),
    OBJECT(Ticket, inputs), OBJECT(Ticket, outputs), OBJECT(Ticket, pair), OBJECT(Ticket, recorder),
    OBJECT(Ticket, runs), OBJECT(Ticket, token), OBJECT(Ticket, extra), OBJECT(Ticket, args), OBJECT(Ticket, given),
    {"light", T_BOOL, offsetof(Ticket, light), 0, NULL}, {"kept", T_BOOL, offsetof(Ticket, kept), 0, NULL},
    {"late", T_BYTE, offsetof(Ticket, late), 0, NULL},
    {NULL, 0, 0, 0, NULL}};

static void ticket_dealloc(Ticket *ticket) {
    Py_XDECREF(ticket->key);
    Py_XDECREF(ticket->args);
    Py_XDECREF(ticket->extra);
    Py_XDECREF(ticket->failure);
    Py_XDECREF(ticket->given);
    Py_XDECREF(ticket->inputs);
    Py_XDECREF(ticket->outputs);
    Py_XDECREF(ticket->pair);
    Py_XDECREF(ticket->recorder);
    Py_XDECREF(ticket->runs);
    Py_XDECREF(ticket->token);
    Py_XDECREF((PyObject *)ticket->tally);
    PyObject_Free(ticket);
}

static PyTypeObject ticket_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "pyfunc_debug.recorder._hot.Ticket",
    .tp_doc = "One call on its way from the hot path to the file: see recorder/ticket.py.",
    .tp_basicsize = sizeof(Ticket),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_members = ticket_members,
    .tp_new = PyType_GenericNew,
    .tp_dealloc = (destructor)ticket_dealloc,
    .tp_free = PyObject_Free,
};

/* -- HotPath ----------------------------------------------------------------------------------------------------------- */

/* As in recorder/hot.py. */
enum { SHORT_NS = 100000, STREAK = 8, EVERY = 16, NOT_MEASURED = -1, NO_ROOM = 16, FIRST = 3 };
enum { EMPTY = 1, KEPT = 2, AFTER = 3 }; /* as in recorder/ticket.py */

/* How many short calls of a node came one after the other. A node has one of a few slots in a row; where more nodes than
 * that want them they drive each other out: then more are asked for their CPU time, never fewer. */
typedef struct {
    Py_hash_t node;
    unsigned calls;
} Streak;
enum { SLOTS = 64, ROW = 8 };

/* What sampling knows of a node, as in recorder/sampling.py. */
enum { SLOWEST = 4, NANS = 16, NAN_LEAST = 2, NAN_MOST = 64, NAN_SHORT_NS = 2000000, TEXT = 24 };
typedef struct Tally {
    PyObject_HEAD
    Number calls, left, nans, ns;
    Number slowest[SLOWEST]; /* the longest durations, ascending */
    Number policy;           /* of its last call that took the full way; -1: ask */
    int length;              /* of `text`, its token; 0: that is longer, or not ASCII */
    char text[TEXT];
    char plain; /* it is not among the tokens that report their calls themselves */
} Tally;

static PyMemberDef tally_members[] = {
    NUMBER(Tally, calls), NUMBER(Tally, left), NUMBER(Tally, nans), NUMBER(Tally, ns), NUMBER(Tally, policy),
    {NULL, 0, 0, 0, NULL}};

static PyTypeObject tally_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "pyfunc_debug.recorder._hot.Tally",
    .tp_doc = "What sampling knows of a node: see recorder/sampling.py.",
    .tp_basicsize = sizeof(Tally),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_members = tally_members,
};

/* The ring, as in pfrec/ring.py. */
enum {
    HEADER_BYTES = 4096, DONE_SLOTS = 12, SIGN = 16, BEGUN = 24, TERMINATED = 40, GIVEN_SLOTS = 48, SIGNAL = 52,
    OPEN_SLOTS = 1024, OPEN_BYTES = 512, MOST_INPUTS = 5, BRIEF_BYTES = 72
};
typedef struct {
    Number call, start_ns;
    int thread, inputs;
    char token[64];
    char briefs[MOST_INPUTS][BRIEF_BYTES];
} OpenCall;
typedef struct {
    Number call, start_ns, end_ns, cpu_ns;
    int thread, failed;
    char token[24];
} DoneCall;
typedef struct {
    Number call, inputs;
    char briefs[MOST_INPUTS][BRIEF_BYTES];
} Given; /* what a finished call was given */
_Static_assert(sizeof(OpenCall) <= OPEN_BYTES && sizeof(DoneCall) == 64 && sizeof(Given) == 376, "as in pfrec/ring.py");

/* Leaves a sign of life in the ring twenty times a second, four times where no call begins, whoever has the GIL: then one knows when a process died. */
typedef struct {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pid_t process; /* a forked child has no such thread */
    int stop;
    char *memory;
} Beat;
enum { BEAT_NS = 50000000, IDLE_BEAT_NS = 250000000 };

typedef struct {
    PyObject_HEAD
    /* First what a call that is left out asks for: in place, each line of the cache takes 0.1 us to come. */
    PyObject *live, *runs, *ring;
    PyObject *live_version;   /* `version` as it was when `runs` was made */
    Py_ssize_t version_place; /* where `live` holds it; 0: not known */
    Number calls, number, first, every;
    char accepting, all_cpu, asleep, wanted;
    int free_count;
    Py_buffer memory; /* the ring's, while there is one */
    Number done_slots, given_slots, done_count;
    PyObject *recorder, *queue, *append, *open, *known, *tallies, *rouse;
    Beat *beat;
    short free[OPEN_SLOTS];
    Number queue_calls, queue_bytes, queued_bytes;
    Streak streaks[SLOTS];
    Tally *near[SLOTS]; /* of the tokens that were asked for last: each look at a dictionary is half a microsecond */
} HotPath;

static Number hot_paths = 0;
static PyObject *name_count, *name_dtype, *name_item, *name_register, *name_register_thread, *name_now, *name_version;
static PyObject *array_type, *object_dtype, *zero; /* of NumPy, or NULL without it */

/* Something of ours failed: the program goes on, and the call is not recorded. Interrupts are the program's own. */
static int is_ours(HotPath *self) {
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return 0;
    PyErr_WriteUnraisable((PyObject *)self);
    return 1;
}

/* Where an object of this type holds its version, if that is in a slot; else 0. */
static Py_ssize_t place_of_version(PyTypeObject *type) {
    PyObject *slot = type->tp_dict ? PyDict_GetItemWithError(type->tp_dict, name_version) : NULL;
    PyMemberDef *member = slot && Py_IS_TYPE(slot, &PyMemberDescr_Type) ? ((PyMemberDescrObject *)slot)->d_member : NULL;
    return member && member->type == T_OBJECT_EX ? member->offset : 0;
}

/* The runs in flight, see events.LiveRuns: the list is good for as long as the version is the same. */
static PyObject *live_runs(HotPath *self) {
    if (self->version_place && self->runs) {
        if (*(PyObject **)((char *)self->live + self->version_place) == self->live_version) return Py_NewRef(self->runs);
    }
    PyObject *version = PyObject_GetAttr(self->live, name_version);
    PyObject *runs = version ? PyObject_CallMethodNoArgs(self->live, name_now) : NULL;
    if (!runs) {
        Py_XDECREF(version);
        return NULL;
    }
    PyObject *before = self->runs, *version_before = self->live_version;
    self->runs = runs, self->live_version = version;
    self->version_place = place_of_version(Py_TYPE(self->live));
    Py_INCREF(runs);
    Py_XDECREF(before);
    Py_XDECREF(version_before);
    return runs;
}

static int take(HotPath *self, Ticket *ticket, PyObject *values, int inputs) {
    Number began_ns = now_ns(CLOCK_MONOTONIC), size = 0;
    Number room = self->queue_bytes - self->queued_bytes;
    PyObject *held = Py_None, **place = inputs ? &ticket->inputs : &ticket->outputs;
    if (hold_all && (ticket->policy == SHAPE || ticket->policy == SUMMARY)) {
        held = hold_all(values, (int)ticket->policy, room, &size);
    }
    if (held == Py_None) {
        PyObject *found = PyObject_CallMethod(self->recorder, "hold_values", "OLL", values, ticket->policy, room);
        held = found && PyArg_ParseTuple(found, "OL", &held, &size) ? Py_NewRef(held) : NULL;
        Py_XDECREF(found);
    }
    if (!held) return -1;
    PyObject *before = *place;
    *place = held;
    Py_XDECREF(before);
    ticket->room += size;
    self->queued_bytes += size;
    ticket->values_ns += now_ns(CLOCK_MONOTONIC) - began_ns;
    return 0;
}

static Streak *streak(HotPath *self, Ticket *ticket) {
    Py_hash_t node = PyObject_Hash(ticket->token); /* a text: it has one */
    Streak *found = &self->streaks[node & (SLOTS - 1)];
    if (found->node == node) return found;
    for (int i = 1; i < ROW && found->node; i++) {
        Streak *next = &self->streaks[(node + i) & (SLOTS - 1)];
        if (next->node == node) return next;
        if (!next->node) found = next;
    }
    found->node = node, found->calls = 0;
    return found;
}

/* Whether to ask for the CPU time, see recorder/hot.py. */
static int wants_cpu(HotPath *self, Ticket *ticket) {
    if (self->all_cpu) return 1;
    unsigned calls = streak(self, ticket)->calls;
    return calls < STREAK || calls % EVERY == 0;
}

static OpenCall *open_call(HotPath *self, int slot) {
    return (OpenCall *)((char *)self->memory.buf + HEADER_BYTES + (slot - 1) * OPEN_BYTES);
}

static void copy_token(char *to, size_t room, PyObject *token) {
    Py_ssize_t size = 0;
    const char *text = PyUnicode_AsUTF8AndSize(token, &size);
    if (!text) PyErr_Clear(), size = 0;
    if ((size_t)size > room) size = (Py_ssize_t)room;
    memcpy(to, text, (size_t)size);
    memset(to + size, 0, room - (size_t)size);
}

/* Notes in the ring that a body is about to run: its slot, or 0. Under the GIL, as all here: no slot is given away twice. */
static int ring_begin(HotPath *self, Number number, Number start_ns, Number thread, PyObject *token, PyObject *inputs) {
    if (!self->ring) return 0;
    volatile Number *begun = (Number *)((char *)self->memory.buf + BEGUN);
    int slot = self->free_count ? self->free[--self->free_count] : 0;
    if (slot) {
        OpenCall *call = open_call(self, slot);
        call->start_ns = start_ns, call->thread = (int)thread, call->inputs = -1;
        copy_token(call->token, sizeof call->token, token);
        if (brief && inputs && (PyTuple_Check(inputs) || PyList_Check(inputs))) {
            Py_ssize_t count = PySequence_Fast_GET_SIZE(inputs);
            call->inputs = count < MOST_INPUTS ? (int)count : MOST_INPUTS;
            for (int i = 0; i < call->inputs; i++) brief(PySequence_Fast_GET_ITEM(inputs, i), call->briefs[i]);
        }
        *(volatile Number *)&call->call = number; /* when all else is there: now it stands in the ring */
    }
    *begun = number; /* last: a call that is counted is not missing */
    return slot;
}

/* It ended. */
static void ring_free(HotPath *self, int slot) {
    if (!self->ring || !slot) return;
    *(volatile Number *)&open_call(self, slot)->call = 0;
    self->free[self->free_count++] = (short)slot;
}

static void ring_end(HotPath *self, Ticket *ticket) {
    if (!self->ring) return;
    char *done_calls = (char *)self->memory.buf + HEADER_BYTES + OPEN_SLOTS * OPEN_BYTES;
    Number turn = self->done_count;
    if (!ticket->light) { /* else it is only counted, and drives no other out */
        DoneCall *call = (DoneCall *)done_calls + turn % self->done_slots;
        *(volatile Number *)&call->call = 0;
        call->start_ns = ticket->start_ns, call->end_ns = ticket->end_ns, call->cpu_ns = ticket->cpu_ns;
        call->thread = (int)ticket->thread, call->failed = ticket->failure && ticket->failure != Py_None;
        copy_token(call->token, sizeof call->token, ticket->token);
        *(volatile Number *)&call->call = ticket->call;
        self->done_count++;
    }
    if (ticket->slot) {
        OpenCall *begun = open_call(self, ticket->slot);
        if (self->given_slots && begun->inputs >= 0) { /* never so for a light one */
            Given *given = (Given *)(done_calls + self->done_slots * (Number)sizeof(DoneCall));
            given += turn % self->given_slots;
            *(volatile Number *)&given->call = 0;
            given->inputs = begun->inputs;
            memcpy(given->briefs, begun->briefs, (size_t)begun->inputs * BRIEF_BYTES);
            *(volatile Number *)&given->call = ticket->call;
        }
        ring_free(self, ticket->slot);
        ticket->slot = 0;
    }
}

/* How full the queue is when it wakes a writer that may sleep on: as in recorder/hot.py. */
enum { ROUSE_PART = 8 };

/* Wakes the writer, if it sleeps. */
static int rouse(HotPath *self) {
    if (!self->asleep || !self->rouse) return 0;
    self->asleep = 0;
    PyObject *done = PyObject_CallNoArgs(self->rouse);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* A token's text, if it is short; else `length` is 0. */
static const char *short_text(PyObject *token, int *length) {
    *length = 0;
    if (!PyUnicode_IS_COMPACT_ASCII(token) || PyUnicode_GET_LENGTH(token) > TEXT) return NULL;
    *length = (int)PyUnicode_GET_LENGTH(token);
    return (const char *)PyUnicode_1BYTE_DATA(token);
}

/* Where the tally of such a token may be: tokens end in numbers. */
static Tally **near(HotPath *self, const char *text, int length) {
    unsigned last = length > 1 ? 10u * (unsigned char)text[length - 2] + (unsigned char)text[length - 1] : 0;
    return &self->near[last % SLOTS];
}

/* The node's tally; borrowed, NULL with an exception. */
static Tally *tally_of(HotPath *self, PyObject *token) {
    PyObject *found = PyDict_GetItemWithError(self->tallies, token);
    if (found || PyErr_Occurred()) return (Tally *)found;
    Tally *made = PyObject_New(Tally, &tally_type);
    if (!made) return NULL;
    made->calls = made->left = made->nans = made->ns = made->plain = 0, made->policy = -1;
    memset(made->slowest, 0, sizeof made->slowest);
    const char *text = short_text(token, &made->length);
    if (made->length) memcpy(made->text, text, (size_t)made->length);
    int failed = PyDict_SetItem(self->tallies, token, (PyObject *)made) < 0;
    Py_DECREF(made); /* the dict holds it */
    return failed ? NULL : made;
}

/* Whether sampling leaves out the node's next call, unless it turns out to be worth keeping. */
static int is_next_light(HotPath *self, Tally *node) {
    Number before = node->calls;
    return !self->wanted || (before >= self->first && (before - self->first + 1) % self->every);
}

/* Whether a call is among the slowest of its node so far. */
static int is_slow(Tally *node, Number ns) {
    if (ns <= node->slowest[0]) return 0;
    int i = 0;
    for (; i + 1 < SLOWEST && node->slowest[i + 1] < ns; i++) node->slowest[i] = node->slowest[i + 1];
    node->slowest[i] = ns;
    return 1;
}

/* How many kB of an output to look at: as in recorder/sampling.py. */
static int nan_part(Number ns) {
    int part = NAN_LEAST;
    for (Number long_ns = NAN_SHORT_NS; ns >= long_ns && part < NAN_MOST; long_ns *= 2) part *= 2;
    return part;
}

static int any_nan(PyObject *values, Number turn, int most) {
    if (!has_nan_in_turn) return 0;
    if (!PyTuple_Check(values) && !PyList_Check(values)) return has_nan_in_turn(values, turn, most);
    for (Py_ssize_t i = 0; i < Py_SIZE(values); i++) {
        PyObject *one = Py_NewRef(PyList_Check(values) ? PyList_GET_ITEM(values, i) : PyTuple_GET_ITEM(values, i));
        int found = has_nan_in_turn(one, turn, most);
        Py_DECREF(one);
        if (found) return 1;
    }
    return 0;
}

/* Whether the inputs are still what the body was given: not so where it may have changed an array. */
static int are_unchanged(PyObject *args) {
    if (!PyTuple_Check(args) && !PyList_Check(args)) return 0;
    for (Py_ssize_t i = 0; i < Py_SIZE(args); i++) {
        PyObject *one = PyList_Check(args) ? PyList_GET_ITEM(args, i) : PyTuple_GET_ITEM(args, i);
        if (!strcmp(Py_TYPE(one)->tp_name, "numpy.ndarray")) return 0;
    }
    return 1;
}

enum { MOST_GIVEN = 256 };

/* What the kernel is about to compare with Tout, as in recorder/ticket.py. */
static PyObject *given_one(PyObject *value) {
    if (!array_type || (PyObject *)Py_TYPE(value) != array_type) return Py_NewRef(Py_True);
    PyObject *dtype = PyObject_GetAttr(value, name_dtype);
    if (!dtype || dtype != object_dtype) return dtype;
    PyObject *item = PyObject_CallMethodOneArg(value, name_item, zero);
    if (!item) PyErr_Clear(); /* there is none */
    int objects = item && !PyBytes_Check(item) && !PyUnicode_Check(item);
    Py_XDECREF(item);
    if (!objects) return dtype;
    Py_DECREF(dtype);
    return Py_NewRef(Py_False);
}

static PyObject *given_all(PyObject *outputs) {
    if (outputs == Py_None) return PyTuple_New(0);
    if (PyTuple_Check(outputs)) return Py_NewRef(Py_None);
    if (!PyList_Check(outputs)) return given_one(outputs);
    if (PyList_GET_SIZE(outputs) > MOST_GIVEN) return Py_NewRef(Py_None);
    PyObject *all = PyTuple_New(PyList_GET_SIZE(outputs));
    for (Py_ssize_t i = 0; all && i < PyTuple_GET_SIZE(all); i++) {
        PyObject *value = i < PyList_GET_SIZE(outputs) ? PyList_GET_ITEM(outputs, i) : Py_None;
        Py_INCREF(value);
        PyObject *one = given_one(value);
        Py_DECREF(value);
        if (!one) Py_CLEAR(all);
        else PyTuple_SET_ITEM(all, i, one);
    }
    return all;
}

/* What becomes of a call that sampling left out, or whose values have no room: 1 if it is to be stored, -1 with an
 * exception. */
static int decide(HotPath *self, Ticket *ticket, PyObject *outputs, Tally *node, int slow, int nan) {
    Number ns = ticket->end_ns - ticket->start_ns;
    int failed = ticket->failure && ticket->failure != Py_None;
    int light = ticket->light, late = ticket->late == EMPTY;
    const char *why = failed ? "failed" : nan ? "NaN" : ticket->kept ? "long" : slow ? "slow" : NULL;
    if (!why) {
        if (light) node->left++, node->ns += ns;
        return !light;
    }
    if (light) {
        PyObject *before = ticket->extra;
        if (!(ticket->extra = PyUnicode_FromString(why))) return -1;
        Py_XDECREF(before);
        ticket->light = 0;
        if (outputs && !(ticket->given = given_all(outputs))) return -1;
    }
    if (!ticket->policy) return 1;
    if (late) node->nans += nan;
    int unchanged = ticket->args && are_unchanged(ticket->args);
    if (late) ticket->late = unchanged ? KEPT : AFTER;
    if (ticket->args && (late || unchanged) && take(self, ticket, ticket->args, 1) < 0) return -1;
    return outputs && take(self, ticket, outputs, 0) < 0 ? -1 : 1;
}

/* The same, of a call that went the full way, or that somebody saw running. */
static int settle(HotPath *self, Ticket *ticket, PyObject *outputs) {
    Tally *node = ticket->tally ? ticket->tally : tally_of(self, ticket->token);
    if (!node) return -1;
    Number ns = ticket->end_ns - ticket->start_ns;
    int slow = is_slow(node, ns);
    if (!ticket->light && ticket->late != EMPTY) return 1;
    int looked = outputs && ticket->policy && (ticket->light || node->nans < NANS);
    return decide(self, ticket, outputs, node, slow, looked && any_nan(outputs, node->calls, nan_part(ns)));
}

static int begin(HotPath *self, Ticket *ticket, PyObject *args) {
    if (self->asleep && !self->every && rouse(self) < 0) return -1;
    if (self->every || ticket->late) {
        Tally *node = tally_of(self, ticket->token);
        if (!node) return -1;
        if (self->every) ticket->light = (char)is_next_light(self, node);
        node->policy = ticket->policy + (ticket->late ? NO_ROOM : 0);
        int first = node->calls++ < FIRST;
        if (ticket->late && first) ticket->late = KEPT;
    }
    if (ticket->light || ticket->late == EMPTY) ticket->args = Py_NewRef(args);
    else if (ticket->policy && take(self, ticket, args, 1) < 0) return -1;
    if (!(ticket->runs = live_runs(self))) return -1;
    ticket->thread = thread_id();
    ticket->ident = (Number)PyThread_get_thread_ident();
    if (here.met != self->number) {
        PyObject *number = PyLong_FromLongLong(ticket->thread);
        PyObject *done = number ? PyObject_CallMethodOneArg(self->recorder, name_register_thread, number) : NULL;
        Py_XDECREF(number);
        if (!done) return -1;
        Py_DECREF(done);
        here.met = self->number;
    }
    ticket->start_ns = ticket->entered_ns; /* set again when all is ready; the worker may look at any moment */
    if (!(ticket->key = PyLong_FromLongLong(ticket->call))) return -1;
    if (PyDict_SetItem(self->open, ticket->key, (PyObject *)ticket) < 0) return -1;
    ticket->slot = ring_begin(self, ticket->call, ticket->start_ns, ticket->thread, ticket->token, ticket->inputs);
    ticket->cpu_start_ns = wants_cpu(self, ticket) && !ticket->light ? now_ns(CLOCK_THREAD_CPUTIME_ID) : NOT_MEASURED;
    ticket->start_ns = now_ns(CLOCK_MONOTONIC);
    return 0;
}

static PyObject *enter(HotPath *self, PyObject *const *args, Py_ssize_t count) {
    if (count != 2) return PyErr_Format(PyExc_TypeError, "enter(token, args)");
    if (!self->accepting) Py_RETURN_NONE;
    Number entered_ns = now_ns(CLOCK_MONOTONIC);
    PyObject *token = args[0], *known = PyDict_GetItemWithError(self->known, token), *met = NULL;
    if (!known && !PyErr_Occurred()) {
        met = PyObject_CallMethodObjArgs(self->recorder, name_register, token, args[1], NULL);
        if (met && PyTuple_Check(met) && PyTuple_GET_SIZE(met) == 2) {
            token = PyTuple_GET_ITEM(met, 0), known = PyTuple_GET_ITEM(met, 1);
        }
    }
    Number policy = known ? PyLong_AsLongLong(known) : -1;
    if (PyErr_Occurred() || policy < 0) { /* a node outside the `nodes` glob */
        Py_XDECREF(met);
        if (PyErr_Occurred() && !is_ours(self)) return NULL;
        Py_RETURN_NONE;
    }
    Ticket *ticket = (Ticket *)ticket_type.tp_alloc(&ticket_type, 0);
    if (ticket) {
        ticket->entered_ns = entered_ns, ticket->call = ++self->calls, ticket->policy = policy % NO_ROOM;
        ticket->late = policy >= NO_ROOM ? EMPTY : 0;
        ticket->token = Py_NewRef(token), ticket->recorder = Py_NewRef(self->recorder);
    }
    Py_XDECREF(met);
    if (!ticket || begin(self, ticket, args[1]) < 0) {
        Py_XDECREF(ticket);
        if (!is_ours(self)) return NULL;
        Py_RETURN_NONE;
    }
    return (PyObject *)ticket;
}

/* Ends a call, and gives it to the writer if it is `stored`; -1: that could not be decided. */
static int end_call(HotPath *self, PyObject *ticket, int stored) {
    if (stored < 0) {
        if (!is_ours(self)) return -1;
        stored = 1;
    }
    ring_end(self, (Ticket *)ticket);
    PyObject *key = ((Ticket *)ticket)->key;
    if (key && PyDict_DelItem(self->open, key) < 0) PyErr_Clear(); /* forgotten in a forked child */
    Py_CLEAR(((Ticket *)ticket)->key); /* many may wait in the queue */
    ((Ticket *)ticket)->over = 1;
    Py_CLEAR(((Ticket *)ticket)->args);
    if (!stored) return 0;
    Number waiting = PyObject_Size(self->queue);
    int room = waiting < self->queue_calls;
    int much = waiting > self->queue_calls / ROUSE_PART || self->queued_bytes > self->queue_bytes / ROUSE_PART;
    if (self->asleep && much && rouse(self) < 0) return -1;
    PyObject *done = room ? PyObject_CallOneArg(self->append, ticket)
                          : PyObject_CallMethodOneArg(self->recorder, name_count, ticket);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static int finish_ticket(HotPath *self, PyObject *ticket, PyObject *outputs) {
    /* Values are taken first, for which the GIL may be let go of; then nothing comes between looking at `kept` and the
       end of the call, so that what the writer has shown as running is stored. */
    int settled = self->every || ((Ticket *)ticket)->late == EMPTY;
    return end_call(self, ticket, settled ? settle(self, (Ticket *)ticket, outputs) : 1);
}

static PyObject *finish(HotPath *self, PyObject *ticket) {
    if (!Py_IS_TYPE(ticket, &ticket_type)) return PyErr_Format(PyExc_TypeError, "finish(ticket)");
    if (finish_ticket(self, ticket, NULL) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *leave(HotPath *self, PyObject *const *args, Py_ssize_t count) {
    if (count != 2) return PyErr_Format(PyExc_TypeError, "leave(ticket, outputs)");
    if (Py_IS_TYPE(args[0], &ticket_type)) {
        Ticket *ticket = (Ticket *)args[0];
        ticket->end_ns = now_ns(CLOCK_MONOTONIC);
        int measured = ticket->cpu_start_ns != NOT_MEASURED;
        ticket->cpu_ns = measured ? now_ns(CLOCK_THREAD_CPUTIME_ID) - ticket->cpu_start_ns : NOT_MEASURED;
        if (!self->all_cpu && !ticket->light) {
            Streak *node = streak(self, ticket);
            node->calls = ticket->end_ns - ticket->start_ns < SHORT_NS ? node->calls + 1 : 0;
        }
        if (!ticket->light) { /* else it is looked at if it is kept */
            PyObject *before = ticket->given;
            if (!(ticket->given = given_all(args[1])) && !is_ours(self)) return NULL;
            Py_XDECREF(before);
        }
        int wanted = ticket->policy && !ticket->light && ticket->late != EMPTY;
        int failed = wanted && take(self, ticket, args[1], 0) < 0;
        if (failed && !is_ours(self)) return NULL;
        if (finish_ticket(self, args[0], args[1]) < 0 && !is_ours(self)) return NULL;
    }
    return Py_NewRef(args[1]);
}

static int limit(PyObject *budget, const char *name, Number *value) {
    PyObject *number = PyObject_GetAttrString(budget, name);
    *value = number ? PyLong_AsLongLong(number) : -1;
    Py_XDECREF(number);
    return PyErr_Occurred() ? -1 : 0;
}

static int hot_init(HotPath *self, PyObject *args, PyObject *named) {
    PyObject *recorder, *queue, *open, *known, *live, *budget;
    if (self->recorder || (named && PyDict_GET_SIZE(named))) return PyErr_Format(PyExc_TypeError, "see recorder/hot.py"), -1;
    if (!PyArg_ParseTuple(args, "OOO!O!OO", &recorder, &queue, &PyDict_Type, &open, &PyDict_Type, &known, &live, &budget))
        return -1;
    if (limit(budget, "queue_calls", &self->queue_calls) < 0 || limit(budget, "queue_bytes", &self->queue_bytes) < 0)
        return -1;
    if (!(self->append = PyObject_GetAttrString(queue, "append")) || !(self->tallies = PyDict_New())) return -1;
    self->recorder = Py_NewRef(recorder), self->queue = Py_NewRef(queue), self->open = Py_NewRef(open);
    self->known = Py_NewRef(known), self->live = Py_NewRef(live);
    self->number = ++hot_paths;
    self->accepting = self->wanted = 1;
    return 0;
}

static int hot_traverse(HotPath *self, visitproc visit, void *arg) {
    Py_VISIT(self->recorder);
    Py_VISIT(self->queue);
    Py_VISIT(self->append);
    Py_VISIT(self->open);
    Py_VISIT(self->known);
    Py_VISIT(self->live);
    Py_VISIT(self->runs);
    Py_VISIT(self->ring);
    Py_VISIT(self->tallies);
    Py_VISIT(self->rouse);
    return 0;
}

/* -- SIGTERM and SIGHUP ------------------------------------------------------------------------------------------------ */

/* Notes in the ring when one of them came, where it ends the program: then its recording can say so. The program keeps its
 * own handlers and its exit status: this stands only where the system's action was to be, which it takes at once. */
static char *volatile noted; /* the memory of the ring that is used */
static pid_t noted_by;

static void terminated(int number) {
    char *memory = noted;
    if (memory && getpid() == noted_by) {
        *(volatile unsigned int *)(memory + SIGNAL) = (unsigned int)number;
        *(volatile Number *)(memory + TERMINATED) = now_ns(CLOCK_MONOTONIC);
    }
    signal(number, SIG_DFL);
    raise(number);
}

static void note_termination(char *memory) {
    static const int numbers[] = {SIGTERM, SIGHUP};
    struct sigaction now, ours = {.sa_handler = terminated};
    noted = memory;
    noted_by = getpid();
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (sigaction(numbers[i], NULL, &now) || now.sa_flags & SA_SIGINFO) continue;
        if (memory && now.sa_handler == SIG_DFL) sigaction(numbers[i], &ours, NULL);
        if (!memory && now.sa_handler == terminated) signal(numbers[i], SIG_DFL);
    }
}

static void *beating(void *given) {
    Beat *beat = given;
    Number known = 0;
    pthread_mutex_lock(&beat->lock);
    while (!beat->stop) {
        Number begun = *(volatile Number *)(beat->memory + BEGUN);
        *(volatile Number *)(beat->memory + SIGN) = now_ns(CLOCK_MONOTONIC);
        Number next = now_ns(CLOCK_MONOTONIC) + (begun == known ? IDLE_BEAT_NS : BEAT_NS);
        known = begun;
        struct timespec until = {.tv_sec = next / 1000000000, .tv_nsec = next % 1000000000};
        pthread_cond_timedwait(&beat->wake, &beat->lock, &until);
    }
    pthread_mutex_unlock(&beat->lock);
    return NULL;
}

/* NULL where there can be no thread: then the writer leaves signs, more rarely. */
static Beat *start_beat(char *memory) {
    Beat *beat = calloc(1, sizeof *beat);
    if (!beat) return NULL;
    beat->memory = memory, beat->process = getpid();
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&beat->wake, &clock);
    pthread_condattr_destroy(&clock);
    pthread_mutex_init(&beat->lock, NULL);
    sigset_t all, before;
    sigfillset(&all); /* signals are the program's own threads' to handle */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&beat->thread, NULL, beating, beat);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        free(beat);
        return NULL;
    }
    return beat;
}

static void stop_beat(Beat *beat) {
    if (!beat || beat->process != getpid()) return; /* in a child its lock may be held for good */
    pthread_mutex_lock(&beat->lock);
    beat->stop = 1;
    pthread_cond_signal(&beat->wake);
    pthread_mutex_unlock(&beat->lock);
    pthread_join(beat->thread, NULL); /* it never waits for the GIL */
    pthread_cond_destroy(&beat->wake);
    pthread_mutex_destroy(&beat->lock);
    free(beat);
}

static void drop_memory(HotPath *self) {
    stop_beat(self->beat);
    self->beat = NULL;
    if (noted == self->memory.buf) note_termination(NULL);
    PyBuffer_Release(&self->memory);
}

static int hot_clear(HotPath *self) {
    self->accepting = 0; /* what is cleared is never used again */
    Py_CLEAR(self->recorder);
    Py_CLEAR(self->queue);
    Py_CLEAR(self->append);
    Py_CLEAR(self->open);
    Py_CLEAR(self->known);
    Py_CLEAR(self->live);
    Py_CLEAR(self->runs);
    if (self->ring) drop_memory(self);
    Py_CLEAR(self->ring);
    Py_CLEAR(self->tallies);
    Py_CLEAR(self->rouse);
    Py_CLEAR(self->live_version);
    for (int i = 0; i < SLOTS; i++) {
        PyObject *tally = (PyObject *)self->near[i];
        self->near[i] = NULL;
        Py_XDECREF(tally);
    }
    return 0;
}

static void hot_dealloc(HotPath *self) {
    PyObject_GC_UnTrack(self);
    hot_clear(self);
    PyObject_GC_Del(self);
}

static PyObject *get_live(HotPath *self, void *unused) { return Py_NewRef(self->live ? self->live : Py_None); }

static int set_live(HotPath *self, PyObject *live, void *unused) {
    if (!live) return PyErr_Format(PyExc_TypeError, "live cannot be deleted"), -1;
    PyObject *before = self->live, *runs = self->runs;
    self->live = Py_NewRef(live), self->runs = NULL, self->version_place = 0;
    Py_XDECREF(before);
    Py_XDECREF(runs);
    return 0;
}

static PyObject *get_ring(HotPath *self, void *unused) { return Py_NewRef(self->ring ? self->ring : Py_None); }

/* Its `memory` is kept from being closed until another one, or None, takes its place. */
static int set_ring(HotPath *self, PyObject *ring, void *unused) {
    if (!ring) return PyErr_Format(PyExc_TypeError, "ring cannot be deleted"), -1;
    Py_buffer memory;
    Number slots = 0, given = 0;
    if (ring != Py_None) {
        PyObject *mapped = PyObject_GetAttrString(ring, "memory");
        int failed = !mapped || PyObject_GetBuffer(mapped, &memory, PyBUF_WRITABLE) < 0;
        Py_XDECREF(mapped);
        if (failed) return -1;
        if (memory.len >= HEADER_BYTES) {
            slots = *(unsigned *)((char *)memory.buf + DONE_SLOTS);
            given = *(unsigned *)((char *)memory.buf + GIVEN_SLOTS);
        }
        Number needed = HEADER_BYTES + OPEN_SLOTS * OPEN_BYTES + slots * (Number)sizeof(DoneCall);
        if (!slots || memory.len < needed + given * (Number)sizeof(Given)) {
            PyBuffer_Release(&memory);
            return PyErr_Format(PyExc_ValueError, "too small for a ring"), -1;
        }
    }
    PyObject *before = self->ring;
    if (before) drop_memory(self);
    self->ring = NULL;
    if (ring != Py_None) {
        self->ring = Py_NewRef(ring), self->memory = memory, self->done_slots = slots, self->given_slots = given;
        for (int i = 0; i < OPEN_SLOTS; i++) self->free[i] = (short)(OPEN_SLOTS - i);
        self->free_count = OPEN_SLOTS;
        note_termination(memory.buf);
        self->beat = start_beat(memory.buf);
    }
    Py_XDECREF(before);
    return 0;
}

static PyGetSetDef hot_properties[] = {
    {"ring", (getter)get_ring, (setter)set_ring, "Where calls are noted at once, or None: pfrec/ring.py.", NULL},
    {"live", (getter)get_live, (setter)set_live, "Runs in flight.", NULL}, {NULL, NULL, NULL, NULL, NULL}};
static PyMemberDef hot_members[] = {
    {"all_cpu", T_BOOL, offsetof(HotPath, all_cpu), 0, "Whether the CPU time of every call is wanted."},
    {"accepting", T_BOOL, offsetof(HotPath, accepting), 0, "Whether calls are recorded."},
    {"asleep", T_BOOL, offsetof(HotPath, asleep), 0, "Whether the writer sleeps until `rouse` is called."},
    {"rouse", T_OBJECT, offsetof(HotPath, rouse), 0, "Wakes the writer."},
    {"wanted", T_BOOL, offsetof(HotPath, wanted), 0, "Whether calls are sampled now."},
    {"tallies", T_OBJECT, offsetof(HotPath, tallies), READONLY, "What sampling knows of each node."},
    NUMBER(HotPath, first),
    NUMBER(HotPath, every),
    NUMBER(HotPath, queued_bytes),
    NUMBER(HotPath, calls),
    {NULL, 0, 0, 0, NULL}};
static PyObject *gather(HotPath *self, PyObject *least_ns);

static PyMethodDef hot_methods[] = {
    {"enter", (PyCFunction)(void (*)(void))enter, METH_FASTCALL, "A call is about to start: its ticket."},
    {"leave", (PyCFunction)(void (*)(void))leave, METH_FASTCALL, "The body returned; gives its outputs back."},
    {"finish", (PyCFunction)finish, METH_O, "Gives a ticket whose end is noted to the writer."},
    {"gather", (PyCFunction)gather, METH_O, "Puts calls that took the shortcut at least this many ns ago among the open ones."},
    {NULL, NULL, 0, NULL}};

static PyTypeObject hot_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "pyfunc_debug.recorder._hot.HotPath",
    .tp_doc = "What a recorder does before and after each body: see recorder/hot.py.",
    .tp_basicsize = sizeof(HotPath),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_members = hot_members,
    .tp_getset = hot_properties,
    .tp_methods = hot_methods,
    .tp_init = (initproc)hot_init,
    .tp_new = PyType_GenericNew,
    .tp_traverse = (traverseproc)hot_traverse,
    .tp_clear = (inquiry)hot_clear,
    .tp_dealloc = (destructor)hot_dealloc,
};

/* -- Shortcut ---------------------------------------------------------------------------------------------------------- */

/* What replaces FuncRegistry.__call__: a call that sampling leaves out, or of a node that nobody asks for, does not pass
 * through Python of ours, which TensorFlow's executor and the body throw out of the caches each time. All others go the
 * full way. */
typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *full, *original, *others, *profiled, *in_progress, *raised; /* as in interception/calls.py */
    volatile int *level; /* TensorFlow's own, above 0 where `profiled`; or NULL */
    HotPath *hot; /* of the recording that samples, or NULL */
    PyObject *path;
    PyObject *unwanted; /* a set: the tokens of nodes whose calls nobody asks for; or NULL */
} Shortcut;

/* The tally of a node that has one; borrowed, NULL with or without an exception. */
static Tally *near_tally(HotPath *hot, PyObject *token) {
    int length;
    const char *text = PyUnicode_CheckExact(token) ? short_text(token, &length) : NULL;
    Tally **place = text ? near(hot, text, length) : NULL;
    if (place && *place && (*place)->length == length && !memcmp((*place)->text, text, (size_t)length)) return *place;
    Tally *node = (Tally *)PyDict_GetItemWithError(hot->tallies, token);
    if (node && node->length) {
        Tally *before = *place;
        *place = (Tally *)Py_NewRef((PyObject *)node);
        Py_XDECREF((PyObject *)before);
    }
    return node;
}

static int is_profiled(Shortcut *self) {
    if (self->level) return *self->level > 0;
    PyObject *asked = PyObject_CallNoArgs(self->profiled);
    int profiled = asked ? PyObject_IsTrue(asked) : 1;
    Py_XDECREF(asked);
    return profiled;
}

/* A call that sampling leaves out. Most get neither a ticket nor a place in a dictionary: only when somebody asks what
 * runs (`gather`, `show`), or when it is to be stored. */
struct Light {
    Light *before, *after;
    HotPath *hot;
    PyObject *in_progress, *token, *args; /* the caller's */
    PyObject *runs, *outer;               /* ours; `outer`: what in_progress had where it is `shown` */
    Tally *node;
    Ticket *ticket;
    Number call, start_ns, thread, ident, policy;
    unsigned forks;
    int slot, shown;
};

static void add_light(Light *light) {
    light->before = lights.last, light->after = NULL, light->forks = lights.forks;
    if (lights.last) lights.last->after = light;
    else lights.first = light;
    lights.last = light;
}

static void drop_light(Light *light) {
    if (light->forks == lights.forks) { /* else this is a child, where nobody has it */
        if (light->before) light->before->after = light->after;
        else lights.first = light->after;
        if (light->after) light->after->before = light->before;
        else lights.last = light->before;
    }
    Py_XDECREF(light->runs);
    Py_XDECREF((PyObject *)light->node);
    Py_XDECREF((PyObject *)light->ticket);
    light->after = lights.spare; /* where a thread was ended at the interpreter's end, its own stays in the row for good */
    lights.spare = light;
}

/* Its ticket, borrowed; NULL with an exception. Nothing of Python's runs meanwhile. */
static Ticket *ticket_of(Light *light) {
    Ticket *ticket = light->ticket ? light->ticket : (Ticket *)ticket_type.tp_alloc(&ticket_type, 0);
    if (!ticket || light->ticket) return ticket;
    ticket->call = light->call, ticket->policy = light->policy % NO_ROOM, ticket->late = light->policy >= NO_ROOM ? EMPTY : 0;
    ticket->tally = (Tally *)Py_NewRef((PyObject *)light->node), ticket->runs = Py_NewRef(light->runs);
    ticket->light = 1, ticket->cpu_start_ns = NOT_MEASURED, ticket->thread = light->thread, ticket->ident = light->ident;
    ticket->token = Py_NewRef(light->token), ticket->args = Py_NewRef(light->args);
    ticket->recorder = Py_NewRef(light->hot->recorder ? light->hot->recorder : Py_None);
    ticket->entered_ns = ticket->start_ns = light->start_ns; /* nothing of note came until its body ran */
    ticket->slot = light->slot, light->slot = 0;
    return light->ticket = ticket;
}

/* Threads that were ended by the interpreter's end are in the row, and what they were given is not there any more. */
static int is_over(void) {
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing();
#else
    return _Py_IsFinalizing();
#endif
}

/* Puts those that began `least_ns` ago or earlier among the open calls. */
static PyObject *gather(HotPath *self, PyObject *least_ns) {
    Number least = PyLong_AsLongLong(least_ns), now = now_ns(CLOCK_MONOTONIC);
    if (PyErr_Occurred()) return NULL;
    for (Light *light = is_over() ? NULL : lights.first; light; light = light->after) { /* nothing of Python's runs here */
        if (light->hot != self || now - light->start_ns < least || !self->open) continue;
        Ticket *ticket = ticket_of(light);
        if (!ticket) return NULL;
        if (ticket->key || ticket->over) continue;
        if (!(ticket->key = PyLong_FromLongLong(ticket->call))) return NULL;
        if (PyDict_SetItem(self->open, ticket->key, (PyObject *)ticket) < 0) return NULL;
    }
    Py_RETURN_NONE;
}

/* The oldest one that is not shown yet: of this dictionary, and of this thread or (0) of any. */
static Light *next_hidden(PyObject *in_progress, Number ident) {
    Light *light = is_over() ? NULL : lights.first;
    while (light && (light->shown || light->in_progress != in_progress || (ident && light->ident != ident))) {
        light = light->after;
    }
    return light;
}

/* Puts them into `in_progress`, each above what its thread has there; -1 with an exception. */
static int show_lights(PyObject *in_progress, Number ident) {
    while (next_hidden(in_progress, ident)) {
        PyObject *fields = PyTuple_New(4), *thread = NULL; /* may run the garbage collector: only then one is chosen */
        Light *light = fields ? next_hidden(in_progress, ident) : NULL;
        Ticket *ticket = light ? ticket_of(light) : NULL;
        if (ticket && (thread = PyLong_FromLongLong(light->ident))) {
            PyObject *outer = PyDict_GetItemWithError(in_progress, thread);
            light->outer = Py_NewRef(outer ? outer : Py_None), light->shown = 1;
            PyTuple_SET_ITEM(fields, 0, Py_NewRef(light->outer));
            PyTuple_SET_ITEM(fields, 1, Py_NewRef(light->token));
            PyTuple_SET_ITEM(fields, 2, Py_NewRef(light->args));
            PyTuple_SET_ITEM(fields, 3, Py_NewRef((PyObject *)ticket));
            PyDict_SetItem(in_progress, thread, fields);
        }
        Py_XDECREF(thread);
        Py_XDECREF(fields);
        if (PyErr_Occurred()) return -1;
    }
    return 0;
}

/* NULL for all other calls, and where something goes wrong: then nothing has happened yet. */
static Light *begin_light(Shortcut *self, HotPath *hot, PyObject *token, PyObject *args) {
    if (!hot->every || !hot->accepting || here.met != hot->number) return NULL;
    Tally *node = near_tally(hot, token);
    if (!node || node->policy < 0 || !is_next_light(hot, node)) return NULL;
    if (!node->plain) { /* a node reports itself from its first call on, or never */
        if (PySequence_Contains(self->others, token)) return NULL;
        node->plain = 1;
    }
    if (is_profiled(self)) return NULL;
    PyObject *runs = live_runs(hot); /* may let other threads in: what follows does not */
    if (!runs) return NULL;
    Light *light = lights.spare;
    if (light) lights.spare = light->after;
    else light = PyMem_RawMalloc(sizeof *light);
    if (!light || !hot->accepting || !is_next_light(hot, node)) {
        if (light) light->after = lights.spare, lights.spare = light;
        Py_DECREF(runs);
        return NULL;
    }
    light->hot = hot, light->in_progress = self->in_progress, light->token = token, light->args = args;
    light->runs = runs, light->node = (Tally *)Py_NewRef((PyObject *)node), light->policy = node->policy;
    light->outer = NULL, light->ticket = NULL, light->shown = 0;
    light->thread = here.id, light->ident = (Number)PyThread_get_thread_ident();
    node->calls++, light->call = ++hot->calls;
    light->start_ns = now_ns(CLOCK_MONOTONIC);
    light->slot = ring_begin(hot, light->call, light->start_ns, light->thread, token, NULL);
    add_light(light);
    return light;
}

/* Its body returned. */
static int finish_light(HotPath *hot, Light *light, PyObject *outputs, Number end_ns) {
    Ticket *ticket = light->ticket;
    Number ns = end_ns - light->start_ns;
    if (ticket) {
        ticket->end_ns = end_ns, ticket->cpu_ns = NOT_MEASURED;
        return finish_ticket(hot, (PyObject *)ticket, outputs);
    }
    int slow = is_slow(light->node, ns);
    int nan = light->policy % NO_ROOM && any_nan(outputs, light->node->calls, nan_part(ns)); /* may let others in */
    if (!slow && !nan && !light->ticket) {
        light->node->left++, light->node->ns += ns;
        ring_free(hot, light->slot);
        return 0;
    }
    if (!(ticket = ticket_of(light))) return -1;
    ticket->end_ns = end_ns, ticket->cpu_ns = NOT_MEASURED;
    return end_call(hot, (PyObject *)ticket, decide(hot, ticket, outputs, light->node, slow, nan));
}

/* Whether nobody asks for the calls of this node: they have no ticket. -1: something went wrong. */
static int is_unwanted(Shortcut *self, PyObject *token) {
    int found = PySet_Contains(self->unwanted, token);
    if (found > 0) { /* else it reports itself */
        int reports = PySequence_Contains(self->others, token);
        found = reports ? reports < 0 ? -1 : 0 : !is_profiled(self);
    }
    return found;
}

/* Tells what listens, and gives up: the exception goes on. */
static void tell_raised(Shortcut *self, PyObject *path, PyObject *token, PyObject *ticket) {
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    if (traceback) PyException_SetTraceback(error, traceback);
    PyObject *done = PyObject_CallFunctionObjArgs(self->raised, error, token, ticket, path, NULL);
    Py_XDECREF(done);
    if (done) PyErr_Restore(type, error, traceback);
    else Py_XDECREF(type), Py_XDECREF(error), Py_XDECREF(traceback); /* it raised it again */
}

static PyObject *call_light(Shortcut *self, HotPath *hot, PyObject *const *args, Light *light) {
    PyObject *path = Py_NewRef(self->path);
    PyObject *outputs = PyObject_Vectorcall(self->original, args, 4, NULL);
    if (outputs) {
        if (finish_light(hot, light, outputs, now_ns(CLOCK_MONOTONIC)) < 0 && !is_ours(hot)) Py_CLEAR(outputs);
    } else {
        PyObject *type, *error, *traceback;
        PyErr_Fetch(&type, &error, &traceback);
        Ticket *ticket = ticket_of(light);
        PyErr_Restore(type, error, traceback);
        if (ticket) tell_raised(self, path, args[1], (PyObject *)ticket);
    }
    PyObject *type, *error, *traceback, *thread, *outer = light->shown ? light->outer : NULL;
    PyErr_Fetch(&type, &error, &traceback);
    drop_light(light); /* before anything of Python's may run: it has ended */
    Py_DECREF(path);
    if (!outer) return PyErr_Restore(type, error, traceback), outputs;
    if (!(thread = PyLong_FromLongLong((Number)PyThread_get_thread_ident())) ||
        PyDict_SetItem(self->in_progress, thread, outer) < 0)
        PyErr_Clear();
    PyErr_Restore(type, error, traceback);
    Py_XDECREF(thread);
    Py_DECREF(outer);
    return outputs;
}

/* A call that nobody asks for. It is in progress at once: what shows calls later knows only those of a recorder. */
static PyObject *call_unasked(Shortcut *self, PyObject *const *args) {
    PyObject *path = Py_NewRef(self->path), *thread = PyLong_FromLongLong((Number)PyThread_get_thread_ident());
    PyObject *outer = thread ? PyDict_GetItemWithError(self->in_progress, thread) : NULL;
    outer = Py_NewRef(outer ? outer : Py_None);
    PyObject *call = PyTuple_Pack(4, outer, args[1], args[3], Py_None);
    if (!thread || !call || PyDict_SetItem(self->in_progress, thread, call) < 0) PyErr_Clear();
    Py_XDECREF(call);
    PyObject *outputs = PyObject_Vectorcall(self->original, args, 4, NULL);
    if (!outputs) tell_raised(self, path, args[1], Py_None);
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    if (thread && PyDict_SetItem(self->in_progress, thread, outer) < 0) PyErr_Clear();
    PyErr_Restore(type, error, traceback);
    Py_XDECREF(thread);
    Py_DECREF(outer);
    Py_DECREF(path);
    return outputs;
}

static PyObject *shortcut_call(Shortcut *self, PyObject *const *args, size_t flags, PyObject *names) {
    int usual = PyVectorcall_NARGS(flags) == 4 && !names;
    HotPath *hot = usual ? self->hot : NULL;
    Py_XINCREF(hot);
    Light *light = hot ? begin_light(self, hot, args[1], args[3]) : NULL;
    int unwanted = usual && !hot && self->unwanted && is_unwanted(self, args[1]) > 0;
    PyObject *outputs = NULL;
    if (light) outputs = call_light(self, hot, args, light);
    else if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) outputs = NULL; /* an interrupt */
    else {
        PyErr_Clear();
        if (lights.first && show_lights(self->in_progress, (Number)PyThread_get_thread_ident()) < 0) PyErr_Clear();
        outputs = unwanted ? call_unasked(self, args) : PyObject_Vectorcall(self->full, args, flags, names);
    }
    Py_XDECREF(hot);
    return outputs;
}

static PyObject *show(PyObject *unused, PyObject *in_progress) {
    if (!PyDict_Check(in_progress)) return PyErr_Format(PyExc_TypeError, "show(in_progress)");
    if (show_lights(in_progress, 0) < 0) return NULL;
    Py_RETURN_NONE;
}

static int shortcut_init(Shortcut *self, PyObject *args, PyObject *named) {
    if (self->full || (named && PyDict_GET_SIZE(named))) return PyErr_Format(PyExc_TypeError, "see recorder/hot.py"), -1;
    PyObject *full, *original, *others, *profiled, *in_progress, *raised;
    Number level = 0;
    if (!PyArg_ParseTuple(args, "OOOOO!O|L", &full, &original, &others, &profiled, &PyDict_Type, &in_progress, &raised,
                          &level))
        return -1;
    self->level = (volatile int *)(intptr_t)level;
    self->full = Py_NewRef(full), self->original = Py_NewRef(original), self->others = Py_NewRef(others);
    self->profiled = Py_NewRef(profiled), self->in_progress = Py_NewRef(in_progress), self->raised = Py_NewRef(raised);
    self->call = (vectorcallfunc)shortcut_call;
    return 0;
}

static PyObject *take_hot(Shortcut *self, PyObject *const *args, Py_ssize_t count) {
    if (count != 3) return PyErr_Format(PyExc_TypeError, "take(hot, path, unwanted)");
    PyObject *hot = (PyObject *)self->hot, *path = self->path, *unwanted = self->unwanted;
    self->hot = Py_IS_TYPE(args[0], &hot_type) ? (HotPath *)Py_NewRef(args[0]) : NULL;
    self->path = Py_NewRef(args[1]);
    self->unwanted = PySet_Check(args[2]) ? Py_NewRef(args[2]) : NULL;
    Py_XDECREF(hot);
    Py_XDECREF(path);
    Py_XDECREF(unwanted);
    Py_RETURN_NONE;
}

static PyObject *shortcut_bind(PyObject *self, PyObject *owner, PyObject *type) {
    return !owner || owner == Py_None ? Py_NewRef(self) : PyMethod_New(self, owner);
}

static int shortcut_traverse(Shortcut *self, visitproc visit, void *arg) {
    Py_VISIT(self->full);
    Py_VISIT(self->original);
    Py_VISIT(self->others);
    Py_VISIT(self->profiled);
    Py_VISIT(self->in_progress);
    Py_VISIT(self->raised);
    Py_VISIT(self->hot);
    Py_VISIT(self->path);
    Py_VISIT(self->unwanted);
    return 0;
}

static int shortcut_clear(Shortcut *self) {
    Py_CLEAR(self->hot); /* the rest is needed as long as somebody calls it, and no cycle is without it */
    Py_CLEAR(self->path);
    Py_CLEAR(self->unwanted);
    return 0;
}

static void shortcut_dealloc(Shortcut *self) {
    PyObject_GC_UnTrack(self);
    shortcut_clear(self);
    Py_XDECREF(self->full);
    Py_XDECREF(self->original);
    Py_XDECREF(self->others);
    Py_XDECREF(self->profiled);
    Py_XDECREF(self->in_progress);
    Py_XDECREF(self->raised);
    PyObject_GC_Del(self);
}

static PyMemberDef shortcut_members[] = {
    {"__wrapped__", T_OBJECT, offsetof(Shortcut, full), READONLY, "What all other calls go through."},
    {NULL, 0, 0, 0, NULL}};
static PyMethodDef shortcut_methods[] = {
    {"take", (PyCFunction)(void (*)(void))take_hot, METH_FASTCALL,
     "Whose calls are sampled: a HotPath, or None; what listens; a set of tokens whose calls nobody asks for."},
    {"show", show, METH_O | METH_STATIC, "Puts calls that took a shortcut into the `in_progress` that it was given."},
    {NULL, NULL, 0, NULL}};

/* `__name__`, `__module__`, ...: those of the function that stands there where nothing is in C. */
static PyObject *shortcut_attribute(Shortcut *self, PyObject *name) {
    PyObject *found = PyObject_GenericGetAttr((PyObject *)self, name);
    if (found || !self->full || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
    PyErr_Clear();
    return PyObject_GetAttr(self->full, name);
}

static PyTypeObject shortcut_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "pyfunc_debug.recorder._hot.Shortcut",
    .tp_doc = "FuncRegistry.__call__, with a way of its own for calls that sampling leaves out or nobody asks for.",
    .tp_basicsize = sizeof(Shortcut),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_members = shortcut_members,
    .tp_methods = shortcut_methods,
    .tp_init = (initproc)shortcut_init,
    .tp_new = PyType_GenericNew,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Shortcut, call),
    .tp_descr_get = shortcut_bind,
    .tp_getattro = (getattrofunc)shortcut_attribute,
    .tp_traverse = (traverseproc)shortcut_traverse,
    .tp_clear = (inquiry)shortcut_clear,
    .tp_dealloc = (destructor)shortcut_dealloc,
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_hot", "The hot path of the recorder.", -1, NULL};

PyMODINIT_FUNC PyInit__hot(void) {
    struct {
        PyObject **name;
        const char *text;
    } names[] = {{&name_count, "count_dropped"},
                 {&name_dtype, "dtype"},
                 {&name_item, "item"},
                 {&name_register, "register"},
                 {&name_register_thread, "register_thread"},
                 {&name_now, "now"},
                 {&name_version, "version"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!(*names[i].name = PyUnicode_InternFromString(names[i].text))) return NULL;
    }
    if (PyType_Ready(&ticket_type) < 0 || PyType_Ready(&tally_type) < 0 || PyType_Ready(&hot_type) < 0) return NULL;
    if (PyType_Ready(&shortcut_type) < 0) return NULL;
    PyObject *numpy = PyImport_ImportModule("numpy");
    array_type = numpy ? PyObject_GetAttrString(numpy, "ndarray") : NULL;
    object_dtype = numpy ? PyObject_CallMethod(numpy, "dtype", "s", "O") : NULL;
    Py_XDECREF(numpy);
    if (PyErr_Occurred()) PyErr_Clear();
    if (!(zero = PyLong_FromLong(0))) return NULL;
    *(void **)&hold_all = PyCapsule_Import(HOLD_ALL, 0);
    if (!hold_all) PyErr_Clear();
    *(void **)&brief = PyCapsule_Import(BRIEF, 0);
    if (!brief) PyErr_Clear();
    *(void **)&has_nan_in_turn = PyCapsule_Import(HAS_NAN, 0);
    if (!has_nan_in_turn) PyErr_Clear();
    pthread_atfork(NULL, NULL, forget_threads);
    PyObject *module = PyModule_Create(&definition);
    if (!module) return NULL;
    if (PyModule_AddObjectRef(module, "Ticket", (PyObject *)&ticket_type) < 0 ||
        PyModule_AddObjectRef(module, "HotPath", (PyObject *)&hot_type) < 0 ||
        PyModule_AddObjectRef(module, "Shortcut", (PyObject *)&shortcut_type) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
