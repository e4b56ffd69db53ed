/* Watches the GIL of this process by patching GOT slots (Linux, x86-64 and aarch64).
 *
 * Two things are watched. (1) PyGILState_Ensure and PyGILState_Release as TensorFlow's PyFuncOp::Compute calls them:
 * where a call begins to want the GIL, gets it, and gives it back. (2) The interpreter's own take_gil() and drop_gil()
 * (Python/ceval_gil.c, the same shape in CPython 3.10 to 3.13): they wait with pthread_cond_timedwait(gil->cond), end a
 * take with pthread_cond_signal(gil->switch_cond) and a drop with pthread_cond_signal(gil->cond).
 *
 * Every record is written by a thread that holds the GIL: at the end of a take, where gil->mutex is held and gil->locked
 * is set; at the beginning of a drop, where gil->mutex is still held; after Ensure; before Release. drain() runs with
 * the GIL too. So the GIL itself serializes everything here: no lock, no atomic ring, nothing that can be torn. What a
 * thread knows of itself is thread-local; `waiters` changes only under gil->mutex.
 *
 * This library is never unloaded (RTLD_NODELETE): a thread may be inside a hook while the slots are put back.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030A0000
#include <Python.h>

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#define R_SLOT R_X86_64_JUMP_SLOT
#define R_DATA R_X86_64_GLOB_DAT
#elif defined(__aarch64__)
#define R_SLOT R_AARCH64_JUMP_SLOT
#define R_DATA R_AARCH64_GLOB_DAT
#else
#error "pyfunc_debug/gil/_native.c knows x86-64 and aarch64 only"
#endif

static inline int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t); /* the clock of time.monotonic_ns() */
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ------------------------------------------------------------------------------------------------------- records */

/* Read by native.py as nine 64-bit numbers. Unused fields are 0. */
typedef struct {
  uint64_t kind;
  uint64_t thread; /* pthread_self(), which is threading.get_ident() */
  uint64_t serial; /* number of the PyFuncOp::Compute that it belongs to, 0 for none */
  int64_t a, b, c, d, e, f;
} record_t;

enum {
  CLOSED = 1, /* an op gives the GIL back      a: requested, b: held since, c: until, d: waited, e: released,
                 f: reacquiring (sums since b of all RELEASED of its thread: what is missing was lost) */
  WAITED = 2, /* a thread waited for the GIL   a: from, b: to, c: 1 if before the op's body */
  HELD = 3,   /* a thread held it while another waited   a: from, b: to */
  RELEASED = 4, /* a thread in an op (serial: its outermost) was without the GIL   a: from, b: to, c: released,
                   d: reacquiring; c + d is b - a */
};

static record_t *buffers[2];
static int current;
static size_t capacity, limit, used;
static uint64_t lost;   /* records that found the buffer full */
static int draining;

static void put(uint64_t kind, uint64_t thread, uint64_t serial, int64_t a, int64_t b, int64_t c, int64_t d, int64_t e,
                int64_t f) {
  if (used >= limit) {
    lost++;
    return;
  }
  record_t *r = &buffers[current][used++];
  r->kind = kind, r->thread = thread, r->serial = serial;
  r->a = a, r->b = b, r->c = c, r->d = d, r->e = e, r->f = f;
}

/* ------------------------------------------------------------------------------------------------ what a thread knows */

#define MAX_DEPTH 16

typedef struct {
  uint64_t serial;
  int entering; /* inside PyGILState_Ensure */
  int64_t requested, acquired, waited;
  int64_t released0, reacquiring0; /* the thread's sums when the op got the GIL */
} op_t;

typedef struct {
  uint32_t epoch; /* of the installation that the rest belongs to */
  uint64_t thread;
  int depth, skipped;
  int64_t took, dropped, wanted; /* 0: no */
  int64_t switching;             /* time in drop_gil() until another thread took the GIL it asked for */
  int64_t released, reacquiring; /* sums over its ops */
  uint64_t leaving;              /* the op whose PyGILState_Release is under way */
  op_t ops[MAX_DEPTH];
} self_t;

static __thread self_t tls;
static uint32_t epoch;
static int on; /* read by hooks that a thread may still enter while slots are being restored */
static int waiters, waiters_in_ops;
static uint64_t serials;

static self_t *me(void) {
  if (tls.epoch != epoch) {
    memset(&tls, 0, sizeof tls);
    tls.epoch = epoch;
    tls.thread = (uint64_t)pthread_self();
  }
  return &tls;
}

