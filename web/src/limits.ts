// How much the pages ask for at once; a report is made with the same numbers.

/** Lanes of a chart. */
export const LANES_MAX = 2000;
/** The longest waits of a window; more lines would only hide each other. */
export const WAITS_MAX = 100;
/** Times without samples. */
export const GAPS_MAX = 500;
