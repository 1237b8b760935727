"""Every flow of the page in Chromium, through the real server, as a person would go through it."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Page, expect

from .acting import canvas_is_empty, choose, draw, find_nearest
from .conftest import Open, Running


def test_a_drawn_three_is_read_by_all_three(server: Running, open_page: Open, shots: Path) -> None:
    page = open_page(server.address)
    draw(page)
    expect(page.locator("#seen")).to_have_text("DNN 3 · CNN 3 · CapsNet 3")
    expect(page.locator("#lanes .big")).to_have_text(["3", "3", "3"])
    assert not canvas_is_empty(page, "#taken")
    page.screenshot(path=shots / "serve-draw.png")
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("#lanes .big")).to_have_text(["–", "–", "–"])
    assert canvas_is_empty(page, "#canvas")


def test_a_finger_draws_too(server: Running, open_page: Open) -> None:
    page = open_page(server.address, width=390, height=844)
    page.locator("#canvas").tap()
    expect(page.locator("#seen")).to_contain_text("CapsNet")
    assert not canvas_is_empty(page, "#canvas")


def test_the_gallery_another_model_and_an_upload(server: Running, open_page: Open) -> None:
    page = open_page(server.address, refused=True)
    choose(page)
    expect(page.locator("#seen")).to_have_text("DNN 2 · CNN 2 · CapsNet 2")
    page.get_by_label("Which DNN").select_option("mnist-dnn1")
    expect(page.locator("#lanes .card").first).to_contain_text("8-8-8")
    expect(page.locator("#lanes .big").first).to_have_text("2")
    paper = np.full((200, 160), 230, dtype=np.uint8)
    paper[40:160, 60:70] = 30
    content = io.BytesIO()
    Image.fromarray(paper).save(content, format="PNG")
    page.locator("#upload").set_input_files(
        {"name": "one.png", "mimeType": "image/png", "buffer": content.getvalue()}
    )
    expect(page.locator("#origin")).to_have_text("Your picture one.png.")
    expect(page.locator("#lanes .big")).to_have_text(["1", "1", "1"])
    page.locator("#upload").set_input_files(
        {"name": "x.png", "mimeType": "image/png", "buffer": b"no picture"}
    )
    expect(page.locator("#origin")).to_contain_text("not a PNG or JPEG picture")


def test_colour_pictures_have_their_own_gallery_and_network(server: Running, open_page: Open) -> None:
    page = open_page(server.address)
    page.get_by_label("Kind").select_option("3,32,32")
    expect(page.locator("#lanes .card")).to_have_count(1)
    page.locator("#gallery.colour button").nth(4).click()
    expect(page.locator("#lanes .big")).to_have_text("automobile")
    page.get_by_role("tab", name="Capsules").click()
    expect(page.locator("#capsules-none")).to_be_visible()


def test_the_nearest_image_closes_in_can_be_faded_and_taken_home(
    server: Running, open_page: Open, shots: Path
) -> None:
    page = open_page(server.address)
    choose(page)
    page.get_by_role("tab", name="Nearest").click()
    find_nearest(page)
    sentence = page.locator("#nearest-sentence")
    expect(sentence).to_contain_text("this 2 is seen as 3; no image nearer than")
    expect(page.locator("#nearest-trio figcaption")).to_have_text(
        ["original: 2", "adversarial: 3", "difference"]
    )
    expect(page.locator("#nearest-chart svg")).to_have_attribute(
        "aria-label", re_words("proven at least 1.79")
    )
    expect(page.locator("#nearest-scores .first .name")).to_have_text(["2", "3"])
    page.screenshot(path=shots / "serve.png")
    fade = page.get_by_label("Fade")
    for share, label in ((0, "2"), (130, "3"), (60, "2")):
        fade.fill(str(share))
        expect(page.locator("#nearest-fade-said")).to_contain_text(f": {label}")
    with page.expect_download() as png:
        page.get_by_role("link", name="PNG").click()
    with Image.open(png.value.path()) as image:
        assert image.size == (28, 28)
    with page.expect_download() as array:
        page.get_by_role("link", name=".npy").click()
    assert np.load(array.value.path()).shape == (1, 28, 28)
    with page.expect_download() as verdict:
        page.get_by_role("link", name="Verdict").click()
    record = json.loads(Path(verdict.value.path()).read_text("utf-8"))
    assert record["outcome"] == "nearest"
    assert record["model"] == "zoo:mnist-50x2"


def re_words(words: str) -> re.Pattern[str]:
    return re.compile(re.escape(words))


def test_a_permalink_asks_the_same_again(server: Running, open_page: Open) -> None:
    page = open_page(server.address)
    draw(page)
    expect(page.locator("#seen")).to_contain_text("CapsNet 3")
    page.get_by_role("tab", name="Nearest").click()
    page.get_by_label("Turn it into").select_option("8")
    page.get_by_label("Most per pixel").fill("1/2")
    find_nearest(page)
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    said = page.locator("#nearest-sentence").text_content()
    again = open_page(page.url)
    again.wait_for_selector("#nearest-result.over")
    expect(again.locator("#nearest-sentence")).to_have_text(said or "")
    assert "seen as 8" in (said or "")
    expect(again.locator("#nearest-cap")).to_have_value("0.5")


def test_stop_keeps_the_best_and_what_is_missing_is_said(server: Running, open_page: Open) -> None:
    page = open_page(server.address)
    page.get_by_role("tab", name="Nearest").click()
    page.get_by_role("button", name="Find the nearest").click()
    expect(page.locator("#nearest-sentence")).to_have_text("Draw something first, or choose an image.")
    choose(page)
    page.locator("#nearest-model").select_option("mnist-cnn")
    page.locator("#nearest-norm").select_option("linf")
    page.locator("#nearest-limit").fill("300")
    page.get_by_role("button", name="Find the nearest").click()
    expect(page.locator("#nearest-trio figcaption").nth(1)).to_contain_text("best so far")
    expect(page.locator("#nearest-sentence")).to_contain_text("≤ distance ≤")
    page.locator("#nearest-stop").click()
    page.wait_for_selector("#nearest-result.over")
    expect(page.locator("#nearest-sentence")).to_contain_text("proven only that none nearer than")
    expect(page.locator("#nearest-stop")).to_be_disabled()


def test_certify_answers_as_the_radius_moves(server: Running, open_page: Open) -> None:
    page = open_page(server.address)
    choose(page)
    page.get_by_role("tab", name="Certify").click()
    radius, sentence = page.locator("#certify-radius"), page.locator("#certify-sentence")
    radius.fill("15")
    radius.dispatch_event("change")
    expect(sentence).to_have_text("✓ No image within L∞ 0.0067 can change this 2: proven.")
    expect(page.locator("#certify-trio canvas")).to_have_count(0)
    radius.fill("70")
    radius.dispatch_event("change")
    expect(sentence).to_contain_text("within 0.15 there is an image that changes it")
    expect(page.locator("#certify-trio figcaption").nth(1)).to_contain_text("adversarial: ")


def test_each_network_shows_its_best_three(server: Running, open_page: Open) -> None:
    page = open_page(server.address)
    page.get_by_role("tab", name="Ideal").click()
    page.get_by_label("The best").select_option("3")
    page.locator("#ideal-limit").fill("2")
    page.get_by_role("button", name="Show it").click()
    said = page.locator("#ideal-lanes .proof")
    expect(said).to_have_count(3)
    for number in range(3):
        expect(said.nth(number)).to_contain_text("The best 3 found: it leads by")
        assert not canvas_is_empty(page, f"#ideal-lanes article:nth-child({number + 1}) canvas")
    expect(said.nth(2)).to_contain_text("nothing is proven")


def test_sixteen_sliders_turn_a_capsule_and_two_digits_come_apart(
    server: Running, open_page: Open, shots: Path
) -> None:
    page = open_page(server.address)
    choose(page)
    page.get_by_role("tab", name="Capsules").click()
    sliders = page.locator("#capsules-sliders input")
    expect(sliders).to_have_count(16)
    expect(page.locator("#capsules-label option:checked")).to_contain_text("2 (length 0.9")
    canvas = page.locator("#capsules-pair canvas").nth(1)
    expect(canvas).to_have_attribute("data-milliseconds", re.compile(r"\d"))
    before = canvas.screenshot()
    sliders.nth(5).fill("0.6")
    expect(page.locator("#capsules-sliders output").nth(5)).to_have_text("0.60")
    until_changed(page, before)
    expect(page.locator("#capsules-routing figure.first b")).to_have_text("2")
    page.locator("#capsules-iteration").fill("1")
    expect(page.locator("#capsules-iteration-said")).to_have_text("1 of 3")
    page.locator("#capsules-iteration").fill("3")
    expect(page.locator("#capsules-iteration-said")).to_have_text("3 of 3")
    page.locator("#pairs-second").select_option(label="a 0 (test image 2763)")
    expect(page.locator("#pairs-sentence")).to_contain_text("Seen: ")
    expect(page.locator("#pairs-shown figcaption")).to_have_count(4)
    page.screenshot(path=shots / "serve-capsules.png")
    page.get_by_role("button", name="Reset").click()
    expect(page.locator("#capsules-sliders output").nth(5)).not_to_have_text("0.60")


def until_changed(page: Page, before: bytes) -> None:
    for _ in range(200):
        if page.locator("#capsules-pair canvas").nth(1).screenshot() != before:
            return
        page.wait_for_timeout(50)
    raise AssertionError("the reconstruction did not change with the slider")


def test_compare_says_who_is_fooled_first(server: Running, open_page: Open, shots: Path) -> None:
    page = open_page(server.address)
    choose(page)
    page.get_by_role("tab", name="Compare").click()
    page.get_by_label("Seconds each").fill("100")
    page.get_by_role("button", name="Which is fooled first?").click()
    expect(page.locator("#compare-sentence")).to_have_text(
        "The DNN is fooled first, at L1 1.795: proven against the CNN, not proven against the CapsNet."
    )
    expect(page.locator("#compare-ranges .who")).to_have_text(["DNN", "CNN", "CapsNet"])
    expect(page.locator("#compare-shots figcaption").nth(2)).to_contain_text("seen as")
    page.screenshot(path=shots / "serve-compare.png")


def test_a_model_of_ones_own_is_added_and_asked(server: Running, open_page: Open, brightest: Path) -> None:
    page = open_page(server.address, refused=True)
    page.locator("#model-file").set_input_files(
        {"name": "added.onnx", "mimeType": "application/octet-stream", "buffer": brightest.read_bytes()}
    )
    expect(page.locator("#model-said")).to_contain_text("images of 1 × 2 × 2, 4 classes")
    expect(page.locator("#lanes .card")).to_have_count(1)
    draw(page)
    page.get_by_role("tab", name="Nearest").click()
    find_nearest(page)
    expect(page.locator("#nearest-sentence")).to_contain_text("proven")
    page.locator("#model-file").set_input_files(
        {"name": "bad.onnx", "mimeType": "application/octet-stream", "buffer": b"\x08 is no model"}
    )
    expect(page.locator("#model-said")).to_contain_text("bad.onnx")
