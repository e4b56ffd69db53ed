"""A body that reads HDF5 by h5py is known, also where a function of its file does: parallel calls wait for its lock."""

from __future__ import annotations

import pytest

from pyfunc_debug.doctor.bodies import one_file_lock
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.pfrec.reader import Reader
from tests.doctor.recordings import node, written

OPENS = "import h5py\ndef bad(x):\n    with h5py.File('a.h5') as f:\n        return f['x'][x]\n"
CALLS = "import h5py\ndef bad(x):\n    return row(x) * 2\ndef row(x):\n    return h5py.File('a.h5')['x'][x]\n"
OF_A_FILE = "import h5py\nrows = h5py.File('a.h5')['x']\ndef bad(x):\n    return rows[x]\n"
OF_SELF = (
    "from h5py import File\nclass A:\n    def __init__(self):\n        self.file = File('a.h5')\n"
    "    def bad(self, x):\n        return self.file['x'][x]\n"
)
IN_MEMORY = "import h5py\nrows = h5py.File('a.h5')['x'][:]\ndef bad(x):\n    return rows[x]\n"
OTHER = "import numpy as np\nrows = np.load('a.npy')\ndef bad(x):\n    return rows[x]\n"


@pytest.mark.parametrize(
    ("source", "line", "reads"),
    [(OPENS, 2, True), (CALLS, 2, True), (OF_A_FILE, 3, True), (OF_SELF, 5, True), (IN_MEMORY, 3, False),
     (OTHER, 3, False)],
)  # fmt: skip
def test_what_reads_by_h5py(tmp_path, source, line, reads):
    facts = Facts(Reader(written(tmp_path / "a.pfrec", source, node=[node(line=line)])))
    assert one_file_lock.reads_hdf5(facts, facts.nodes[1]) is reads
