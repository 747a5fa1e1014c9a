// Charts draw the data they are given and report user input; they send no requests and depend on no page.
export { FlameGraph } from "./flame";
export { differences } from "./flame_filter";
export type { FlameData } from "./flame_layout";
export { type HeatBox, HeatMap } from "./heat";
export { type HeatGrid, latencyRange, readGrid } from "./heat_grid";
export { type HostCell, type HostGrid, type HostLine, type HostOrder, readHosts } from "./host_grid";
export { HostMap } from "./hosts";
export { Minimap } from "./minimap";
export type { Arrow, Link, Mark } from "./overlay";
export type { TrackName } from "./raster";
export type { GroupBy, Lane } from "./rows";
export { sampleValue } from "./sample_paint";
export { type BandOf, TrackChart } from "./track";
export { tilesOf } from "./tiles";