static inline int is_on(void) { return __atomic_load_n(&on, __ATOMIC_ACQUIRE); }

/* --------------------------------------------------------------------------------------------------- TensorFlow's side */

static PyGILState_STATE (*real_ensure)(void);
static void (*real_release)(PyGILState_STATE);
static uintptr_t compute_from, compute_to; /* PyFuncOp::Compute; other callers in its library pass through */

#define FROM_COMPUTE()                                                                                              \
  ((uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)) - compute_from < compute_to - compute_from)

__attribute__((noinline)) static PyGILState_STATE hook_ensure(void) {
  if (!FROM_COMPUTE() || !is_on()) return real_ensure();
  self_t *t = me();
  if (t->depth >= MAX_DEPTH) {
    t->skipped++;
    return real_ensure();
  }
  uint32_t mine = t->epoch;
  op_t *op = &t->ops[t->depth++];
  memset(op, 0, sizeof *op);
  op->entering = 1;
  op->requested = now_ns();
  PyGILState_STATE state = real_ensure();
  if (t->epoch != mine || !is_on()) return state; /* switched off meanwhile: this op is nobody's */
  op->entering = 0;
  op->acquired = now_ns();
  if (!op->serial) op->serial = ++serials;
  op->released0 = t->released, op->reacquiring0 = t->reacquiring;
  return state;
}

__attribute__((noinline)) static void hook_release(PyGILState_STATE state) {
  if (!FROM_COMPUTE() || !is_on()) {
    real_release(state);
    return;
  }
  self_t *t = me();
  if (t->skipped) {
    t->skipped--;
  } else if (t->depth) { /* 0: its Ensure was not seen, it began before we were on */
    op_t *op = &t->ops[--t->depth];
    put(CLOSED, t->thread, op->serial, op->requested, op->acquired, now_ns(), op->waited, t->released - op->released0,
        t->reacquiring - op->reacquiring0);
    t->leaving = op->serial;
    real_release(state);
    t->leaving = 0;
    return;
  }
  real_release(state);
}

/* ------------------------------------------------------------------------------------------------ the interpreter's side */

static int (*real_signal)(pthread_cond_t *);
static int (*real_timedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
static int (*real_wait)(pthread_cond_t *, pthread_mutex_t *);
static pthread_cond_t *gil_cond, *switch_cond;

static __thread int learning; /* 1 while this thread drops and takes the GIL to see which condition variables are its */
static __thread pthread_cond_t *first_seen, *last_seen;

static uint64_t serial_of(const self_t *t) {
  if (t->leaving) return t->leaving;
  return t->depth ? t->ops[t->depth - 1].serial : 0;
}

static void took(void) { /* the GIL is ours, gil->mutex is held */
  self_t *t = me();
  int64_t now = now_ns();
  op_t *op = t->depth ? &t->ops[t->depth - 1] : NULL;
  if (op && op->entering && !op->serial) op->serial = ++serials;
  int64_t reacquiring = t->switching + (t->wanted ? now - t->wanted : 0);
  if (t->wanted) {
    if (waiters > 0) waiters--;
    if (op && waiters_in_ops > 0) waiters_in_ops--;
    put(WAITED, t->thread, serial_of(t), t->wanted, now, op && op->entering, 0, 0, 0);
    if (op && op->entering) op->waited += now - t->wanted;
  }
  if (t->dropped && op && (t->depth > 1 || !op->entering)) { /* the outermost op had the GIL before */
    int64_t released = now - t->dropped - reacquiring;
    put(RELEASED, t->thread, t->ops[0].serial, t->dropped, now, released, reacquiring, 0, 0);
    t->released += released;
    t->reacquiring += reacquiring;
  }
  t->took = now;
  t->wanted = t->dropped = t->switching = 0;
}

static void dropped(void) { /* gil->mutex is held: nobody can take the GIL before we return */
  self_t *t = me();
  int64_t now = now_ns();
  if (waiters > 0 && t->took) put(HELD, t->thread, serial_of(t), t->took, now, 0, 0, 0, 0);
  t->dropped = now;
  t->took = t->switching = 0;
}

__attribute__((noinline)) static int hook_signal(pthread_cond_t *c) {
  if (learning) {
    if (!first_seen) first_seen = c;
    last_seen = c;
  } else if (is_on()) {
    if (c == switch_cond) took();
    else if (c == gil_cond) dropped();
  }
  return real_signal(c);
}

__attribute__((noinline)) static int hook_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *t) {
  if (c == gil_cond && is_on()) { /* gil->mutex is held */
    self_t *s = me();
    if (!s->wanted) {
      s->wanted = now_ns();
      waiters++;
      if (s->depth) waiters_in_ops++;
    }
  }
  return real_timedwait(c, m, t);
}

