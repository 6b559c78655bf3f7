#!/usr/bin/env python3
"""Checks the HTML reports in a real browser: drawing, zoom, details, keys, narrow and dark layouts, printing, pages
without script, and that nothing is fetched.

Usage: browser.py ROSE                        the tests; SKIPPED without Chromium
       browser.py --picture REPORT.html PNG   takes a picture of a report's last time line, as the README shows it
With ROSE_KEEP_PICTURES=DIR the tests keep their screenshots there.
"""
import base64
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import chromium

here = pathlib.Path(__file__).parent
failures = 0
what = ""


def fail(text):
    global failures
    failures += 1
    print(f"FAILED: {what}: {text}")


def check(condition, text):
    if not condition:
        fail(text)
    return bool(condition)


def near(a, b, within=1.0):
    return abs(a - b) <= within


# Helper functions that the page's own script does not contain.
PROBE = """
window.probe = {
  chart: i => document.querySelectorAll('svg.tl')[i],
  ticks: i => [...probe.chart(i).querySelectorAll('.axis text')].map(t => t.textContent),
  box: el => { const b = el.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; },
  view: el => { el.scrollIntoView({block: 'center'}); return probe.box(el); },
  marks: i => [...probe.chart(i).querySelectorAll('.z [x], .z [x1]')].map(e => [e.tagName, e.getAttribute('x') || e.getAttribute('x1'), e.getAttribute('width'), e.style.display]),
  words: i => { const w = document.querySelectorAll('.words')[i]; return w.hidden ? null : w.textContent; },
  // The contrast of every text with its background (WCAG 2): returns the worst ones.
  contrast: () => {
    const parse = c => { const m = c.match(/[\\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m; };
    const over = (a, b) => [0, 1, 2].map(i => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
    const light = c => { const [r, g, b] = c.slice(0, 3).map(v => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; }); return .2126 * r + .7152 * g + .0722 * b; };
    const behind = el => {
      const layers = [];
      for (let e = el; e; e = e.parentElement) layers.push(parse(getComputedStyle(e).backgroundColor));
      return layers.reverse().reduce((under, layer) => over(layer, under), [255, 255, 255, 1]);
    };
    const bad = [];
    for (const el of document.querySelectorAll('body *')) {
      if (![...el.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) || ['SCRIPT', 'STYLE', 'title', 'desc'].includes(el.tagName)) continue;
      const style = getComputedStyle(el);
      if (!el.getClientRects().length || style.visibility === 'hidden') continue;
      let ground = behind(el.closest('svg') ? el.closest('svg').parentElement : el), ink = parse(el.closest('svg') ? style.fill : style.color);
      const lane = el.closest('svg.tl') && document.querySelector('.lane0');
      if (lane) ground = over(parse(getComputedStyle(lane).fill), ground);
      ink = over(ink, ground);
      const [a, b] = [light(ink), light(ground)].sort((x, y) => y - x), ratio = (a + .05) / (b + .05);
      const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.6 && +style.fontWeight >= 700);
      if (ratio < (large ? 3 : 4.5)) bad.push(`${ratio.toFixed(2)} '${el.textContent.trim().slice(0, 40)}' (${el.tagName}.${el.getAttribute('class')})`);
    }
    return bad;
  },
};
"""


def picture(browser, name):
    if folder := os.environ.get("ROSE_KEEP_PICTURES"):
        pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
        browser.picture(pathlib.Path(folder) / f"{what}-{name}.png", whole=True)


def open_page(browser, page, charts):
    browser.open(page)
    browser.js(PROBE + "1")
    check(browser.js("document.querySelectorAll('svg.tl').length") == charts, f"not {charts} charts")
    check(browser.js("document.documentElement.classList.contains('js')"), "its script did not run")


def quiet(browser, page):
    told = browser.complaints()
    check(not told, f"the console was told {told[:3]}")
    fetched = [url for url in browser.fetched() if url != pathlib.Path(page).resolve().as_uri()]
    check(not fetched, f"it fetched {fetched[:3]}")


