/* Statistics of numbers in memory, in one pass that needs no copy: what summary.py computes with NumPy, for the plain
 * element types. Optional: without it summary.py does the same with NumPy on a copy, only slower.
 *
 * Reading in place while the body's thread has the GIL anyway is cheaper than a copy for later: the copy alone costs ten
 * times as much as the statistics when its memory is fresh (docs/costs.md).
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <structmember.h>

#include "_digest.h"

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define FAST __attribute__((target_clones("avx2", "default")))
#else
#define FAST
#endif

/* As in summary.py. */
enum { EXACT_ELEMENTS = 1 << 16, HISTOGRAM_ELEMENTS = 2048, BINS = 20, DIGEST_LARGEST = 64 << 20 };
/* As in capture.py and policy.py. */
enum { AT_ONCE_BYTES = 256 << 10, STATISTICS_BYTES = 512, SCALAR_BYTES = 64, SHAPE = 1, SUMMARY = 2 };
/* Where recorder/_hot.c finds `hold_all`. */
#define HOLD_ALL "pyfunc_debug.values._statistics.hold_all"
/* And `brief`. */
#define BRIEF "pyfunc_debug.values._statistics.brief"
/* And `has_nan_in_turn`, which looks at no more in a call than it is told, but at all of what is small: it runs in the
 * body's thread. As in recorder/sampling.py. */
#define HAS_NAN "pyfunc_debug.values._statistics.has_nan_in_turn"
enum { NAN_WHOLE_BYTES = 1 << 14, NAN_BLOCK_BYTES = 1024 };
/* Elements that are worked on at once: they stay in the first cache. */
enum { BLOCK = 512 };
/* Only above so many is the GIL released: to get it back takes longer than a short pass. */
enum { RELEASE_ELEMENTS = 1 << 18 };