__attribute__((noinline)) static int hook_wait(pthread_cond_t *c, pthread_mutex_t *m) {
  if (c != switch_cond || !is_on()) return real_wait(c, m);
  uint32_t mine = me()->epoch;
  int64_t from = now_ns();
  int result = real_wait(c, m);
  if (tls.epoch == mine) tls.switching += now_ns() - from;
  return result;
}

/* -------------------------------------------------------------------------------------------------------- GOT slots */

typedef struct {
  void **slot;
  void *original, *hook;
  int relro;
  const char *symbol;
  char library[256];
} patch_t;

#define MAX_PATCHES 32
static patch_t patches[MAX_PATCHES];
static int patched;

typedef struct {
  const char *symbol;
  void *hook;
  uintptr_t inside; /* an address in the library to patch */
  int found;
} wish_t;

static int write_slot(void **slot, void *value, int relro) {
  uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE), page = (uintptr_t)slot & ~(size - 1);
  if (relro && mprotect((void *)page, size, PROT_READ | PROT_WRITE)) return -1;
  __atomic_store_n(slot, value, __ATOMIC_RELEASE);
  if (relro) mprotect((void *)page, size, PROT_READ);
  return 0;
}

static int patch_library(struct dl_phdr_info *info, size_t size, void *argument) {
  (void)size;
  wish_t *wish = argument;
  uintptr_t base = info->dlpi_addr, relro_from = 0, relro_to = 0;
  const ElfW(Dyn) *dynamic = NULL;
  int inside = 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    uintptr_t from = base + p->p_vaddr;
    if (p->p_type == PT_DYNAMIC) dynamic = (const void *)from;
    if (p->p_type == PT_GNU_RELRO) relro_from = from, relro_to = from + p->p_memsz;
    if (p->p_type == PT_LOAD && wish->inside - from < p->p_memsz) inside = 1;
  }
  if (!dynamic || !inside) return 0;
  const ElfW(Sym) *symbols = NULL;
  const char *names = NULL;
  const ElfW(Rela) *tables[2] = {NULL, NULL};
  size_t sizes[2] = {0, 0};
  for (const ElfW(Dyn) *d = dynamic; d->d_tag != DT_NULL; d++) {
    /* glibc has relocated these addresses, other loaders leave offsets. */
    uintptr_t value = d->d_un.d_ptr, address = value < base ? base + value : value;
    switch (d->d_tag) {
      case DT_SYMTAB: symbols = (const void *)address; break;
      case DT_STRTAB: names = (const void *)address; break;
      case DT_JMPREL: tables[0] = (const void *)address; break;
      case DT_PLTRELSZ: sizes[0] = value / sizeof(ElfW(Rela)); break;
      case DT_RELA: tables[1] = (const void *)address; break;
      case DT_RELASZ: sizes[1] = value / sizeof(ElfW(Rela)); break;
    }
  }
  if (!symbols || !names) return 1;
  for (int k = 0; k < 2; k++) {
    for (size_t i = 0; tables[k] && i < sizes[k]; i++) {
      const ElfW(Rela) *r = &tables[k][i];
      unsigned type = (unsigned)ELF64_R_TYPE(r->r_info);
      if (type != R_SLOT && type != R_DATA) continue;
      if (strcmp(names + symbols[ELF64_R_SYM(r->r_info)].st_name, wish->symbol)) continue;
      void **slot = (void **)(base + r->r_offset);
      if (*slot == wish->hook || patched == MAX_PATCHES) continue;
      patch_t *p = &patches[patched];
      p->slot = slot, p->original = *slot, p->hook = wish->hook, p->symbol = wish->symbol;
      p->relro = (uintptr_t)slot - relro_from < relro_to - relro_from;
      const char *library = info->dlpi_name && info->dlpi_name[0] ? info->dlpi_name : "the executable";
      strncpy(p->library, library, sizeof p->library - 1);
      if (write_slot(slot, wish->hook, p->relro)) continue;
      patched++;
      wish->found++;
    }
  }
  return 1;
}