def check_zoom(browser):
    charts = browser.js("document.querySelectorAll('svg.tl').length")
    whole_ticks, whole_marks = browser.js("probe.ticks(0)"), browser.js("probe.marks(0)")
    check(4 <= len(whole_ticks) <= 14, f"{len(whole_ticks)} ticks on the whole axis")
    # If half of the plot is selected by dragging, every chart shows half of the time.
    x, y, width, height = browser.js("probe.view(probe.chart(0))")
    unit = width / 1200
    browser.drag(x + (150 + 260) * unit, y + height / 2, x + (150 + 780) * unit)
    ticks = browser.js("probe.ticks(0)")
    check(ticks != whole_ticks, "a drag does not zoom")
    for i in range(1, charts):
        check(browser.js(f"probe.ticks({i})") == ticks, "the charts' axes differ after a drag")
    span = lambda t: float(re.sub(r"[^\d.-]", "", t[-1])) - float(re.sub(r"[^\d.-]", "", t[0]))
    check(span(ticks) < 0.75 * span(whole_ticks),
          f"half of the plot shows {ticks[0]} to {ticks[-1]} of {whole_ticks[0]} to {whole_ticks[-1]}")
    # Nothing is drawn over the names of the lanes.
    outside = browser.js("""[...probe.chart(0).querySelectorAll('.z use, .z rect')].filter(e => {
        const c = probe.chart(0).getBoundingClientRect(), b = e.getBoundingClientRect(), s = getComputedStyle(e);
        return s.display !== 'none' && document.elementFromPoint(Math.max(c.x, b.x) + 1, b.y + b.height / 2) === e && b.x + 1 < c.x + 130 * c.width / 1200; }).length""")
    check(outside == 0, "zoomed marks stand over the lanes' names")
    browser.js("document.querySelector('[data-do=reset]').click()")
    browser.settle()
    check(browser.js("probe.ticks(0)") == whole_ticks, "All does not give back the whole axis")
    for (tag, a, w, shown), (_, b, v, now) in zip(whole_marks, browser.js("probe.marks(0)")):
        if not (near(float(a), float(b), .02) and shown == now and near(float(w or 0), float(v or 0), .02)):
            fail(f"All does not give back a {tag} at {a}, but {b}")
            break
    # The buttons and the wheel zoom.
    for action, opposite in (("in", "out"), ("in", "reset")):
        browser.js(f"document.querySelector('[data-do={action}]').click()")
        browser.settle()
        check(browser.js("probe.ticks(0)") != whole_ticks, f"{action} does not zoom")
        for way in ("right", "left", opposite):
            browser.js(f"document.querySelector('[data-do={way}]').click()")
        browser.settle()
        check(browser.js("probe.ticks(0)") == whole_ticks, f"{opposite} does not undo {action}")
    x, y, width, height = browser.js("probe.view(probe.chart(0))")
    for _ in range(3):
        browser.mouse("mouseWheel", x + width / 2, y + height / 2, deltaX=0, deltaY=-100, modifiers=2)
    browser.settle()
    check(browser.js("probe.ticks(0)") != whole_ticks, "Ctrl and the wheel do not zoom")
    browser.mouse("mousePressed", x + width / 2, y + height / 2, button="left", buttons=1, clickCount=2)
    browser.mouse("mouseReleased", x + width / 2, y + height / 2, button="left", clickCount=2)
    browser.settle()
    # Zoom in to the limit of a double's precision, and back.
    for _ in range(20):
        browser.js("document.querySelector('[data-do=in]').click()")
    browser.settle()
    deep = browser.js("probe.ticks(0)")
    check(len(set(deep)) == len(deep) and len(deep) >= 2, f"at the deepest zoom the axis says {deep}")
    browser.js("document.querySelector('[data-do=reset]').click()")
    browser.settle()
    check(browser.js("probe.ticks(0)") == whole_ticks, "All does not come back from the deepest zoom")


