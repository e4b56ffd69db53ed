/* Records of the hot path as plain structures: quick to make, and left alone by the garbage collector.
 *
 * A class of Python's with slots takes part in garbage collection. Thousands of tickets wait in the writer's queue, so
 * each would be looked at again and again, and would make collections more frequent: a tenth of the time of a tight
 * loop. These types have no cycles of their own: what they hold is released when the writer has dealt with them.
 */
#define Py_LIMITED_API 0x030A0000
#include <Python.h>
#include <stddef.h>
#include <structmember.h>

typedef struct {
    PyObject_HEAD
    long long call, cpu_ns, cpu_start_ns, end_ns, entered_ns, ident, policy, room, start_ns, thread, values_ns;
    PyObject *failure, *inputs, *outputs, *pair, *recorder, *runs, *token;
} Ticket;

#define NUMBER(name) {#name, T_LONGLONG, offsetof(Ticket, name), 0, NULL}
#define OBJECT(type, name) {#name, T_OBJECT, offsetof(type, name), 0, NULL}

static PyMemberDef ticket_members[] = {
    NUMBER(call), NUMBER(cpu_ns), NUMBER(cpu_start_ns), NUMBER(end_ns), NUMBER(entered_ns), NUMBER(ident),
    NUMBER(policy), NUMBER(room), NUMBER(start_ns), NUMBER(thread), NUMBER(values_ns),
    OBJECT(Ticket, failure), OBJECT(Ticket, inputs), OBJECT(Ticket, outputs), OBJECT(Ticket, pair),
    OBJECT(Ticket, recorder), OBJECT(Ticket, runs), OBJECT(Ticket, token), {NULL, 0, 0, 0, NULL}};

static void ticket_dealloc(PyObject *self) {
    Ticket *ticket = (Ticket *)self;
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(ticket->failure);
    Py_XDECREF(ticket->inputs);
    Py_XDECREF(ticket->outputs);
    Py_XDECREF(ticket->pair);
    Py_XDECREF(ticket->recorder);
    Py_XDECREF(ticket->runs);
    Py_XDECREF(ticket->token);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyType_Slot ticket_slots[] = {
    {Py_tp_doc, "One call on its way from the hot path to the file: see recorder/ticket.py."},
    {Py_tp_members, ticket_members},
    {Py_tp_dealloc, ticket_dealloc},
    {0, NULL}};
static PyType_Spec ticket_spec = {"pyfunc_debug._plain.Ticket", sizeof(Ticket), 0, Py_TPFLAGS_DEFAULT, ticket_slots};

typedef struct {
    PyObject_HEAD
    long long nbytes;
    PyObject *thing, *dtype, *shape, *note;
} Held;

static PyMemberDef held_members[] = {
    {"nbytes", T_LONGLONG, offsetof(Held, nbytes), 0, NULL}, OBJECT(Held, thing), OBJECT(Held, dtype),
    OBJECT(Held, shape), OBJECT(Held, note), {NULL, 0, 0, 0, NULL}};

static int held_init(PyObject *self, PyObject *args, PyObject *named) {
    static char *names[] = {"thing", "dtype", "shape", "note", "nbytes", NULL};
    Held *held = (Held *)self;
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

static void held_dealloc(PyObject *self) {
    Held *held = (Held *)self;
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(held->thing);
    Py_XDECREF(held->dtype);
    Py_XDECREF(held->shape);
    Py_XDECREF(held->note);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyType_Slot held_slots[] = {
    {Py_tp_doc, "A value taken hold of: see values/held.py."},
    {Py_tp_members, held_members},
    {Py_tp_init, held_init},
    {Py_tp_dealloc, held_dealloc},
    {0, NULL}};
static PyType_Spec held_spec = {"pyfunc_debug._plain.Held", sizeof(Held), 0, Py_TPFLAGS_DEFAULT, held_slots};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_plain", "Records of the hot path as plain structures.", -1, NULL, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__plain(void) {
    PyObject *module = PyModule_Create(&definition);
    if (!module) return NULL;
    struct {
        const char *name;
        PyType_Spec *spec;
    } types[] = {{"Ticket", &ticket_spec}, {"Held", &held_spec}};
    for (int i = 0; i < 2; i++) {
        PyObject *type = PyType_FromSpec(types[i].spec);
        if (!type || PyModule_AddObject(module, types[i].name, type) < 0) {
            Py_XDECREF(type);
            Py_DECREF(module);
            return NULL;
        }
    }
    return module;
}
