"""What explanations say beside their pastes: other words for targets, names of modules, lambdas on one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doctor.pasting import parts, pasted, run

PROGRAMS = dict(parts((Path(__file__).parent / "failing" / "single_examples.txt").read_text()))


UNDECODED = dict(parts((Path(__file__).parent / "failing" / "undecoded_bytes.txt").read_text()))


def told(name: str, folder: Path, programs: dict[str, str] = PROGRAMS) -> tuple[str, str]:
    """What is printed, and the program with its paste."""
    path = folder / "program.py"
    path.write_text(programs[name].partition("\n--- ")[0] + "\n")
    said = run(path)[1]
    return said, pasted(path.read_text(), said)


def test_a_list_of_two_labels_is_called_one_of_targets(tmp_path):
    said, _ = told("two_outputs_in_a_list", tmp_path)
    assert "a list of targets" in " ".join(said.split())
    assert "inputs" not in said


def test_a_paste_brings_its_import_or_has_the_programs_own_name(tmp_path):
    assert "import tensorflow as tf\nmodel.fit(tf." in told("padded_rows_without_tf", tmp_path)[0]
    said, _ = told("padded_rows_under_an_alias", tmp_path)
    assert "model.fit(tf2.keras." in said
    assert "import" not in said


def test_two_pasted_lambdas_on_a_line_have_parameters_of_their_own(tmp_path):
    said, _ = told("one_label_ds", tmp_path)
    assert "lambda x, y:" in said
    assert said.count("lambda x, y:") == 1 < said.count("lambda ")


def test_one_paste_mends_both_calls_of_rankdata(tmp_path):
    text = (Path(__file__).parent / "failing" / "ranks_together.txt").read_text()
    (source,) = [rest for head, rest in parts(text) if head.startswith("ranks_on_two_lines")]
    path = tmp_path / "program.py"
    path.write_text(source.partition("\n--- ")[0] + "\n")
    error, said, _ = run(path)
    assert error is not None
    path.write_text(pasted(path.read_text(), said))
    assert "tf.cast(tf.numpy_function(stats.rankdata, [a], tf.float64), tf.float32)" in path.read_text()
    error, _, _ = run(path)
    assert error is None


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("name_of_a_py_func", "a py_func gives its body bytes for text"),
        ("name_of_a_stateless_py_func", "a py_func gives its body bytes for text"),
        ("name_of_a_stateless_numpy_function", "a numpy_function gives its body bytes for text"),
        ("arrays_of_a_py_func", "a py_func gives its body NumPy arrays, not tensors"),
    ],
)
def test_what_gives_the_body_its_values_has_the_name_that_the_user_wrote(name, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert words in " ".join(told(name, tmp_path, UNDECODED)[0].split())