typedef struct {
    Py_ssize_t count, nan, inf, zeros;
    double low, high, mean, squares; /* over finite elements; squares: of the distances from the mean */
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

typedef struct {
    double distance, squares; /* sums of the distances from `near`, and of their squares */
    double low, high, zeros;
} Block;

/* Adds up a block in one pass, both its halves at once: an addition waits for the one before it. With a NaN or Inf in
 * it only `distance`, which is then no number, can be used. */
FAST static Block add_up(const double *values, Py_ssize_t count, double near) {
    double low = INFINITY, high = -INFINITY, zeros = 0, distance = 0, squares = 0;
    double low2 = INFINITY, high2 = -INFINITY, zeros2 = 0, distance2 = 0, squares2 = 0;
    Py_ssize_t half = count / 2;
    const double *others = values + (count - half);
#pragma omp simd reduction(+ : zeros, distance, squares, zeros2, distance2, squares2) \
    reduction(min : low, low2) reduction(max : high, high2)
    for (Py_ssize_t i = 0; i < half; i++) {
        double value = values[i], away = value - near, value2 = others[i], away2 = value2 - near;
        distance += away, distance2 += away2;
        squares += away * away, squares2 += away2 * away2;
        zeros += value == 0.0 ? 1.0 : 0.0, zeros2 += value2 == 0.0 ? 1.0 : 0.0;
        low = value < low ? value : low, low2 = value2 < low2 ? value2 : low2;
        high = value > high ? value : high, high2 = value2 > high2 ? value2 : high2;
    }
    if (count % 2) {
        double value = values[half], away = value - near;
        distance += away, squares += away * away, zeros += value == 0.0;
        low = value < low ? value : low, high = value > high ? value : high;
    }
    low = low2 < low ? low2 : low, high = high2 > high ? high2 : high;
    return (Block){distance + distance2, squares + squares2, low, high, zeros + zeros2};
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
    double near = all->count ? all->mean : values[0]; /* a number among them: then the squares lose no digits */
    Block block = add_up(values, count, isfinite(near) ? near : 0);
    if (!isfinite(block.distance)) { /* a NaN, an Inf, or numbers too large to add */
        count = sort_out(values, count, all);
        near = all->count || !count ? all->mean : values[0];
        block = add_up(values, count, near);
    }
    if (!count) return;
    double here = (double)count, before = (double)all->count, away = block.distance / here;
    double squares = block.squares - block.distance * away, distance = near + away - all->mean;
    if (squares < 0) squares = 0; /* rounding */
    /* Chan, Golub and LeVeque: variances of parts make the variance of the whole. */
    all->squares += squares + distance * distance * (before * here / (before + here));
    all->mean = all->count ? all->mean + distance * (here / (before + here)) : near + away;
    all->count += count;
    all->zeros += (Py_ssize_t)block.zeros;
    if (block.low < all->low) all->low = block.low;
    if (block.high > all->high) all->high = block.high;
}

/* The bin of each value; BINS for NaN and Inf. Another thread may have written to the memory since `low` was found. */
FAST static void find_bins(const double *values, Py_ssize_t count, double low, double scale, int *bins) {
#pragma omp simd
    for (Py_ssize_t i = 0; i < count; i++) {
        double place = (values[i] - low) * scale;
        place = place > 0 ? place : 0;
        place = place < BINS - 1 ? place : BINS - 1;
        bins[i] = values[i] - values[i] == 0 ? (int)place : BINS;
    }
}

static void fill_bins(char kind, const void *data, Py_ssize_t step, Py_ssize_t seen, Statistics *all) {
    double width = all->high - all->low;
    if (!(all->high > all->low) || !isfinite(width) || !isfinite(BINS / width)) return;
    double values[BLOCK];
    int bins[BLOCK];
    Py_ssize_t few = spread(seen, HISTOGRAM_ELEMENTS, seen), count = (seen + few - 1) / few, counts[BINS + 1] = {0};
    for (Py_ssize_t start = 0; start < count; start += BLOCK) {
        Py_ssize_t here = count - start < BLOCK ? count - start : BLOCK;
        load(kind, data, start, step * few, here, values);
        find_bins(values, here, all->low, BINS / width, bins);
        for (Py_ssize_t i = 0; i < here; i++) counts[bins[i]]++;
    }
    memcpy(all->bins, counts, sizeof all->bins);
    all->has_bins = 1;
}

typedef struct {
    Py_ssize_t nan, inf;
} Count;

/* Adds the NaN and Inf among elements. */
#define COUNT_ODD(name, type, exponent, mantissa)                                                    \
    FAST static Py_ssize_t name##_in(const type *from, Py_ssize_t count) {                          \
        type odd = 0;                                                                                \
        for (Py_ssize_t i = 0; i < count; i++) odd += (from[i] & (exponent)) == (exponent);         \
        return (Py_ssize_t)odd;                                                                      \
    }                                                                                                \
    static void name(const void *data, Py_ssize_t size, Count *all) {                               \
        const type *from = (const type *)data;                                                       \
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

/* Floats with one bit pattern for each number: 0.0 for -0.0, one NaN for all. */
#define ONE_FORM(name, type, minus_zero, infinity, not_a_number)                                     \
    FAST static void name(const type *from, Py_ssize_t count, type *out) {                          \
        for (Py_ssize_t i = 0; i < count; i++) {                                                     \
            type size = from[i] & ~(minus_zero);                                                     \
            out[i] = size > (infinity) ? (not_a_number) : size ? from[i] : 0;                       \
        }                                                                                            \
    }

ONE_FORM(one_form_floats, uint32_t, 0x80000000u, 0x7f800000u, 0x7fc00000u)
ONE_FORM(one_form_doubles, uint64_t, 0x8000000000000000u, 0x7ff0000000000000u, 0x7ff8000000000000u)

/* Elements into the digest; those that are not the last are whole stripes. Numbers that are equal count as equal: 0.0
 * and -0.0, every NaN and every other. Counts NaN and Inf on the way: one reading of the memory serves both. */
static void digest_elements(
    Digest *digest, char kind, const void *data, Py_ssize_t count, Py_ssize_t itemsize, Count *odd) {
    union {
        uint32_t floats[BLOCK];
        uint64_t doubles[BLOCK];
    } space;
    if (kind != 'f' && kind != 'd') {
        digest_take(digest, data, (size_t)(count * itemsize));
        return;
    }
    for (Py_ssize_t start = 0; start < count; start += BLOCK) {
        Py_ssize_t here = count - start < BLOCK ? count - start : BLOCK;
        const void *from = (const char *)data + start * itemsize;
        size_t bytes = (size_t)(here * itemsize);
        Digest before = *digest;
        if (!digest_look(digest, from, bytes, kind == 'f' ? &odd_float : &odd_double)) continue;
        *digest = before;
        if (kind == 'f') {
            odd_floats(from, here, odd);
            one_form_floats(from, here, space.floats);
        } else {
            odd_doubles(from, here, odd);
            one_form_doubles(from, here, space.doubles);
        }
        digest_take(digest, &space, bytes);
    }
}

static void take(
    char kind, const void *data, Py_ssize_t size, Py_ssize_t itemsize, Py_ssize_t step, Py_ssize_t seen,
    Statistics *all, unsigned char digest[DIGEST_BYTES]) {
    double values[BLOCK];
    int digested = size * itemsize <= DIGEST_LARGEST;
    Count odd = {0, 0};
    Digest whole;
    digest_start(&whole);
    for (Py_ssize_t start = 0; start < seen; start += BLOCK) {
        Py_ssize_t here = seen - start < BLOCK ? seen - start : BLOCK;
        if (digested) { /* first: the statistics then find it in the cache */
            Py_ssize_t from = start * step, to = start + here == seen ? size : from + here * step;
            digest_elements(&whole, kind, (const char *)data + from * itemsize, to - from, itemsize, &odd);
        }
        load(kind, data, start, step, here, values);
        add_block(values, here, all);
    }
    if (digested) {
        digest_end(&whole, digest);
    } else if (seen < size) {
        if (kind == 'f') odd_floats(data, size, &odd);
        if (kind == 'd') odd_doubles(data, size, &odd);
    }
    fill_bins(kind, data, step, seen, all);
    if (seen < size) all->nan = odd.nan, all->inf = odd.inf; /* of all elements, not of those seen */
}

/* What was read of one value. Not a tuple: thousands wait for the writer, and the garbage collector would look at each. */
typedef struct {
    PyObject_VAR_HEAD /* as many items as dimensions */
    Statistics all;
    Py_ssize_t nbytes, size, seen;
    long long first; /* the first element's bytes */
    char kind;
    unsigned char digest[DIGEST_BYTES]; /* of values up to DIGEST_LARGEST */
    Py_ssize_t shape[];
} Numbers;

static PyObject *number(double value, int known) {
    if (known && isfinite(value)) return PyFloat_FromDouble(value);
    Py_RETURN_NONE;
}

/* The only element, exactly; None when there are several. */
static PyObject *only(const Numbers *numbers) {
    const void *data = &numbers->first;
    double value;
    if (numbers->size != 1) Py_RETURN_NONE;
    switch (numbers->kind) {
        case '?': return PyBool_FromLong(*(const uint8_t *)data);
        case 'l': return PyLong_FromLong(*(const long *)data);
        case 'L': return PyLong_FromUnsignedLong(*(const unsigned long *)data);
        case 'q': return PyLong_FromLongLong(*(const long long *)data);
        case 'Q': return PyLong_FromUnsignedLongLong(*(const unsigned long long *)data);
    }
    load(numbers->kind, data, 0, 1, 1, &value);
    return numbers->kind == 'f' || numbers->kind == 'd' ? PyFloat_FromDouble(value) : PyLong_FromDouble(value);
}

static PyObject *whole_numbers(const Py_ssize_t *numbers, Py_ssize_t count) {
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; tuple && i < count; i++) {
        PyObject *item = PyLong_FromSsize_t(numbers[i]);
        if (!item) {
            Py_CLEAR(tuple);
            break;
        }
        PyTuple_SET_ITEM(tuple, i, item);
    }
    return tuple;
}