def check_details(browser):
    mark = "probe.chart(0).querySelector('.fault use') || probe.chart(0).querySelector('.z use, .z rect')"
    browser.js(f"probe.view({mark})")
    x, y, width, height = browser.js(f"probe.box({mark})")
    browser.mouse("mouseMoved", x + width / 2, y + height / 2)
    browser.settle()
    tip = browser.js(
        "(t => getComputedStyle(t).display === 'none' ? null : t.textContent)(document.getElementById('tip'))")
    if not check(tip and re.match(r"[+-]?[\d.]+ s", tip), f"over a mark the tip says {tip!r}"):
        return
    box = browser.js("probe.box(document.getElementById('tip'))")
    size = browser.js("[innerWidth, innerHeight]")
    check(box[0] >= 0 and box[1] >= 0 and box[0] + box[2] <= size[0] and box[1] + box[3] <= size[1],
          f"the tip stands outside of the window: {box} of {size}")
    browser.click(x + width / 2, y + height / 2)
    check(browser.js("probe.words(0)") == tip, "a click does not keep the words")
    browser.mouse("mouseMoved", 2, 2)
    browser.settle()
    check(browser.js("getComputedStyle(document.getElementById('tip')).display") == "none",
          "the tip stays when the mouse has gone")
    check(browser.js("probe.words(0)") == tip, "the words go with the mouse")
    check(browser.js("document.querySelectorAll('.z title').length") == 0, "the browser's own tip would show too")
    # The legend hides the marks of a kind, and shows them again.
    for kind in ("ps", "sys", "scf"):
        if not browser.js(f"!!document.querySelector('.tl .z .{kind}')"):
            continue
        shown = f"getComputedStyle(document.querySelector('.tl .z .{kind}')).display"
        browser.js(f"document.getElementById('k-{kind}').click()")
        check(browser.js(shown) == "none", f"the legend does not hide {kind}")
        browser.js(f"document.getElementById('k-{kind}').click()")
        check(browser.js(shown) != "none", f"the legend does not show {kind} again")


def check_keys(browser):
    browser.js("document.activeElement.blur(); document.querySelector('[data-do=reset]').focus()")
    browser.key("Tab")
    if not check(browser.js("document.activeElement === probe.chart(0)"),
                 "Tab does not lead from the buttons to the chart"):
        return
    check(browser.js("getComputedStyle(probe.chart(0)).outlineStyle") != "none",
          "the chart that has the focus does not show it")
    browser.key("Escape")
    check(browser.js("probe.words(0)") is None, "Escape does not put the words away")
    seen = []
    for _ in range(3):
        browser.key("ArrowRight")
        seen.append(browser.js("probe.words(0)"))
    check(all(seen) and len(set(seen)) == 3, f"the right arrow does not go from mark to mark: {seen}")
    browser.key("ArrowLeft")
    check(browser.js("probe.words(0)") == seen[-2], "the left arrow does not go back")
    check(browser.js("document.querySelectorAll('.chosen').length") == 1, "not one mark is marked as chosen")
    ticks = browser.js("probe.ticks(0)")
    browser.key("+", "+")
    check(browser.js("probe.ticks(0)") != ticks, "+ does not zoom")
    for _ in range(6):
        browser.key("+", "+")
    # The next mark is scrolled into view.
    for _ in range(3):
        browser.key("ArrowRight")
    inside = browser.js("""(() => { const c = probe.chart(0).getBoundingClientRect(), m = document.querySelector('.chosen'), b = m ? m.getBoundingClientRect() : new DOMRect();
        return b.width > 0 && b.x >= c.x && b.right <= c.right + 1; })()""")
    check(inside, "the chosen mark is not in view")
    browser.key("0", "0")
    check(browser.js("probe.ticks(0)") == ticks, "0 does not show all")
    # Everything that can be done with the mouse can be done with the keyboard.
    browser.js("document.activeElement.blur()")
    reached = set()
    for _ in range(60):
        browser.key("Tab")
        reached.add(browser.js("(e => e.id || e.dataset.do || e.dataset.copy || e.tagName)(document.activeElement)"))
    missing = {"in", "out", "left", "right", "reset", "svg", "k-ps", "k-scf"} - reached
    check(not missing, f"Tab never reaches {missing}")
    browser.key("Escape")


