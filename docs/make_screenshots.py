"""Takes pictures of every view of the page, wide and on a phone, light and dark, of the bundled support desk.

    make screenshots

writes them to `runs/screenshots`; the two that README and docs show go to `docs/images`.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, Page, ViewportSize
from tests.serving.live import browsing, serving

from repcl.benchmarks import load_benchmark
from repcl.classifier import ContinualClassifier, ModelFolder
from repcl.data import Example
from repcl.serving.options import Options

ROOT = Path(__file__).parent.parent
OUT = ROOT / "runs" / "screenshots"
SHOWN = {"try-wide-light": "page-try.png", "review-wide-dark": "page-review.png"}
SIZES: dict[str, ViewportSize] = {
    "wide": {"width": 1200, "height": 800},
    "phone": {"width": 360, "height": 740},
}
TOKEN = "a-token-for-screenshots"
PATIENCE = 300_000  # milliseconds
UNSURE = [
    "do you hire students in the summer",
    "are there open jobs in your warehouse",
    "i would like to apply for a job",
    "is my toaster still under warranty",
    "warranty claim for the headphones",
    "does the warranty cover a broken zip",
]
MANY = [
    "where is my parcel",
    "I want to return the blue shoes, they are too small for me",
    "photosynthesis turns sunlight into sugar",
    "the code SAVE10 does not work",
]


def main() -> None:
    """Teach a desk, serve it, and look at it in every way."""
    OUT.mkdir(parents=True, exist_ok=True)
    tasks = [task.train for task in load_benchmark("demo", tasks=6).tasks]
    with TemporaryDirectory() as folder, browsing() as browser:
        desk = Path(folder) / "desk"
        teach(desk, tasks[:5])
        with serving(Options(desk, token=TOKEN, collects=True, device="cpu")) as address:
            for name, size in SIZES.items():
                for theme in ("light", "dark"):
                    look(browser, address, tasks[5], f"{name}-{theme}", size)
    for name, file in SHOWN.items():
        shutil.copy(OUT / f"{name}.png", ROOT / "docs" / "images" / file)


def teach(desk: Path, tasks: Sequence[Sequence[Example]]) -> None:
    """A model with a history."""
    classifier = ContinualClassifier("instant", device="cpu")
    for task in tasks:
        classifier.partial_fit([one.text for one in task], [one.label for one in task])
        with ModelFolder(desk).lock("learning", wait=60):
            classifier.commit(ModelFolder(desk))


def look(browser: Browser, address: str, new: Sequence[Example], kind: str, size: ViewportSize) -> None:
    """All pictures of one size and theme."""
    theme = kind.rpartition("-")[2]
    context = browser.new_context(viewport=size, color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]
    context.add_init_script(f"sessionStorage.setItem('repcl-token', '{TOKEN}')")
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.request.post(f"{address}/v1/predict", data={"texts": UNSURE})
    for name, show in VIEWS.items():
        for number, _ in enumerate(show(page, address, new)):
            picture = f"{name}{number or ''}-{kind}.png"
            page.mouse.move(0, 0)
            page.screenshot(path=OUT / picture, full_page=name not in IN_A_DIALOG)
    context.close()


def visit(page: Page, address: str, view: str) -> None:
    """Open a view."""
    page.goto(f"{address}/#/{view}")
    page.reload()
    page.locator("main h1").wait_for()


def trying(page: Page, address: str, _: Sequence[Example]) -> Iterator[None]:
    """Nothing, one text, an unknown one, many."""
    visit(page, address, "try")
    for text, sign in (
        ("hi, where is my parcel? it should have been here on monday", ".verdict"),
        (MANY[2], ".is-unknown"),
        ("\n".join(MANY), "table"),
        ("", ".empty"),
    ):
        page.get_by_label("Text", exact=True).fill(text)
        page.locator(sign).wait_for()
        yield


def teaching(page: Page, address: str, new: Sequence[Example]) -> Iterator[None]:
    """Lines of a class, and a table with problems."""
    visit(page, address, "teach")
    page.get_by_label("Class", exact=True).fill(new[0].label)
    lines = [one.text for one in new if one.label == new[0].label][:6]
    page.get_by_label("Texts, one a line").fill("\n".join([*lines, lines[0]]))
    yield
    page.get_by_text("A file or table").click()
    page.get_by_label("Or paste rows").fill(
        f"text;intent;id\n{UNSURE[3]};warranty;1\n;warranty;2\n{MANY[0]};;3"
    )
    page.locator(".problem").first.wait_for()
    yield


def deciding(page: Page, address: str, new: Sequence[Example]) -> Iterator[None]:
    """An update that is refused, because its labels are mixed up."""
    labels = cycle(["parcel_missing", "parcel_late"])
    taken = [one.text for one in new][:40]
    rows = ["text\tlabel", *(f"{text}\t{label}" for text, label in zip(taken, labels, strict=False))]
    visit(page, address, "teach")
    page.get_by_text("A file or table").click()
    page.get_by_label("Or paste rows").fill("\n".join(rows))
    page.get_by_role("button", name="Teach 40 texts").click()
    page.get_by_text("Refused, because").wait_for()
    yield
    page.get_by_role("button", name="Discard it").click()
    page.get_by_text("The update was thrown away").wait_for()


def learning(page: Page, address: str, new: Sequence[Example]) -> Iterator[None]:
    """A class while it is learned, and what that changed; it is undone in the end."""
    visit(page, address, "teach")
    label = new[0].label
    page.get_by_label("Class", exact=True).fill(label)
    page.get_by_label("Texts, one a line").fill("\n".join(one.text for one in new if one.label == label))
    page.get_by_role("button", name="Teach 2").click()
    page.get_by_role("progressbar").wait_for()
    yield
    page.get_by_text("Learned, and in use").wait_for()
    yield
    page.get_by_role("button", name="Undo").click()
    page.locator(".timeline").wait_for()


def classes(page: Page, address: str, _: Sequence[Example]) -> Iterator[None]:
    """All classes."""
    visit(page, address, "classes")
    page.locator("table").wait_for()
    yield


def one_class(page: Page, address: str, _: Sequence[Example]) -> Iterator[None]:
    """A class, and the question before it is removed."""
    visit(page, address, "classes")
    page.locator(".row-link").nth(3).click()
    page.locator(".sheet .quotes").wait_for()
    yield
    page.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog", name="Remove the class").wait_for()
    yield


def review(page: Page, address: str, _: Sequence[Example]) -> Iterator[None]:
    """Unsure texts in groups."""
    visit(page, address, "review")
    page.locator(".group").first.wait_for()
    yield


def history(page: Page, address: str, _: Sequence[Example]) -> Iterator[None]:
    """The timeline."""
    visit(page, address, "history")
    page.locator(".curve").wait_for()
    yield


VIEWS: dict[str, Callable[[Page, str, Sequence[Example]], Iterator[None]]] = {
    "try": trying,
    "teach": teaching,
    "decide": deciding,
    "learn": learning,
    "classes": classes,
    "class": one_class,
    "review": review,
    "history": history,
}
IN_A_DIALOG = {"class"}  # the page behind it cannot be scrolled


if __name__ == "__main__":
    main()
