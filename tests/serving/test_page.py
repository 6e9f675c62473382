"""The page in a real browser, against a real service with the bundled encoder."""

import csv
import json
import re
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from hashlib import sha512
from io import BytesIO
from itertools import cycle
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from repcl.benchmarks.demo import DEMO
from repcl.classifier import ContinualClassifier
from repcl.serving import jobs as jobs_module
from repcl.serving.options import Options
from tests.serving.conftest import TOKEN, Shared
from tests.serving.live import IS_REQUIRED, browsing, chromium, serving

pytestmark = pytest.mark.skipif(
    chromium() is None and not IS_REQUIRED,
    reason="the page is tested in Chromium, which is not installed here",
)

VIEWS = ("try", "teach", "classes", "review", "history")
KNOWN = ("track_order", "refund_request", "size_advice")
HOSTILE = "<script>window.owned = true</script>"
HOSTILE_TEXT = "<img src=x onerror='window.owned = true'> purple unicorn number"
JOB_PATIENCE = 300_000  # milliseconds: a learning process may have to start first, on a busy machine
PATIENCE = 120_000  # for anything else
AXE = "axe-core@4.14.0"
expect.set_options(timeout=PATIENCE)
AXE_SHA512 = (
    "f564d9c448ec67b6f5dd31fc24f99b576cfc0876e5f34ff6866dd73c41b82603"
    "5d40b2bcd480515e64b11df3003a44aa41e4714ffd1dc0d0f3d863a6df3ce971"
)
JOB = {
    "id": "0123456789ab",
    "action": "learn",
    "state": "done",
    "progress": None,
    "created": "2026-11-20T00:00:00Z",
    "started": None,
    "finished": None,
    "revision": None,
    "problem": None,
    "summary": None,
}
SUMMARY = {
    "sentence": "Learned 40 texts.",
    "reasons": [],
    "new_classes": [],
    "examples": 40,
    "corrected": 0,
    "accuracy_before": None,
    "accuracy_after": None,
    "classes": [],
    "doubtful_texts": [],
    "notes": [],
}
WATCH_FOR_PROGRESS = """() => {
  const look = () => { window.sawProgress ||= document.querySelector("[role=progressbar]") !== null; };
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
}"""