static int patch(const char *symbol, void *hook, uintptr_t inside) {
  wish_t wish = {symbol, hook, inside, 0};
  dl_iterate_phdr(patch_library, &wish);
  return wish.found;
}

/* Puts every slot back that still holds our hook. Returns how many do not hold their original value afterwards. */
static int restore(void) {
  int foreign = 0;
  __atomic_store_n(&on, 0, __ATOMIC_RELEASE);
  for (int i = 0; i < patched; i++) {
    patch_t *p = &patches[i];
    if (*p->slot == p->hook) write_slot(p->slot, p->original, p->relro);
    if (*p->slot == p->hook) foreign++;          /* mprotect refused: the hook stays, and passes through */
    else if (*p->slot != p->original) foreign++; /* somebody else patched it after us: theirs to undo */
  }
  patched = 0;
  return foreign;
}

/* Where PyFuncOp::Compute lies. TensorFlow is loaded RTLD_LOCAL, so each of its libraries is asked. */
static int find_compute(const char *symbol) {
  struct link_map *map = NULL;
  void *main_program = dlopen(NULL, RTLD_NOW | RTLD_NOLOAD);
  if (!main_program || dlinfo(main_program, RTLD_DI_LINKMAP, &map)) return 0;
  for (; map; map = map->l_next) {
    if (!map->l_name || !strstr(map->l_name, "tensorflow")) continue;
    void *library = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
    if (!library) continue;
    void *address = dlsym(library, symbol);
    dlclose(library);
    Dl_info where;
    ElfW(Sym) *entry = NULL;
    if (!address || !dladdr1(address, &where, (void **)&entry, RTLD_DL_SYMENT) || !entry || !entry->st_size) continue;
    compute_from = (uintptr_t)address;
    compute_to = compute_from + entry->st_size;
    return 1;
  }
  return 0;
}

/* ----------------------------------------------------------------------------------------------------------- Python */

static void in_child(void) { /* the recording is the parent's */
  __atomic_store_n(&on, 0, __ATOMIC_RELEASE);
  epoch++;
  used = 0;
  draining = 0;
}

static PyObject *failed(const char *why) {
  restore();
  PyErr_SetString(PyExc_OSError, why);
  return NULL;
}

static PyObject *install(PyObject *module, PyObject *args) {
  (void)module;
  const char *symbol;
  Py_ssize_t records;
  if (!PyArg_ParseTuple(args, "zn", &symbol, &records)) return NULL;
  if (patched) {
    PyErr_SetString(PyExc_OSError, "it is installed already");
    return NULL;
  }
  if (draining || records < 1) {
    PyErr_SetString(PyExc_OSError, draining ? "it is being drained" : "its buffer must hold a record");
    return NULL;
  }
  if ((size_t)records > capacity) {
    for (int i = 0; i < 2; i++) {
      /* Pages are touched as they fill. Hooks are not installed here, so nobody writes into the old ones. */
      void *pages = mmap(NULL, (size_t)records * sizeof(record_t), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                         -1, 0);
      if (pages == MAP_FAILED) return PyErr_NoMemory();
      if (buffers[i]) munmap(buffers[i], capacity * sizeof(record_t));
      buffers[i] = pages;
    }
    capacity = (size_t)records;
  }
  limit = (size_t)records;
  real_signal = (int (*)(pthread_cond_t *))dlsym(RTLD_DEFAULT, "pthread_cond_signal");
  real_wait = (int (*)(pthread_cond_t *, pthread_mutex_t *))dlsym(RTLD_DEFAULT, "pthread_cond_wait");
  real_timedwait = (int (*)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *))dlsym(RTLD_DEFAULT,
                                                                                                "pthread_cond_timedwait");
  real_ensure = PyGILState_Ensure;
  real_release = PyGILState_Release;
  if (!real_signal || !real_wait || !real_timedwait) return failed("the C library's condition variables were not found");
  if (symbol && !find_compute(symbol)) return failed("no loaded TensorFlow library holds PyFuncOp::Compute");

  epoch++;
  waiters = waiters_in_ops = 0;
  used = 0;
  lost = 0;
  gil_cond = switch_cond = NULL;
  uintptr_t interpreter = (uintptr_t)dlsym(RTLD_DEFAULT, "PyEval_RestoreThread");
  if (!patch("pthread_cond_signal", (void *)hook_signal, interpreter) ||
      !patch("pthread_cond_timedwait", (void *)hook_timedwait, interpreter))
    return failed("the interpreter does not call its condition variables through a GOT slot that can be written");
  patch("pthread_cond_wait", (void *)hook_wait, interpreter); /* nice to have: see `switching` */

  /* A drop signals gil->cond first; the take that follows ends with gil->switch_cond. */
  learning = 1;
  first_seen = last_seen = NULL;
  PyThreadState *state = PyEval_SaveThread();
  PyEval_RestoreThread(state);
  learning = 0;
  if (!first_seen || first_seen == last_seen) return failed("the interpreter's GIL has another shape than in CPython 3.10 to 3.13");
  gil_cond = first_seen;
  switch_cond = last_seen;
  if (symbol && (!patch("PyGILState_Ensure", (void *)hook_ensure, compute_from) ||
                 !patch("PyGILState_Release", (void *)hook_release, compute_from)))
    return failed("TensorFlow does not call PyGILState_Ensure through a GOT slot that can be written");
  me()->took = now_ns();
  __atomic_store_n(&on, 1, __ATOMIC_RELEASE);
  return PyLong_FromLong(patched);
}

