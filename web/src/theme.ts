// Light and dark; the colours that canvases take from the style.

export type Theme = "auto" | "light" | "dark"
const listeners: (() => void)[] = []

export function onTheme(listener: () => void): void { listeners.push(listener) }

export function setTheme(theme: Theme): void {
  if (theme === "auto") delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
  tell()
}

export function isDark(): boolean {
  const stated = document.documentElement.dataset.theme
  return stated ? stated === "dark" : matchMedia("(prefers-color-scheme: dark)").matches
}

// Asking for a style makes the browser compute all of it: once a theme.
const colours = new Map<string, string>()
let palette: string[] = []

export function colour(name: string): string {
  let found = colours.get(name)
  if (found === undefined) {
    found = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()
    colours.set(name, found)
  }
  return found
}

/** The colour of a node by its position. Lanes, labels and positions tell the same without colour. */
export function nodeColour(position: number): string {
  if (!palette.length) palette = Array.from({ length: 8 }, (_, at) => colour(`node-${at}`))
  return palette[position % 8]
}

/** The same as red, green, blue. */
export function nodeRgb(position: number): [number, number, number] {
  const text = nodeColour(position)
  return [1, 3, 5].map(at => parseInt(text.slice(at, at + 2), 16)) as [number, number, number]
}

function tell(): void {
  palette = []
  colours.clear()
  for (const listener of listeners) listener()
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", tell)
