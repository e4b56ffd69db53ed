/* Statistics of numbers in memory, in one pass that needs no copy: what summary.py computes with NumPy, for the plain
 * element types. Optional: without it summary.py does the same with NumPy on a copy, only slower.
 *
 * Reading in place while the body's thread has the GIL anyway is cheaper than a copy for later: the copy alone costs ten
 * times as much as the statistics when its memory is fresh (docs/costs.md).
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <structmember.h>

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define FAST __attribute__((target_clones("avx2", "default")))
#else
#define FAST
#endif

/* As in summary.py. */
enum { EXACT_ELEMENTS = 1 << 16, HISTOGRAM_ELEMENTS = 2048, BINS = 20 };
/* As in capture.py. */
enum { AT_ONCE_BYTES = 256 << 10, STATISTICS_BYTES = 512 };
/* Elements that are worked on at once: they stay in the first cache. */
enum { BLOCK = 512 };
/* Only above so many is the GIL released: to get it back takes longer than a short pass. */
enum { RELEASE_ELEMENTS = 1 << 18 };

typedef struct {
    Py_ssize_t count, nan, inf, zeros;
    double low, high, sum, mean, squares; /* over finite elements; squares: of the distances from the mean */
    Py_ssize_t bins[BINS];
    int has_bins;
} Statistics;

static Py_ssize_t greatest_divisor(Py_ssize_t a, Py_ssize_t b) {
    while (b) {
        Py_ssize_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The step between about `wanted` of `size` elements; never in step with what repeats in the data. */
static Py_ssize_t spread(Py_ssize_t size, Py_ssize_t wanted, Py_ssize_t last) {
    Py_ssize_t step = (size + wanted - 1) / wanted;
    if (step < 1) step = 1;
    while (step > 1 && greatest_divisor(step, 6 * (last ? last : 1)) > 1) step++;
    return step;
}

#define LOAD(letter, type)                                                                \
    case letter: {                                                                        \
        const type *from = (const type *)data + start * step;                             \
        if (step == 1)                                                                    \
            for (Py_ssize_t i = 0; i < count; i++) out[i] = (double)from[i];              \
        else                                                                              \
            for (Py_ssize_t i = 0; i < count; i++) out[i] = (double)from[i * step];       \
        return 1;                                                                         \
    }

/* Elements start, start + 1, ... of every step-th one as doubles; 0 for a type that is not read here. */
FAST static int load(char kind, const void *data, Py_ssize_t start, Py_ssize_t step, Py_ssize_t count, double *out) {
    switch (kind) {
        LOAD('f', float)
        LOAD('d', double)
        LOAD('?', uint8_t)
        LOAD('b', signed char)
        LOAD('B', unsigned char)
        LOAD('h', short)
        LOAD('H', unsigned short)
        LOAD('i', int)
        LOAD('I', unsigned int)
        LOAD('l', long)
        LOAD('L', unsigned long)
        LOAD('q', long long)
        LOAD('Q', unsigned long long)
    }
    return 0;
}

/* Adds up a block. With a NaN in it only the sum, which is then NaN, can be used. */
FAST static void add_up(const double *values, Py_ssize_t count, double *sum, double *low, double *high, double *zeros) {
    double total = 0, lowest = INFINITY, highest = -INFINITY, nothing = 0;
#pragma omp simd reduction(+ : total, nothing) reduction(min : lowest) reduction(max : highest)
    for (Py_ssize_t i = 0; i < count; i++) {
        total += values[i];
        nothing += values[i] == 0.0 ? 1.0 : 0.0;
        lowest = values[i] < lowest ? values[i] : lowest;
        highest = values[i] > highest ? values[i] : highest;
    }
    *sum = total, *zeros = nothing, *low = lowest, *high = highest;
}

FAST static double squared_distances(const double *values, Py_ssize_t count, double mean) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (Py_ssize_t i = 0; i < count; i++) sum += (values[i] - mean) * (values[i] - mean);
    return sum;
}

/* Takes NaN and Inf out of a block and counts them; returns how many elements are left. */
static Py_ssize_t sort_out(double *values, Py_ssize_t count, Statistics *all) {
    Py_ssize_t kept = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (isfinite(values[i]))
            values[kept++] = values[i];
        else if (isnan(values[i]))
            all->nan++;
        else
            all->inf++;
    }
    return kept;
}