PyDoc_STRVAR(as_tuple_doc,
"as_tuple()\n--\n\n"
"(shape, nbytes, only, nan, inf, zeros, min, max, mean, std, sampled, histogram, digest), as in values.Summary; `only`\n"
"is the element of a value with one element.");

static PyObject *as_tuple(Numbers *numbers, PyObject *unused) {
    const Statistics *all = &numbers->all;
    PyObject *found = NULL, *shape = whole_numbers(numbers->shape, Py_SIZE(numbers)), *bins = NULL;
    if (shape) bins = whole_numbers(all->bins, all->has_bins ? BINS : 0);
    if (bins) {
        double mean = all->mean, variance = all->squares / (double)all->count;
        int some = numbers->seen < numbers->size, known = all->count > 0;
        PyObject *zeros = some ? Py_NewRef(Py_None) : PyLong_FromSsize_t(all->zeros);
        PyObject *sampled = some ? PyLong_FromSsize_t(numbers->seen) : Py_NewRef(Py_None);
        Py_ssize_t digested = numbers->nbytes <= DIGEST_LARGEST ? DIGEST_BYTES : 0;
        found = Py_BuildValue(
            "(OnNnnNNNNNNOy#)", shape, numbers->nbytes, only(numbers), all->nan, all->inf, zeros, number(all->low, known),
            number(all->high, known), number(mean, known), number(sqrt(variance), known && isfinite(mean)), sampled, bins,
            digested ? (const char *)numbers->digest : NULL, digested);
    }
    Py_XDECREF(shape);
    Py_XDECREF(bins);
    return found;
}

