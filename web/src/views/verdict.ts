// What did remote memory cost, and what is to be done?

import { remoteCell } from "../area_list"
import type { Data, ProcessData, Share } from "../data"
import { base, count, fill, h, percent, seconds, size } from "../dom"
import type { State } from "../state"

export function verdictView(data: Data, process: () => ProcessData, state: State): { element: HTMLElement; update: () => void } {
  const element = h("div", { class: "verdict" })
  const update = (): void => {
    const one = process(), { verdict } = one.views, json = one.json, counts = data.run.processes.length === 1 ? data.run.counts : null
    const own = json.seconds.observing + json.seconds.deciding + json.seconds.moving + json.seconds.hooks
    fill(element,
      h("div", { class: "words" },
        h("p", { class: "cost" }, verdict.cost),
        h("p", { class: "done" }, verdict.done),
        verdict.advice.length > 0 && h("h3", {}, "To do"),
        verdict.advice.length > 0 && h("ol", { class: "advice" }, verdict.advice.map(advice => h("li", {}, advice.text, advice.gain && h("strong", {}, ` Expected: ${percent(advice.gain.before)} → ${percent(advice.gain.after)} remote.`), " ", h("span", { class: "dim" }, advice.evidence),
          advice.area !== null && h("button", { class: "link", type: "button", onclick: () => { state.set({ area: advice.area }); document.getElementById("pages")!.scrollIntoView() } }, "show it")))),
        data.run.aside && h("p", { class: "missing" }, data.run.aside),
        data.run.notes.length > 0 && h("ul", { class: "notes dim" }, data.run.notes.map(note => h("li", {}, `note: ${note}`)))),
      h("div", { class: "figures" },
        counts && shareFigure("of cache misses remote, counted", counts.run.remote_fraction, null, null, null),
        json.remote_fraction.after !== null ? remoteFigure(json.remote_fraction, one.views.by_access) : h("div", { class: "figure" }, h("div", { class: "value" }, "–"), h("div", { class: "dim" }, "remote: too few samples")),
        h("dl", { class: "numbers" },
          number("moved", `${count(json.moved_pages)} pages`, size(json.moved_bytes)),
          number("run", seconds(json.seconds.run), json.seconds.parallel !== null ? `${seconds(json.seconds.parallel)} timed in parallel regions` : ""),
          number("homing's own", json.seconds.run > 0 ? percent(own / json.seconds.run, 1) : seconds(own), seconds(own)),
          number("iterations", `${count(json.iterations.count)}${one.views.exact ? "" : " or more"}`, json.iterations.settled_at !== null ? `settled at ${count(json.iterations.settled_at)}` : "not settled"))),
      data.run.processes.length > 1 && processTable(data, state))
  }
  return { element, update }
}

function number(name: string, value: string, more: string): HTMLElement {
  return h("div", {}, h("dt", {}, name), h("dd", {}, value, more && h("span", { class: "dim" }, more)))
}

function remoteFigure(found: Share, byAccess: boolean): HTMLElement {
  const what = byAccess ? "sampled accesses" : "sampled touches"
  return shareFigure(`of touches remote, estimated from ${count(found.touches)} ${what}`, found.after!, percent(found.before) === percent(found.after) ? null : found.before, found.before_interval, found.after_interval)
}

/** A share as a number and as points on a line from 0 to 100 %, with their intervals. */
function shareFigure(label: string, after: number, before: number | null, beforeWithin: number[] | null, afterWithin: number[] | null): HTMLElement {
  const mark = (at: number, within: number[] | null, name: string): HTMLElement[] => [
    ...(within ? [h("span", { class: `within ${name}`, style: `left:${100 * within[0]}%;width:${Math.max(0.5, 100 * (within[1] - within[0]))}%`, title: `95 % interval ${percent(within[0], 1)} to ${percent(within[1], 1)}` })] : []),
    h("span", { class: `point ${name}`, style: `left:${100 * at}%` }),
  ]
  return h("div", { class: "figure" },
    h("div", { class: "value" }, before !== null && h("span", { class: "dim" }, `${percent(before)} → `), percent(after)),
    h("div", { class: "dim" }, label),
    h("div", { class: "scale", "aria-hidden": "true" }, ...(before !== null ? mark(before, beforeWithin, "before") : []), ...mark(after, afterWithin, "after")),
    h("div", { class: "ends dim", "aria-hidden": "true" }, h("span", {}, "0"), h("span", {}, "all remote")))
}

function processTable(data: Data, state: State): HTMLElement {
  return h("div", { class: "scrolled", tabindex: 0, role: "region", "aria-label": "Processes" }, h("table", { class: "plain" },
    h("thead", {}, h("tr", {}, ...["rank", "process", "program", "host", "moved", "remote"].map(one => h("th", { scope: "col" }, one)))),
    h("tbody", {}, data.processes.map((one, at) => h("tr", { "aria-current": at === state.now.process ? "true" : null },
      h("td", {}, one.json.record.rank ?? ""), h("td", {}, h("button", { class: "link", type: "button", onclick: () => state.set({ process: at }) }, one.json.record.pid)),
      h("td", {}, base(one.json.record.program)), h("td", {}, one.json.record.host), h("td", {}, size(one.json.moved_bytes)),
      h("td", {}, remoteCell(one.json.remote_fraction)))))))
}
