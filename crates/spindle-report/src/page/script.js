// What a pointer asks for: values, other rounds, other windows of the moving average, drawings and figures as files. The page
// is whole without this. Averages and thinning are those of the program: `spindle_stats::TimeSeries::moving_average` and
// `report/chart/thin.rs`; a test holds both to the same drawing.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";

  const element = (name, attributes, parent, namespace) => {
    const made = namespace ? document.createElementNS(namespace, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    parent?.append(made);
    return made;
  };

  // A note that follows the pointer.

  const tip = element("div", { class: "tip", hidden: "" }, document.body);

  const showTip = (event, lines) => {
    tip.replaceChildren(...lines.map(([name, value, mark]) => {
      const line = document.createElement("p");
      const label = element("span", {}, line);
      if (mark) element("span", { class: `swatch ${mark}` }, label);
      label.append(name);
      if (value) element("span", {}, line).append(value);
      return line;
    }));
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    const left = event.clientX + 14 + width > innerWidth ? event.clientX - 14 - width : event.clientX + 14;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${Math.max(4, Math.min(event.clientY + 14, innerHeight - height - 4))}px`;
  };

  const hideTip = () => { tip.hidden = true; };

  const number = (value) => value.toLocaleString("en", { maximumSignificantDigits: Math.abs(value) < 1000 ? 4 : 15 });

  // Marks that carry their own text.

  for (const svg of document.querySelectorAll(".plot, .stack")) {
    for (const title of svg.querySelectorAll("title")) {
      const mark = title.parentNode;
      const text = title.textContent;
      mark.addEventListener("pointermove", (event) => showTip(event, [[text]]));
      mark.addEventListener("pointerleave", hideTip);
      // Kept for readers and files, but not shown a second time by the browser.
      mark.dataset.text = text;
      title.remove();
    }
  }

  // Drawings as they were: with the titles that were taken off, and the colours that the page has now.

  const keep = (name, type, text) => {
    const link = element("a", { download: name, href: URL.createObjectURL(new Blob([text], { type })) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };

  const visibleDrawing = (figure) =>
    [...figure.querySelectorAll(".plot")].find((svg) => svg.getBoundingClientRect().width > 0);

  const asFile = (svg) => {
    const copy = svg.cloneNode(true);
    const [, , width, height] = copy.getAttribute("viewBox").split(" ");
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
    copy.querySelector(".pointer")?.remove();
    for (const mark of copy.querySelectorAll("[data-text]")) {
      element("title", {}, mark, SVG).append(mark.dataset.text);
      mark.removeAttribute("data-text");
    }
    const page = getComputedStyle(document.documentElement);
    const names = ["paper", "ink", "quiet", "line", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"];
    const colours = names.map((name) => `--${name}: ${page.getPropertyValue(`--${name}`).trim()};`).join(" ");
    const style = element("style", {}, null, SVG);
    style.textContent = `svg { ${colours} background: var(--paper); }\n${document.getElementById("drawing-style").textContent}`;
    copy.prepend(style);
    return new XMLSerializer().serializeToString(copy);
  };

  const quoted = (cell) => /[",\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;

  const csvOfTable = (table) =>
    [...table.rows].map((row) => [...row.cells].map((cell) => quoted(cell.textContent.trim())).join(",")).join("\n") + "\n";

  const csvOfSeries = (data) => {
    const lines = [`layout,round,seconds,${data.value}`];
    for (const series of data.series) {
      series.values.forEach((value, index) => {
        const seconds = +((index + 1) * series.step_s).toFixed(3);
        lines.push(`${quoted(series.name)},${series.round},${seconds},${value ?? ""}`);
      });
    }
    return lines.join("\n") + "\n";
  };

  // Series over time.

  const movingAverage = (values, window) => values.map((_, last) => {
    const first = Math.max(0, last + 1 - window);
    let sum = 0;
    for (let index = first; index <= last; index += 1) sum += values[index];
    return sum / (last + 1 - first);
  });

  const thin = (points, buckets) => {
    if (points.length <= 2 * buckets) return points;
    const thinned = [];
    for (let bucket = 0; bucket < buckets; bucket += 1) {
      const from = Math.floor(bucket * points.length / buckets);
      const to = Math.floor((bucket + 1) * points.length / buckets);
      let lowest = from;
      let highest = from;
      for (let index = from; index < to; index += 1) {
        if (points[index][1] < points[lowest][1]) lowest = index;
        if (points[index][1] > points[highest][1]) highest = index;
      }
      thinned.push(points[Math.min(lowest, highest)]);
      if (lowest !== highest) thinned.push(points[Math.max(lowest, highest)]);
    }
    return thinned;
  };

  const axes = (svg) => {
    const [left, top, right, bottom] = svg.dataset.area.split(" ").map(Number);
    const [xStart, xEnd] = svg.dataset.x.split(" ").map(Number);
    const [yStart, yEnd] = svg.dataset.y.split(" ").map(Number);
    return {
      left, top, right, bottom,
      x: (value) => left + (right - left) * (value - xStart) / (xEnd - xStart),
      y: (value) => bottom - (bottom - top) * (value - yStart) / (yEnd - yStart),
      second: (x) => xStart + (xEnd - xStart) * (x - left) / (right - left),
    };
  };

  const path = (points) =>
    points.map(([x, y], index) => `${index ? "L" : "M"}${+x.toFixed(1)} ${+y.toFixed(1)}`).join("");

  const redraw = (svg, data, round, window) => {
    svg.querySelectorAll(".raw, .average, .checkpoint").forEach((line) => line.remove());
    const at = axes(svg);
    const buckets = svg.viewBox.baseVal.width / 4;
    const drawn = data.series.filter((series) => series.round === round);
    const curve = (kind, series, values) => {
      const points = values.map((value, index) => [(index + 0.5) * series.step_s, value]);
      const places = thin(points, buckets).map(([x, y]) => [at.x(x), at.y(y)]);
      element("path", { class: `${kind} ${series.class}`, d: path(places) }, svg, SVG);
    };
    drawn.forEach((series) => curve("raw", series, series.values));
    drawn.forEach((series) => curve("average", series, movingAverage(series.values, window)));
    drawn.forEach((series, row) => {
      const [from, to] = [row, row + 0.75].map((rows) => at.y(data.top * (1 - data.tick_row * rows)));
      for (const sample of series.checkpoints) {
        const x = at.x((sample + 0.5) * series.step_s);
        element("path", { class: `checkpoint ${series.class}`, d: path([[x, from], [x, to]]) }, svg, SVG);
      }
    });
  };

  const followPointer = (svg, data, round) => {
    const at = axes(svg);
    const line = element("line", { class: "pointer", y1: at.top, y2: at.bottom, visibility: "hidden" }, svg, SVG);
    svg.addEventListener("pointermove", (event) => {
      const x = (event.clientX - svg.getBoundingClientRect().left) * svg.viewBox.baseVal.width / svg.clientWidth;
      if (x < at.left || x > at.right) return;
      const second = at.second(x);
      const values = data.series.filter((series) => series.round === round()).map((series) => {
        const value = series.values[Math.floor(second / series.step_s)];
        return value == null ? null : [series.name, number(value), series.class, value];
      }).filter(Boolean).sort((a, b) => b[3] - a[3]);
      line.setAttribute("x1", x);
      line.setAttribute("x2", x);
      line.setAttribute("visibility", "visible");
      showTip(event, [[`${second.toFixed(1)} s`], ...values]);
    });
    svg.addEventListener("pointerleave", () => {
      line.setAttribute("visibility", "hidden");
      hideTip();
    });
  };

  for (const figure of document.querySelectorAll("figure.chart")) {
    const embedded = figure.querySelector("script[type='application/json']");
    const data = embedded && JSON.parse(embedded.textContent);
    let round = data?.round;
    let window = data?.window;
    if (data) for (const svg of figure.querySelectorAll(".plot")) followPointer(svg, data, () => round);
    figure.querySelectorAll("[data-control]").forEach((control) => control.addEventListener("input", () => {
      const value = Number(control.value);
      if (control.dataset.control === "round") {
        round = value;
      } else {
        window = value;
        figure.querySelector("output").textContent = `${value}`;
      }
      for (const svg of figure.querySelectorAll(".plot")) redraw(svg, data, round, window);
    }));
    figure.querySelector("[data-keep='svg']").addEventListener("click", () => {
      keep(`${figure.id}.svg`, "image/svg+xml", asFile(visibleDrawing(figure)));
    });
    figure.querySelector("[data-keep='csv']").addEventListener("click", () => {
      keep(`${figure.id}.csv`, "text/csv", data ? csvOfSeries(data) : csvOfTable(figure.querySelector("table")));
    });
    figure.querySelector(".tools").hidden = false;
  }

  // Paper shows what is folded away on a screen.
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
})();
