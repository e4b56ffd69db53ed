/* What replaces OwnedIterator._next_internal, without Python of ours: between two elements TensorFlow and the training step
 * throw the interpreter's data out of the caches, and in place the same in Python takes ten times as long.
 */
#include <Python.h>
#include <stddef.h>
#include <structmember.h>
#include <time.h>

typedef long long Number;

static Number now_ns(void) { /* time.monotonic_ns */
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (Number)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* -- Asked: as in graphs/inputs.py, with sums instead of notes: under the GIL nobody sees half of one ------------------- */

typedef struct {
    PyObject_HEAD
    PyObject *loop, *alive;
    Number until_ns, firsts, first_ns, steps, wait_ns, step_ns, longest_ns;
    char took, noted;
} Asked;

static void add(Asked *self, Number begin, Number end) {
    Number before = self->until_ns;
    self->until_ns = end;
    if (!begin) return;
    self->noted = 1;
    if (before) {
        self->steps++, self->wait_ns += end - begin, self->step_ns += end - before;
        if (end - begin > self->longest_ns) self->longest_ns = end - begin;
    } else {
        self->took = 1, self->firsts++, self->first_ns += end - begin;
    }
}

static PyObject *note(Asked *self, PyObject *const *args, Py_ssize_t count) {
    if (count != 2) return PyErr_Format(PyExc_TypeError, "note(begin_ns, end_ns)");
    Number begin = PyLong_AsLongLong(args[0]), end = PyLong_AsLongLong(args[1]);
    if (PyErr_Occurred()) return NULL;
    add(self, begin, end);
    Py_RETURN_FALSE;
}

static PyObject *drain(Asked *self, PyObject *none) {
    PyObject *sums = Py_BuildValue("LLLLLL", self->firsts, self->first_ns, self->steps, self->wait_ns, self->step_ns,
                                   self->longest_ns);
    if (!sums) return NULL;
    self->firsts = self->first_ns = self->steps = self->wait_ns = self->step_ns = self->longest_ns = 0;
    self->noted = 0;
    return sums;
}

static int asked_init(Asked *self, PyObject *args, PyObject *named) {
    PyObject *loop, *alive;
    if (self->loop || (named && PyDict_GET_SIZE(named))) return PyErr_Format(PyExc_TypeError, "Asked(loop, alive)"), -1;
    if (!PyArg_ParseTuple(args, "OO", &loop, &alive)) return -1;
    self->loop = Py_NewRef(loop), self->alive = Py_NewRef(alive);
    return 0;
}

static void asked_dealloc(Asked *self) {
    Py_XDECREF(self->loop);
    Py_XDECREF(self->alive);
    PyObject_Free(self);
}

static PyMemberDef asked_members[] = {
    {"loop", T_OBJECT, offsetof(Asked, loop), READONLY, NULL},
    {"alive", T_OBJECT, offsetof(Asked, alive), READONLY, NULL},
    {"took", T_BOOL, offsetof(Asked, took), 0, NULL},
    {"noted", T_BOOL, offsetof(Asked, noted), READONLY, "Whether there is something to drain."},
    {NULL, 0, 0, 0, NULL}};
static PyMethodDef asked_methods[] = {
    {"note", (PyCFunction)(void (*)(void))note, METH_FASTCALL, "`next` began and ended; 0, 0: the iterator did."},
    {"drain", (PyCFunction)drain, METH_NOARGS, "What was added since the last time."},
    {NULL, NULL, 0, NULL}};

static PyTypeObject asked_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "pyfunc_debug.interception._next.Asked",
    .tp_doc = "One iterator: see graphs/inputs.py.",
    .tp_basicsize = sizeof(Asked),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_members = asked_members,
    .tp_methods = asked_methods,
    .tp_init = (initproc)asked_init,
    .tp_new = PyType_GenericNew,
    .tp_dealloc = (destructor)asked_dealloc,
    .tp_free = PyObject_Free,
};

/* -- Next -------------------------------------------------------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *full, *original, *asked, *context, *names, *raised;
    Asked *last; /* whom `asked_of` found last */
} Next;

/* Whether this thread executes eagerly, as private.eager_test asks; 0 where that cannot be known like this. */
static int is_eager(Next *self) {
    PyObject *found = Py_NewRef(self->context);
    for (Py_ssize_t i = 0; found && i < PyTuple_GET_SIZE(self->names); i++) {
        PyObject *part = PyObject_GetAttr(found, PyTuple_GET_ITEM(self->names, i));
        Py_DECREF(found);
        found = part;
    }
    Py_XDECREF(found);
    return found == Py_True;
}