def check_sizes(browser, name):
    for width, height in ((1280, 900), (820, 1100), (390, 844), (320, 600)):
        browser.size(width, height, mobile=width < 500)
        over = browser.js("document.documentElement.scrollWidth - innerWidth")
        check(over <= 0, f"{over} px wider than a window of {width}")
        wide = browser.js("[...document.querySelectorAll('svg.tl')].map(s => s.getBoundingClientRect().right - "
                          "innerWidth).filter(o => o > 0).length")
        check(wide == 0, f"at {width} px a chart goes beyond the window")
        # Labels do not overlap, and stay inside the chart.
        cut = browser.js("""[...document.querySelectorAll('.tl .fault text')].filter(t => { const c = t.closest('svg').getBoundingClientRect(), b = t.getBoundingClientRect();
            return b.width > 0 && getComputedStyle(t).display !== 'none' && (b.right > c.right + 2 || b.left < c.left - 2); }).map(t => t.textContent)""")
        check(not cut, f"at {width} px these labels are cut off: {cut}")
        ticks = browser.js("""(() => { const boxes = [...probe.chart(0).querySelectorAll('.axis text')].map(t => t.getBoundingClientRect());
            return boxes.slice(1).filter((b, i) => b.left < boxes[i].right).length; })()""")
        check(ticks == 0, f"at {width} px {ticks} times of the axis run into each other")
        over = browser.js('''(() => { const seen = [...probe.chart(0).ownerDocument.querySelectorAll('.tl .bounds text')].filter(t => getComputedStyle(t).visibility !== 'hidden' && t.style.display !== 'none')
            .map(t => [t.textContent, t.closest('svg'), t.getBoundingClientRect()]);
            return seen.filter(([a, s, b], i) => seen.some(([, o, c], k) => k < i && o === s && b.left < c.right && c.left < b.right && b.top < c.bottom - 3 && c.top < b.bottom - 3)
              || b.left < s.getBoundingClientRect().left - 1 || b.right > s.getBoundingClientRect().right + 1).map(([a]) => a); })()''')
        check(not over, f"at {width} px these words stand over others or are cut off: {over}")
        small = browser.js("""[...document.querySelectorAll('.tl text')].filter(t => { const m = t.getScreenCTM(); return parseFloat(getComputedStyle(t).fontSize) * m.a < 8; }).length""")
        check(small == 0, f"at {width} px {small} texts of charts are smaller than 8 px")
        picture(browser, f"{name}-{width}")
    browser.call("Emulation.clearDeviceMetricsOverride")
    browser.size(1280, 900)