static void add_block(double *values, Py_ssize_t count, Statistics *all) {
    double sum, low, high, zeros;
    add_up(values, count, &sum, &low, &high, &zeros);
    if (!isfinite(sum)) { /* a NaN, an Inf, or numbers too large to add */
        count = sort_out(values, count, all);
        add_up(values, count, &sum, &low, &high, &zeros);
    }
    if (!count) return;
    double mean = sum / (double)count;
    double squares = squared_distances(values, count, mean);
    double before = (double)all->count, here = (double)count, distance = mean - all->mean;
    if (!all->count) {
        all->mean = mean;
        all->squares = squares;
    } else { /* Chan, Golub and LeVeque: variances of parts make the variance of the whole */
        all->squares += squares + distance * distance * (before * here / (before + here));
        all->mean += distance * (here / (before + here));
    }
    all->sum += sum;
    all->count += count;
    all->zeros += (Py_ssize_t)zeros;
    if (low < all->low) all->low = low;
    if (high > all->high) all->high = high;
}

static void fill_bins(char kind, const void *data, Py_ssize_t step, Py_ssize_t seen, Statistics *all) {
    double width = all->high - all->low;
    if (!(all->high > all->low) || !isfinite(width) || !isfinite(BINS / width)) return;
    double values[BLOCK], scale = BINS / width;
    Py_ssize_t few = spread(seen, HISTOGRAM_ELEMENTS, seen), count = (seen + few - 1) / few;
    for (Py_ssize_t start = 0; start < count; start += BLOCK) {
        Py_ssize_t here = count - start < BLOCK ? count - start : BLOCK;
        load(kind, data, start, step * few, here, values);
        for (Py_ssize_t i = 0; i < here; i++) {
            if (!isfinite(values[i])) continue;
            /* Another thread may have written to the memory since low and high were found. */
            double place = (values[i] - all->low) * scale;
            all->bins[place < 0 ? 0 : place < BINS ? (int)place : BINS - 1]++;
        }
    }
    all->has_bins = 1;
}

