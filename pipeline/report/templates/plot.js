// A small chart in SVG: axes, lines, points with intervals, a legend and the text of the nearest point.
"use strict";
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const SHAPES = {
  circle: "M1,0A1,1 0 1 1 -1,0A1,1 0 1 1 1,0Z", diamond: "M0,-1.25L1.25,0L0,1.25L-1.25,0Z", square: "M-.9,-.9H.9V.9H-.9Z",
  triangle: "M0,-1.15L1.1,.85H-1.1Z", bar: "M-1,-.12H1V.12H-1Z",
};
const REACH = 24; // pixels from the pointer to a point whose text is shown
const LABEL = 7.8; // pixels per character of a tick's label: names of tunables are capitals

function svg(name, attributes = {}, text = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

function niceTicks([low, high]) {
  const raw = (high - low) / 5 || 1, size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * size).find((each) => each >= raw);
  const first = Math.ceil(low / step), count = Math.floor(high / step) - first + 1;
  return Array.from({ length: count }, (_, place) => +((first + place) * step).toPrecision(6)).map((value) => [value, String(value)]);
}

function scaleOf(axis, from, to) {
  const place = axis.log ? Math.log10 : (value) => value;
  const [low, high] = axis.range.map(place);
  return (value) => from + ((place(value) - low) / (high - low)) * (to - from);
}

function marker({ symbol = "circle", color, size = 8, hollow = false, opacity = 1, edge }, x, y) {
  const look = hollow ? { fill: "none", stroke: color, "stroke-width": 4 / size } : { fill: color, stroke: edge ?? "none", "stroke-width": 3 / size };
  return svg("path", { d: SHAPES[symbol], transform: `translate(${x},${y}) scale(${size / 2})`, opacity, ...look });
}

function legend(series) {
  const list = Object.assign(document.createElement("div"), { className: "legend" });
  for (const each of series.filter(({ name }) => name)) {
    const entry = document.createElement("span"), sample = svg("svg", { width: 22, height: 12 });
    if (each.line) sample.append(svg("line", { x1: 1, x2: 21, y1: 6, y2: 6, stroke: each.color, "stroke-width": Math.min(each.line, 4), "stroke-dasharray": each.dash ?? "" }));
    if (each.points) sample.append(marker({ ...each, size: Math.min(each.size ?? 8, 11) }, 11, 6));
    entry.append(sample, each.name);
    list.append(entry);
  }
  return list;
}

// series: x, y, and as wished: name, color, line (width), dash, points, symbol, size, low and high (of x), hover, texts.
// Axes: range in the unit of the values, and as wished: log, ticks ([value, text] each), title, grid.
function drawPlot(id, { height, series, x, y }) {
  const figure = document.getElementById(id), width = figure.clientWidth;
  if (!width) return;
  const ticksX = x.ticks ?? niceTicks(x.range), ticksY = y.ticks ?? niceTicks(y.range);
  const room = Math.floor((width * 0.42) / LABEL);
  const short = (text) => (text.length > room ? `${text.slice(0, room - 1)}…` : text);
  const left = 14 + (y.title ? 18 : 0) + LABEL * Math.max(...ticksY.map(([, text]) => short(text).length), 1);
  const edge = { top: 8, right: width - 24, bottom: height - 44 };
  const toX = scaleOf(x, left, edge.right), toY = scaleOf(y, edge.bottom, edge.top);
  const chart = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  const words = { "font-size": 12, fill: colour("ink") };
  for (const [value, text] of ticksX) {
    chart.append(svg("line", { x1: toX(value), x2: toX(value), y1: edge.top, y2: edge.bottom, stroke: colour("line") }));
    chart.append(svg("text", { ...words, x: toX(value), y: edge.bottom + 16, "text-anchor": "middle" }, text));
  }
  for (const [value, text] of ticksY) {
    if (y.grid !== false) chart.append(svg("line", { x1: left, x2: edge.right, y1: toY(value), y2: toY(value), stroke: colour("line") }));
    const label = svg("text", { ...words, x: left - 8, y: toY(value) + 4, "text-anchor": "end" }, short(text));
    if (short(text) !== text) label.append(svg("title", {}, text));
    chart.append(label);
  }
  chart.append(svg("text", { ...words, fill: colour("soft"), x: (left + edge.right) / 2, y: height - 8, "text-anchor": "middle" }, x.title ?? ""));
  if (y.title) chart.append(svg("text", { ...words, fill: colour("soft"), transform: `translate(12,${(edge.top + edge.bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, y.title));
  const spots = series.flatMap((each) => drawSeries(chart, each, toX, toY));
  const tip = Object.assign(document.createElement("div"), { className: "tip", hidden: true });
  chart.addEventListener("pointermove", (event) => showNearest(event, chart, tip, spots));
  chart.addEventListener("pointerleave", () => { tip.hidden = true; });
  figure.replaceChildren(legend(series), chart, tip);
}

function drawSeries(chart, each, toX, toY) {
  const at = each.x.map((value, i) => [toX(value), toY(each.y[i])]);
  if (each.line) chart.append(svg("polyline", { points: at.map((pair) => pair.join(",")).join(" "), fill: "none", stroke: each.color, "stroke-width": each.line, "stroke-dasharray": each.dash ?? "" }));
  at.forEach(([left, top], i) => {
    if (each.low) chart.append(svg("path", { d: `M${toX(each.low[i])},${top}H${toX(each.high[i])}M${toX(each.low[i])},${top - 3}v6M${toX(each.high[i])},${top - 3}v6`, stroke: each.color, "stroke-width": 2, fill: "none" }));
    if (each.points) chart.append(marker(each, left, top));
    if (each.texts) chart.append(svg("text", { x: left + 2, y: top - 10, "font-size": 11, fill: each.color }, each.texts[i]));
  });
  return each.hover ? at.map((pair, i) => [...pair, each.hover[i]]) : [];
}

function showNearest(event, chart, tip, spots) {
  const box = chart.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
  const far = ([left, top]) => Math.hypot(left - x, top - y);
  const nearest = spots.reduce((best, spot) => (best && far(best) <= far(spot) ? best : spot), null);
  tip.hidden = !nearest || far(nearest) > REACH;
  if (tip.hidden) return;
  tip.textContent = nearest[2];
  tip.style.left = `${Math.min(nearest[0] + 12, box.width - 260)}px`;
  tip.style.top = `${nearest[1] + 14 + chart.offsetTop + (chart.previousSibling?.offsetHeight ?? 0)}px`;
}
