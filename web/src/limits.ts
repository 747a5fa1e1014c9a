// Row limits of the pages' requests; reports use the same limits.

/** Lanes of a chart. */
export const LANES_MAX = 2000;
/** The longest waits of a window; more lines would hide each other. */
export const WAITS_MAX = 100;
/** Sampling gaps. */
export const GAPS_MAX = 500;