static PyMethodDef numbers_methods[] = {
    {"as_tuple", (PyCFunction)as_tuple, METH_NOARGS, as_tuple_doc}, {NULL, NULL, 0, NULL}};

static void numbers_dealloc(PyObject *numbers) { PyObject_Free(numbers); }

static PyTypeObject numbers_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "pyfunc_debug.values._statistics.Numbers",
    .tp_doc = "What was read of one value.",
    .tp_basicsize = offsetof(Numbers, shape),
    .tp_itemsize = sizeof(Py_ssize_t),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_methods = numbers_methods,
    .tp_dealloc = numbers_dealloc,
};

static PyObject *read_numbers(PyObject *values) {
    Py_buffer view;
    if (PyObject_GetBuffer(values, &view, PyBUF_ND | PyBUF_FORMAT) < 0) {
        PyErr_Clear(); /* strings, not contiguous: summary.py knows what to do with those */
        Py_RETURN_NONE;
    }
    char kind = view.format ? view.format[0] : 'B';
    double value;
    if ((view.format && view.format[1]) || !load(kind, view.buf, 0, 1, 0, &value)) {
        PyBuffer_Release(&view);
        Py_RETURN_NONE;
    }
    Py_ssize_t size = view.itemsize ? view.len / view.itemsize : 0, last = view.ndim ? view.shape[view.ndim - 1] : 0;
    Py_ssize_t step = size > EXACT_ELEMENTS ? spread(size, EXACT_ELEMENTS, last) : 1, seen = (size + step - 1) / step;
    Numbers *numbers = PyObject_NewVar(Numbers, &numbers_type, view.ndim);
    if (numbers) {
        Statistics *all = &numbers->all;
        memset(all, 0, sizeof *all);
        all->low = INFINITY, all->high = -INFINITY;
        numbers->nbytes = view.len, numbers->size = size, numbers->seen = seen, numbers->kind = kind;
        if (view.ndim) memcpy(numbers->shape, view.shape, sizeof *view.shape * (size_t)view.ndim);
        if (size == 1) memcpy(&numbers->first, view.buf, (size_t)view.itemsize);
        if (size > RELEASE_ELEMENTS) {
            Py_BEGIN_ALLOW_THREADS
            take(kind, view.buf, size, view.itemsize, step, seen, all, numbers->digest);
            Py_END_ALLOW_THREADS
        } else {
            take(kind, view.buf, size, view.itemsize, step, seen, all, numbers->digest);
        }
    }
    PyBuffer_Release(&view);
    return (PyObject *)numbers;
}

PyDoc_STRVAR(statistics_doc,
"statistics(values, /)\n--\n\n"
"Statistics of an array or tensor, read in place: a Numbers. None for a type or memory layout that is not read here.");

static PyObject *statistics(PyObject *module, PyObject *values) { return read_numbers(values); }

PyDoc_STRVAR(digest_doc,
"digest(buffer, kind, /)\n--\n\n"
"The digest of contiguous memory: kind 'f' or 'd' for floats, whose equal numbers count as equal, 'B' for plain bytes.");

static PyObject *digest(PyObject *module, PyObject *args) {
    Py_buffer view;
    int kind;
    unsigned char out[DIGEST_BYTES];
    if (!PyArg_ParseTuple(args, "y*C", &view, &kind)) return NULL;
    Py_ssize_t itemsize = kind == 'f' ? 4 : kind == 'd' ? 8 : 1;
    Py_BEGIN_ALLOW_THREADS
    Digest whole;
    Count odd = {0, 0};
    digest_start(&whole);
    digest_elements(&whole, (char)kind, view.buf, view.len / itemsize, itemsize, &odd);
    digest_end(&whole, out);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&view);
    return PyBytes_FromStringAndSize((const char *)out, DIGEST_BYTES);
}

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

