"""Pages of results in headless Chromium: nothing on the console, light, dark, narrow, printed, by keyboard."""

import base64
import os
import shutil

import pytest
from report_pages import hostile, huge, results

from running import sampled

selenium = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
if not (shutil.which("chromium") and shutil.which("chromedriver")):
    pytest.skip("chromium or chromedriver is not installed", allow_module_level=True)
pytestmark = pytest.mark.campaign  # a browser starts in each worker

OPTIONS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run",
)  # fmt: skip
NAMES = ("violation", "pass", "cells", "bound", "curve", "profile", "hostile", "huge")
#: Contrast of texts, W3C's guidelines for accessible content 2.2, level AA.
CONTRAST = 4.5
CONTRASTS = """
const linear = x => x <= .04045 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4;
const luminance = colour => {
  const [r, g, b] = colour.match(/[\\d.]+/g).map(x => linear(x / 255));
  return .2126 * r + .7152 * g + .0722 * b; };
const back = luminance(getComputedStyle(document.body).backgroundColor);
return [...document.querySelectorAll("h1, h2, p, td, th, li, caption, strong")].map(e => {
  const front = luminance(getComputedStyle(e).color);
  return (Math.max(front, back) + .05) / (Math.min(front, back) + .05); });
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = selenium.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for option in (*OPTIONS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = selenium.ChromeService(shutil.which("chromedriver"), env={**os.environ, "SE_OFFLINE": "true"})
    driver = selenium.Chrome(options=options, service=service)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    shown = {**results(), "hostile": hostile(), "huge": huge()}
    for name in NAMES:
        (folder / f"{name}.html").write_text(shown[name].to_html())
    return folder


@pytest.fixture(params=[*sampled(NAMES[:-2], 2), *NAMES[-2:]])
def opened(request, browser, pages):
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    look(browser, "light")
    browser.get((pages / f"{request.param}.html").as_uri())
    return browser


def look(browser, scheme):
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def test_nothing_is_said_on_the_console_and_nothing_is_fetched(opened):
    assert opened.get_log("browser") == []
    assert opened.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert opened.execute_script("return document.compatMode") == "CSS1Compat"


@pytest.mark.parametrize("width", [360, 500, 1200])
def test_no_width_needs_horizontal_scrolling(opened, width):
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    widths = opened.execute_script(
        "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert widths == [width, width]
    outside = opened.execute_script(
        "return [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1"
        " && !e.closest('svg, thead')).map(e => e.outerHTML.slice(0, 99))"
    )
    assert outside == []


def test_texts_can_be_read_in_light_and_in_dark(opened):
    backgrounds = set()
    for scheme in ("light", "dark"):
        look(opened, scheme)
        assert min(opened.execute_script(CONTRASTS)) >= CONTRAST
        backgrounds.add(opened.execute_script("return getComputedStyle(document.body).backgroundColor"))
    assert len(backgrounds) == 2


def test_it_is_printed_dark_on_white_whatever_the_screen_is(opened):
    look(opened, "dark")
    printed = opened.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert base64.b64decode(printed["data"]).startswith(b"%PDF-")
    media = {"media": "print", "features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    colours = opened.execute_script("const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]")
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert colours == ["rgb(255, 255, 255)", "rgb(0, 0, 0)"]


def test_figures_have_names_for_who_cannot_see_them(opened):
    drawings = opened.find_elements("css selector", "svg")
    assert drawings
    for drawing in drawings:
        assert drawing.aria_role in ("img", "image")
        title = opened.execute_script("return arguments[0].querySelector('title').textContent", drawing)
        assert drawing.accessible_name.startswith(title)
