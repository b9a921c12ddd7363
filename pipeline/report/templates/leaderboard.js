// The curves of the leaderboard: fast_p over p, one line per submission.
"use strict";
const LINES = 12; // that can be distinguished: the best ranks
const DASHES = ["", "6 4"];
const percent = (value) => `${+(100 * value).toPrecision(3)} %`;

function drawCurve(board, number) {
  const baseline = document.getElementById(`baseline-${number}`).value;
  const series = board.submissions.slice(0, LINES).map(({ name, fast }, place) => ({
    x: board.p, y: fast[baseline], line: 2, name, color: colour(`series-${(place % 6) + 1}`), dash: DASHES[Math.floor(place / 6)],
    hover: board.p.map((p, i) => `${name}\nmore than ${p} times as fast: ${percent(fast[baseline][i])}`),
  }));
  const label = board.baselines.find(({ name }) => name === baseline).label, left = board.submissions.length - LINES;
  const shares = [0, 0.2, 0.4, 0.6, 0.8, 1];
  drawPlot(`curve-${number}`, {
    height: 380, series,
    x: { range: [0, board.p.at(-1)], title: `p: times as fast as ${label}${left > 0 ? ` · the first ${LINES} of ${board.submissions.length}` : ""}` },
    y: { range: [0, 1], ticks: shares.map((share) => [share, percent(share)]), title: "share of problems" },
  });
}

const drawings = JSON.parse(document.getElementById("page-data").textContent).flatMap((board, number) => {
  const select = document.getElementById(`baseline-${number}`);
  if (!select) return [];
  select.replaceChildren(...board.baselines.map(({ name, label }) => new Option(label, name, false, name === board.chosen)));
  const draw = () => drawCurve(board, number);
  select.addEventListener("change", draw);
  return [draw];
});
const drawAll = () => drawings.forEach((draw) => draw());
drawAll();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
addEventListener("resize", drawAll);