static PyObject *no_text, *name_dtype, *name_shape, *name_shape_tuple, *array_type;
static PyTypeObject *scalar_type;

/* Takes over `thing` and `shape`; all but the number may be NULL. */
static PyObject *new_held(PyObject *thing, PyObject *dtype, PyObject *shape, long long nbytes) {
    Held *held = (Held *)held_type.tp_alloc(&held_type, 0);
    if (!held) {
        Py_XDECREF(thing);
        Py_XDECREF(shape);
        return NULL;
    }
    held->thing = thing ? thing : Py_NewRef(Py_None);
    held->dtype = Py_XNewRef(dtype), held->shape = shape, held->note = Py_NewRef(no_text), held->nbytes = nbytes;
    return (PyObject *)held;
}

/* Types of tensors, and element types with what one element takes, that capture.py has met: few, and never freed. */
enum { KNOWN = 64 };
static struct {
    PyObject *thing;
    Py_ssize_t bytes;
} known[KNOWN];

static int place_of(PyObject *thing) {
    for (int i = 0; i < KNOWN && known[i].thing; i++) {
        if (known[i].thing == thing) return i;
    }
    return -1;
}

static void know(PyObject *thing, Py_ssize_t bytes) {
    for (int place = 0; place < KNOWN && place_of(thing) < 0; place++) {
        if (!known[place].thing) known[place].bytes = bytes, known[place].thing = Py_NewRef(thing);
    }
}

PyDoc_STRVAR(register_type_doc,
"register_type(value, bytes, /)\n--\n\n"
"From now on `hold_quickly` takes arrays of numbers, or immutable tensors, like this one.\n\n"
"Args:\n"
"  value: An array, or a tensor with `_shape_tuple`.\n"
"  bytes: What one element weighs.");

static PyObject *register_type(PyObject *module, PyObject *args) {
    PyObject *value;
    Py_ssize_t bytes;
    if (!PyArg_ParseTuple(args, "On", &value, &bytes)) return NULL;
    PyObject *dtype = PyObject_GetAttr(value, name_dtype);
    if (!dtype) return NULL;
    know((PyObject *)Py_TYPE(value), 0);
    know(dtype, bytes);
    Py_DECREF(dtype);
    Py_RETURN_NONE;
}

/* Bytes that a tensor keeps alive, as capture.py counts them; -1 for an error. */
static long long weight(PyObject *shape, Py_ssize_t bytes) {
    double size = (double)bytes;
    if (!PyTuple_Check(shape)) return PyErr_Format(PyExc_TypeError, "_shape_tuple() is no tuple"), -1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape); i++) size *= PyLong_AsDouble(PyTuple_GET_ITEM(shape, i));
    if (PyErr_Occurred()) return -1;
    return size < 1e18 ? 64 + (long long)size : LLONG_MAX;
}

/* One value, with what it takes of the queue's room; NULL without an error for one that is not taken here. */
static PyObject *hold_one(PyObject *value, PyObject *dtype, int policy, long long room, long long *size) {
    int is_array = (PyObject *)Py_TYPE(value) == array_type, place = place_of(dtype);
    if (place < 0 && (policy == SHAPE || !is_array)) return NULL;
    PyObject *shape = NULL, *numbers = NULL;
    long long whole = 0;
    *size = 0;
    if (policy == SHAPE || !is_array) {
        shape = is_array ? PyObject_GetAttr(value, name_shape) : PyObject_CallMethodNoArgs(value, name_shape_tuple);
        if (!shape) return NULL;
        if (policy == SHAPE) return new_held(NULL, dtype, shape, 0);
        whole = weight(shape, known[place].bytes);
        Py_DECREF(shape);
        if (whole < 0) return NULL;
    }
    if (room >= STATISTICS_BYTES && (is_array || whole <= AT_ONCE_BYTES)) {
        numbers = read_numbers(value);
        if (!numbers) return NULL;
        if (numbers != Py_None) {
            *size = STATISTICS_BYTES;
            return new_held(numbers, dtype, NULL, *size);
        }
        Py_DECREF(numbers);
    }
    if (is_array || whole > room) return NULL;
    *size = whole;
    return new_held(Py_NewRef(value), dtype, NULL, whole); /* to be read soon, see capture.py */
}

