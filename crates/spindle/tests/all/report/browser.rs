//! A page in headless Chromium: what its own document says after it was laid out, and what it looks like.
//!
//! The page stands in a frame of the width that is wanted, because a window cannot be made as narrow as a phone. A
//! probe, a function of the frame's document, writes what it finds into the outer document, which Chromium prints.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// Where a page is looked at.
#[derive(Clone, Copy)]
pub struct View {
    /// Pixels from left to right.
    pub width: u32,
    /// Whether the person prefers dark pages.
    pub dark: bool,
    /// Whether scripts of the page run.
    pub scripts: bool,
}

/// Chromium and its own directory, both gone when the test ends.
pub struct Browser {
    directory: tempfile::TempDir,
}

/// Pixels that a page may be high in a picture.
const HEIGHT: u32 = 1_400;

impl Browser {
    /// Looks for Chromium; says in one line that there is none.
    pub fn find(test: &str) -> Option<Browser> {
        if Command::new("chromium").arg("--version").output().is_err() {
            eprintln!(
                "{test}: skipped, there is no chromium (scripts/setup installs it as root on Debian)"
            );
            return None;
        }
        let directory = tempfile::tempdir().expect("a directory for the browser");
        Some(Browser { directory })
    }

    /// What a probe finds: a JavaScript expression over `page`, the document of the page, and `view`, its window.
    pub fn probe(&self, page: &str, view: View, probe: &str) -> Value {
        let harness = self.harness(page, view, probe);
        let output = self.run(view, &["--dump-dom".to_owned(), url(&harness)]);
        let console = String::from_utf8_lossy(&output.stderr);
        let messages = console.lines().filter(|line| line.contains("CONSOLE"));
        // That the frame keeps scripts from running is what was asked for.
        let is_asked_for = |line: &&str| !view.scripts && line.contains("Blocked script execution");
        let messages: Vec<&str> = messages.filter(|line| !is_asked_for(line)).collect();
        assert!(messages.is_empty(), "the console says {messages:#?}");
        let dumped = String::from_utf8_lossy(&output.stdout);
        let found = dumped
            .split("<pre id=\"found\" hidden=\"\">")
            .nth(1)
            .and_then(|rest| rest.split("</pre>").next())
            .unwrap_or_else(|| panic!("the probe wrote nothing: {console}\n{}", dumped.len()));
        let text = found
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// A picture of the page from `top` pixels down.
    pub fn picture(&self, page: &str, view: View, top: u32, to: &Path) {
        let harness = self.harness(page, view, &format!("view.scrollTo(0, {top})"));
        let screenshot = format!("--screenshot={}", to.display());
        self.run(view, &[screenshot, url(&harness)]);
        assert!(to.exists(), "no picture at {}", to.display());
    }

    /// Sheets of paper that the page takes when it is printed.
    pub fn sheets(&self, page: &str, view: View) -> usize {
        let (file, printed) = (
            self.directory.path().join("page.html"),
            self.directory.path().join("page.pdf"),
        );
        fs::write(&file, page).expect("the page is written");
        let to = format!("--print-to-pdf={}", printed.display());
        self.run(view, &[to, "--no-pdf-header-footer".to_owned(), url(&file)]);
        let printed = fs::read(&printed).expect("the page was printed");
        let text = String::from_utf8_lossy(&printed);
        // ISO 32000-1, 7.7.3: each is an object of this type, and the tree of them is of the type Pages.
        text.matches("/Type /Page\n").count()
    }

    fn harness(&self, page: &str, view: View, probe: &str) -> PathBuf {
        let escaped = page.replace('&', "&amp;").replace('"', "&quot;");
        let sandbox = if view.scripts {
            ""
        } else {
            "sandbox=\"allow-same-origin\""
        };
        let harness = format!(
            "<!DOCTYPE html><html><meta charset=\"utf-8\"><body style=\"margin:0\">\
             <iframe {sandbox} style=\"border:0;display:block;width:{}px;height:{HEIGHT}px\" srcdoc=\"{escaped}\"></iframe>\
             <script>const frame = document.querySelector('iframe');\
             frame.addEventListener('load', () => {{\
             const page = frame.contentDocument, view = frame.contentWindow;\
             const found = (() => {{ {PROBES} return {probe}; }})();\
             const pre = document.createElement('pre'); pre.id = 'found'; pre.hidden = true;\
             pre.textContent = JSON.stringify(found ?? null); document.body.append(pre); }});\
             </script></body></html>",
            view.width
        );
        let path = self.directory.path().join("harness.html");
        fs::write(&path, harness).expect("the harness is written");
        path
    }

    fn run(&self, view: View, arguments: &[String]) -> Output {
        let profile = self.directory.path().join("profile");
        let scheme = if view.dark { 0 } else { 1 };
        Command::new("chromium")
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
            ])
            .args([
                "--no-first-run",
                "--disable-extensions",
                "--enable-logging=stderr",
            ])
            .args(["--hide-scrollbars", "--virtual-time-budget=20000"])
            .arg(format!("--window-size={},{HEIGHT}", view.width.max(500)))
            .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
            .arg(format!("--user-data-dir={}", profile.display()))
            .args(arguments)
            .output()
            .expect("chromium runs")
    }
}

