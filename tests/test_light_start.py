"""What starts without torch: the package itself, help, lists, wrong options, the history of a model."""

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {
    "accelerate",
    "matplotlib",
    "numpy",
    "optuna",
    "pyarrow",
    "ray",
    "scipy",
    "sklearn",
    "torch",
    "transformers",
}
REPORTING = {"matplotlib", "optuna", "ray"}


def imported_by(code: str) -> set[str]:
    """The packages that a fresh Python has imported after running some code."""
    program = (
        "import sys\n"
        "try:\n" + "".join(f"    {line}\n" for line in code.splitlines()) + "except SystemExit:\n    pass\n"
        "print('\\n'.join(name for name in sys.modules if '.' not in name))"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(ended.stdout.split())


def typed(*words: str) -> str:
    return f"sys.argv = {['repcl', *words]!r}\nfrom repcl.cli import main\nmain()"


def test_importing_repcl_loads_nothing_heavy() -> None:
    assert imported_by("import repcl") & HEAVY == set()


@pytest.mark.parametrize("module", ["repcl.classifier", "repcl.methods", "repcl.presets"])
def test_what_the_classifier_needs_draws_no_figures_and_starts_no_cluster(module: str) -> None:
    assert imported_by(f"import {module}") & REPORTING == set()


def test_the_classifier_itself_draws_no_figures_and_starts_no_cluster() -> None:
    assert imported_by("from repcl import ContinualClassifier") & REPORTING == set()


@pytest.mark.parametrize(
    "words",
    [
        ("--help",),
        ("--version",),
        ("bench", "--help"),
        ("learn", "--help"),
        ("list", "methods"),
        ("list", "benchmarks"),
        ("list", "encoders"),
        ("learn", "--nonsense"),
        ("bench", "--rounds", "none"),
        ("history", "no-such-model"),
    ],
    ids=" ".join,
)
def test_a_command_that_computes_nothing_starts_without_torch(words: tuple[str, ...]) -> None:
    assert imported_by(typed(*words)) & HEAVY == set()


def saved_model(folder: Path) -> Path:
    from repcl import ContinualClassifier
    from tests.classifier.conftest import cheap_settings, save_tiny_encoder, toy

    encoder = save_tiny_encoder(folder / "encoder")
    classifier = ContinualClassifier("instant", str(encoder), settings=cheap_settings("instant"))
    classifier.fit(*toy("fruit", "vehicle", "weather"))
    classifier.save(folder / "model")
    return folder / "model"


def test_a_model_answers_without_transformers_and_the_compiler_of_torch(tmp_path: Path) -> None:
    found = imported_by(typed("predict", str(saved_model(tmp_path)), "a cold pear", "--unknown"))
    assert "torch" in found
    assert found & {"transformers", "sympy", "sklearn", "scipy"} == set()  # torch's compiler needs sympy


def test_a_model_learns_without_transformers_and_the_compiler_of_torch(tmp_path: Path) -> None:
    model, more = saved_model(tmp_path), tmp_path / "more.csv"
    more.write_text("text,label\nthe city is cold,place\nparis is a city,place\n")
    found = imported_by(typed("learn", str(model), str(more), "--accept"))
    assert "torch" in found
    assert found & {"transformers", "sympy"} == set()


def test_an_exported_model_answers_without_torch(tmp_path: Path) -> None:
    from repcl.classifier import ModelFolder
    from repcl.classifier.export import export_model

    folder = ModelFolder(saved_model(tmp_path))
    with folder.lock("exporting"):
        export_model(folder)
    found = imported_by(typed("predict", str(folder.path), "a cold pear", "--unknown"))
    assert "onnxruntime" in found
    assert found & (HEAVY - {"numpy"}) == set()