static Asked *asked_of(Next *self, PyObject *iterator) {
    Asked *last = self->last;
    if (last && ((PyWeakReference *)last->alive)->wr_object == iterator) return (Asked *)Py_NewRef((PyObject *)last);
    PyObject *number = PyLong_FromVoidPtr(iterator); /* as `id` gives it */
    PyObject *one = number ? PyDict_GetItemWithError(self->asked, number) : NULL;
    Py_XDECREF(number);
    if (!one || !Py_IS_TYPE(one, &asked_type) || !PyWeakref_Check(((Asked *)one)->alive)) return NULL;
    self->last = (Asked *)Py_NewRef(one);
    Py_XDECREF((PyObject *)last);
    return (Asked *)Py_NewRef(one);
}

static PyObject *next_call(Next *self, PyObject *const *args, size_t flags, PyObject *names) {
    Asked *one = PyVectorcall_NARGS(flags) == 1 && !names ? asked_of(self, args[0]) : NULL;
    if (!one || !is_eager(self)) {
        Py_XDECREF(one);
        if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) return NULL; /* an interrupt */
        PyErr_Clear();
        return PyObject_Vectorcall(self->full, args, flags, names);
    }
    Number begin = now_ns();
    PyObject *element = PyObject_Vectorcall(self->original, args, 1, NULL);
    if (element) {
        add(one, begin, now_ns());
    } else {
        PyObject *type, *error, *traceback;
        PyErr_Fetch(&type, &error, &traceback);
        PyErr_NormalizeException(&type, &error, &traceback);
        if (traceback) PyException_SetTraceback(error, traceback);
        PyObject *done = PyObject_CallFunctionObjArgs(self->raised, one, error, NULL);
        Py_XDECREF(done);
        if (done) PyErr_Restore(type, error, traceback);
        else Py_XDECREF(type), Py_XDECREF(error), Py_XDECREF(traceback); /* it raised it again */
    }
    Py_DECREF(one);
    return element;
}

static int next_init(Next *self, PyObject *args, PyObject *named) {
    if (self->full || (named && PyDict_GET_SIZE(named))) return PyErr_Format(PyExc_TypeError, "see graphs/inputs.py"), -1;
    PyObject *full, *original, *asked, *context, *path, *raised;
    if (!PyArg_ParseTuple(args, "OOO!OO!O", &full, &original, &PyDict_Type, &asked, &context, &PyTuple_Type, &path, &raised))
        return -1;
    self->names = Py_NewRef(path);
    self->full = Py_NewRef(full), self->original = Py_NewRef(original), self->asked = Py_NewRef(asked);
    self->context = Py_NewRef(context), self->raised = Py_NewRef(raised);
    self->call = (vectorcallfunc)next_call;
    return 0;
}

static PyObject *next_bind(PyObject *self, PyObject *owner, PyObject *type) {
    return !owner || owner == Py_None ? Py_NewRef(self) : PyMethod_New(self, owner);
}

static int next_traverse(Next *self, visitproc visit, void *arg) {
    Py_VISIT(self->full);
    Py_VISIT(self->original);
    Py_VISIT(self->asked);
    Py_VISIT(self->context);
    Py_VISIT(self->names);
    Py_VISIT(self->raised);
    return 0;
}

static void next_dealloc(Next *self) {
    PyObject_GC_UnTrack(self);
    Py_XDECREF(self->full);
    Py_XDECREF(self->original);
    Py_XDECREF(self->asked);
    Py_XDECREF(self->context);
    Py_XDECREF(self->names);
    Py_XDECREF(self->raised);
    Py_XDECREF((PyObject *)self->last);
    PyObject_GC_Del(self);
}

static PyMemberDef next_members[] = {
    {"__wrapped__", T_OBJECT, offsetof(Next, full), READONLY, "The same in Python."}, {NULL, 0, 0, 0, NULL}};

/* `__name__`, `__module__`, ...: those of the function that stands there where nothing is in C. */
static PyObject *next_attribute(Next *self, PyObject *name) {
    PyObject *found = PyObject_GenericGetAttr((PyObject *)self, name);
    if (found || !self->full || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
    PyErr_Clear();
    return PyObject_GetAttr(self->full, name);
}

static PyTypeObject next_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "pyfunc_debug.interception._next.Next",
    .tp_doc = "OwnedIterator._next_internal, timed.",
    .tp_basicsize = sizeof(Next),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_members = next_members,
    .tp_init = (initproc)next_init,
    .tp_new = PyType_GenericNew,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Next, call),
    .tp_descr_get = next_bind,
    .tp_getattro = (getattrofunc)next_attribute,
    .tp_traverse = (traverseproc)next_traverse,
    .tp_dealloc = (destructor)next_dealloc,
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_next", "Times what iterators take.", -1, NULL};

PyMODINIT_FUNC PyInit__next(void) {
    if (PyType_Ready(&asked_type) < 0 || PyType_Ready(&next_type) < 0) return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (!module) return NULL;
    if (PyModule_AddObjectRef(module, "Asked", (PyObject *)&asked_type) < 0 ||
        PyModule_AddObjectRef(module, "Next", (PyObject *)&next_type) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