/* NaN and Inf among all elements, when the other statistics are from some of them. */
#define COUNT_ODD(name, type, exponent, mantissa)                                                    \
    FAST static Py_ssize_t name##_in(const type *from, Py_ssize_t count) {                          \
        type odd = 0;                                                                                \
        for (Py_ssize_t i = 0; i < count; i++) odd += (from[i] & (exponent)) == (exponent);         \
        return (Py_ssize_t)odd;                                                                      \
    }                                                                                                \
    static void name(const void *data, Py_ssize_t size, Statistics *all) {                          \
        const type *from = (const type *)data;                                                       \
        all->nan = all->inf = 0;                                                                     \
        for (Py_ssize_t start = 0; start < size; start += 4096) {                                   \
            Py_ssize_t here = size - start < 4096 ? size - start : 4096;                             \
            if (!name##_in(from + start, here)) continue;                                            \
            for (Py_ssize_t i = start; i < start + here; i++)                                        \
                if ((from[i] & (exponent)) == (exponent)) {                                          \
                    if (from[i] & (mantissa))                                                        \
                        all->nan++;                                                                  \
                    else                                                                             \
                        all->inf++;                                                                  \
                }                                                                                    \
        }                                                                                            \
    }

COUNT_ODD(odd_floats, uint32_t, 0x7f800000u, 0x007fffffu)
COUNT_ODD(odd_doubles, uint64_t, 0x7ff0000000000000u, 0x000fffffffffffffu)

static void take(char kind, const void *data, Py_ssize_t size, Py_ssize_t step, Py_ssize_t seen, Statistics *all) {
    double values[BLOCK];
    for (Py_ssize_t start = 0; start < seen; start += BLOCK) {
        Py_ssize_t here = seen - start < BLOCK ? seen - start : BLOCK;
        load(kind, data, start, step, here, values);
        add_block(values, here, all);
    }
    fill_bins(kind, data, step, seen, all);
    if (seen < size && kind == 'f') odd_floats(data, size, all);
    if (seen < size && kind == 'd') odd_doubles(data, size, all);
}

static PyObject *number(double value, int known) {
    if (known && isfinite(value)) return PyFloat_FromDouble(value);
    Py_RETURN_NONE;
}

/* The only element, exactly; None when there are several. */
static PyObject *only(char kind, const void *data, Py_ssize_t size) {
    double value;
    if (size != 1) Py_RETURN_NONE;
    switch (kind) {
        case '?': return PyBool_FromLong(*(const uint8_t *)data);
        case 'l': return PyLong_FromLong(*(const long *)data);
        case 'L': return PyLong_FromUnsignedLong(*(const unsigned long *)data);
        case 'q': return PyLong_FromLongLong(*(const long long *)data);
        case 'Q': return PyLong_FromUnsignedLongLong(*(const unsigned long long *)data);
    }
    load(kind, data, 0, 1, 1, &value);
    return kind == 'f' || kind == 'd' ? PyFloat_FromDouble(value) : PyLong_FromDouble(value);
}

static PyObject *whole_numbers(const Py_ssize_t *numbers, int count) {
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; tuple && i < count; i++) {
        PyObject *item = PyLong_FromSsize_t(numbers[i]);
        if (!item) {
            Py_CLEAR(tuple);
            break;
        }
        PyTuple_SET_ITEM(tuple, i, item);
    }
    return tuple;
}

PyDoc_STRVAR(statistics_doc,
"statistics(values, /)\n--\n\n"
"Statistics of an array or tensor, read in place.\n\n"
"Returns (shape, nbytes, only, nan, inf, zeros, min, max, mean, std, sampled, histogram), as in values.Summary; `only` is\n"
"the element of a value with one element. None for a type or memory layout that is not read here.");

static PyObject *read_numbers(PyObject *values, Py_ssize_t most_bytes) {
    Py_buffer view;
    if (PyObject_GetBuffer(values, &view, PyBUF_ND | PyBUF_FORMAT) < 0) {
        PyErr_Clear(); /* strings, not contiguous: summary.py knows what to do with those */
        Py_RETURN_NONE;
    }
    char kind = view.format ? view.format[0] : 'B';
    double value;
    if (view.len > most_bytes || (view.format && view.format[1]) || !load(kind, view.buf, 0, 1, 0, &value)) {
        PyBuffer_Release(&view);
        Py_RETURN_NONE;
    }
    Py_ssize_t size = view.itemsize ? view.len / view.itemsize : 0, last = view.ndim ? view.shape[view.ndim - 1] : 0;
    Py_ssize_t step = size > EXACT_ELEMENTS ? spread(size, EXACT_ELEMENTS, last) : 1, seen = (size + step - 1) / step;
    Statistics all;
    memset(&all, 0, sizeof all);
    all.low = INFINITY, all.high = -INFINITY;
    if (size > RELEASE_ELEMENTS) {
        Py_BEGIN_ALLOW_THREADS
        take(kind, view.buf, size, step, seen, &all);
        Py_END_ALLOW_THREADS
    } else {
        take(kind, view.buf, size, step, seen, &all);
    }
    PyObject *found = NULL, *shape = whole_numbers(view.shape, view.ndim), *bins = NULL;
    if (shape) bins = whole_numbers(all.bins, all.has_bins ? BINS : 0);
    if (bins) {
        double mean = all.count ? all.sum / (double)all.count : NAN, variance = all.squares / (double)all.count;
        PyObject *zeros = seen < size ? Py_NewRef(Py_None) : PyLong_FromSsize_t(all.zeros);
        PyObject *sampled = seen < size ? PyLong_FromSsize_t(seen) : Py_NewRef(Py_None);
        found = Py_BuildValue(
            "(OnNnnNNNNNNO)", shape, view.len, only(kind, view.buf, size), all.nan, all.inf, zeros,
            number(all.low, all.count > 0), number(all.high, all.count > 0), number(mean, all.count > 0),
            number(sqrt(variance), all.count > 0 && isfinite(mean)), sampled, bins);
    }
    Py_XDECREF(shape);
    Py_XDECREF(bins);
    PyBuffer_Release(&view);
    return found;
}