def check_colours(browser):
    grounds = {}
    for scheme in ("light", "dark"):
        browser.media(prefers_color_scheme=scheme)
        grounds[scheme] = browser.js("getComputedStyle(document.body).backgroundColor")
        bad = browser.js("probe.contrast()")
        check(not bad, f"{scheme}: too little contrast: {bad[:4]}")
        picture(browser, scheme)
    check(grounds["light"] != grounds["dark"], "dark is as light")
    # Printed pages use light colours, even if the reader prefers a dark scheme.
    browser.media("print", prefers_color_scheme="dark")
    check(browser.js("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)",
          "a dark page would be printed")
    browser.media()


def check_print(browser, work):
    browser.js("document.querySelector('[data-do=in]').click()")
    browser.settle()
    browser.media("print")
    check(browser.js("[...document.querySelectorAll('button, .legend input, #tip')].filter(e => "
                     "e.getClientRects().length).length") == 0, "buttons are printed")
    browser.media()
    browser.js("addEventListener('beforeprint', () => { window.open_on_paper = "
               "[...document.querySelectorAll('details')].every(d => d.open); }); 1")
    pdf = base64.b64decode(browser.call("Page.printToPDF", printBackground=True, paperWidth=8.27,
                                        paperHeight=11.69)["data"])
    check(pdf.startswith(b"%PDF"), "no PDF")
    pages = len(re.findall(rb"/Type\s*/Page\b", pdf))
    check(1 <= pages <= 12, f"{pages} pages of paper")
    check(browser.js("window.open_on_paper"), "what is folded is not printed")
    check(browser.js("[...document.querySelectorAll('details')].every(d => !d.open)"),
          "what was folded is open after printing")
    if folder := os.environ.get("ROSE_KEEP_PICTURES"):
        (pathlib.Path(folder) / f"{what}.pdf").write_bytes(pdf)
    browser.js("document.querySelector('[data-do=reset]').click()")
    browser.settle()


def check_without_script(browser, page, charts):
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    browser.open(page)
    # The debugger still evaluates expressions.
    check(browser.js("document.querySelectorAll('svg.tl .z title').length") > 0, "without script marks have no words")
    check(browser.js("document.querySelectorAll('svg.tl .axis text').length") >= 4 * charts,
          "without script there is no axis")
    check(browser.js("getComputedStyle(document.querySelector('.tools')).display") == "none",
          "without script there are buttons that do nothing")
    check(browser.js("[...document.querySelectorAll('button')].filter(b => b.getClientRects().length).length") == 0,
          "without script there are buttons")
    check(browser.js("document.documentElement.scrollWidth - innerWidth") <= 0,
          "without script it is wider than the window")
    picture(browser, "no-script")
    browser.call("Emulation.setScriptExecutionDisabled", value=False)


def check_page(browser, page, charts, work):
    global what
    what = pathlib.Path(page).stem
    open_page(browser, page, charts)
    for test in (check_zoom, check_details, check_keys):
        test(browser)
    check_sizes(browser, "narrow")
    check_colours(browser)
    check_print(browser, work)
    quiet(browser, page)
    check_without_script(browser, page, charts)
    quiet(browser, page)


# A dump in which names contain markup and scripts.
HOSTILE = """{"meta":{"version":1,"node":"n1","window":1000,"lost":0,"workload_ts":1763755200000000000}}
{"ts":1763755200123456789,"node":"n1","type":"scf","pid":41,"tid":44,"syscall":"openat","errno":"ENOSPC","fd":null,"path":"/x/<img src=http://example.org/a onerror=console.error(1)>","peer":null}
{"ts":1763755201123456789,"node":"<script>console.error(2)</script>","type":"ps","pid":42,"state":"crashed","signal":"SIGKILL","exit_code":null,"duration_ms":null,"planned":false}
{"ts":1763755202123456789,"node":"n1","type":"sys","pid":41,"tid":44,"syscall":"rename","result":0,"fd":null,"path":"/x/a\\"><svg onload=console.error(3)>","path2":"/x/b","peer":null}
"""


def whole(name):
    """Returns the page as rose writes it. (The golden file with which the pure tests compare it lacks style and
    script.)"""
    page = (here.parent / "golden" / "report" / f"{name}.html").read_text()
    for tag, file in (("style", "page.css"), ("script", "page.js")):
        content = (here.parent.parent / "src" / "report" / file).read_text()
        page, times = re.subn(rf'(<{tag} nonce="\w*">\n)(</{tag}>)', lambda m: m[1] + content + m[2], page)
        assert times == 1, f"{name}.html has no empty <{tag}>"
    return page


def run_tests(rose):
    browser = chromium.Browser()
    try:
        with tempfile.TemporaryDirectory(prefix="rosetest-") as work:
            work = pathlib.Path(work)
            (work / "events.jsonl").write_text(HOSTILE)
            subprocess.run([rose, "dump", "import", work / "events.jsonl", "-o", work / "dump.bin", "-q"], check=True)
            (work / "dump.html").write_text(subprocess.run([rose, "dump", "show", work / "dump.bin", "--format",
                                                            "html"], check=True,
                                                           capture_output=True, text=True).stdout)
            for name, charts in (("diagnosis", 2), ("replay", 2)):
                (work / f"{name}.html").write_text(whole(name))
                check_page(browser, work / f"{name}.html", charts, work)
            check_page(browser, work / "dump.html", 1, work)
    finally:
        browser.close()


def take_picture(report, png):
    browser = chromium.Browser(1180, 900)
    try:
        browser.size(1180, 900)
        browser.media(prefers_color_scheme="light")
        browser.open(report)
        # The picture also contains the heading of the chart.
        x, y, width, height = browser.js(
            """(() => { const charts = document.querySelectorAll('.chart'), last = charts[charts.length - 1];
            const a = last.previousElementSibling.getBoundingClientRect(), b = last.getBoundingClientRect();
            return [b.x - 6 + scrollX, a.y - 6 + scrollY, b.width + 12, b.bottom - a.y + 12]; })()""")
        browser.picture(png, clip=(x, y, width, height), scale=1.5)
    finally:
        browser.close()


if not chromium.found():
    print("SKIPPED: browser: chromium is not installed: the report pages were not looked at")
    sys.exit(77)
if sys.argv[1] == "--picture":
    take_picture(sys.argv[2], sys.argv[3])
    sys.exit(0)
run_tests(os.path.realpath(sys.argv[1]))
print("browser: ok" if failures == 0 else f"browser: {failures} failures")
sys.exit(1 if failures else 0)