def texts_of(label: str, most: int = 12) -> list[str]:
    with (DEMO.bundled / "train.csv").open(encoding="utf-8", newline="") as file:
        return [row["text"] for row in csv.DictReader(file) if row["label"] == label][:most]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that knows three classes of the support desk and one with a hostile name."""
    pairs = [(text, label) for label in KNOWN for text in texts_of(label)]
    pairs += [(f"{HOSTILE_TEXT} {number}", HOSTILE) for number in range(12)]
    texts, labels = zip(*pairs, strict=True)
    folder = tmp_path_factory.mktemp("page") / "desk"
    ContinualClassifier("instant", device="cpu").fit(list(texts), list(labels)).save(folder)
    return folder


@pytest.fixture(scope="module")
def address(desk: Path, learner: Shared) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs_module, "LearningProcess", lambda: learner)
        with serving(Options(desk, token=TOKEN, collects=True, device="cpu")) as found:
            yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as found:
        yield found


@pytest.fixture
def open_page(browser: Browser, address: str) -> Iterator[Callable[..., Page]]:
    """Open a view; anything that the browser complains about fails the test."""
    complaints: list[str] = []
    contexts = []

    def start(view: str, *, at: str = address, token: str | None = TOKEN, width: int = 1280) -> Page:
        context = browser.new_context(viewport={"width": width, "height": 800}, reduced_motion="reduce")
        contexts.append(context)
        if token:
            context.add_init_script(f"sessionStorage.setItem('repcl-token', {json.dumps(token)})")
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda said: said.type == "error" and complaints.append(said.text))
        page.goto(f"{at}/#/{view}")
        page.locator("h1").wait_for()
        return page

    yield start
    for context in contexts:
        context.close()
    expected = ("status of 401", "status of 503", "ERR_FAILED")  # what some tests are about
    assert not [said for said in complaints if not any(words in said for words in expected)]


def see(page: Page, view: str) -> None:
    """Go to a view as a visitor does."""
    page.get_by_role("navigation").get_by_role("link", name=view).click()
    expect(page).to_have_title(f"{view} · repcl")


def type_text(page: Page, text: str) -> None:
    page.get_by_label("Text", exact=True).fill(text)


def teach_lines(page: Page, label: str, lines: list[str]) -> None:
    page.get_by_label("Class", exact=True).fill(label)
    page.get_by_label("Texts, one a line").fill("\n".join(lines))
    page.get_by_role("button", name=f"Teach {len(lines)} texts").click()


def see_job(page: Page, **fields: object) -> None:
    """Go to a job that the service does not have."""
    page.route("**/v1/jobs/*", lambda route: route.fulfill(json=JOB | fields))
    page.evaluate("location.hash = '#/jobs/0123456789ab'")


def test_a_text_is_answered_with_bars_and_the_nearest_texts(open_page):
    page = open_page("try")
    type_text(page, "where is my parcel, please?")
    answer = page.get_by_role("region", name="Answer")
    expect(answer.get_by_role("heading")).to_have_text("track_order")
    expect(answer.locator(".candidate").nth(2)).to_be_visible()
    expect(page.get_by_role("region", name="Why").get_by_role("listitem")).to_have_count(3)


def test_a_text_like_no_other_is_marked_as_unknown(open_page):
    page = open_page("try")
    type_text(page, "photosynthesis turns sunlight into sugar")
    expect(page.get_by_role("region", name="Answer").get_by_role("heading")).to_have_text("Unknown")


def test_many_lines_become_a_table_and_a_csv_file(open_page):
    page = open_page("try")
    type_text(page, "where is my parcel?\n=refund, please\n\nwhich size do I take?")
    rows = page.get_by_role("table").locator("tbody tr")
    expect(rows).to_have_count(3)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download CSV").click()
    lines = list(csv.reader(saved.value.path().read_text(encoding="utf-8-sig").splitlines()))
    assert lines[0] == ["text", "predicted", "confidence", "unknown"]
    assert lines[1][:2] == ["where is my parcel?", "track_order"]
    assert lines[2][0] == "'=refund, please"  # else a spreadsheet would take it for a formula


def test_of_an_unknown_text_no_share_is_shown(open_page):
    page = open_page("try")
    type_text(page, "photosynthesis turns sunlight into sugar\nwhere is my parcel?")
    rows = page.get_by_role("table").locator("tbody tr")
    expect(rows.nth(0).locator("td").last).to_have_text("–")
    expect(rows.nth(1).locator("td").last).to_contain_text("%")


def test_a_class_is_taught_from_pasted_lines_and_then_predicted(open_page):
    page = open_page("teach", token=None)
    page.evaluate(WATCH_FOR_PROGRESS)
    teach_lines(page, "gift_card_balance", texts_of("gift_card_balance"))
    dialog = page.get_by_role("dialog", name="This needs a token")
    dialog.get_by_label("Token").fill(TOKEN)
    dialog.get_by_role("button", name="Use token").click()
    expect(page.get_by_text("Learned, and in use")).to_be_visible(timeout=JOB_PATIENCE)
    assert page.evaluate("window.sawProgress")
    expect(page.locator(".facts")).to_contain_text("gift_card_balance")
    page.get_by_role("link", name="Keep it and try it").click()
    type_text(page, "how much money is left on my gift card?")
    expect(page.get_by_role("region", name="Answer").get_by_role("heading")).to_have_text("gift_card_balance")


def test_an_update_that_the_guard_refuses_is_shown_and_discarded(open_page):
    page = open_page("teach")
    mixed = [*texts_of("charged_twice", 20), *texts_of("price_match", 20)]
    rows = [[text, label] for text, label in zip(mixed, cycle(["one", "other"]), strict=False)]
    page.get_by_text("A file or table").click()
    page.get_by_label("Or paste rows").fill("\n".join("\t".join(row) for row in [["text", "label"], *rows]))
    page.get_by_role("button", name="Teach 40 texts").click()
    refusal = page.locator(".notice").filter(has_text="Refused, because")
    expect(refusal.get_by_role("listitem").first).to_contain_text("texts", timeout=JOB_PATIENCE)
    expect(page.get_by_role("heading", name="Texts to check")).to_be_visible()
    before = page.locator(".served-revision").inner_text()
    page.get_by_role("button", name="Discard it").click()
    expect(page.get_by_text("The update was thrown away")).to_be_visible(timeout=JOB_PATIENCE)
    see(page, "Classes")
    expect(page.get_by_role("button", name="track_order", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="other", exact=True)).to_have_count(0)
    assert page.locator(".served-revision").inner_text() == before


def test_on_a_phone_doubtful_texts_have_the_width(open_page):
    page = open_page("try", width=360)
    doubtful = {"text": "my card was charged twice", "label": "price_match", "likelier": "charged_twice"}
    see_job(page, state="refused", summary=SUMMARY | {"doubtful_texts": [doubtful]})
    cell = page.get_by_role("rowheader").filter(has_text=doubtful["text"])
    expect(cell).to_contain_text("Its label price_match, likelier charged_twice")
    box = cell.bounding_box()
    assert box is not None
    assert box["width"] > 300


def test_a_lost_job_says_whether_it_may_have_been_written(open_page):
    page = open_page("try")
    see_job(page, state="lost", problem={"title": "Lost", "detail": "It may be in the history."})
    expect(page.get_by_role("alert")).to_contain_text("It may be in the history.")


def test_a_change_that_the_guard_advises_against_is_used_and_says_why(open_page):
    page = open_page("try")
    reasons = ["class 'price_match' lost 3 of its 5 texts, 3 of them to 'charged_twice'"]
    see_job(page, state="done", action="merge", summary=SUMMARY | {"reasons": reasons})
    notice = page.locator(".notice").filter(has_text="The guard advises against it")
    expect(notice.get_by_role("listitem")).to_have_text(reasons)


def test_only_the_revision_in_use_can_be_undone(open_page):
    page = open_page("try")
    see_job(page, state="done", revision=999)
    expect(page.get_by_role("link", name="See the history")).to_be_visible()
    expect(page.get_by_role("button", name="Undo")).to_have_count(0)


def test_a_refused_revision_that_was_accepted_can_be_used_again(open_page):
    page = open_page("try")
    row = {"parent": None, "when": "2026-11-20T00:00:00Z", "action": "learn", "sentence": "Learned."}
    row |= {"classes": 4, "accuracy": 0.9}
    revisions = [
        row | {"number": 1, "is_current": True, "is_refused": False, "is_accepted": False},
        row | {"number": 2, "is_current": False, "is_refused": True, "is_accepted": False},
        row | {"number": 3, "is_current": False, "is_refused": True, "is_accepted": True},
    ]
    page.route("**/v1/history", lambda route: route.fulfill(json={"current": 1, "revisions": revisions}))
    see(page, "History")
    expect(page.locator(".chip-warning")).to_have_text(["Refused, then accepted", "Refused"])
    expect(page.get_by_role("button", name="Roll back")).to_have_text("Roll back to revision 3")


def test_a_class_is_renamed_and_the_revision_before_can_be_used_again(open_page):
    page = open_page("classes")
    page.get_by_role("button", name="size_advice", exact=True).click()
    sheet = page.get_by_role("dialog", name="size_advice")
    expect(sheet.locator(".quotes li")).to_have_count(5)
    sheet.get_by_role("button", name="Rename").click()
    page.get_by_label("New name").fill("which_size")
    page.get_by_role("dialog", name="Rename the class").get_by_role("button", name="Rename").click()
    expect(page.get_by_role("button", name="which_size", exact=True)).to_be_visible(timeout=JOB_PATIENCE)
    see(page, "History")
    page.get_by_role("button", name="Roll back to revision 1", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Roll back").click()
    in_use = page.get_by_role("listitem").filter(has_text="In use")
    expect(in_use.get_by_role("heading")).to_contain_text("Revision 1In use", timeout=JOB_PATIENCE)
    see(page, "Classes")
    expect(page.get_by_role("button", name="size_advice", exact=True)).to_be_visible()


def test_a_change_is_followed_although_its_dialog_was_closed(open_page):
    page = open_page("classes")
    waiting: list[Route] = []
    page.route("**/v1/classes/rename", lambda route: waiting.append(route))
    page.get_by_role("button", name="size_advice", exact=True).click()
    page.get_by_role("dialog", name="size_advice").get_by_role("button", name="Rename").click()
    dialog = page.get_by_role("dialog", name="Rename the class")
    with page.expect_request("**/v1/classes/rename"):
        dialog.get_by_role("button", name="Rename").click()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    job = JOB | {"action": "rename", "state": "done", "summary": SUMMARY | {"sentence": "It was renamed."}}
    waiting[0].fulfill(status=202, json=job)
    expect(page.get_by_text("It was renamed.")).to_be_visible()


def test_words_that_are_selected_up_to_beside_a_dialog_leave_it_open(open_page):
    page = open_page("classes")
    page.get_by_role("button", name="size_advice", exact=True).click()
    sheet = page.get_by_role("dialog", name="size_advice")
    sheet.get_by_text("Learned from").hover()
    page.mouse.down()
    page.mouse.move(20, 400)
    page.mouse.up()
    expect(sheet).to_be_visible()
    page.mouse.click(20, 400)
    expect(sheet).to_be_hidden()


def test_going_back_closes_dialogs(open_page):
    page = open_page("try")
    see(page, "Classes")
    page.get_by_role("button", name="size_advice", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.get_by_role("dialog")).to_have_count(2)
    page.go_back()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_removing_a_class_says_what_is_deleted(open_page):
    page = open_page("classes")
    page.get_by_role("button", name="refund_request", exact=True).click()
    page.get_by_role("button", name="Remove").click()
    dialog = page.get_by_role("dialog", name="Remove the class")
    expect(dialog).to_contain_text("Everything learned from its 12 texts")
    expect(dialog.get_by_label("Delete those earlier revisions")).not_to_be_checked()
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_be_hidden()


def test_a_group_of_unsure_texts_is_named_and_taught(open_page, address):
    page = open_page("review")
    unsure = [
        "do you have a summer job for students",
        "is there a summer job for students",
        "any summer job for students here?",
    ]
    page.request.post(f"{address}/v1/predict", data={"texts": unsure})
    page.reload()
    group = page.get_by_role("region").filter(has_text=unsure[0])
    group.get_by_label("They are").fill("jobs")
    group.get_by_role("button", name="Teach").click()
    expect(page.get_by_text("Learned, and in use")).to_be_visible(timeout=JOB_PATIENCE)
    see(page, "Review")
    expect(page.get_by_text(unsure[0])).to_have_count(0)
    see(page, "Classes")
    expect(page.get_by_role("button", name="jobs", exact=True)).to_be_visible()


def test_erasing_all_leaves_what_came_in_since(open_page, address):
    page = open_page("try")
    seen, later = "why do volcanoes erupt", "how many moons does jupiter have"
    page.request.post(f"{address}/v1/predict", data={"texts": [seen]})
    see(page, "Review")
    page.get_by_text(seen).wait_for()
    page.request.post(f"{address}/v1/predict", data={"texts": [later]})
    page.get_by_role("button", name="Erase all").click()
    page.get_by_role("dialog").get_by_role("button", name="Erase").click()
    expect(page.get_by_text(seen)).to_have_count(0)
    expect(page.get_by_text(later)).to_be_visible()


def test_a_list_that_cannot_be_shown_anew_is_not_shown_as_it_was(open_page, address):
    page = open_page("try")
    page.request.post(f"{address}/v1/predict", data={"texts": ["what is the capital of peru"]})
    see(page, "Review")
    page.get_by_role("button", name="Erase all").click()
    page.route("**/v1/unknown", lambda route: route.abort())
    page.get_by_role("dialog").get_by_role("button", name="Erase").click()
    expect(page.get_by_text("The service does not answer.")).to_be_visible()
    expect(page.get_by_text("what is the capital of peru")).to_have_count(0)


def test_texts_that_are_tried_are_not_kept_for_review(open_page, address):
    page = open_page("try")
    type_text(page, "volcanoes of iceland, and how they sleep")
    expect(page.locator(".is-unknown")).to_be_visible()
    assert "volcanoes" not in page.request.get(f"{address}/v1/unknown").text()


def test_markup_in_texts_and_labels_stays_text(open_page):
    page = open_page("try")
    type_text(page, f"{HOSTILE_TEXT} 3")
    expect(page.get_by_role("region", name="Answer").get_by_role("heading")).to_have_text(HOSTILE)
    expect(page.get_by_role("region", name="Why")).to_contain_text("<img src=x onerror=")
    see(page, "Teach")
    page.get_by_label("Class", exact=True).fill(HOSTILE)
    page.get_by_label("Texts, one a line").fill(HOSTILE_TEXT)
    expect(page.get_by_role("table")).to_contain_text(HOSTILE)
    see(page, "Classes")
    page.get_by_role("button", name=HOSTILE).click()
    expect(page.get_by_role("dialog", name=HOSTILE)).to_contain_text(HOSTILE_TEXT)
    assert page.evaluate("window.owned") is None
    assert page.locator("main img, main script, dialog img, dialog script").count() == 0


def test_rows_with_problems_are_marked_and_left_out(open_page, tmp_path):
    page = open_page("teach")
    (tmp_path / "new.csv").write_text(
        'Nachricht;intent;id\n"is it ""waterproof""; really?";product_question;1\n;product_question;2\n'
        "no class;;3\nsame;a;4\nsame;b;5\n",
        encoding="cp1252",
    )
    page.get_by_text("A file or table").click()
    page.locator("#file").set_input_files(tmp_path / "new.csv")
    expect(page.get_by_label("Text is in")).to_have_value("Nachricht")
    expect(page.get_by_label("Class is in")).to_have_value("intent")
    expect(page.get_by_role("button", name="Teach 1 text", exact=True)).to_be_enabled()
    preview = page.get_by_role("region", name="Preview")
    expect(preview).to_contain_text('is it "waterproof"; really?')
    expect(preview.locator(".problem")).to_have_text(
        [
            "Left out: has no text",
            "Left out: has no class",
            "Left out: has another class than the same text in row 6",
            "Left out: has another class than the same text in row 5",
        ]
    )


def test_chosen_columns_stay_while_the_other_way_is_looked_at(open_page):
    page = open_page("teach")
    page.get_by_text("A file or table").click()
    page.get_by_label("Or paste rows").fill("text\tlabel\ttopic\none\ta\tb")
    page.get_by_label("Class is in").select_option("topic")
    page.get_by_text("Lines of one class").click()
    page.get_by_text("A file or table").click()
    expect(page.get_by_label("Class is in")).to_have_value("topic")


@pytest.mark.parametrize(
    ("multilabel", "problems"),
    [
        (False, ["has another class than the same text in row 3", "repeats row 1"]),
        (True, ["", "repeats row 1"]),
    ],
)
def test_a_text_with_two_labels_is_taught_where_that_is_allowed(open_page, multilabel, problems):
    page = open_page("try")
    rows = [["one text", "a"], ["one text", "a"], ["one text", "b"]]
    assert problems_of(page, rows, multilabel=multilabel)[:2] == problems


def test_a_class_name_that_the_service_does_not_take_is_left_out(open_page):
    page = open_page("try")
    rows = [["one text", "c" * 500], ["another text", "c" * 501], ["a third", "😀" * 500]]
    assert problems_of(page, rows) == ["", "has a class name longer than 500 characters", ""]


def problems_of(page: Page, rows: list[list[str]], *, multilabel: bool = False) -> list[str]:
    """What is wrong with rows of a text and a label."""
    table = [
        {"line": line, "cells": {"text": text, "label": label}}
        for line, (text, label) in enumerate(rows, start=1)
    ]
    found: list[str] = page.evaluate(
        """async ([rows, multilabel]) => {
          const { checkRows } = await import("/data/examples.js");
          const model = { ...await (await fetch("/v1/model")).json(), multilabel };
          return checkRows(rows, { text: "text", label: "label" }, model).map(({ problem }) => problem);
        }""",
        [table, multilabel],
    )
    return found


def test_a_line_that_is_too_long_is_named_and_the_others_are_answered(open_page):
    page = open_page("try")
    type_text(page, f"where is my parcel?\n\n{'x' * 10_001}\nI want my money back")
    expect(page.locator(".notice")).to_contain_text("Line 3 was left unanswered")
    expect(page.get_by_role("table").locator("tbody tr")).to_have_count(2)


def test_a_token_that_no_request_can_carry_is_not_taken(open_page):
    page = open_page("try", token=None)
    page.get_by_role("button", name="Token").click()
    dialog = page.get_by_role("dialog", name="This needs a token")
    dialog.get_by_label("Token").fill(f"{TOKEN}\u200b")
    dialog.get_by_role("button", name="Use token").click()
    said = dialog.get_by_label("Token").evaluate("field => field.validationMessage")
    assert "hidden characters" in said
    assert page.evaluate("sessionStorage.length") == 0


def test_a_token_is_used_where_the_browser_forbids_storage(open_page):
    page = open_page("try", token=None)
    kept = page.evaluate(
        """async (given) => {
          Object.defineProperty(window, "sessionStorage", { get() { throw new Error("forbidden"); } });
          const { keepToken, token } = await import("/service/token.js");
          keepToken(given);
          return token();
        }""",
        TOKEN,
    )
    assert kept == TOKEN


def test_who_does_not_ask_for_anything_is_not_asked_for_the_token(open_page):
    page = open_page("try")
    page.clock.install()
    page.reload()
    page.locator(".served-revision").wait_for()
    problem = {"type": "about:blank", "title": "Unauthorized", "status": 401, "detail": "No."}
    page.route("**/v1/model", lambda route: route.fulfill(status=401, json=problem))
    for _ in range(2):  # what the page did about the first answer is done when it asks again
        with page.expect_response("**/v1/model"):
            page.clock.run_for(5000)
    assert page.get_by_role("dialog").count() == 0


def test_skipping_to_the_content_stays_in_the_view(open_page):
    page = open_page("teach")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#view")).to_be_focused()
    expect(page).to_have_url(re.compile("#/teach$"))


def test_a_service_without_a_token_is_shown_as_read_only(open_page, desk):
    with serving(Options(desk, device="cpu")) as elsewhere:
        page = open_page("teach", at=elsewhere, token=None)
        expect(page.get_by_role("note")).to_contain_text("Read-only.")
        expect(page.get_by_role("button", name="Teach")).to_have_count(0)
        see(page, "Classes")
        page.get_by_role("button", name="track_order", exact=True).click()
        expect(page.get_by_role("dialog", name="track_order")).to_be_visible()
        expect(page.get_by_role("button", name="Remove")).to_have_count(0)


def test_a_lost_connection_is_said_and_forgotten_when_it_is_back(open_page):
    page = open_page("try")
    page.route("**/v1/**", lambda route: route.abort())
    type_text(page, "where is my parcel?")
    expect(page.get_by_text("The connection to the service is lost")).to_be_visible()
    page.unroute("**/v1/**")
    expect(page.get_by_text("The connection to the service is lost")).to_be_hidden()


def test_a_job_is_followed_although_its_events_cannot_be_had(open_page):
    page = open_page("classes")
    page.route("**/v1/jobs/*/events", lambda route: route.abort())
    page.get_by_role("button", name="size_advice", exact=True).click()
    page.get_by_role("dialog", name="size_advice").get_by_role("button", name="Rename").click()
    page.get_by_label("New name").fill("which_size")
    page.get_by_role("dialog", name="Rename the class").get_by_role("button", name="Rename").click()
    expect(page.get_by_role("button", name="which_size", exact=True)).to_be_visible(timeout=JOB_PATIENCE)


def test_what_the_service_refuses_is_said_in_its_own_words(open_page):
    page = open_page("try")
    problem = {"type": "about:blank", "title": "Busy", "status": 503, "detail": "Too many requests wait."}

    def refuse(route: Route) -> None:
        route.fulfill(status=503, content_type="application/problem+json", body=json.dumps(problem))

    page.route("**/v1/history", refuse)
    page.get_by_role("link", name="History").click()
    expect(page.get_by_role("alert")).to_contain_text("Too many requests wait.")
    page.unroute("**/v1/history")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("heading", name="Revision 1")).to_be_visible()


def test_nothing_is_wider_than_a_phone_and_no_text_is_tiny(open_page):
    page = open_page("try", width=360)
    for view in VIEWS:
        see(page, view.capitalize())
        page.locator("main h1").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, view
        sizes = page.evaluate(
            "[...document.querySelectorAll('body *')].filter(one => one.checkVisibility() &&"
            " [...one.childNodes].some(child => child.nodeType === 3 && child.data.trim()))"
            ".map(one => parseFloat(getComputedStyle(one).fontSize))"
        )
        assert min(sizes) >= 11, view


def test_colors_can_be_switched_and_stay_so(open_page):
    page = open_page("try")
    paper = "getComputedStyle(document.documentElement).backgroundColor"
    light = page.evaluate(paper)
    page.get_by_role("button", name="Dark colors").click()
    assert page.evaluate(paper) != light
    page.reload()
    page.locator("h1").wait_for()
    assert page.evaluate(paper) != light


@pytest.fixture(scope="module")
def axe(request: pytest.FixtureRequest) -> str:
    """The source of axe-core, fetched once; it is of another license, and so no part of this project."""
    folder = Path(request.config.cache.mkdir("axe-core"))
    archive = folder / f"{AXE}.tgz"
    if not archive.exists():
        fetch_axe(archive)
    packed = archive.read_bytes()
    if sha512(packed).hexdigest() != AXE_SHA512:
        archive.unlink()
        pytest.fail(f"{AXE} is not the file that is pinned here")
    with tarfile.open(fileobj=BytesIO(packed)) as opened:
        source = opened.extractfile("package/axe.min.js")
        assert source is not None
        return source.read().decode()


def fetch_axe(archive: Path) -> None:
    """Fetch it with npm; where the browser is required, so is this."""
    words = ["npm", "pack", AXE, "--silent", "--pack-destination", str(archive.parent)]
    try:
        packed = subprocess.run(words, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        give_up = pytest.fail if IS_REQUIRED else pytest.skip
        give_up(f"{AXE} could not be fetched ({error})")
    else:
        (archive.parent / packed.stdout.strip()).replace(archive)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_serious_issue(open_page, axe, theme):
    page = open_page("try")
    page.emulate_media(color_scheme=theme)
    page.evaluate(f"() => {{ {axe} }}")
    for view in VIEWS:
        see(page, view.capitalize())
        page.locator("main h1").wait_for()
        if view == "try":
            type_text(page, "where is my parcel?")
            page.get_by_role("region", name="Answer").wait_for()
        assert serious(page) == [], view
    see(page, "Classes")
    page.get_by_role("button", name="track_order", exact=True).click()
    page.get_by_role("heading", name="Kept word for word").wait_for()
    assert serious(page) == []


def serious(page: Page) -> list[str]:
    found = page.evaluate("() => axe.run()")
    return [
        f"{one['id']}: {one['nodes'][0]['html']}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("a,b\r\n1,2\r\n", [["a", "b"], ["1", "2"]]),
        ("a;b\n1,5;2", [["a", "b"], ["1,5", "2"]]),
        ("a\tb\n\n1\t2", [["a", "b"], ["1", "2"]]),
        ('a,b\n"x ""y"", z\nnew line",2', [["a", "b"], ['x "y", z\nnew line', "2"]]),
        ('a,b\n"x" y,2', [["a", "b"], ["x y", "2"]]),
        ('"a,1";b\n2;3', [["a,1", "b"], ["2", "3"]]),
    ],
)
def test_comma_separated_values_are_read_as_spreadsheets_write_them(open_page, text, cells):
    page = open_page("try")
    read = "async (text) => (await import('/data/csv.js')).parseCsv(text).map((record) => record.cells)"
    assert page.evaluate(read, text) == cells


def test_a_quote_that_is_never_closed_names_its_row(open_page):
    page = open_page("teach")
    page.get_by_text("A file or table").click()
    page.get_by_label("Or paste rows").fill('text,label\nfine,a\n"open,b\nmore,c')
    expect(page.get_by_role("alert")).to_contain_text("In the row of line 3 a quote is opened")