static PyObject *statistics(PyObject *module, PyObject *values) { return read_numbers(values, PY_SSIZE_T_MAX); }

/* A value on its way to the writer, see values/capture.py: a plain structure, which the garbage collector leaves alone. */
typedef struct {
    PyObject_HEAD
    long long nbytes;
    PyObject *thing, *dtype, *shape, *note;
} Held;

#define OBJECT(name) {#name, T_OBJECT, offsetof(Held, name), 0, NULL}
static PyMemberDef held_members[] = {
    {"nbytes", T_LONGLONG, offsetof(Held, nbytes), 0, NULL},
    OBJECT(thing), OBJECT(dtype), OBJECT(shape), OBJECT(note), {NULL, 0, 0, 0, NULL}};

static int held_init(Held *held, PyObject *args, PyObject *named) {
    static char *names[] = {"thing", "dtype", "shape", "note", "nbytes", NULL};
    PyObject *thing = NULL, *dtype = NULL, *shape = NULL, *note = NULL;
    long long nbytes = 0;
    if (held->thing) {
        PyErr_SetString(PyExc_TypeError, "a Held is filled in once");
        return -1;
    }
    if (!PyArg_ParseTupleAndKeywords(args, named, "O|OOUL", names, &thing, &dtype, &shape, &note, &nbytes)) return -1;
    if (note) Py_INCREF(note);
    else if (!(note = PyUnicode_FromString(""))) return -1;
    Py_INCREF(thing);
    Py_XINCREF(dtype);
    Py_XINCREF(shape);
    held->thing = thing, held->dtype = dtype, held->shape = shape, held->note = note, held->nbytes = nbytes;
    return 0;
}

static void held_dealloc(Held *held) {
    Py_XDECREF(held->thing);
    Py_XDECREF(held->dtype);
    Py_XDECREF(held->shape);
    Py_XDECREF(held->note);
    PyObject_Free(held);
}

static PyTypeObject held_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "pyfunc_debug.values._statistics.Held",
    .tp_doc = "A value taken hold of: see values/capture.py.",
    .tp_basicsize = sizeof(Held),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_members = held_members,
    .tp_init = (initproc)held_init,
    .tp_new = PyType_GenericNew,
    .tp_dealloc = (destructor)held_dealloc,
    .tp_free = PyObject_Free,
};

static PyObject *held_numbers(PyObject *found, PyObject *dtype) { /* takes over both */
    Held *held = (Held *)held_type.tp_alloc(&held_type, 0);
    if (held) held->note = PyUnicode_FromString("");
    if (!held || !held->note) {
        Py_DECREF(found);
        Py_DECREF(dtype);
        Py_XDECREF(held);
        return NULL;
    }
    held->thing = found, held->dtype = dtype, held->nbytes = STATISTICS_BYTES;
    return (PyObject *)held;
}

/* Types of tensors and element types that were read in place before: both few, and never freed by TensorFlow. */
enum { KNOWN = 32 };
static PyObject *known[KNOWN], *array_type, *name_dtype;

