/* Lets another thread than the main one handle signals for a moment, so that a call in C there (a lock, a sleep) ends.

   Python raises what a signal's handler raises only on the thread that it believes to be the main one, also in the loops
   in which `time.sleep` and `Lock.acquire` look for signals (_Py_ThreadCanHandleSignals in Python/ceval.c). */
#define PY_SSIZE_T_CLEAN
#define Py_BUILD_CORE_MODULE 1
#include <Python.h>
#include <internal/pycore_runtime.h>

static unsigned long main_thread; /* 0 until `lend`: the real one while another one stands for it */

static PyObject *lend(PyObject *module, PyObject *args)
{
    unsigned long expected, ident;
    if (!PyArg_ParseTuple(args, "kk", &expected, &ident))
        return NULL;
    /* The header is that of the Python that built this: another patch release may have moved the field. */
    if (main_thread == 0 && _PyRuntime.main_thread != expected)
        Py_RETURN_FALSE;
    main_thread = expected;
    _PyRuntime.main_thread = ident;
    Py_RETURN_TRUE;
}

static PyObject *give_back(PyObject *module, PyObject *args)
{
    if (main_thread == 0)
        Py_RETURN_FALSE;
    _PyRuntime.main_thread = main_thread;
    main_thread = 0;
    Py_RETURN_TRUE;
}

static PyMethodDef methods[] = {
    {"lend", lend, METH_VARARGS, "lend(main, ident) -> whether thread `ident` handles signals now, in the place of `main`."},
    {"give_back", give_back, METH_NOARGS, "give_back() -> whether another thread than the main one handled signals."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_signals", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__signals(void)
{
    return PyModule_Create(&definition);
}
