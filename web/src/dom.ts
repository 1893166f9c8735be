// Making elements, and showing numbers.

type Child = Node | string | number | null | undefined | false
type Attributes = Record<string, string | number | boolean | null | undefined | ((event: any) => void)>

export function h<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: (Child | Child[])[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value)
    else if (value === true) element.setAttribute(name, "")
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value))
  }
  add(element, children)
  return element
}

export function add(element: Element, children: (Child | Child[])[]): void {
  for (const child of children.flat()) if (child !== null && child !== undefined && child !== false) element.append(child instanceof Node ? child : String(child))
}

export function fill(element: Element, ...children: (Child | Child[])[]): void {
  element.replaceChildren()
  add(element, children)
}

export function size(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"]
  let at = 0
  while (bytes >= 1024 && at < 4) { bytes /= 1024; at++ }
  return `${at === 0 || bytes >= 10 ? bytes.toFixed(0) : bytes.toFixed(1)} ${units[at]}`
}

export function seconds(value: number | null): string {
  if (value === null) return "not known"
  if (value < 1e-3) return `${(value * 1e6).toFixed(0)} µs`
  if (value < 1) return `${value * 1e3 < 9.95 ? (value * 1e3).toPrecision(2) : (value * 1e3).toFixed(0)} ms`
  return `${value < 1000 ? Number(value.toPrecision(3)) : value.toFixed(0)} s`
}

export function percent(value: number | null | undefined, digits?: number): string {
  return value === null || value === undefined ? "–" : `${(100 * value).toFixed(digits ?? (value >= 0.0995 || value === 0 ? 0 : 1))} %`
}

export function count(value: number): string {
  return Math.round(value).toLocaleString("en-US")
}

export function base(path: string | null | undefined): string {
  return (path ?? "").replace(/^.*\//, "")
}

/** What a view says where the run has no data for it: what is missing, and how to get it. */
export function missing(text: string): HTMLElement {
  return h("p", { class: "missing" }, h("strong", {}, "Not in this record. "), text)
}

/** Calls once a frame, however often it is asked. */
export function framed(draw: () => void): () => void {
  let asked = false
  return () => {
    if (asked) return
    asked = true
    requestAnimationFrame(() => { asked = false; draw() })
  }
}

/** Calls when the element's width has changed. */
export function onResize(element: Element, change: () => void): void {
  let width = -1
  new ResizeObserver(() => {
    if (element.clientWidth !== width) { width = element.clientWidth; change() }
  }).observe(element)
}
