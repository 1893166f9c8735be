// Iterations at rest have no row: their mean time, from the times of the rows around them.

import type { Iteration } from "./data"

/** means: at the first and the last iteration of each rest, null where the times do not tell. atMost: the last mean
 *  has the end of the run in it, for nothing else is known of its time. */
export interface Rests { means: Map<number, number | null>; atMost: boolean }

/** rows: guesses, too, which are parts of an iteration and come before those that were found. seen: iterations in all.
 *  run: seconds. */
export function rests(rows: Iteration[], seen: number, run: number): Rests {
  const means = new Map<number, number | null>()
  const guess = rows.filter(row => row.basis === "guess").pop()
  const found = rows.filter(row => row.basis !== "guess").sort((a, b) => a.number - b.number)
  let last = { number: guess ? guess.number - 1 : -1, time: guess ? guess.time : 0 }
  let time = 0, count = 0
  for (const row of found) {
    const between = row.number - last.number - 1
    if (between > 0) {
      const mean = (row.time - row.seconds - last.time) / between
      // Where iterations were numbered anew the times do not tell: a gap.
      means.set(last.number + 1, mean < 0 ? null : mean)
      means.set(row.number - 1, mean < 0 ? null : mean)
      if (mean >= 0) { time += mean * between; count += between }
    }
    last = row
  }
  const left = seen - last.number - 1
  const atMost = left > 0 && run > last.time && !count
  if (left > 0 && run > last.time) {
    // What comes behind the last iteration is in the time that is left, so an earlier mean is better.
    const mean = count ? time / count : (run - last.time) / left
    means.set(last.number + 1, mean)
    means.set(last.number + left, mean)
  }
  return { means, atMost }
}