fn url(path: &Path) -> String {
    format!("file://{}", path.display())
}

/// Functions that probes share.
const PROBES: &str = r#"
const shown = (element) => { const box = element.getBoundingClientRect(); return box.width > 0 && box.height > 0; };
const name = (element) => `${element.tagName}.${element.getAttribute("class") ?? ""}: ${element.textContent.slice(0, 50)}`;
/* Texts of one drawing that lie over each other, and texts that leave their drawing. */
const overlaps = () => {
  const found = [];
  for (const svg of page.querySelectorAll("svg[role=img]")) {
    if (!shown(svg)) continue;
    const outer = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].filter(shown).map((text) => [text, text.getBoundingClientRect()]);
    texts.forEach(([text, box], index) => {
      if (box.left < outer.left - 1 || box.right > outer.right + 1) found.push(`${name(text)} leaves its drawing`);
      for (const [other, its] of texts.slice(index + 1)) {
        const wide = Math.min(box.right, its.right) - Math.max(box.left, its.left);
        const high = Math.min(box.bottom, its.bottom) - Math.max(box.top, its.top);
        if (wide > 1 && high > 3) found.push(`${name(text)} and ${name(other)} in ${svg.closest("figure").id}`);
      }
    });
  }
  const blocks = [...page.querySelectorAll("h1, h2, h3, h4, p, figure, table, li, .tools, summary, pre")].filter(shown);
  for (const block of blocks) {
    const next = block.nextElementSibling;
    if (!next || !shown(next) || block.closest("figure.diagram")) continue;
    const [box, its] = [block.getBoundingClientRect(), next.getBoundingClientRect()];
    const beside = its.left >= box.right - 1 || its.right <= box.left + 1;
    if (!beside && its.top < box.bottom - 1) found.push(`${name(block)} and ${name(next)}`);
  }
  return found;
};
/* Elements that reach beyond the width of the page, other than inside what scrolls by itself. */
const beyond = () => [...page.querySelectorAll("body *")].filter((element) => shown(element)
  && !element.closest(".scroll, .tip, svg *") && element.getBoundingClientRect().right > view.innerWidth + 1).map(name);
/* Rows whose name does not stay in sight when the rest of their table is scrolled away, and columns whose name does not stay over
   theirs. */
const nameless = () => {
  const found = [];
  for (const scroll of page.querySelectorAll(".scroll")) {
    const table = scroll.querySelector("table");
    if (!table || !shown(table) || !table.querySelector("tbody th")) continue;
    scroll.scrollLeft = 1e6;
    const edge = scroll.getBoundingClientRect().left;
    for (const row of table.querySelectorAll("tr")) {
      const first = row.firstElementChild;
      const text = first.querySelector("span") && first.scope === "rowgroup" ? first.querySelector("span") : first;
      const box = text.getBoundingClientRect();
      if (first.tagName !== "TH" || box.left < edge - 1 || box.left > edge + 12) found.push(`${name(row)} of ${scroll.getAttribute("aria-label")}`);
      else if (Math.abs(first.getBoundingClientRect().bottom - row.getBoundingClientRect().bottom) > 1) found.push(`${name(first)} is not as high as its row`);
    }
    scroll.scrollLeft = 0;
  }
  return found;
};
/* Relative luminance and contrast as WCAG 2.2 defines them. */
const channels = (colour) => colour.match(/[\d.]+/g).map(Number);
const luminance = (colour) => {
  const [r, g, b] = channels(colour).slice(0, 3).map((value) => value / 255)
    .map((value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (a, b) => {
  const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
};
const paper = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const colour = view.getComputedStyle(at).backgroundColor;
    if (channels(colour)[3] !== 0) return colour;
  }
  return "rgb(255, 255, 255)";
};
/* Texts whose contrast with what lies behind them is below 4.5 : 1. */
const faint = () => [...page.querySelectorAll("h1, h2, h3, h4, p, li, th, td, summary, figcaption, label, code, small, span, button, a")]
  .filter((element) => shown(element) && element.textContent.trim())
  .filter((element) => contrast(view.getComputedStyle(element).color, paper(element)) < 4.5).map(name)
  .concat([...page.querySelectorAll("svg text")].filter(shown)
    .filter((text) => !text.matches(".inside")
      && contrast(view.getComputedStyle(text).fill, paper(text.closest("svg"))) < 4.5).map(name));
"#;