/* What the recorder's ring says of an input: pfrec/ring.py has the same layout. */
typedef struct {
    char kind;
    unsigned char rank;
    long long shape[4];
    double low, high;
    long long elements, nan;
} Brief;
_Static_assert(sizeof(Brief) == 72, "as in pfrec/ring.py");

/* Of a NumPy scalar, which is kept as it is. */
static void scalar_brief(PyObject *scalar, Brief *out) {
    static const struct {
        const char *name;
        char kind;
    } kinds[] = {{"numpy.float32", 'f'}, {"numpy.float64", 'd'}, {"numpy.int64", 'l'}, {"numpy.int32", 'i'},
                 {"numpy.bool", '?'},    {"numpy.bool_", '?'},   {"numpy.uint8", 'B'}, {"numpy.float16", 'e'},
                 {"numpy.int16", 'h'},   {"numpy.int8", 'b'},    {"numpy.uint16", 'H'}, {"numpy.uint32", 'I'},
                 {"numpy.uint64", 'L'}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(Py_TYPE(scalar)->tp_name, kinds[i].name)) continue;
        double value = PyFloat_AsDouble(scalar);
        if (PyErr_Occurred()) PyErr_Clear();
        else *out = (Brief){.kind = kinds[i].kind, .low = value, .high = value, .elements = 1, .nan = isnan(value)};
    }
}

/* Of an array whose elements are kept: they are not read for this, but that of a single number. */
static void array_brief(PyObject *array, Brief *out) {
    PyObject *dtype = PyObject_GetAttr(array, name_dtype);
    PyObject *kind = dtype ? PyObject_GetAttrString(dtype, "char") : NULL, *shape = PyObject_GetAttrString(array, "shape");
    if (kind && shape && PyUnicode_Check(kind) && PyUnicode_GET_LENGTH(kind) == 1 && PyTuple_Check(shape)) {
        Py_UCS4 letter = PyUnicode_READ_CHAR(kind, 0);
        Py_ssize_t rank = PyTuple_GET_SIZE(shape);
        *out = (Brief){.kind = letter < 128 ? (char)letter : 0, .rank = (unsigned char)rank, .low = 1, .elements = 1, .nan = -1};
        for (Py_ssize_t i = 0; i < rank; i++) {
            long long size = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, i));
            if (i < 4) out->shape[i] = size;
            out->elements *= size;
        }
        if (!rank && strchr("?bBhHiIlLqQefd", out->kind)) {
            double value = PyFloat_AsDouble(array);
            if (!PyErr_Occurred()) out->low = out->high = value, out->nan = isnan(value);
        }
    }
    PyErr_Clear();
    Py_XDECREF(dtype);
    Py_XDECREF(kind);
    Py_XDECREF(shape);
}

/* Copies what is known of a held value; `kind` is 0 where that is nothing. */
static void brief(PyObject *held, Brief *out) {
    *out = (Brief){.kind = 0};
    if (!Py_IS_TYPE(held, &held_type)) return;
    PyObject *thing = ((Held *)held)->thing;
    if (thing && PyType_IsSubtype(Py_TYPE(thing), scalar_type)) scalar_brief(thing, out);
    if (thing && (PyObject *)Py_TYPE(thing) == array_type) array_brief(thing, out);
    if (!thing || !Py_IS_TYPE(thing, &numbers_type)) return;
    const Numbers *numbers = (const Numbers *)thing;
    Py_ssize_t rank = Py_SIZE(thing);
    out->kind = numbers->kind, out->rank = (unsigned char)(rank < 255 ? rank : 255);
    for (Py_ssize_t i = 0; i < 4; i++) out->shape[i] = i < rank ? numbers->shape[i] : 0;
    out->low = numbers->all.low, out->high = numbers->all.high;
    out->elements = numbers->size, out->nan = numbers->all.nan;
}

#define ANY_NAN(type)                                                                        \
    for (const type *at = (const type *)from, *end = at + size / sizeof(type); at < end; at++) \
        found |= *at != *at;

FAST static int nan_among(const char *from, size_t size, char kind) {
    int found = 0;
    if (kind == 'f') ANY_NAN(float)
    else ANY_NAN(double)
    return found;
}

