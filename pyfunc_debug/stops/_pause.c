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

static PyObject *trace_threads(PyObject *module, PyObject *args)
{
    PyObject *threads, *function;
    if (!PyArg_ParseTuple(args, "O!O", &PySet_Type, &threads, &function))
        return NULL;
    long found = 0;
    PyThreadState *state = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
    Py_INCREF(function);
    Py_XSETREF(callback, function);
    for (; state != NULL; state = PyThreadState_Next(state)) {
        PyObject *ident = PyLong_FromUnsignedLong(state->thread_id);
        if (ident == NULL)
            return NULL;
        int wanted = PySet_Contains(threads, ident);
        Py_DECREF(ident);
        /* A thread may have several states (pybind11 makes its own): only one of them runs Python code. */
        PyFrameObject *running = wanted > 0 ? PyThreadState_GetFrame(state) : NULL;
        if (running == NULL)
            continue;
        Py_DECREF(running);
        /* What the thread had stays what sys.gettrace() says there. */
        PyObject *before = state->c_traceobj != NULL ? state->c_traceobj : Py_None;
        Py_INCREF(before);
        int failed = _PyEval_SetTrace(state, on_event, before);
        Py_DECREF(before);
        if (failed < 0)
            return NULL;
        found++;
    }
    return PyLong_FromLong(found);
}

static PyMethodDef methods[] = {
    {"trace_threads", trace_threads, METH_VARARGS,
     "trace_threads(idents, function) -> how many\n\nCalls function(frame, is_line) at each line and return of these threads. Each ends that "
     "for itself: sys.settrace(sys.gettrace())."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_pause", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__pause(void)
{
    return PyModule_Create(&definition);
}
