"use strict";
// Draws with uPlot what the server has drawn as SVG: with the value under the pointer, and a drag zooms in. A chart stays
// where it is while the rest of the live part is replaced (hx-preserve), and is given the new figures.
(function () {
  const HEIGHT = 160;
  const charts = new Map(); // by the element that each is in
  const canHover = window.matchMedia("(hover: hover)");
  const color = (name) => () => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const utc = (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC");
  const moment = uPlot.fmtDate("{YYYY}-{MM}-{DD} {HH}:{mm}:{ss} UTC");
  const rounded = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });

  function isLong(chart) {
    return chart.scales.x.max - chart.scales.x.min > 86400;
  }

  function clocks(chart, splits, _axis, _space, step) {
    const day = isLong(chart) ? "{DD} {MMM} " : "";
    const format = uPlot.fmtDate(day + "{HH}:{mm}" + (step < 60 ? ":{ss}" : ""));
    return splits.map((seconds) => format(utc(seconds)));
  }

  function isWhole(chart) {
    const at = chart.data[0];
    return chart.scales.x.min === at[0] && chart.scales.x.max === at[at.length - 1];
  }

  function lonely(values) {
    // A line needs two.
    const isGap = (index) => values[index] == null;
    return [...values.keys()].filter((index) => !isGap(index) && isGap(index - 1) && isGap(index + 1));
  }

  function options(place, told) {
    const axis = {
      stroke: color("--soft"),
      grid: { stroke: color("--line"), width: 1 },
      ticks: { show: false },
      font: "12px system-ui, sans-serif",
    };
    function tell(chart) {
      const shown = charts.get(place)?.shown;
      const index = chart.cursor.idx;
      if (shown && index != null) told.textContent = moment(utc(shown.at[index])) + ": " + shown.texts[index];
      else if (!isWhole(chart)) told.textContent = "Double-click to see all.";
      else told.textContent = canHover.matches ? "Drag to zoom in." : "Tap to see a value.";
    }
    return {
      width: place.clientWidth,
      height: HEIGHT,
      tzDate: utc,
      legend: { show: false },
      cursor: { y: false },
      scales: { y: { range: (_chart, _least, most) => [0, most * 1.1 || 1] } },
      axes: [
        { ...axis, size: 28, space: (chart) => (isLong(chart) ? 110 : 60), values: clocks },
        {
          ...axis,
          size: 80,
          values: (_chart, splits) => {
            const { unit, per } = charts.get(place).shown;
            return splits.map((value) => rounded.format(value / per) + " " + unit);
          },
        },
      ],
      series: [
        {},
        {
          stroke: color("--curve"),
          fill: color("--area"),
          width: 2,
          points: { fill: color("--curve"), size: 5, filter: () => lonely(charts.get(place).shown.values) },
        },
      ],
      hooks: { setCursor: [tell], setScale: [tell] },
    };
  }

  const sizes = new ResizeObserver((entries) => {
    for (const { target, contentRect } of entries) {
      const width = Math.floor(contentRect.width);
      if (width) charts.get(target)?.chart.setSize({ width, height: HEIGHT });
    }
  });

  function make(place, shown) {
    const told = document.createElement("p");
    const made = { shown, chart: null };
    charts.set(place, made);
    made.chart = new uPlot(options(place, told), [shown.at, shown.values], place);
    place.append(told);
    sizes.observe(place);
  }

  function renew(known, shown) {
    const { chart } = known;
    const whole = isWhole(chart);
    known.shown = shown;
    chart.setData([shown.at, shown.values], whole);
    if (!whole) chart.redraw(); // in the part that somebody has chosen
  }

  function draw() {
    for (const [place, { chart }] of charts) {
      if (place.isConnected) continue;
      sizes.unobserve(place);
      chart.destroy();
      charts.delete(place);
    }
    for (const figure of document.querySelectorAll("figure[data-chart]")) {
      const place = figure.querySelector(".plot");
      const shown = JSON.parse(figure.dataset.chart);
      if (charts.has(place)) renew(charts.get(place), shown);
      else make(place, shown);
    }
  }

  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const { chart } of charts.values()) chart.redraw(false);
  });
  document.addEventListener("htmx:afterSwap", draw);
  draw();
})();
