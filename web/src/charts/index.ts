// Charts: they draw what they are given and tell what somebody did; they ask nobody and know no page.
export { FlameGraph } from "./flame";
export type { FlameData } from "./flame_layout";
export { type HeatBox, HeatMap } from "./heat";
export { type HeatGrid, latencyRange, readGrid } from "./heat_grid";
export { Minimap } from "./minimap";
export type { Arrow, Mark } from "./overlay";
export type { TrackName } from "./raster";
export type { Lane } from "./rows";
export { type BandOf, TrackChart } from "./track";
export { tilesOf } from "./tiles";