/* The beginning of NumPy's PyArrayObject, and of a dtype, which are the same in NumPy 1 and 2: to ask for a buffer makes a
 * description each time, which takes longer than the look at it. */
typedef struct {
    PyObject_HEAD
    char *data;
    int rank;
    Py_ssize_t *shape, *strides;
    PyObject *base, *dtype;
    int flags;
} Array;
enum { PLAIN = 1 | 0x100 }; /* NPY_ARRAY_C_CONTIGUOUS and NPY_ARRAY_ALIGNED */
static PyObject *float_types[2]; /* NULL where arrays are otherwise */

/* Keeps NumPy's dtypes of floats, if an array looks as it is said above. */
static void learn_arrays(PyObject *numpy) {
    for (int i = 0; i < 2; i++) {
        PyObject *array = PyObject_CallMethod(numpy, "ones", "((ii)s)", 3, 5, i ? "d" : "f");
        PyObject *dtype = array ? PyObject_GetAttr(array, name_dtype) : NULL;
        Py_buffer view;
        if (dtype && !PyObject_GetBuffer(array, &view, PyBUF_ND)) {
            const Array *one = (const Array *)array;
            if (Py_TYPE(array)->tp_basicsize >= (Py_ssize_t)sizeof(Array) && one->data == view.buf && one->rank == 2 &&
                one->shape[0] == 3 && one->shape[1] == 5 && one->strides[1] == (i ? 8 : 4) && one->dtype == dtype &&
                (one->flags & PLAIN) == PLAIN)
                float_types[i] = Py_NewRef(dtype);
            PyBuffer_Release(&view);
        }
        Py_XDECREF(array);
        Py_XDECREF(dtype);
    }
    PyErr_Clear();
}

static int has_nan_in(const char *from, Py_ssize_t bytes, char kind, long long turn, int most) {
    long long blocks = (bytes + NAN_BLOCK_BYTES - 1) / NAN_BLOCK_BYTES;
    long long turns = bytes <= NAN_WHOLE_BYTES ? 1 : (blocks + most - 1) / most;
    int found = 0;
    for (long long block = turn % turns; block < blocks && !found; block += turns) {
        Py_ssize_t begin = (Py_ssize_t)block * NAN_BLOCK_BYTES, left = bytes - begin;
        found = nan_among(from + begin, (size_t)(left < NAN_BLOCK_BYTES ? left : NAN_BLOCK_BYTES), kind);
    }
    return found;
}

/* Whether an array or tensor of floats, or a scalar, has a NaN; 0 for what is not read here. Of a large one it looks at
 * `most` blocks evenly spread over it, in each turn at the next ones. */
static int has_nan_in_turn(PyObject *value, long long turn, int most) {
    PyObject *type = (PyObject *)Py_TYPE(value);
    if (type != array_type && place_of(type) < 0 && !PyType_IsSubtype(Py_TYPE(value), scalar_type)) return 0;
    if (type == array_type) {
        const Array *array = (const Array *)value;
        int is_double = float_types[1] && array->dtype == float_types[1];
        if (float_types[is_double] && array->dtype == float_types[is_double] && (array->flags & PLAIN) == PLAIN) {
            Py_ssize_t bytes = is_double ? 8 : 4;
            for (int i = 0; i < array->rank; i++) bytes *= array->shape[i];
            return has_nan_in(array->data, bytes, is_double ? 'd' : 'f', turn, most);
        }
    }
    Py_buffer view;
    if (PyObject_GetBuffer(value, &view, PyBUF_ND | PyBUF_FORMAT) < 0) return PyErr_Clear(), 0;
    char kind = view.format && !view.format[1] ? view.format[0] : 0;
    int found = (kind == 'f' || kind == 'd') && has_nan_in(view.buf, view.len, kind, turn, most);
    PyBuffer_Release(&view);
    return found;
}