static int is_known(PyObject *thing) {
    for (int i = 0; i < KNOWN && known[i]; i++) {
        if (known[i] == thing) return 1;
    }
    return 0;
}

PyDoc_STRVAR(can_read_doc, "can_read(tensor, /)\n--\n\nSays that tensors of this type with this dtype have been read in place.");

static PyObject *can_read(PyObject *module, PyObject *tensor) {
    PyObject *dtype = PyObject_GetAttr(tensor, name_dtype);
    if (!dtype) return NULL;
    PyObject *things[] = {(PyObject *)Py_TYPE(tensor), dtype};
    for (int i = 0; i < 2; i++) {
        for (int place = 0; place < KNOWN && !is_known(things[i]); place++) {
            if (!known[place]) known[place] = Py_NewRef(things[i]);
        }
    }
    Py_DECREF(dtype);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(hold_numbers_doc,
"hold_numbers(values, ready, room, /)\n--\n\n"
"What capture.hold() does for a summary when all values are arrays of numbers, or small tensors of a type that\n"
"`can_read` was told of. A tuple of Held, each of STATISTICS_BYTES; None when it is anything else.");

static PyObject *hold_numbers(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    if (count != 3) return PyErr_Format(PyExc_TypeError, "hold_numbers(values, ready, room)");
    int ready = args[1] == Py_True;
    long long room = PyLong_AsLongLong(args[2]);
    if (room == -1 && PyErr_Occurred()) return NULL;
    PyObject *values = PyTuple_Check(args[0])  ? Py_NewRef(args[0])
                       : PyList_Check(args[0]) ? PyList_AsTuple(args[0])
                                               : PyTuple_Pack(1, args[0]);
    if (!values) return NULL;
    Py_ssize_t size = PyTuple_GET_SIZE(values);
    PyObject *held = room >= size * STATISTICS_BYTES ? PyTuple_New(size) : Py_NewRef(Py_None);
    for (Py_ssize_t i = 0; held && held != Py_None && i < size; i++) {
        PyObject *value = PyTuple_GET_ITEM(values, i), *found = NULL, *dtype = NULL, *one = NULL;
        int is_array = (PyObject *)Py_TYPE(value) == array_type;
        if (is_array || (ready && is_known((PyObject *)Py_TYPE(value)))) {
            dtype = PyObject_GetAttr(value, name_dtype);
            if (dtype && (is_array || is_known(dtype))) {
                found = read_numbers(value, is_array ? PY_SSIZE_T_MAX : AT_ONCE_BYTES);
            }
        }
        if (found && found != Py_None) {
            if (!(one = held_numbers(found, dtype))) Py_CLEAR(held);
            else PyTuple_SET_ITEM(held, i, one);
            continue;
        }
        Py_XDECREF(found);
        Py_XDECREF(dtype);
        Py_CLEAR(held);
        if (!PyErr_Occurred()) held = Py_NewRef(Py_None);
    }
    Py_DECREF(values);
    return held;
}

static PyMethodDef methods[] = {
    {"statistics", statistics, METH_O, statistics_doc},
    {"can_read", can_read, METH_O, can_read_doc},
    {"hold_numbers", (PyCFunction)(void (*)(void))hold_numbers, METH_FASTCALL, hold_numbers_doc},
    {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_statistics", "Statistics of numbers in memory.", 0, methods};

PyMODINIT_FUNC PyInit__statistics(void) {
    PyObject *numpy = PyImport_ImportModule("numpy");
    array_type = numpy ? PyObject_GetAttrString(numpy, "ndarray") : NULL;
    Py_XDECREF(numpy);
    name_dtype = PyUnicode_InternFromString("dtype");
    if (!array_type || !name_dtype || PyType_Ready(&held_type) < 0) return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module && PyModule_AddObjectRef(module, "Held", (PyObject *)&held_type) < 0) {
        Py_DECREF(module);
        return NULL;
    }
#ifdef Py_GIL_DISABLED
    if (module) PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
    return module;
}
