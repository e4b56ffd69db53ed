/* Sets the trace function of another thread, on Python 3.10 and 3.11; since 3.12 sys.monitoring does it.

   In C because thread states come and go: the list is walked without giving the GIL back. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

static PyObject *callback;

static int on_event(PyObject *self, PyFrameObject *frame, int what, PyObject *arg)
{
    if (callback == NULL || (what != PyTrace_LINE && what != PyTrace_RETURN))
        return 0;
    PyObject *function = callback; /* it may be replaced meanwhile */
    Py_INCREF(function);
    PyObject *result = PyObject_CallFunction(function, "OO", (PyObject *)frame, what == PyTrace_LINE ? Py_True : Py_False);
    Py_DECREF(function);
    if (result == NULL)
        return -1;
    Py_DECREF(result);
    return 0;
}

/* A thread may have several states (pybind11 makes its own): only one of them runs Python code. It is not asked for its
   frame: to make that may begin a search for garbage, which may give the GIL away, and end the thread. */
static int runs_python(PyThreadState *state)
{
#if PY_VERSION_HEX >= 0x030B0000
    return state->cframe != NULL && state->cframe->current_frame != NULL;
#else
    return state->frame != NULL;
#endif
}

static PyObject *trace_threads(PyObject *module, PyObject *args)
{
    PyObject *threads, *function;
    if (!PyArg_ParseTuple(args, "O!O", &PySet_Type, &threads, &function))
        return NULL;
    int found = 0;
    PyInterpreterState *interpreter = PyInterpreterState_Get();
    Py_INCREF(function);
    Py_XSETREF(callback, function);
    PyThreadState *state = PyInterpreterState_ThreadHead(interpreter);
    while (state != NULL) {
        PyObject *ident = PyLong_FromUnsignedLong(state->thread_id);
        if (ident == NULL)
            return NULL;
        int wanted = PySet_Contains(threads, ident);
        Py_DECREF(ident);
        int traced = wanted > 0 && runs_python(state);
        found |= traced;
        /* It may be traced since an earlier call, and in C ever since: it calls `function` now. */
        if (!traced || state->c_tracefunc == on_event) {
            state = PyThreadState_Next(state);
            continue;
        }
        /* What the thread had stays what sys.gettrace() says there. */
        PyObject *before = state->c_traceobj != NULL ? state->c_traceobj : Py_None;
        Py_INCREF(before);
        int failed = _PyEval_SetTrace(state, on_event, before);
        Py_DECREF(before);
        if (failed < 0)
            return NULL;
        /* An audit hook may have given the GIL away: the next thread may be gone. */
        state = PyInterpreterState_ThreadHead(interpreter);
    }
    return PyBool_FromLong(found);
}

static PyMethodDef methods[] = {
    {"trace_threads", trace_threads, METH_VARARGS,
     "trace_threads(idents, function) -> whether one of them runs Python code\n\nCalls function(frame, is_line) at each line and return of these threads. Each ends that "
     "for itself: sys.settrace(sys.gettrace())."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_pause", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__pause(void)
{
    return PyModule_Create(&definition);
}