static PyObject *remove_hooks(PyObject *module, PyObject *none) {
  (void)module, (void)none;
  return PyLong_FromLong(restore());
}

static PyObject *drain(PyObject *module, PyObject *none) {
  (void)module, (void)none;
  if (draining) return Py_BuildValue("(y#KL)", "", (Py_ssize_t)0, (unsigned long long)0, (long long)0);
  size_t n = used;
  const record_t *full = buffers[current];
  unsigned long long dropped_records = lost;
  long long until = now_ns();
  PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(n * sizeof(record_t)));
  if (!bytes) return NULL;
  if (n) {
    draining = 1;
    current = !current;
    used = 0;
    lost = 0;
    char *to = PyBytes_AsString(bytes);
    Py_BEGIN_ALLOW_THREADS memcpy(to, full, n * sizeof(record_t));
    Py_END_ALLOW_THREADS draining = 0;
  }
  return Py_BuildValue("(NKL)", bytes, dropped_records, until);
}

static PyObject *slots(PyObject *module, PyObject *none) {
  (void)module, (void)none;
  PyObject *list = PyList_New(0);
  for (int i = 0; list && i < patched; i++) {
    const patch_t *p = &patches[i];
    PyObject *row = Py_BuildValue("(ssKKKi)", p->library, p->symbol, (unsigned long long)(uintptr_t)p->slot,
                                  (unsigned long long)(uintptr_t)p->original, (unsigned long long)(uintptr_t)*p->slot,
                                  *p->slot == p->hook);
    if (!row || PyList_Append(list, row)) Py_CLEAR(list);
    Py_XDECREF(row);
  }
  return list;
}

static PyObject *waiting(PyObject *module, PyObject *none) {
  (void)module, (void)none;
  return Py_BuildValue("(ii)", *(volatile int *)&waiters, *(volatile int *)&waiters_in_ops);
}

static PyObject *peek(PyObject *module, PyObject *args) {
  (void)module;
  unsigned long long address;
  if (!PyArg_ParseTuple(args, "K", &address)) return NULL;
  return PyLong_FromUnsignedLongLong((unsigned long long)(uintptr_t) * (void **)(uintptr_t)address);
}

static PyMethodDef methods[] = {
    {"install", install, METH_VARARGS, "install(symbol, records) -> number of slots. OSError says why it cannot."},
    {"remove", remove_hooks, METH_NOARGS, "remove() -> number of slots that do not hold their original value now."},
    {"drain", drain, METH_NOARGS, "drain() -> (records, lost, until_ns)."},
    {"slots", slots, METH_NOARGS, "slots() -> [(library, symbol, address, original, current, is ours)]."},
    {"waiting", waiting, METH_NOARGS, "waiting() -> (threads that wait for the GIL now, those of them that run an op)."},
    {"_peek", peek, METH_VARARGS, "_peek(address of a slot) -> its value. For tests."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_native", "The GIL, watched.", -1, methods,
                                        NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__native(void) {
  Dl_info where;
  if (!dladdr((void *)hook_signal, &where) || !dlopen(where.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE)) {
    PyErr_SetString(PyExc_ImportError, "the library cannot be kept in memory");
    return NULL;
  }
  if (pthread_atfork(NULL, NULL, in_child)) return PyErr_NoMemory();
  return PyModule_Create(&definition);
}