/* See hold_quickly; a borrowed None where it does not take the values. */
static PyObject *hold_all(PyObject *given, int policy, long long room, long long *total) {
    PyObject *values = PyTuple_Check(given)  ? Py_NewRef(given)
                       : PyList_Check(given) ? PyList_AsTuple(given) /* another thread may change it */
                                             : PyTuple_Pack(1, given);
    if (!values) return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(values);
    PyObject *held = PyTuple_New(count);
    if (held && count) PyObject_GC_UnTrack(held); /* nothing in it needs the garbage collector */
    *total = 0;
    for (Py_ssize_t i = 0; held && i < count; i++) {
        PyObject *value = PyTuple_GET_ITEM(values, i), *type = (PyObject *)Py_TYPE(value), *one = NULL;
        if (type == array_type || place_of(type) >= 0) {
            PyObject *dtype = PyObject_GetAttr(value, name_dtype);
            long long size = 0;
            if (dtype) one = hold_one(value, dtype, policy, room - *total, &size);
            Py_XDECREF(dtype);
            *total += size;
        } else if (PyType_IsSubtype(Py_TYPE(value), scalar_type)) { /* cannot change */
            one = new_held(Py_NewRef(value), NULL, NULL, SCALAR_BYTES);
            *total += SCALAR_BYTES;
        }
        if (one) PyTuple_SET_ITEM(held, i, one);
        else Py_CLEAR(held);
    }
    Py_DECREF(values);
    /* What cannot be read is capture.py's to tell. Interrupts are the program's own. */
    if (!held && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear();
    return held || PyErr_Occurred() ? held : Py_None;
}

PyDoc_STRVAR(hold_quickly_doc,
"hold_quickly(values, policy, room, /)\n--\n\n"
"What capture.hold() does, for the policies SHAPE and SUMMARY, when all values are arrays of numbers, NumPy scalars,\n"
"or tensors of a kind that `register_type` was told of. None when it is anything else, or there is no room.");

static PyObject *hold_quickly(PyObject *module, PyObject *args) {
    PyObject *values;
    int policy;
    long long room, size;
    if (!PyArg_ParseTuple(args, "OiL", &values, &policy, &room)) return NULL;
    if (policy != SHAPE && policy != SUMMARY) Py_RETURN_NONE;
    PyObject *held = hold_all(values, policy, room, &size);
    if (!held) return NULL;
    if (held == Py_None) Py_RETURN_NONE;
    return Py_BuildValue("(NL)", held, size);
}

static PyMethodDef methods[] = {
    {"statistics", statistics, METH_O, statistics_doc},
    {"digest", digest, METH_VARARGS, digest_doc},
    {"register_type", register_type, METH_VARARGS, register_type_doc},
    {"hold_quickly", hold_quickly, METH_VARARGS, hold_quickly_doc},
    {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_statistics", "Statistics of numbers in memory.", 0, methods};

PyMODINIT_FUNC PyInit__statistics(void) {
    digest_prepare();
    PyObject *numpy = PyImport_ImportModule("numpy");
    array_type = numpy ? PyObject_GetAttrString(numpy, "ndarray") : NULL;
    scalar_type = numpy ? (PyTypeObject *)PyObject_GetAttrString(numpy, "generic") : NULL;
    no_text = PyUnicode_InternFromString("");
    name_dtype = PyUnicode_InternFromString("dtype");
    if (numpy && name_dtype) learn_arrays(numpy);
    Py_XDECREF(numpy);
    name_shape = PyUnicode_InternFromString("shape");
    name_shape_tuple = PyUnicode_InternFromString("_shape_tuple");
    if (!array_type || !scalar_type || !no_text || !name_dtype || !name_shape || !name_shape_tuple) return NULL;
    if (PyType_Ready(&held_type) < 0 || PyType_Ready(&numbers_type) < 0) return NULL;
    PyObject *module = PyModule_Create(&definition), *way = PyCapsule_New((void *)hold_all, HOLD_ALL, NULL);
    PyObject *short_way = PyCapsule_New((void *)brief, BRIEF, NULL);
    PyObject *nan_way = PyCapsule_New((void *)has_nan_in_turn, HAS_NAN, NULL);
    if (!module || !way || !short_way || !nan_way || PyModule_AddObjectRef(module, "has_nan_in_turn", nan_way) < 0 || PyModule_AddObjectRef(module, "brief", short_way) < 0 || PyModule_AddObjectRef(module, "Held", (PyObject *)&held_type) < 0 ||
        PyModule_AddObjectRef(module, "Numbers", (PyObject *)&numbers_type) < 0 ||
        PyModule_AddObjectRef(module, "hold_all", way) < 0) {
        Py_CLEAR(module);
    }
    Py_XDECREF(way);
    Py_XDECREF(short_way);
    Py_XDECREF(nan_way);
#ifdef Py_GIL_DISABLED
    if (module) PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
    return module;
}
